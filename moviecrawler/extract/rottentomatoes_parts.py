"""What the readers of Rotten Tomatoes' title and list pages share."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from moviecrawler.extract.embedded import ShapeError, dig, dig_text, fold
from moviecrawler.extract.findings import ABSENT, NotTold, looked
from moviecrawler.extract.values import parse_count
from moviecrawler.items import Score, ScoreKind, TitleKind

if TYPE_CHECKING:
    from collections.abc import Callable

    from parsel import Selector, SelectorList

_UNSCORED = re.compile(r"^[\s–-]*%?$|^N/A%?$", re.IGNORECASE)  # noqa: RUF001 - the site's dashes
_PERCENT = re.compile(r"^(\d{1,3})\s*%?$", re.ASCII)

ENOUGH_REVIEWS = 5
"""Reviews that a title needs to have a Tomatometer."""


def text_of(selection: Selector | SelectorList[Selector]) -> str:
    """Return the text of (the first of) a selection, white space folded; "" when there is none."""
    return fold(selection.xpath("string()").get() or "")


def score(kind: ScoreKind, value: Any, count: Any = None) -> Score | NotTold:
    """Return one score; ABSENT when the site shows that there is none; None when it shows nothing.

    `value` is a share such as 94, "94" or "94%"; "", dashes and "N/A" are no score. `count` is a number or its text, of which a
    band ("250,000+") is no count. Raises ShapeError for anything else.
    """
    if value is None:
        return None
    number = looked(lambda: count_of(count))
    if isinstance(value, str) and _UNSCORED.match(value):
        # Reviews enough for a score are a score that stands elsewhere.
        return None if number and number >= ENOUGH_REVIEWS else ABSENT
    found = _PERCENT.match(str(value).strip())
    if not found or int(found[1]) > 100:  # noqa: PLR2004 - percent
        raise ShapeError(kind, f"{value!r} is not a share of 0 to 100 %")
    if number == 0 and int(found[1]) == 0:
        # A scoreboard of zeros is a title that nobody has reviewed; a real 0 % has reviews.
        return ABSENT
    return Score(kind=kind, value=float(found[1]), count=number or None)


def scores_of_row(*places: Callable[[], Any]) -> list[Score]:
    """Return the scores of a row of a list, which tells no absence."""
    return [found for place in places if isinstance(found := looked(place), Score)]


def count_of(count: Any) -> int | None:
    """Return how many a page says exactly. Raises ShapeError or ValueError when that is no count."""
    if count is None or count == "":
        return None
    if isinstance(count, str):
        number, exact = parse_count(count)
        return number if exact else None
    if type(count) is not int or count < 0:
        raise ShapeError("count", f"{count!r} is not a number of reviews")
    return count


def listed(value: Any) -> list[Any]:
    """Return a value of JSON-LD as a list: one object or text stands there without one."""
    return value if isinstance(value, list) else [] if value is None else [value]


def name_of(item: Any) -> str:
    """Return the name of a person or genre: a text, or an object with a name; "" without one."""
    return (dig_text([item], 0) if isinstance(item, str) else dig_text(item, "name")) or ""


def texts(data: Any, key: str) -> list[str]:
    """Return the names of what stands at a key. Raises ShapeError where one has none."""
    names = [name_of(item) for item in listed(dig(data, key))]
    if "" in names:
        raise ShapeError(key, "an item without a name")
    return names


def title_kind(site_id: str) -> TitleKind:
    """Return what a title is by its id: `tv/…` are series, `m/…` are movies."""
    return "series" if site_id.startswith("tv/") else "movie"
