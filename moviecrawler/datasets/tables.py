"""IMDb's datasets as tables: DuckDB reads the files, picks the rows of the wanted titles, and sorts them outside of memory."""

from __future__ import annotations

import gzip
import zlib
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

import duckdb

from moviecrawler.errors import ExtractionError, InterruptedReadError
from moviecrawler.extract.imdb_values import TITLE_KINDS

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path
    from typing import Self

    from moviecrawler.items import TitleKind

BASICS, RATINGS, CREW, PRINCIPALS = "title.basics", "title.ratings", "title.crew", "title.principals"
AKAS, EPISODE, NAMES = "title.akas", "title.episode", "name.basics"
COLUMNS: Final[Mapping[str, Sequence[str]]] = {
    BASICS: [
        "tconst",
        "titleType",
        "primaryTitle",
        "originalTitle",
        "startYear",
        "endYear",
        "runtimeMinutes",
        "genres",
    ],
    RATINGS: ("tconst", "averageRating", "numVotes"),
    CREW: ("tconst", "directors", "writers"),
    PRINCIPALS: ("tconst", "ordering", "nconst", "category", "characters"),
    AKAS: ("titleId", "ordering", "title", "region", "language", "types"),
    EPISODE: ("tconst", "parentTconst", "seasonNumber", "episodeNumber"),
    NAMES: ("nconst", "primaryName"),
}
"""The columns that are read of each dataset; the first is its id."""
_MEMORY = "256MB"
"""What DuckDB may hold; what is more goes to files."""
_MAX_HEADER_BYTES = 1 << 20
_MAX_ROWS_OF_A_TITLE = 10_000
"""The most known are some 2,000 rows of `title.akas`. A file with more is damaged."""
_FETCHED_ROWS = 2_000
_WANTED_AT_ONCE = 20_000
_TOP_TYPES = {"top": ["movie"], "toptv": ["tvSeries", "tvMiniSeries"]}
"""Title types of IMDb's top lists: a TV movie is no feature film."""
_TOP_SIZE, _POPULAR_SIZE = 250, 100
_TOP_VOTES, _POPULAR_VOTES = 25_000, 1_000


@dataclass(slots=True)
class Damage:
    """Damaged rows: how many, the first one, and the ids of those of each dataset."""

    count: int = 0
    first: ExtractionError | None = None
    ids: dict[str, set[str]] = field(default_factory=dict)

    def add(self, dataset: str, row_id: str, reason: object) -> None:
        """Count a damaged row of a title or person."""
        self.count += 1
        self.first = self.first or ExtractionError(dataset, url_of(dataset), f"the rows of {row_id}: {reason}")
        self.ids.setdefault(dataset, set()).add(row_id)


def url_of(dataset: str) -> str:
    """Return where IMDb publishes a dataset; its errors name it by this."""
    return f"https://datasets.imdbws.com/{dataset}.tsv.gz"


class Tables:
    """The datasets of some files. One thread at a time may use it; `interrupt` may be called by any."""

    def __init__(self, files: Mapping[str, Path], scratch: Path) -> None:
        """Take the files by the names of their datasets; what has no room in memory goes to the folder `scratch`."""
        self.files = files
        self.damage = Damage()
        config: dict[str, Any] = {
            "threads": 1,
            "memory_limit": _MEMORY,
            "temp_directory": str(scratch),
            # An extension would be downloaded.
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
        }
        self._connection = duckdb.connect(":memory:", config=config)
        self._connection.execute("SET enable_progress_bar = false")
        self._cursors: list[duckdb.DuckDBPyConnection] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the database, and remove its files."""
        for connection in (*self._cursors, self._connection):
            connection.close()

    def interrupt(self) -> None:
        """End what is being read, which then raises InterruptedReadError."""
        for connection in (self._connection, *self._cursors):
            connection.interrupt()

    # --- What is wanted -----------------------------------------------------------------------------------------------

    def want(self, ids: Iterable[str]) -> None:
        """Have the rows of these titles read."""
        self._run("CREATE OR REPLACE TABLE wanted (tconst VARCHAR, rank INTEGER)")
        ids = iter(dict.fromkeys(ids))
        while some := list(islice(ids, _WANTED_AT_ONCE)):
            self._run("INSERT INTO wanted SELECT unnest($some), NULL", some=some)

    def want_chart(self, name: str, limit: int | None) -> dict[str, int]:
        """Have the rows of a chart's titles read, too; return their ranks by id.

        `top` and `toptv` are the 250 titles of the highest weighted rating by IMDb's formula, v/(v+m)·R + m/(v+m)·C with m = 25,000
        votes and C the mean vote; `popular` and `populartv` the 100 of the most votes; `all` is every movie and series, unranked.
        """
        kinds: set[TitleKind] = {"series"} if name.endswith("tv") else {"movie"}
        if name == "all":
            chosen = f"SELECT tconst, NULL FROM {self._source(BASICS)} WHERE titleType IN $types LIMIT $size"
            self._add_wanted(chosen, types=types_of({"movie", "series"}), size=limit)
            return {}
        rated = f"""
            SELECT tconst, genres, TRY_CAST(averageRating AS DOUBLE) AS rating, TRY_CAST(numVotes AS BIGINT) AS votes
            FROM {self._source(BASICS)} JOIN {self._source(RATINGS)} USING (tconst) WHERE titleType IN $types"""
        points, fewest, size = "votes", _POPULAR_VOTES, _POPULAR_SIZE
        if name in _TOP_TYPES:
            points = f"(votes * rating + {_TOP_VOTES} * mean) / (votes + {_TOP_VOTES})"
            fewest, size = _TOP_VOTES, _TOP_SIZE
        # IMDb's own list of films has no documentaries; that of series has.
        films_only = "AND NOT list_contains(string_split(coalesce(genres, ''), ','), 'Documentary')"
        chosen = f"""
            WITH rated AS ({rated}), mean AS (SELECT sum(rating * votes) / sum(votes) AS mean FROM rated)
            SELECT tconst, row_number() OVER (ORDER BY {points} DESC, votes DESC, CAST(substr(tconst, 3) AS BIGINT)) AS rank
            FROM rated, mean WHERE votes >= {fewest} {films_only if name == "top" else ""} ORDER BY rank LIMIT $size"""
        self._add_wanted(chosen, types=_TOP_TYPES.get(name) or types_of(kinds), size=min(size, limit or size))
        return dict(self._run("SELECT tconst, rank FROM wanted WHERE rank IS NOT NULL ORDER BY rank").fetchall())

    def _add_wanted(self, chosen: str, **parameters: Any) -> None:
        with _of_file(BASICS):
            self._run(f"CREATE OR REPLACE TABLE chart (tconst, rank) AS {chosen}", **parameters)
        self._run("INSERT INTO wanted FROM chart")
        self._run(
            "CREATE OR REPLACE TABLE wanted AS SELECT tconst, max(rank)::INTEGER AS rank FROM wanted GROUP BY tconst"
        )
        self._drop_rejects()

    # --- Reading ------------------------------------------------------------------------------------------------------

    def load(self, table: str, dataset: str, rows: str, *, once: bool = False) -> None:
        """Make a table of some rows of a dataset, named by an SQL condition; with `once`, one row an id.

        Without the file, the table is empty. Raises ExtractionError for a damaged file, and InterruptedReadError.
        """
        columns, key = ", ".join(COLUMNS[dataset]), COLUMNS[dataset][0]
        if dataset not in self.files:
            self._run(f"CREATE OR REPLACE TABLE {table} ({', '.join(f'{name} VARCHAR' for name in COLUMNS[dataset])})")
            return
        distinct = f"DISTINCT ON ({key})" if once else ""
        with _of_file(dataset):
            self._run(
                f"CREATE OR REPLACE TABLE {table} AS SELECT {distinct} {columns} FROM {self._source(dataset)} WHERE {rows}"
            )
        self._count_rejects(dataset)
        most = self._run(
            f"SELECT {key}, count(*) AS rows FROM {table} GROUP BY ALL ORDER BY rows DESC LIMIT 1"
        ).fetchone()
        if most is not None and most[1] > _MAX_ROWS_OF_A_TITLE:
            raise ExtractionError("dataset", url_of(dataset), f"damaged: it has {most[1]} rows of {most[0]}")

    def select(self, query: str) -> Iterator[tuple[Any, ...]]:
        """Yield the rows of a query, sorted outside of memory. Several may be read by turns."""
        cursor = self._connection.cursor()
        cursor.execute("SET enable_progress_bar = false")
        self._cursors.append(cursor)
        with _interruptible():
            cursor.execute(query)
            while rows := cursor.fetchmany(_FETCHED_ROWS):
                yield from rows

    def titles(self, kinds: Collection[TitleKind], min_votes: int) -> Iterator[tuple[Any, ...]]:
        """Yield the columns of `title.basics` and the votes of each title of some kinds, in the file's order."""
        self.load("ratings", RATINGS, "true", once=True)
        self._run("CREATE OR REPLACE TABLE voted AS SELECT tconst, TRY_CAST(numVotes AS BIGINT) AS votes FROM ratings")
        columns = ", ".join(COLUMNS[BASICS])
        with _of_file(BASICS), _interruptible():
            found = self._connection.execute(
                f"SELECT {columns}, coalesce(votes, 0) FROM {self._source(BASICS)} LEFT JOIN voted USING (tconst)"
                " WHERE titleType IN $types AND coalesce(votes, 0) >= $fewest",
                {"types": types_of(kinds), "fewest": min_votes},
            )
            while rows := found.fetchmany(_FETCHED_ROWS):
                yield from rows
        self._count_rejects(BASICS)

    def _source(self, dataset: str) -> str:
        """Return SQL that reads a dataset's columns as text. Raises ExtractionError for a damaged file, or a missing column."""
        try:
            with gzip.open(self.files[dataset]) as file:
                header = file.readline(_MAX_HEADER_BYTES).decode(errors="replace").rstrip("\r\n").split("\t")
        except (OSError, EOFError, zlib.error) as error:
            raise ExtractionError("dataset", url_of(dataset), f"damaged or cut short: {error}") from error
        for column in COLUMNS[dataset]:
            if column not in header:
                reason = f"{dataset} has no such column; it has {', '.join(header)}"
                raise ExtractionError(column, url_of(dataset), reason)
        columns = ", ".join(f"{_quoted(name)}: 'VARCHAR'" for name in header)
        return (
            f"read_csv({_quoted(str(self.files[dataset]))}, delim='\t', quote='', escape='', nullstr=['\\N', ''], header=true,"
            f" compression='gzip', auto_detect=false, columns={{{columns}}}, store_rejects=true) AS \"{dataset}\""
        )

    def _count_rejects(self, dataset: str) -> None:
        """Count the rows that DuckDB has left out: those with other columns, or bytes that are no UTF-8."""
        query = "SELECT any_value(csv_line), any_value(error_message) FROM reject_errors GROUP BY scan_id, line ORDER BY line"
        for line, reason in self._run(query).fetchall():
            self.damage.add(dataset, line.split("\t")[0][:80], str(reason).partition("\n")[0])
        self._drop_rejects()

    def _drop_rejects(self) -> None:
        self._run("DELETE FROM reject_errors")

    def _run(self, query: str, **parameters: Any) -> duckdb.DuckDBPyConnection:
        with _interruptible():
            return self._connection.execute(query, parameters or None)


def types_of(kinds: Collection[TitleKind]) -> list[str]:
    """Return IMDb's title types of some kinds of titles."""
    return [name for name, kind in TITLE_KINDS.items() if kind in kinds]


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


@contextmanager
def _interruptible() -> Iterator[None]:
    try:
        yield
    except duckdb.InterruptException as error:
        raise InterruptedReadError("the crawl was ended before IMDb's datasets were read") from error


@contextmanager
def _of_file(dataset: str) -> Iterator[None]:
    """Turn DuckDB's errors of a file into ExtractionError."""
    try:
        yield
    except (duckdb.IOException, duckdb.InvalidInputException) as error:
        reason = str(error).partition("\n")[0]
        raise ExtractionError("dataset", url_of(dataset), f"damaged or cut short: {reason}") from error
