"""Matches records of the Postgres store when they are written.

It finds which of them are the same title on different sites.

`matching.titles.match_titles` decides for a record together with all records that share a key
with it, and with those already matched with these, so that the order of crawling does not matter.
Of two records of one title on one site the newer is shown, and the older belongs to it. Seasons and
episodes are not compared: `sync_catalogue` gives them titles by their series.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import msgspec
from psycopg2.extras import execute_values

from moviecrawler.database.aliases import by_site
from moviecrawler.database.connection import as_json
from moviecrawler.database.postgres import PostgresTables, is_part, match_hashes
from moviecrawler.database.records import COMPARED, Key, Stored, read_by_key, read_stored
from moviecrawler.database.sql import read_sql
from moviecrawler.database.tables import RECORDS
from moviecrawler.items import Movie
from moviecrawler.matching.slugs import slug_key
from moviecrawler.matching.titles import MatchedTitle, match_keys, match_titles, newer_records
from moviecrawler.sites import ID_SITE
from moviecrawler.sites.ids import by_authority

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    # Psycopg2 writes its classes in small letters.
    from psycopg2.extensions import cursor as Cursor  # noqa: N812

    from moviecrawler.sites import Site

logger = logging.getLogger(__name__)

_CANDIDATES = read_sql("candidates.sql")
_REGROUP = read_sql("regroup.sql")
_UNREAD = read_sql("unread_titles.sql")
_BY_ALIAS = read_sql("titles_by_alias.sql")
_SYNC = (
    "SELECT sync_catalogue(ARRAY(SELECT unnest(%(titles)s::bigint[])"
    " UNION SELECT title_id FROM records WHERE record_id = ANY (%(records)s::bigint[])))"
)
_STORED_SITES = (
    "SELECT site FROM sites s WHERE EXISTS (SELECT FROM records r WHERE r.site = s.site)"
)
_BY_IMDB_ID = "SELECT title_id, imdb_id FROM titles WHERE imdb_id = ANY (%s)"
_ALIASES_OF = (
    "SELECT a.site, a.old_id, a.new_id FROM aliases a"
    " JOIN unnest(%(sites)s::text[], %(site_ids)s::text[]) AS old (site, site_id)"
    " ON a.site = old.site AND a.old_id = old.site_id"
)
_NEW_KEYS = "UPDATE records SET match_keys = %s WHERE record_id = %s"
_RENEW_KEYS = (
    "UPDATE records r SET match_keys = new.keys::bigint[]"
    " FROM (VALUES %s) AS new (record_id, keys) WHERE r.record_id = new.record_id"
)
_LISTED = (
    "SELECT site, site_id, key FROM listed_ids WHERE (site, site_id) > ({mark}, {mark})"
    " ORDER BY site, site_id LIMIT 10000"
)
_RENEW_LISTED = (
    "UPDATE listed_ids i SET key = new.key FROM (VALUES %s) AS new (site, site_id, key)"
    " WHERE i.site = new.site AND i.site_id = new.site_id"
)
_NEW_TITLE = "INSERT INTO titles DEFAULT VALUES RETURNING title_id"
_MAX_RECORDS = 100
"""A key that more records share than this is no evidence."""
_KEYS_BATCH = 5_000
"""Record ids whose keys are renewed at a time."""
_KEYED = replace(
    COMPARED,
    records=replace(
        RECORDS, columns={**COMPARED.records.columns, "match_keys": RECORDS.columns["match_keys"]}
    ),
)
"""What the keys of a record are made of, with those that are stored."""
_SEARCH_BATCH = 1_000
"""Searches in one statement; more would take too long."""


class Move(msgspec.Struct, kw_only=True):
    """The new place of a record."""

    record_id: int
    title_id: int | None
    newer_id: int | None = None
    placed_by_hand: bool


class _Search(msgspec.Struct):
    """One search of `candidates.sql`."""

    asker: int
    """The record_id of the record whose title is searched."""
    keys: list[int]
    """Its hashes."""


@dataclass(slots=True, kw_only=True)
class Plan:
    """Which records belong together."""

    titles: Collection[int] = ()
    """The titles that have the records."""
    pool: list[Stored] = field(default_factory=list)
    groups: list[MatchedTitle] = field(default_factory=list)
    moves: list[Move] = field(default_factory=list)
    """Of older records, and of those that take the place of one that was placed by hand."""
    crowded_searches: int = 0
    """Searches that went without keys which too many records share."""
    older: dict[int, list[Stored]] = field(default_factory=lambda: defaultdict(list))
    """The older records of a title, by the record_id of the one that is shown instead."""


def plan_titles(cursor: Cursor, changed: Sequence[Stored]) -> Plan:
    """Decide to which titles the changed ones of these records belong, without writing.

    Call it and `apply_plan` under one `lock_titles`, so that no other process changes the records
    in between.
    """
    changed = [record for record in changed if record.is_changed]
    titles_of = _titles_by_alias(cursor, changed)
    # Seasons and episodes are not compared. They too may have older records.
    changed = [
        record
        for record in changed
        if not is_part(record.movie) or record.record_id in titles_of or record.newer_id is not None
    ]
    if not changed:
        return Plan()
    cursor.execute(_STORED_SITES)
    stored_sites = {site for (site,) in cursor.fetchall()}
    searches = [
        (record, keys) for record in changed if (keys := _search_keys(record, stored_sites))
    ]
    crowded = _search(cursor, searches, titles_of)
    titles = {
        record.title_id for record in changed if record.record_id in titles_of or not record.is_new
    }
    plan = _match(cursor, titles.union(*titles_of.values()) | _titles_by_imdb_id(cursor, changed))
    plan.crowded_searches = crowded
    return plan


def apply_plan(cursor: Cursor, plan: Plan, changed: Sequence[Stored]) -> None:
    """Give records to the titles that they belong to, and update the catalogue.

    Records that were placed by hand keep their titles.
    """
    if plan.pool:
        _regroup(cursor, plan)
    sync_catalogue(
        cursor,
        {*plan.titles, *(record.title_id for record in changed)},
        [record.record_id for record in (*plan.pool, *changed)],
    )


def match_again(cursor: Cursor, site: Site, site_ids: Sequence[str]) -> int:
    """Match stored records again after something new is known of them.

    Call it under `lock_titles`. Return how many searches went without crowded keys.
    """
    changed = read_changed(cursor, [(site, site_id) for site_id in site_ids])
    plan = plan_titles(cursor, changed)
    apply_plan(cursor, plan, changed)
    return plan.crowded_searches


def renew_keys(cursor: Cursor) -> None:
    """Compute the keys of all records and listed ids anew, and match the records that change.

    A migration does so where an older version had other keys. Call it under `lock_titles`.
    """
    tables = PostgresTables(cursor)
    changed: dict[Site, list[str]] = defaultdict(list)
    ((last,),) = tables.select("SELECT coalesce(max(record_id), 0) FROM records")
    for begin in range(0, last, _KEYS_BATCH):
        of_batch = "record_id > {mark} AND record_id <= {mark}"
        records = read_stored(tables, of_batch, (), begin, begin + _KEYS_BATCH, view=_KEYED)
        _set_imdb_ids(tables, records)
        new = []
        for stored in records:
            keys = tables.match_keys_of(stored.movie)
            if keys != stored.match_keys:
                new.append((stored.record_id, keys))
                changed[stored.movie.site].append(str(stored.movie.site_id))
        if new:
            execute_values(cursor, _RENEW_KEYS, new)
    after = ["", ""]
    while listed := tables.select(_LISTED, (), *after):
        renewed = {(site, site_id, slug_key(site, site_id)) for site, site_id, _ in listed}
        if others := sorted(renewed.difference(listed)):
            execute_values(cursor, _RENEW_LISTED, others)
        *after, _ = listed[-1]
    for site, site_ids in changed.items():
        for begin in range(0, len(site_ids), _SEARCH_BATCH):
            match_again(cursor, site, site_ids[begin : begin + _SEARCH_BATCH])


def _set_imdb_ids(tables: PostgresTables, records: Sequence[Stored]) -> None:
    """Give movies the IMDb ids of their titles in the catalogue."""
    places = tables.places_of(
        [(stored.movie.site, str(stored.movie.site_id)) for stored in records]
    )
    for stored in records:
        movie = stored.movie
        movie.imdb_id = movie.imdb_id or places[movie.site, str(movie.site_id)].imdb_id


def read_changed(cursor: Cursor, keys: Collection[Key]) -> list[Stored]:
    """Return the records that were not placed by hand, and update their keys."""
    tables = PostgresTables(cursor)
    changed = [stored for stored in read_by_key(tables, keys) if not stored.placed_by_hand]
    _set_imdb_ids(tables, changed)
    for stored in changed:
        match_keys = tables.match_keys_of(stored.movie)
        if match_keys != stored.match_keys:
            cursor.execute(_NEW_KEYS, (match_keys, stored.record_id))
    return changed


def sync_catalogue(cursor: Cursor, titles: Collection[int], records: Collection[int]) -> None:
    """Update the catalogue after records were written or moved.

    `titles` are those that may have lost or gained records, `records` those that were written.
    """
    cursor.execute(_SYNC, {"titles": list(titles), "records": list(records)})


def _titles_by_imdb_id(cursor: Cursor, changed: Iterable[Stored]) -> set[int]:
    """Return the titles that the catalogue has under the IMDb ids of these records.

    The titles of the records with these ids are among them.
    """
    by_imdb_id = {record.movie.imdb_id: record for record in changed if record.movie.imdb_id}
    cursor.execute(_BY_IMDB_ID, (list(by_imdb_id),))
    rows = cursor.fetchall()
    return {title_id for title_id, _ in rows} | {
        by_imdb_id[imdb_id].title_id for _, imdb_id in rows
    }


def _search_keys(record: Stored, stored_sites: Collection[Site]) -> set[int]:
    """Return the hashes by which other records of a record's title are searched.

    No search is needed while no other site has a record, as when IMDb's datasets are loaded first.
    """
    movie = record.movie
    if is_part(movie):
        return set()
    others = set(stored_sites) - {movie.site}
    keys = match_hashes(match_keys(movie, asking=True), others) if others else set()
    if movie.imdb_id is not None and movie.site != ID_SITE:
        keys |= match_hashes([movie.imdb_id], [movie.site])  # of an older record
    return keys


def _titles_by_alias(cursor: Cursor, changed: Sequence[Stored]) -> dict[int, set[int]]:
    """Return, by the id of a record, the titles of records whose ids are aliases of its own.

    Those of which its own id is an alias are among them.
    """
    titles_of: dict[int, set[int]] = defaultdict(set)
    values = {
        "records": [record.record_id for record in changed],
        "sites": [record.movie.site for record in changed],
        "site_ids": [record.movie.site_id for record in changed],
    }
    cursor.execute(_BY_ALIAS, values)
    for record_id, title_id in cursor.fetchall():
        titles_of[record_id].add(title_id)
    return titles_of


def _search(
    cursor: Cursor,
    searches: Sequence[tuple[Stored, Collection[int]]],
    titles_of: dict[int, set[int]],
) -> int:
    """Add, by the id of an asking record, the other titles that records with its hashes have.

    A key that too many records share is no evidence: a search that finds too many is done again key
    by key, without the crowded ones. Return how many these are.
    """
    sharing: dict[int, set[int]] = defaultdict(set)
    whole = [_Search(record.record_id, list(keys)) for record, keys in searches]
    crowded = _find_titles(cursor, whole, sharing)
    by_key = [
        _Search(record.record_id, [key])
        for record, keys in searches
        if record.record_id in crowded
        for key in keys
    ]
    if by_key:
        _find_titles(cursor, by_key, sharing)
        logger.info(
            "%d of %d searches have keys that more than %d records share, and go without them",
            len(crowded),
            len(searches),
            _MAX_RECORDS,
        )
    for record, _ in searches:
        if titles := sharing[record.record_id] - {record.title_id}:
            titles_of[record.record_id] |= titles
    return len(crowded)


def _find_titles(
    cursor: Cursor, searches: Sequence[_Search], titles_of: dict[int, set[int]]
) -> set[int]:
    """Add the titles that searches find, by the asking record; return those that find too many."""
    crowded: set[int] = set()
    for begin in range(0, len(searches), _SEARCH_BATCH):
        batch = as_json(searches[begin : begin + _SEARCH_BATCH])
        cursor.execute(_CANDIDATES, {"asked": batch, "most": _MAX_RECORDS})
        for record_id, title_id in cursor.fetchall():
            if title_id is None:
                crowded.add(record_id)
            else:
                titles_of[record_id].add(title_id)
    return crowded


def _match(cursor: Cursor, titles: Collection[int]) -> Plan:
    """Return the records of titles, and match those that are shown and were not placed by hand."""
    if not titles:
        return Plan()
    tables = PostgresTables(cursor)
    of_title = "title_id {ids} OR newer_id IN (SELECT record_id FROM records WHERE title_id {ids})"
    pool = read_stored(tables, of_title, titles, view=COMPARED)
    _set_imdb_ids(tables, pool)
    cursor.execute(_UNREAD, {"titles": sorted(titles)})
    pool += [
        Stored(record_id=-title_id, title_id=title_id, movie=msgspec.json.decode(item, type=Movie))
        for title_id, item in cursor.fetchall()
    ]
    plan = Plan(titles=titles, pool=pool)
    _find_older(cursor, plan)
    is_older = {record.record_id for records in plan.older.values() for record in records}
    shown = [
        record.movie
        for record in pool
        if record.record_id not in is_older and not record.placed_by_hand
    ]
    plan.groups = match_titles(movie for movie in shown if not is_part(movie))
    plan.groups += [MatchedTitle(movies={movie.site: movie}) for movie in shown if is_part(movie)]
    return plan


def _find_older(cursor: Cursor, plan: Plan) -> None:
    """Add to a plan which records are older ones of their titles.

    A newer record takes the place of an older one that was placed by hand.
    """
    movies = [record.movie for record in plan.pool]
    values = {
        "sites": [movie.site for movie in movies],
        "site_ids": [movie.site_id for movie in movies],
    }
    cursor.execute(_ALIASES_OF, values)
    for old_index, new_index in newer_records(movies, by_site(cursor.fetchall())).items():
        old = plan.pool[old_index]
        new = plan.pool[new_index]
        if new.record_id < 0:
            continue  # a title of the catalogue, whose page was not read yet
        plan.older[new.record_id].append(old)
        if old.placed_by_hand and not new.placed_by_hand:
            new.placed_by_hand = True
            new.title_id = old.title_id
            plan.moves.append(
                Move(record_id=new.record_id, title_id=old.title_id, placed_by_hand=True)
            )
        old.placed_by_hand = False
        if old.newer_id != new.record_id:
            plan.moves.append(
                Move(
                    record_id=old.record_id,
                    title_id=None,
                    newer_id=new.record_id,
                    placed_by_hand=False,
                )
            )


def _regroup(cursor: Cursor, plan: Plan) -> None:
    """Give the records of each group to one title: the title of one of them, or a new one."""
    record_of = {id(record.movie): record for record in plan.pool}
    fixed = {(record.title_id, record.movie.site) for record in plan.pool if record.placed_by_hand}
    corrected = {title_id for title_id, _ in fixed}
    taken: set[int] = set()
    moves = list(plan.moves)
    reasons: list[dict[str, int | list[str]]] = []

    def take_title(candidates: Iterable[int]) -> int:
        title_id = next((title_id for title_id in candidates if title_id not in taken), None)
        if title_id is None:
            cursor.execute(_NEW_TITLE)
            title_id = int(cursor.fetchall()[0][0])
        taken.add(title_id)
        return title_id

    def give(title_id: int, records: Iterable[Stored], matched_by: list[str]) -> None:
        moves.extend(
            Move(record_id=record.record_id, title_id=title_id, placed_by_hand=False)
            for record in records
            if record.title_id != title_id or record.newer_id is not None
        )
        reasons.append({"title_id": title_id, "matched_by": matched_by})

    for group in plan.groups:
        records = [record_of[id(group.movies[site])] for site in by_authority(group.movies)]
        # A newer record gets the title of its older one. A record that was placed by hand keeps its
        # title, which can't have another record of the same site.
        titles = [
            one.title_id for record in records for one in (*plan.older[record.record_id], record)
        ]
        titles.sort(key=lambda title_id: title_id not in corrected)
        title_id = take_title(titles)
        crowded_out = [record for record in records if (title_id, record.movie.site) in fixed]
        matched_by = [", ".join(match.reasons) for match in group.matches]
        if title_id in corrected:
            matched_by = ["placed by hand"]
        give(title_id, [record for record in records if record not in crowded_out], matched_by)
        for record in crowded_out:
            give(take_title([record.title_id]), [record], [])
    cursor.execute(_REGROUP, {"moves": as_json(moves), "reasons": as_json(reasons)})
