"""The pages of titles: a search, and one title.

The latter has its scores, their history, its credits and their sources.
"""

from __future__ import annotations

import re
from dataclasses import fields
from typing import TYPE_CHECKING, NamedTuple, get_args

from moviecrawler.basics.clock import utc_now
from moviecrawler.catalogue.store import boost
from moviecrawler.dashboard.charts import history_chart
from moviecrawler.dashboard.pages import ROWS, Page, PageRequest, RefusedError, Variables
from moviecrawler.dashboard.rendering import number
from moviecrawler.dashboard.search import (
    MAX_RANKED,
    Search,
    SeriesGrid,
    colour_of,
    read_series,
    read_title,
    search,
    series_of,
    similar,
)
from moviecrawler.items import TitleKind
from moviecrawler.sites import SCOREBOARD_KINDS, SITES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from moviecrawler.database.connection import Row
    from moviecrawler.items import Movie

_SIMILAR = 8
_BIGINT = re.compile("[0-9]{1,18}")
_SHOWN = 8
"""Keywords and similar values that a cell shows; the database has all."""


class Results(NamedTuple):
    """A page of titles."""

    rows: Sequence[Row]
    series_of: Mapping[int, Row]
    """Of the seasons and episodes among them."""


class Titles(Page):
    """`/titles`, and `/titles/<id>`."""

    template = "titles.html"
    title = "Titles"

    def show(self, request: PageRequest) -> Variables:
        return self._one(request) if request.path else self._list(request)

    def _list(self, request: PageRequest) -> Variables:
        criteria = Search(
            text=request.value("q")[:200],
            kind=request.value("kind") or None,
            site=request.value("site") or None,
            sort=request.value("sort") or None,
        )
        ask_counts = request.reads.start_counts()
        results = request.reads.start("The database", self._search, criteria, request.first)()
        counts = ask_counts() if criteria == Search() else None
        matches = results.rows[0].matches if results and results.rows else 0
        return {
            "criteria": criteria,
            "results": results,
            "matches": matches,
            "max_ranked": MAX_RANKED,
            "titles": counts and counts.titles,
            "kinds": get_args(TitleKind),
            "sites": dict.fromkeys([*SITES, *([criteria.site] if criteria.site else [])]),
            "sorts": list(SCOREBOARD_KINDS),
            "page": request.page,
            "has_more": request.has_more(matches),
        }

    def _search(self, criteria: Search, first: int) -> Results:
        database = self.sources.database
        rows = search(database, criteria, first, ROWS)
        parts = [row.title_id for row in rows if row.kind in {"season", "episode"}]
        return Results(rows, series_of(database, parts) if parts else {})

    def _one(self, request: PageRequest) -> Variables:
        title_id = _title_id(request)
        database = self.sources.database
        reads = request.reads
        ask_part = reads.start("The database", series_of, database, [title_id])
        ask_grid = reads.start("The database", read_series, database, title_id)
        ask_similar = reads.start("The database", similar, database, title_id, _SIMILAR)
        rows = reads.require(reads.start("The database", read_title, database, title_id)())
        title = rows.title
        if title is None:
            raise RefusedError("there is no such title; it may have been matched with another", 404)
        return {
            "template": "title.html",
            "title": title.title or title.imdb_id or "A title without a name",
            "rows": rows,
            "part": (ask_part() or {}).get(title_id),
            "grid": ask_grid() or SeriesGrid(),
            "colour_of": colour_of,
            "chart": history_chart(rows.history, utc_now()),
            "details": [_details(record) for record in rows.records],
            "similar": ask_similar() or (),
        }

    def do_boost(self, request: PageRequest) -> tuple[str, str]:
        title_id = _title_id(request)
        with self.sources.database.transaction(write=True) as cursor:
            is_known = boost(cursor, [title_id], 1, utc_now())
        return f"/titles/{title_id}", "boosted" if is_known else "no-title"


def _title_id(request: PageRequest) -> int:
    path = "/".join(request.path)
    if not _BIGINT.fullmatch(path):
        raise RefusedError("there is no such page", 404)
    return int(path)


def _details(movie: Movie) -> dict[str, str]:
    """Return the fields of a record as texts."""
    values = {field.name: getattr(movie, field.name) for field in fields(movie)}
    values |= {
        "kind": movie.title_type or movie.kind,
        "runtime_minutes": movie.runtime_minutes and f"{movie.runtime_minutes} min",
        "awards": [
            f"{award.event or 'all'}: {award.wins} won, {award.nominations} nominated"
            for award in movie.awards
        ],
        "recommended": [other.title for other in movie.related if other.relation == "similar"],
        "connections": [
            f"{other.connection or 'see'} {other.title}"
            for other in movie.related
            if other.relation == "connection"
        ],
        "amounts": [
            f"{amount.kind.replace('_', ' ')}: {number(amount.value)} {amount.currency}"
            for amount in movie.amounts
        ],
        "external_ids": [f"{name} {value}" for name, value in movie.external_ids.items()],
    }
    return {name: _as_text(value) for name, value in values.items()}


def _as_text(value: object) -> str:
    """Return a value as text: of a list its first values, and how many more there are.

    An unknown one is empty; a season 0 is not.
    """
    if not isinstance(value, list):
        return "" if value is None else str(value)
    more = f" and {len(value) - _SHOWN} more" if len(value) > _SHOWN else ""
    return "; ".join(map(str, value[:_SHOWN])) + more
