"""Metacritic's lists without a JSON payload: browse and search pages of 2010 to 2024."""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING, Final
from urllib.parse import urljoin, urlsplit

from moviecrawler.extract.findings import ShapeError, attempt, scores_of
from moviecrawler.extract.legacy.metacritic_titles import whole_tree, worded_score
from moviecrawler.extract.metacritic_values import KINDS, read_date
from moviecrawler.extract.trees import text_of
from moviecrawler.extract.values import parse_integer
from moviecrawler.items import Entry, Listing
from moviecrawler.sites import SITES
from moviecrawler.texts import fold

if TYPE_CHECKING:
    from parsel import Selector

    from moviecrawler.items import ScoreKind, TitleKind

_TYPES_OF_RESULTS: Final[dict[str, TitleKind]] = {
    "Movie": "movie",
    "TV Show": "series",
    "Game": "game",
    "Album": "music",
}
_OF_REVIEWS: Final = re.compile(r"/(?:critic|user)-reviews$")
_RESULTS: Final = re.compile(r"of ([\d,]+) results?")
_RESULT_LINE: Final = re.compile(r"^(?P<type>\D+?)(?:, (?P<year>\d{4}))?$")


def browse(body: bytes, url: str | None) -> Listing:
    """Return a browse page: the table with summaries, the condensed list, or the cards since 2023."""
    page = whole_tree(body)
    rows = page.css("td.clamp-summary-wrap, tr.summary_row, #main ol.list_products > li.product, .c-finderProductCard")
    if not rows:
        raise ShapeError("entries", "no list that is known")
    return Listing(site="metacritic", entries=[_browse_row(row) for row in rows], next=_next(page, url))


def search(body: bytes, url: str | None) -> Listing:
    """Return a search page: titles, but also people, companies and articles, which have kind `other`."""
    page = whole_tree(body)
    counted = fold(" ".join(page.css(".query_results ::text").getall()))
    total = _RESULTS.search(counted)
    rows = page.css("ul.search_results > li.result, a.c-pageSiteSearch-results-item")
    if not rows and "No search results" not in " ".join(page.css(".search_results ::text").getall()):
        raise ShapeError("entries", "no list that is known")
    return Listing(
        site="metacritic",
        entries=[_result_row(row) for row in rows],
        total=parse_integer(total[1]) if total else None if rows else 0,
        next=_next(page, url),
    )


def _browse_row(row: Selector) -> Entry:
    link = row.css("a.title, .product_title a, .title_wrapper .title a") or row.css('a[href^="/"]')
    date_text = text_of(
        row.css(
            ".clamp-details > span, .release_date .data, .date_wrapper span, .c-finderProductCard_meta .u-text-uppercase"
        )[:1]
    )
    marks = row.css(
        ".clamp-metascore .metascore_w, .product_score .metascore_w, .product_score .data.metascore,"
        " .score_wrapper .metascore_w:not(.user),"
        " .c-siteReviewScore"
    )
    of_users = row.css(".clamp-userscore .metascore_w, .product_avguserscore .data")
    rank = text_of(row.css(".numbered, td.rank, .c-finderProductCard_titleHeading span:nth-last-child(2)")[:1])
    name = text_of(link.css("h3 span:last-child")[:1]) or text_of(link.css("h3")[:1]) or text_of(link[:1])
    return _entry(
        link.attrib.get("href"),
        name,
        date_text,
        {"metascore": text_of(marks[:1]), "metacritic_user": text_of(of_users[:1])},
        rank=attempt(lambda: parse_integer(rank.rstrip("."))) if rank else None,
    )


def _result_row(row: Selector) -> Entry:
    if row.root.tag == "a":
        return _card_of_result(row)
    link = row.css(".product_title a")
    date_text = text_of(row.css(".release_date .data")[:1])
    kind_text = text_of(row.css(".result_type strong")[:1])
    if not kind_text:
        # Since 2018: "Movie, 2019"
        line = _RESULT_LINE.match(text_of(row.css(".main_stats p")[:1]))
        if line:
            kind_text, date_text = line["type"], line["year"] or date_text
    entry = _entry(
        link.attrib.get("href"),
        text_of(link[:1]),
        date_text,
        {
            "metascore": text_of(row.css(".main_stats .metascore_w:not(.user), .main_stats .data.metascore")[:1]),
            "metacritic_user": text_of(row.css(".product_avguserscore .data")[:1]),
        },
    )
    entry.kind = _TYPES_OF_RESULTS.get(kind_text, "other") if kind_text else entry.kind or "other"
    return entry


def _card_of_result(card: Selector) -> Entry:
    """Read a search's result since 2023."""
    entry = _entry(
        card.attrib.get("href"),
        text_of(card.css("p")[:1]),
        text_of(card.css(".u-text-uppercase:not(.c-tagList_button)")[:1]),
        {"metascore": text_of(card.css(".c-siteReviewScore")[:1])},
    )
    entry.kind = entry.kind or "other"
    return entry


def _entry(link: str | None, name: str, date_text: str, scores: dict[ScoreKind, str], rank: int | None = None) -> Entry:
    # The first link of a row can be that of its reviews.
    path = _OF_REVIEWS.sub("", urlsplit(link).path.strip("/")) if link else ""
    if not path or not name:
        raise ShapeError("entries", f"a row without {'a name' if path else 'a link'}")
    day, year = attempt(lambda: read_date(date_text or None)) or (None, None)
    return Entry(
        site_id=path,
        title=name,
        year=year,
        kind=KINDS.get(path.partition("/")[0]),
        rank=rank,
        release_date=day,
        scores=scores_of(*(partial(worded_score, kind, text, "") for kind, text in scores.items())),
    )


def _next(page: Selector, url: str | None) -> str | None:
    link = page.css('a[rel="next"]::attr(href), link[rel="next"]::attr(href)').get()
    return urljoin(url or SITES["metacritic"].home, link) if link else None
