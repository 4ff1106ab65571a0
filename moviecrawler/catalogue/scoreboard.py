"""The scoreboard, one row a title with every site's scores: makes it in the embedded database, and reads its rows.

IMDb rates no seasons: a season's rating is the mean of its episodes', weighted by votes.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import msgspec

from moviecrawler.database.embedded import transaction
from moviecrawler.database.sql import read_sql
from moviecrawler.items import Movie, TitleKind
from moviecrawler.sites import BY_AUTHORITY, SCORES, SITES

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterator


@dataclass(slots=True, kw_only=True)
class ScoreboardRow:
    """A title's scores on all sites; None where a site hasn't the title, or the title no such score."""

    title: str
    year: int | None
    kind: TitleKind
    imdb_rating: float | None
    """1 to 10."""
    imdb_votes: int | None
    metascore: float | None
    """0 to 100."""
    metacritic_user_score: float | None
    """0 to 10."""
    tomatometer: float | None
    """0 to 100."""
    popcornmeter: float | None
    """0 to 100."""
    imdb_id: str | None
    metacritic_id: str | None
    rottentomatoes_id: str | None
    tmdb_id: int | None
    """TMDB's id: of a series under themoviedb.org/tv/, of everything else under themoviedb.org/movie/."""
    matched_by: list[str]
    """Why the sites' records are taken for one title."""
    series_title: str | None = None
    """This and the following fields are of seasons and episodes only."""
    series_imdb_id: str | None = None
    """None where IMDb's page or dataset row of the series is not stored."""
    season: int | None = None
    episode: int | None = None

    @property
    def imdb_rating_derived(self) -> bool:
        """Whether the rating is not IMDb's own, but the mean of a season's episodes."""
        return self.kind == "season" and self.imdb_rating is not None


_FIELDS = {field.name for field in fields(ScoreboardRow)}
VALUE_FIELDS = {kind: form.columns[0] for kind, form in SCORES.items() if form.columns and form.columns[0] in _FIELDS}
ID_FIELDS = {site: f"{site}_id" for site in SITES if f"{site}_id" in _FIELDS}
"""The fields of each kind's value, and of each site's id; the databases' views have columns of the same names."""

_COMPARED = read_sql("embedded_pool.sql")
_ROWS = read_sql("embedded_scoreboard.sql").format(rows=read_sql("scoreboard_rows.sql"))
_SHOWN = f"{', '.join(VALUE_FIELDS.values())}, imdb_votes, {{imdb_id}} AS imdb_id, metacritic_id, rottentomatoes_id"
_PARTS_SHOWN = """
SELECT coalesce(title, {name}) AS title, year, '{kind}' AS kind, {shown}, NULL AS tmdb_id, '[]' AS matched_by, series_title, series_imdb_id,
    season, {episode} AS episode
FROM {kind}_scores
ORDER BY imdb_votes DESC NULLS LAST, series_title NULLS LAST, season NULLS LAST, {episode} NULLS LAST, {imdb_id} NULLS LAST,
    rottentomatoes_id NULLS LAST, metacritic_id NULLS LAST
LIMIT :most
"""
_TITLES_SHOWN = """
SELECT title, year, kind, {shown}, tmdb_id, matched_by
FROM scoreboard
WHERE :kind IS NULL OR kind = :kind
ORDER BY iif(imdb_list_rank IS NULL, NULL, imdb_list_name) NULLS LAST, iif(imdb_list_name IS NULL, NULL, imdb_list_rank) NULLS LAST,
    imdb_votes DESC NULLS LAST, best_list_rank NULLS LAST, title_id
LIMIT :most
"""


def titles_in(connection: sqlite3.Connection) -> int:
    """Return how many rows `movies` has."""
    ((count,),) = connection.execute("SELECT count(*) FROM movies")
    return int(count)


def make_scoreboard(connection: sqlite3.Connection) -> None:
    """Replace the embedded database's scoreboard in one transaction. Raises sqlite3.Error."""
    from moviecrawler.catalogue.matching import match_titles  # noqa: PLC0415 - its libraries would slow down every start

    connection.execute(
        "CREATE TEMPORARY TABLE IF NOT EXISTS matches (title_id, site, site_id, matched_by, PRIMARY KEY (title_id, site))"
    )
    with transaction(connection, "DEFERRED"):
        ((written,),) = connection.execute("SELECT written FROM state")
        ids: dict[tuple[str, str | None], int] = {}
        movies = []
        for movie_id, item in connection.execute(_COMPARED):
            movie = msgspec.json.decode(item, type=Movie)
            ids[movie.site, movie.site_id] = movie_id
            movies.append(movie)
    connection.execute("DELETE FROM temp.matches")
    for joined in match_titles(movies):
        found = [joined.movies[site] for site in BY_AUTHORITY if site in joined.movies]
        title_id = ids[found[0].site, found[0].site_id]
        reasons = msgspec.json.encode([", ".join(match.reasons) for match in joined.matches]).decode()
        rows = [(title_id, movie.site, movie.site_id, reasons) for movie in found]
        connection.executemany("INSERT INTO temp.matches VALUES (?, ?, ?, ?)", rows)
    columns = ", ".join(name for _, name, *_ in connection.execute("PRAGMA table_info(scoreboard)"))
    with transaction(connection, "IMMEDIATE"):
        connection.execute("DELETE FROM scoreboard")
        connection.execute(f"INSERT INTO scoreboard ({columns}) SELECT {columns} FROM ({_ROWS})")  # noqa: S608 - ours
        connection.execute("UPDATE state SET matched = ? WHERE matched < ?", (written, written))


def scoreboard_rows(
    connection: sqlite3.Connection, kind: TitleKind | None = None, limit: int | None = None
) -> Iterator[ScoreboardRow]:
    """Yield the embedded database's rows of a kind, or of all titles but seasons and episodes.

    IMDb's lists come first, in their order, then the other titles by votes.
    """
    if kind == "season":
        query = _PARTS_SHOWN.format(kind=kind, name="'Season ' || season", shown=_SHOWN, episode="NULL", imdb_id="NULL")
    elif kind == "episode":
        query = _PARTS_SHOWN.format(kind=kind, name="imdb_id", shown=_SHOWN, episode="episode", imdb_id="imdb_id")
    else:
        query = _TITLES_SHOWN.format(shown=_SHOWN)
    query = query.format(imdb_id="NULL" if kind == "season" else "imdb_id")
    found = connection.execute(query, {"kind": kind, "most": -1 if limit is None else limit})
    names = [name for name, *_ in found.description]
    for row in found:
        values: dict[str, Any] = dict(zip(names, row, strict=True))
        values["matched_by"] = msgspec.json.decode(values["matched_by"])
        yield ScoreboardRow(**values)
