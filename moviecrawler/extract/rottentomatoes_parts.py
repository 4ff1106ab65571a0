"""What the readers of Rotten Tomatoes' title and list pages share."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from moviecrawler.extract.embedded import ShapeError, fold
from moviecrawler.extract.values import parse_count
from moviecrawler.items import Score, ScoreKind, TitleKind

if TYPE_CHECKING:
    from parsel import Selector, SelectorList

_UNSCORED = re.compile(r"^[\s–-]*%?$|^N/A%?$", re.IGNORECASE)  # noqa: RUF001 - the site's dashes
_PERCENT = re.compile(r"^(\d{1,3})\s*%?$", re.ASCII)


def text_of(selection: Selector | SelectorList[Selector]) -> str:
    """Return the text of (the first of) a selection, white space folded; "" when there is none."""
    return fold(selection.xpath("string()").get() or "")


def score(kind: ScoreKind, value: Any, count: Any = None) -> list[Score]:
    """Return one score as a list, empty when the site shows none.

    `value` is a share such as 94, "94" or "94%"; None, "", dashes and "N/A" are no score. `count` is a number or its text, of which a
    band ("250,000+") is no count. Raises ShapeError for anything else.
    """
    if value is None or (isinstance(value, str) and _UNSCORED.match(value)):
        return []
    found = _PERCENT.match(str(value).strip())
    if not found or int(found[1]) > 100:  # noqa: PLR2004 - percent
        raise ShapeError(kind, f"{value!r} is not a share of 0 to 100 %")
    number = _count(kind, count)
    if number == 0 and int(found[1]) == 0:
        # A scoreboard of zeros is a title that nobody has reviewed; a real 0 % has reviews.
        return []
    return [Score(kind=kind, value=float(found[1]), count=number or None)]


def _count(kind: ScoreKind, count: Any) -> int | None:
    if count is None or count == "":
        return None
    if isinstance(count, str):
        number, exact = parse_count(count)
        return number if exact else None
    if type(count) is not int or count < 0:
        raise ShapeError(kind, f"{count!r} is not a number of reviews")
    return count


def title_kind(site_id: str) -> TitleKind:
    """Return what a title is by its id: `tv/…` are series, `m/…` are movies."""
    return "series" if site_id.startswith("tv/") else "movie"
