"""Makes titles from the tables of IMDb's datasets.

- `title.principals` has a row for each character since March 2024, and before that a row for each
  person with a list of characters. It is a selection: up to ten of a cast, and not all who direct
  or write. These are taken from `title.crew`.
- A person may be missing from `name.basics`, as the files are of different minutes: the name stays
  unknown.
"""

from __future__ import annotations

from collections import defaultdict
from functools import partial
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Annotated, Any, Final

from msgspec import Meta, json

from moviecrawler.datasets.tables import (
    AKAS,
    BASICS,
    COLUMNS,
    CREW,
    EPISODE,
    NAMES,
    PRINCIPALS,
    RATINGS,
)
from moviecrawler.extract.imdb_credits import PERSON_ID
from moviecrawler.extract.imdb_values import TITLE_KINDS
from moviecrawler.extract.values import check_runtime, check_year
from moviecrawler.fields import unknown_in_datasets
from moviecrawler.items import Credit, Movie, OtherTitle, Role, Score
from moviecrawler.urls import IMDB_ID, title_url

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from moviecrawler.datasets.tables import Tables

TitleId = Annotated[str, Meta(pattern=rf"^(?:{IMDB_ID.pattern})\Z")]
Text = str | None
Number = Annotated[int, Meta(ge=0, le=10**9)] | None
Value = Annotated[float, Meta(ge=1, le=10)]
Votes = Annotated[int, Meta(ge=1, le=10**9)]
_PersonId = Annotated[str, Meta(pattern=rf"^(?:{PERSON_ID.pattern})?\Z")]
# What the columns of rows have to be; the last is the name of who or what the row refers to.
_basics = json.Decoder(
    tuple[TitleId, str, str, Text, Number, Number, Number, Text, Text], strict=False
)
_ratings = json.Decoder(tuple[str, Value, Votes, Text], strict=False)
_episode = json.Decoder(tuple[str, TitleId, Number, Number, Text], strict=False)
_people = json.Decoder(tuple[str, int, _PersonId, str, Text, Text], strict=False)
_akas = json.Decoder(tuple[str, int, str, Text, Text, Text, Text], strict=False)
_CAST: Final[dict[str, Role]] = {"actor": "cast", "actress": "cast", "self": "cast"}
"""Roles by category. Archive footage of somebody is no part that they play."""
_CREW: Final[dict[str, Role]] = {"director": "director", "writer": "writer"}
_ORDERING = itemgetter(1)
"""The number by which rows of people and of other titles are in order: that of lines is never the
order of the billing."""
_MAX_CHARACTERS = 9_000
_MAX_TITLE = 500
"""Characters of text. A person with more small parts gets the first ones."""
_WANTED = "tconst IN (SELECT tconst FROM wanted)"
_TABLES: Final = {
    "episode": (EPISODE, _WANTED, "parentTconst"),
    "basics": (BASICS, f"{_WANTED} OR tconst IN (SELECT parentTconst FROM episode)", "NULL"),
    "ratings": (RATINGS, _WANTED, "NULL"),
    "crew": (CREW, _WANTED, "nconst"),
    # The first row of a title is read in any case: it shows that the title has rows, and no cast.
    "principals": (
        PRINCIPALS,
        f"(category IN {tuple(_CAST)} OR ordering = '1') AND {_WANTED}",
        "nconst",
    ),
    "akas": (AKAS, "titleId IN (SELECT tconst FROM wanted)", "NULL"),
    "names": (NAMES, "nconst IN (SELECT nconst FROM principals UNION SELECT nconst FROM crew)", ""),
}
"""By the words of IMDB_DATASETS: the dataset, the rows that are read, and their column that refers
to a person or a series."""
_CREW_AS_PRINCIPALS = """CREATE OR REPLACE TABLE crew AS
    SELECT
        tconst,
        generate_subscripts(people, 1)::VARCHAR AS ordering,
        unnest(people) AS nconst,
        category,
        NULL AS characters
    FROM (
        SELECT
            tconst,
            'director' AS category,
            string_split(coalesce(directors, ''), ',') AS people
        FROM crew
        UNION ALL
        SELECT tconst, 'writer', string_split(coalesce(writers, ''), ',') FROM crew
    )"""
"""A title whose crew is stated absent keeps a row, which names nobody."""
_SERIES_AS_NAMES = f"""
    INSERT INTO names
    SELECT tconst, primaryTitle FROM basics WHERE tconst IN (SELECT parentTconst FROM episode);
    DELETE FROM basics WHERE NOT {_WANTED};
    CREATE OR REPLACE TABLE rows (id VARCHAR, dataset VARCHAR, row VARCHAR)"""


def dataset_names(words: str) -> tuple[str, ...]:
    """Return the datasets that IMDB_DATASETS names, and the two that are read in any case."""
    return tuple(
        dict.fromkeys([BASICS, RATINGS, *(_TABLES[word.strip()][0] for word in words.split(","))])
    )


def read_titles(tables: Tables) -> Iterator[Movie]:
    """Yield the wanted titles that are in `title.basics`, by id.

    Each has all that the files have of it. The fields of a dataset that is not there, or has no row
    or a damaged row of the title, are unknown; but no row in `title.ratings` means that there is no
    rating. Damaged rows are noted in `tables.damaged`. Raises ExtractionError for a damaged file,
    before the first title, and InterruptedReadError.
    """
    for table, (dataset, chosen, _) in _TABLES.items():
        tables.load(table, dataset, chosen)
        if dataset == CREW:
            tables.run(_CREW_AS_PRINCIPALS)
    tables.run(_SERIES_AS_NAMES)
    for table, (dataset, _, refers_to) in _TABLES.items():
        if refers_to:
            columns = COLUMNS[PRINCIPALS if dataset == CREW else dataset]
            # A row is JSON, which Python takes from DuckDB in a fraction of the time of a list.
            values = f"{columns.partition(',')[0]}, '{dataset}', json_array({columns}, name)"
            names = (
                f"(SELECT nconst AS named, primaryName AS name FROM names) ON named = {refers_to}"
            )
            tables.run(f"INSERT INTO rows SELECT {values} FROM {table} LEFT JOIN {names}")
    # They are sorted partly in files.
    found = tables.select("SELECT id, dataset, row FROM rows ORDER BY id, dataset")
    for site_id, of_title in groupby(found, itemgetter(0)):
        rows = {RATINGS: []} | {
            name: [row for *_, row in group] for name, group in groupby(of_title, itemgetter(1))
        }
        if (movie := _movie(tables, site_id, rows)) is not None:
            yield movie


def _movie(tables: Tables, site_id: str, rows: dict[str, list[str]]) -> Movie | None:
    """Return a title by its rows in each dataset; None when that in `title.basics` is damaged."""
    found: dict[str, Any] = {}
    for dataset, read in _READERS.items():
        if dataset in rows and (dataset, site_id) not in tables.damaged:
            try:
                found[dataset] = read(rows[dataset])
            except ValueError as error:  # msgspec's is one
                tables.note(dataset, site_id, str(error))
    if BASICS not in found:
        return None
    movie: Movie = found[BASICS]
    movie.scores = found.get(RATINGS, [])
    movie.other_titles = found.get(AKAS, [])
    movie.credits = [*found.get(CREW, ()), *found.get(PRINCIPALS, ())]
    if EPISODE in found:
        _, movie.series_id, movie.season, movie.episode, movie.series_title = found[EPISODE]
    unknown = set(unknown_in_datasets(movie.kind, frozenset(found)))
    if movie.kind == "episode" and movie.series_title is None:
        unknown.add("series_title")
    movie.unknown_fields = sorted(unknown)
    return movie


def movie_of(row: str) -> Movie:
    """Return the title in a row, in JSON, of `title.basics`, without a score.

    Raises ValueError for what can't be right.
    """
    site_id, title_type, title, original, year, end_year, minutes, genres, _ = _basics.decode(row)
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
        # Files up to 2021 write 0 for an unknown one.
        runtime_minutes=check_runtime(minutes) if minutes else None,
        genres=list(dict.fromkeys(filter(None, (genres or "").split(",")))),
        source="dataset",
    )


def _credits(roles: dict[str, Role], rows: list[str]) -> list[Credit]:
    """Return the people of each role, each once, with the characters of all their rows."""
    names: dict[Role, dict[str, Text]] = {role: {} for role in roles.values()}
    characters: defaultdict[str, dict[str, None]] = defaultdict(dict)
    for _, _, person, category, played, name in sorted(map(_people.decode, rows), key=_ORDERING):
        role = roles.get(category)
        if role is not None and person:
            names[role][person] = name
            if played:
                characters[person].update(dict.fromkeys(json.decode(played, type=list[str])))
    return [
        Credit(
            name=name,
            role=role,
            position=position,
            person_id=person,
            character=_joined(characters[person]),
        )
        for role, named in names.items()
        for position, (person, name) in enumerate(named.items(), start=1)
    ]


def _joined(characters: Iterable[str]) -> str | None:
    text = " / ".join(filter(None, map(str.strip, characters)))
    if len(text) > _MAX_CHARACTERS:
        text = text[:_MAX_CHARACTERS].rpartition(" / ")[0]
    return text or None


def _other_titles(rows: list[str]) -> list[OtherTitle]:
    """Return the titles in other countries.

    Several types of one title are separated by a control character.
    """
    return [
        OtherTitle(
            title=title,
            country=country,
            language=language,
            kind=types and types.replace("\x02", ", "),
        )
        for _, _, title, country, language, types, _ in sorted(
            map(_akas.decode, rows), key=_ORDERING
        )
        if len(title) <= _MAX_TITLE
    ]


_READERS: Final[dict[str, Callable[[list[str]], Any]]] = {
    BASICS: lambda rows: movie_of(rows[0]),
    RATINGS: lambda rows: [
        Score(kind="imdb", value=mean, count=votes)
        for _, mean, votes, _ in map(_ratings.decode, rows[:1])
    ],
    CREW: partial(_credits, _CREW),
    PRINCIPALS: partial(_credits, _CAST),
    AKAS: _other_titles,
    EPISODE: lambda rows: _episode.decode(rows[0]),
}
"""What the rows of a title in each dataset, each in JSON, are read by. A ValueError says that they
are damaged."""
