"""Matches records of the Postgres store when they are written.

It finds which of them are the same title on different sites.

`catalogue.matching.match_titles` decides for a record together with all records that share a key
with it, and with those already matched with these, so that the order of crawling does not matter.
Seasons and episodes are not compared: `sync_catalogue` gives them titles by their series.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import TYPE_CHECKING

import msgspec

from moviecrawler.catalogue.matching import match_keys, match_titles
from moviecrawler.database.connection import as_json
from moviecrawler.database.sql import read_sql
from moviecrawler.items import Movie
from moviecrawler.sites import BY_AUTHORITY

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    # Psycopg2 writes its classes in small letters.
    from psycopg2.extensions import cursor as Cursor  # noqa: N812

    from moviecrawler.catalogue.matching import MatchedTitle
    from moviecrawler.items import Site

_CANDIDATES = read_sql("candidates.sql")
_REGROUP = read_sql("regroup.sql")
_POOL = read_sql("pool.sql")
_LOCATE = read_sql("locate.sql")
_SYNC = (
    "SELECT sync_catalogue(ARRAY(SELECT unnest(%(titles)s::bigint[])"
    " UNION SELECT title_id FROM records WHERE record_id = ANY (%(records)s::bigint[])))"
)
_STORED_SITES = (
    "SELECT site::text FROM unnest(enum_range(NULL::site)) AS s (site)"
    " WHERE EXISTS (SELECT FROM records r WHERE r.site = s.site)"
)
_BY_IMDB_ID = "SELECT title_id, imdb_id FROM titles WHERE imdb_id = ANY (%s)"
_NEW_KEYS = "UPDATE records SET match_keys = %s WHERE record_id = %s"
_NEW_TITLE = "INSERT INTO titles DEFAULT VALUES RETURNING title_id"
_MAX_RECORDS = 100
"""A search that finds more records than this says nothing."""
_SEARCH_BATCH = 1_000
"""Searches in one statement; more would take too long."""


@dataclass(slots=True, kw_only=True, eq=False)
class Stored:
    """A record as the database has it."""

    record_id: int
    title_id: int
    movie: Movie
    is_new: bool = False
    """Whether it is new in this batch, so that it has a title of its own."""
    is_changed: bool = True
    """Whether its keys have changed, so that it may belong to another title."""
    placed_by_hand: bool = False


def is_part(movie: Movie) -> bool:
    """Return whether a movie is a part of a series, like the database's function of that name."""
    return movie.series_id is not None or movie.kind in {"season", "episode"}


def hash_keys(movie: Movie) -> list[int]:
    """Return the hashes by which a record is found, sorted; none for a part of a series."""
    return [] if is_part(movie) else sorted(_hashes(match_keys(movie), [movie.site]))


@dataclass(slots=True, kw_only=True)
class Plan:
    """Which records belong together."""

    pool: list[Stored] = field(default_factory=list)
    groups: list[MatchedTitle] = field(default_factory=list)


def plan_titles(cursor: Cursor, changed: Sequence[Stored]) -> Plan:
    """Decide to which titles the changed ones of these records belong, without writing.

    Call it and `apply_plan` under one `lock_titles`, so that no other process changes the records
    in between.
    """
    changed = [record for record in changed if record.is_changed and not is_part(record.movie)]
    if not changed:
        return Plan()
    cursor.execute(_STORED_SITES)
    stored_sites = {site for (site,) in cursor.fetchall()}
    # No search is needed while no other site has a record, as when IMDb's datasets are loaded
    # first.
    asked = [
        (record, _hashes(match_keys(record.movie, asking=True), others))
        for record in changed
        if (others := stored_sites - {record.movie.site})
    ]
    found = _search(cursor, asked)
    titles = {
        record.title_id for record in changed if record.record_id in found or not record.is_new
    }
    return _match(cursor, titles.union(*found.values()) | _titles_by_imdb_id(cursor, changed))


def apply_plan(cursor: Cursor, plan: Plan, changed: Sequence[Stored]) -> None:
    """Give records to the titles that they belong to, and update the catalogue.

    Records that were placed by hand keep their titles.
    """
    if plan.pool:
        _regroup(cursor, plan.pool, plan.groups)
    concerned = (*plan.pool, *changed)
    sync_catalogue(
        cursor,
        {record.title_id for record in concerned},
        [record.record_id for record in concerned],
    )


def match_again(cursor: Cursor, site: Site, site_ids: Sequence[str]) -> None:
    """Match stored records again after something new is known of them.

    Call it under `lock_titles`.
    """
    changed = read_stored(cursor, [site] * len(site_ids), site_ids)
    apply_plan(cursor, plan_titles(cursor, changed), changed)


def read_stored(cursor: Cursor, sites: Sequence[Site], site_ids: Sequence[str]) -> list[Stored]:
    """Return the records of titles that were not placed by hand, and update their keys."""
    cursor.execute(_LOCATE, {"sites": sites, "site_ids": site_ids})
    stored = []
    for record_id, title_id, known_keys, by_hand, _, verified_imdb_id, item in cursor.fetchall():
        if known_keys is None or by_hand:
            continue
        movie = msgspec.json.decode(item, type=Movie)
        movie.imdb_id = movie.imdb_id or verified_imdb_id
        keys = hash_keys(movie)
        if keys != known_keys:
            cursor.execute(_NEW_KEYS, (keys, record_id))
        stored.append(Stored(record_id=record_id, title_id=title_id, movie=movie))
    return stored


def sync_catalogue(cursor: Cursor, titles: Collection[int], records: Collection[int]) -> None:
    """Update the catalogue after records were written or moved.

    `titles` are those that may have lost or gained records, `records` those that were written.
    """
    cursor.execute(_SYNC, {"titles": list(titles), "records": list(records)})


def _titles_by_imdb_id(cursor: Cursor, changed: Iterable[Stored]) -> set[int]:
    """Return the titles that the catalogue has under the IMDb ids of these records.

    The titles of the records with these ids are among them.
    """
    named = {record.movie.imdb_id: record for record in changed if record.movie.imdb_id}
    cursor.execute(_BY_IMDB_ID, (list(named),))
    found = cursor.fetchall()
    return {title_id for title_id, _ in found} | {named[imdb_id].title_id for _, imdb_id in found}


def _hashes(keys: Iterable[str], sites: Collection[Site]) -> set[int]:
    """Return the hashes of keys on sites.

    They differ by site so that a search skips the asking record's own site.
    """
    return {
        int.from_bytes(blake2b(f"{site} {key}".encode(), digest_size=8).digest(), signed=True)
        for site in sites
        for key in keys
    }


def _search(cursor: Cursor, asked: Sequence[tuple[Stored, Collection[int]]]) -> dict[int, set[int]]:
    """Return, by the id of an asking record, the titles of records that have one of its hashes."""
    found: dict[int, set[int]] = defaultdict(set)
    for begin in range(0, len(asked), _SEARCH_BATCH):
        questions = [
            {"asker": record.record_id, "keys": keys}
            for record, keys in asked[begin : begin + _SEARCH_BATCH]
        ]
        cursor.execute(
            _CANDIDATES, {"asked": msgspec.json.encode(questions).decode(), "most": _MAX_RECORDS}
        )
        for record_id, title_id in cursor.fetchall():
            found[record_id].add(title_id)
    return found


def _match(cursor: Cursor, titles: Collection[int]) -> Plan:
    """Return the records of titles, and match those that were not placed by hand."""
    if not titles:
        return Plan()
    cursor.execute(_POOL, {"titles": sorted(titles)})
    pool = [
        Stored(
            record_id=record_id,
            title_id=title_id,
            placed_by_hand=placed_by_hand,
            movie=msgspec.json.decode(item, type=Movie),
        )
        for record_id, title_id, placed_by_hand, item, _ in cursor.fetchall()
    ]
    groups = match_titles(record.movie for record in pool if not record.placed_by_hand)
    return Plan(pool=pool, groups=groups)


def _regroup(cursor: Cursor, pool: Sequence[Stored], groups: Iterable[MatchedTitle]) -> None:
    """Give the records of each group to one title: the title of one of them, or a new one."""
    record_of = {id(record.movie): record for record in pool}
    fixed = {(record.title_id, record.movie.site) for record in pool if record.placed_by_hand}
    corrected = {title_id for title_id, _ in fixed}
    taken: set[int] = set()
    moves: list[dict[str, int]] = []
    reasons: list[dict[str, int | list[str]]] = []

    def claim(candidates: Iterable[int]) -> int:
        title_id = next((title_id for title_id in candidates if title_id not in taken), None)
        if title_id is None:
            cursor.execute(_NEW_TITLE)
            title_id = int(cursor.fetchall()[0][0])
        taken.add(title_id)
        return title_id

    def give(title_id: int, records: Iterable[Stored], matched_by: list[str]) -> None:
        moves.extend(
            {"record_id": record.record_id, "title_id": title_id}
            for record in records
            if record.title_id != title_id
        )
        reasons.append({"title_id": title_id, "matched_by": matched_by})

    for group in groups:
        records = [
            record_of[id(group.movies[site])] for site in BY_AUTHORITY if site in group.movies
        ]
        # A record that was placed by hand keeps its title, which can't have another record of the
        # same site.
        records.sort(key=lambda record: record.title_id not in corrected)
        title_id = claim(record.title_id for record in records)
        crowded_out = [record for record in records if (title_id, record.movie.site) in fixed]
        matched_by = [", ".join(match.reasons) for match in group.matches]
        if title_id in corrected:
            matched_by = ["placed by hand"]
        give(title_id, [record for record in records if record not in crowded_out], matched_by)
        for record in crowded_out:
            give(claim([record.title_id]), [record], [])
    cursor.execute(_REGROUP, {"moves": as_json(moves), "reasons": as_json(reasons)})
