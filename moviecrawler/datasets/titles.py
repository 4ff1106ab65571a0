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
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, NamedTuple

from msgspec import Meta, Raw, json

from moviecrawler.basics.files import read_package_file
from moviecrawler.basics.progress import Progress
from moviecrawler.basics.texts import shortened
from moviecrawler.basics.values import check_runtime, check_year
from moviecrawler.datasets.tables import (
    AKAS,
    BASICS,
    CREW,
    EPISODE,
    NAMES,
    NO_ID,
    PRINCIPALS,
    RATINGS,
    TITLE_TYPE,
)
from moviecrawler.items import EncodedMovie, Movie, Score
from moviecrawler.sites import ID_SITE, SITES
from moviecrawler.sites.fields import unknown_in_datasets
from moviecrawler.sites.ids import title_url
from moviecrawler.sites.imdb.credits import PERSON_ID
from moviecrawler.sites.imdb.values import TITLE_KINDS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from datetime import datetime

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
# What the columns of rows have to be.
_basics = json.Decoder(
    tuple[TitleId, _TitleType, Text, Text, _Unchecked, _Unchecked, _Unchecked, Text],
    strict=False,
)
_ratings = json.Decoder(tuple[str, Value, Votes], strict=False)
_episode = json.Decoder(tuple[str, TitleId, _Unchecked, _Unchecked, Text], strict=False)
_SELECTIONS = (PRINCIPALS, AKAS)
"""Datasets that have several rows of a title, and never all that there is to tell: a damaged one
costs none of the others."""
_MAX_ROW_CHARS = 200
"""Characters that are shown of a damaged row."""
_TITLES_AT_ONCE = 2_500
"""DuckDB holds a list for each of them in memory."""
_WANTED = "tconst IN (SELECT tconst FROM wanted)"
_CAST = ("actor", "actress", "self")
"""Archive footage of somebody is no part that they play."""
_PEOPLE = rf"({PERSON_ID.pattern})?(,({PERSON_ID.pattern})?)*"
_STRING = r'"([^"\\]|\\.)*"'
_STRINGS = rf"\s*\[\s*({_STRING}(\s*,\s*{_STRING})*)?\s*\]\s*"


class _Source(NamedTuple):
    """What is read of a dataset, in SQL."""

    dataset: str
    rows: str
    right: str = "true"
    """What is true of a row that is not damaged. Of other datasets, each title's row is checked as
    it is read."""


_TABLES: Final = {
    "episode": _Source(EPISODE, _WANTED),
    "basics": _Source(BASICS, f"{_WANTED} OR tconst IN (SELECT parentTconst FROM episode)"),
    "ratings": _Source(RATINGS, _WANTED),
    "crew": _Source(
        CREW,
        _WANTED,
        f"regexp_full_match(coalesce(directors, ''), '{_PEOPLE}')"
        f" AND regexp_full_match(coalesce(writers, ''), '{_PEOPLE}')",
    ),
    "principals": _Source(
        PRINCIPALS,
        # The first row of a title is read in any case: it shows that the title has rows, and no
        # cast.
        f"(category IN {_CAST} OR ordering = '1') AND {_WANTED}",
        f"TRY_CAST(ordering AS INTEGER) IS NOT NULL"
        f" AND regexp_full_match(nconst, '{PERSON_ID.pattern}')"
        " AND category IS NOT NULL AND (characters IS NULL OR"
        f" (json_valid(characters) AND regexp_full_match(characters, '{_STRINGS}')))",
    ),
    "akas": _Source(
        AKAS,
        "titleId IN (SELECT tconst FROM wanted)",
        "TRY_CAST(ordering AS INTEGER) IS NOT NULL AND title IS NOT NULL",
    ),
    "names": _Source(NAMES, "nconst IN (SELECT nconst FROM people)"),
}
"""By the words of IMDB_DATASETS."""
_PEOPLE_OF_CREW = """
    SELECT
        tconst,
        '{role}' AS role,
        generate_subscripts({column}, 1) AS ordering,
        unnest({column}) AS nconst,
        NULL AS characters
    FROM (SELECT tconst, string_split({column}, ',') AS {column} FROM crew)"""
_MAKE_PEOPLE = f"""
    CREATE TABLE people AS
    {_PEOPLE_OF_CREW.format(role="director", column="directors")}
    UNION ALL
    {_PEOPLE_OF_CREW.format(role="writer", column="writers")}
    UNION ALL
    SELECT tconst, 'cast', CAST(ordering AS INTEGER), nconst, characters
    FROM principals
    WHERE category IN {_CAST};
    CREATE OR REPLACE TABLE crew AS SELECT DISTINCT tconst FROM crew;
    CREATE OR REPLACE TABLE principals AS SELECT DISTINCT tconst FROM principals"""
"""Of crew and principals it is kept which titles they have: their rows would fill the memory."""
_NAME_PEOPLE = """
    CREATE TABLE credits AS SELECT * FROM people LEFT JOIN names USING (nconst);
    DROP TABLE people;
    CREATE TABLE series AS
    SELECT DISTINCT ON (tconst) tconst AS parentTconst, primaryTitle FROM basics
    WHERE tconst IN (SELECT parentTconst FROM episode)"""
_CHANGED = """
    CREATE TABLE changed AS
    SELECT tconst, row_number() OVER (ORDER BY tconst) - 1 AS number
    FROM (SELECT DISTINCT tconst FROM wanted)
    ANTI JOIN unchanged ON id = tconst"""
_PART = """
    CREATE OR REPLACE TABLE part AS
    SELECT tconst FROM changed WHERE number >= $first AND number < $first + $size"""
_PEOPLE_OF_PART: Final = read_package_file("moviecrawler.datasets", "people.sql")
_ROWS: Final = read_package_file("moviecrawler.datasets", "titles.sql")
_DATASETS = (BASICS, RATINGS, EPISODE, CREW, PRINCIPALS, AKAS)


def dataset_names(words: str) -> tuple[str, ...]:
    """Return the datasets that IMDB_DATASETS names, and the two that are read in any case."""
    named = [_TABLES[word.strip()].dataset for word in words.split(",")]
    return tuple(dict.fromkeys([BASICS, RATINGS, *named]))


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
    at: datetime,
    report: Callable[[str], object] = lambda _: None,
    known: KnownTitles | None = None,
) -> Iterator[EncodedMovie | MissingTitle]:
    """Yield each of the wanted titles once, by id.

    A movie has all that the files have of it. The fields of a dataset that is not there, or has no
    row or a damaged row of the title, are unknown; but no row in `title.ratings` means that there
    is no rating. Damaged rows are noted in `tables.damaged`. Raises ExtractionError for a damaged
    file, before the first title, and InterruptedReadError.

    Args:
        tables: The datasets.
        at: When reading began.
        report: Called with lines of progress.
        known: Titles that are left out while they are unchanged.
    """
    with Progress(report, "reading the files", len(_TABLES) + 1) as progress:
        for table, source in _TABLES.items():
            if source.dataset == NAMES:
                tables.run(_MAKE_PEOPLE)
            tables.load(table, source.dataset, source.rows, right=source.right)
            progress.done += 1
        tables.run(_NAME_PEOPLE)
    with Progress(report, "finding what has changed"):
        if known is not None:
            known.find_rows()
            for table in ("basics", "ratings", "crew", "principals", "credits", "episode"):
                tables.run(f"DELETE FROM {table} WHERE tconst IN (SELECT id FROM unchanged)")
            tables.run("DELETE FROM akas WHERE titleId IN (SELECT id FROM unchanged)")
        tables.run(_CHANGED)
    ((count,),) = tables.run("SELECT count(*) FROM changed")
    with Progress(report, "reading titles", count) as progress:
        for first in range(0, count, _TITLES_AT_ONCE):
            tables.run(_PART, first=first, size=_TITLES_AT_ONCE)
            ((first_id, last_id),) = tables.run("SELECT min(tconst), max(tconst) FROM part")
            bounds = {"first": first_id, "last": last_id}
            tables.run(_PEOPLE_OF_PART, **bounds)
            for site_id, *of_title in tables.select(_ROWS, **bounds):
                rows = dict(zip(_DATASETS, of_title, strict=True))
                yield _title(tables, site_id, rows, at)
                progress.done += 1


def _title(
    tables: Tables, site_id: str, rows: dict[str, Any], at: datetime
) -> EncodedMovie | MissingTitle:
    """Return what `titles.sql` has found of a title in each dataset."""
    if rows[RATINGS] is None and (RATINGS, NO_ID) not in tables.damaged:
        rows[RATINGS] = []
    found: dict[str, Any] = {}
    for dataset, given in rows.items():
        if given is None:
            continue
        try:
            combined = _read(dataset, given)
        except UntitledError as error:
            return MissingTitle(site_id, "absent", str(error))
        except ValueError:
            combined = _read(dataset, _undamaged(tables, dataset, site_id, given))
        is_damaged = (dataset, site_id) in tables.damaged
        if not is_damaged or (combined and dataset in _SELECTIONS):
            found[dataset] = combined
    if BASICS not in found:
        return _missing(tables, site_id)
    movie: Movie = found[BASICS]
    movie.scores = found.get(RATINGS, [])
    if EPISODE in found:
        _, movie.series_id, movie.season, movie.episode, movie.series_title = found[EPISODE]
    if movie.kind == "episode" and movie.series_title is None:
        movie.unknown_fields.append("series_title")
    unknown = unknown_in_datasets(movie.kind, frozenset(found))
    movie.unknown_fields = sorted({*movie.unknown_fields, *unknown})
    movie.scraped_at = at
    # The longest lists are JSON already.
    people = filter(None, [found.get(CREW), found.get(PRINCIPALS)])
    lists: Any = movie
    lists.credits = Raw(f"[{','.join(people)}]")
    lists.other_titles = Raw(f"[{found.get(AKAS, '')}]")
    return EncodedMovie(site_id=site_id, kind=movie.kind, encoded=json.encode(lists))


def _read(dataset: str, given: Any) -> Any:
    """Return what a title has of a dataset. Raises ValueError for a damaged row."""
    reader = _READERS.get(dataset)
    return given if reader is None else reader(given)


def _undamaged(tables: Tables, dataset: str, site_id: str, rows: list[str]) -> list[str]:
    """Note the damaged ones of a title's rows, and return the others."""
    undamaged = []
    for row in rows:
        try:
            _read(dataset, [row])
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
    site_id, title_type, title, original, year, end_year, minutes, genres = columns
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


def _scores(rows: list[str]) -> list[Score]:
    decoded = [_ratings.decode(row) for row in rows]
    return [Score(kind=ID_SITE, value=mean, count=votes) for _, mean, votes in decoded[:1]]


def _first(decode: Callable[[str], Any], rows: list[str]) -> Any:
    return next(iter([decode(row) for row in rows]), None)


_READERS: Final[dict[str, Callable[[list[str]], Any]]] = {
    BASICS: partial(_first, movie_of),
    RATINGS: _scores,
    EPISODE: partial(_first, _episode.decode),
}
"""What makes, of the rows of a dataset, which are JSON, what a title has of them. A ValueError says
that one is damaged. The rows of other datasets are checked in SQL."""
