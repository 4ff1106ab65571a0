"""Reads Filmograph's pages, whose data is JSON in one script."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

from moviecrawler.basics.values import check_year, parse_date
from moviecrawler.extract.dig import (
    FieldPath,
    extract_fields,
    get_integer,
    get_items,
    get_number,
    get_positive,
    get_size,
    get_text,
    parse_at,
    parse_texts,
)
from moviecrawler.extract.embedded import check_whole, decode_json, script
from moviecrawler.extract.findings import ABSENT, Findings, ShapeError, scores_of
from moviecrawler.extract.people import one_of_each
from moviecrawler.items import Credit, Entry, Listing, Movie, Page
from moviecrawler.sites.ids import kind_of_id
from moviecrawler.sites.scores import new_score
from moviecrawler.sites.titles import finished, listed_seasons, new_title

if TYPE_CHECKING:
    from moviecrawler.extract.findings import NoValue
    from moviecrawler.items import Role, Score, ScoreKind

SITE: Final = "filmograph"
_SCORES: Final[dict[ScoreKind, str]] = {
    "filmograph_stars": "stars",
    "filmograph_approval": "approval",
}


def title(body: bytes) -> Page:
    """Read the page of a film, a series or a season."""
    data = _data_of(body)
    site_id, name = _identity(data)
    found = Findings(new_title(SITE, site_id, name, series_title=get_text(data, "series")))
    extract_fields(found, _FIELDS, [data])
    movie = finished(found)
    rows = get_items(data, "seasons")
    seasons = listed_seasons(movie, (_season(movie, row) for row in rows))
    return Page(site=SITE, kind="title", movie=movie, seasons=seasons)


def listing(body: bytes) -> Page:
    """Read a page of a list; `next` is the number of the page after it."""
    data = _data_of(body)
    entries = [_entry(row) for row in get_items(data, "rows")]
    return Page(
        site=SITE,
        kind="listing",
        listing=Listing(site=SITE, entries=entries, next=get_text(data, "next")),
    )


def _data_of(body: bytes) -> Any:
    check_whole(body)
    raw = script(body, "filmograph")
    if raw is None:
        raise ShapeError("page", 'there is no <script id="filmograph">')
    return decode_json(raw)


def _identity(data: Any) -> tuple[str, str]:
    site_id = get_text(data, "id")
    name = get_text(data, "title")
    if site_id is None or kind_of_id(SITE, site_id) is None or name is None:
        raise ShapeError("site_id", f"the id is {site_id!r}, and the title {name!r}")
    return site_id, name


def _score(kind: ScoreKind, data: Any) -> Score | NoValue:
    value = get_number(data, "value")
    return ABSENT if value is None else new_score(kind, value, get_positive(data, "count"))


def _people(role: Role, people: Any) -> list[Credit]:
    return one_of_each(
        role,
        [
            Credit(
                name=get_text(person, "name"),
                role=role,
                position=0,
                person_id=get_text(person, "id"),
                character=get_text(person, "as"),
            )
            for person in get_items(people)
        ],
    )


def _scores_of_row(row: Any) -> list[Score]:
    return scores_of(
        *(partial(parse_at, partial(_score, kind), row, key) for kind, key in _SCORES.items())
    )


def _season(series: Movie, row: Any) -> Movie | None:
    site_id = get_text(row, "id")
    if site_id is None:
        return None
    season = new_title(SITE, site_id, get_text(row, "title") or series.title)
    season.scores = _scores_of_row(row)
    season.year = get_integer(row, "year")
    return season


def _entry(row: Any) -> Entry:
    site_id, name = _identity(row)
    return Entry(
        site_id=site_id,
        title=name,
        kind=kind_of_id(SITE, site_id),
        year=get_integer(row, "year"),
        scores=_scores_of_row(row),
    )


_FIELDS: Final[tuple[FieldPath, ...]] = (
    FieldPath("year", check_year, "year"),
    FieldPath("release_date", parse_date, "released"),
    FieldPath("runtime_minutes", get_positive, "minutes"),
    FieldPath("genres", parse_texts(), "genres"),
    FieldPath("certificate", get_text, "certificate"),
    FieldPath("plot", get_text, "plot"),
    FieldPath("poster_url", get_text, "poster"),
    FieldPath("season_count", get_size, "season_count"),
    FieldPath("credits.director", partial(_people, "director"), "directors"),
    FieldPath("credits.writer", partial(_people, "writer"), "writers"),
    FieldPath("credits.creator", partial(_people, "creator"), "creators"),
    FieldPath("credits.cast", partial(_people, "cast"), "cast"),
    *(FieldPath(f"scores.{kind}", partial(_score, kind), key) for kind, key in _SCORES.items()),
)
"""Where a page has each field."""
