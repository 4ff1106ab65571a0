"""Taking control characters out of a movie's texts, so that every store is offered the same."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from moviecrawler.items import Award, Credit, Offer, OtherTitle, RelatedTitle, Score
from moviecrawler.texts import on_one_line, without_controls

if TYPE_CHECKING:
    from collections.abc import Callable

    from moviecrawler.items import Movie

TEXTS: Final = (
    *("original_title", "title_type", "certificate", "plot", "poster_url", "series_id", "series_title", "list_name"),
    "consensus",
)
TEXT_LISTS: Final = ("genres", "countries", "languages", "keywords", "interests", "taglines")
_PARTS: dict[str, tuple[type, tuple[str, ...]]] = {
    "credits": (Credit, ("name", "character", "person_id")),
    "other_titles": (OtherTitle, ("title",)),
    "scores": (Score, ("sentiment",)),
    "offers": (Offer, ("provider", "country", "currency", "quality", "url", "source")),
    "awards": (Award, ("event",)),
    "related": (RelatedTitle, ("title", "connection")),
}
"""Lists of objects, and their texts that are cleaned."""


def clean_texts(movie: Movie) -> None:
    """Take control characters out of a movie's texts, and tabs and line breaks as well where one line is expected."""
    for name in ("title", *TEXTS):
        _clean(movie, name, without_controls if name == "plot" else on_one_line)
    for name in TEXT_LISTS:
        texts = getattr(movie, name)
        if isinstance(texts, list):
            texts[:] = [on_one_line(text) if isinstance(text, str) else text for text in texts]
    for field, (kind, names) in _PARTS.items():
        parts = getattr(movie, field)
        for part in parts if isinstance(parts, list) else ():
            if isinstance(part, kind):
                for name in names:
                    _clean(part, name, on_one_line)
    if isinstance(movie.external_ids, dict):
        movie.external_ids |= {
            namer: on_one_line(text) for namer, text in movie.external_ids.items() if isinstance(text, str)
        }


def _clean(item: object, name: str, clean: Callable[[str], str]) -> None:
    text = getattr(item, name)
    if isinstance(text, str) and not text.isprintable():  # which nearly all are
        setattr(item, name, clean(text))
