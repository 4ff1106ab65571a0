"""Reading and writing records in both databases: rows of the tables, and `Movie`s.

A store gives a batch to `write`, inside a transaction that no other process writes in. What is
stored is read, merged with what is new by `matching.merging`, and written where it has changed.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cache, lru_cache
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, Protocol, Self

import msgspec

from moviecrawler.basics.clock import latest, utc_now
from moviecrawler.database.tables import (
    ALIASES,
    CHILDREN,
    CREDITS,
    ENDED_OFFERS,
    FIELDS,
    LIST_ENTRIES,
    LIST_PAGES,
    LISTS,
    MISSES,
    OFFERS,
    OTHER_TITLES,
    PEOPLE,
    RECORDS,
    SCORE_HISTORY,
    SCORES,
    TITLES,
    Table,
)
from moviecrawler.items import (
    Amount,
    Award,
    Credit,
    Fetch,
    ListPage,
    Miss,
    Movie,
    Offer,
    OtherTitle,
    RelatedTitle,
    Score,
)
from moviecrawler.matching.merging import merged

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from moviecrawler.items import Site

Row = tuple[Any, ...]
Key = tuple["Site", str]
"""The site and the site_id of a record."""

ITEMS: Final[dict[str, type]] = {
    "scores": Score,
    "credits": Credit,
    "offers": Offer,
    "related": RelatedTitle,
    "awards": Award,
    "amounts": Amount,
    "other_titles": OtherTitle,
}
"""The items of the lists of a movie."""
ATTRIBUTES: Final = {"related_id": "site_id"}
"""The attributes of an item whose columns have other names."""


class Tables(Protocol):
    """One database, inside a transaction."""

    def select(self, query: str, ids: Collection[Any] = (), *values: object) -> list[Row]:
        """Return the rows of a query, in which `{ids}` is a condition and {mark} a value.

        Args:
            query: Such as `SELECT … WHERE site = {mark} AND site_id {ids}`.
            ids: The values of which one is what stands before `{ids}`.
            values: Those of the marks, which come first.
        """

    def columns_of(self, table: Table) -> str:
        """Return the columns of a table as `decoded` reads them."""

    def insert(self, table: Table, rows: Sequence[Row]) -> None:
        """Insert rows, of whose keys none is stored."""

    def upsert(self, table: Table, rows: Sequence[Row], condition: str = "") -> None:
        """Insert rows, or replace those with their keys; no key is given twice."""

    def delete(self, table: Table, keys: Sequence[Row]) -> None:
        """Delete the rows of which these values are the beginning of the key."""

    def change(self, statement: str, *values: object) -> None:
        """Run a statement, in which {mark} is a value."""

    def new_ids(self, table: Table, number: int, /) -> list[int]:
        """Return ids that no row has."""

    @property
    def is_loading(self) -> bool:
        """Whether so much is written that people are stored when all of it is."""

    def places_of(self, keys: Collection[Key], /) -> Mapping[Key, Place]:
        """Return the titles to which new records with these keys belong, where they are known."""

    def match_keys_of(self, movie: Movie, /) -> str | None:
        """Return the value of a record's `match_keys`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """The title to which a new record belongs."""

    title_id: int | None = None
    """None: a title of its own."""
    imdb_id: str | None = None
    """The title's IMDb id, if the record's page was compared with the title."""


@dataclass(slots=True, kw_only=True, eq=False)
class Stored:
    """A record as the database has it."""

    record_id: int
    title_id: int
    """Of an older record, the newer one's."""
    movie: Movie
    newer_id: int | None = None
    """The record of the same title on the same site that is shown instead; None for one that is
    shown."""
    placed_by_hand: bool = False
    updated_at: datetime | None = None
    added_at: datetime | None = None
    match_keys: str | None = None
    offered_since: dict[Row, datetime] = field(default_factory=dict)
    """When each offer was seen first."""
    is_new: bool = False
    is_changed: bool = True
    """Whether its keys have changed, so that it may belong to another title."""


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """The columns and tables that are read of records."""

    records: Table
    children: Mapping[Table, str]
    """A further condition by table."""


WHOLE: Final = View(records=RECORDS, children=dict.fromkeys(CHILDREN, ""))
_COMPARED: Final = (
    "record_id",
    "title_id",
    "newer_id",
    "placed_by_hand",
    "site",
    "site_id",
    "url",
    "imdb_id",
    "title",
    "original_title",
    "kind",
    "year",
    "end_year",
    "release_date",
    "season_count",
    "runtime_minutes",
    "series_id",
    "season",
    "episode",
    "scraped_at",
)
COMPARED: Final = View(
    records=replace(RECORDS, columns={name: RECORDS.columns[name] for name in _COMPARED}),
    children={
        OTHER_TITLES: "",
        CREDITS: " AND role IN ('director', 'creator')",
        SCORES: " AND kind = 'imdb'",  # for its votes
    },
)
"""What `catalogue.matching` compares."""


_CONVERTED: Final = ("json", "time", "boolean", "number")
"""The types whose values are not read as a database has them."""


@lru_cache(1024)
def text_of(time: datetime) -> str:
    """Return a time in UTC, as both databases read it."""
    return time.astimezone(UTC).isoformat()


def _encode(kind: str, value: Any) -> Any:
    """Return a value of a column's type as both databases read it."""
    if value is None:
        return None
    if kind == "json":
        return "[]" if value == [] else msgspec.json.encode(value).decode()
    return text_of(value) if kind == "time" else value


def decode(kind: str, value: Any) -> Any:
    """Return a value of a column's type from what a database has."""
    if value is None:
        return None
    if kind == "json":
        return msgspec.json.decode(value)
    if kind == "time":
        time = datetime.fromisoformat(value) if isinstance(value, str) else value
        return time.astimezone(UTC)
    if kind == "boolean":
        return bool(value)
    return float(value) if kind == "number" else value


@cache
def _kinds_of(table: Table) -> dict[str, str]:
    """Return the types of a table's columns."""
    return {name: table.type_of(name) for name in table.columns}


def decoded(table: Table, rows: Iterable[Row]) -> Iterator[dict[str, Any]]:
    """Yield the values of rows by the names of their columns."""
    kinds = _kinds_of(table)
    converted = [(name, kind) for name, kind in kinds.items() if kind in _CONVERTED]
    for row in rows:
        values = dict(zip(kinds, row, strict=True))
        for name, kind in converted:  # few, and there are many rows
            values[name] = decode(kind, values[name])
        yield values


def encoded(table: Table, values: Mapping[str, Any]) -> Row:
    """Return a row of a table."""
    return tuple(_encode(kind, values.get(name)) for name, kind in _kinds_of(table).items())


def read_stored(
    tables: Tables,
    condition: str,
    ids: Collection[Any],
    *values: object,
    view: View = WHOLE,
) -> list[Stored]:
    """Return the records for which a condition of `Tables.select` is true, in their order.

    Args:
        tables: The database.
        condition: Such as `record_id {ids}`.
        ids: The values of `{ids}`.
        values: The values of marks.
        view: The fields that are read.
    """
    table = view.records
    query = f"SELECT {tables.columns_of(table)} FROM records WHERE {condition} ORDER BY record_id"
    found: dict[int, Stored] = {}
    for row in decoded(table, tables.select(query, ids, *values)):
        movie = {name: row.pop(name) for name in FIELDS if name in row}
        if movie.get("fetch") is not None:
            movie["fetch"] = msgspec.convert(movie["fetch"], Fetch)
        found[row["record_id"]] = Stored(movie=Movie(**movie), **row)
    if found:
        for child, more in view.children.items():
            _read_children(tables, child, more, found)
        _find_titles_of_older(tables, found.values())
    return list(found.values())


def _find_titles_of_older(tables: Tables, found: Collection[Stored]) -> None:
    """Set the title_id of older records: that of the newer ones."""
    newer = {stored.newer_id for stored in found if stored.newer_id is not None}
    query = "SELECT record_id, title_id FROM records WHERE record_id {ids}"
    if newer:
        titles: dict[int, int] = dict(tables.select(query, newer))
        for stored in found:
            if stored.newer_id is not None:
                stored.title_id = titles[stored.newer_id]


def _read_children(
    tables: Tables, table: Table, condition: str, found: Mapping[int, Stored]
) -> None:
    item = ITEMS[table.of_record]
    names = {
        column: ATTRIBUTES.get(column, column)
        for column in table.columns
        if ATTRIBUTES.get(column, column) in item.__slots__  # type: ignore[attr-defined]
    }
    query = (
        f"SELECT {tables.columns_of(table)} FROM {table.name}"
        f" WHERE record_id {{ids}}{condition} ORDER BY {', '.join(table.key)}"
    )
    for row in decoded(table, tables.select(query, found.keys())):
        stored = found[row["record_id"]]
        part = item(**{attribute: row[column] for column, attribute in names.items()})
        getattr(stored.movie, table.of_record).append(part)
        if isinstance(part, Offer):
            stored.offered_since[part.key()] = row["since"]


def _child_rows(table: Table, stored: Stored) -> list[Row]:
    """Return the rows of a movie's list: there are many, so each is made by a few calls."""
    parts = getattr(stored.movie, table.of_record)
    if not parts:
        return []
    form = _ROW_FORMS[table]
    record_id = stored.record_id
    if form.is_plain:
        return [(record_id, *form.read(part)) for part in parts]
    rows: list[Row] = []
    for position, part in enumerate(parts, 1):
        cells = list(form.read(part))
        if table is OFFERS:
            cells[form.since] = stored.offered_since[part.key()]
        for index, kind in form.encoded:
            cells[index] = _encode(kind, cells[index])
        own = (record_id, position) if form.has_position else (record_id,)
        rows.append((*own, *cells))
    return rows


@dataclass(frozen=True, slots=True, kw_only=True)
class _RowForm:
    """How a part of a movie becomes a row."""

    has_position: bool
    """Whether its position in the list follows the record's id."""
    read: Callable[[Any], Row]
    """Returns the other cells."""
    encoded: list[tuple[int, str]]
    """The indexes of cells that are encoded, with their types."""
    since: int
    """The index of `since`; -1 where there is none."""

    is_plain: bool
    """Whether the other cells are what is read."""

    @classmethod
    def of(cls, table: Table) -> Self:
        item = ITEMS[table.of_record]
        has_position = "position" in table.columns and not hasattr(item, "position")
        names = list(table.columns)[2 if has_position else 1 :]
        kinds = [table.type_of(name) for name in names]
        attributes = [{"since": "seen_at", **ATTRIBUTES}.get(name, name) for name in names]
        encoded = [(n, kind) for n, kind in enumerate(kinds) if kind in {"json", "time"}]
        return cls(
            has_position=has_position,
            read=attrgetter(*attributes),
            encoded=encoded,
            since=names.index("since") if "since" in names else -1,
            is_plain=not has_position and not encoded,
        )


_OFFERED: Final = tuple(name for name in ENDED_OFFERS.columns if name in Offer.__slots__)
_ROW_FORMS: Final = {table: _RowForm.of(table) for table in CHILDREN}


_read_record: Final = attrgetter(
    *(f"movie.{name}" if name in FIELDS else name for name in RECORDS.columns)
)
_ENCODED: Final = [
    (index, kind)
    for index, kind in enumerate(map(RECORDS.type_of, RECORDS.columns))
    if kind in {"json", "time"}
]


def _record_row(stored: Stored) -> Row:
    """Return a record's row; an older record of a title belongs to the newer one alone."""
    cells = list(_read_record(stored))
    for index, kind in _ENCODED:
        cells[index] = _encode(kind, cells[index])
    if stored.newer_id is not None:
        cells[_TITLE_ID] = None
    return tuple(cells)


_TITLE_ID: Final = list(RECORDS.columns).index("title_id")


def by_key(
    tables: Tables, keys: Collection[Key], columns: str, table: str, key: str = "site_id"
) -> list[Row]:
    """Return columns of the rows of a table that have these sites and ids, which are in `key`."""
    rows = []
    for site in {site for site, _ in keys}:
        ids = [site_id for key_site, site_id in keys if key_site == site]
        query = f"SELECT {columns} FROM {table} WHERE site = {{mark}} AND {key} {{ids}}"
        rows += tables.select(query, ids, site)
    return rows


class BatchWriter:
    """Writes one batch of items."""

    def __init__(self, tables: Tables, margin: float) -> None:
        self._tables = tables
        self._margin = margin
        self._latest = text_of(latest())

    def write_misses(self, misses: Sequence[Miss]) -> None:
        """Store misses, but for those of titles that were read later."""
        newest = {(miss.site, miss.site_id): miss for miss in misses}
        read = self._read_at(newest)
        rows = [
            encoded(MISSES, {name: getattr(miss, name) for name in MISSES.columns})
            for key, miss in newest.items()
            if key not in read or not miss.checked_at < read[key] <= latest()
        ]
        self._tables.upsert(
            MISSES,
            rows,
            f"excluded.checked_at >= known.checked_at OR known.checked_at > '{self._latest}'",
        )

    def _read_at(self, keys: Collection[Key]) -> dict[Key, datetime]:
        """Return when those of these titles were read whose own pages were."""
        found = by_key(self._tables, keys, "site, site_id, scraped_at, source", "records")
        return {
            (site, site_id): decode("time", scraped_at)
            for site, site_id, scraped_at, source in found
            if source != "list"
        }

    def end_misses(self, movies: Sequence[Movie]) -> None:
        """Delete the misses of titles whose page or dataset row was read later."""
        read = {
            (movie.site, site_id): movie.scraped_at for movie in movies for site_id in movie.ids
        }
        found = by_key(self._tables, read, "site, site_id, checked_at", "misses")
        ended = []
        for site, site_id, checked_at in found:
            checked = decode("time", checked_at)
            if checked <= read[site, site_id] or checked > latest():
                ended.append((site, site_id))
        self._tables.delete(MISSES, ended)

    def write_aliases(self, movies: Sequence[Movie]) -> set[Key]:
        """End the aliases that titles' ids were, and store those that led to their pages.

        Return the titles to which that matters.
        """
        own = {(movie.site, movie.site_id or ""): movie.scraped_at for movie in movies}
        concerned: set[Key] = set()
        found = by_key(self._tables, own, "site, old_id, since", "aliases", "old_id")
        for site, old_id, since in found:
            read = own[site, old_id]
            if read is not None and decode("time", since) <= read:
                concerned.add((site, old_id))
        self._tables.delete(ALIASES, sorted(concerned))
        # Of several pages that one id led to, the last one counts.
        led = {
            (movie.site, movie.fetch.requested_id): movie
            for movie in movies
            if movie.fetch is not None and movie.fetch.is_alias and movie.fetch.requested_id
        }
        read_at = self._read_at(led)
        new = {
            (site, old_id): movie
            for (site, old_id), movie in led.items()
            if movie.scraped_at
            and movie.scraped_at >= read_at.get((site, old_id), movie.scraped_at)
        }
        rows = [
            (site, old_id, movie.site_id, _encode("time", movie.scraped_at))
            for (site, old_id), movie in new.items()
        ]
        self._tables.upsert(ALIASES, rows, "excluded.since >= known.since")
        return concerned | {(movie.site, movie.site_id or "") for movie in new.values()}

    def write(self, items: Sequence[Movie | Miss | ListPage]) -> tuple[list[Stored], set[Key]]:
        """Write items, in the order of their times.

        Return the records that have changed, and the titles to which new or ended aliases matter.
        """
        movies = [item for item in items if isinstance(item, Movie)]
        # Misses first: a movie from a list makes its record newer than the miss, although its page
        # was not read.
        self.write_misses([item for item in items if isinstance(item, Miss)])
        stored = self.write_movies(movies)
        read = [movie for movie in movies if movie.source != "list"]
        self.end_misses(read)
        for page in items:
            if isinstance(page, ListPage):
                self.write_list(page)
        return stored, self.write_aliases(read)

    def write_list(self, page: ListPage) -> None:
        """Store a page of a list; if it is the last one of a pass, that replaces what it covers.

        A page of a pass before the newest complete one is ignored.
        """
        of_list = "site = {mark} AND list_name = {mark}"
        key = (page.site, page.list_name)
        for table in (LIST_ENTRIES, LIST_PAGES, LISTS):  # passes of a wrong clock
            untrue = f"DELETE FROM {table.name} WHERE {of_list} AND pass_at > {{mark}}"
            self._tables.change(untrue, *key, self._latest)
        query = f"SELECT pass_at FROM lists WHERE {of_list}"
        if any(decode("time", known) > page.pass_at for (known,) in self._select(query, *key)):
            return
        pass_at = text_of(page.pass_at)
        self._tables.upsert(
            LIST_PAGES, [(*key, pass_at, page.page_offset, page.next_offset, page.ends)]
        )
        entries = [(*key, pass_at, entry.rank, entry.site_id) for entry in page.entries]
        self._tables.upsert(LIST_ENTRIES, entries)
        pages = self._select(
            "SELECT page_offset, next_offset, ends FROM list_pages"
            f" WHERE {of_list} AND pass_at = {{mark}} ORDER BY page_offset",
            *key,
            pass_at,
        )
        end = _end_of_pass(pages)
        if end is None:
            return
        covers = None if end.is_whole else end.offset
        read_at = text_of(page.read_at)
        row = (*key, pass_at, covers, page.total, page.computed, read_at)
        self._tables.upsert(LISTS, [row])
        older = f"{of_list} AND pass_at < {{mark}}"
        self._tables.change(f"DELETE FROM list_pages WHERE {older}", *key, pass_at)
        if covers is None:
            self._tables.change(f"DELETE FROM list_entries WHERE {older}", *key, pass_at)
        else:
            replaced = f"DELETE FROM list_entries WHERE {older} AND rank <= {{mark}}"
            self._tables.change(replaced, *key, pass_at, covers)

    def _select(self, query: str, *values: object) -> list[Row]:
        return self._tables.select(query, (), *values)

    def write_movies(self, movies: Sequence[Movie]) -> list[Stored]:
        """Merge movies into what is known of them, and write what has changed.

        Return the records that have changed.
        """
        groups: dict[Key, list[Movie]] = defaultdict(list)
        for movie in movies:
            groups[movie.site, movie.site_id or ""].append(movie)
        known = {
            (stored.movie.site, stored.movie.site_id): stored
            for stored in read_by_key(self._tables, groups)
        }
        places = self._tables.places_of(groups.keys() - known.keys())
        changes = []
        for key, group in groups.items():
            before = known.get(key)
            merging = group if before is None else [before.movie, *group]
            movie = merging[0]
            for newer in merging[1:]:
                movie = merged(newer, movie, self._margin, latest()) or movie
            if before is None or movie is not before.movie:
                place = places.get(key, _NOWHERE)
                if movie.imdb_id is None and place.imdb_id is not None:
                    movie = replace(movie, imdb_id=place.imdb_id)
                changes.append(_Change(before=before, movie=movie, place=place))
        self._complete(changes)
        self._write(changes)
        return [change.after for change in changes]

    def _complete(self, changes: Sequence[_Change]) -> None:
        """Set what each record is after its change."""
        new = [change for change in changes if change.before is None]
        untitled = [change for change in new if change.place.title_id is None]
        record_ids = iter(self._tables.new_ids(RECORDS, len(new)))
        title_ids = iter(self._tables.new_ids(TITLES, len(untitled)))
        titles = []
        now = utc_now()
        for change in changes:
            movie = change.movie
            before = change.before
            keys = self._tables.match_keys_of(movie)
            if before is None:
                title_id = change.place.title_id or next(title_ids)
                change.after = Stored(
                    record_id=next(record_ids),
                    title_id=title_id,
                    movie=movie,
                    updated_at=now,
                    added_at=now,
                    match_keys=keys,
                    is_new=change.place.title_id is None,
                )
                if change.after.is_new:
                    titles.append(_title_row(title_id, movie))
            else:
                has_other_keys = keys != before.match_keys and not before.placed_by_hand
                was_older = before.newer_id is not None  # it may be the newest of its title now
                change.after = replace(
                    before,
                    movie=movie,
                    match_keys=keys,
                    is_changed=has_other_keys or was_older,
                )
            change.after.offered_since = _offered_since(movie, before)
            change.find_rows()
            if before is not None and change.is_of_another_content():
                change.after.updated_at = now
        self._tables.insert(TITLES, titles)

    def _write(self, changes: Sequence[_Change]) -> None:
        new = [change.after for change in changes if change.before is None]
        old = [change.after for change in changes if change.before is not None]
        self._tables.insert(RECORDS, [_record_row(stored) for stored in new])
        self._tables.upsert(RECORDS, [_record_row(stored) for stored in old])
        self._write_history(changes)
        self._write_ended_offers(changes)
        if not self._tables.is_loading:
            self._write_people(changes)
        for table in CHILDREN:
            rows: list[Row] = []
            replaced: list[Row] = []
            for change in changes:
                if table in change.rows:
                    rows += change.rows[table]
                    if change.before is not None:
                        replaced.append((change.after.record_id,))
            self._tables.delete(table, replaced)
            self._tables.insert(table, rows)

    def _write_history(self, changes: Sequence[_Change]) -> None:
        """Note the scores that have changed, and since when."""
        by_id = {change.after.record_id: change for change in changes if change.before is not None}
        # Scores dated in the future came from a wrong clock: their entries are replaced by ones of
        # now.
        query = "SELECT record_id, kind, since FROM score_history WHERE since > {mark}"
        future = self._tables.select(f"{query} AND record_id {{ids}}", by_id, self._latest)
        untrue = [
            (record_id, kind, text_of(decode("time", since)))
            for record_id, kind, since in future
            if decode("time", since) > by_id[record_id].movie.scraped_at
        ]
        self._tables.delete(SCORE_HISTORY, untrue)
        ended = {(record_id, kind) for record_id, kind, _ in untrue}
        new: list[Row] = []
        old: list[Row] = []
        for change in changes:
            record_id = change.after.record_id
            rows = new if change.before is None else old
            before = {} if change.before is None else _score_values(change.before.movie)
            now = _score_values(change.movie)
            for kind in before | now:
                if before.get(kind) != now.get(kind) or (record_id, kind) in ended:
                    value, count, average = now.get(kind, (None, None, None))
                    since = _encode("time", change.movie.scraped_at)
                    rows.append((record_id, kind, since, value, count, average))
        self._tables.insert(SCORE_HISTORY, new)
        # The same page again with other values: a newer version extracted it.
        self._tables.upsert(SCORE_HISTORY, old)

    def _write_ended_offers(self, changes: Sequence[_Change]) -> None:
        """Keep the offers that a newer page does not show any more."""
        rows = []
        for change in changes:
            if change.before is None or OFFERS not in change.rows:
                continue
            if change.movie.scraped_at == change.before.movie.scraped_at:
                continue  # the same page again: a newer version has extracted it
            shown = {offer.key() for offer in change.movie.offers}
            gone = [o for o in change.before.movie.offers if o.key() not in shown]
            for position, offer in enumerate(gone, 1):
                values = {
                    "record_id": change.after.record_id,
                    "ended_at": change.movie.scraped_at,
                    "position": position,
                    "since": change.before.offered_since[offer.key()],
                }
                own = {name: getattr(offer, name) for name in _OFFERED}
                rows.append(encoded(ENDED_OFFERS, own | values))
        self._tables.upsert(ENDED_OFFERS, rows)

    def _write_people(self, changes: Sequence[_Change]) -> None:
        """Store people with their newest names."""
        rows: dict[Row, Row] = {}
        for change in sorted(changes, key=lambda change: change.movie.scraped_at or utc_now()):
            movie = change.movie
            if CREDITS not in change.rows:
                continue
            named_at = _encode("time", movie.scraped_at)
            for credit in reversed(movie.credits):
                key = (movie.site, credit.person_id or credit.name)
                if credit.name is not None or key not in rows:
                    rows[key] = (*key, credit.person_id, credit.name, named_at)
        found = by_key(self._tables, rows, "site, person_key, name", "people", "person_key")
        names = {(site, person_key): name for site, person_key, name in found}
        # Most people are known, and to look is faster than to try.
        self._tables.insert(PEOPLE, [rows[key] for key in sorted(rows.keys() - names.keys())])
        self._tables.upsert(
            PEOPLE,
            [rows[key] for key, name in names.items() if rows[key][3] != name],
            "excluded.name IS NOT NULL AND (known.name IS NULL OR known.name <> excluded.name)"
            " AND (excluded.named_at >= known.named_at"
            f" OR known.named_at > '{self._latest}')",
        )


_NOWHERE: Final = Place()


@dataclass(frozen=True, slots=True, kw_only=True)
class _End:
    """Where a pass over a list that has no gap ends."""

    offset: int
    is_whole: bool
    """Whether that is the end of the list."""


def _end_of_pass(pages: Sequence[Row]) -> _End | None:
    """Return the end of a pass; None while pages are missing.

    Each row has the offset of a page, that of the next one, and what ends with it, in order.
    """
    reached = 0
    for page_offset, next_offset, ends in pages:
        if page_offset > reached:
            return None
        reached = max(reached, next_offset)
        if ends is not None:
            return _End(offset=reached, is_whole=ends == "list")
    return None


@dataclass(slots=True, kw_only=True)
class _Change:
    """A record before and after a batch."""

    before: Stored | None
    movie: Movie
    place: Place
    after: Stored = field(init=False)
    rows: dict[Table, list[Row]] = field(default_factory=dict)
    """The new rows in each table where they are others than before."""

    def find_rows(self) -> None:
        """Set `rows`."""
        for table in CHILDREN:
            rows = _child_rows(table, self.after)
            known = [] if self.before is None else _child_rows(table, self.before)
            if rows != known and (not known or set(rows) != set(known)):
                self.rows[table] = rows

    def is_of_another_content(self) -> bool:
        """Return whether anything but the time and the way of fetching has changed."""
        before = {} if self.before is None else _content(self.before)
        return bool(self.rows) or before != _content(self.after)


def _content(stored: Stored) -> dict[str, Any]:
    return {
        name: getattr(stored.movie, name) for name in FIELDS if name not in {"scraped_at", "fetch"}
    }


def read_by_key(tables: Tables, keys: Collection[Key]) -> list[Stored]:
    """Return the records that have these sites and site ids."""
    found = []
    for site in sorted({site for site, _ in keys}):
        ids = [site_id for key_site, site_id in keys if key_site == site]
        found += read_stored(tables, "site = {mark} AND site_id {ids}", ids, site)
    return found


def _title_row(title_id: int, movie: Movie) -> Row:
    """Return the row of a title that has only one record."""
    values: dict[str, Any] = {
        "title_id": title_id,
        "matched_by": "[]",
        "popularity": 0,
        "title": movie.title,
        "original_title": movie.original_title,
        "kind": movie.kind,
        "year": movie.year,
        "runtime_minutes": movie.runtime_minutes,
    }
    if movie.kind in {"season", "episode"}:
        values["season"] = movie.season
        values["episode"] = movie.episode
    return tuple(map(values.get, TITLES.columns))


def _score_values(movie: Movie) -> dict[str, Row]:
    return {score.kind: (score.value, score.count, score.average) for score in movie.scores}


def _offered_since(movie: Movie, before: Stored | None) -> dict[Row, datetime]:
    """Return when each offer of a movie was seen first."""
    known = {} if before is None else before.offered_since
    since = {}
    for offer in movie.offers:
        seen = offer.seen_at or movie.scraped_at
        assert seen is not None  # noqa: S101 - the stores check it
        since[offer.key()] = min(seen, known.get(offer.key(), seen))
    return since
