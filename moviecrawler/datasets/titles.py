"""Makes titles from the tables of IMDb's datasets.

- `title.principals` has a row for each character since March 2024, and before that a row for each person with a list of
  characters. It is a selection: up to ten of a cast, and not all who direct or write. These are taken from `title.crew`.
- A person may be missing from `name.basics`, as the files are of different minutes: the name stays unknown.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from functools import partial
from itertools import groupby, pairwise
from operator import itemgetter
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeVar

from msgspec import Meta, convert, defstruct, json

from moviecrawler.datasets.tables import AKAS, BASICS, COLUMNS, CREW, EPISODE, NAMES, PRINCIPALS, RATINGS
from moviecrawler.extract.imdb_credits import PERSON_ID
from moviecrawler.extract.imdb_values import TITLE_KINDS
from moviecrawler.extract.values import check_runtime, check_year
from moviecrawler.fields import unknown_in_datasets
from moviecrawler.items import Credit, Movie, OtherTitle, Role, Score
from moviecrawler.urls import IMDB_ID, title_url

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from moviecrawler.datasets.tables import Tables

_T = TypeVar("_T")


def reader(kind: type[_T]) -> Callable[[Any], _T]:
    """Return a function that converts a row to a type, and its texts to numbers. It raises ValueError for a wrong value."""
    # The type is a field of a struct: msgspec would hash a type that is no class with each call, which takes longest of all.
    struct = defstruct("Row", [("row", kind)], array_like=True, gc=False)
    return lambda row: convert([row], struct, strict=False).row  # type: ignore[attr-defined]


TitleId = Annotated[str, Meta(pattern=rf"^(?:{IMDB_ID.pattern})\Z")]
Text = str | None
Number = Annotated[int, Meta(ge=0, le=10**9)] | None
Value = Annotated[float, Meta(ge=1, le=10)]
Votes = Annotated[int, Meta(ge=1, le=10**9)]
_PersonId = Annotated[str, Meta(pattern=rf"^(?:{PERSON_ID.pattern})?\Z")]
# What the columns of rows have to be; the last is the name of who or what the row refers to.
_basics = reader(tuple[TitleId, str, str, Text, Number, Number, Number, Text, Text])
_rating = reader(tuple[str, Value, Votes, Text])
_place = reader(tuple[str, TitleId, Number, Number, Text])
_parts = reader(list[tuple[str, int, _PersonId, str, Text, Text]])
_other_titles = reader(list[tuple[str, int, str, Text, Text, Text, Text]])
_CAST: Final[dict[str, Role]] = {"actor": "cast", "actress": "cast", "self": "cast"}
"""Roles by category. Archive footage of somebody is no part that they play."""
_CREW: Final[dict[str, Role]] = {"director": "director", "writer": "writer"}
_LONGEST_CHARACTERS, _LONGEST_TITLE = 9_000, 500
"""Characters of text. A person with more small parts gets the first ones."""
_PART = 100_000  # titles whose rows are sorted at once
_OF_WANTED = "tconst IN (SELECT tconst FROM wanted)"
_DATASETS: Final = {
    "episode": (EPISODE, _OF_WANTED),
    "basics": (BASICS, f"{_OF_WANTED} OR tconst IN (SELECT parentTconst FROM episode)"),
    "ratings": (RATINGS, _OF_WANTED),
    "crew": (CREW, _OF_WANTED),
    # The first row of a title is read in any case: it shows that the title has rows, and no cast.
    "principals": (PRINCIPALS, f"(category IN {tuple(_CAST)} OR ordering = '1') AND {_OF_WANTED}"),
    "akas": (AKAS, "titleId IN (SELECT tconst FROM wanted)"),
    "names": (NAMES, """nconst IN (SELECT nconst FROM principals
        UNION SELECT unnest(string_split(concat_ws(',', directors, writers), ',')) FROM crew)"""),
}  # fmt: skip
"""The datasets by the words of IMDB_DATASETS, and the rows that are read of each."""
_PEOPLE_OF_CREW = """(
    SELECT tconst, generate_subscripts(people, 1)::VARCHAR AS ordering, unnest(people) AS nconst, category, NULL AS characters
    FROM (SELECT tconst, 'director' AS category, string_split(coalesce(directors, ''), ',') AS people FROM crew
          UNION ALL SELECT tconst, 'writer', string_split(coalesce(writers, ''), ',') FROM crew))"""
"""`title.crew` as rows of `title.principals`; a title of whose crew nothing is known has a row of nobody."""
_ROWS: Final = (
    (BASICS, f"(FROM basics WHERE {_OF_WANTED})", COLUMNS[BASICS], "NULL"),
    (RATINGS, "ratings", COLUMNS[RATINGS], "NULL"),
    (EPISODE, "episode", COLUMNS[EPISODE], "parentTconst"),
    (CREW, _PEOPLE_OF_CREW, COLUMNS[PRINCIPALS], "nconst"),
    (PRINCIPALS, "principals", COLUMNS[PRINCIPALS], "nconst"),
    (AKAS, "akas", COLUMNS[AKAS], "NULL"),
)
"""Datasets, their tables and columns, and the column by which a row refers to a person or a series."""


def dataset_names(words: str) -> tuple[str, ...]:
    """Return the datasets that IMDB_DATASETS names, and the two that are read in any case."""
    return tuple(dict.fromkeys([BASICS, RATINGS, *(_DATASETS[word.strip()][0] for word in words.split(","))]))


def read_titles(tables: Tables) -> Iterator[Movie]:
    """Yield the wanted titles that are in `title.basics` by id, each with all that the files have of it.

    The fields of a dataset that is not there, or has no row or a damaged row of the title, are unknown; but no row in
    `title.ratings` means that there is no rating. Damaged rows are counted in `tables.damage`. Raises ExtractionError for a
    damaged file, before the first title, and InterruptedReadError.
    """
    for table, (dataset, chosen) in _DATASETS.items():
        tables.load(table, dataset, chosen)
    tables.run(
        "INSERT INTO names SELECT tconst, primaryTitle FROM basics WHERE tconst IN (SELECT parentTconst FROM episode)"
    )
    tables.run("CREATE OR REPLACE TABLE rows (dataset VARCHAR, id VARCHAR, position INTEGER, row VARCHAR[])")
    for dataset, table, columns, named in _ROWS:
        # `ordering` is a number, but rows may be sorted by its text: the order of lines is never that of the billing.
        position = "TRY_CAST(ordering AS INTEGER)" if "ordering" in columns else "0"
        values = f"'{dataset}', {columns.partition(',')[0]}, {position}, [{columns}, name]"
        names = f"(SELECT nconst AS person, primaryName AS name FROM names) ON person = {named}"
        tables.run(f"INSERT INTO rows SELECT {values} FROM {table} LEFT JOIN {names}")
    # Part by part: DuckDB's sort of more rows would need more memory than there is.
    numbered = "SELECT tconst, row_number() OVER (ORDER BY tconst) AS number FROM basics"
    lasts = [
        row[0] for row in tables.run(f"SELECT tconst FROM ({numbered}) WHERE number % {_PART} = 0 ORDER BY number")
    ]
    for low, high in pairwise(["", *lasts, "u"]):
        part = "FROM rows WHERE id > $low AND id <= $high ORDER BY id, dataset, position"
        for site_id, of_title in groupby(tables.select(part, low=low, high=high), itemgetter(1)):
            rows = {dataset: [row[3] for row in group] for dataset, group in groupby(of_title, itemgetter(0))}
            if (movie := _movie(tables, site_id, rows)) is not None:
                yield movie


def _movie(tables: Tables, site_id: str, rows: dict[str, list[Any]]) -> Movie | None:
    """Return a title; None when its row in `title.basics` is damaged. A damaged row of another dataset tells nothing of it."""
    told = set()

    def read(dataset: str, make: Callable[[list[Any]], _T]) -> _T | None:
        if dataset not in rows or site_id in tables.damage.ids.get(dataset, ()):
            return None
        try:
            made = make(rows[dataset])
        except ValueError as error:  # msgspec's is one
            tables.damage.add(dataset, site_id, error)
            return None
        told.add(dataset)
        return made

    movie = read(BASICS, lambda found: movie_of(found[0]))
    if movie is None:
        return None
    rating = read(RATINGS, lambda found: _rating(found[0]))
    if rating is not None:
        movie.scores = [Score(kind="imdb", value=rating[1], count=rating[2])]
    elif RATINGS in tables.files and RATINGS not in rows and site_id not in tables.damage.ids.get(RATINGS, ()):
        told.add(RATINGS)
    movie.credits = [*(read(CREW, partial(_credits, _CREW)) or ()), *(read(PRINCIPALS, partial(_credits, _CAST)) or ())]
    for _, _, title, country, language, types, _ in read(AKAS, _other_titles) or ():
        if len(title) <= _LONGEST_TITLE:
            # Several types of one title stand apart by a control character.
            kind = types and types.replace("\x02", ", ")
            movie.other_titles.append(OtherTitle(title=title, country=country, language=language, kind=kind))
    place = read(EPISODE, lambda found: _place(found[0]))
    if place is not None:
        _, movie.series_id, movie.season, movie.episode, movie.series_title = place
    unknown = set(unknown_in_datasets(movie.kind, frozenset(told)))
    if movie.kind == "episode" and movie.series_title is None:
        unknown.add("series_title")
    movie.unknown_fields = sorted(unknown)
    return movie


def movie_of(row: list[Any]) -> Movie:
    """Return the title in a row of `title.basics`, without a score. Raises ValueError for what can't be right."""
    site_id, title_type, title, original, year, end_year, minutes, genres, _ = _basics(row)
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
        genres=list(dict.fromkeys(filter(None, (genres or "").split(",")))),
        source="dataset",
    )


def _credits(roles: dict[str, Role], rows: list[Any]) -> list[Credit]:
    """Return the people of each role, each once, with the characters of all their rows."""
    names: dict[tuple[Role, str], Text] = {}
    characters: defaultdict[tuple[Role, str], dict[str, None]] = defaultdict(dict)
    for _, _, person, category, played, name in _parts(rows):
        role = roles.get(category)
        if role is not None and person:
            names[role, person] = name
            characters[role, person].update(dict.fromkeys(json.decode(played, type=list[str]) if played else ()))
    found, positions = [], Counter[Role]()
    for (role, person), name in sorted(names.items(), key=lambda item: item[0][0]):
        text = " / ".join(filter(None, map(str.strip, characters[role, person])))
        if len(text) > _LONGEST_CHARACTERS:
            text = text[:_LONGEST_CHARACTERS].rpartition(" / ")[0]
        positions[role] += 1
        found.append(Credit(name=name, role=role, position=positions[role], person_id=person, character=text or None))
    return found
