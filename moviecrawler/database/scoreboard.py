"""The scoreboard, one row a title with every site's scores.

This makes it in the embedded database, and reads its rows.

IMDb rates no seasons: a season's rating is the mean of its episodes', weighted by votes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import msgspec

from moviecrawler.basics.progress import Progress
from moviecrawler.database.aliases import embedded_aliases
from moviecrawler.database.records import COMPARED, read_stored
from moviecrawler.database.sql import read_sql
from moviecrawler.database.sqlite import SqliteTables, last_record_id, transaction
from moviecrawler.matching.forms import block_keys
from moviecrawler.matching.titles import match_titles, newer_records, title_of
from moviecrawler.sites import BY_AUTHORITY, ID_SITE, SCORES, SITES
from moviecrawler.sites.ids import by_authority

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Iterator, Mapping
    from typing import Self

    from moviecrawler.database.records import Stored
    from moviecrawler.items import ScoreKind, Site, TitleKind


@dataclass(slots=True, kw_only=True)
class ScoreboardRow:
    """A title's scores on all sites.

    None where a site hasn't the title, or the title no such score.
    """

    title: str
    year: int | None
    kind: TitleKind
    scores: dict[ScoreKind, float | None]
    """Those that each site shows as its own."""
    imdb_votes: int | None
    site_ids: dict[Site, str | None]
    tmdb_id: int | None
    """TMDB's id: of a series under themoviedb.org/tv/, of everything else under
    themoviedb.org/movie/."""
    matched_by: list[str] = field(default_factory=list)
    """Why the sites' records are taken for one title."""
    series_title: str | None = None
    """This and the following fields are of seasons and episodes only."""
    series_imdb_id: str | None = None
    """None where IMDb's page or dataset row of the series is not stored."""
    season: int | None = None
    episode: int | None = None

    @property
    def imdb_id(self) -> str | None:
        """Its id on IMDb."""
        return self.site_ids[ID_SITE]

    @property
    def imdb_rating_derived(self) -> bool:
        """Whether the rating is not IMDb's own, but the mean of a season's episodes."""
        return self.kind == "season" and self.scores["imdb"] is not None

    @classmethod
    def read(cls, values: dict[str, Any]) -> Self:
        """Return a row of a database, by the names of its columns."""
        scores = {kind: values.pop(name) for kind, name in SCORE_COLUMNS.items()}
        site_ids = {site: values.pop(name) for site, name in ID_COLUMNS.items()}
        return cls(scores=scores, site_ids=site_ids, **values)

    def value(self, column: str) -> Any:
        """Return the value of a column."""
        if column in _KINDS:
            return self.scores[_KINDS[column]]
        return self.site_ids[_SITES[column]] if column in _SITES else getattr(self, column)


SCORE_COLUMNS: Final = {
    kind: columns[0] for kind, score in SCORES.items() if (columns := score.columns)
}
ID_COLUMNS: Final = {site: f"{site}_id" for site in SITES}
_KINDS: Final = {column: kind for kind, column in SCORE_COLUMNS.items()}
_SITES: Final = {column: site for site, column in ID_COLUMNS.items()}
_RECORDS_AT_ONCE = 5_000
"""Records of IMDb that are in memory while it is decided which are compared."""
_PLACE = read_sql("place_embedded.sql")
_VALUES = ", ".join(
    f"CAST({column} AS double precision) AS {column}" for column in SCORE_COLUMNS.values()
)
_OTHER_IDS = [column for site, column in ID_COLUMNS.items() if site != ID_SITE]
_OTHERS = ", ".join(_OTHER_IDS)
_BY_OTHERS = ",\n    ".join(
    f"{ID_COLUMNS[site]} COLLATE {{bytes}} NULLS LAST" for site in BY_AUTHORITY if site != ID_SITE
)
_TITLES = """
SELECT title, year, kind, {values}, imdb_votes, imdb_id, {others}, tmdb_id, matched_by
FROM scoreboard
{where}
ORDER BY imdb_list_rank NULLS LAST,
    imdb_votes DESC NULLS LAST,
    best_list_rank NULLS LAST,
    title COLLATE {bytes},
    imdb_id COLLATE {bytes} NULLS LAST,
    {by_others}
"""
_PARTS = """
SELECT coalesce(title, {name}) AS title, year, '{kind}' AS kind, {values}, imdb_votes,
    {imdb_id} AS imdb_id, {others}, NULL AS tmdb_id,
    series_title, series_imdb_id, season, {episode} AS episode
FROM {kind}_scores
ORDER BY imdb_votes DESC NULLS LAST,
    series_title COLLATE {bytes} NULLS LAST,
    season NULLS LAST,
    {episode} NULLS LAST,
    {imdb_id} COLLATE {bytes} NULLS LAST,
    {by_others}
"""
_OF_PARTS: dict[TitleKind | None, dict[str, str]] = {
    "season": {
        "name": "'Season ' || season",
        "imdb_id": "CAST(NULL AS text)",
        "episode": "CAST(NULL AS integer)",
    },
    "episode": {"name": "imdb_id", "imdb_id": "imdb_id", "episode": "episode"},
}


def scoreboard_query(collation: str, kind: TitleKind | None, limit: int | None) -> str:
    """Return the query of a database for the scoreboard's rows: all or the first `limit`.

    They are those of a kind, or of all titles but seasons and episodes. IMDb's main list comes
    first, then the other titles by votes. `collation` is the database's name for the order of
    bytes.
    """
    named = {
        "values": _VALUES,
        "others": _OTHERS,
        "by_others": _BY_OTHERS.format(bytes=collation),
        "bytes": collation,
    }
    if kind in _OF_PARTS:
        query = _PARTS.format(kind=kind, **named, **_OF_PARTS[kind])
    else:
        query = _TITLES.format(where=f"WHERE kind = '{kind}'" if kind else "", **named)
    return query if limit is None else f"{query} LIMIT {limit:d}"


def match_embedded(
    connection: sqlite3.Connection, report: Callable[[str], object] = lambda _: None
) -> None:
    """Decide which records of the embedded database are one title. Raises sqlite3.Error.

    Only records that may share their title with another one are in memory. `report` is called with
    a line of progress every ten seconds.
    """
    tables = SqliteTables(connection)
    with transaction(connection, "DEFERRED"):
        ((written,),) = connection.execute("SELECT written FROM state")
        aliases = embedded_aliases(connection)
        found = _compared(connection, aliases.get(ID_SITE, {}), report)
    movies = [stored.movie for stored in found]
    ids = {id(stored.movie): stored.record_id for stored in found}
    older = newer_records(movies, aliases)
    # The record_id, the title_id and the newer_id of each record.
    placed: list[tuple[int, int | None, int | None]] = [
        (found[number].record_id, None, found[newer].record_id) for number, newer in older.items()
    ]
    matched_by = []
    shown = (movie for number, movie in enumerate(movies) if number not in older)
    for joined in match_titles(shown):
        records = [ids[id(joined.movies[site])] for site in by_authority(joined.movies)]
        placed += [(record_id, records[0], None) for record_id in records]
        reasons = [", ".join(match.reasons) for match in joined.matches]
        matched_by.append((records[0], msgspec.json.encode(reasons).decode()))
    with (
        Progress(report, "writing the titles of all records"),
        transaction(connection, "IMMEDIATE"),
    ):
        connection.execute(
            "CREATE TEMPORARY TABLE placed (record_id INTEGER PRIMARY KEY, title_id, newer_id)"
        )
        connection.execute(
            "CREATE TEMPORARY TABLE matched (title_id INTEGER PRIMARY KEY, matched_by)"
        )
        connection.executemany("INSERT INTO placed VALUES (?, ?, ?)", placed)
        connection.executemany("INSERT INTO matched VALUES (?, ?)", matched_by)
        tables.run(_PLACE)
        connection.execute("UPDATE state SET matched = ? WHERE matched < ?", (written, written))


def has_other_sites(connection: sqlite3.Connection) -> bool:
    """Return whether there are records with which those of IMDb are compared."""
    query = "SELECT EXISTS (SELECT 1 FROM records WHERE site < ? OR site > ?)"
    ((has_some,),) = connection.execute(query, (ID_SITE, ID_SITE))
    return bool(has_some)


def _compared(
    connection: sqlite3.Connection, aliases: Mapping[str, str], report: Callable[[str], object]
) -> list[Stored]:
    """Return the records that may be one title with another, in their order.

    They are those of all other sites, those of IMDb that share a key with one of them, and those
    that `aliases` of IMDb name.
    """
    tables = SqliteTables(connection)
    condition = "kind NOT IN ('season', 'episode') AND site"
    found = read_stored(tables, f"{condition} <> {{mark}}", (), ID_SITE, view=COMPARED)
    named = {*aliases, *aliases.values()}
    if not found and not named:
        return []
    keys = {key for stored in found for key in block_keys(title_of(stored.movie))}
    last = last_record_id(connection)
    part = f"{condition} = {{mark}} AND record_id BETWEEN {{mark}} AND {{mark}}"
    with Progress(report, "comparing IMDb's records with those of other sites", last) as progress:
        for first in range(1, last + 1, _RECORDS_AT_ONCE):
            through = first + _RECORDS_AT_ONCE - 1
            for stored in read_stored(tables, part, (), ID_SITE, first, through, view=COMPARED):
                title = title_of(stored.movie)
                if stored.movie.site_id in named or not keys.isdisjoint(block_keys(title)):
                    found.append(stored)
            progress.done = min(through, last)
    return sorted(found, key=lambda stored: stored.record_id)


def scoreboard_rows(
    connection: sqlite3.Connection, kind: TitleKind | None = None, limit: int | None = None
) -> Iterator[ScoreboardRow]:
    """Yield the embedded database's rows of `scoreboard_query`."""
    found = connection.execute(scoreboard_query("BINARY", kind, limit))
    names = [name for name, *_ in found.description]
    for row in found:
        values: dict[str, Any] = dict(zip(names, row, strict=True))
        if "matched_by" in values:
            values["matched_by"] = msgspec.json.decode(values["matched_by"])
        yield ScoreboardRow.read(values)
