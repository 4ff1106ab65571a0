"""The CSV tables: which columns they have, how a movie becomes rows, and how rows are read back.

RFC 4180: commas, quotes doubled, lines ended by CRLF. UTF-8 without a byte order mark, which would become a part of the
first column's name for everything but a spreadsheet; spreadsheets ask for the encoding when they import.
"""

from __future__ import annotations

import csv
import re
from typing import TYPE_CHECKING, Any

import msgspec

from moviecrawler.errors import TableError
from moviecrawler.extract.values import parse_date
from moviecrawler.fields import NUMBERS, TEXT_LISTS, TEXTS
from moviecrawler.items import Movie
from moviecrawler.sites import SCORES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path
    from typing import TextIO

    from moviecrawler.items import Miss, Role

Cell = str | int | float | None

_ROLES: dict[str, Role] = {"directors": "director", "writers": "writer", "creators": "creator"}
_SCORES = {kind: form.columns for kind, form in SCORES.items() if form.columns}
"""The columns of each score's value and count; the finer ones stand in `scores.csv` alone."""
_AMOUNTS = {
    "budget": ("budget", "budget_currency"),
    "opening_weekend": ("opening_weekend", "opening_weekend_currency"),
    "domestic": ("domestic_gross", "domestic_gross_currency"),
    "worldwide": ("worldwide_gross", "worldwide_gross_currency"),
}
"""The columns of each amount's value and currency."""

_FIRST_COLUMNS = (
    *("site", "site_id", "imdb_id", "url", "title", "original_title", "kind", "title_type", "year", "end_year"),
    *(
        "release_date",
        "runtime_minutes",
        "genres",
        "countries",
        "languages",
        "certificate",
        *_ROLES,
        "plot",
        "poster_url",
    ),
    *(column for columns in _SCORES.values() for column in columns),
    *("imdb_top250_rank", "imdb_top250_tv_rank", "popularity_rank"),
    *(column for columns in _AMOUNTS.values() for column in columns),
    *("series_id", "series_title", "season", "episode", "list_name", "list_rank", "list_computed", "source"),
    "scraped_at",
)
_LATER_COLUMNS = (
    *("silent", "poster_width", "poster_height", "consensus", "keywords", "interests", "taglines", "external_ids"),
    *("season_count", "episode_count", "critic_review_count"),
)
_PLAIN = ("site", "title", "kind", "source", *NUMBERS, *TEXTS)
"""Columns that hold the field of the same name, as it is; those of TEXT_LISTS hold several values."""
MOVIE_COLUMNS = tuple(dict.fromkeys((*_FIRST_COLUMNS, *_LATER_COLUMNS, *NUMBERS, *TEXTS, *TEXT_LISTS)))
"""A field that is added to `Movie` has its column at the end. Files of versions before don't have the columns behind _FIRST_COLUMNS, until the
next crawl replaces them."""
PEOPLE_COLUMNS = ("site", "person_id", "name")
OTHER_TITLE_COLUMNS = ("site", "site_id", "position", "title", "country", "language", "kind")
CREDIT_COLUMNS = ("site", "site_id", "role", "position", "person_id", "name", "character")
MISS_COLUMNS = ("site", "site_id", "url", "outcome", "reason", "checked_at")
_FACTS = ("average", "average_scale", "reviews", "liked", "neutral", "disliked", "certified", "sentiment")
SCORE_COLUMNS = ("site", "site_id", "kind", "value", "scale", "count", "scraped_at", *_FACTS, "histogram")
_OF_OFFER = ("provider", "kind", "country", "quality", "price", "currency", "url", "source")
OFFER_COLUMNS = ("site", "site_id", *_OF_OFFER, "scraped_at", "seen_at")
RELATED_COLUMNS = ("site", "site_id", "relation", "position", "related_id", "title", "connection")
AWARD_COLUMNS = ("site", "site_id", "event", "wins", "nominations")

_BETWEEN = "; "
"""Stands between the values of a list in one cell."""
_BEFORE_ID = re.compile(r"; (?=[a-z_]{1,30}=)")
"""Stands between external ids in one cell. An id may have a semicolon of its own."""

# A spreadsheet runs a cell that starts with one of these. An apostrophe before it makes it text; a text that has
# apostrophes there by itself gets one more, so that taking one off always gives back what was written.
_RUNS_AS_FORMULA = re.compile(r"'*[=+\-@\t\r\n＝＋－＠]")  # noqa: RUF001 - full-width forms are run as well
_FIRST_OF_FORMULA = frozenset("'=+-@\t\r\n＝＋－＠")  # noqa: RUF001 - as above
_LONGEST_CELL = 2**31 - 1


def neutralise(text: str) -> str:
    r"""Return a text that no spreadsheet takes for a formula.

    >>> neutralise("=1+1"), neutralise("'-'"), neutralise("'Twas"), neutralise("Up")
    ("'=1+1", "''-'", "'Twas", 'Up')
    """
    return "'" + text if text[:1] in _FIRST_OF_FORMULA and _RUNS_AS_FORMULA.match(text) else text


def restore(cell: str) -> str:
    """Return the text that `neutralise` was given.

    >>> restore("'=1+1"), restore("''-'"), restore("'Twas")
    ('=1+1', "'-'", "'Twas")
    """
    return cell[1:] if cell.startswith("'") and _RUNS_AS_FORMULA.match(cell) else cell


def write_row(file: Any, cells: Iterable[Cell]) -> None:
    """Write one row with a `csv.writer`: None as an empty cell, 93.0 as 93, and numbers never as text."""
    file.writerow([cell if cell is None else _written(cell) for cell in cells])  # most cells are empty


def movie_row(movie: Movie) -> list[Cell]:
    """Return the cells of MOVIE_COLUMNS."""
    row: dict[str, Cell] = {column: getattr(movie, column) for column in _PLAIN}
    for column in TEXT_LISTS:
        row[column] = _BETWEEN.join(getattr(movie, column)) or None
    for column, role in _ROLES.items():
        row[column] = _BETWEEN.join(credit.name for credit in movie.people(role) if credit.name) or None
    for score in movie.scores:
        if score.kind in _SCORES:
            value, count = _SCORES[score.kind]
            row[value], row[count] = score.value, score.count
    for amount in movie.amounts:
        value, currency = _AMOUNTS[amount.kind]
        row[value], row[currency] = amount.value, amount.currency
    row["list_computed"] = "true" if movie.list_computed else "false"
    row["scraped_at"] = _time(movie)
    row["silent"] = _BETWEEN.join(movie.silent) or None
    row["external_ids"] = _BETWEEN.join(f"{name}={value}" for name, value in movie.external_ids.items()) or None
    return [row.get(column) for column in MOVIE_COLUMNS]


def credit_rows(movie: Movie) -> Iterator[tuple[Cell, ...]]:
    """Yield the cells of CREDIT_COLUMNS for each credit."""
    for credit in movie.credits:
        yield (
            *(movie.site, movie.site_id, credit.role, credit.position),
            *(credit.person_id, credit.name, credit.character),
        )


def other_title_rows(movie: Movie) -> Iterator[tuple[Cell, ...]]:
    """Yield the cells of OTHER_TITLE_COLUMNS for each other title."""
    for position, other in enumerate(movie.other_titles, 1):
        yield movie.site, movie.site_id, position, other.title, other.country, other.language, other.kind


def score_rows(movie: Movie) -> Iterator[tuple[Cell, ...]]:
    """Yield the cells of SCORE_COLUMNS for each score."""
    for score in movie.scores:
        form = SCORES[score.kind]
        yield (
            *(movie.site, movie.site_id, score.kind, score.value, form.scale, score.count, _time(movie)),
            *(score.average, None if score.average is None else form.average_scale, score.reviews),
            *(score.liked, score.neutral, score.disliked),
            *(None if score.certified is None else str(score.certified).lower(), score.sentiment),
            _BETWEEN.join(map(str, score.histogram)) or None,
        )


def offer_rows(movie: Movie) -> Iterator[tuple[Cell, ...]]:
    """Yield the cells of OFFER_COLUMNS for each offer."""
    for offer in movie.offers:
        seen = offer.seen_at.isoformat() if offer.seen_at else _time(movie)
        yield movie.site, movie.site_id, *(getattr(offer, column) for column in _OF_OFFER), _time(movie), seen


def related_rows(movie: Movie) -> Iterator[tuple[Cell, ...]]:
    """Yield the cells of RELATED_COLUMNS for each related title."""
    for position, other in enumerate(movie.related, 1):
        yield movie.site, movie.site_id, other.relation, position, other.site_id, other.title, other.connection


def award_rows(movie: Movie) -> Iterator[tuple[Cell, ...]]:
    """Yield the cells of AWARD_COLUMNS for each award."""
    for award in movie.awards:
        yield movie.site, movie.site_id, award.event, award.wins, award.nominations


def miss_row(miss: Miss) -> tuple[Cell, ...]:
    """Return the cells of MISS_COLUMNS."""
    return miss.site, miss.site_id, miss.url, miss.outcome, miss.reason, miss.checked_at.isoformat()


def read_movies(path: Path) -> Iterator[Movie]:
    """Yield the movies of a `movies.csv`, with what that table holds of them: no cast, and people without ids.

    Raises TableError when it is not such a table, FileNotFoundError when there is none.
    """
    csv.field_size_limit(_LONGEST_CELL)
    with path.open(encoding="utf-8-sig", newline="") as file:
        yield from _movies(file, path)


def _movies(file: TextIO, path: Path) -> Iterator[Movie]:
    reader = csv.DictReader(file, strict=True)
    try:
        missing = set(_FIRST_COLUMNS) - set(reader.fieldnames or ())
        if missing:
            raise TableError(f"{path} has no column {min(missing)}; move it away and crawl again")
        for row in reader:
            if None in row or None in row.values():
                raise TableError(
                    f"{path}, line {reader.line_num}: the row has not {len(reader.fieldnames or ())} cells"
                )
            yield msgspec.convert(_fields(row), Movie, strict=False)
    except (csv.Error, ValueError) as error:
        raise TableError(f"{path}, near line {reader.line_num}: {error}") from error


def _fields(row: dict[str, str]) -> dict[str, Any]:
    """Return the fields of a Movie as plain data, from the cells of MOVIE_COLUMNS."""
    cells = {column: restore(cell) if cell else None for column, cell in row.items()}
    found: dict[str, Any] = {column: cells.get(column) for column in (*_PLAIN, "list_computed", "scraped_at")}
    if cells["release_date"] is not None:
        parse_date(cells["release_date"])  # a spreadsheet that saved the file wrote dates in its own way
    for column in (*TEXT_LISTS, "silent"):
        found[column] = _split(cells.get(column))
    ids = _BEFORE_ID.split(cells.get("external_ids") or "")
    found["external_ids"] = dict(part.split("=", 1) for part in ids if part)
    found["credits"] = [
        {"name": name, "role": role, "position": position}
        for column, role in _ROLES.items()
        for position, name in enumerate(_split(cells[column]), 1)
    ]
    found["scores"] = [
        {"kind": kind, "value": cells[value], "count": cells[count]}
        for kind, (value, count) in _SCORES.items()
        if cells[value] is not None
    ]
    found["amounts"] = [
        {"kind": kind, "value": cells[value], "currency": cells[currency]}
        for kind, (value, currency) in _AMOUNTS.items()
        if cells[value] is not None
    ]
    return found


def _split(cell: str | None) -> list[str]:
    return cell.split(_BETWEEN) if cell else []


def _written(cell: Cell) -> Cell:
    if isinstance(cell, str):
        return neutralise(cell)
    return int(cell) if isinstance(cell, float) and cell.is_integer() else cell


def _time(movie: Movie) -> str | None:
    return movie.scraped_at.isoformat() if movie.scraped_at else None
