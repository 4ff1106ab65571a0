"""IMDb's datasets as tables.

DuckDB reads the files, picks the rows of the wanted titles, and sorts them outside of memory.
"""

from __future__ import annotations

import re
import shutil
import time
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import duckdb

from moviecrawler.basics.errors import ExtractionError, InterruptedReadError, MovieCrawlerError
from moviecrawler.sites import ID_SITE, SITES
from moviecrawler.sites.imdb.credits import PERSON_ID
from moviecrawler.sites.imdb.values import TITLE_KINDS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

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
_TITLE_ID = re.compile(SITES[ID_SITE].ids.pattern)
_ID = re.compile(rf"{_TITLE_ID.pattern}|{PERSON_ID.pattern}", re.ASCII)
NO_ID = ""
"""Stands in `Tables.damaged` for the id of a row whose id can't be read."""
TITLE_TYPE = "[A-Za-z]+"
"""The form of a title's type."""
# The most known are some 2,000 rows of `title.akas`. A file with more is damaged.
_MAX_ROWS_OF_AN_ID = 10_000
_MAX_ROW_CHARS = 200
"""Characters that are shown of a damaged row."""
_ROWS_AT_ONCE = 5_000
_MAX_PASS_SECONDS = 86_400
_MB = 1_000_000
_LEAST_MEMORY_MB = 100
"""Memory of DuckDB; large files get more, as sorting them in files takes longer."""
_MOST_MEMORY_MB = 320
# An extension would be downloaded.
_SETTINGS = """SET threads = 1; SET memory_limit = '{} MB'; SET preserve_insertion_order = false;
    SET autoinstall_known_extensions = false; SET autoload_known_extensions = false"""
_LISTED = f"""
    CREATE TABLE listed AS
    SELECT tconst, genres
    FROM {{}}
    WHERE titleType IN $types OR regexp_full_match(titleType, '{TITLE_TYPE}') IS NOT TRUE"""
_RATED = """
    CREATE TABLE rated AS
    SELECT
        tconst,
        TRY_CAST(averageRating AS DOUBLE) AS given_rating,
        TRY_CAST(numVotes AS BIGINT) AS given_votes,
        given_votes BETWEEN 1 AND 1000000000 AS has_votes
    FROM {}"""
_CHARTED = """
    CREATE TABLE charted AS
    SELECT DISTINCT ON (tconst)
        tconst,
        genres,
        CASE WHEN given_rating BETWEEN 1 AND 10 AND has_votes THEN given_rating END AS rating,
        CASE WHEN has_votes THEN given_votes ELSE 1000000000 END AS votes
    FROM listed
    JOIN rated USING (tconst)
    ORDER BY tconst, rating IS NULL, votes"""
"""The titles that may be in a chart, each once. Where the row in `title.ratings` is damaged, there
is no rating, and the most votes that there can be."""
_RANKS = """
    WITH average AS (
        SELECT sum(rating * votes) / sum(votes) AS mean FROM charted WHERE rating IS NOT NULL
    )
    SELECT
        tconst,
        row_number() OVER (
            ORDER BY {points} DESC, votes DESC, CAST(substr(tconst, 3) AS BIGINT)
        ) AS rank
    FROM charted, average
    WHERE {condition} AND rating IS NOT NULL
    ORDER BY rank
    LIMIT $size"""
_WEIGHTED = "(votes * rating + 25000 * mean) / (votes + 25000)"


class Chart(NamedTuple):
    """What is in a chart, in SQL."""

    types: tuple[str, ...]
    condition: str
    points: str
    """What the titles are ranked by."""
    size: int


# IMDb's own list of films has no TV movies and no documentaries; that of series has.
CHARTS: Final = {
    "top": Chart(
        types=("movie",),
        condition="votes >= 25000 AND coalesce(genres, '') NOT LIKE '%Documentary%'",
        points=_WEIGHTED,
        size=250,
    ),
    "toptv": Chart(
        types=("tvSeries", "tvMiniSeries"),
        condition="votes >= 25000",
        points=_WEIGHTED,
        size=250,
    ),
    "popular": Chart(
        types=("movie", "tvMovie"),
        condition="votes >= 1000",
        points="votes",
        size=100,
    ),
    "populartv": Chart(
        types=("tvSeries", "tvMiniSeries"),
        condition="votes >= 1000",
        points="votes",
        size=100,
    ),
}
_ALL_TYPES = tuple(name for name, kind in TITLE_KINDS.items() if kind in {"movie", "series"})
"""The title types of the list `all`."""


class Tables:
    """The datasets of some files.

    One thread at a time may use it; `interrupt` may be called by any.
    """

    def __init__(
        self, files: Mapping[str, Path], scratch: Path, *, is_downloaded: bool = False
    ) -> None:
        """Take the files by dataset; a damaged one is removed if it `is_downloaded`.

        What does not fit into memory is in a new folder in `scratch`.
        """
        self.files = files
        self._is_downloaded = is_downloaded
        self.damaged: dict[tuple[str, str], tuple[int, str]] = {}
        """How many rows of a title or person are damaged, and what is wrong with the first, by
        dataset and id. They are left out."""
        self.list_size = 0
        """The number of titles of the list that is read."""
        scratch.mkdir(parents=True, exist_ok=True)
        for left in scratch.glob("pass-*"):  # of a process that was killed
            if left.stat().st_mtime < time.time() - _MAX_PASS_SECONDS:
                shutil.rmtree(left, ignore_errors=True)
        self._folder = TemporaryDirectory(prefix="pass-", dir=scratch)
        self.folder = Path(self._folder.name)
        """Where what does not fit into memory is, which is removed when they are closed."""
        self._connection = duckdb.connect(config={"temp_directory": str(self.folder)})
        size = sum(path.stat().st_size for path in files.values()) // _MB
        self.run(_SETTINGS.format(min(_LEAST_MEMORY_MB + size, _MOST_MEMORY_MB)))
        self.run("CREATE TABLE wanted (tconst VARCHAR)")
        self.run("CREATE TABLE unchanged (id VARCHAR, read_at VARCHAR, request VARCHAR)")

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
        self._insert("wanted", ids)

    def want_all(self, limit: int | None) -> None:
        """Have the rows of every movie and series read, too, or of the first ones by id.

        Every damaged row counts as that of a movie or a series.
        """
        self._make_listed(_ALL_TYPES, tuple(TITLE_KINDS))
        ((self.list_size,),) = self.run(
            "INSERT INTO wanted SELECT DISTINCT tconst FROM listed ORDER BY tconst LIMIT $size",
            size=limit,
        )

    def want_episodes(self) -> None:
        """Have the rows of all episodes of the wanted series read, too."""
        episodes = f"SELECT tconst FROM {self.source(EPISODE)} WHERE parentTconst IN (FROM wanted)"
        self.run(f"INSERT INTO wanted {episodes} AND NOT {_has_no_id('tconst')}")
        self._connection.execute("DELETE FROM reject_errors")  # read again, and noted, by `load`

    def want_chart(self, name: str, limit: int | None) -> dict[str, int]:
        """Have the rows of a chart's titles read, too; return their ranks by id.

        `top` and `toptv` are the 250 titles of the highest weighted rating by IMDb's formula,
        v/(v+m)·R + m/(v+m)·C with m = 25,000 votes and C the mean vote; `popular` and `populartv`
        the 100 of the most votes.

        A title whose row in `title.basics` is damaged has a rank, too, so that those of the others
        stay what they are. One that may be in the chart, and whose row in `title.ratings` is
        damaged, has none.
        """
        chart = CHARTS[name]
        self._make_listed(chart.types, chart.types)
        self.run(_RATED.format(self.source(RATINGS)))
        self._insert("rated (tconst)", [line.split("\t")[0] for line, _ in self._take_rejects()])
        self.run(_CHARTED)
        ranks = dict(
            self.run(
                _RANKS.format(points=chart.points, condition=chart.condition),
                size=min(chart.size, limit or chart.size),
            )
        )
        unranked = [
            site_id
            for (site_id,) in self.run(
                f"SELECT tconst FROM charted WHERE {chart.condition} AND rating IS NULL"
            )
        ]
        self.list_size = len(ranks) + len(unranked)
        self.want([*ranks, *unranked])
        return ranks

    def load(
        self, table: str, dataset: str, rows: str, *, right: str = "true", once: bool = False
    ) -> None:
        """Make a table of some rows of a dataset.

        Damaged rows are left out and noted. Raises ExtractionError for a damaged file, and
        InterruptedReadError.

        Args:
            table: Its name. Without the file, it is empty.
            dataset: The dataset.
            rows: Which rows, an SQL condition. Those whose id can't be read are looked at, too.
            right: What is true of a row that is not damaged.
            once: Whether it has one row per id.
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
            f"SELECT {chosen} FROM {self.source(dataset)} WHERE ({rows}) OR {_has_no_id(site_id)}"
        )
        self.note_rejects(dataset)
        has_no_id = _has_no_id(site_id)
        many = (
            f"SELECT {site_id}, count(*) FROM {table} "
            f"GROUP BY 1 HAVING count(*) > {_MAX_ROWS_OF_AN_ID} AND NOT ({has_no_id})"
        )
        for row_id, count in self.run(many):
            raise self._damaged(dataset, f"damaged: it has {count} rows of {row_id}")
        wrong = f"FROM {table} WHERE {has_no_id} OR ({right}) IS NOT TRUE"
        known_id = f"CASE WHEN {has_no_id} THEN '{NO_ID}' ELSE {site_id} END"
        row = f"left(min(json_array({columns})::VARCHAR), {_MAX_ROW_CHARS})"
        found = self.run(f"SELECT {known_id}, count(*), {row} {wrong} GROUP BY 1")
        for row_id, count, example in found:
            self.note(dataset, row_id, f"a value is wrong in {example}", count)
        if found:
            self.run(f"DELETE {wrong}")

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
        for line, reason in self._take_rejects():
            row_id, _, cells = line.partition("\t")
            self.note(dataset, row_id, reason.partition("\n")[0])
            # Without the line break between them, two rows are one line.
            if dataset in {BASICS, RATINGS} and _TITLE_ID.search(cells):
                self.note(dataset, NO_ID, "it stands in the line of another row")

    def note(self, dataset: str, row_id: str | None, reason: str, rows: int = 1) -> None:
        """Note damaged rows of one id."""
        key = dataset, row_id if row_id and _ID.fullmatch(row_id) else NO_ID
        before, first = self.damaged.get(key, (0, reason))
        self.damaged[key] = before + rows, first

    def _make_listed(self, types: Sequence[str], types_of_damaged: Sequence[str]) -> None:
        """Make a table of all titles of some types, and of those of damaged rows.

        A damaged row that shows its type must be of the second ones.
        """
        self.run(_LISTED.format(self.source(BASICS)), types=types)
        damaged = [line.split("\t") for line, _ in self._take_rejects()]
        self._insert(
            "listed (tconst)",
            [cells[0] for cells in damaged if _may_have_type(cells, types_of_damaged)],
        )
        self.run(f"DELETE FROM listed WHERE {_has_no_id('tconst')}")

    def _take_rejects(self) -> list[tuple[str, str]]:
        """Return the lines that DuckDB has left out since the last call, each with the reason."""
        rejects = self.run(
            "SELECT any_value(csv_line), any_value(error_message) FROM reject_errors "
            "GROUP BY scan_id, line ORDER BY line"
        )
        self.run("DELETE FROM reject_errors")
        return rejects

    def _insert(self, table: str, ids: Sequence[str]) -> None:
        for begin in range(0, len(ids), _ROWS_AT_ONCE):
            self.run(
                f"INSERT INTO {table} SELECT unnest($some)", some=ids[begin : begin + _ROWS_AT_ONCE]
            )

    def run(self, query: str, **parameters: Any) -> list[tuple[Any, ...]]:
        """Run a statement; return the rows that it gives."""
        return list(self.select(query, **parameters))


def _has_no_id(column: str) -> str:
    """Return the SQL condition of a row whose id can't be read."""
    return f"regexp_full_match({column}, '{_ID.pattern}') IS NOT TRUE"


def _may_have_type(cells: list[str], types: Sequence[str]) -> bool:
    """Return whether a damaged row of `title.basics` may be that of a title of these types."""
    shown = TITLE_KINDS.keys() & cells
    return not shown or not shown.isdisjoint(types)
