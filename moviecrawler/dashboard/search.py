"""Finding titles, and reading all that the database has on one. Each query uses an index."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from moviecrawler.catalogue.sql import read_sql

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from moviecrawler.database.short_transactions import ShortTransactions

_SEARCH = read_sql("search.sql")
_SCORES = read_sql("scores_of_titles.sql")
_POPULAR = read_sql("popular_titles.sql")
_SIMILAR = read_sql("similar_titles.sql")
_FIRST = (1e9, 0)
_MAX_WORDS = 10
_IMDB_ID = re.compile(r"tt[0-9]{7,}")
_PUNCTUATION = re.compile(r"[!-/:-@\[-`{-~]+")
MAX_RANKED = 1000
"""Most matches that are ranked."""
_POPULAR_SEARCHED = 1000
"""Number of the most popular titles, which are searched separately, so that they are found among any number of matches."""


class Found(NamedTuple):
    """A title of a list, with its scores by kind."""

    title_id: int
    imdb_id: str | None
    title: str | None
    year: int | None
    kind: str | None
    popularity: float
    scores: dict[str, tuple[float, int | None]]


def tsquery(text: str) -> str | None:
    """Return the query for `title_words`: all words, the last of them as a prefix; None when there are no words.

    >>> tsquery("Amélie: le fabuleux")
    "'Amelie' & 'le' & 'fabuleux':*"
    >>> tsquery("?!") is None
    True
    """
    folded = "".join(c for c in unicodedata.normalize("NFKD", text) if not 0x300 <= ord(c) <= 0x36F)  # noqa: PLR2004 - combining marks
    words = _PUNCTUATION.sub(" ", folded.replace("\x00", " ")).split()[:_MAX_WORDS]
    return " & ".join(f"'{word}'" for word in words) + ":*" if words else None


def search(database: ShortTransactions, text: str, first: int, limit: int) -> list[Found]:
    """Return the titles that have the words, exact titles first, then the most popular ones; from that place on.

    An IMDb id finds its title. Raises AwayError.
    """
    named = _IMDB_ID.search(text)
    with database.transaction() as cursor:
        if named:
            cursor.execute(
                "SELECT title_id, imdb_id, title, year, kind::text, popularity FROM titles WHERE imdb_id = %s",
                (named[0],),
            )
        else:
            query = tsquery(text)
            if query is None:
                return []
            arguments = {"query": query, "text": text, "most": MAX_RANKED, "popular": _POPULAR_SEARCHED}
            cursor.execute(_SEARCH, {**arguments, "first": first, "limit": limit})
        return _with_scores(cursor, cursor.fetchall())


def popular(database: ShortTransactions, after: tuple[float, int] | None, limit: int) -> list[Found]:
    """Return the most popular titles, those after a popularity and a title's id. Raises AwayError."""
    popularity, title_id = after or _FIRST
    with database.transaction() as cursor:
        cursor.execute(_POPULAR, {"popularity": popularity, "title_id": title_id, "limit": limit})
        return _with_scores(cursor, cursor.fetchall())


def _with_scores(cursor: Any, rows: Sequence[Any]) -> list[Found]:
    scores: dict[int, dict[str, tuple[float, int | None]]] = {}
    if rows:
        cursor.execute(_SCORES, {"ids": [row.title_id for row in rows]})
        for title_id, kind, value, count in cursor.fetchall():
            scores.setdefault(title_id, {})[kind] = value, count
    return [Found(**row._asdict(), scores=scores.get(row.title_id, {})) for row in rows]


# --- One title ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Point:
    """What a score was from a time on; None: the site showed none."""

    since: datetime
    value: float | None
    count: int | None
    average: float | None


class Series(NamedTuple):
    """A score's history on a site, oldest first."""

    site: str
    kind: str
    points: list[Point]


class Title(NamedTuple):
    """A title with all that is known of it. The rows are those of the tables, by their columns' names."""

    title: Any
    records: list[Any]
    sites: list[Any]
    matches: list[Any]
    scores: list[Any]
    credits: list[Any]
    amounts: list[Any]
    offers: list[Any]
    series: list[Series]


_OF_TITLE = {
    name: read_sql(f"title_{name}.sql")
    for name in ("records", "sites", "matches", "scores", "credits", "amounts", "offers", "history")
}
_CAST = 40
"""Members of the cast that are shown; all are in the database."""
_OFFERS = 40
"""Offers that are shown; all are in the database."""
_HISTORY = 2000
"""Points of a title's histories, the latest ones."""


def read_title(database: ShortTransactions, title_id: int) -> Title | None:
    """Return a title; None when there is none of that id. Raises AwayError."""
    with database.transaction() as cursor:

        def rows(query: str) -> list[Any]:
            cursor.execute(query, {"id": title_id, "cast": _CAST, "offers": _OFFERS, "history": _HISTORY})
            found: list[Any] = cursor.fetchall()
            return found

        titles = rows("SELECT * FROM titles WHERE title_id = %(id)s")
        if not titles:
            return None
        series: dict[tuple[str, str], Series] = {}
        for row in rows(_OF_TITLE["history"]):
            one = series.setdefault((row.site, row.kind), Series(row.site, row.kind, []))
            one.points.append(Point(row.since, row.value, row.count, row.average))
        return Title(
            title=titles[0],
            records=rows(_OF_TITLE["records"]),
            sites=rows(_OF_TITLE["sites"]),
            matches=rows(_OF_TITLE["matches"]),
            scores=rows(_OF_TITLE["scores"]),
            credits=rows(_OF_TITLE["credits"]),
            amounts=rows(_OF_TITLE["amounts"]),
            offers=rows(_OF_TITLE["offers"]),
            series=list(series.values()),
        )


def similar(database: ShortTransactions, title_id: int, most: int) -> list[Any]:
    """Return the titles that have most in common with one: title_id, title, year, and what is shared. Raises AwayError."""
    with database.transaction() as cursor:
        cursor.execute(_SIMILAR, {"id": title_id, "most": most})
        found: list[Any] = cursor.fetchall()
        return found
