"""The pages of titles: a search, and one title.

The latter has its scores, their history, its credits and their sources.
"""

from __future__ import annotations

import re
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple, get_args

from moviecrawler.basics.clock import utc_now
from moviecrawler.catalogue.store import boost
from moviecrawler.dashboard.charts import history_chart
from moviecrawler.dashboard.pages import MOST_PAGES, ROWS, Page, PageRequest, RefusedError, known
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
    from collections.abc import Callable, Mapping, Sequence

    from moviecrawler.dashboard.sources import PageReads
    from moviecrawler.items import Movie

_SIMILAR = 8
_BIGINT = re.compile("[0-9]{1,18}")
_SHOWN = 8
"""Keywords and similar values that a cell shows; the database has all."""


class Found(NamedTuple):
    """A page of titles."""

    rows: Sequence[Any]
    series_of: Mapping[int, Any]
    """Of the seasons and episodes among them."""


class Titles(Page):
    """`/titles`, and `/titles/<id>`."""

    template = "titles.html"
    title = "Titles"

    def show(self, request: PageRequest, reads: PageReads) -> dict[str, Any]:
        return self._one(request, reads) if request.path else self._list(request, reads)

    def _list(self, request: PageRequest, reads: PageReads) -> dict[str, Any]:
        wanted = Search(
            text=request.value("q")[:200],
            kind=request.value("kind") or None,
            site=request.value("site") or None,
            sort=request.value("sort") or None,
        )
        ask_counts = None
        if wanted == Search() and self.sources.has_database:
            ask_counts = reads.start("The database", self.sources.counts)
        first = (request.page - 1) * ROWS
        found = reads.start("The database", self._search, wanted, first)()
        counts = ask_counts and ask_counts()
        return {
            "wanted": wanted,
            "found": found,
            "matches": found.rows[0].matches if found and found.rows else 0,
            "max_ranked": MAX_RANKED,
            "titles": counts and counts.titles,
            "kinds": get_args(TitleKind),
            "sites": dict.fromkeys([*SITES, *([wanted.site] if wanted.site else [])]),
            "sorts": list(SCOREBOARD_KINDS),
            "first": first,
            "page": request.page,
            "has_more": bool(found and found.rows and found.rows[0].matches > first + ROWS)
            and request.page < MOST_PAGES,
        }

    def _search(self, wanted: Search, first: int) -> Found:
        database = self.sources.database
        rows = search(database, wanted, first, ROWS)
        parts = [row.title_id for row in rows if row.kind in {"season", "episode"}]
        return Found(rows, series_of(database, parts) if parts else {})

    def _one(self, request: PageRequest, reads: PageReads) -> dict[str, Any]:
        title_id = _title_id(request)
        database = self.sources.database
        ask_part = reads.start("The database", series_of, database, [title_id])
        ask_grid = reads.start("The database", read_series, database, title_id)
        ask_similar = reads.start("The database", similar, database, title_id, _SIMILAR)
        found = known(reads.start("The database", read_title, database, title_id)(), reads)
        if found["title"] is None:
            raise RefusedError("there is no such title; it may have been matched with another", 404)
        return {
            "template": "title.html",
            "title": found["title"].title or found["title"].imdb_id or "A title without a name",
            "found": found,
            "part": (ask_part() or {}).get(title_id),
            "grid": ask_grid() or SeriesGrid(),
            "colour_of": colour_of,
            "chart": history_chart(found["history"], utc_now()),
            "facts": _facts(found["records"]),
            "roles": [
                (role, list(people)) for role, people in groupby(found["credits"], lambda c: c.role)
            ],
            "similar": ask_similar() or (),
        }

    def do_boost(self, request: PageRequest) -> tuple[str, str]:
        title_id = _title_id(request)
        with self.sources.database.transaction(write=True) as cursor:
            known = boost(cursor, [title_id], 1, utc_now())
        return f"/titles/{title_id}", "boosted" if known else "no-title"


def _title_id(request: PageRequest) -> int:
    path = "/".join(request.path)
    if not _BIGINT.fullmatch(path):
        raise RefusedError("there is no such page", 404)
    return int(path)


_FACTS: dict[str, Callable[[Movie], Any]] = {
    "Title": lambda r: r.title,
    "Original title": lambda r: r.original_title,
    "Kind": lambda r: r.title_type or r.kind,
    "Year": lambda r: f"{r.year}–{r.end_year}" if r.end_year else r.year,  # noqa: RUF001 - a range
    "Released": lambda r: r.release_date,
    "Runtime": lambda r: r.runtime_minutes and f"{r.runtime_minutes} min",
    "Certificate": lambda r: r.certificate,
    "Genres": lambda r: r.genres,
    "Countries": lambda r: r.countries,
    "Languages": lambda r: r.languages,
    "Series": lambda r: r.series_title,
    "Season": lambda r: r.season,
    "Episode": lambda r: r.episode,
    "Seasons": lambda r: r.season_count,
    "Episodes": lambda r: r.episode_count,
    "Critics' reviews linked": lambda r: r.critic_review_count,
    "Plot": lambda r: r.plot,
    "Taglines": lambda r: r.taglines,
    "Critics' consensus": lambda r: r.consensus,
    "Keywords": lambda r: r.keywords,
    "Interests": lambda r: r.interests,
    "Awards": lambda r: [
        f"{award.event or 'all'}: {award.wins} won, {award.nominations} nominated"
        for award in r.awards
    ],
    "Recommends": lambda r: [other.title for other in r.related if other.relation == "similar"],
    "Connections": lambda r: [
        f"{other.connection or 'see'} {other.title}"
        for other in r.related
        if other.relation == "connection"
    ],
    "Money": lambda r: [
        f"{amount.kind.replace('_', ' ')}: {number(amount.value)} {amount.currency}"
        for amount in r.amounts
    ],
    "Other ids": lambda r: [f"{name} {value}" for name, value in r.external_ids.items()],
}


def _said(value: Any) -> str:
    """Return a fact as text: of a list its first texts, and how many more there are.

    An unknown one is empty; a season 0 is not.
    """
    if not isinstance(value, list):
        return "" if value is None else str(value)
    more = f" and {len(value) - _SHOWN} more" if len(value) > _SHOWN else ""
    return "; ".join(value[:_SHOWN]) + more


def _facts(records: Sequence[Movie]) -> dict[str, list[str]]:
    """Return each fact that a site states, with the sites' words in the order of the records."""
    facts = {name: [_said(read(record)) for record in records] for name, read in _FACTS.items()}
    return {name: said for name, said in facts.items() if any(said)}
