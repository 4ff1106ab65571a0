"""IMDb's datasets as tables.

DuckDB reads the files, picks the rows of the wanted titles, and sorts them outside of memory.
"""

from __future__ import annotations

import shutil
import time
from contextlib import suppress
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final

import duckdb

from moviecrawler.errors import ExtractionError, InterruptedReadError, MovieCrawlerError
from moviecrawler.extract.imdb_values import TITLE_KINDS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

BASICS = "title.basics"
RATINGS = "title.ratings"
CREW = "title.crew"
PRINCIPALS = "title.principals"
AKAS = "title.akas"
EPISODE = "title.episode"
NAMES = "name.basics"
COLUMNS: Final[Mapping[str, str]] = {
    BASICS: (
        "tconst, titleType, primaryTitle, originalTitle, startYear, endYear, runtimeMinutes, genres"
    ),
    RATINGS: "tconst, averageRating, numVotes",
    CREW: "tconst, directors, writers",
    PRINCIPALS: "tconst, ordering, nconst, category, characters",
    AKAS: "titleId, ordering, title, region, language, types",
    EPISODE: "tconst, parentTconst, seasonNumber, episodeNumber",
    NAMES: "nconst, primaryName",
}
"""The columns that are read of each dataset; the first is its id."""
# The most known are some 2,000 rows of `title.akas`. A file with more is damaged.
_MAX_ROWS_OF_AN_ID = 10_000
_ROWS_AT_ONCE = 5_000
_MAX_PASS_SECONDS = 86_400
# What needs more memory goes to files beside the database; an extension would be downloaded.
_SETTINGS = """SET threads = 1; SET memory_limit = '320MB'; SET preserve_insertion_order = false;
    SET autoinstall_known_extensions = false; SET autoload_known_extensions = false"""
_WEIGHTED = "(votes * rating + 25000 * mean) / (votes + 25000)"
_CHARTS: Final = {
    # IMDb's own list of films has no TV movies and no documentaries; that of series has.
    "top": (
        ["movie"],
        "votes >= 25000 AND coalesce(genres, '') NOT LIKE '%Documentary%'",
        _WEIGHTED,
        250,
    ),
    "toptv": (["tvSeries", "tvMiniSeries"], "votes >= 25000", _WEIGHTED, 250),
    "popular": (["movie", "tvMovie"], "votes >= 1000", "votes", 100),
    "populartv": (["tvSeries", "tvMiniSeries"], "votes >= 1000", "votes", 100),
}
"""Title types, condition, order and size of each chart."""


class Tables:
    """The datasets of some files.

    One thread at a time may use it; `interrupt` may be called by any.
    """

    def __init__(
        self, files: Mapping[str, Path], scratch: Path, *, is_downloaded: bool = False
    ) -> None:
        """Take the files by dataset; a damaged one is removed if it `is_downloaded`.

        Tables are in a new folder in `scratch`.
        """
        self.files = files
        self._is_downloaded = is_downloaded
        self.damaged: dict[tuple[str, str], tuple[int, str]] = {}
        """How many rows of a title or person are damaged, and what is wrong with the first, by
        dataset and id. They are left out."""
        scratch.mkdir(parents=True, exist_ok=True)
        for left in scratch.glob("pass-*"):  # of a process that was killed
            if left.stat().st_mtime < time.time() - _MAX_PASS_SECONDS:
                shutil.rmtree(left, ignore_errors=True)
        self._folder = TemporaryDirectory(prefix="pass-", dir=scratch)
        self._connection = duckdb.connect(f"{self._folder.name}/tables")
        self.run(f"{_SETTINGS}; CREATE TABLE wanted (tconst VARCHAR)")

    def close(self) -> None:
        """Close the database, and remove its files."""
        self._connection.close()
        self._folder.cleanup()

    def interrupt(self) -> None:
        """End what is being read, which then raises InterruptedReadError."""
        with suppress(duckdb.ConnectionException):  # it is closed
            self._connection.interrupt()

    def want(self, ids: Sequence[str]) -> None:
        """Have the rows of these titles read, too."""
        for begin in range(0, len(ids), _ROWS_AT_ONCE):
            self.run(
                "INSERT INTO wanted SELECT unnest($some)", some=ids[begin : begin + _ROWS_AT_ONCE]
            )

    def want_chart(self, name: str, limit: int | None) -> dict[str, int]:
        """Have the rows of a chart's titles read, too; return their ranks by id.

        `top` and `toptv` are the 250 titles of the highest weighted rating by IMDb's formula,
        v/(v+m)·R + m/(v+m)·C with m = 25,000 votes and C the mean vote; `popular` and `populartv`
        the 100 of the most votes; `all` is every movie and series, unranked.
        """
        ranks: dict[str, int] = {}
        if name == "all":
            query = (
                f"INSERT INTO wanted SELECT tconst FROM {self.source(BASICS)} "
                "WHERE titleType IN $types LIMIT $size"
            )
            types = [name for name, kind in TITLE_KINDS.items() if kind in {"movie", "series"}]
            self.run(query, types=types, size=limit)
        else:
            types, chosen, points, size = _CHARTS[name]
            query = f"""
                WITH rated AS (
                    SELECT
                        tconst,
                        genres,
                        TRY_CAST(averageRating AS DOUBLE) AS rating,
                        TRY_CAST(numVotes AS BIGINT) AS votes
                    FROM {self.source(BASICS)}
                    JOIN {self.source(RATINGS)} USING (tconst)
                    WHERE titleType IN $types
                ), mean AS (SELECT sum(rating * votes) / sum(votes) AS mean FROM rated)
                SELECT
                    tconst,
                    row_number() OVER (
                        ORDER BY {points} DESC, votes DESC, CAST(substr(tconst, 3) AS BIGINT)
                    ) AS rank
                FROM rated, mean
                WHERE {chosen}
                ORDER BY rank
                LIMIT $size"""
            ranks = dict(self.run(query, types=types, size=min(size, limit or size)))
        self.run("DELETE FROM reject_errors")  # they are noted when the rows are loaded
        self.want(list(ranks))
        return ranks

    def load(self, table: str, dataset: str, rows: str, *, once: bool = False) -> None:
        """Make a table of some rows of a dataset, named by an SQL condition.

        Without the file, it is empty. With `once`, it has one row an id. Raises ExtractionError for
        a damaged file, and InterruptedReadError.
        """
        columns = COLUMNS[dataset]
        site_id = columns.partition(",")[0]
        if dataset not in self.files:
            self.run(
                f"CREATE OR REPLACE TABLE {table} ({columns.replace(',', ' VARCHAR,')} VARCHAR)"
            )
            return
        chosen = f"DISTINCT ON ({site_id}) {columns}" if once else columns
        self.run(
            f"CREATE OR REPLACE TABLE {table} AS "
            f"SELECT {chosen} FROM {self.source(dataset)} WHERE {rows}"
        )
        self.note_rejects(dataset)
        many = (
            f"SELECT {site_id}, count(*) FROM {table} "
            f"GROUP BY 1 HAVING count(*) > {_MAX_ROWS_OF_AN_ID}"
        )
        for row_id, count in self.run(many):
            raise self._damaged(dataset, f"damaged: it has {count} rows of {row_id}")

    def select(self, query: str, **parameters: Any) -> Iterator[tuple[Any, ...]]:
        """Yield the rows of a query.

        Raises ExtractionError for a damaged file, and InterruptedReadError.
        """
        try:
            found = self._connection.execute(query, parameters or None)
            while rows := found.fetchmany(_ROWS_AT_ONCE):
                yield from rows
        except duckdb.InterruptException as error:
            raise InterruptedReadError(
                "the crawl was ended before IMDb's datasets were read"
            ) from error
        except duckdb.Error as error:
            reason = str(error).partition("\n")[0]
            if self._folder.name in reason:
                raise MovieCrawlerError(
                    f"{reason}; free some space there, or set DATA_DIR to a larger disk"
                ) from error
            for dataset, path in self.files.items():
                # Errors of other kinds may quote the query.
                if str(path) in str(error) and isinstance(
                    error, duckdb.IOException | duckdb.InvalidInputException
                ):
                    raise self._damaged(dataset, f"damaged or cut short: {reason}") from error
            raise

    def source(self, dataset: str) -> str:
        """Return SQL that reads a dataset's columns as text.

        Raises ExtractionError for a damaged file, or a missing column.
        """
        path = str(self.files[dataset]).replace("'", "''")
        options = (
            r"delim='\t', quote='', escape='', nullstr=['\N', ''], "
            "header=true, all_varchar=true, compression='gzip'"
        )
        # Of a small sample, no more than the names of the columns are guessed.
        file = (
            f"read_csv('{path}', {options}, sample_size=1, buffer_size=4000000, store_rejects=true)"
        )
        header = [name for name, *_ in self.run(f"DESCRIBE FROM {file}")]
        for column in COLUMNS[dataset].split(", "):
            if column not in header:
                raise self._damaged(
                    dataset, f"the file has no such column; it has {', '.join(header)}", column
                )
        return f'{file} AS "{dataset}"'

    def _damaged(self, dataset: str, reason: str, field: str = "dataset") -> ExtractionError:
        if self._is_downloaded:
            self.files[dataset].unlink(missing_ok=True)
            reason += "; the file is fetched anew next time"
        return ExtractionError(field, str(self.files[dataset]), reason)

    def note_rejects(self, dataset: str) -> None:
        """Note the rows that DuckDB has left out.

        These are rows with other columns, or with bytes that are no UTF-8.
        """
        query = (
            "SELECT any_value(csv_line), any_value(error_message) FROM reject_errors "
            "GROUP BY scan_id, line ORDER BY line"
        )
        for line, reason in self.run(query):
            self.note(dataset, line.split("\t")[0][:80], str(reason).partition("\n")[0])
        self.run("DELETE FROM reject_errors")

    def note(self, dataset: str, row_id: str, reason: str) -> None:
        """Note a damaged row."""
        rows, first = self.damaged.get((dataset, row_id), (0, reason))
        self.damaged[dataset, row_id] = rows + 1, first

    def run(self, query: str, **parameters: Any) -> list[tuple[Any, ...]]:
        """Run a statement; return the rows that it gives."""
        return list(self.select(query, **parameters))
