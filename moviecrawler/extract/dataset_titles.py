"""Whole titles from IMDb's datasets: the rows of one title in each dataset, made one `Movie`. Pure.

How the datasets really are, and what follows from it:

- `title.principals` has a row for each character since March 2024, and before that a row for each person with a list of
  characters. A person's characters are those of all their rows.
- It is a selection: up to ten of a cast, and not all who direct or write. Directors and writers are those of `title.crew`.
- `ordering` is a number, but rows may be sorted by its text: never take the order of lines for the billing.
- A person who is named may be missing from `name.basics`, as the files are of different minutes: the name stays unknown.
"""

from __future__ import annotations

import re
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, TypeVar

import msgspec

from moviecrawler.errors import ExtractionError
from moviecrawler.extract.datasets import (
    BASICS,
    NULL,
    RATINGS,
    check_columns,
    integer,
    listed,
    movie_of_row,
    number,
    person_id_of,
    required,
    score_of_row,
    text_or_none,
    title_id_of,
    url_of,
)
from moviecrawler.fields import silent_in_datasets
from moviecrawler.items import Credit, OtherTitle

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from moviecrawler.extract.datasets import Blocks, OnError, Row
    from moviecrawler.items import Movie, Role

_BASICS, _RATINGS = "title.basics", "title.ratings"
_CREW, _PRINCIPALS, _AKAS, _EPISODE = "title.crew", "title.principals", "title.akas", "title.episode"
NAMES: Final = "name.basics"
COLUMNS: Final[dict[str, tuple[str, ...]]] = {
    _BASICS: BASICS,
    _RATINGS: RATINGS,
    _CREW: ("tconst", "directors", "writers"),
    _PRINCIPALS: ("tconst", "ordering", "nconst", "category", "characters"),
    _AKAS: ("titleId", "ordering", "title", "region", "language", "types"),
    _EPISODE: ("tconst", "parentTconst", "seasonNumber", "episodeNumber"),
    NAMES: ("nconst", "primaryName"),
}
"""The columns that are read of each dataset; the first is the id by which its rows stand together."""
_CAST: Final = frozenset({b"actor", b"actress", b"self"})
"""The categories of `title.principals` that are the cast; archive footage of somebody is no part that they play."""
_LONGEST_GROUP = 64 * 1024 * 1024
"""Bytes of all rows of one title in a dataset; the most known are some 100 KB."""
_LONGEST_CHARACTER = 9_000
"""Characters of text. Whoever has more small parts than that is given the first ones."""
_LONGEST_TITLE = 500
_KINDS_BETWEEN = "\x02"
"""Stands between several types of one title in `title.akas`."""
_SHOWN = 80


_Made = TypeVar("_Made")


class Part(NamedTuple):
    """All rows of one title, or person, in one dataset."""

    key: bytes
    """Its id."""
    rows: bytes
    """Whole lines."""


class Wanted(Protocol):
    """Ids of which the rows are wanted."""

    def of(self, parts: Iterable[tuple[bytes, bytes]]) -> Iterable[tuple[bytes, bytes]]:
        """Return those of the rows, each with its id, whose id is wanted."""

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
        header, _, self._begin = head.partition(b"\n")
        columns = header.decode(errors="replace").split("\t")
        self._pick = check_columns(name, self.url, COLUMNS[name], columns)
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
        rest = self._begin
        for block in self._blocks:
            data = rest + block
            end = data.rfind(b"\n") + 1
            # Others of the last one's rows may follow in the next block.
            last = self._begin_of_last(data, end)
            rest = data[last:]
            yield from self._parts_of(data[:last], wanted, pattern)
            if len(rest) > _LONGEST_GROUP:
                raise ExtractionError("dataset", self.url, f"{len(rest)} bytes without another id")
        if rest and not rest.endswith(b"\n"):
            raise ExtractionError("dataset", self.url, "the data ends inside a line")
        yield from self._parts_of(rest, wanted, pattern)

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
            yield from (Part(key, rows) for rows, key in self._groups(lines))
        elif pattern is None or self._damaged(lines):
            yield from (Part(key, rows) for rows, key in wanted.of(self._groups(lines)))
        else:
            lines, end = b"\n" + lines, 0
            while (found := pattern.search(lines, end)) is not None:
                group = self._group.match(lines, found.start() + 1)
                assert group is not None  # noqa: S101 - the pattern finds such lines alone
                yield Part(group[2], group[1])
                end = group.end() - 1

    def _damaged(self, lines: bytes) -> bool:
        """Return whether some line begins with no id."""
        return bool(lines) and (
            not lines.startswith(self._prefix.encode()) or self._idless.search(lines, 0, len(lines) - 1) is not None
        )

    def rows(self, part: bytes) -> list[Row]:
        """Return the values of COLUMNS in each row of a part. Raises ValueError when one has other columns."""
        found = []
        for line in part[:-1].split(b"\n"):
            values = line.split(b"\t")
            if len(values) != self._width:
                raise ValueError(f"{len(values)} columns instead of {self._width}")
            found.append(self._pick(values))
        return found

    def damage(self, key: bytes, reason: object) -> ExtractionError:
        """Return the error of a title's rows."""
        return ExtractionError(self.name, self.url, f"the rows of {key.decode(errors='replace')}: {reason}")

    def _groups(self, lines: bytes) -> list[tuple[bytes, bytes]]:
        """Return the rows of each title in whole lines, with its id."""
        if self._place == 0:
            groups: list[tuple[bytes, bytes]] = self._group.findall(lines)
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


def people_of(rows: bytes) -> list[bytes]:
    """Return the ids of people in rows of `title.crew` or `title.principals`; a text may add one that is nobody's."""
    return _PERSON.findall(rows)


_PERSON = re.compile(rb"nm\d{7,10}")


class TitleReader:
    """Makes movies of their rows in the datasets that are there."""

    def __init__(self, tables: Mapping[str, Table], on_error: OnError) -> None:
        """Take the tables by name. A damaged part's error goes to `on_error`."""
        self._tables = tables
        self.name_of: Callable[[str], str | None] = lambda _: None
        """Returns the name of a person by id; None when it is not known."""
        self.on_error = on_error
        self.series_titles: dict[bytes, str] = {}
        """By the ids of series of which episodes are read."""

    def movie(self, key: bytes, parts: Mapping[str, bytes]) -> Movie | None:
        """Return a title of which `parts` are its rows by dataset; None when it isn't in `title.basics`, or damaged there.

        It is silent of what only a dataset tells that is not there, that has no row of it or a damaged one. That there is no
        row in `title.ratings` means that there is no rating.
        """
        found = self._read(_BASICS, key, parts, lambda rows: movie_of_row(rows[0]))
        if found is None:
            return None
        movie = found
        told = {_BASICS}

        def read(name: str, put: Callable[[list[Row]], object]) -> None:
            if self._read(name, key, parts, lambda rows: (put(rows),)) is not None:
                told.add(name)

        if _RATINGS in self._tables and _RATINGS not in parts:
            told.add(_RATINGS)
        read(_RATINGS, lambda rows: movie.scores.append(score_of_row(rows[0])))
        read(_CREW, lambda rows: movie.credits.extend(self._crew(rows[0])))
        read(_PRINCIPALS, lambda rows: movie.credits.extend(self._cast(rows)))
        read(_AKAS, lambda rows: movie.other_titles.extend(_other_titles(rows)))
        read(_EPISODE, lambda rows: self._place(movie, rows[0]))
        silent = set(silent_in_datasets(movie.kind, frozenset(told)))
        if movie.kind == "episode" and movie.series_title is None:
            silent.add("series_title")
        movie.silent = sorted(silent)
        return movie

    def title(self, part: Part) -> str | None:
        """Return the title in a title's row of `title.basics`."""
        return self._read(_BASICS, part.key, {_BASICS: part.rows}, lambda rows: required(rows[0][2]))

    def series_of(self, part: Part) -> bytes | None:
        """Return the id of the series in an episode's row of `title.episode`."""
        return self._read(_EPISODE, part.key, {_EPISODE: part.rows}, lambda rows: rows[0][1])

    def _read(
        self, name: str, key: bytes, parts: Mapping[str, bytes], make: Callable[[list[Row]], _Made]
    ) -> _Made | None:
        """Return what is made of a title's rows in a dataset; None when it has none, or damaged ones."""
        if name not in parts:
            return None
        table = self._tables[name]
        try:
            return make(table.rows(parts[name]))
        except ValueError as error:  # of numbers, of bytes that are no UTF-8, and of JSON that is none
            self.on_error(table.damage(key, error))
            return None

    def _crew(self, row: Row) -> list[Credit]:
        return [
            credit
            for role, people in (("director", listed(row[1])), ("writer", listed(row[2])))
            for credit in self._credits(role, {person: [] for person in map(_checked_person, people)})  # type: ignore[arg-type]
        ]

    def _cast(self, rows: list[Row]) -> list[Credit]:
        characters: dict[str, dict[str, None]] = {}
        for _, _, person, category, played in sorted(rows, key=lambda row: number(row[1])):
            if category in _CAST:
                parts = characters.setdefault(person_id_of(person), {})
                if played not in (NULL, b""):
                    parts.update(dict.fromkeys(msgspec.json.decode(played, type=list[str])))
        return self._credits("cast", {person: list(parts) for person, parts in characters.items()})

    def _credits(self, role: Role, people: Mapping[str, Iterable[str]]) -> list[Credit]:
        return [
            Credit(
                name=self.name_of(person),
                role=role,
                position=position,
                person_id=person,
                character=_joined(characters),
            )
            for position, (person, characters) in enumerate(people.items(), start=1)
        ]

    def _place(self, movie: Movie, row: Row) -> None:
        movie.series_id = title_id_of(row[1])
        movie.season, movie.episode = integer(row[2]), integer(row[3])
        movie.series_title = self.series_titles.get(row[1])


def _checked_person(text: str) -> str:
    return person_id_of(text.encode())


def _joined(characters: Iterable[str]) -> str | None:
    """Return the names of characters as one text, as many of them as have room."""
    text = ""
    for character in filter(None, map(str.strip, characters)):
        longer = f"{text} / {character}" if text else character
        if len(longer) > _LONGEST_CHARACTER:
            break
        text = longer
    return text or None


def _other_titles(rows: list[Row]) -> list[OtherTitle]:
    """Return the titles of rows of `title.akas`, in the order of their numbers."""
    found = [
        OtherTitle(
            title=required(title),
            country=text_or_none(region),
            language=text_or_none(language),
            kind=None if (kinds := text_or_none(types)) is None else kinds.replace(_KINDS_BETWEEN, ", "),
        )
        for _, _, title, region, language, types in sorted(rows, key=lambda row: number(row[1]))
    ]
    return [other for other in found if len(other.title) <= _LONGEST_TITLE]
