"""Finds a title by an id, a URL or words, and reads the records of all sites about it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from msgspec import json

from moviecrawler.database.records import decode, text_of
from moviecrawler.matching.normalise import split_words
from moviecrawler.sites import SITES
from moviecrawler.sites.ids import find_title_id

if TYPE_CHECKING:
    from collections.abc import Sequence

    from moviecrawler.database.records import Row
    from moviecrawler.database.schema import SchemaTables
    from moviecrawler.items import ScoreKind, Site, TitleKind

_BY_ID = """
SELECT r.title_id FROM records r
WHERE r.title_id IS NOT NULL
    AND (r.site = {mark} AND r.site_id = {mark} OR {mark} = 'imdb' AND r.imdb_id = {mark})
UNION
SELECT n.title_id FROM records r JOIN records n ON n.record_id = r.newer_id
WHERE r.site = {mark} AND r.site_id = {mark}
"""
_TITLES = """
SELECT title_id, title, original_title, year, coalesce(votes, 0)
FROM titles WHERE title IS NOT NULL AND kind NOT IN ('season', 'episode')
"""
_RECORDS = """
SELECT r.record_id, r.site, r.site_id, r.url, r.title, r.year, r.kind, r.runtime_minutes,
    r.scraped_at, t.matched_by
FROM records r JOIN titles t ON t.title_id = r.title_id JOIN sites o ON o.site = r.site
WHERE r.title_id = {mark} ORDER BY o.authority
"""
_SCORES = """
SELECT s.record_id, s.kind, s.value, s.count
FROM scores s JOIN score_kinds k ON k.kind = s.kind
WHERE s.record_id {ids} ORDER BY k.shown IS NULL, k.shown, s.kind
"""
_HISTORY = """
SELECT r.site, h.kind, h.value, h.count, h.since
FROM score_history h JOIN records r ON r.record_id = h.record_id
WHERE h.record_id {ids} ORDER BY h.since, r.site, h.kind
"""
_PAGE = ("site", "site_id", "url", "title", "year", "kind", "runtime_minutes")
_OFFERS = """
SELECT r.site, o.provider, o.kind, o.country, o.quality, o.price, o.currency, o.url, o.source
FROM offers o JOIN records r ON r.record_id = o.record_id
WHERE o.record_id {ids} ORDER BY r.site, o.position
"""


@dataclass(slots=True, kw_only=True)
class ScorePoint:
    """A score, now or since a time."""

    site: Site
    kind: ScoreKind
    value: float | None
    count: int | None
    since: str | None = None


@dataclass(slots=True, kw_only=True)
class SitePage:
    """One site's record of a title."""

    site: Site
    site_id: str
    url: str
    title: str
    year: int | None
    kind: TitleKind
    runtime_minutes: int | None
    read_at: str
    scores: list[ScorePoint] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class Watching:
    """A way to watch a title now."""

    site: Site
    provider: str
    kind: str
    country: str | None
    quality: str | None
    price: float | None
    currency: str | None
    url: str | None
    source: str | None


@dataclass(slots=True, kw_only=True)
class WholeTitle:
    """The records of all sites about a title; the first site counts where they differ."""

    title: str
    year: int | None
    kind: TitleKind
    runtime_minutes: int | None
    matched_by: list[str]
    sites: list[SitePage]
    history: list[ScorePoint]
    """How its scores went, the oldest first."""
    offers: list[Watching]


def find_titles(tables: SchemaTables, words: Sequence[str]) -> list[int]:
    """Return the titles that are meant by an id, a URL, or words, best first.

    Accents and capitals don't matter, a word may be the beginning of one, and a year may be among
    them. If titles have just that name, they alone are meant.
    """
    if len(words) == 1 and (ids := _ids(words[0])):
        marks = ((site, site_id, site, site_id, site, site_id) for site, site_id in ids)
        return sorted({row[0] for each in marks for row in tables.select(_BY_ID, (), *each)})
    searched = split_words(" ".join(words))
    exact: list[tuple[int, int]] = []
    similar: list[tuple[int, int]] = []
    for title_id, title, original, year, votes in tables.stream(_TITLES):
        names = [" ".join(split_words(name)) for name in (title, original) if name]
        texts = [f" {text}" for text in (*names, str(year))]
        if searched and all(any(f" {word}" in text for text in texts) for word in searched):
            whole = " ".join(searched)
            is_named = whole in names or whole in {f"{name} {year}" for name in names}
            (exact if is_named else similar).append((-votes, title_id))
    return [title_id for _, title_id in sorted(exact or similar)]


def _ids(text: str) -> list[tuple[str, str]]:
    """Return what a text may be the id or the URL of."""
    ids = [(site, find_title_id(site, text)) for site in SITES]
    return [(site, site_id) for site, site_id in ids if site_id is not None]


def read_title(tables: SchemaTables, title_id: int) -> WholeTitle:
    """Return the records of all sites about a title, and the history of its scores."""
    pages: dict[int, SitePage] = {}
    matched_by: list[str] = []
    for record_id, *row, read_at, reasons in tables.select(_RECORDS, (), title_id):
        known = dict(zip(_PAGE, row, strict=True))
        pages[record_id] = SitePage(**known, read_at=text_of(decode("time", read_at)))
        matched_by = json.decode(reasons) if isinstance(reasons, str) else reasons
    for record_id, *row in tables.select(_SCORES, pages):
        pages[record_id].scores.append(_point(pages[record_id].site, *row))
    first = next(iter(pages.values()))
    return WholeTitle(
        title=first.title,
        year=first.year,
        kind=first.kind,
        runtime_minutes=first.runtime_minutes,
        matched_by=matched_by,
        sites=list(pages.values()),
        history=[_point(*row) for row in tables.select(_HISTORY, pages)],
        offers=[_watching(row) for row in tables.select(_OFFERS, pages)],
    )


def _point(
    site: Site, kind: ScoreKind, value: object, count: int | None, since: object = None
) -> ScorePoint:
    return ScorePoint(
        site=site,
        kind=kind,
        value=decode("number", value),
        count=count,
        since=None if since is None else text_of(decode("time", since)),
    )


def _watching(row: Row) -> Watching:
    values = dict(zip(Watching.__slots__, row, strict=True))
    return Watching(**{**values, "price": decode("number", values["price"])})
