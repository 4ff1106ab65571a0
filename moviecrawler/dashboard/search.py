"""Finds titles, and reads all that the database has on one, with a series' seasons and episodes.

Each query uses an index.
"""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING, NamedTuple

from moviecrawler.dashboard.sql import read_sql
from moviecrawler.database.postgres import PostgresTables
from moviecrawler.database.records import read_stored
from moviecrawler.sites import BY_AUTHORITY
from moviecrawler.sites.ids import by_authority, imdb_id_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from moviecrawler.database.connection import Row
    from moviecrawler.database.short_transactions import ShortTransactions
    from moviecrawler.items import Movie

_SEARCH = read_sql("search.sql")
_BY_ID = (
    "SELECT f.title_id, f.imdb_id, f.title, f.year, f.kind, f.popularity, 1 AS matches,"
    " (SELECT jsonb_object_agg(s.kind, s.value) FROM title_scores s"
    " WHERE s.title_id = f.title_id) AS scores"
    " FROM titles f WHERE f.imdb_id = %(id)s"
)
_SEASONS = (
    "SELECT * FROM season_scores WHERE series_title_id = %(id)s ORDER BY season LIMIT %(seasons)s"
)
_EPISODES = read_sql("series_episodes.sql")
_SERIES_OF = read_sql("series_of_titles.sql")
_MAX_WORDS = 10
_IMDB_ID = re.compile(r"tt[0-9]{7,}")
_PUNCTUATION = re.compile(r"[!-/:-@\[-`{-~]+")
MAX_RANKED = 1000
"""Most matches that are ranked. The most popular titles are searched separately: they are found
however many titles match."""


class Search(NamedTuple):
    """The titles that are searched for."""

    text: str = ""
    """Words, or an IMDb id; empty for the most popular titles."""
    kind: str | None = None
    site: str | None = None
    """Only titles that have a record of this site."""
    sort: str | None = None
    """A kind of scores; None for exact titles first, then popular ones."""


def tsquery(text: str) -> str | None:
    """Return the query for `title_words`: all words, the last of them as a prefix.

    Return None when there are no words.

    >>> tsquery("Amélie: à la fin")
    "'Amelie' & 'a' & 'la' & 'fin':*"
    >>> tsquery("?!") is None
    True
    """
    folded = "".join(
        c
        for c in unicodedata.normalize("NFKD", text)
        if not 0x300 <= ord(c) <= 0x36F  # noqa: PLR2004 - combining marks
    )
    words = _PUNCTUATION.sub(" ", folded).split()[:_MAX_WORDS]
    return " & ".join(f"'{word}'" for word in words) + ":*" if words else None


def search(database: ShortTransactions, criteria: Search, first: int, limit: int) -> list[Row]:
    """Return `limit` titles after the first `first`, as rows of `search.sql`.

    An IMDb id finds its title. Raises UnavailableError.
    """
    if match := _IMDB_ID.search(criteria.text):
        imdb_id = imdb_id_of(match[0]) or match[0]
        return _rows(database, _BY_ID, id=imdb_id)
    query = tsquery(criteria.text)
    if criteria.text and query is None:
        return []
    terms = {**criteria._asdict(), "text": criteria.text or None, "query": query}
    return _rows(database, _SEARCH, **terms, most=MAX_RANKED, first=first, limit=limit)


def _rows(database: ShortTransactions, statement: str, /, **arguments: object) -> list[Row]:
    with database.transaction() as cursor:
        cursor.execute(statement, arguments)
        rows: list[Row] = cursor.fetchall()
        return rows


_TITLE_QUERIES = {
    "matches": (
        "SELECT site, site_id, decision::text, score, reasons, by_hand, decided_at"
        " FROM title_matches WHERE title_id = %(id)s ORDER BY decided_at DESC LIMIT 20"
    ),
    **{
        name: read_sql(f"title_{name}.sql")
        for name in ("sites", "scores", "credits", "offers", "history")
    },
}
_CAST = 40
"""Members of the cast that are shown; all are in the database."""
_OFFERS = 40
"""Providers that are shown; all are in the database."""
_HISTORY = 2000
"""Changes of a title's scores that are read, the latest ones."""


class TitleRows(NamedTuple):
    """What the database has on a title, as rows of the queries of these names."""

    title: Row | None
    """Its row in `titles`; None when there is no title of that id."""
    records: Sequence[Movie]
    """Those of the sites, the one with most authority first."""
    matches: Sequence[Row]
    sites: Sequence[Row]
    scores: Sequence[Row]
    credits: Sequence[Row]
    offers: Sequence[Row]
    history: Sequence[Row]


def read_title(database: ShortTransactions, title_id: int) -> TitleRows:
    """Return what the database has on a title. Raises UnavailableError."""
    arguments = {
        "id": title_id,
        "sites": list(BY_AUTHORITY),
        "cast": _CAST,
        "offers": _OFFERS,
        "history": _HISTORY,
    }
    rows = {}
    with database.transaction() as cursor:
        cursor.execute("SELECT * FROM titles WHERE title_id = %(id)s", arguments)
        title = cursor.fetchone()
        for name, query in _TITLE_QUERIES.items():
            cursor.execute(query, arguments)
            rows[name] = cursor.fetchall()
        stored = read_stored(PostgresTables(cursor), "title_id {ids}", [title_id])
    movies = [record.movie for record in stored]
    order = by_authority({movie.site for movie in movies})
    movies.sort(key=lambda movie: order.index(movie.site))
    return TitleRows(title=title, records=movies, **rows)


def similar(database: ShortTransactions, title_id: int, most: int) -> list[Row]:
    """Return the titles that have most in common with one. Raises UnavailableError."""
    query = "SELECT title_id, title, year, shared FROM similar_titles(%(id)s, %(most)s)"
    return _rows(database, query, id=title_id, most=most)


# --- A series, from the views of `scrapy scoreboard --kind season` and `--kind episode` -----------

_MAX_SEASONS = 200
_MAX_EPISODES = 5_000
"""Seasons and episodes of a series that are read; some daily shows have more."""
_MAX_COLUMNS = 60
"""Episodes of a season that the grid shows."""
_LOWEST_BAND = 4
_HIGHEST_BAND = 9
"""Ratings of the coldest and of the warmest colour; there is one for each whole number."""


class SeriesGrid(NamedTuple):
    """The seasons of a series, and its episodes by season and number."""

    seasons: Sequence[Row] = ()
    """Rows of `season_scores`, with the columns of every score."""
    columns: Sequence[int] = ()
    """Numbers of episodes, in ascending order."""
    rows: Mapping[int, Mapping[int, Row]] = {}
    """By season, and by number, rows of `series_episodes.sql`. Of two episodes with one number, the
    first."""


def read_series(database: ShortTransactions, title_id: int) -> SeriesGrid:
    """Return the seasons and episodes of a series; an empty grid for any other title.

    Raises UnavailableError.
    """
    seasons = _rows(database, _SEASONS, id=title_id, seasons=_MAX_SEASONS)
    rows: dict[int, dict[int, Row]] = {}
    for episode in _rows(database, _EPISODES, id=title_id, episodes=_MAX_EPISODES):
        rows.setdefault(episode.season, {}).setdefault(episode.episode, episode)
    return SeriesGrid(
        seasons, sorted({number for row in rows.values() for number in row})[:_MAX_COLUMNS], rows
    )


def series_of(database: ShortTransactions, title_ids: Sequence[int]) -> dict[int, Row]:
    """Return rows of `series_of_titles.sql` by title_id, for the seasons and episodes among titles.

    Raises UnavailableError.
    """
    return {row.title_id: row for row in _rows(database, _SERIES_OF, ids=list(title_ids))}


def colour_of(rating: float) -> str:
    """Return the CSS class of a rating's colour.

    >>> colour_of(9.0), colour_of(8.99), colour_of(1.0)
    ('rated-9', 'rated-8', 'rated-4')
    """
    return f"rated-{min(max(int(rating), _LOWEST_BAND), _HIGHEST_BAND)}"
