"""Makes titles from the tables of IMDb's datasets.

- `title.principals` has a row for each character since March 2024, and before that a row for each
  person with a list of characters. It is a selection: up to ten of a cast, and not all who direct
  or write. These are taken from `title.crew`.
- A person may be missing from `name.basics`, as the files are of different minutes: the name stays
  unknown.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, NamedTuple

from msgspec import Meta, json

from moviecrawler.basics.texts import shortened
from moviecrawler.basics.values import check_runtime, check_year
from moviecrawler.datasets.tables import (
    AKAS,
    BASICS,
    COLUMNS,
    CREW,
    EPISODE,
    NAMES,
    NO_ID,
    PRINCIPALS,
    RATINGS,
    TITLE_TYPE,
)
from moviecrawler.items import Credit, Movie, OtherTitle, Role, Score
from moviecrawler.sites import ID_SITE, SITES
from moviecrawler.sites.fields import unknown_in_datasets
from moviecrawler.sites.ids import title_url
from moviecrawler.sites.imdb.credits import PERSON_ID
from moviecrawler.sites.imdb.values import TITLE_KINDS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from moviecrawler.datasets.tables import Tables

TitleId = Annotated[str, Meta(pattern=rf"^(?:{SITES[ID_SITE].ids.pattern})\Z")]
_TitleType = Annotated[str, Meta(pattern=rf"^{TITLE_TYPE}\Z")]
Text = str | None
Number = Annotated[int, Meta(ge=0, le=10**9)] | None
Value = Annotated[float, Meta(ge=1, le=10)]
Votes = Annotated[int, Meta(ge=1, le=10**9)]
_PersonId = Annotated[str, Meta(pattern=rf"^(?:{PERSON_ID.pattern})?\Z")]
# What the columns of rows have to be; the last is the name of who or what the row refers to.
_basics = json.Decoder(
    tuple[TitleId, _TitleType, Text, Text, Number, Number, Number, Text, Text], strict=False
)
_ratings = json.Decoder(tuple[str, Value, Votes, Text], strict=False)
_episode = json.Decoder(tuple[str, TitleId, Number, Number, Text], strict=False)
_people = json.Decoder(tuple[str, int, _PersonId, str, Text, Text], strict=False)
_akas = json.Decoder(tuple[str, int, str, Text, Text, Text, Text], strict=False)
_CAST: Final[dict[str, Role]] = {"actor": "cast", "actress": "cast", "self": "cast"}
"""Roles by category. Archive footage of somebody is no part that they play."""
_CREW: Final[dict[str, Role]] = {"director": "director", "writer": "writer"}
_SELECTIONS = (PRINCIPALS, AKAS)
"""Datasets that have several rows of a title, and never all that there is to tell: a damaged one
costs none of the others."""
_MAX_CHARACTERS = 9_000
_MAX_TITLE = 500
"""Characters of text. A person with more small parts gets the first ones."""
_MAX_ROW_CHARS = 200
"""Characters that are shown of a damaged row."""
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


@dataclass(frozen=True, slots=True)
class MissingTitle:
    """A wanted title of which the datasets give no record."""

    site_id: str
    outcome: Literal["absent", "failed"]
    """`failed`: its row in `title.basics` is damaged, or may be one that is."""
    reason: str


class UntitledError(ValueError):
    """A row of `title.basics` has no title, as IMDb publishes a few."""


def read_titles(tables: Tables) -> Iterator[Movie | MissingTitle]:
    """Yield each of the wanted titles once, by id.

    A movie has all that the files have of it. The fields of a dataset that is not there, or has no
    row or a damaged row of the title, are unknown; but no row in `title.ratings` means that there
    is no rating. Damaged rows are noted in `tables.damaged`. Raises ExtractionError for a damaged
    file, before the first title, and InterruptedReadError.
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
    # With a row for itself, a title that no dataset has comes, too.
    tables.run("INSERT INTO rows SELECT DISTINCT tconst, '', '' FROM wanted")
    # They are sorted partly in files.
    found = tables.select("SELECT id, dataset, row FROM rows ORDER BY id, dataset")
    for site_id, of_title in groupby(found, itemgetter(0)):
        yield _title(
            tables,
            site_id,
            {name: [row for *_, row in group] for name, group in groupby(of_title, itemgetter(1))},
        )


def _title(tables: Tables, site_id: str, rows: dict[str, list[str]]) -> Movie | MissingTitle:
    """Return what the rows of a title in each dataset give."""
    if (RATINGS, NO_ID) not in tables.damaged:
        rows.setdefault(RATINGS, [])
    found: dict[str, Any] = {}
    for dataset, reader in _READERS.items():
        if dataset not in rows:
            continue
        decoded: list[Any] = []
        for row in rows[dataset]:
            try:
                decoded.append(reader.decode(row))
            except UntitledError as error:
                return MissingTitle(site_id, "absent", str(error))
            except ValueError as error:  # msgspec's is one
                tables.note(dataset, site_id, str(error))
        combined = reader.combine(decoded)
        is_damaged = (dataset, site_id) in tables.damaged
        if not is_damaged or (combined and dataset in _SELECTIONS):
            found[dataset] = combined
    if BASICS not in found:
        return _missing(tables, site_id)
    movie: Movie = found[BASICS]
    movie.scores = found.get(RATINGS, [])
    movie.other_titles = found.get(AKAS, [])
    movie.credits = [*found.get(CREW, ()), *found.get(PRINCIPALS, ())]
    if EPISODE in found:
        _, movie.series_id, movie.season, movie.episode, movie.series_title = found[EPISODE]
    unknown = {*movie.unknown_fields, *unknown_in_datasets(movie.kind, frozenset(found))}
    if movie.kind == "episode" and movie.series_title is None:
        unknown.add("series_title")
    movie.unknown_fields = sorted(unknown)
    return movie


def _missing(tables: Tables, site_id: str) -> MissingTitle:
    """Return why `title.basics` gives no title of an id."""
    if damage := tables.damaged.get((BASICS, site_id)):
        return MissingTitle(
            site_id, "failed", f"its row in IMDb's {BASICS} is damaged: {damage[1]}"
        )
    if damage := tables.damaged.get((BASICS, NO_ID)):
        reason = f"IMDb's {BASICS} has no row of it, but {damage[0]:,} rows whose id can't be read"
        return MissingTitle(site_id, "failed", reason)
    return MissingTitle(site_id, "absent", "not in IMDb's datasets")


def movie_of(row: str) -> Movie:
    """Return the title in a row, in JSON, of `title.basics`, without a score.

    A number that is out of its bounds is unknown, such as the year of a film announced for 2115.
    Raises ValueError for what can't be right otherwise, and UntitledError.
    """
    try:
        columns = _basics.decode(row)
    except ValueError as error:  # msgspec's is one
        raise ValueError(f"{error} of {shortened(row, _MAX_ROW_CHARS)}") from error
    site_id, title_type, title, original, year, end_year, minutes, genres, _ = columns
    if title is None:
        raise UntitledError(f"IMDb's {BASICS} has no title of it")
    if year is not None and end_year is not None and end_year < year:
        end_year = None
    movie = Movie(
        site=ID_SITE,
        site_id=site_id,
        imdb_id=site_id,
        url=title_url(ID_SITE, site_id),
        title=title,
        original_title=original if original != title else None,
        kind=TITLE_KINDS.get(title_type, "other"),
        title_type=title_type,
        genres=list(dict.fromkeys(filter(None, (genres or "").split(",")))),
        source="dataset",
    )
    for name, check, value in (
        ("year", check_year, year),
        ("end_year", check_year, end_year),
        # Files up to 2021 write 0 for an unknown one.
        ("runtime_minutes", check_runtime, minutes or None),
    ):
        try:
            setattr(movie, name, None if value is None else check(value))
        except ValueError:
            movie.unknown_fields.append(name)
    return movie


class _Person(NamedTuple):
    ordering: int
    person_id: str
    category: str
    characters: list[str]
    name: str | None


def _person(row: str) -> _Person:
    """Return the person in a row, in JSON, of `title.principals`. Raises ValueError."""
    _, ordering, person_id, category, characters, name = _people.decode(row)
    played = json.decode(characters, type=list[str]) if characters else []
    return _Person(ordering, person_id, category, played, name)


def _credits(roles: dict[str, Role], people: list[_Person]) -> list[Credit]:
    """Return the people of each role, each once, with the characters of all their rows."""
    names: dict[Role, dict[str, Text]] = {role: {} for role in roles.values()}
    characters: defaultdict[str, dict[str, None]] = defaultdict(dict)
    for person in sorted(people, key=attrgetter("ordering")):  # never that of lines
        role = roles.get(person.category)
        if role is not None and person.person_id:
            names[role][person.person_id] = person.name
            characters[person.person_id].update(dict.fromkeys(person.characters))
    return [
        Credit(
            name=name,
            role=role,
            position=position,
            person_id=person_id,
            character=_joined(characters[person_id]),
        )
        for role, named in names.items()
        for position, (person_id, name) in enumerate(named.items(), start=1)
    ]


def _joined(characters: Iterable[str]) -> str | None:
    text = " / ".join(filter(None, map(str.strip, characters)))
    if len(text) > _MAX_CHARACTERS:
        text = text[:_MAX_CHARACTERS].rpartition(" / ")[0]
    return text or None


def _other_titles(rows: list[tuple[str, int, str, Text, Text, Text, Text]]) -> list[OtherTitle]:
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
        for _, _, title, country, language, types, _ in sorted(rows, key=itemgetter(1))
        if len(title) <= _MAX_TITLE
    ]


def _scores(rows: list[tuple[str, float, int, Text]]) -> list[Score]:
    return [Score(kind=ID_SITE, value=mean, count=votes) for _, mean, votes, _ in rows[:1]]


def _first(rows: list[Any]) -> Any:
    return next(iter(rows), None)


class _Reader(NamedTuple):
    decode: Callable[[str], Any]
    """Reads a row, in JSON. A ValueError says that it is damaged."""
    combine: Callable[[list[Any]], Any]
    """Makes what a title has of its decoded rows."""


_READERS: Final = {
    BASICS: _Reader(movie_of, _first),
    RATINGS: _Reader(_ratings.decode, _scores),
    CREW: _Reader(_person, partial(_credits, _CREW)),
    PRINCIPALS: _Reader(_person, partial(_credits, _CAST)),
    AKAS: _Reader(_akas.decode, _other_titles),
    EPISODE: _Reader(_episode.decode, _first),
}
"""How the rows of a title are read, by dataset."""
