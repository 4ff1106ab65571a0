r"""IMDb's datasets: tab-separated, a header line, `\N` for null, no quoting (https://developer.imdb.com/non-commercial-datasets/).

Each reader takes a dataset's decompressed blocks, cut anywhere, and holds one block at a time: `gunzip` makes them of a
file. A reader raises ExtractionError for a header without a column that it needs, for data that ends inside a row, and
for a damaged row; with `on_error` it hands a damaged row's error to that and goes on with the next row.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Container, Iterable, Iterator
from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING, BinaryIO, NamedTuple, TypeVar

import msgspec
from isal import igzip, isal_zlib

from moviecrawler.errors import ExtractionError
from moviecrawler.extract.imdb_credits import PERSON_ID
from moviecrawler.extract.imdb_objects import TITLE_ID, TITLE_KINDS
from moviecrawler.extract.values import check_runtime, check_year
from moviecrawler.fields import silent_in_datasets
from moviecrawler.items import Credit, Movie, Score
from moviecrawler.urls import title_url

if TYPE_CHECKING:
    from moviecrawler.items import Role, TitleKind

Blocks = Iterable[bytes]
OnError = Callable[[ExtractionError], object]
_T = TypeVar("_T")
_Row = tuple[bytes, ...]

_HOME = "https://datasets.imdbws.com/"
_BLOCK = 1 << 20
_LONGEST_LINE = 1 << 20
_NULL = rb"\N"
_RATING = re.compile(rb"(\d{1,2})\.(\d)")
_TOP_VOTES = 25_000
_VOTES = 7
"""Bits below the votes in a packed rating: enough for a rating in tenths, 10 to 100."""
_BASICS = (
    *("tconst", "titleType", "primaryTitle", "originalTitle"),
    *("startYear", "endYear", "runtimeMinutes", "genres"),
)
_ROLES: tuple[Role, ...] = ("director", "writer", "cast")
_CREDITED: dict[str, Role] = {
    "director": "director",
    "writer": "writer",
    "actor": "cast",
    "actress": "cast",
    "self": "cast",
}
"""The categories of title.principals that are read."""


class Rating(NamedTuple):
    """A row of title.ratings, which has titles with at least five votes."""

    site_id: str
    value: float
    """1 to 10, with one decimal."""
    votes: int


class Episode(NamedTuple):
    """A row of title.episode."""

    site_id: str
    series_id: str
    season: int | None
    episode: int | None


class Principal(NamedTuple):
    """A row of title.principals: one of a title's main people."""

    site_id: str
    ordering: int
    """1 is the title's first."""
    person_id: str
    category: str
    """actor, actress, self, director, writer, producer, editor…"""
    job: str | None
    characters: list[str]


class Crew(NamedTuple):
    """A row of title.crew: the ids of all directors and writers of a title."""

    site_id: str
    directors: list[str]
    writers: list[str]


class Aka(NamedTuple):
    """A row of title.akas: one name of a title."""

    site_id: str
    ordering: int
    title: str
    region: str | None
    """ISO 3166, such as FR, or one of IMDb's own, such as XWW for worldwide."""
    language: str | None
    is_original: bool


class Name(NamedTuple):
    """A row of name.basics."""

    person_id: str
    name: str
    birth_year: int | None
    death_year: int | None


def gunzip(file: BinaryIO) -> Iterator[bytes]:
    """Yield the decompressed blocks of a gzip file. Raises ExtractionError when it is damaged or cut short."""
    try:
        with igzip.IGzipFile(fileobj=file) as unzipped:  # type: ignore[no-untyped-call] # isal types its C parts only
            while block := unzipped.read(_BLOCK):
                yield block
    except (EOFError, igzip.BadGzipFile, isal_zlib.error) as error:  # type: ignore[misc] # its stub has no class
        raise ExtractionError("dataset", None, f"damaged or cut short: {error}") from error


def ratings(
    blocks: Blocks, *, ids: Iterable[str] | None = None, min_votes: int = 0, on_error: OnError | None = None
) -> Iterator[Rating]:
    """Yield the ratings in title.ratings: of `ids` only where given, and with at least `min_votes` votes."""
    for site_id, tenths, votes in _ratings(blocks, _keys(ids), min_votes, on_error):
        yield Rating(site_id.decode(), tenths / 10, votes)


def _ratings(
    blocks: Blocks, wanted: Container[bytes] | None, min_votes: int, on_error: OnError | None
) -> Iterator[tuple[bytes, int, int]]:
    def make(row: _Row) -> tuple[bytes, int, int] | None:
        site_id, rating, voted = row
        votes, found = _number(voted), _RATING.fullmatch(rating)
        tenths = int(found[1] + found[2]) if found else 0
        if not 10 <= tenths <= 100 or votes < 1:  # noqa: PLR2004 - ratings go from 1.0 to 10.0
            raise ValueError(f"a rating of {rating!r} from {votes} votes")
        return (site_id, tenths, votes) if votes >= min_votes else None

    return _read(
        blocks, "title.ratings", ("tconst", "averageRating", "numVotes"), make, wanted=wanted, on_error=on_error
    )


def basics(
    blocks: Blocks,
    *,
    ids: Iterable[str] | None = None,
    kinds: Collection[TitleKind] | None = None,
    on_error: OnError | None = None,
) -> Iterator[Movie]:
    """Yield the titles in title.basics, silent of their scores: of `ids` and of `kinds` only where given."""
    for movie in _basics(blocks, _keys(ids), kinds, on_error):
        movie.silent = [*silent_in_datasets(movie.kind), "scores.imdb"]
        yield movie


def _basics(
    blocks: Blocks, wanted: Container[bytes] | None, kinds: Collection[TitleKind] | None, on_error: OnError | None
) -> Iterator[Movie]:
    def make(row: _Row) -> Movie | None:
        title_type = _required(row[1])
        kind = TITLE_KINDS.get(title_type, "other")
        if kinds is not None and kind not in kinds:
            return None
        site_id, title, original = _title_id(row[0]), _required(row[2]), _text(row[3])
        year, end_year, minutes = (_integer(value) for value in row[4:7])
        return Movie(
            site="imdb",
            site_id=site_id,
            imdb_id=site_id,
            url=title_url("imdb", site_id),
            title=title,
            original_title=original if original != title else None,
            kind=kind,
            title_type=title_type,
            year=None if year is None else check_year(year),
            end_year=None if end_year is None else check_year(end_year),
            runtime_minutes=None if minutes is None else check_runtime(minutes),
            genres=_list(row[7]),
            source="dataset",
        )

    return _read(blocks, "title.basics", _BASICS, make, wanted=wanted, on_error=on_error)


def movies(
    basics: Blocks,
    ratings: Blocks,
    *,
    kinds: Collection[TitleKind] | None = None,
    min_votes: int = 0,
    ids: Iterable[str] | None = None,
    on_error: OnError | None = None,
) -> Iterator[Movie]:
    """Yield the titles of title.basics, in its order, each with its rating from title.ratings.

    Of `kinds` and `ids` only where given, and with at least `min_votes` votes; 0 means unrated titles too. The ratings
    of what is wanted stand in memory, about 130 bytes each.
    """
    wanted = _keys(ids)
    rated = _rated(_ratings(ratings, wanted, min_votes, on_error))
    for movie in _basics(basics, rated if min_votes > 0 else wanted, kinds, on_error):
        packed = rated.get(_key(movie))
        if packed is not None:
            movie.scores = [_score(packed)]
        movie.silent = list(silent_in_datasets(movie.kind))
        yield movie


def _rated(rows: Iterator[tuple[bytes, int, int]]) -> dict[bytes, int]:
    """Return votes and rating by id, both in one number: a million tuples would take 60 MB more."""
    return {site_id: votes << _VOTES | tenths for site_id, tenths, votes in rows}


def _score(packed: int) -> Score:
    return Score(kind="imdb", value=(packed & ~(-1 << _VOTES)) / 10, count=packed >> _VOTES)


def weighted_rating(rating: float, votes: int, mean: float, minimum: int = _TOP_VOTES) -> float:
    """Return IMDb's published weighted rating: a title's mean, drawn to the `mean` of all the more, the fewer its votes.

    >>> weighted_rating(9.0, 25_000, 7.0)
    8.0
    """
    return (votes * rating + minimum * mean) / (votes + minimum)


def top_250(
    basics: Blocks, ratings: Blocks, *, minimum: int = _TOP_VOTES, size: int = 250, on_error: OnError | None = None
) -> list[Movie]:
    """Return the `size` feature films of the highest weighted rating, as a list `top` that is marked as computed here.

    Like IMDb's own list it has no documentaries, and no film of fewer than `minimum` votes. The mean is that of all
    votes for feature films. Of films that are equal, the one of more votes comes first, then the one of the lower id.
    """
    rated = _rated(_ratings(ratings, None, 0, on_error))
    films: list[tuple[Movie, Score, int]] = []
    points = voted = 0.0
    for movie in _basics(basics, rated, {"movie"}, on_error):
        if movie.title_type != "movie":
            continue  # a TV movie is a movie, but no feature film
        packed = rated[_key(movie)]
        score, votes = _score(packed), packed >> _VOTES
        points += score.value * votes
        voted += votes
        if votes >= minimum and "Documentary" not in movie.genres:
            films.append((movie, score, votes))

    def place(film: tuple[Movie, Score, int]) -> tuple[float, int, int]:
        movie, score, votes = film
        return -weighted_rating(score.value, votes, points / voted, minimum), -votes, int(_key(movie)[2:])

    films.sort(key=place)
    for rank, (movie, score, _) in enumerate(films[:size], start=1):
        movie.scores, movie.list_name, movie.list_rank, movie.list_computed = [score], "top", rank, True
        movie.silent = list(silent_in_datasets(movie.kind))
    return [movie for movie, _, _ in films[:size]]


def credits(  # noqa: A001 - the word of IMDb and of `Movie`; nobody means the interpreter's licence
    principals_: Blocks, names_: Blocks, ids: Iterable[str], *, on_error: OnError | None = None
) -> dict[str, list[Credit]]:
    """Return the credits of `ids` by id, from title.principals and name.basics: directors, writers, then the cast.

    For some thousands of titles: their people stand in memory. A person who is not in name.basics is left out, as the
    two files are not always of the same minute.
    """
    billed = [row for row in principals(principals_, ids=ids, on_error=on_error) if row.category in _CREDITED]
    called = {
        row.person_id: row.name for row in names(names_, ids={row.person_id for row in billed}, on_error=on_error)
    }
    found: dict[str, list[Credit]] = {}
    for role in _ROLES:
        of_role = [row for row in billed if _CREDITED[row.category] == role and row.person_id in called]
        known: dict[str, set[str]] = {}
        for row in sorted(of_role, key=attrgetter("ordering")):
            people = known.setdefault(row.site_id, set())
            if row.person_id in people:
                continue  # listed once for each of several jobs
            people.add(row.person_id)
            credit = Credit(name=called[row.person_id], role=role, position=len(people), person_id=row.person_id)
            credit.character = " / ".join(row.characters) or None
            found.setdefault(row.site_id, []).append(credit)
    return found


def principals(
    blocks: Blocks, *, ids: Iterable[str] | None = None, on_error: OnError | None = None
) -> Iterator[Principal]:
    """Yield the rows of title.principals, of `ids` only where given."""

    def make(row: _Row) -> Principal:
        played = [] if row[5] == _NULL else msgspec.json.decode(row[5], type=list[str])
        category = _required(row[3])
        return Principal(_title_id(row[0]), _number(row[1]), _person_id(row[2]), category, _text(row[4]), played)

    columns = ("tconst", "ordering", "nconst", "category", "job", "characters")
    return _read(blocks, "title.principals", columns, make, wanted=_keys(ids), on_error=on_error)


def crew(blocks: Blocks, *, ids: Iterable[str] | None = None, on_error: OnError | None = None) -> Iterator[Crew]:
    """Yield the rows of title.crew, of `ids` only where given."""

    def make(row: _Row) -> Crew:
        return Crew(_title_id(row[0]), _list(row[1]), _list(row[2]))

    return _read(blocks, "title.crew", ("tconst", "directors", "writers"), make, wanted=_keys(ids), on_error=on_error)


def akas(blocks: Blocks, *, ids: Iterable[str] | None = None, on_error: OnError | None = None) -> Iterator[Aka]:
    """Yield the rows of title.akas, of `ids` only where given."""

    def make(row: _Row) -> Aka:
        original = {b"0": False, b"1": True, _NULL: False}.get(row[5])
        if original is None:
            raise ValueError(f"isOriginalTitle is {row[5]!r}")
        return Aka(_title_id(row[0]), _number(row[1]), _required(row[2]), _text(row[3]), _text(row[4]), original)

    columns = ("titleId", "ordering", "title", "region", "language", "isOriginalTitle")
    return _read(blocks, "title.akas", columns, make, wanted=_keys(ids), on_error=on_error)


def episodes(blocks: Blocks, *, ids: Iterable[str] | None = None, on_error: OnError | None = None) -> Iterator[Episode]:
    """Yield the rows of title.episode, of `ids` (the episodes') only where given."""

    def make(row: _Row) -> Episode:
        return Episode(_title_id(row[0]), _title_id(row[1]), _integer(row[2]), _integer(row[3]))

    columns = ("tconst", "parentTconst", "seasonNumber", "episodeNumber")
    return _read(blocks, "title.episode", columns, make, wanted=_keys(ids), on_error=on_error)


def names(blocks: Blocks, *, ids: Iterable[str] | None = None, on_error: OnError | None = None) -> Iterator[Name]:
    """Yield the rows of name.basics, of `ids` only where given."""

    def make(row: _Row) -> Name:
        return Name(_person_id(row[0]), _required(row[1]), _integer(row[2]), _integer(row[3]))

    return _read(
        blocks,
        "name.basics",
        ("nconst", "primaryName", "birthYear", "deathYear"),
        make,
        wanted=_keys(ids),
        on_error=on_error,
    )


# --- Rows -----------------------------------------------------------------------------------------------------------


def _read(
    blocks: Blocks,
    dataset: str,
    columns: tuple[str, ...],
    make: Callable[[_Row], _T | None],
    *,
    wanted: Container[bytes] | None,
    on_error: OnError | None,
) -> Iterator[_T]:
    """Yield what `make` returns for the wanted rows, by their first of `columns`; None and rows not wanted are passed by."""
    url = f"{_HOME}{dataset}.tsv.gz"
    lines = lines_of(blocks, "dataset", url)
    header = next(lines, b"").decode(errors="replace").split("\t")
    for column in columns:
        if column not in header:
            raise ExtractionError(column, url, f"{dataset} has no such column; it has {', '.join(header)}")
    pick = itemgetter(*map(header.index, columns))
    for number, line in enumerate(lines, start=2):
        values = line.split(b"\t")
        try:
            if len(values) != len(header):
                raise ValueError(f"{len(values)} columns instead of {len(header)}")  # noqa: TRY301 - handled as damage
            row = pick(values)
            found = make(row) if wanted is None or row[0] in wanted else None
        except Exception as error:
            damage = ExtractionError(dataset, url, f"line {number}: {error}")
            if on_error is None:
                raise damage from error
            on_error(damage)
        else:
            if found is not None:
                yield found


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


def _keys(ids: Iterable[str] | None) -> frozenset[bytes] | None:
    return None if ids is None else frozenset(site_id.encode() for site_id in ids)


def _key(movie: Movie) -> bytes:
    return (movie.site_id or "").encode()


# --- Values ---------------------------------------------------------------------------------------------------------


def _text(value: bytes) -> str | None:
    return None if value == _NULL else _required(value)


def _required(value: bytes) -> str:
    if value in (b"", _NULL):
        raise ValueError("a text is missing")
    return value.decode()


def _list(value: bytes) -> list[str]:
    return [] if value == _NULL else _required(value).split(",")


def _integer(value: bytes) -> int | None:
    return None if value == _NULL else _number(value)


def _number(value: bytes) -> int:
    if not value.isdigit():
        raise ValueError(f"{value!r} is not a number")
    return int(value)


def _title_id(value: bytes) -> str:
    text = value.decode()
    if not TITLE_ID.fullmatch(text):
        raise ValueError(f"{text!r} is not an id of a title")
    return text


def _person_id(value: bytes) -> str:
    text = value.decode()
    if not PERSON_ID.fullmatch(text):
        raise ValueError(f"{text!r} is not an id of a person")
    return text
