"""IMDb's pages: which one it is, and where in its data the titles are.

Since 2022 all facts are in the JSON of a page's `__NEXT_DATA__` script, as objects of IMDb's GraphQL API: a title page
has two about its title, `aboveTheFoldData` and `mainColumnData`, its sub-pages one, `contentData.entityMetadata`. What
such an object says is read by `imdb_objects`; pages without that script are read by `legacy.imdb_titles` and `legacy.imdb_lists`.
"""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypedDict
from urllib.parse import urlsplit

import msgspec

from moviecrawler.extract import dig
from moviecrawler.extract.embedded import decode_json, json_ld, reader, script, stated_addresses
from moviecrawler.extract.findings import NoValue, ShapeError, attempt
from moviecrawler.extract.imdb_objects import (
    brief_genres,
    read_entry,
    read_known_movie,
    read_movie,
    read_rank,
)
from moviecrawler.extract.imdb_props import is_json, page_props
from moviecrawler.extract.imdb_traits import seasons_numbered
from moviecrawler.extract.legacy import imdb_lists, imdb_titles
from moviecrawler.extract.legacy.imdb_document import Document
from moviecrawler.extract.values import parse_year
from moviecrawler.items import Listing, Page
from moviecrawler.urls import IMDB_ID, site_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from moviecrawler.extract.findings import Findings
    from moviecrawler.items import Entry, Movie

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
        return imdb_titles.title(body, url)
    return Page(site="imdb", kind=kind, movie=_movie(body, url, sources))


def _movie(body: bytes, url: str | None, sources: list[dict[str, Any]]) -> Movie:
    """Return a title from a page's data, and from its markup what the data doesn't tell as the pages of its kind do."""
    found = read_known_movie(sources)
    found.look("genres", lambda: _whole_genres(body, sources))
    if not is_json(body) and any(map(found.is_open, _ON_EVERY_PAGE)):
        document = attempt(lambda: Document(body, url))
        if document is not None:
            document.look_for_names(found)
            imdb_titles.look_for_facts(found, document, "data")
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
        return imdb_titles.full_credits(body, url)
    content = props.get("contentData")
    if content is None:
        return title(body, url, "fullcredits")
    listed = {"categories": content["categories"]} if "categories" in content else {}
    return Page(site="imdb", kind="fullcredits", movie=_of_entity(props, listed).done())


@reader
def episodes(body: bytes, url: str | None = None) -> Page:
    """Read one season of a series, or what it has of no season: the series as `movie`, its episodes as `listing`."""
    props = page_props(body)
    if props is None:
        return imdb_lists.episodes(body, url)
    section = dig.at(props, "contentData", "section")
    found = dig.at(section, "episodes")
    entries = []
    for row in _rows(found, "items"):
        rating = {"aggregateRating": dig.at(row, "aggregateRating"), "voteCount": _rating(row, "voteCount")}
        entries.append(read_entry(row, rating))
    # The cursor is there on the last page too.
    after = dig.text(found, "endCursor") if dig.at(found, "hasNextPage") else None
    listing = Listing(site="imdb", entries=entries, total=_total(found), next=after)
    series = _of_entity(props)
    series.look("season_count", *dig.places(partial(seasons_numbered, "value"), [section], "seasons"))
    return Page(site="imdb", kind="episodes", movie=series.done(), listing=listing)


@reader
def graphql(body: bytes, url: str | None = None) -> Page:  # noqa: ARG001 - readers share one signature
    """Read an answer of IMDb's GraphQL API about one title, or to a search (`mainSearch`)."""
    answer = decode_json(body)
    found = dig.at(answer, "data", "mainSearch")
    if found is None:
        about = dig.at(answer, "data", "title")
        if not isinstance(about, dict):
            raise ShapeError("page", "the answer has neither a title nor a mainSearch")
        return Page(site="imdb", kind="graphql", movie=read_movie([about]).done())
    entities = (dig.at(edge, "node", "entity") for edge in _rows(found, "edges"))
    titles = (entity for entity in entities if _required_text(entity, "__typename") == "Title")
    entries = [read_entry(entity, dig.at(entity, "ratingsSummary")) for entity in titles]
    return Page(site="imdb", kind="graphql", listing=Listing(site="imdb", entries=entries))


def _sub_page(kind: str) -> Callable[[bytes, str | None], Page]:
    @reader
    def read(body: bytes, url: str | None = None) -> Page:
        props = page_props(body)
        if props is None:
            return imdb_titles.title(body, url)
        return Page(site="imdb", kind=kind, movie=_of_entity(props).done())

    return read


def _of_entity(props: dict[str, Any], *listed: dict[str, Any]) -> Findings:
    """Return the title of one of its sub-pages; `listed` is what that of credits has beside."""
    entity = (props.get("contentData") or {}).get("entityMetadata")
    if entity is None:
        raise ShapeError("page", "the script has no contentData.entityMetadata")
    found = read_known_movie([entity, *listed])
    found.look("genres", lambda: brief_genres([entity]))
    return found


# --- Lists ----------------------------------------------------------------------------------------------------------


def _list_page(kind: str, read: Callable[[dict[str, Any]], Listing]) -> Callable[[bytes, str | None], Page]:
    """Return what reads a page that is a list: its data with `read`, or else its markup."""

    @reader
    def read_page(body: bytes, url: str | None = None) -> Page:
        props = page_props(body)
        return imdb_lists.listing(body, url) if props is None else Page(site="imdb", kind=kind, listing=read(props))

    return read_page


def _chart(props: dict[str, Any]) -> Listing:
    """Read a chart: the Top 250s, the most popular, or the box office, which gives no ranks."""
    releases = dig.at(props.get("pageData"), "topGrossingReleases")
    if releases is not None:
        # A release that is not bound to a title yet has none.
        nodes = (dig.at(edge, "node", "release", "titles", 0) for edge in _rows(releases, "edges"))
        ranked: list[tuple[Any, int | None]] = [(node, None) for node in nodes if node is not None]
    else:
        edges = _rows(dig.at(props.get("pageData"), "chartTitles"), "edges")
        ranked = [(dig.at(edge, "node"), _rank(edge)) for edge in edges if dig.at(edge, "node") is not None]
    entries = [read_entry(node, _rating(node, "ratingsSummary"), rank) for node, rank in ranked]
    return Listing(site="imdb", entries=entries)


def _search(props: dict[str, Any]) -> Listing:
    """Read a page of `/search/title`. Its `next` is IMDb's cursor, which is there even when all titles are listed."""
    found = dig.at(props.get("searchResults"), "titleResults")
    entries = [_search_entry(row) for row in _rows(found, "titleListItems")]
    return Listing(site="imdb", entries=entries, total=_total(found), next=dig.text(found, "endCursor"))


def _find(props: dict[str, Any]) -> Listing:
    found = props.get("titleResults")
    entries = [_search_entry(row) for row in _rows(found, "results")]
    return Listing(site="imdb", entries=entries, next=dig.text(found, "nextCursor"))


def _calendar(props: dict[str, Any]) -> Listing:
    """Read the calendar of releases, each with its date."""
    rows = (row for group in _rows(props, "groups") for row in _rows(group, "entries"))
    return Listing(site="imdb", entries=[read_entry(row, None) for row in rows])


def _rank(edge: Any) -> int | None:
    return attempt(lambda: read_rank(dig.at(edge, "currentRank")))


chart = _list_page("chart", _chart)
search = _list_page("search", _search)
find = _list_page("find", _find)
calendar = _list_page("calendar", _calendar)


@reader
def suggestion(body: bytes, url: str | None = None) -> Page:  # noqa: ARG001 - readers share one signature
    """Read the titles that IMDb's search box suggests; names and links among them are left out."""
    rows = [row for row in _rows(decode_json(body), "d") if IMDB_ID.fullmatch(_required_text(row, "id"))]
    entries = [
        read_entry(
            {"id": row["id"], "titleText": row.get("l"), "releaseYear": row.get("y"), "type": row.get("qid")}, None
        )
        for row in rows
    ]
    return Page(site="imdb", kind="suggestion", listing=Listing(site="imdb", entries=entries))


def _rows(data: Any, key: str) -> list[Any]:
    if dig.at(data, key) is None:
        raise ShapeError("entries", f"the page has no {key}")
    return dig.items(data, key)


def _required_text(row: Any, key: str) -> str:
    """Return the text that says what a row is. Raises ShapeError when it has none: left out, it would be a row that is not there."""
    text = dig.text(row, key)
    if text is None:
        raise ShapeError("entries", f"a row without {key}")
    return text


def _total(data: Any) -> int | None:
    total = dig.integer(data, "total")
    if total is not None and total < 0:
        raise ShapeError("total", f"a list of {total}")
    return total


def _rating(row: Any, key: str) -> Any:
    return row.get(key) if isinstance(row, dict) else None


def _search_entry(row: Any) -> Entry:
    item = dig.at(row, "listItem")
    if item is None:
        item = row
    shown = dig.text(item, "titleNameText")
    if shown is None:
        return read_entry(item, _rating(item, "ratingSummary"))
    # The results of 2022 to 2025 are texts such as "1997-2001", without ratings.
    released = dig.text(item, "titleReleaseText")
    # A title in development has a word instead.
    year = attempt(lambda: parse_year(released)) if released else None
    return read_entry({**item, "titleText": shown, "releaseYear": year, "type": item.get("imageType")}, None)


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
