"""Rotten Tomatoes' pages: which one a page is, and reading those about a title. `rottentomatoes_title` tells where they have each field.

Since 2024 a page has its scores in `#media-scorecard-json`, what stands beside them in `#media-hero-json`, its details in `[data-qa=item]`.
Older pages are taken apart by `legacy.rottentomatoes_titles`. `RottenTomatoes.context.*` is never read: it holds what other requests left
in the same server process.
"""

from __future__ import annotations

import html
import re
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from moviecrawler.extract import dig
from moviecrawler.extract import rottentomatoes_sections as sections
from moviecrawler.extract import rottentomatoes_values as values
from moviecrawler.extract.embedded import (
    check_whole,
    decode_json,
    decode_text,
    json_ld,
    reader,
    scripts,
    starts_with,
    stated_addresses,
)
from moviecrawler.extract.findings import Findings, ShapeError, attempt
from moviecrawler.extract.legacy import rottentomatoes_titles as legacy
from moviecrawler.extract.legacy.rottentomatoes_lists import chart
from moviecrawler.extract.rottentomatoes_lists import browse, browse_json, search
from moviecrawler.extract.rottentomatoes_series import KINDS, seasons_of, site_id_of
from moviecrawler.extract.rottentomatoes_title import Head, TitlePage, read_scorecard, read_title
from moviecrawler.extract.rottentomatoes_values import json_script
from moviecrawler.extract.series import new_title
from moviecrawler.extract.trees import tree_of
from moviecrawler.extract.values import parse_runtime
from moviecrawler.items import Movie, Page
from moviecrawler.texts import fold
from moviecrawler.urls import site_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from parsel import Selector

_PART = r"/s\d+(?:\.\d+)?(?:/e\d+(?:\.\d+)?)?"
_TITLE_PATH = re.compile(rf"^/(?:(?P<movie>m)/[^/]+|tv/[^/]+(?:{_PART})?)/?$")
_REVIEWS_PATH = re.compile(rf"^/(?:m|tv)/[^/]+(?:{_PART})?/reviews(?:/|$)")
_SECTIONS = (("/browse/", "browse"), ("/cnapi/browse/", "browse-json"), ("/top/", "chart"), ("/search", "search"))
_SCOREBOARDS = (
    b'id="media-scorecard-json"',
    b'id="score-details-json"',
    b'id="scoreDetails"',
    b"<score-board",
    b"<media-scorecard",
    b"mop-ratings-wrap__half",
    b'id="all-critics-numbers"',
    b'id="tomatometer_score"',
)
_RESULTS = (b"<search-page-media-row", b'id="movies-json"', b'id="movie_results_ul"', b'id="SummaryResults"')
_TILES = (b'data-qa="discovery-media-list"', b"var loadPage = (function(adPromise)")
_DETAILS = (
    b'data-qa="item-label"',
    b'data-qa="movie-info-item"',
    b'class="meta-row',
    b'class="movie_info',
    b'<table class="info"',
)
_PIECES = (*_SCOREBOARDS, *_DETAILS, b'id="media-hero-json"', b'"Tomatometer"')
"""What tells a piece that the owner of a collection has cut out of a title page, without any URL in it."""
_SMALLEST_PAGE = 100_000
"""Bytes; the smallest title page that is known has 230,000."""

_SHARED_TITLE = re.compile(rb'<meta\s[^<>]{0,200}property="og:title"\s[^<>]{0,200}content="([^"<>]{1,500})"')
_SITE_NAME = re.compile(r"(?<!\s)\s*[-|]\s*Rotten Tomatoes$")


def kind_of(body: bytes, url: str | None = None) -> str | None:
    """Return which kind of page this is, by what it says itself, else by `url`; None when it is none of the site's.

    movie, tv, movie-trimmed (a piece of a title page), reviews, browse, browse-json, chart or search.
    """
    if starts_with(body, b"{"):
        return "browse-json" if b'"grid"' in body and (b'"pageInfo"' in body or b'"mediaUrl"' in body) else None
    address = _canonical(body) or (url if url and site_of(url) == "rottentomatoes" else "")
    kind = _kind_of_path(urlsplit(address).path)
    if kind is None:
        if _has(body, _RESULTS):
            return "search"
        if _has(body, _TILES):
            return "browse"
        if b'data-json="props"' in body:
            return "reviews"
        return "movie-trimmed" if _has(body, _PIECES) else None
    if kind in {"movie", "tv"} and len(body) < _SMALLEST_PAGE and _has(body, _PIECES):
        return kind if _has(body, _SCOREBOARDS) and _has(body, _DETAILS) else "movie-trimmed"
    return kind


@reader
def reviews(body: bytes, url: str | None = None) -> Page:
    """Read what a page of reviews since 2026 says of its title. Raises ExtractionError."""
    check_whole(body)
    props = next(scripts(body, b'data-json="props"'), None)
    media = dig.at(decode_json(props), "media") if props else None
    title = dig.text(media, "title")
    if title is None:
        raise ShapeError("title", "no script of props with a media.title")
    found = Findings(_new_movie(site_id_of(url, None, [_canonical(body)]), title, {}))
    found.look("year", lambda: values.read_year(dig.at(media, "releaseYear")))
    found.look("release_date", lambda: dig.read(values.read_release_date, media, "theaterReleaseDate"))
    # What is empty here can stand on the title's own page.
    found.look("runtime_minutes", lambda: parse_runtime(dig.text(media, "runTime") or ""))
    found.look("genres", lambda: values.read_names(dig.at(media, "genres")))
    found.look("certificate", lambda: values.short_certificate(dig.text(media, "rating")))
    directors = attempt(lambda: values.read_names(dig.at(media, "directors"))) or []
    found.look("credits.director", lambda: values.credits_of("director", ((name, None, None) for name in directors)))
    value = attempt(lambda: dig.at(media, "tomatometerScore", "value"))
    found.look("scores.tomatometer", lambda: values.score("tomatometer", value or None))
    return Page(site="rottentomatoes", kind="reviews", movie=found.done())


def _kind_of_path(path: str) -> str | None:
    if _REVIEWS_PATH.match(path):
        return "reviews"
    if title := _TITLE_PATH.match(path):
        return "movie" if title["movie"] else "tv"
    return next((kind for prefix, kind in _SECTIONS if path.startswith(prefix)), None)


def _has(body: bytes, signs: tuple[bytes, ...]) -> bool:
    return any(sign in body for sign in signs)


def _canonical(body: bytes) -> str | None:
    """Return the URL on the live site that the page gives as its own."""
    return next((address for address in stated_addresses(body) if site_of(address) == "rottentomatoes"), None)


def _head(body: bytes, tree: Selector | None) -> Head:
    """Return what the first known form of a page's head shows."""
    scorecard, hero = json_script(body, "media-scorecard-json"), json_script(body, "media-hero-json")
    if scorecard is not None or hero is not None:
        return read_scorecard(scorecard, attempt(lambda: dig.at(hero, "content")))
    return legacy.older_head(body, tree)


@reader
def movie(body: bytes, url: str | None = None, kind: str = "movie") -> Page:
    """Read the page of a movie or a series, or a piece of one, such as its scorecard alone (`kind`: movie, tv or movie-trimmed).

    `url` is where it came from; the page's own canonical URL wins. A series' scores are the means of its seasons', which the page lists.
    Raises ExtractionError, also when a season was asked for and the page is about its series, or the other way round.
    """
    check_whole(body)
    linked = next((item for item in json_ld(body) if _type_of(item) in KINDS), {})
    scorecard = json_script(body, "media-scorecard-json")
    details = attempt(lambda: sections.details_of(body))
    # A whole parse costs more than all else together; a page of today is read without one.
    tree = None if details and b'id="media-scorecard-json"' in body else tree_of(body)
    if details is None and tree is not None:
        details = attempt(lambda: legacy.older_details(tree))
    addresses = (dig.text(linked, "url"), attempt(lambda: dig.text(scorecard, "criticsScore", "reviewsPageUrl")))
    site_id = site_id_of(url, _type_of(linked), [_canonical(body), *addresses])
    if site_id is None and kind != "movie-trimmed":
        raise ShapeError("site_id", "neither the page nor its URL names a title")
    page = TitlePage(body, _head(body, tree), details or {}, linked, tree=tree)
    if tree is not None:
        page.older_cast = partial(legacy.older_cast, tree)
    # A page of an error or of consent has a title tag, too.
    if linked or details or _has(body, _PIECES):
        page.tag = _title_tag(body)
    title, year = _title_and_year(page)
    found = read_title(_new_movie(site_id, title, linked), page, year)
    read = found.done()
    seasons = seasons_of(read, body, tree, linked) if read.kind == "series" else []
    return Page(site="rottentomatoes", kind=kind, movie=read, seasons=seasons)


def _new_movie(site_id: str | None, title: str, linked: dict[str, Any]) -> Movie:
    kind = values.title_kind(site_id) if site_id else KINDS.get(_type_of(linked) or "", "movie")
    return new_title("rottentomatoes", site_id, title, kind)


def _title_and_year(page: TitlePage) -> tuple[str, int | None]:
    """Return the title without a year behind it ("Dune (2021)", as JSON-LD can write it), and the year."""
    tagged = values.YEAR_BEHIND_TITLE.match(page.tag or "")
    title = page.head.title or dig.text(page.linked, "name") or (page.tag and (_shared_title(page.body) or page.tag))
    if title is None:
        raise ShapeError("title", "none in a place that is known")
    year = page.head.year or (int(tagged["year"]) if tagged else None)
    named = values.YEAR_BEHIND_TITLE.match(title)
    if named and year in {None, int(named["year"])}:
        return named["title"], int(named["year"])
    return title, year


def _shared_title(body: bytes) -> str | None:
    """Return the title that a page gives to those who link to it; beside it, the words of its `<title>` vary."""
    shared = _SHARED_TITLE.search(body)
    return _SITE_NAME.sub("", fold(html.unescape(decode_text(shared[1])))) if shared else None


def _title_tag(body: bytes) -> str | None:
    start = body.find(b"<title")
    end = body.find(b"</title", start)
    if start == -1 or end == -1:
        return None
    text = fold(html.unescape(decode_text(body[body.find(b">", start) + 1 : end])))
    return _SITE_NAME.sub("", text) or None


def _type_of(linked: dict[str, Any]) -> str | None:
    declared = linked.get("@type")
    return declared if isinstance(declared, str) else None


tv = partial(movie, kind="tv")
movie_trimmed = partial(movie, kind="movie-trimmed")

READERS: dict[str, Callable[[bytes, str | None], Page]] = {
    "movie": movie,
    "tv": tv,
    "movie-trimmed": movie_trimmed,
    "reviews": reviews,
    "browse": browse,
    "browse-json": browse_json,
    "chart": chart,
    "search": search,
}
"""What reads each kind of page, by the names that `kind_of` returns."""
