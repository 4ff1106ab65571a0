"""The pages of titles: a search, and one title.

The latter has its scores, their history, its credits and their sources.
"""

from __future__ import annotations

import re
from itertools import groupby
from typing import TYPE_CHECKING, Any

from moviecrawler.basics.clock import utc_now
from moviecrawler.catalogue.store import boost
from moviecrawler.dashboard.charts import history_chart
from moviecrawler.dashboard.pages import MOST_PAGES, Page, PageRequest, RefusedError
from moviecrawler.dashboard.rendering import number
from moviecrawler.dashboard.search import (
    SeriesGrid,
    colour_of,
    read_series,
    read_title,
    search,
    series_of,
    similar,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from moviecrawler.items import Movie

_ROWS = 50
_SIMILAR = 8
_BIGINT = re.compile("[0-9]{1,18}")
_SHOWN = 8
"""Keywords and similar values that a cell shows; the database has all."""


class Titles(Page):
    """`/titles`, and `/titles/<id>`."""

    template = "titles.html"
    title = "Titles"

    def show(self, request: PageRequest) -> dict[str, Any]:
        return self._one(request) if request.path else self._list(request)

    def _list(self, request: PageRequest) -> dict[str, Any]:
        text = request.value("q")[:200]
        first = (request.page - 1) * _ROWS
        found: list[Any] = request.attempt(
            lambda: search(self.sources.database, text, first, _ROWS + 1), otherwise=[]
        )
        ids = [row.title_id for row in found]
        return {
            "q": text,
            "found": found[:_ROWS],
            "series_of": request.attempt(series_of, self.sources.database, ids, otherwise={})
            if ids
            else {},
            "has_more": len(found) > _ROWS and request.page < MOST_PAGES,
            "page": request.page,
        }

    def _one(self, request: PageRequest) -> dict[str, Any]:
        title_id = _title_id(request)
        database = self.sources.database
        found = read_title(database, title_id)
        if found is None:
            raise RefusedError("there is no such title; it may have been matched with another", 404)
        return {
            "template": "title.html",
            "title": found["title"].title or found["title"].imdb_id or "A title without a name",
            "found": found,
            "part": request.attempt(series_of, database, [title_id], otherwise={}).get(title_id),
            "grid": request.attempt(read_series, database, title_id, otherwise=SeriesGrid()),
            "colour_of": colour_of,
            "chart": history_chart(found["history"], utc_now()),
            "facts": _facts(found["records"]),
            "roles": [
                (role, list(people)) for role, people in groupby(found["credits"], lambda c: c.role)
            ],
            "similar": request.attempt(similar, database, title_id, _SIMILAR, otherwise=[]),
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
