"""Reads schema.org's JSON-LD, the one fallback for fields that a page's own data doesn't have.

All three sites use it. A site leaves out of it what it likes, so that it states no absence, and a
list in it may be cut off.
"""

from __future__ import annotations

import re
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from moviecrawler.extract import dig
from moviecrawler.extract.embedded import decode_json, scripts, stated_addresses
from moviecrawler.extract.findings import (
    ABSENT,
    Findings,
    ShapeError,
    attempt,
    new_credits,
    new_score,
)
from moviecrawler.extract.values import (
    check_runtime,
    parse_count,
    parse_date,
    parse_decimal,
    parse_runtime,
)
from moviecrawler.sites import SCORES
from moviecrawler.sites.ids import id_in_url, site_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from moviecrawler.items import Credit, Role, Score, ScoreKind, Site, TitleKind

KINDS: dict[str, TitleKind] = {
    "Movie": "movie",
    "TVSeries": "series",
    "TVSeason": "season",
    "TVEpisode": "episode",
}
"""The kinds of title by their names in JSON-LD."""
_NO_PLOT: Final = re.compile(
    r"^Discover reviews, ratings|\b(?:starring|directed by)\b|(?:\.\.\.|…)$", re.IGNORECASE
)
"""Matches descriptions that are written for search engines, and plots that are cut off."""
_NO_POSTER: Final = re.compile(r"default[-_]?poster|/images/(?:products|icons)/", re.IGNORECASE)
_SHIFTED_DURATION: Final = re.compile(r"PT(?:(?P<hours>\d{1,2})M)?(?P<minutes>[1-5]?\d)S")
"""Metacritic writes `PT2M17S` for 2 h 17 min."""
_AMBIGUOUS_DURATION: Final = re.compile(r"PT\dM|PT[0HMS]*")
"""`PT2M` is two hours on Metacritic's pages, and two minutes on its older ones."""


def objects(body: bytes) -> Iterator[dict[str, Any]]:
    """Yield the page's JSON-LD objects in order.

    Skips a script that is no JSON: some templates leave quotes unescaped.
    """
    for raw in scripts(body, b"application/ld+json"):
        with suppress(ShapeError):
            for item in dig.listed(decode_json(raw)):
                for part in dig.listed(item, "@graph") or [item]:
                    if isinstance(part, dict):
                        yield {**part, "@type": _first(part.get("@type"))}


def title_of(body: bytes) -> dict[str, Any]:
    """Return the title in a page's JSON-LD; empty without one."""
    return next((data for data in objects(body) if data["@type"] in KINDS), {})


def title_in(site: Site, body: bytes) -> tuple[str, str, dict[str, Any]]:
    """Return the id, the name and the JSON-LD of the title that a page is about.

    Raises ShapeError when it names none, or several.
    """
    linked = title_of(body)
    if not linked:
        raise ShapeError(
            "page", "neither the data nor the JSON-LD of a title is there in a form that is known"
        )
    own = (address for address in stated_addresses(body) if site_of(address) == site)
    ids = {id_in_url(site, address) for address in (*own, dig.text(linked, "url") or "")} - {None}
    name = dig.text(linked, "name")
    if len(ids) != 1 or name is None:
        raise ShapeError(
            "title" if ids else "site_id", f"JSON-LD of {len(ids)} titles, named {name!r}"
        )
    return str(ids.pop()), name, linked


def look(found: Findings, linked: dict[str, Any]) -> None:
    """Read the fields that have no value yet from a title's JSON-LD."""

    def value(convert: Callable[[Any], Any], path: str) -> Any:
        read = dig.read(convert, linked, *path.split("."))
        return None if read is ABSENT or read == 0 else read

    for field, path, convert, *sites in _FACTS:
        if found.movie.site in sites:
            found.look(field, partial(value, convert, path))


def _first(value: Any) -> Any:
    return next(iter(value), None) if isinstance(value, list) else value


def _parsed(parse: Callable[[str], Any], value: Any) -> Any:
    text = dig.text(value)
    return parse(text) if text else None


def _plot(text: str) -> str | None:
    return None if _NO_PLOT.search(text) else text


def _picture(value: Any) -> str | None:
    picture = _first(value)
    urls = (
        [picture]
        if isinstance(picture, str)
        else [dig.at(picture, key) for key in ("url", "contentUrl")]
    )
    address = next(filter(None, map(dig.text, urls)), "")
    return address if address.startswith("http") and not _NO_POSTER.search(address) else None


def _shifted_runtime(text: str) -> int | None:
    if shifted := _SHIFTED_DURATION.fullmatch(text):
        return check_runtime(int(shifted["hours"] or 0) * 60 + int(shifted["minutes"]))
    return None if _AMBIGUOUS_DURATION.fullmatch(text) else parse_runtime(text)


def _people(role: Role, value: Any) -> list[Credit]:
    """Return the people of a list.

    A person without a list is refused: some pages repeat the key, so that only the last is there.
    """
    people = [person for person in dig.items(value) if dig.at(person, "@type") == "Person"]
    names = [dig.text(person, "name") or "" for person in people]
    if not all(names):
        raise ShapeError("credits", f"a {role} without a name")
    links = [dig.text(person, "url") or dig.text(person, "sameAs") for person in people]
    return new_credits(role, ((name, link, None) for name, link in zip(names, links, strict=True)))


def _score(kind: ScoreKind, value: Any) -> Score | None:
    """Return the score that JSON-LD states; None for one of another scale.

    Metacritic's episodes have that of its users under the same key.
    """
    rating = _first(value)
    is_users = "user" in (dig.text(rating, "name") or "").lower()
    best = attempt(partial(_number, dig.at(rating, "bestRating")))
    counts = [
        attempt(partial(_number, dig.at(rating, key))) for key in ("ratingCount", "reviewCount")
    ]
    if is_users != (kind == "metacritic_user") or best not in {None, SCORES[kind].scale}:
        return None
    count = next(filter(None, counts), 0)
    share = _number(dig.at(rating, "ratingValue"))
    return new_score(kind, share, int(count)) if share is not None and (share or count) else None


def _number(value: Any) -> float | None:
    """Return a number, which may be written as text. Raises ValueError for anything else."""
    if isinstance(value, str):
        return float(parse_count(value)[0]) if "," in value else parse_decimal(value)
    return dig.number(value)


_FACTS: Final[tuple[tuple[Any, ...], ...]] = (
    ("plot", "description", partial(_parsed, _plot), "imdb", "metacritic", "rottentomatoes"),
    (
        "credits.director",
        "director",
        partial(_people, "director"),
        "imdb",
        "metacritic",
        "rottentomatoes",
    ),
    (
        "genres",
        "genre",
        lambda value: [*filter(None, map(dig.text, dig.listed(value)))],
        "imdb",
        "metacritic",
    ),
    ("certificate", "contentRating", dig.text, "imdb", "metacritic"),
    ("poster_url", "image", _picture, "imdb", "metacritic"),
    ("credits.cast", "actor", partial(_people, "cast"), "metacritic", "rottentomatoes"),
    ("series_title", "partOfSeries.name", dig.text, "metacritic", "rottentomatoes"),
    ("runtime_minutes", "duration", partial(_parsed, parse_runtime), "imdb", "rottentomatoes"),
    ("runtime_minutes", "duration", partial(_parsed, _shifted_runtime), "metacritic"),
    ("scores.imdb", "aggregateRating", partial(_score, "imdb"), "imdb"),
    ("scores.metascore", "aggregateRating", partial(_score, "metascore"), "metacritic"),
    ("scores.metacritic_user", "aggregateRating", partial(_score, "metacritic_user"), "metacritic"),
    ("scores.tomatometer", "aggregateRating", partial(_score, "tomatometer"), "rottentomatoes"),
    (
        "year",
        "datePublished",
        partial(_parsed, lambda text: int(parse_date(text)[:4])),
        "metacritic",
    ),
    ("release_date", "datePublished", partial(_parsed, parse_date), "metacritic"),
    ("season_count", "numberOfSeasons", dig.size, "rottentomatoes"),
    ("episode_count", "numberOfEpisodes", dig.size, "rottentomatoes"),
)
"""A field, its path in JSON-LD, what converts its value, and the sites whose JSON-LD is right on
it. IMDb's and Rotten Tomatoes' dates can be those of a later release, IMDb's cast are its stars,
and the page shows other genres and certificates than Rotten Tomatoes' JSON-LD."""
