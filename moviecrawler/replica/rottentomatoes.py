"""Rotten Tomatoes' pages as the site has served them since 2024, and its browse lists.

Pages have scripts of JSON, a list of details, and JSON-LD.
"""

from __future__ import annotations

import base64
from datetime import date
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from moviecrawler.replica.payloads import Templates, page

if TYPE_CHECKING:
    from moviecrawler.items import Movie, ScoreKind
    from moviecrawler.replica.collection import Collection
    from moviecrawler.replica.titles import Title

IN_THEATERS: Final = 56
"""How many of the most popular films are in theaters."""
BROWSE_ROWS: Final = 28
_MILLION: Final = 1_000_000
_TYPES: Final = {
    "movie": "Movie",
    "series": "TvSeries",
    "season": "TvSeason",
    "episode": "TvEpisode",
}


def _released(movie: Movie) -> str:
    """Return a title's release as the site writes it: "Nov 01, 2026"."""
    return f"{date.fromisoformat(movie.release_date or f'{movie.year}-01-01'):%b %d, %Y}"


def _below_title(movie: Movie) -> list[str]:
    """Return what stands below a title: its certificate, and when it was released or shown."""
    release = {
        "movie": f"Released {_released(movie)}",
        "series": f"{movie.year}-{movie.end_year or ''}",
    }
    return [*filter(None, [movie.certificate]), release.get(movie.kind, str(movie.year))]


def _score(side: str, kinds: tuple[ScoreKind, ...], movie: Movie) -> dict[str, Any]:
    """Return the first score that there is of the critics or of the audience.

    Before there are reviews it has no key `score`.
    """
    score = next(filter(None, map(movie.score, kinds)), None)
    found = _render(side, score) if score else {"certified": False}
    return {**found, "title": "Tomatometer" if side == "critics" else "Popcornmeter"}


_render: Final = Templates(
    "rottentomatoes",
    {
        "band": lambda count: f"{count // 50 * 50:,}+ Ratings",
        "type": _TYPES.get,
        "schema": lambda kind: _TYPES[kind].replace("Tv", "TV"),
        # In JSON-LD the site tells films apart that share a title.
        "dated_name": lambda one: (
            f"{one.title} ({one.year})" if one.site_id.endswith(f"_{one.year}") else one.title
        ),
        "genre_path": lambda genre: f"/browse/movies_at_home/genres:{genre.lower()}",
        "dollars": lambda sum_: (
            f"${sum_ / _MILLION:.1f}M" if sum_ >= _MILLION else f"${sum_ / 1000:.1f}K"
        ),
        "hours": lambda minutes: f"{minutes // 60}h {minutes % 60}m".removeprefix("0h "),
        "month": lambda day: f"{date.fromisoformat(f'{day}-01'):%b %Y}",
        "below_title": _below_title,
        "critics": partial(_score, "critics", ("tomatometer",)),
        "top_critics": partial(_score, "critics", ("tomatometer_top",)),
        "audience": partial(_score, "audience", ("popcornmeter_verified", "popcornmeter_all")),
        "everybody": partial(_score, "audience", ("popcornmeter_all",)),
        "verified": partial(_score, "audience", ("popcornmeter_verified",)),
        "opening": lambda movie: (
            f"{'Opened' if movie.release_date else 'Streaming'} {_released(movie)}"
        ),
    },
)


def title_page(title: Title, movie: Movie, *, light: bool) -> bytes:
    """Return the page of a title, or of a season or an episode of it."""
    label = "Premiere Date"
    release = _released(movie)
    if movie.kind == "movie":
        label = f"Release Date ({'Theaters' if movie.release_date else 'Streaming'})"
        release += ", Wide" if movie.release_date else ""
    return page(
        "rottentomatoes.html",
        light=light,
        title=f"{movie.title} | Rotten Tomatoes",
        url=movie.url,
        linked=_render("json_ld", movie),
        scripts=_render("scripts", movie),
        movie=movie,
        seasons=[_render("season", one) for one in title.listed["rottentomatoes"]]
        if movie.kind == "series"
        else [],
        details={label: {"text": release}, **_render("details", movie)},
    )


def browse(collection: Collection, name: str, *, light: bool) -> bytes:
    """Return the first page of a list.

    Lists are movies_in_theaters, tv_series_browse, or all films by popularity.
    """
    rows, info = _browsed(collection, name, 0)
    url = f"https://www.rottentomatoes.com/browse/{name}"
    title = f"{name} | Rotten Tomatoes"
    return page("rottentomatoes_list.html", light=light, title=title, url=url, rows=rows, info=info)


def browse_json(collection: Collection, name: str, after: str | None) -> dict[str, Any] | None:
    """Return what follows a cursor in a list, None without one.

    Raises ValueError for a cursor that is none.
    """
    if after is None:
        return None
    rows, info = _browsed(collection, name, int(base64.b64decode(after, validate=True)) + 1)
    return {"grid": {"id": name, "list": rows}, "pageInfo": info}


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
    return [_render("row", titles.title(index).movies["rottentomatoes"]) for index in shown], info
