"""What has changed since a time: scores, titles and offers."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Final, Literal

from moviecrawler.database.records import decode, text_of
from moviecrawler.sites import BY_AUTHORITY

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping
    from datetime import datetime

    from moviecrawler.database.records import Row, Tables
    from moviecrawler.items import Site

Kind = Literal["up", "down", "new score", "no score", "new title", "new offer", "offer ended"]


@dataclass(slots=True, kw_only=True)
class Change:
    """One thing that has changed."""

    change: Kind
    title: str
    year: int | None
    title_kind: str
    imdb_id: str | None
    site: Site
    site_id: str
    at: str
    """When the page was read that showed it."""
    score: str | None = None
    """The kind of a score, with its value before and now."""
    before: float | None = None
    now: float | None = None
    provider: str | None = None
    """The provider of an offer, whose facts follow."""
    offer: str | None = None
    country: str | None = None
    quality: str | None = None
    price: float | None = None
    currency: str | None = None
    url: str | None = None


COLUMNS: Final = tuple(field.name for field in fields(Change))
_OF_RECORD: Final = """r.title_id, r.record_id, r.title, r.year, r.kind, r.site, r.site_id,
    (SELECT max(i.imdb_id) FROM records i WHERE i.title_id = r.title_id) AS imdb_id"""
_RECORD_COLUMNS: Final = (
    "title_id",
    "record_id",
    "title",
    "year",
    "title_kind",
    "site",
    "site_id",
    "imdb_id",
    "at",
)
_SCORE_COLUMNS: Final = ("score", "highest", "before", "now")
_OFFER_COLUMNS: Final = ("change", *COLUMNS[COLUMNS.index("provider") :])
_SCORES: Final = f"""
SELECT {_OF_RECORD}, moved.since AS at, k.kind AS score, k.highest,
    past.value AS before, moved.value AS now
FROM records r
JOIN score_history moved ON moved.record_id = r.record_id
JOIN score_kinds k ON k.kind = moved.kind AND k.shown IS NOT NULL
LEFT JOIN score_history past ON past.record_id = moved.record_id AND past.kind = moved.kind
    AND past.since = (
        SELECT max(h.since) FROM score_history h
        WHERE h.record_id = moved.record_id AND h.kind = moved.kind AND h.since < {{mark}}
    )
WHERE r.updated_at >= {{mark}} AND moved.since >= {{mark}} AND r.site = {{mark}}
    AND r.title_id IS NOT NULL
    AND NOT EXISTS (
        SELECT 1 FROM score_history h
        WHERE h.record_id = moved.record_id AND h.kind = moved.kind AND h.since > moved.since
    )
    AND coalesce(past.value, -1) <> coalesce(moved.value, -1)
    AND (k.site = r.site OR NOT EXISTS (
        SELECT 1 FROM records o WHERE o.title_id = r.title_id AND o.site = k.site
    ))
"""
"""The scores that have another value than before a time. Of a score that two sites show, that of
its own site counts."""
_RECORDS: Final = f"""
SELECT {_OF_RECORD}, r.added_at AS at FROM records r
WHERE r.updated_at >= {{mark}} AND r.added_at >= {{mark}} AND r.site = {{mark}}
    AND r.title_id IS NOT NULL
"""
_SAME_OFFER: Final = """e.record_id = o.record_id AND e.provider = o.provider AND e.kind = o.kind
    AND coalesce(e.country, '') = coalesce(o.country, '')
    AND coalesce(e.quality, '') = coalesce(o.quality, '')
    AND coalesce(e.scope, '') = coalesce(o.scope, '')"""
_OFFERS: Final = f"""
SELECT {_OF_RECORD}, o.since AS at, 'new offer' AS change, o.provider, o.kind AS offer, o.country,
    o.quality, o.price, o.currency, o.url
FROM records r
JOIN offers o ON o.record_id = r.record_id
WHERE r.updated_at >= {{mark}} AND o.since >= {{mark}}
    AND NOT EXISTS (SELECT 1 FROM ended_offers e WHERE e.since < {{mark}} AND {_SAME_OFFER})
    AND r.site = {{mark}} AND r.title_id IS NOT NULL
UNION ALL
SELECT {_OF_RECORD}, e.ended_at, 'offer ended', e.provider, e.kind, e.country,
    e.quality, e.price, e.currency, e.url
FROM ended_offers e
JOIN records r ON r.record_id = e.record_id
WHERE e.ended_at >= {{mark}} AND e.since < {{mark}}
    AND NOT EXISTS (SELECT 1 FROM offers o WHERE {_SAME_OFFER})
    AND r.site = {{mark}} AND r.title_id IS NOT NULL
"""
"""The offers that are new, and those that have ended. One that was there before a time, has ended,
and is there again has not changed."""


def read_changes(tables: Tables, since: Mapping[Site, datetime]) -> list[Change]:
    """Return what has changed on each site since a time.

    First come scores, by how far they have moved on a scale of 0 to 100, then titles, then offers.
    """
    scores: list[dict[str, Any]] = []
    added: list[dict[str, Any]] = []
    offers: list[dict[str, Any]] = []
    for site in sorted(since, key=_place):
        time = text_of(since[site])
        found = tables.select(_SCORES, (), time, time, time, site)
        scores += _by_name(found, *_SCORE_COLUMNS)
        added += _by_name(tables.select(_RECORDS, (), time, time, site))
        found = tables.select(_OFFERS, (), time, time, time, site, time, time, site)
        offers += _by_name(found, *_OFFER_COLUMNS)
    new = _new_titles(tables, added)
    scores.sort(key=_distance, reverse=True)
    return [
        *(_change(row, _direction(row)) for row in scores if row["title_id"] not in new),
        *(_change(row, "new title") for row in new.values()),
        *(_change(row, row["change"]) for row in offers if row["title_id"] not in new),
    ]


def _place(site: Site) -> int:
    return BY_AUTHORITY.index(site) if site in BY_AUTHORITY else len(BY_AUTHORITY)


def _by_name(rows: Iterable[Row], *names: str) -> Iterator[dict[str, Any]]:
    for row in rows:
        yield dict(zip((*_RECORD_COLUMNS, *names), row, strict=True))


def _new_titles(tables: Tables, added: Collection[dict[str, Any]]) -> dict[int, dict[str, Any]]:
    """Return the titles of which all records are new, each by its best record."""
    new = {row["record_id"] for row in added}
    titles = {row["title_id"]: row for row in reversed(list(added))}
    query = "SELECT title_id, record_id FROM records WHERE title_id {ids}"
    for title_id, record_id in tables.select(query, titles):
        if record_id not in new:
            titles.pop(title_id, None)
    return dict(reversed(titles.items()))


def _distance(row: dict[str, Any]) -> float:
    """Return how far a score has moved; one that is new or gone has moved least."""
    if row["before"] is None or row["now"] is None:
        return 0
    return abs(float(row["now"]) - float(row["before"])) / float(row["highest"])


def _direction(row: dict[str, Any]) -> Kind:
    if row["before"] is None:
        return "new score"
    if row["now"] is None:
        return "no score"
    return "up" if row["now"] > row["before"] else "down"


def _change(row: dict[str, Any], kind: Kind) -> Change:
    values = {name: row[name] for name in COLUMNS if name in row}
    for name in ("before", "now", "price"):
        values[name] = decode("number", values.get(name))
    values["at"] = text_of(decode("time", row["at"]))
    return Change(**{**values, "change": kind})
