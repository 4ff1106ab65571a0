"""Rotten Tomatoes' pages as the site has served them since 2024: scripts of JSON, a list of details, JSON-LD; and its browse lists."""

from __future__ import annotations

import base64
from datetime import date
from typing import TYPE_CHECKING, Any, Final

from moviecrawler.replica.payloads import Filler, Page, Templates, encode, json_ld, json_script, markup

if TYPE_CHECKING:
    from moviecrawler.items import Movie
    from moviecrawler.replica.collection import Collection
    from moviecrawler.replica.titles import Title

IN_THEATERS: Final = 56
"""How many of the most popular films are in theaters."""
BROWSE_ROWS: Final = 28
_MILLION: Final = 1_000_000
_TYPES: Final = {"movie": "Movie", "series": "TvSeries", "season": "TvSeason", "episode": "TvEpisode"}
_LICENCES: Final = {"free": "Free", "ads": "Free with ads", "subscription": "Subscription", "rent": "Rent/buy"}
"""What can be rented can be bought, too."""


def _released(movie: Movie) -> str:
    """Return a title's release as the site writes it: "Nov 01, 2026"."""
    return f"{date.fromisoformat(movie.release_date or f'{movie.year}-01-01'):%b %d, %Y}"


def _hours(minutes: int) -> str:
    return f"{minutes // 60}h {minutes % 60}m".removeprefix("0h ")


def _dated_name(movie: Movie) -> str:
    """Return the name in JSON-LD, where the site tells films apart that share a title."""
    is_dated = movie.kind == "movie" and str(movie.site_id).endswith(f"_{movie.year}")
    return f"{movie.title} ({movie.year})" if is_dated else movie.title


_render: Final = Templates(
    "rottentomatoes",
    {
        "whole": "{:.0f}".format,
        "percent": "{:.0f}%".format,
        "one_digit": "{:.1f}".format,
        "two_digits": "{:.2f}".format,
        "band": lambda count: f"{count // 50 * 50:,}+ Ratings",
        "ems": lambda ids: ids["ems"],
        "number": lambda ids: ids["rottentomatoes"],
        "type": _TYPES.get,
        "schema": lambda kind: _TYPES[kind].replace("Tv", "TV"),
        "dated_name": _dated_name,
        "path": "/{}".format,
        "url": "https://www.rottentomatoes.com/{}".format,
        "genre_path": lambda genre: f"/browse/movies_at_home/genres:{genre.lower()}",
        "rating": "{} (Some Language|Mild Peril)".format,
        "dollars": lambda sum_: f"${sum_ / _MILLION:.1f}M" if sum_ >= _MILLION else f"${sum_ / 1000:.1f}K",
        "hours": _hours,
        "month": lambda day: f"{date.fromisoformat(f'{day}-01'):%b %Y}",
        "opening": lambda movie: f"{'Opened' if movie.release_date else 'Streaming'} {_released(movie)}",
    },
)


def title_page(title: Title, movie: Movie) -> Page:
    """Return the page of a title, or of a season or an episode of it."""
    people = [(one, "Director") for one in movie.people("director")]
    people += [(one, one.character or "Actor") for one in movie.people("cast")]
    sections = {
        "where-to-watch": [
            markup("offer", provider=offer.provider, url=offer.url, licence=_LICENCES[offer.kind])
            for offer in movie.offers
            if offer.kind in _LICENCES
        ],
        "more-like-this": [markup("related", site_id=one.site_id, title=one.title) for one in movie.related],
        "seasons": [
            markup("season", **_render("season", one), **_render("percents", one))
            for one in (title.listed["rottentomatoes"] if movie.kind == "series" else ())
        ],
        "cast-and-crew": [markup("person", path=one.person_id, name=one.name, part=part) for one, part in people],
    }
    shown = [markup("section", b"".join(tiles), name=name) for name, tiles in sections.items() if tiles]
    if movie.consensus:
        shown.append(markup("consensus", text=movie.consensus))
    head = json_ld(_render("json_ld", movie))
    return _page(movie.title, str(movie.url), head, _scripts(movie) + b"".join(shown), _details(movie))


def _page(title: str, url: str, head: bytes, first: bytes, last: bytes) -> Page:
    filler = Filler("markup", 190_000)
    return Page(f"{title} | Rotten Tomatoes", url, head, filler, first, filler, last)


def _scripts(movie: Movie) -> bytes:
    if movie.kind == "movie":
        below = f"Released {_released(movie)}"
    else:
        below = f"{movie.year}-{movie.end_year or ''}" if movie.kind == "series" else str(movie.year)
    scores = {
        **{f"audience{who}": _score(movie, f"popcornmeter_{who.lower()}", "audience") for who in ("All", "Verified")},
        "criticsAll": _score(movie, "tomatometer", "critics"),
        "criticsTop": _score(movie, "tomatometer_top", "critics"),
    }
    verified, everybody = scores["audienceVerified"], scores["audienceAll"]
    props = [*filter(None, [movie.certificate]), below]
    named = {
        "media-hero": {"content": {"mediaType": _TYPES[movie.kind], "title": movie.title, "metadataProps": props}},
        "media-scorecard": {
            "audienceScore": verified if "score" in verified else everybody,
            "criticsScore": scores["criticsAll"],
            "description": movie.plot,
            "overlay": scores,
            "primaryImageUrl": movie.poster_url,
        },
        "curation": _render("curation", movie),
    }
    return b"".join(json_script(f'id="{name}-json" type="application/json"', data) for name, data in named.items())


def _score(movie: Movie, kind: Any, side: str) -> dict[str, Any]:
    """Return a score of the critics or of the audience, which has no key `score` before there are reviews."""
    score = movie.score(kind)
    found = _render(side, score) if score else {"certified": False}
    return {**found, "title": "Tomatometer" if side == "critics" else "Popcornmeter"}


def _details(movie: Movie) -> bytes:
    """Return the list of details; what the site does not know has no row."""
    label, release = "Premiere Date", _released(movie)
    if movie.kind == "movie":
        label = f"Release Date ({'Theaters' if movie.release_date else 'Streaming'})"
        release += ", Wide" if movie.release_date else ""
    rows = []
    for name, found in {label: {"text": release}, **_render("details", movie)}.items():
        values = [found] if isinstance(found, dict) else found or []
        shown = [markup("link" if "target" in value else "text", **value) for value in values]
        rows += [markup("detail", markup("delimiter").join(shown), label=name)] if shown else []
    return b"<dl>" + b"".join(rows) + b"</dl>"


def browse(collection: Collection, name: str) -> Page:
    """Return the first page of a list: movies_in_theaters, tv_series_browse, or all films by popularity."""
    movies, info = _browsed(collection, name, 0)
    tiles = [markup("browsed", **_render("tile", movie), **_render("percents", movie)) for movie in movies]
    script = json_script('id="pageInfo" type="application/json"', info)
    url = f"https://www.rottentomatoes.com/browse/{name}"
    return _page(name, url, b"", markup("list", b"".join(tiles)), script)


def browse_json(collection: Collection, name: str, after: str | None) -> bytes | None:
    """Return what follows a cursor in a list, None without one. Raises ValueError for a cursor that is none."""
    if after is None:
        return None
    movies, info = _browsed(collection, name, int(base64.b64decode(after, validate=True)) + 1)
    return encode({"grid": {"id": name, "list": [_render("row", movie) for movie in movies]}, "pageInfo": info})


def _browsed(collection: Collection, name: str, first: int) -> tuple[list[Movie], dict[str, Any]]:
    """Return the items on a page of a list, and its pageInfo."""
    titles = collection.series if name.startswith("tv_") else collection
    places = list(titles.site_ids("rottentomatoes"))
    if name.startswith("movies_in_theaters"):
        places = places[:IN_THEATERS]
    shown = places[first : first + BROWSE_ROWS]
    last = first + len(shown) - 1 if shown else max(len(places) - 1, 0)
    info = {"endCursor": base64.b64encode(str(last).encode()).decode(), "hasNextPage": last + 1 < len(places)}
    return [titles.title(place).movies["rottentomatoes"] for place in shown], info
