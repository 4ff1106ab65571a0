"""IMDb's lists since 2022: charts, searches, calendars, seasons with their episodes, and the answers of its APIs.

Lists without their JSON are read by `legacy.imdb_lists`.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from moviecrawler.extract import dig
from moviecrawler.extract import imdb_values as values
from moviecrawler.extract.embedded import decode_json, reader
from moviecrawler.extract.findings import ShapeError, attempt, scores_of
from moviecrawler.extract.imdb_props import page_props
from moviecrawler.extract.imdb_title import read_entity, read_movie
from moviecrawler.extract.legacy import imdb_lists as legacy
from moviecrawler.extract.values import parse_year
from moviecrawler.items import Entry, Listing, Page
from moviecrawler.urls import IMDB_ID

if TYPE_CHECKING:
    from collections.abc import Callable


_SUMMARIES = ("ratingsSummary", "ratingSummary")
"""What a row's rating stands in; an episode's stands in the row itself."""


def _list_page(kind: str, read: Callable[[dict[str, Any]], Listing]) -> Callable[[bytes, str | None], Page]:
    """Return what reads a page that is a list: its data with `read`, or else its markup."""

    @reader
    def read_page(body: bytes, url: str | None = None) -> Page:
        props = page_props(body)
        return legacy.listing(body, url) if props is None else Page(site="imdb", kind=kind, listing=read(props))

    return read_page


def _chart(props: dict[str, Any]) -> Listing:
    """Read a chart: the Top 250s, the most popular, or the box office, which gives no ranks."""
    releases = dig.at(props.get("pageData"), "topGrossingReleases")
    if releases is not None:
        # A release that is not bound to a title yet has none.
        titles = (dig.items(edge, "node", "release", "titles") for edge in _rows(releases, "edges"))
        ranked: list[tuple[Any, int | None]] = [(found[0], None) for found in titles if found]
    else:
        edges = _rows(dig.at(props.get("pageData"), "chartTitles"), "edges")
        ranked = [(dig.at(edge, "node"), _rank(edge)) for edge in edges if dig.at(edge, "node") is not None]
    entries = [_entry(node, rank) for node, rank in ranked]
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
    return Listing(site="imdb", entries=[_entry(row) for row in rows])


def _rank(edge: Any) -> int | None:
    return attempt(lambda: values.read_rank(dig.at(edge, "currentRank")))


chart = _list_page("chart", _chart)
search = _list_page("search", _search)
find = _list_page("find", _find)
calendar = _list_page("calendar", _calendar)


@reader
def suggestion(body: bytes, url: str | None = None) -> Page:  # noqa: ARG001 - readers share one signature
    """Read the titles that IMDb's search box suggests; names and links among them are left out."""
    rows = [row for row in _rows(decode_json(body), "d") if IMDB_ID.fullmatch(_required_text(row, "id"))]
    entries = [
        _entry({"id": row["id"], "titleText": row.get("l"), "releaseYear": row.get("y"), "type": row.get("qid")})
        for row in rows
    ]
    return Page(site="imdb", kind="suggestion", listing=Listing(site="imdb", entries=entries))


@reader
def episodes(body: bytes, url: str | None = None) -> Page:
    """Read one season of a series, or what it has of no season: the series as `movie`, its episodes as `listing`."""
    props = page_props(body)
    if props is None:
        return legacy.episodes(body, url)
    section = dig.at(props, "contentData", "section")
    found = dig.at(section, "episodes")
    entries = [_entry(row) for row in _rows(found, "items")]
    # The cursor is there on the last page too.
    after = dig.text(found, "endCursor") if dig.at(found, "hasNextPage") else None
    listing = Listing(site="imdb", entries=entries, total=_total(found), next=after)
    series = read_entity(props)
    series.look("season_count", *dig.places(partial(values.count_seasons, "value"), [section], "seasons"))
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
    entries = [_entry(entity) for entity in titles]
    return Page(site="imdb", kind="graphql", listing=Listing(site="imdb", entries=entries))


# --- Rows -----------------------------------------------------------------------------------------------------------


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


def _search_entry(row: Any) -> Entry:
    item = dig.at(row, "listItem")
    if item is None:
        item = row
    shown = dig.text(item, "titleNameText")
    if shown is None:
        return _entry(item)
    # The results of 2022 to 2025 are texts such as "1997-2001", without ratings.
    released = dig.text(item, "titleReleaseText")
    # A title in development has a word instead.
    year = attempt(lambda: parse_year(released)) if released else None
    return _entry({**item, "titleText": shown, "releaseYear": year, "type": item.get("imageType")})


def _entry(row: Any, rank: int | None = None) -> Entry:
    """Return a row of a list: an object about a title, or the flattened form of searches, with texts in place of objects.

    `rank` is the place that the list gives it. What else can't be read of it is left out. Raises ShapeError when it has no id or title.
    """
    site_id = values.read_id(row, "id") or values.read_id(row, "titleId")
    name = dig.text(_value(row, "titleText", "text"))
    if site_id is None or name is None:
        raise ShapeError("entries", f"a row with the id {site_id!r} and the title {name!r}")
    title_type = attempt(lambda: dig.text(_value(row, "titleType", "id")) or dig.text(row, "type"))
    date = attempt(lambda: dig.read(values.read_date, row, "releaseDate"))
    return Entry(
        site_id=site_id,
        title=name,
        season=values.number_in_row(row, "season"),
        episode=values.number_in_row(row, "episode"),
        year=attempt(lambda: values.read_year(_value(row, "releaseYear", "year"))),
        kind=values.TITLE_KINDS.get(title_type, "other") if title_type else None,
        rank=rank,
        release_date=date if isinstance(date, str) else None,
        scores=scores_of(
            lambda: values.read_rating(next((row[key] for key in _SUMMARIES if key in row), row)),
            lambda: values.read_metascore({"score": row["metascore"]}) if "metascore" in row else None,
        ),
    )


def _value(row: Any, key: str, inner: str) -> Any:
    value = dig.at(row, key)
    return dig.at(value, inner) if isinstance(value, dict) else value
