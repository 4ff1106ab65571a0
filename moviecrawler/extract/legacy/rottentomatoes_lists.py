"""Rotten Tomatoes' lists that only archives hold: ranked tables, search results and browse pages to 2021.

| generation | search results | browse pages |
| --- | --- | --- |
| 2011-2017 | `#movie_results_ul`, `#tv_results_ul` | |
| 2015-2021 | a script's `"movies"` and `"tvSeries"`, from 2020 `#movies-json` and `#tvs-json` | a script's `loadPage` |
"""

from __future__ import annotations

import json
import re
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from moviecrawler.extract import dig
from moviecrawler.extract.embedded import check_whole, decode_json, decode_text, reader, script
from moviecrawler.extract.findings import ShapeError, attempt, scores_of
from moviecrawler.extract.rottentomatoes_values import YEAR_BEHIND_TITLE, list_page, new_entry, score
from moviecrawler.extract.trees import text_of, tree_of
from moviecrawler.extract.values import parse_date, parse_year

if TYPE_CHECKING:
    from parsel import Selector

    from moviecrawler.items import Entry, Page

_PLACE = re.compile(r"^(\d{1,4})\.?$", re.ASCII)
_LINKS: Final = 'a[href*="/m/"], a[href*="/tv/"]'
_LONGEST_LIST: Final = 500_000
"""Characters of JSON in the midst of a script."""


@reader
def chart(body: bytes, url: str | None = None) -> Page:
    """Read a ranked list of 2014 to 2021: `/top/bestofrt/…`. Raises ExtractionError."""
    del url
    check_whole(body)
    lists: dict[Any, list[Entry]] = {}
    tree = tree_of(body)
    # The page has more tables: menus and sidebars, in which the same movies stand without a rank, or fewer with one.
    for row in tree.css("table.table tr") or tree.css("tr"):
        cells = row.css("td")
        place = _PLACE.match(text_of(cells[0])) if cells else None
        link = row.css(_LINKS)
        if place is None or not link:
            continue
        name = text_of(link[0])
        dated = YEAR_BEHIND_TITLE.match(name)
        shares, counts = text_of(row.css(".tMeterScore")), text_of(row.css("td.right")) or None
        scores = scores_of(partial(score, "tomatometer", shares, counts))
        lists.setdefault(next(row.root.iterancestors("table"), None), []).append(
            new_entry(
                link[0].attrib["href"],
                dated["title"] if dated else name,
                scores,
                year=int(dated["year"]) if dated else None,
                rank=int(place[1]),
            )
        )
    if not lists:
        raise ShapeError("entries", "a chart without ranked rows")
    return list_page("chart", max(lists.values(), key=len), None)


def search_results(body: bytes, tree: Selector) -> list[Entry]:
    """Return what a search before 2021 has found, movies first. Raises ShapeError where no list of them is known."""
    if rows := tree.css("#movie_results_ul > li, #tv_results_ul > li"):
        return [_result(row) for row in rows]
    if stated := [raw for name in ("movies-json", "tvs-json") if (raw := script(body, name))]:
        return [_entry(item) for raw in stated for item in dig.items(decode_json(raw), "items")]
    lists = [_json_list(body, sign) for sign in (b'"movies":[', b'"tvSeries":[')]
    if lists == [None, None]:
        raise ShapeError("entries", "neither search results nor a word that there are none")
    return [_entry(item) for found in lists for item in found or []]


def browse_rows(body: bytes) -> list[Entry]:
    """Return the rows of a browse page of 2015 to 2021; empty where none is known."""
    return [_entry(row) for row in _json_list(body, b"var loadPage", b'[{"id":') or []]


def _result(row: Selector) -> Entry:
    # The first link of a row can be that of its picture.
    link = next((link for link in row.css(_LINKS) if text_of(link)), None)
    return new_entry(
        link.attrib["href"] if link else None,
        text_of(link) if link else None,
        scores_of(lambda: score("tomatometer", text_of(row.css(".tMeterScore")) or None)),
        year=attempt(lambda: parse_year(text_of(row.css(".movie_year")))),
    )


def _json_list(body: bytes, *signs: bytes) -> list[Any] | None:
    """Return the list that begins in the last of these signs, which stand in this order in a script; None without them."""
    start = 0
    for sign in signs:
        start = body.find(sign, start)
        if start == -1:
            return None
    start = body.find(b"[", start)
    found, _ = json.JSONDecoder(strict=False).raw_decode(decode_text(body[start : start + _LONGEST_LIST]))
    return dig.items(found)


def _entry(row: Any) -> Entry:
    def share(*keys: str) -> Any:
        found = next((row[key] for key in keys if row.get(key) is not None), None)
        return dig.at(found, "score") if isinstance(found, dict) else found

    year = next((row[key] for key in ("releaseYear", "year", "startYear") if row.get(key)), None)
    return new_entry(
        dig.text(row, "url"),
        dig.text(row, "name") or dig.text(row, "title"),
        scores_of(
            lambda: score("tomatometer", share("tomatometerScore", "meterScore", "tomatoScore")),
            lambda: score("popcornmeter", share("audienceScore", "popcornScore")),
        ),
        year=attempt(lambda: parse_year(str(year))),
        # Most have no year.
        release_date=attempt(lambda: parse_date(row["theaterReleaseDate"])),
    )
