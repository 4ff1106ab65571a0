"""Reading a page of unknown kind: which site and page it is, then what it says."""

from __future__ import annotations

import re
from dataclasses import asdict, fields
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from moviecrawler.errors import ExtractionError
from moviecrawler.extract import dig, imdb, metacritic, rottentomatoes
from moviecrawler.extract.blocks import block_sign
from moviecrawler.extract.embedded import decode_json, reader, stated_addresses
from moviecrawler.fields import SCORE_FACTS
from moviecrawler.sites import SCOREBOARD_KINDS
from moviecrawler.urls import site_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from moviecrawler.items import Entry, Movie, Page, Role, Score, Site, TitleKind

_PART = r"(?:/season-\d[^/]*|/specials)(?:/episode-[^/]+)?"
READERS: Final[tuple[tuple[Site, str, Callable[[bytes, str | None], Page]], ...]] = (
    ("imdb", r"(?:/[a-z]{2}(?:-[a-z]{2})?)?/title/tt\d+/?", imdb.title),
    ("imdb", r"(?:/[a-z]{2}(?:-[a-z]{2})?)?/chart/[\w-]+/?", imdb.chart),
    ("metacritic", rf"/(?:movie/[^/]+|tv/[^/]+(?:{_PART})?)/?", metacritic.movie),
    ("metacritic", r"/finder/metacritic/web/?", metacritic.finder),
    (
        "rottentomatoes",
        r"/(?:m/[^/]+|tv/[^/]+(?:/s\d[\d.]*(?:/e\d[\d.]*)?)?)/?",
        rottentomatoes.movie,
    ),
    ("rottentomatoes", r"/browse/.*", rottentomatoes.browse),
    ("rottentomatoes", r"/cnapi/browse/.*", rottentomatoes.browse_json),
)
"""What reads each page that the spiders ask for, by its site and path."""


@reader
def read_page(body: bytes, url: str | None = None) -> Page:
    """Return what a page of any of the sites says.

    It is read by its URL when given, else by what the page itself shows.

    Raises ExtractionError when it is none of theirs, or not in a shape that is known; its field is
    `block` for a block page.
    """
    sign = block_sign(body)
    if sign is not None:
        raise ExtractionError("block", url, f"no page, but a {sign[0]}: {sign[1]}")
    # A page without its address shows a list of its site's JSON, or names itself.
    addresses = [url] if url else [*_addresses_in_json(body), *stated_addresses(body)]
    for address in addresses:
        site = site_of(address)
        for name, path, read in READERS:
            if name == site and re.fullmatch(path, urlsplit(address).path):
                return read(body, url)
    raise ExtractionError("page", url, "not a page of a title or a list that is known here")


def _addresses_in_json(body: bytes) -> list[str]:
    """Return the address of a page's kind, where it is a list in JSON."""
    if not body[:200].lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{"):
        return []
    answer = decode_json(body)
    if isinstance(dig.at(answer, "grid"), dict):
        return ["https://www.rottentomatoes.com/cnapi/browse/"]
    return [address] if (address := dig.text(answer, "links", "self", "href")) else []


_NOT_AS_THEY_ARE = frozenset(
    {
        "site",
        "credits",
        "scores",
        "offers",
        "awards",
        "related",
        "amounts",
        "other_titles",
        "list_name",
        "list_rank",
        "list_computed",
        "source",
        "unknown_fields",
        "scraped_at",
        "fetch",
    }
)
"""Of a movie's fields, those that its record has in another form, and those that no page says."""


def page_record(page: Page) -> dict[str, Any]:
    """Return a page as one JSON object.

    It has the `kind`, then for a movie its `item` and `unknown_fields`, for a list its `entries`,
    `total` and `next`. A series has its `seasons`, each as an item, of which only what its page
    says.
    """
    record: dict[str, Any] = {"site": page.site, "kind": page.kind}
    if page.movie is not None:
        record["item"] = _movie_record(page.movie)
        record["unknown_fields"] = page.movie.unknown_fields
    if page.listing is not None:
        record["entries"] = [_entry_record(entry) for entry in page.listing.entries]
        record["total"] = page.listing.total
        record["next"] = page.listing.next
    if page.seasons:
        record["seasons"] = [
            {**_given(_movie_record(season)), "unknown_fields": season.unknown_fields}
            for season in page.seasons
        ]
    return record


def _movie_record(movie: Movie) -> dict[str, Any]:
    def people(role: Role) -> list[str]:
        return [credit.name or "" for credit in movie.people(role)]

    return {
        **{
            field.name: getattr(movie, field.name)
            for field in fields(movie)
            if field.name not in _NOT_AS_THEY_ARE
        },
        "title_kind": _title_kind(movie),
        "directors": people("director"),
        "writers": people("writer"),
        "creators": people("creator"),
        "cast": [
            {"name": c.name, "character": c.character, "id": c.person_id}
            for c in movie.people("cast")
        ],
        "scores": [
            _score_record(score) for score in movie.scores if score.kind in SCOREBOARD_KINDS
        ],
        "finer_scores": [
            _score_record(score) for score in movie.scores if score.kind not in SCOREBOARD_KINDS
        ],
        "offers": [_given(asdict(offer)) for offer in movie.offers],
        "awards": [asdict(award) for award in movie.awards],
        "related": [_given(asdict(title)) for title in movie.related],
        "amounts": [asdict(amount) for amount in movie.amounts],
    }


def _title_kind(movie: Movie) -> TitleKind:
    """Return which of film, series, episode or game a title is.

    `kind`, and on IMDb `title_type`, say which kind of that it is.
    """
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
    facts = {
        fact: value for fact in SCORE_FACTS if (value := getattr(score, fact)) not in (None, [])
    }
    return {"kind": score.kind, "value": score.value, "count": score.count, **facts}


def _given(part: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in part.items() if value not in (None, [], {})}
