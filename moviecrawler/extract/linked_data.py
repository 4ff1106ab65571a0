"""Schema.org's JSON-LD: what pages of all three sites say in one form, and the one fallback where their own data is not there.

It states no absence: a site leaves out of it what it likes. A list in it may be cut off.
"""

from __future__ import annotations

import re
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from moviecrawler.extract import dig
from moviecrawler.extract.embedded import decode_json, scripts, stated_addresses
from moviecrawler.extract.findings import ABSENT, Findings, ShapeError, attempt, new_credits, new_score
from moviecrawler.extract.values import check_runtime, parse_count, parse_date, parse_decimal, parse_runtime
from moviecrawler.urls import id_in_url, site_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from moviecrawler.extract.dig import Fact
    from moviecrawler.items import Credit, Role, Score, ScoreKind, Site, TitleKind

KINDS: Final[dict[str, TitleKind]] = {
    "Movie": "movie",
    "TVSeries": "series",
    "TVSeason": "season",
    "TVEpisode": "episode",
}
"""What JSON-LD calls a title."""
_NO_PLOT: Final = re.compile(r"^Discover reviews, ratings|\b(?:starring|directed by)\b|(?:\.\.\.|…)$", re.IGNORECASE)
"""Words for search engines in place of a plot, and a plot that is cut off."""
_NO_POSTER: Final = re.compile(r"default[-_]?poster|/images/(?:products|icons)/", re.IGNORECASE)
_SHIFTED_DURATION: Final = re.compile(r"PT(?:(?P<hours>\d{1,2})M)?(?P<minutes>[1-5]?\d)S")


def objects(body: bytes) -> Iterator[dict[str, Any]]:
    """Yield the page's JSON-LD objects in order. A script that is no JSON is passed by: templates have left quotes unescaped."""
    for raw in scripts(body, b"application/ld+json"):
        with suppress(ShapeError):
            for item in dig.listed(decode_json(raw)):
                for part in dig.listed(item, "@graph") or [item]:
                    if isinstance(part, dict):
                        yield {**part, "@type": _one(part.get("@type"))}


def title_of(body: bytes) -> dict[str, Any]:
    """Return the title in a page's JSON-LD; empty without one."""
    return next((data for data in objects(body) if data["@type"] in KINDS), {})


def title_in(site: Site, body: bytes) -> tuple[str, str, dict[str, Any]]:
    """Return the id, the name and the JSON-LD of the title that a page is about. Raises ShapeError when it names none, or several."""
    linked = title_of(body)
    if not linked:
        raise ShapeError("page", "neither the data nor the JSON-LD of a title is there in a form that is known")
    own = (address for address in stated_addresses(body) if site_of(address) == site)
    ids = {id_in_url(site, address) for address in (*own, dig.text(linked, "url") or "")} - {None}
    name = dig.text(linked, "name")
    if len(ids) != 1 or name is None:
        raise ShapeError("title" if ids else "site_id", f"JSON-LD of {len(ids)} titles, named {name!r}")
    return str(ids.pop()), name, linked


def look(found: Findings, linked: dict[str, Any]) -> None:
    """Find what JSON-LD says of a title's fields that have no value yet."""
    for field, read, path in (*_FACTS[found.movie.site], *_EVERYWHERE):
        found.look(field, partial(_value, read, linked, path))


def _value(read: Any, linked: dict[str, Any], path: str) -> Any:
    value = dig.read(read, linked, *path.split("."))
    return None if value is ABSENT or value == 0 else value


def _one(value: Any) -> Any:
    """Return what stands alone, or first in a list."""
    return next(iter(value), None) if isinstance(value, list) else value


def _texts(value: Any) -> list[str]:
    return [text for item in dig.listed(value) if (text := dig.text(item))]


def _plot(value: Any) -> str | None:
    text = dig.text(value)
    return None if text is None or _NO_PLOT.search(text) else text


def _picture(value: Any) -> str | None:
    picture = _one(value)
    address = (
        dig.text(picture) if isinstance(picture, str) else dig.text(picture, "url") or dig.text(picture, "contentUrl")
    )
    return address if address and address.startswith("http") and not _NO_POSTER.search(address) else None


def _date(value: Any) -> str | None:
    text = dig.text(value)
    return parse_date(text) if text else None


def _year(value: Any) -> int | None:
    date = _date(value)
    return int(date[:4]) if date else None


def _runtime(value: Any) -> int | None:
    text = dig.text(value)
    return parse_runtime(text) if text else None


def _shifted_runtime(value: Any) -> int | None:
    """Return a runtime in minutes, of which Metacritic writes `PT2M17S` for 2 h 17 min; `PT2M` is two hours, or two minutes on older pages."""
    text = dig.text(value) or ""
    if shifted := _SHIFTED_DURATION.fullmatch(text):
        return check_runtime(int(shifted["hours"] or 0) * 60 + int(shifted["minutes"]))
    return None if re.fullmatch(r"PT\dM|PT[0HMS]*|", text) else parse_runtime(text)


def _people(role: Role, value: Any) -> list[Credit] | None:
    """Return the people of a list. One person alone may be the last of several, whose key was written again for each."""
    people = [person for person in dig.items(value) if dig.at(person, "@type") == "Person"]
    named = [(dig.text(person, "name"), dig.text(person, "url") or dig.text(person, "sameAs")) for person in people]
    if any(name is None for name, _ in named):
        raise ShapeError("credits", f"a {role} without a name")
    return new_credits(role, ((name, link, None) for name, link in named if name))


def _score(kind: ScoreKind, value: Any) -> Score | None:
    """Return the score that JSON-LD states. Metacritic's episodes have that of its users in the same place."""
    rating = _one(value)
    if ("user" in (dig.text(rating, "name") or "").lower()) != (kind == "metacritic_user"):
        return None
    counts = [attempt(partial(_number, dig.at(rating, key))) for key in ("reviewCount", "ratingCount")]
    count, share = next(filter(None, counts), None), _number(dig.at(rating, "ratingValue"))
    return new_score(kind, share, int(count) if count else None) if share is not None and (share or count) else None


def _number(value: Any) -> float | None:
    """Return a number, which may be written as text. Raises ValueError for anything else."""
    if isinstance(value, str):
        return float(parse_count(value)[0]) if "," in value else parse_decimal(value)
    return dig.number(value)


def _scores(*kinds: ScoreKind) -> tuple[Fact, ...]:
    return tuple((f"scores.{kind}", partial(_score, kind), "aggregateRating") for kind in kinds)


_EVERYWHERE: Final[tuple[Fact, ...]] = (
    ("plot", _plot, "description"),
    ("credits.director", partial(_people, "director"), "director"),
)
_SHOWN: Final[tuple[Fact, ...]] = (
    ("genres", _texts, "genre"),
    ("certificate", dig.text, "contentRating"),
    ("poster_url", _picture, "image"),
)
_CAST: Final[Fact] = ("credits.cast", partial(_people, "cast"), "actor")
_RUNTIME: Final[Fact] = ("runtime_minutes", _runtime, "duration")
_SERIES: Final[Fact] = ("series_title", dig.text, "partOfSeries.name")
_FACTS: Final[dict[Site, tuple[Fact, ...]]] = {
    "imdb": (*_SHOWN, _RUNTIME, *_scores("imdb")),
    "metacritic": (
        *(*_SHOWN, _CAST, _SERIES, *_scores("metascore", "metacritic_user")),
        ("year", _year, "datePublished"),
        ("release_date", _date, "datePublished"),
        ("runtime_minutes", _shifted_runtime, "duration"),
    ),
    "rottentomatoes": (
        *(_CAST, _SERIES, _RUNTIME, *_scores("tomatometer")),
        ("season_count", dig.size, "numberOfSeasons"),
        ("episode_count", dig.size, "numberOfEpisodes"),
    ),
}
"""What JSON-LD of each site says rightly. IMDb's and Rotten Tomatoes' dates can be those of a later release, IMDb's cast are its stars,
and Rotten Tomatoes' genres, writers, certificates and pictures are others than the page shows."""
