"""Rotten Tomatoes' pages as the site has served them since 2024, and its browse lists.

Pages have scripts of JSON, a list of details, and JSON-LD.
"""

from __future__ import annotations

import base64
from datetime import date
from typing import TYPE_CHECKING, Any, Final

from moviecrawler.sites.replicas import LINKED_TYPES, Json, Markup, Refusal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from moviecrawler.items import Movie, Score, ScoreKind
    from moviecrawler.sites.replicas import Collection, Title

ROBOTS: Final = """
User-agent: *
Disallow: /m/*/pictures
Disallow: /tv/*/pictures
Disallow: /search
Disallow: /critics/self-submission/
Disallow: /user/account/*
"""
LIVE_ROBOTS: Final = ROBOTS
CHALLENGE: Final = Refusal(status=403, head="<title>Access Denied</title>")
MOVED: Final = 301
IN_THEATERS: Final = 56
"""How many of the most popular films are in theaters."""
BROWSE_ROWS: Final = 28
_MILLION: Final = 1_000_000


def title_page(title: Title, movie: Movie) -> Markup:
    """Return the page of a title, or of a season or an episode of it."""
    listed = title.listed["rottentomatoes"] if movie.kind == "series" else []
    seasons = [
        {**_scores(season), "season": season, "aired": f"{_day(season):%b %Y}"} for season in listed
    ]
    release_label = "Premiere Date"
    release = _released(movie)
    if movie.kind == "movie":
        release_label = f"Release Date ({'Theaters' if movie.release_date else 'Streaming'})"
        release += ", Wide" if movie.release_date else ""
    amounts = [amount.value for amount in movie.amounts if amount.kind == "domestic"]
    return Markup(
        template="replica.html",
        variables={
            "title": f"{movie.title} | Rotten Tomatoes",
            "url": movie.url,
            "linked": _linked(movie),
            "scripts": _scripts(movie),
            "movie": movie,
            "seasons": seasons,
            "release_label": release_label,
            "release": release,
            "box_office": [_dollars(amount) for amount in amounts],
            "runtime": _runtime(movie.runtime_minutes),
        },
    )


def list_page(
    collection: Collection, path: str, query: Mapping[str, str], _host: str
) -> Markup | Json | None:
    """Return the first page of a browse list, or as JSON what follows a cursor; otherwise None.

    Lists are movies_in_theaters, tv_series_browse, or all films by popularity. Raises ValueError
    for a cursor that is none.
    """
    beginning, _, name = path.partition("browse/")
    after = query.get("after")
    if beginning == "cnapi/" and after is not None:
        rows, info = _browsed(collection, name, int(base64.b64decode(after, validate=True)) + 1)
        return Json({"grid": {"list": rows}, "pageInfo": info})
    if beginning or not name:
        return None
    rows, info = _browsed(collection, name, 0)
    variables = {
        "title": f"{name} | Rotten Tomatoes",
        "url": f"https://www.rottentomatoes.com/browse/{name}",
        "rows": rows,
        "info": info,
    }
    return Markup(template="replica_list.html", variables=variables)


def _browsed(collection: Collection, name: str, first: int) -> tuple[list[Any], dict[str, Any]]:
    """Return the rows on a page of a list, and its pageInfo."""
    titles = collection.series if name.startswith("tv_") else collection
    indexes = list(titles.ids["rottentomatoes"])
    if name.startswith("movies_in_theaters"):
        indexes = indexes[:IN_THEATERS]
    shown = indexes[first : first + BROWSE_ROWS]
    last = first + len(shown) - 1 if shown else max(len(indexes) - 1, 0)
    info = {
        "endCursor": base64.b64encode(str(last).encode()).decode(),
        "hasNextPage": last + 1 < len(indexes),
    }
    return [_row(titles.title(index).movies["rottentomatoes"]) for index in shown], info


def _row(movie: Movie) -> dict[str, Any]:
    """Return a row of a list."""
    verb = "Opened" if movie.release_date else "Streaming"
    return {
        "title": movie.title,
        "mediaUrl": f"/{movie.site_id}",
        "releaseDateText": f"{verb} {_released(movie)}",
        **_scores(movie),
    }


def _scores(movie: Movie) -> dict[str, Any]:
    """Return what rows show of scores."""
    return {
        "criticsScore": {"scorePercent": _percent(movie.score("tomatometer"))},
        "audienceScore": {"scorePercent": _percent(movie.score("popcornmeter"))},
    }


def _percent(score: Score | None) -> str:
    return f"{score.value:.0f}%" if score else ""


def _day(movie: Movie) -> date:
    """Return a title's release, the first of the month or the year where that is all."""
    text = movie.release_date or f"{movie.year}-01"
    return date.fromisoformat(f"{text}-01"[:10])


def _released(movie: Movie) -> str:
    """Return a title's release as the site writes it: "Nov 01, 2026"."""
    return f"{_day(movie):%b %d, %Y}"


def _scripts(movie: Movie) -> dict[str, Any]:
    """Return a page's scripts of JSON by their ids."""
    release = str(movie.year)
    if movie.kind == "movie":
        release = f"Released {_released(movie)}"
    elif movie.kind == "series":
        release = f"{movie.year}-{movie.end_year or ''}"
    below_title = [movie.certificate, release] if movie.certificate else [release]
    critics = _critics(movie, "tomatometer")
    return {
        "media-hero-json": {"content": {"title": movie.title, "metadataProps": below_title}},
        "media-scorecard-json": {
            "audienceScore": _audience(movie, "popcornmeter_verified", "popcornmeter_all"),
            "criticsScore": critics,
            "description": movie.plot,
            "overlay": {
                "audienceAll": _audience(movie, "popcornmeter_all"),
                "audienceVerified": _audience(movie, "popcornmeter_verified"),
                "criticsAll": critics,
                "criticsTop": _critics(movie, "tomatometer_top"),
            },
            "primaryImageUrl": movie.poster_url,
        },
        "curation-json": {
            "emsId": movie.external_ids["ems"],
            "rtId": movie.external_ids["rottentomatoes"],
        },
    }


def _critics(movie: Movie, kind: ScoreKind) -> dict[str, Any]:
    """Return a score of critics. Before there are reviews it has no key `score`."""
    score = movie.score(kind)
    if score is None:
        return {"certified": False, "title": "Tomatometer"}
    return {
        **_opinions(score),
        "averageRating": f"{score.average:.2f}",
        "reviewCount": score.count,
        "title": "Tomatometer",
    }


def _audience(movie: Movie, *kinds: ScoreKind) -> dict[str, Any]:
    """Return the first score of the audience that there is."""
    score = next(filter(None, map(movie.score, kinds)), None)
    if score is None:
        return {"certified": False, "title": "Popcornmeter"}
    return {
        **_opinions(score),
        "averageRating": f"{score.average:.1f}",
        "bandedRatingCount": f"{(score.count or 0) // 50 * 50:,}+ Ratings",
        "reviewCount": score.reviews,
        "title": "Popcornmeter",
    }


def _opinions(score: Score) -> dict[str, Any]:
    return {
        "certified": score.certified,
        "likedCount": score.liked,
        "notLikedCount": score.disliked,
        "score": f"{score.value:.0f}",
        "sentiment": score.sentiment,
    }


def _dollars(amount: int) -> str:
    return f"${amount / _MILLION:.1f}M" if amount >= _MILLION else f"${amount / 1000:.1f}K"


def _runtime(minutes: int | None) -> list[str]:
    return [f"{minutes // 60}h {minutes % 60}m".removeprefix("0h ")] if minutes else []


def _linked(movie: Movie) -> dict[str, Any]:
    """Return a page's JSON-LD, in which the site tells films apart that share a title."""
    name = movie.title
    if str(movie.site_id).endswith(f"_{movie.year}"):
        name += f" ({movie.year})"
    return {
        "@context": "https://schema.org",
        "@type": LINKED_TYPES[movie.kind],
        "name": name,
        "url": movie.url,
        "numberOfSeasons": movie.season_count,
        "numberOfEpisodes": movie.episode_count,
        "partOfSeries": {"name": movie.series_title} if movie.series_id else None,
    }
