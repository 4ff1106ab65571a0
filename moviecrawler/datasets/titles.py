"""Whole titles from the tables of IMDb's datasets.

How the datasets really are, and what follows from it:

- `title.principals` has a row for each character since March 2024, and before that a row for each person with a list of
  characters. A person's characters are those of all their rows.
- It is a selection: up to ten of a cast, and not all who direct or write. Directors and writers are those of `title.crew`.
- A person who is named may be missing from `name.basics`, as the files are of different minutes: the name stays unknown.
"""

from __future__ import annotations

import re
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final, TypeVar

import msgspec

from moviecrawler.datasets.tables import AKAS, BASICS, CREW, EPISODE, NAMES, PRINCIPALS, RATINGS
from moviecrawler.extract.imdb_credits import PERSON_ID
from moviecrawler.extract.imdb_values import TITLE_KINDS
from moviecrawler.extract.values import check_runtime, check_year
from moviecrawler.fields import unknown_in_datasets
from moviecrawler.items import Credit, Movie, OtherTitle, Score
from moviecrawler.urls import IMDB_ID, title_url

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from moviecrawler.datasets.tables import Tables
    from moviecrawler.items import Role

_WORDS: Final = {name.removeprefix("title."): name for name in (BASICS, RATINGS, CREW, PRINCIPALS, AKAS, EPISODE)}
_DATASETS: Final = {**_WORDS, "names": NAMES}
"""The datasets by the words of IMDB_DATASETS."""
_LONGEST_CHARACTER = 9_000
"""Characters of text. Whoever has more small parts than that is given the first ones."""
_LONGEST_TITLE = 500
_RATING = re.compile(r"(10|[1-9])\.(\d)")
_CAST_CATEGORIES = ("actor", "actress", "self")
"""Archive footage of somebody is no part that they play."""
_WANTED = "IN (SELECT tconst FROM wanted)"
_PEOPLE = """nconst IN (SELECT nconst FROM principals
    UNION SELECT unnest(string_split(concat_ws(',', directors, writers), ',')) FROM crew)"""
_TITLES = """
SELECT b.tconst, b.titleType, b.primaryTitle, b.originalTitle, b.startYear, b.endYear, b.runtimeMinutes, b.genres,
    r.tconst, r.averageRating, r.numVotes, c.tconst, e.tconst, e.parentTconst, e.seasonNumber, e.episodeNumber, s.primaryTitle
FROM wanted w JOIN basics b USING (tconst) LEFT JOIN ratings r USING (tconst) LEFT JOIN crew c USING (tconst)
    LEFT JOIN episodes e USING (tconst) LEFT JOIN basics s ON s.tconst = e.parentTconst
ORDER BY w.tconst
"""
_CREW = """
SELECT tconst, role, nconst, primaryName FROM (
    SELECT tconst, 'director' AS role, unnest(string_split(directors, ',')) AS nconst, generate_subscripts(string_split(directors, ','), 1) AS position FROM crew
    UNION ALL
    SELECT tconst, 'writer', unnest(string_split(writers, ',')), generate_subscripts(string_split(writers, ','), 1) FROM crew
) LEFT JOIN names USING (nconst) ORDER BY tconst, role, position
"""
# `ordering` is a number, but rows may be sorted by its text: the order of lines is never that of the billing.
_CAST = """
SELECT tconst, ordering, category, nconst, characters, primaryName FROM principals LEFT JOIN names USING (nconst)
ORDER BY tconst, TRY_CAST(ordering AS INTEGER)
"""
_AKAS = (
    "SELECT titleId, ordering, title, region, language, types FROM akas ORDER BY titleId, TRY_CAST(ordering AS INTEGER)"
)

_Row = tuple[Any, ...]
_Made = TypeVar("_Made")


def dataset_names(words: str) -> tuple[str, ...]:
    """Return the datasets that IMDB_DATASETS names, and the two that are read in any case."""
    return tuple(dict.fromkeys([BASICS, RATINGS, *(_DATASETS[word.strip()] for word in words.split(","))]))


def read_titles(tables: Tables) -> Iterator[Movie]:
    """Yield the wanted titles that are in `title.basics`, by id, each with all that the files tell of it.

    A title names as unknown what only a dataset tells that is not there, or that has no row of it or a damaged one; no row in
    `title.ratings` means that there is no rating. Damaged rows are counted in `tables.damage`. Raises ExtractionError for a
    damaged file, before the first title, and InterruptedReadError.
    """
    tables.load("episodes", EPISODE, f"tconst {_WANTED}", once=True)
    tables.load("basics", BASICS, f"tconst {_WANTED} OR tconst IN (SELECT parentTconst FROM episodes)", once=True)
    tables.load("ratings", RATINGS, f"tconst {_WANTED}", once=True)
    tables.load("crew", CREW, f"tconst {_WANTED}", once=True)
    # The first row of a title tells that it has a cast of nobody when no other row is of the cast.
    tables.load("principals", PRINCIPALS, f"(category IN {_CAST_CATEGORIES} OR ordering = '1') AND tconst {_WANTED}")
    tables.load("akas", AKAS, f"titleId {_WANTED}")
    tables.load("names", NAMES, _PEOPLE, once=True)
    crew, cast, akas = (_Groups(tables.select(query)) for query in (_CREW, _CAST, _AKAS))
    for row in tables.select(_TITLES):
        movie = _Reader(tables, row).movie(crew.of(row[0]), cast.of(row[0]), akas.of(row[0]))
        if movie is not None:
            yield movie


class _Groups:
    """Rows that are sorted by their first column, given group by group to whoever asks in the same order."""

    def __init__(self, rows: Iterator[_Row]) -> None:
        self._groups = ((key, list(group)) for key, group in groupby(rows, itemgetter(0)))
        self._next = next(self._groups, None)

    def of(self, key: str) -> list[_Row]:
        """Return the rows of an id."""
        while self._next is not None and self._next[0] < key:
            self._next = next(self._groups, None)
        return self._next[1] if self._next is not None and self._next[0] == key else []


class _Reader:
    """Reads one title; a dataset whose values can't be right is damaged, and tells nothing of it."""

    def __init__(self, tables: Tables, row: _Row) -> None:
        self._tables, self._row = tables, row
        self._told = {BASICS}

    def movie(self, crew: list[_Row], cast: list[_Row], akas: list[_Row]) -> Movie | None:
        """Return the title; None when its row in `title.basics` is damaged."""
        row = self._row
        movie = self._read(BASICS, lambda: movie_of(row))
        if movie is None:
            return None
        if RATINGS in self._tables.files and row[8] is None and not self._is_damaged(RATINGS):
            self._told.add(RATINGS)
        if row[8] is not None:
            movie.scores = self._read(RATINGS, lambda: [score_of(row[9], row[10])]) or []
        if row[11] is not None:
            movie.credits += self._read(CREW, lambda: _crew_of(crew)) or []
        if cast:
            movie.credits += self._read(PRINCIPALS, lambda: _cast_of(cast)) or []
        if akas:
            movie.other_titles = self._read(AKAS, lambda: _other_titles(akas)) or []
        if row[12] is not None:
            self._read(EPISODE, lambda: _place(movie, row))
        unknown = set(unknown_in_datasets(movie.kind, frozenset(self._told)))
        if movie.kind == "episode" and movie.series_title is None:
            unknown.add("series_title")
        movie.unknown_fields = sorted(unknown)
        return movie

    def _read(self, dataset: str, make: Callable[[], _Made]) -> _Made | None:
        if self._is_damaged(dataset):
            return None
        try:
            made = make()
        except ValueError as error:  # msgspec's is one
            self._tables.damage.add(dataset, self._row[0], error)
            return None
        self._told.add(dataset)
        return made

    def _is_damaged(self, dataset: str) -> bool:
        return self._row[0] in self._tables.damage.ids.get(dataset, ())


# --- Values; each raises ValueError for what can't be right ---------------------------------------------------------------


def movie_of(row: Sequence[Any]) -> Movie:
    """Return the title in a row of `title.basics`, without a score. Raises ValueError."""
    site_id, title_type, title, original = row[:4]
    year, end_year, minutes = map(integer, row[4:7])
    if title_type is None or title is None:
        raise ValueError("a text is missing")
    checked_title(site_id)
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
        genres=list(dict.fromkeys(filter(None, (row[7] or "").split(",")))),
        source="dataset",
    )


def score_of(rating: str | None, votes: str | None) -> Score:
    """Return the score in a row of `title.ratings`."""
    found = _RATING.fullmatch(rating or "")
    count = integer(votes)
    value = float(found[0]) if found else 0.0
    if not 1 <= value <= 10 or not count:  # noqa: PLR2004 - ratings go from 1.0 to 10.0
        raise ValueError(f"a rating of {rating!r} from {votes} votes")
    return Score(kind="imdb", value=value, count=count)


def _crew_of(rows: Iterable[_Row]) -> list[Credit]:
    people: dict[str, dict[str, str | None]] = {"director": {}, "writer": {}}
    for _, role, person, name in rows:
        if person:
            people[role][_checked_person(person)] = name
    return [
        Credit(name=name, role=role, position=position, person_id=person)  # type: ignore[arg-type]
        for role, names in people.items()
        for position, (person, name) in enumerate(names.items(), start=1)
    ]


def _cast_of(rows: Iterable[_Row]) -> list[Credit]:
    names: dict[str, str | None] = {}
    characters: dict[str, dict[str, None]] = {}
    for _, ordering, category, person, played, name in rows:
        if integer(ordering) is None:
            raise ValueError("a row has no ordering")
        if category not in _CAST_CATEGORIES:
            continue
        names[_checked_person(person)] = name
        parts = characters.setdefault(person, {})
        if played:
            parts.update(dict.fromkeys(msgspec.json.decode(played, type=list[str])))
    role: Role = "cast"
    return [
        Credit(name=name, role=role, position=position, person_id=person, character=_joined(characters[person]))
        for position, (person, name) in enumerate(names.items(), start=1)
    ]


def _joined(characters: Iterable[str]) -> str | None:
    """Return the names of characters as one text, as many of them as have room."""
    text = ""
    for character in filter(None, map(str.strip, characters)):
        longer = f"{text} / {character}" if text else character
        if len(longer) > _LONGEST_CHARACTER:
            break
        text = longer
    return text or None


def _other_titles(rows: Iterable[_Row]) -> list[OtherTitle]:
    found = []
    for _, ordering, title, region, language, types in rows:
        if title is None or integer(ordering) is None:
            raise ValueError("a row has no title, or no ordering")
        if len(title) <= _LONGEST_TITLE:
            # Several types of one title stand apart by a control character.
            kind = types and types.replace("\x02", ", ")
            found.append(OtherTitle(title=title, country=region, language=language, kind=kind))
    return found


def _place(movie: Movie, row: _Row) -> bool:
    checked_title(row[13])
    movie.series_id, movie.season, movie.episode, movie.series_title = (
        row[13],
        integer(row[14]),
        integer(row[15]),
        row[16],
    )
    return True


def integer(text: str | None) -> int | None:
    """Return a whole number; None where it is unknown."""
    if text is not None and not (text.isascii() and text.isdigit()):
        raise ValueError(f"{text!r} is not a number")
    return None if text is None else int(text)


def checked_title(text: str | None) -> str:
    """Return the id of a title."""
    if not IMDB_ID.fullmatch(text or ""):
        raise ValueError(f"{text!r} is not an id of a title")
    return str(text)


def _checked_person(text: str | None) -> str:
    if not PERSON_ID.fullmatch(text or ""):
        raise ValueError(f"{text!r} is not an id of a person")
    return str(text)
