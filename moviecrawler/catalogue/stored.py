"""Reading movies that a store, a spool file or an export holds, also those of the version before `Movie.silent`.

That version named in `unsure` the fields that a page lacked although pages like it had them, and left out what lists and datasets can't
tell. Where it had kept the value of an earlier page, the value stands; the other ones it was unsure of are silent now.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from moviecrawler.fields import present_in, score_facts_told, silent_beside, silent_in_datasets, told_by
from moviecrawler.items import Movie

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

_DECODER = msgspec.json.Decoder(Movie)
_KEY = b'"silent":'
"""Stands in every item of this version, and in no text of an earlier one's, whose quotes JSON writes as `\\"`."""


class _Former(msgspec.Struct):
    unsure: dict[str, Any] = {}


_FORMER = msgspec.json.Decoder(_Former)


def read_movie(encoded: bytes) -> Movie:
    """Return a movie from its JSON. Raises msgspec.DecodeError for what is none."""
    movie = _DECODER.decode(encoded)
    if _KEY not in encoded:
        movie.silent = _silent(movie, _FORMER.decode(encoded).unsure)
    return movie


def movie_of_document(document: Mapping[str, Any]) -> Movie:
    """Return a movie from its plain data, such as a document of MongoDB. Raises msgspec.ValidationError for what is none."""
    movie = msgspec.convert(document, Movie)
    if "silent" not in document:
        movie.silent = _silent(movie, document.get("unsure", {}))
    return movie


def _silent(movie: Movie, unsure: Collection[str]) -> list[str]:
    if movie.source == "list":
        return silent_beside(movie)
    present = present_in(movie)
    if movie.source == "dataset":
        return sorted(set(silent_in_datasets(movie.kind)) - present)
    may_be_silent = told_by(movie.site, movie.kind) | score_facts_told(movie)
    return sorted(set(unsure) & may_be_silent - present)
