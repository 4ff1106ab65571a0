"""Reading a page of unknown kind: which site and page it is, then what it says."""

from __future__ import annotations

import re
from dataclasses import asdict, fields
from importlib import import_module
from typing import TYPE_CHECKING, Any

from moviecrawler.errors import ExtractionError
from moviecrawler.extract.blocks import block_sign
from moviecrawler.extract.embedded import reader
from moviecrawler.extract.legacy.wayback import original, original_url
from moviecrawler.fields import SCORE_FACTS
from moviecrawler.sites import SCOREBOARD_KINDS, SITES
from moviecrawler.urls import site_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from moviecrawler.items import Entry, Movie, Page, Role, Score, Site, TitleKind

_SAVED_FROM = re.compile(rb"<!-- saved from url=\(\d+\)(\S+) -->")
_HEAD = 1024

_READERS: dict[Site, Any] = {site: import_module(f"moviecrawler.extract.{site}") for site in SITES}
"""The module that reads the pages of each site."""


@reader
def read_page(body: bytes, url: str | None = None) -> Page:
    """Return what a page of any of the sites says, by its URL when given, else by what the page itself shows.

    A page out of a web archive is read as it was before the archive wrote its own addresses into it.
    Raises ExtractionError when it is none of theirs, or not in a shape that is known; its field is `block` for a block page.
    """
    body = original(body)
    url = original_url(url) if url else _saved_from(body)
    sign = block_sign(body)
    if sign is not None:
        raise ExtractionError("block", url, f"no page, but a {sign[0]}: {sign[1]}")
    site = site_of(url) if url else None
    for name in [site] if site else _READERS:
        kind = _READERS[name].kind_of(body, url)
        if kind is not None:
            read: Callable[[bytes, str | None], Page] = _READERS[name].READERS[kind]
            return read(body, url)
    *others, last = (profile.name for profile in SITES.values())
    raise ExtractionError("page", url, f"not a page of {', '.join(others)} or {last} that is known here")


def _saved_from(body: bytes) -> str | None:
    """Return the address that a browser wrote into the page when it saved it, if that is of one of the sites."""
    found = _SAVED_FROM.search(body, 0, _HEAD)
    address = original_url(found[1].decode(errors="replace")) if found else ""
    return address if site_of(address) else None


_NOT_AS_THEY_ARE = frozenset(
    {
        *("site", "credits", "scores", "offers", "awards", "related", "amounts"),
        *("other_titles", "list_name", "list_rank", "list_computed", "source", "silent", "scraped_at", "fetch"),
    }
)
"""Of a movie's fields, those that its record has in another form, and those that no page says."""


def page_record(page: Page) -> dict[str, Any]:
    """Return a page as one JSON object: `kind`, then `item` and what it is `silent` of for a movie, and `entries`, `total`, `next` for a list.

    A series has its `seasons`, each as an item, of which only what its page says.
    """
    record: dict[str, Any] = {"site": page.site, "kind": page.kind}
    if page.movie is not None:
        record["item"] = _movie_record(page.movie)
        record["silent"] = page.movie.silent
    if page.listing is not None:
        record["entries"] = [_entry_record(entry) for entry in page.listing.entries]
        record["total"] = page.listing.total
        record["next"] = page.listing.next
    if page.seasons:
        record["seasons"] = [{**_given(_movie_record(season)), "silent": season.silent} for season in page.seasons]
    return record


def _movie_record(movie: Movie) -> dict[str, Any]:
    def people(role: Role) -> list[str]:
        return [credit.name or "" for credit in movie.people(role)]

    return {
        **{field.name: getattr(movie, field.name) for field in fields(movie) if field.name not in _NOT_AS_THEY_ARE},
        "title_kind": _title_kind(movie),
        "directors": people("director"),
        "writers": people("writer"),
        "creators": people("creator"),
        "cast": [{"name": c.name, "character": c.character, "id": c.person_id} for c in movie.people("cast")],
        "scores": [_score_record(score) for score in movie.scores if score.kind in SCOREBOARD_KINDS],
        "finer_scores": [_score_record(score) for score in movie.scores if score.kind not in SCOREBOARD_KINDS],
        "offers": [_given(asdict(offer)) for offer in movie.offers],
        "awards": [asdict(award) for award in movie.awards],
        "related": [_given(asdict(title)) for title in movie.related],
        "amounts": [asdict(amount) for amount in movie.amounts],
    }


def _title_kind(movie: Movie) -> TitleKind:
    """Return which of film, series, episode or game a title is: `kind`, and on IMDb `title_type`, say which kind of that."""
    if movie.kind in {"short", "video"} or movie.title_type == "tvSpecial":
        return "movie"
    return "series" if movie.kind == "season" else movie.kind


def _entry_record(entry: Entry) -> dict[str, Any]:
    rating = next((score for score in entry.scores if score.kind == "imdb"), None)
    return {
        "site_id": entry.site_id,
        "title": entry.title,
        "year": entry.year,
        "title_kind": entry.kind,
        "rank": entry.rank,
        "release_date": entry.release_date,
        "season": entry.season,
        "episode": entry.episode,
        "rating": rating.value if rating else None,
        "votes": rating.count if rating else None,
        "scores": [_score_record(score) for score in entry.scores],
    }


def _score_record(score: Score) -> dict[str, Any]:
    facts = {fact: value for fact in SCORE_FACTS if (value := getattr(score, fact)) not in (None, [])}
    return {"kind": score.kind, "value": score.value, "count": score.count, **facts}


def _given(part: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in part.items() if value not in (None, [], {})}
