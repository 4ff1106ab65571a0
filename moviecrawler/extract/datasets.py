r"""IMDb's datasets: tab-separated, a header line, `\N` for null, no quoting (https://developer.imdb.com/non-commercial-datasets/).

Here are the readers of single rows, and of `title.basics` with `title.ratings`; `dataset_titles.py` reads all datasets.

Each reader takes a dataset's decompressed blocks, cut anywhere, and holds one block at a time: `gunzip` makes them of a
file. A reader raises ExtractionError for a header without a column that it needs, for data that ends inside a row, and
for a damaged row; with `on_error` it hands a damaged row's error to that and goes on with the next row.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Container, Iterable, Iterator
from dataclasses import dataclass, field
from operator import itemgetter
from typing import TYPE_CHECKING, BinaryIO, TypeVar

from isal import igzip, isal_zlib

from moviecrawler.errors import ExtractionError
from moviecrawler.extract.imdb_credits import PERSON_ID
from moviecrawler.extract.imdb_objects import TITLE_KINDS
from moviecrawler.extract.values import check_runtime, check_year
from moviecrawler.fields import silent_in_datasets
from moviecrawler.items import Movie, Score
from moviecrawler.urls import IMDB_ID, title_url

if TYPE_CHECKING:
    from moviecrawler.items import TitleKind

Blocks = Iterable[bytes]
OnError = Callable[[ExtractionError], object]
Row = tuple[bytes, ...]
_T = TypeVar("_T")

_HOME = "https://datasets.imdbws.com/"
NULL = rb"\N"
_NOTHING = (NULL, b"")
"""How a value that is not known is written; older files leave some fields empty."""
BASICS = (
    *("tconst", "titleType", "primaryTitle", "originalTitle"),
    *("startYear", "endYear", "runtimeMinutes", "genres"),
)
"""The columns that are read of title.basics, in the order in which `movie_of_row` takes them."""
RATINGS = ("tconst", "averageRating", "numVotes")
"""Those of title.ratings, which has titles with at least five votes."""
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
    kinds: Collection[TitleKind] | None = None,
    min_votes: int = 0,
    on_error: OnError | None = None,
) -> Iterator[Movie]:
    """Yield the titles of title.basics, in its order, each with its rating from title.ratings, and no credits.

    Of `kinds` only where given, and with at least `min_votes` votes; 0 means unrated titles too. The ratings stand in
    memory, about 130 bytes each.
    """

    def make(row: Row) -> Movie | None:
        return movie_of_row(row) if kinds is None or TITLE_KINDS.get(required(row[1]), "other") in kinds else None

    rated = _rated(ratings, min_votes, on_error)
    wanted = rated if min_votes > 0 else None
    for movie in read_rows(basics, "title.basics", BASICS, make, wanted=wanted, on_error=on_error):
        packed = rated.get((movie.site_id or "").encode())
        if packed is not None:
            value = (packed & ~(-1 << _VOTES_SHIFT)) / 10
            movie.scores = [Score(kind="imdb", value=value, count=packed >> _VOTES_SHIFT)]
        movie.silent = list(silent_in_datasets(movie.kind))
        yield movie


def _rated(ratings: Blocks, min_votes: int, on_error: OnError | None) -> dict[bytes, int]:
    """Return votes and rating by id, both in one number: a million scores would take 200 MB more."""

    def make(row: Row) -> tuple[bytes, int] | None:
        tenths, votes = rating_of(row)
        return (row[0], votes << _VOTES_SHIFT | tenths) if votes >= min_votes else None

    return dict(read_rows(ratings, "title.ratings", RATINGS, make, wanted=None, on_error=on_error))


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


def read_rows(
    blocks: Blocks,
    dataset: str,
    columns: tuple[str, ...],
    make: Callable[[Row], _T | None],
    *,
    wanted: Container[bytes] | None,
    on_error: OnError | None,
) -> Iterator[_T]:
    """Yield what `make` returns for the wanted rows, by their first of `columns`; None and rows not wanted are passed by."""
    url = url_of(dataset)
    lines = lines_of(blocks, "dataset", url)
    header = next(lines, b"").decode(errors="replace").split("\t")
    pick = check_columns(dataset, url, columns, header)
    for place, line in enumerate(lines, start=2):
        values = line.split(b"\t")
        try:
            if len(values) != len(header):
                raise ValueError(f"{len(values)} columns instead of {len(header)}")  # noqa: TRY301 - handled as damage
            row = pick(values)
            found = make(row) if wanted is None or row[0] in wanted else None
        except Exception as error:
            damage = ExtractionError(dataset, url, f"line {place}: {error}")
            if on_error is None:
                raise damage from error
            on_error(damage)
        else:
            if found is not None:
                yield found


def check_columns(dataset: str, url: str, needed: tuple[str, ...], header: list[str]) -> Callable[[list[bytes]], Row]:
    """Return what picks the needed columns from a row's values. Raises ExtractionError when the header lacks one."""
    for column in needed:
        if column not in header:
            raise ExtractionError(column, url, f"{dataset} has no such column; it has {', '.join(header)}")
    return itemgetter(*map(header.index, needed))


def lines_of(blocks: Blocks, field: str, url: str, longest: int = _LONGEST_LINE) -> Iterator[bytes]:
    """Yield the lines of a text that comes in blocks cut anywhere, without their ends.

    longest: bytes. Raises ExtractionError(field, url) for a longer line, and when the last one has no end.
    """
    rest = b""
    for block in blocks:
        lines = (rest + block).split(b"\n")
        rest = lines.pop()
        yield from lines
        if len(rest) > longest:
            raise ExtractionError(field, url, f"a line of more than {longest} bytes")
    if rest:
        raise ExtractionError(field, url, "the data ends inside a line")


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
