"""IMDb's pages: which one a page is, and reading those about a title.

Since 2022 all facts are in the JSON of a page's `__NEXT_DATA__` script, as objects of IMDb's GraphQL API: a title page
has two about its title, `aboveTheFoldData` and `mainColumnData`, its sub-pages one, `contentData.entityMetadata`. Where
such an object has each field is told by `imdb_title`; pages without that script are read by `legacy.imdb_titles`.
"""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypedDict
from urllib.parse import urlsplit

import msgspec

from moviecrawler.extract.embedded import decode_json, json_ld, reader, script, stated_addresses
from moviecrawler.extract.findings import NoValue, ShapeError, attempt
from moviecrawler.extract.imdb_lists import calendar, chart, episodes, find, graphql, search, suggestion
from moviecrawler.extract.imdb_props import is_json, page_props
from moviecrawler.extract.imdb_title import brief_genres, read_entity, read_known_movie
from moviecrawler.extract.legacy import imdb_titles as legacy
from moviecrawler.extract.legacy.imdb_document import Document
from moviecrawler.items import Page
from moviecrawler.urls import site_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from moviecrawler.items import Movie

# --- Which page it is -----------------------------------------------------------------------------------------------

_TITLE_PATH = re.compile(r"^(?:/[a-z]{2}(?:-[a-z]{2})?)?/title/(?:tt\d+|\[\w+\])(?:/(?P<page>\w*).*)?$")
_LIST_PATH = re.compile(
    r"^(?:/[a-z]{2}(?:-[a-z]{2})?)?/(?:(?P<page>chart)/[\w-]+|(?P<find>find)|(?P<calendar>calendar)"
    r"|(?P<search>search)(?:/title|/\[tab\])?|(?P<suggestion>suggestion)/.+)/?$"
)
_RENAMED = {"combined": "reference", "maindetails": "title"}
"""What two of a title's pages were called until 2016."""
_SITE_IN_TITLE = re.compile(rb"\bIMDb\s*</title", re.IGNORECASE)
_LAYOUTS = tuple(
    (re.compile(rb"""<%b\b[^<>]*\s%b=["']?(?:[^"'<>=]*\s)?%b[\s"'>]""" % (tag, attribute, value)), kind)
    for tag, attribute, value, kind in (
        (rb"\w+", b"class", b"findHeader", "find"),
        (rb"\w+", b"class", b"titleColumn", "chart"),
        (rb"\w+", b"class", b"lister-item", "search"),
        (b"table", b"class", b"results", "search"),
        (rb"\w+", b"data-testid", b"coming-soon-entry", "calendar"),
        (rb"\w+", b"id", b"fullcredits_content", "fullcredits"),
        (rb"\w+", b"class", b"titlereference-header", "reference"),
        (rb"\w+", b"class", b"title_wrapper", "title"),
        (rb"\w+", b"id", b"overview-top", "title"),
        (rb"\w+", b"data-testid", b"hero__pageTitle", "title"),
        (rb"\w+", b"data-testid", b"hero-title-block__title", "title"),
        (rb"\w+", b"id", b"tn15title", "title"),
    )
)
"""What only one kind of older pages has in its markup."""
_PROPS = (
    ("aboveTheFoldData", "title"),
    ("pageData", "chart"),
    ("searchResults", "search"),
    ("titleResults", "find"),
    ("groups", "calendar"),
)
"""What only one kind of pages has in its `__NEXT_DATA__`."""


class _Outline(TypedDict, total=False):
    page: Any
    data: Any
    d: Any
    v: Any
    props: dict[str, msgspec.Raw]
    pageProps: msgspec.Raw


def kind_of(body: bytes, url: str | None) -> str | None:
    """Return which of `READERS` reads a page: by its URL when that says it, else by what the page says of itself.

    None when it isn't IMDb's, or is one of which nothing is read here.
    """
    if url is not None:
        if site_of(url) not in (None, "imdb"):
            return None
        kind = _kind_of_url(url)
        if kind is not None:
            return kind
    return _kind_of_json(body) if is_json(body) else _kind_of_markup(body)


def _kind_of_url(url: str) -> str | None:
    try:
        address = urlsplit(url)
    except ValueError:
        return None
    return "graphql" if address.hostname == "api.graphql.imdb.com" else _kind_of_path(address.path)


def _kind_of_path(path: str) -> str | None:
    """Return the kind of page behind a path, or behind a route such as `/title/[tconst]/episodes`."""
    found = _TITLE_PATH.match(path)
    if found:
        page = found["page"] or "title"
        page = _RENAMED.get(page, page)
        return page if page in READERS else None
    found = _LIST_PATH.match(path)
    return next((kind for kind in found.groups() if kind), None) if found else None


def _kind_of_json(body: bytes) -> str | None:
    try:
        outline: _Outline = decode_json(body, _Outline)
        page, data = outline.get("page"), outline.get("data")
        kind = _kind_of_path(page) if isinstance(page, str) else None
        if kind is not None:
            return kind
        # Without a route that is known: the India charts, or `pageProps` alone, as the site's own scripts fetch it.
        raw = outline.get("props", {}).get("pageProps") or outline.get("pageProps")
        props: dict[str, msgspec.Raw] = decode_json(bytes(raw), dict[str, msgspec.Raw]) if raw else {}
    except ShapeError:
        return None
    if isinstance(data, dict) and ("title" in data or "mainSearch" in data):
        return "graphql"
    if isinstance(outline.get("d"), list) and "v" in outline:
        return "suggestion"
    return next((kind for key, kind in _PROPS if key in props), None)


def _kind_of_markup(body: bytes) -> str | None:
    try:
        raw = script(body, "__NEXT_DATA__")
    except ShapeError:
        raw = None
    # The route first: the canonical link of a search for titles says only "/search/".
    kind = _kind_of_json(raw) if raw else None
    if kind is not None:
        return kind
    for address in stated_addresses(body):
        kind = _kind_of_url(address) if site_of(address) == "imdb" else None
        if kind is not None:
            return kind
    is_theirs = b"media-imdb.com" in body or _SITE_IN_TITLE.search(body) is not None
    return next((kind for sign, kind in _LAYOUTS if sign.search(body)), None) if is_theirs else None


# --- Titles ---------------------------------------------------------------------------------------------------------


@reader
def title(body: bytes, url: str | None = None, kind: str = "title") -> Page:
    """Read a title page, or its reference page. Raises ExtractionError when it doesn't say which title it is about."""
    props = page_props(body)
    sources = [about for key in _SOURCES if (about := (props or {}).get(key))]
    if not sources:
        return legacy.title(body, url)
    return Page(site="imdb", kind=kind, movie=_movie(body, url, sources))


def _movie(body: bytes, url: str | None, sources: list[dict[str, Any]]) -> Movie:
    """Return a title from a page's data, and from its markup what the data doesn't tell as the pages of its kind do."""
    found = read_known_movie(sources)
    found.look("genres", lambda: _whole_genres(body, sources))
    if not is_json(body) and any(map(found.is_open, _ON_EVERY_PAGE)):
        document = attempt(lambda: Document(body, url))
        if document is not None:
            document.look_for_names(found)
            legacy.look_for_facts(found, document, "data")
    return found.done()


def _whole_genres(body: bytes, sources: list[dict[str, Any]]) -> list[str] | NoValue:
    """Return the genres of pages that have one list of them only, unless JSON-LD knows some that this list has not.

    Beside another list this one is sometimes cut; JSON-LD has three at most.
    """
    if any("genres" in source for source in sources):
        return None  # which can't be understood
    genres = brief_genres(sources)
    linked: list[Any] = next((data["genre"] for data in json_ld(body) if isinstance(data.get("genre"), list)), [])
    return genres if isinstance(genres, list) and set(linked) <= set(genres) else None


@reader
def full_credits(body: bytes, url: str | None = None) -> Page:
    """Read a title's page of credits. Raises ExtractionError as `title` does."""
    props = page_props(body)
    if props is None:
        return legacy.full_credits(body, url)
    content = props.get("contentData")
    if content is None:
        return title(body, url, "fullcredits")
    listed = {"categories": content["categories"]} if "categories" in content else {}
    return Page(site="imdb", kind="fullcredits", movie=read_entity(props, listed).done())


def _sub_page(kind: str) -> Callable[[bytes, str | None], Page]:
    @reader
    def read(body: bytes, url: str | None = None) -> Page:
        props = page_props(body)
        if props is None:
            return legacy.title(body, url)
        return Page(site="imdb", kind=kind, movie=read_entity(props).done())

    return read


_SOURCES: tuple[Literal["aboveTheFoldData", "mainColumnData"], ...] = ("aboveTheFoldData", "mainColumnData")
_ON_EVERY_PAGE = (
    *("original_title", "year", "release_date", "runtime_minutes", "certificate", "plot", "poster_url", "countries"),
    *("languages", "scores.imdb", "scores.metascore", "popularity_rank"),
    *("credits.director", "credits.writer", "credits.cast"),
)
"""What the data of every title's page says, if only that there is none."""


READERS: dict[str, Callable[[bytes, str | None], Page]] = {
    "title": title,
    "reference": partial(title, kind="reference"),
    "fullcredits": full_credits,
    "episodes": episodes,
    "chart": chart,
    "search": search,
    "find": find,
    "calendar": calendar,
    "suggestion": suggestion,
    "graphql": graphql,
    **{kind: _sub_page(kind) for kind in ("locations", "soundtrack", "technical", "releaseinfo", "criticreviews")},
}
"""What reads each kind of page, by the names that `kind_of` returns."""
