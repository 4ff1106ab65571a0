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
from typing import TYPE_CHECKING, Final, TypeVar

import msgspec

from moviecrawler.extract.datasets import (
    AKAS,
    BASICS,
    CREW,
    EPISODE,
    NULL,
    PRINCIPALS,
    RATINGS,
    integer,
    listed,
    movie_of_row,
    number,
    person_id_of,
    required,
    score_of_row,
    text_or_none,
    title_id_of,
)
from moviecrawler.fields import silent_in_datasets
from moviecrawler.items import Credit, OtherTitle

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from moviecrawler.extract.datasets import Row, Table
    from moviecrawler.items import Movie, Role

_CAST: Final = frozenset({b"actor", b"actress", b"self"})
"""The categories of `title.principals` that are the cast; archive footage of somebody is no part that they play."""
_LONGEST_CHARACTER = 9_000
"""Characters of text. Whoever has more small parts than that is given the first ones."""
_LONGEST_TITLE = 500
_KINDS_BETWEEN = "\x02"
"""Stands between several types of one title in `title.akas`."""
_PERSON = re.compile(rb"nm\d{7,10}")
_Made = TypeVar("_Made")


def people_of(rows: bytes) -> list[bytes]:
    """Return the ids of people in rows of `title.crew` or `title.principals`; a text may add one that is nobody's."""
    return _PERSON.findall(rows)


class TitleReader:
    """Makes movies of their rows in the datasets that are there."""

    def __init__(self, tables: Mapping[str, Table]) -> None:
        """Take the tables by name; they are given the errors of damaged rows."""
        self._tables = tables
        self.name_of: Callable[[str], str | None] = lambda _: None
        """Returns the name of a person by id; None when it is not known."""
        self.series_titles: dict[bytes, str] = {}
        """By the ids of series of which episodes are read."""

    def movie(self, key: bytes, parts: Mapping[str, bytes]) -> Movie | None:
        """Return a title of which `parts` are its rows by dataset; None when it isn't in `title.basics`, or damaged there.

        It is silent of what only a dataset tells that is not there, that has no row of it or a damaged one. That there is no
        row in `title.ratings` means that there is no rating.
        """
        found = self._read(BASICS, key, parts, lambda rows: movie_of_row(rows[0]))
        if found is None:
            return None
        movie = found
        told = {BASICS}

        def read(name: str, put: Callable[[list[Row]], object]) -> None:
            if self._read(name, key, parts, lambda rows: (put(rows),)) is not None:
                told.add(name)

        if RATINGS in self._tables and RATINGS not in parts:
            told.add(RATINGS)
        read(RATINGS, lambda rows: movie.scores.append(score_of_row(rows[0])))
        read(CREW, lambda rows: movie.credits.extend(self._crew(rows[0])))
        read(PRINCIPALS, lambda rows: movie.credits.extend(self._cast(rows)))
        read(AKAS, lambda rows: movie.other_titles.extend(_other_titles(rows)))
        read(EPISODE, lambda rows: self._place(movie, rows[0]))
        silent = set(silent_in_datasets(movie.kind, frozenset(told)))
        if movie.kind == "episode" and movie.series_title is None:
            silent.add("series_title")
        movie.silent = sorted(silent)
        return movie

    def title(self, rows: bytes, key: bytes) -> str | None:
        """Return the title in a title's row of `title.basics`."""
        return self._read(BASICS, key, {BASICS: rows}, lambda rows: required(rows[0][2]))

    def series_of(self, rows: bytes, key: bytes) -> bytes | None:
        """Return the id of the series in an episode's row of `title.episode`."""
        return self._read(EPISODE, key, {EPISODE: rows}, lambda rows: rows[0][1])

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
            table.on_error(table.damage(key, error))
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
