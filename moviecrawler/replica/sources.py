"""What the replica serves: generated pages, by the sites' own paths."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Protocol
from xml.sax.saxutils import escape

from moviecrawler.replica import (
    bulk,
    imdb,
    imdb_series,
    metacritic,
    metacritic_series,
    rottentomatoes,
    rottentomatoes_series,
)
from moviecrawler.replica.bodies import Body
from moviecrawler.replica.datasets import TABLES, Dataset

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from moviecrawler.items import Site
    from moviecrawler.replica.movies import Catalogue, SlugSite

HTML = "text/html; charset=utf-8"
JSON = "application/json"
_XML = "application/xml"
SITEMAP_PART = 5_000
"""Titles in one part of a sitemap."""
_SERIES, _SEASONS = "/sitemaps/tv-series_", "/sitemaps/tv-seasons_"
_SITEMAPS: dict[str, tuple[SlugSite, str]] = {
    "/movies/": ("metacritic", "/movie/{}/"),
    "/tvshows/": ("metacritic", "/tv/{}/"),
    "/sitemaps/movie_": ("rottentomatoes", "/m/{}"),
    _SERIES: ("rottentomatoes", "/tv/{}"),
    _SEASONS: ("rottentomatoes", "/tv/{}"),
}
"""The site of each sitemap, and the paths in it, by what the paths of its parts begin with."""


@dataclass(slots=True, frozen=True)
class Answer:
    """An answer, before its encoding is known."""

    body: Body
    content_type: str = HTML
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)


class Source(Protocol):
    """Something that the replica can serve."""

    def answer(self, site: Site, path: str, query: Mapping[str, str], host: str) -> Answer | Dataset | None:
        """Return the answer to a GET request, or None when there is no such page.

        `query`: the parameters; `host`: the scheme and host that were asked. Raises ValueError for a parameter that
        can't be read.
        """


class Generated:
    """The pages of a catalogue's movies and series."""

    def __init__(self, catalogue: Catalogue, *, light: bool = False) -> None:
        self._catalogue = catalogue
        self._imdb = imdb.Pages(catalogue, light=light)
        self._imdb_series = imdb_series.SeriesPages(catalogue, light=light)
        self._metacritic = metacritic.Pages(catalogue, light=light)
        self._shows = metacritic_series.SeriesPages(catalogue, light=light)
        self._rottentomatoes = rottentomatoes.Pages(catalogue, light=light)
        self._tv = rottentomatoes_series.SeriesPages(catalogue, light=light)
        self._datasets = {name: Dataset(catalogue, name) for name in TABLES}
        routes: dict[Site, dict[str, Callable[..., Answer | Dataset | None]]] = {
            "imdb": {
                r"/title/(tt\d+)/": lambda tt, *_: _page(self._imdb.title(tt) or self._imdb_series.title(tt)),
                r"/title/(tt\d+)/episodes/": self._episodes,
                r"(/title/tt\d+(?:/\w+)?)": _with_slash(308),
                r"/chart/top/?": lambda *_: _page(self._imdb.top()),
                r"/chart/moviemeter/?": lambda *_: _page(self._imdb.popular()),
                r"/chart/boxoffice/?": lambda *_: _page(self._imdb.box_office()),
                r"/chart/toptv/?": lambda *_: _page(self._imdb_series.top()),
                r"/chart/tvmeter/?": lambda *_: _page(self._imdb_series.popular()),
                r"/datasets/([\w.]+)": lambda name, *_: self._datasets.get(name),
            },
            "metacritic": {
                r"/movie/([^/]+)/": lambda slug, *_: _page(self._metacritic.title(slug)),
                r"/tv/([^/]+)/": lambda slug, *_: _page(self._shows.title(slug)),
                r"/tv/([^/]+)/(season-\d+|specials)/": lambda slug, season, *_: _page(self._shows.season(slug, season)),
                r"/tv/([^/]+)/(season-\d+)/(episode-[^/]+)/": self._metacritic_episode,
                r"(/(?:movie|tv)/[^/]+(?:/(?:season-\d+(?:/episode-[^/]+)?|specials))?)": _with_slash(301),
                r"/movies\.xml": partial(self._sitemap_index, ["/movies/"]),
                r"/tvshows\.xml": partial(self._sitemap_index, ["/tvshows/"]),
                r"(/(?:movies|tvshows)/)(\d+)\.xml": self._sitemap,
                r"/composer/metacritic/pages/(movies|shows)/([^/]+)/web": self._composed,
                r"/finder/metacritic/web": self._finder,
            },
            "rottentomatoes": {
                r"/m/([^/]+)/?": self._tomatoes_movie,
                r"/tv/([^/]+)(?:/s(\d+)(?:/e(\d+))?)?/?": self._tomatoes_series,
                r"/browse/(.+?)/?": lambda name, *_: _page(self._rottentomatoes.browse(name)),
                r"/cnapi/browse/(.+?)/?": self._browse_json,
                r"/sitemaps/sitemap\.xml": partial(self._sitemap_index, ["/sitemaps/movie_", _SERIES, _SEASONS]),
                r"(/sitemaps/(?:movie|tv-series|tv-seasons)_)(\d+)\.xml": self._sitemap,
            },
        }
        self._routes = {
            site: [(re.compile(pattern), respond) for pattern, respond in answers.items()]
            for site, answers in routes.items()
        }

    def answer(self, site: Site, path: str, query: Mapping[str, str], host: str) -> Answer | Dataset | None:
        """Return the page at a path; see `Source`."""
        for pattern, respond in self._routes[site]:
            found = pattern.fullmatch(path)
            if found:
                return respond(*found.groups(), query, host)
        return None

    def _episodes(self, imdb_id: str, query: Mapping[str, str], _: str) -> Answer | None:
        return _page(self._imdb_series.episodes(imdb_id, query.get("season")))

    def _composed(self, kind: str, slug: str, *_: object) -> Answer:
        body = (self._metacritic if kind == "movies" else self._shows).composed(slug)
        if body is None:
            return Answer(Body(metacritic.NO_SUCH_PAGE), JSON, status=404)
        return Answer(body, JSON)

    def _metacritic_episode(self, slug: str, season: str, episode: str, *_: object) -> Answer | None:
        return _page(self._shows.episode(slug, season, episode))

    def _finder(self, query: Mapping[str, str], host: str) -> Answer | None:
        pages = next(
            (p for p in (self._metacritic, self._shows) if str(p.kind.finder_id) == query.get("mcoTypeId")), None
        )
        if pages is None:
            return None
        limit, offset = int(query.get("limit", metacritic.FINDER_ROWS)), int(query.get("offset", 0))
        order = query.get("sortBy", "-metaScore")
        body = pages.finder(order=order, limit=max(limit, 1), offset=max(offset, 0), host=host)
        return Answer(body, JSON)

    def _tomatoes_movie(self, slug: str, *_: object) -> Answer | None:
        canonical = self._rottentomatoes.canonical_slug(slug)
        return _moved("m", canonical) if canonical not in {None, slug} else _page(self._rottentomatoes.movie(slug))

    def _tomatoes_series(self, slug: str, season: str | None, episode: str | None, *_: object) -> Answer | None:
        canonical = self._tv.canonical_slug(slug)
        if canonical not in {None, slug}:
            part = "".join(("" if season is None else f"/s{season}", "" if episode is None else f"/e{episode}"))
            return _moved("tv", f"{canonical}{part}")
        numbers = (None if number is None else int(number) for number in (season, episode))
        return _page(self._tv.title(slug, *numbers))

    def _browse_json(self, name: str, query: Mapping[str, str], _: str) -> Answer | None:
        after = query.get("after")
        return None if after is None else Answer(self._rottentomatoes.browse_json(name, after), JSON)

    # --- Sitemaps -----------------------------------------------------------------------------------------------------

    def _sitemap_index(self, names: list[str], _: Mapping[str, str], host: str) -> Answer:
        """Return the index of the sitemaps of these names, which have so many parts each."""
        parts = ((name, part) for name in names for part in range(-(-self._listed(name)[0] // SITEMAP_PART)))
        return Answer(_xml("sitemapindex", "sitemap", (f"{host}{name}{part}.xml" for name, part in parts)), _XML)

    def _sitemap(self, name: str, part: str, _: Mapping[str, str], host: str) -> Answer | None:
        count, path_at = self._listed(name)
        first = int(part) * SITEMAP_PART
        found = [host + path_at(place) for place in range(first, min(first + SITEMAP_PART, count))]
        return Answer(_xml("urlset", "url", found), _XML) if found else None

    def _listed(self, name: str) -> tuple[int, Callable[[int], str]]:
        """Return how many titles a sitemap lists, and what gives the path of the one at a place."""
        site, path = _SITEMAPS[name]
        if path in {"/m/{}", "/movie/{}/"}:
            at = self._catalogue.nth
            return self._catalogue.count(site), lambda place: path.format(self._catalogue.slug(site, at(site, place)))
        paths = self._series_paths(name)
        return len(paths), paths.__getitem__

    @functools.cache  # noqa: B019 - as many as there are sitemaps
    def _series_paths(self, name: str) -> list[str]:
        """Return the paths of a sitemap of series or of seasons; Metacritic has both in one."""
        site, path = _SITEMAPS[name]
        series, found = self._catalogue.series, []
        for number in series.numbers(site):
            slug, numbers = series.slug(site, number), series.season_numbers(number)
            if name != _SEASONS:
                found.append(path.format(slug))
            if name == _SEASONS:
                found += [path.format(f"{slug}/s{season:02}") for season in numbers]
            elif site == "metacritic":
                found += [path.format(f"{slug}/{f'season-{season}' if season else 'specials'}") for season in numbers]
        return found


def not_found(site: Site) -> Answer:
    """Return a site's own page for what it does not have."""
    text = b"<!DOCTYPE html><html><head><title>404 - Not Found</title></head><body><h1>404 - Not Found</h1>"
    return Answer(Body(text + bulk.markup(3_000, f"not found on {site}") + b"</body></html>"), status=404)


def _page(body: Body | None) -> Answer | None:
    return None if body is None else Answer(body)


def _moved(section: str, slug: str | None) -> Answer:
    return Answer(Body(b""), status=301, headers={"Location": f"/{section}/{slug}"})


def _with_slash(status: int) -> Callable[..., Answer]:
    def redirect(path: str, *_: object) -> Answer:
        return Answer(Body(f"{path}/".encode()), "text/plain", status, {"Location": f"{path}/"})

    return redirect


def _xml(root: str, element: str, locations: Iterable[str]) -> Body:
    rows = "".join(f"<{element}><loc>{escape(location)}</loc></{element}>\n" for location in locations)
    return Body(
        f'<?xml version="1.0" encoding="UTF-8"?>\n<{root} xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">\n'
        f"{rows}</{root}>\n".encode()
    )
