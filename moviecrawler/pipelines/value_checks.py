"""Checks of single values of an item, whatever field they are of, and its texts without control characters. Pure."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

from moviecrawler.errors import InvalidItemError
from moviecrawler.fields import TEXT_LISTS, TEXTS
from moviecrawler.items import Award, Credit, Offer, OtherTitle, RelatedTitle, Score
from moviecrawler.texts import on_one_line, without_controls

if TYPE_CHECKING:
    from collections.abc import Callable

    from moviecrawler.items import Movie


LONGEST = {
    **dict.fromkeys(("title", "original_title", "series_title"), 500),
    **dict.fromkeys(("site_id", "series_id", "imdb_id"), 300),
    **dict.fromkeys(("url", "poster_url", "fetch"), 4_000),
    **dict.fromkeys(("consensus", "taglines"), 4_000),
    "plot": 20_000,
    "reason": 1_000,
    "credits": 10_000,  # an actor of many small parts
}
"""Characters. Titles are compared word by word with each other: the longest known has less than 250."""
_LONGEST_TEXT = 500
"""Characters of any other field."""
_LONGEST_LIST = {"credits": 20_000, "other_titles": 5_000, "keywords": 5_000, "related": 5_000}
"""Members; the longest cast known has 5,000 or so."""
_LONGEST_OTHER_LIST = 500

PLAIN_TEXTS: Final = tuple(name for name in TEXTS if name not in {"site_id", "url", "imdb_id", "release_date"})
"""Those that may be any text."""
_PARTS: dict[str, tuple[type, tuple[str, ...]]] = {
    "credits": (Credit, ("name", "character", "person_id")),
    "other_titles": (OtherTitle, ("title",)),
    "scores": (Score, ("sentiment",)),
    "offers": (Offer, ("provider", "country", "currency", "quality", "url", "source")),
    "awards": (Award, ("event",)),
    "related": (RelatedTitle, ("title", "connection")),
}
"""Lists of objects, and their texts that are cleaned."""


def check_choice(field: str, value: object, choices: Any) -> None:
    """Raise InvalidItemError when a value is not one of the choices."""
    if not isinstance(value, str) or value not in choices:
        raise InvalidItemError(field, f"{value!r} is not one of {', '.join(choices)}")


def check_text(field: str, value: object, most: int | None = None) -> None:
    """Raise InvalidItemError when a value is no text of at most so many characters, or is empty."""
    if not isinstance(value, str):
        raise InvalidItemError(field, f"{value!r} is not text")
    most = most or LONGEST.get(field, _LONGEST_TEXT)
    if len(value) > most:
        raise InvalidItemError(field, f"{value[:100]!r}… has {len(value):,} characters; {most:,} are the most")
    if not value.strip():
        raise InvalidItemError(field, f"{value!r} is empty; what the site doesn't have is None")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise InvalidItemError(field, f"{value!r} is not valid Unicode") from None


def check_given(field: str, *texts: object, most: int | None = None) -> None:
    """Raise InvalidItemError for the first of these values that is neither None nor a text."""
    for text in texts:
        if text is not None:
            check_text(field, text, most)


def check_integer(field: str, value: object, least: int, most: int) -> None:
    """Raise InvalidItemError when a value is no whole number within the range."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise InvalidItemError(field, f"{value!r} is not a whole number")
    if not least <= value <= most:
        raise InvalidItemError(field, f"{value} is not within {least} to {most}")


def check_number(field: str, value: object, least: float, most: float) -> None:
    """Raise InvalidItemError when a value is no number within the range."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise InvalidItemError(field, f"{value!r} is not a number")
    if not least <= value <= most:
        raise InvalidItemError(field, f"{value} is not within {least} to {most}")


def check_list(field: str, value: object, kind: type) -> list[Any]:
    """Return a list of that kind of members; raise InvalidItemError when it is none, or too long."""
    if not isinstance(value, list):
        raise InvalidItemError(field, f"{value!r} is not a list")
    most = _LONGEST_LIST.get(field, _LONGEST_OTHER_LIST)
    if len(value) > most:
        raise InvalidItemError(field, f"has {len(value):,} members; {most:,} are the most")
    for item in value:
        if not isinstance(item, kind):
            raise InvalidItemError(field, f"{item!r} is not a {kind.__name__}")
    return value


def check_unique(field: str, keys: list[Any]) -> None:
    """Raise InvalidItemError when a key stands there twice."""
    if len(set(keys)) < len(keys):
        twice = next(key for key in keys if keys.count(key) > 1)
        raise InvalidItemError(field, f"{twice} stands there twice")


def clean_texts(movie: Movie) -> None:
    """Take control characters out of a movie's texts, and tabs and line breaks as well where one line is expected."""
    for name in ("title", *PLAIN_TEXTS):
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
