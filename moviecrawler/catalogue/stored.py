"""Movies in the form that stores, spool files and exports hold.

It is `Movie` as plain data, but for what an older version could not read. The finer scores stand apart, in `finer_scores`. A season is a
`series` that has the number of a season. What a score, an offer or a related title hasn't is left out, and so are the newer fields of a movie;
one that is silent of all of them has no `external_ids`, and their names are not in its `silent`.

What versions before November 22, 2026 have left there is read as it was meant. They named in `unsure` the fields that a page lacked although
pages like it had them. Where they had kept the value of an earlier page, the value stands; the other ones are silent, and so is what lists and
datasets can't tell.
"""

from __future__ import annotations

from datetime import datetime
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import msgspec

from moviecrawler.fields import present_in, score_facts_told, silent_beside, silent_in_datasets, told_by
from moviecrawler.items import Movie, Score
from moviecrawler.sites import SCOREBOARD_KINDS

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from moviecrawler.items import ScoreKind, Site, TitleKind

_NEWER_FIELDS: Final = (
    *("poster_width", "poster_height", "offers", "keywords", "interests", "taglines", "awards", "related", "consensus"),
)
LATEST_FIELDS: Final = ("critic_review_count", "season_count", "episode_count")
"""Newer still, and where the next field goes: one that is written as null or as an empty list is stated to be absent, and a movie is silent of
one that is not there."""
_LEFT_OUT: Final = {
    "scores": ("average", "reviews", "liked", "neutral", "disliked", "certified", "sentiment", "histogram"),
    "offers": ("price", "currency", "quality", "url", "source", "seen_at"),
    "related": ("connection",),
}
"""What is left out of the parts of a movie when it is None or an empty list; of a movie, that is _NEWER_FIELDS."""
_DECODER = msgspec.json.Decoder(Movie)
_SILENT, _NEWER, _FINER = b'"silent":', b'"external_ids":', b'"finer_scores":'
"""Keys. The first stands in every item of this version, the second in those that tell some newer field."""
_LATEST_KEYS: Final = [(name, f'"{name}":'.encode()) for name in LATEST_FIELDS]


class _Former(msgspec.Struct):
    unsure: dict[str, Any] = {}


class _Finer(msgspec.Struct):
    finer_scores: list[Score]


_FORMER, _FINER_SCORES = msgspec.json.Decoder(_Former), msgspec.json.Decoder(_Finer)


def encode_movie(movie: Movie) -> bytes:
    """Return a movie as JSON."""
    return msgspec.json.encode(document_of_movie(movie))


def document_of_movie(movie: Movie) -> dict[str, Any]:
    """Return a movie as plain data, with its times as they are."""
    document: dict[str, Any] = msgspec.to_builtins(movie, builtin_types=(datetime,))
    for field, names in _LEFT_OUT.items():
        for part in document[field]:
            for name in names:
                if part[name] is None or part[name] == []:
                    del part[name]
    for name in _NEWER_FIELDS:
        if not document[name]:
            del document[name]
    if movie.kind == "season" and movie.season is not None:
        document["kind"] = "series"
    told = told_by(movie.site, movie.kind)
    for name in LATEST_FIELDS:
        if not document[name] and (name in movie.silent or name not in told):
            del document[name]
    finer = [score for score in document["scores"] if score["kind"] not in SCOREBOARD_KINDS]
    if finer:
        document["scores"] = [score for score in document["scores"] if score["kind"] in SCOREBOARD_KINDS]
        document["finer_scores"] = finer
    unnamed = _newer_told(movie)
    if not movie.external_ids and unnamed.issubset(movie.silent):  # as a row of a list or a dataset is
        del document["external_ids"]
    else:
        unnamed = frozenset()
    document["silent"] = [name for name in movie.silent if name not in unnamed and name not in LATEST_FIELDS]
    return document


def read_movie(encoded: bytes | str) -> Movie:
    """Return a movie from its JSON. Raises msgspec.DecodeError for what is none."""
    encoded = encoded.encode() if isinstance(encoded, str) else encoded
    movie = _DECODER.decode(encoded)
    if _FINER in encoded:
        movie.scores += _FINER_SCORES.decode(encoded).finer_scores
    _tell_season(movie)
    if _SILENT not in encoded:
        movie.silent = _silent(movie, _FORMER.decode(encoded).unsure)
    if _NEWER not in encoded:
        movie.silent = sorted({*movie.silent, *_told_since(movie)})
    return _with_latest(movie, [name for name, key in _LATEST_KEYS if key not in encoded])


def movie_of_document(document: Mapping[str, Any]) -> Movie:
    """Return a movie from its plain data, such as a document of MongoDB. Raises msgspec.ValidationError for what is none."""
    movie = msgspec.convert(document, Movie)
    movie.scores += msgspec.convert(document.get("finer_scores", []), list[Score])
    _tell_season(movie)
    if "silent" not in document:
        movie.silent = _silent(movie, document.get("unsure", {}))
    if "external_ids" not in document:
        movie.silent = sorted({*movie.silent, *_told_since(movie)})
    return _with_latest(movie, [name for name in LATEST_FIELDS if name not in document])


def _tell_season(movie: Movie) -> None:
    if movie.kind == "series" and movie.season is not None:
        movie.kind = "season"


def _with_latest(movie: Movie, unwritten: Collection[str]) -> Movie:
    if silent := told_by(movie.site, movie.kind).intersection(unwritten):
        movie.silent = sorted({*movie.silent, *silent})
    return movie


def _silent(movie: Movie, unsure: Collection[str]) -> list[str]:
    if movie.source == "list":
        return silent_beside(movie)
    present = present_in(movie)
    if movie.source == "dataset":
        return sorted(set(silent_in_datasets(movie.kind)) - present)
    may_be_silent = told_by(movie.site, movie.kind) | score_facts_told(movie)
    return sorted(set(unsure) & may_be_silent - present)


def _told_since(movie: Movie) -> frozenset[str]:
    """Return what the site tells of such titles, of the newer fields and facts, and the movie lacks."""
    return _newer_told(movie) - present_in(movie)


def _newer_told(movie: Movie) -> frozenset[str]:
    return _newer(movie.site, movie.kind, tuple(score.kind for score in movie.scores))


@cache
def _newer(site: Site, kind: TitleKind, scores: tuple[ScoreKind, ...]) -> frozenset[str]:
    scored = [Score(kind=score, value=1) for score in scores]
    movie = Movie(site=site, site_id=None, url=None, title="", kind=kind, scores=scored)
    return frozenset(name for name in told_by(site, kind) | score_facts_told(movie) if is_newer(*name.split(".")))


def is_newer(field: str, part: str = "", fact: str = "count") -> bool:
    """Return whether a field is one of those that came with `external_ids`; its name is given in parts."""
    if field == "scores":
        return part not in SCOREBOARD_KINDS or fact != "count"
    return field in _NEWER_FIELDS or field == "external_ids"
