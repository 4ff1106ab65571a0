"""Makes titles from the tables of IMDb's datasets.

- `title.principals` has a row for each character since March 2024, and before that a row for each
  person with a list of characters. It is a selection: up to ten of a cast, and not all who direct
  or write. These are taken from `title.crew`.
- A person may be missing from `name.basics`, as the files are of different minutes: the name stays
  unknown.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from msgspec import Meta, json

from moviecrawler.basics.progress import Progress
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

    from moviecrawler.datasets.known import KnownTitles
    from moviecrawler.datasets.tables import Tables

TitleId = Annotated[str, Meta(pattern=rf"^(?:{SITES[ID_SITE].ids.pattern})\Z")]
_TitleType = Annotated[str, Meta(pattern=rf"^{TITLE_TYPE}\Z")]
Text = str | None
Number = Annotated[int, Meta(ge=0, le=10**9)] | None
_Unchecked = int | None
"""A number that costs its own field, not the row, when it is out of its bounds."""
Value = Annotated[float, Meta(ge=1, le=10)]
Votes = Annotated[int, Meta(ge=1, le=10**9)]
_PersonId = Annotated[str, Meta(pattern=rf"^(?:{PERSON_ID.pattern})?\Z")]
# What the columns of rows have to be; the last is the name of who or what the row refers to.
_basics = json.Decoder(
    tuple[TitleId, _TitleType, Text, Text, _Unchecked, _Unchecked, _Unchecked, Text, Text],
    strict=False,
)
_ratings = json.Decoder(tuple[str, Value, Votes, Text], strict=False)
_episode = json.Decoder(tuple[str, TitleId, _Unchecked, _Unchecked, Text], strict=False)
_Person = tuple[str, int, _PersonId, str, Text, Text]
_OtherTitle = tuple[str, int, str, Text, Text, Text, Text]
_people = json.Decoder(list[_Person], strict=False)
_characters = json.Decoder(list[str])
_akas = json.Decoder(list[_OtherTitle], strict=False)
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


def read_titles(
    tables: Tables,
    report: Callable[[str], object] = lambda _: None,
    known: KnownTitles | None = None,
) -> Iterator[Movie | MissingTitle]:
    """Yield each of the wanted titles once, by id.

    A movie has all that the files have of it. The fields of a dataset that is not there, or has no
    row or a damaged row of the title, are unknown; but no row in `title.ratings` means that there
    is no rating. Damaged rows are noted in `tables.damaged`. Raises ExtractionError for a damaged
    file, before the first title, and InterruptedReadError. `report` is called with lines of
    progress. Titles that are `known` to be unchanged are left out.
    """
    with Progress(report, "reading the files", 2 * len(_TABLES)) as progress:
        for table, (dataset, chosen, _) in _TABLES.items():
            tables.load(table, dataset, chosen)
            progress.done += 1
            if dataset == CREW:
                tables.run(_CREW_AS_PRINCIPALS)
        tables.run(_SERIES_AS_NAMES)
        for table, (dataset, _, refers_to) in _TABLES.items():
            progress.done += 1
            if not refers_to:
                continue
            columns = COLUMNS[PRINCIPALS if dataset == CREW else dataset]
            # A row is JSON, which Python takes from DuckDB in a fraction of the time of a list.
            values = f"{columns.partition(',')[0]}, '{dataset}', json_array({columns}, name)"
            names = (
                f"(SELECT nconst AS named, primaryName AS name FROM names) ON named = {refers_to}"
            )
            tables.run(f"INSERT INTO rows SELECT {values} FROM {table} LEFT JOIN {names}")
    # With a row for itself, a title that no dataset has comes, too.
    tables.run("INSERT INTO rows SELECT DISTINCT tconst, '', '' FROM wanted")
    if known is not None:
        known.find_rows()
    changed = "rows ANTI JOIN unchanged USING (id)"
    ((count,),) = tables.run(f"SELECT count(DISTINCT id) FROM {changed}")
    # They are sorted partly in files.
    found = tables.select(f"SELECT id, dataset, row FROM {changed} ORDER BY id, dataset")
    with Progress(report, "reading titles", count) as progress:
        for site_id, of_title in groupby(found, itemgetter(0)):
            yield _title(
                tables,
                site_id,
                {
                    name: [cells[2] for cells in group]
                    for name, group in groupby(of_title, itemgetter(1))
                },
            )
            progress.done += 1


def _title(tables: Tables, site_id: str, rows: dict[str, list[str]]) -> Movie | MissingTitle:
    """Return what the rows of a title in each dataset give."""
    if (RATINGS, NO_ID) not in tables.damaged:
        rows.setdefault(RATINGS, [])
    found: dict[str, Any] = {}
    for dataset, reader in _READERS.items():
        if dataset not in rows:
            continue
        try:
            combined = reader(rows[dataset])
        except UntitledError as error:
            return MissingTitle(site_id, "absent", str(error))
        except ValueError:
            combined = reader(_undamaged(tables, dataset, site_id, rows[dataset]))
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


def _undamaged(tables: Tables, dataset: str, site_id: str, rows: list[str]) -> list[str]:
    """Note the damaged ones of a title's rows, and return the others."""
    undamaged = []
    for row in rows:
        try:
            _READERS[dataset]([row])
        except ValueError as error:  # msgspec's is one
            tables.note(dataset, site_id, str(error))
        else:
            undamaged.append(row)
    return undamaged


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


def _array(rows: list[str]) -> str:
    """Return rows, which are JSON, as one array: to decode it is faster than to decode each."""
    return f"[{','.join(rows)}]"


def _credits(roles: dict[str, Role], rows: list[str]) -> list[Credit]:
    """Return the people of each role, each once, with the characters of all their rows.

    The rows are those of `title.principals`. Raises ValueError for a damaged one.
    """
    people: dict[Role, dict[str, Credit]] = {role: {} for role in roles.values()}
    played: dict[str, list[str]] = {}
    # By `ordering`, which never is that of lines.
    for _, _, person_id, category, characters, name in sorted(
        _people.decode(_array(rows)), key=itemgetter(1)
    ):
        parts = _characters.decode(characters) if characters else []
        role = roles.get(category)
        if role is None or not person_id:
            continue
        if person_id in played:
            parts = played[person_id] + parts
        played[person_id] = parts
        of_role = people[role]
        known = of_role.get(person_id)
        of_role[person_id] = Credit(
            name=name,
            role=role,
            position=known.position if known else len(of_role) + 1,
            person_id=person_id,
            character=_joined(dict.fromkeys(parts)) if parts else None,
        )
    return [credit for of_role in people.values() for credit in of_role.values()]


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
            _akas.decode(_array(rows)), key=itemgetter(1)
        )
        if len(title) <= _MAX_TITLE
    ]


def _scores(rows: list[str]) -> list[Score]:
    decoded = [_ratings.decode(row) for row in rows]
    return [Score(kind=ID_SITE, value=mean, count=votes) for _, mean, votes, _ in decoded[:1]]


def _first(decode: Callable[[str], Any], rows: list[str]) -> Any:
    return next(iter([decode(row) for row in rows]), None)


_READERS: Final[dict[str, Callable[[list[str]], Any]]] = {
    BASICS: partial(_first, movie_of),
    RATINGS: _scores,
    CREW: partial(_credits, _CREW),
    PRINCIPALS: partial(_credits, _CAST),
    AKAS: _other_titles,
    EPISODE: partial(_first, _episode.decode),
}
"""What makes, of the rows of a dataset, which are JSON, what a title has of them. A ValueError says
that one is damaged."""
