"""Rotten Tomatoes' lists since 2021: browse pages and their JSON continuation, search results; older ones are asked of `legacy`."""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING, Any

from moviecrawler.extract import dig
from moviecrawler.extract.embedded import check_whole, decode_json, reader, script
from moviecrawler.extract.findings import ShapeError, attempt, scores_of
from moviecrawler.extract.legacy import rottentomatoes_lists as legacy
from moviecrawler.extract.rottentomatoes_values import list_page, new_entry, score
from moviecrawler.extract.trees import text_of, tree_of
from moviecrawler.extract.values import parse_date, parse_year

if TYPE_CHECKING:
    from parsel import Selector

    from moviecrawler.extract.findings import NoValue
    from moviecrawler.items import Entry, Page, Score, ScoreKind

_OPENING = re.compile(r"^Open(?:ed|s)\s+(.+)$")


@reader
def browse(body: bytes, url: str | None = None) -> Page:
    """Read the first page of a browse list: `/browse/{list}/{filters}`, HTML.

    `next` is the cursor that continues it, None on a list of one page. Raises ExtractionError.
    """
    del url
    check_whole(body)
    grid = tree_of(body[max(body.find(b'data-qa="discovery-media-list"'), 0) :])
    entries = [_tile(tile) for tile in grid.css('[data-qa="discovery-media-list-item"]')] or legacy.browse_rows(body)
    if not entries and script(body, "noResults") != b"true":
        raise ShapeError("entries", "a browse page without entries, and none that says that it has no results")
    page_info = script(body, "pageInfo")
    return list_page("browse", entries, _cursor(decode_json(page_info)) if page_info else None)


@reader
def browse_json(body: bytes, url: str | None = None) -> Page:
    """Read a continuation of a browse list: `/cnapi/browse/{list}/{filters}?after={cursor}`, JSON.

    Raises ExtractionError.
    """
    del url
    data = decode_json(body)
    if not isinstance(dig.at(data, "grid", "list"), list):
        raise ShapeError("entries", "browse JSON without grid.list")
    entries = []
    for item in dig.items(data, "grid", "list"):
        title, path = dig.text(item, "title"), dig.text(item, "mediaUrl")
        scores = scores_of(
            partial(_share, item, "tomatometer", "criticsScore"),
            partial(_share, item, "popcornmeter", "audienceScore"),
        )
        entries.append(new_entry(path, title, scores, release_date=_opening(dig.text(item, "releaseDateText"))))
    return list_page("browse-json", entries, _cursor(dig.at(data, "pageInfo")))


@reader
def search(body: bytes, url: str | None = None) -> Page:
    """Read the first results of a search: `/search?search=…`. Raises ExtractionError."""
    del url
    check_whole(body)
    entries = []
    tree = tree_of(body)
    for row in tree.css("search-page-media-row"):
        # Older rows, and those of series, write the attributes without hyphens.
        attributes = {name.replace("-", ""): value.strip() for name, value in row.attrib.items()}
        year = attributes.get("releaseyear") or attributes.get("startyear")
        link = row.css('a[slot="title"]')
        entries.append(
            new_entry(
                link.attrib.get("href"),
                text_of(link),
                scores_of(partial(score, "tomatometer", attributes.get("tomatometerscore"))),
                year=attempt(partial(parse_year, year)) if year else None,
            )
        )
    if not entries and b"search-page-result" not in body:
        entries = legacy.search_results(body, tree)
    elif not entries and tree.css('search-page-result a[href*="/m/"], search-page-result a[href*="/tv/"]'):
        raise ShapeError("entries", "search results, but not where they were")
    return list_page("search", entries, None)


def _tile(tile: Selector) -> Entry:
    link = tile if tile.root.tag == "a" else tile.css("a[href]")
    scores: list[Score] = []
    kinds: dict[ScoreKind, str] = {"tomatometer": "critics", "popcornmeter": "audience"}
    for kind, side in kinds.items():
        # Older tiles have the scores as attributes: <score-pairs criticsscore="81" audiencescore="78">.
        shown = tile.css(f'[slot="{side}Score"]')
        scores += scores_of(partial(score, kind, text_of(shown) if shown else tile.xpath(f".//@{side}score").get()))
    return new_entry(
        link.attrib.get("href"),
        text_of(tile.css('[data-qa="discovery-media-list-item-title"]')),
        scores,
        release_date=_opening(text_of(tile.css('[data-qa="discovery-media-list-item-start-date"]'))),
    )


def _share(item: Any, kind: ScoreKind, key: str) -> Score | NoValue:
    return score(kind, dig.at(item, key, "scorePercent"))


def _opening(text: str | None) -> str | None:
    """Return the theatrical date of "Opened Feb 07, 2025"; "Re-released …" and "Streaming …" are none."""
    found = _OPENING.match(text or "")
    return attempt(lambda: parse_date(found[1])) if found else None


def _cursor(page_info: Any) -> str | None:
    # A last page can still name an endCursor; `hasNextPage` says whether anything stands behind it.
    return None if dig.at(page_info, "hasNextPage") is False else dig.text(page_info, "endCursor")
