"""IMDb's pages since 2022: titles, their full credits, and charts.

Their facts are in the JSON of their `__NEXT_DATA__` script. That holds objects of IMDb's GraphQL
API; a title's page has two about its title, `aboveTheFoldData` and `mainColumnData`. `imdb_title`
has the position of each field.
"""

import html
import re
from functools import partial

from moviecrawler.basics.texts import fold
from moviecrawler.extract import linked_data
from moviecrawler.extract.dig import FieldPath, JsonObject, get_items, get_path, get_text, parse_at
from moviecrawler.extract.embedded import check_whole, decode_text
from moviecrawler.extract.findings import ABSENT, Findings, ShapeError, attempt, scores_of
from moviecrawler.items import Entry, Listing, Page
from moviecrawler.sites.ids import id_in_url
from moviecrawler.sites.imdb import values
from moviecrawler.sites.imdb.props import page_props
from moviecrawler.sites.imdb.title import extract_title, identify, read_full_credits, stated_id
from moviecrawler.sites.scores import linked_score
from moviecrawler.sites.titles import (
    finished,
    new_entry,
    new_title,
    parse_imdb_id,
    title_in,
)

_TITLE = re.compile(rb"<title[^<>]*>([^<>]{1,1000})</title")
_MOST_LINKED_GENRES = 3
"""Genres in JSON-LD: a title with as many may have more."""


def _all_genres(value: object) -> list[str] | None:
    """Return the genres of JSON-LD, unless some may have been left out."""
    genres = linked_data.texts(value)
    return genres if len(genres) < _MOST_LINKED_GENRES else None


_LINKED = (
    *linked_data.paths_of(
        "plot", "certificate", "poster_url", "runtime_minutes", "credits.director"
    ),
    FieldPath("genres", _all_genres, "genre"),
    FieldPath("scores.imdb", partial(linked_score, "imdb"), "aggregateRating"),
)
"""The fields on which the site's JSON-LD is right. Its dates can be those of a later release, and
its cast are the stars."""


def title(body: bytes) -> Page:
    """Read a title's page, or that of its full credits.

    Raises ExtractionError when it doesn't say which title it is about.
    """
    props = attempt(page_props, body) or {}
    content = props.get("contentData")
    if isinstance(content, dict) and "categories" in content:
        return Page(site="imdb", kind="fullcredits", movie=finished(read_full_credits(content)))
    objects = (props.get("aboveTheFoldData"), props.get("mainColumnData"))
    sources = [source for source in objects if isinstance(source, dict) and source]
    try:
        findings = identify(sources) if sources else _linked(body)
        is_linked = not sources
    except ShapeError:
        linked = attempt(_linked, body) if sources else None
        if linked is None or linked.movie.site_id != stated_id(sources):
            raise
        findings = linked
        is_linked = True
    extract_title(findings, sources)
    if is_linked:
        linked_data.extract_fields(findings, linked_data.title_of(body), _LINKED)
    return Page(site="imdb", kind="title", movie=finished(findings))


def _linked(body: bytes) -> Findings:
    """Return a title with its id, names and kind, as JSON-LD says.

    Where it has an `alternateName`, that is the title that the page shows, and `name` is the
    original title. Until 2020 it had the original title alone. Therefore the name has to be that of
    the page's `<title>`.
    """
    check_whole(body)
    site_id, name, linked = title_in("imdb", body)
    shown = _shown_name(linked) or name
    tag = _TITLE.search(body)
    if tag is None or not fold(html.unescape(decode_text(tag[1]))).startswith(shown):
        raise ShapeError("title", f"the page's <title> is not {shown!r}")
    findings = Findings(new_title("imdb", site_id, shown, linked_data.kind_of(linked)))
    findings.set_first("original_title", lambda: None if shown == name else name)
    return findings


def _shown_name(linked: JsonObject) -> str | None:
    """Return the title that a page shows, where JSON-LD has another one as `name`."""
    return attempt(lambda: get_text(linked_data.first_of(linked.get("alternateName"))))


# --- Charts ---------------------------------------------------------------------------------------


def chart(body: bytes) -> Page:
    """Read a chart: the Top 250s, the most popular, or the box office, which gives no ranks.

    Raises ExtractionError.
    """
    try:
        entries = _charted(body)
    except ShapeError:
        check_whole(body)
        entries = [_linked_entry(data) for data in linked_data.listed_titles(body)]
        if not entries:
            raise
    return Page(site="imdb", kind="chart", listing=Listing(site="imdb", entries=entries))


def _charted(body: bytes) -> list[Entry]:
    """Return the rows of a chart by the page's data. Raises ShapeError."""
    data = get_path(page_props(body), "pageData")
    if get_path(data, "topGrossingReleases") is not None:
        # A release that has no title on IMDb yet has an empty list.
        titles = (
            get_items(edge, "node", "release", "titles")
            for edge in get_items(data, "topGrossingReleases", "edges")
        )
        return [_entry(listed[0], None) for listed in titles if listed]
    if get_path(data, "chartTitles", "edges") is None:
        raise ShapeError("entries", "the page has no list that is known")
    edges = get_items(data, "chartTitles", "edges")
    return [_entry(node, edge) for edge in edges if (node := get_path(edge, "node")) is not None]


def _linked_entry(data: JsonObject) -> Entry:
    """Return a row of JSON-LD, without a rank. Raises ShapeError when it has no id or title."""
    site_id = id_in_url("imdb", get_text(data, "url"))
    entry = new_entry("imdb", site_id, _shown_name(data) or get_text(data, "name"))
    entry.kind = linked_data.kind_of(data)
    entry.scores = scores_of(partial(linked_score, "imdb", data.get("aggregateRating")))
    return entry


def _entry(node: object, edge: object) -> Entry:
    """Return a row of a chart without what can't be read.

    Raises ShapeError when it has no id or title.
    """
    entry = new_entry("imdb", parse_imdb_id(node, "id"), get_text(node, "titleText", "text"))
    title_type = attempt(get_text, node, "titleType", "id")
    date = attempt(parse_at, values.parse_date, node, "releaseDate")
    entry.year = attempt(lambda: values.parse_year(get_path(node, "releaseYear", "year")))
    entry.kind = values.TITLE_KINDS.get(title_type, "other") if title_type else None
    entry.rank = attempt(lambda: values.parse_rank(get_path(edge, "currentRank")))
    entry.release_date = None if date is ABSENT else date
    entry.scores = scores_of(partial(parse_at, values.parse_rating, node, "ratingsSummary"))
    return entry
