r"""IMDb's datasets: tab-separated, a header line, `\N` for null, no quoting (https://developer.imdb.com/non-commercial-datasets/).

Here are the readers of rows, and of `title.basics` with `title.ratings`; `dataset_titles.py` reads all datasets.

A `Table` takes a dataset's decompressed blocks, cut anywhere, and holds one block at a time: `gunzip` makes them of a
file. It raises ExtractionError for a header without a column that it needs, and for data that ends inside a row; the error
of a damaged row is given to `on_error`, and the next row is read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, BinaryIO, Final, Protocol, TypeVar

from isal import igzip, isal_zlib

from moviecrawler.errors import ExtractionError
from moviecrawler.extract.imdb_credits import PERSON_ID
from moviecrawler.extract.imdb_values import TITLE_KINDS
from moviecrawler.extract.values import check_runtime, check_year
from moviecrawler.fields import silent_in_datasets
from moviecrawler.items import Movie, Score
from moviecrawler.urls import IMDB_ID, title_url

if TYPE_CHECKING:
    from moviecrawler.items import TitleKind

Blocks = Iterable[bytes]
OnError = Callable[[ExtractionError], object]
Row = tuple[bytes, ...]
Part = tuple[bytes, bytes]
"""All rows of one title, or person, in one dataset, as whole lines, and its id."""
_T = TypeVar("_T")

_HOME = "https://datasets.imdbws.com/"
NULL = rb"\N"
_NOTHING = (NULL, b"")
"""How a value that is not known is written; older files leave some fields empty."""
BASICS, RATINGS, CREW, PRINCIPALS = "title.basics", "title.ratings", "title.crew", "title.principals"
AKAS, EPISODE, NAMES = "title.akas", "title.episode", "name.basics"
COLUMNS: Final[dict[str, tuple[str, ...]]] = {
    BASICS: (
        *("tconst", "titleType", "primaryTitle", "originalTitle"),
        *("startYear", "endYear", "runtimeMinutes", "genres"),
    ),
    RATINGS: ("tconst", "averageRating", "numVotes"),
    CREW: ("tconst", "directors", "writers"),
    PRINCIPALS: ("tconst", "ordering", "nconst", "category", "characters"),
    AKAS: ("titleId", "ordering", "title", "region", "language", "types"),
    EPISODE: ("tconst", "parentTconst", "seasonNumber", "episodeNumber"),
    NAMES: ("nconst", "primaryName"),
}
"""The columns that are read of each dataset; the first is the id by which its rows stand together."""
_LONGEST_GROUP = 64 * 1024 * 1024
"""Bytes of all rows of one title in a dataset; the most known are some 100 KB."""
_SHOWN = 80
_BLOCK = 1 << 20
_LONGEST_LINE = 1 << 20
_RATING = re.compile(rb"(\d{1,2})\.(\d)")
_VOTES_SHIFT = 7
"""Bits below the votes in a packed rating: enough for a rating in tenths, 10 to 100."""


@dataclass(slots=True)
class Damage:
    """What was damaged in some datasets: millions of rows may be, so that only the first error is kept."""

    count: int = 0
    first: ExtractionError | None = None
    titles: set[str] = field(default_factory=set)
    """The ids of titles that were asked for, and can't be read as their row in `title.basics` is damaged."""

    def add(self, error: ExtractionError) -> None:
        """Count the error of a damaged row."""
        self.count += 1
        self.first = self.first or error


def url_of(dataset: str) -> str:
    """Return where IMDb publishes a dataset; its errors name it by this."""
    return f"{_HOME}{dataset}.tsv.gz"


def gunzip(file: BinaryIO, url: str | None = None) -> Iterator[bytes]:
    """Yield the decompressed blocks of a gzip file. Raises ExtractionError, with its `url`, when it is damaged or cut short."""
    try:
        with igzip.IGzipFile(fileobj=file) as unzipped:  # type: ignore[no-untyped-call] # isal types its C parts only
            while block := unzipped.read(_BLOCK):
                yield block
    except (EOFError, igzip.BadGzipFile, isal_zlib.error) as error:  # type: ignore[misc] # its stub has no class
        raise ExtractionError("dataset", url, f"damaged or cut short: {error}") from error


def movies(
    basics: Blocks,
    ratings: Blocks,
    *,
    on_error: OnError,
    kinds: Collection[TitleKind] | None = None,
    min_votes: int = 0,
) -> Iterator[Movie]:
    """Yield the titles of title.basics, in its order, each with its rating from title.ratings, and no credits.

    Of `kinds` only where given, and with at least `min_votes` votes; 0 means unrated titles too. The ratings stand in
    memory, about 130 bytes each: votes and rating in one number, as a million scores would take 200 MB more.
    """

    def packed(row: Row) -> tuple[bytes, int] | None:
        tenths, votes = rating_of(row)
        return (row[0], votes << _VOTES_SHIFT | tenths) if votes >= min_votes else None

    rated = dict(Table(RATINGS, ratings, on_error).each(packed))

    def make(row: Row) -> Movie | None:
        if min_votes > 0 and row[0] not in rated:
            return None
        if kinds is not None and TITLE_KINDS.get(required(row[1]), "other") not in kinds:
            return None
        movie = movie_of_row(row)
        if (score := rated.get(row[0])) is not None:
            value = (score & ~(-1 << _VOTES_SHIFT)) / 10
            movie.scores = [Score(kind="imdb", value=value, count=score >> _VOTES_SHIFT)]
        movie.silent = list(silent_in_datasets(movie.kind))
        return movie

    return Table(BASICS, basics, on_error).each(make)


def movie_of_row(row: Row) -> Movie:
    """Return the title in a row of BASICS, without a score. Raises ValueError."""
    title_type = required(row[1])
    site_id, title, original = title_id_of(row[0]), required(row[2]), text_or_none(row[3])
    year, end_year, minutes = (integer(value) for value in row[4:7])
    if year is not None and end_year is not None and end_year < year:
        end_year = None
    return Movie(
        site="imdb",
        site_id=site_id,
        imdb_id=site_id,
        url=title_url("imdb", site_id),
        title=title,
        original_title=original if original != title else None,
        kind=TITLE_KINDS.get(title_type, "other"),
        title_type=title_type,
        year=None if year is None else check_year(year),
        end_year=None if end_year is None else check_year(end_year),
        runtime_minutes=check_runtime(minutes) if minutes else None,  # files up to 2021 write 0 for an unknown one
        genres=listed(row[7]),
        source="dataset",
    )


def score_of_row(row: Row) -> Score:
    """Return the score in a row of RATINGS. Raises ValueError."""
    tenths, votes = rating_of(row)
    return Score(kind="imdb", value=tenths / 10, count=votes)


def rating_of(row: Row) -> tuple[int, int]:
    """Return a rating in tenths, and its votes."""
    votes, found = number(row[2]), _RATING.fullmatch(row[1])
    tenths = int(found[1] + found[2]) if found else 0
    if not 10 <= tenths <= 100 or votes < 1:  # noqa: PLR2004 - ratings go from 1.0 to 10.0
        raise ValueError(f"a rating of {row[1]!r} from {votes} votes")
    return tenths, votes


# --- Rows -----------------------------------------------------------------------------------------------------------


class Wanted(Protocol):
    """Ids of which the rows are wanted."""

    def of(self, parts: Iterable[Part]) -> Iterable[Part]:
        """Return those of the parts whose id is wanted."""

    def pattern(self, prefix: str) -> re.Pattern[bytes] | None:
        """Return what finds the begin of a wanted line with the line break before it; None when so many are wanted that it is slow."""


class Table:
    """One dataset: what it has of each title, and the values of the columns that are read."""

    def __init__(self, name: str, blocks: Blocks, on_error: OnError) -> None:
        """Read a dataset by its name, such as `title.crew`, from its decompressed blocks.

        Raises ExtractionError when a column is missing. `on_error` is given the error of each row that has no id.
        """
        self.name = name
        self.url = url_of(name)
        self._blocks = iter(blocks)
        self.on_error = on_error
        head = b""
        while b"\n" not in head and (block := next(self._blocks, b"")):
            head += block
            if len(head) > _LONGEST_LINE + len(block):
                raise ExtractionError("dataset", self.url, f"a header of more than {_LONGEST_LINE} bytes")
        header, _, self._begin = head.partition(b"\n")
        columns = header.decode(errors="replace").split("\t")
        for column in COLUMNS[name]:
            if column not in columns:
                raise ExtractionError(column, self.url, f"{name} has no such column; it has {', '.join(columns)}")
        self._pick: Callable[[list[bytes]], Row] = itemgetter(*map(columns.index, COLUMNS[name]))
        self._width = len(columns)
        self._place = columns.index(COLUMNS[name][0])
        self._prefix = prefix = "nm" if name == NAMES else "tt"
        self._group = re.compile(rf"(({prefix}\d+)\t.*\n(?:\2\t.*\n)*)".encode())
        self._id = re.compile(rf"{prefix}\d+".encode())
        self._idless = re.compile(rf"\n(?!{prefix}\d)".encode())

    def parts(self, wanted: Wanted | None = None) -> Iterator[Part]:
        """Yield the rows of each title, of the `wanted` ones only where given, in the dataset's order.

        Raises ExtractionError when the data ends inside a line.
        """
        pattern = None if wanted is None or self._place else wanted.pattern(self._prefix)
        for lines in self._chunks():
            yield from self._parts_of(lines, wanted, pattern)

    def each(self, make: Callable[[Row], _T | None], wanted: Wanted | None = None) -> Iterator[_T]:
        """Yield what `make` returns for each row, but None; it raises ValueError for a damaged one. Raises what `parts` does."""
        chunks = self._chunks() if wanted is None else (rows for rows, _ in self.parts(wanted))
        for lines in chunks:
            for line in lines[:-1].split(b"\n") if lines else ():
                try:
                    made = make(self._row(line))
                except ValueError as error:
                    self.on_error(self.damage(line.split(b"\t")[0][:_SHOWN], error))
                else:
                    if made is not None:
                        yield made

    def _chunks(self) -> Iterator[bytes]:
        """Yield whole lines, all rows of a title together."""
        rest = self._begin
        for block in self._blocks:
            data = rest + block
            end = data.rfind(b"\n") + 1
            # Others of the last one's rows may follow in the next block.
            last = self._begin_of_last(data, end)
            rest = data[last:]
            yield data[:last]
            if len(rest) > _LONGEST_GROUP:
                raise ExtractionError("dataset", self.url, f"{len(rest)} bytes without another id")
        if rest and not rest.endswith(b"\n"):
            raise ExtractionError("dataset", self.url, "the data ends inside a line")
        yield rest

    def _begin_of_last(self, data: bytes, end: int) -> int:
        """Return where the rows of the last id begin in whole lines that go to `end`."""
        begin = end
        key = None
        while begin:
            before = data.rfind(b"\n", 0, begin - 1) + 1
            values = data[before : begin - 1].split(b"\t", self._place + 1)
            if key is None:
                key = values[self._place : self._place + 1]
            elif values[self._place : self._place + 1] != key:
                break
            begin = before
        return begin

    def _parts_of(self, lines: bytes, wanted: Wanted | None, pattern: re.Pattern[bytes] | None) -> Iterator[Part]:
        """Yield the wanted rows of whole lines, which hold all rows of each title."""
        if wanted is None:
            yield from self._groups(lines)
        elif pattern is None or self._damaged(lines):
            yield from wanted.of(self._groups(lines))
        else:
            lines, end = b"\n" + lines, 0
            while (found := pattern.search(lines, end)) is not None:
                group = self._group.match(lines, found.start() + 1)
                assert group is not None  # noqa: S101 - the pattern finds such lines alone
                yield group[1], group[2]
                end = group.end() - 1

    def _damaged(self, lines: bytes) -> bool:
        """Return whether some line begins with no id."""
        return bool(lines) and (
            not lines.startswith(self._prefix.encode()) or self._idless.search(lines, 0, len(lines) - 1) is not None
        )

    def rows(self, part: bytes) -> list[Row]:
        """Return the values of COLUMNS in each row of a part. Raises ValueError when one has other columns."""
        return [self._row(line) for line in part[:-1].split(b"\n")]

    def _row(self, line: bytes) -> Row:
        values = line.split(b"\t")
        if len(values) != self._width:
            raise ValueError(f"{len(values)} columns instead of {self._width}")
        return self._pick(values)

    def damage(self, key: bytes, reason: object) -> ExtractionError:
        """Return the error of a title's rows."""
        return ExtractionError(self.name, self.url, f"the rows of {key.decode(errors='replace')}: {reason}")

    def _groups(self, lines: bytes) -> list[Part]:
        """Return the rows of each title in whole lines, with its id."""
        if self._place == 0:
            groups: list[Part] = self._group.findall(lines)
            if sum(len(rows) for rows, _ in groups) == len(lines):
                return groups
        return [
            (b"".join(line for _, line in found), key)
            for key, found in groupby(self._lines_with_ids(lines), itemgetter(0))
        ]

    def _lines_with_ids(self, lines: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Yield each line with its id; report those that have none."""
        for text in lines[:-1].split(b"\n"):
            line, values = text + b"\n", text.split(b"\t")
            key = values[self._place] if len(values) > self._place else b""
            if self._id.fullmatch(key):
                yield key, line
            else:
                shown = line[:_SHOWN].decode(errors="replace")
                self.on_error(ExtractionError(self.name, self.url, f"a row without an id: {shown!r}"))


# --- Values; each raises ValueError for what can't be one -------------------------------------------------------------


def text_or_none(value: bytes) -> str | None:
    """Return a text; None where it is not known."""
    return None if value in _NOTHING else value.decode()


def required(value: bytes) -> str:
    """Return a text that every row has."""
    if value in _NOTHING:
        raise ValueError("a text is missing")
    return value.decode()


def listed(value: bytes) -> list[str]:
    """Return a list of texts, each once."""
    return [] if value in _NOTHING else list(dict.fromkeys(filter(None, value.decode().split(","))))


def integer(value: bytes) -> int | None:
    """Return a whole number; None where it is not known."""
    return None if value in _NOTHING else number(value)


def number(value: bytes) -> int:
    """Return a whole number that every row has."""
    if not value.isdigit():
        raise ValueError(f"{value!r} is not a number")
    return int(value)


def title_id_of(value: bytes) -> str:
    """Return the id of a title."""
    text = value.decode()
    if not IMDB_ID.fullmatch(text):
        raise ValueError(f"{text!r} is not an id of a title")
    return text


def person_id_of(value: bytes) -> str:
    """Return the id of a person."""
    text = value.decode()
    if not PERSON_ID.fullmatch(text):
        raise ValueError(f"{text!r} is not an id of a person")
    return text
