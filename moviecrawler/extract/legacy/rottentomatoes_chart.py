"""Rotten Tomatoes' ranked lists of 2014 to 2021."""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING

from moviecrawler.extract.embedded import check_whole, reader
from moviecrawler.extract.findings import ShapeError, attempt, scores_of
from moviecrawler.extract.rottentomatoes_parts import list_page, new_entry, score
from moviecrawler.extract.trees import text_of, tree_of
from moviecrawler.extract.values import check_year

if TYPE_CHECKING:
    from moviecrawler.items import Page

_TITLE_AND_YEAR = re.compile(r"^(?P<title>.+?)(?<!\s)\s*\((?P<year>\d{4})\)$", re.ASCII)
_PLACE = re.compile(r"^(\d{1,4})\.?$", re.ASCII)


@reader
def chart(body: bytes, url: str | None = None) -> Page:
    """Read a ranked list of 2014 to 2021: `/top/bestofrt/…`. Raises ExtractionError."""
    del url
    check_whole(body)
    entries = []
    # The page has more tables: menus and sidebars, in which the same movies stand without a rank.
    for row in tree_of(body).css("table.table tr"):
        cells = row.css("td")
        place = _PLACE.match(text_of(cells[0])) if cells else None
        link = row.css('a[href*="/m/"], a[href*="/tv/"]')
        if place is None or not link:
            continue
        titled = _TITLE_AND_YEAR.match(text_of(link[0]))
        shares, counts = text_of(row.css(".tMeterScore")), text_of(row.css("td.right")) or None
        scores = scores_of(partial(score, "tomatometer", shares, counts))
        entries.append(
            new_entry(
                link[0].attrib["href"],
                titled["title"] if titled else text_of(link[0]),
                scores,
                year=attempt(partial(check_year, int(titled["year"]))) if titled else None,
                rank=int(place[1]),
            )
        )
    if not entries:
        raise ShapeError("entries", "a chart without ranked rows")
    return list_page("chart", entries, None)
