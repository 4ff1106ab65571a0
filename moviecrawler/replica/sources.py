"""What the replica serves: generated pages, by the sites' own paths."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Protocol
from xml.sax.saxutils import escape

from moviecrawler.replica import imdb, markup, metacritic, rottentomatoes, rottentomatoes_lists
from moviecrawler.replica.bodies import Body
from moviecrawler.replica.datasets import TABLES, Dataset

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from moviecrawler.items import Site
    from moviecrawler.replica.movies import Catalogue
    from moviecrawler.replica.titles import SlugSite

HTML = "text/html; charset=utf-8"
JSON = "application/json"
_XML = "application/xml"
SITEMAP_PART = 5_000
"""Titles in one part of a sitemap."""
_SITEMAPS: dict[str, tuple[SlugSite, str]] = {
    "/movies/": ("metacritic", "/movie/{}/"),
    "/tvshows/": ("metacritic", "/tv/{}/"),
    "/sitemaps/movie_": ("rottentomatoes", "/m/{}"),
    "/sitemaps/tv-series_": ("rottentomatoes", "/tv/{}"),
    "/sitemaps/tv-seasons_": ("rottentomatoes", "/tv/{}"),
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
        of_imdb = imdb.Pages(catalogue, light=light)
        self._metacritic = metacritic.Pages(catalogue, light=light)
        self._rottentomatoes = rottentomatoes.Pages(catalogue, light=light)
        self._browse = rottentomatoes_lists.Lists(catalogue, light=light)
        datasets = {name: Dataset(catalogue, name) for name in TABLES}
        routes: dict[Site, dict[str, Callable[..., Answer | Dataset | None]]] = {
            "imdb": {
                r"/title/(tt\d+)/": lambda tt, *_: _page(of_imdb.title(tt)),
                r"(/title/tt\d+(?:/\w+)?)": partial(_with_slash, 308),
                r"/chart/(top|moviemeter|boxoffice|toptv|tvmeter)/?": lambda name, *_: _page(of_imdb.chart(name)),
                r"/datasets/([\w.]+)": lambda name, *_: datasets.get(name),
            },
            "metacritic": {
                r"/(movie|tv)/([^/]+)/": self._of_metacritic,
                r"/(tv)/([^/]+/(?:season-\d+(?:/episode-[^/]+)?|specials))/": self._of_metacritic,
                r"(/(?:movie|tv)/[^/]+(?:/(?:season-\d+(?:/episode-[^/]+)?|specials))?)": partial(_with_slash, 301),
                r"/(movies|tvshows)\.xml": lambda name, _, host: self._sitemap_index([f"/{name}/"], host),
                r"(/(?:movies|tvshows)/)(\d+)\.xml": self._sitemap,
                r"/composer/metacritic/pages/(movies|shows)/([^/]+)/web": self._composed,
                r"/finder/metacritic/web": self._finder,
            },
            "rottentomatoes": {
                r"/(m)/([^/]+)/?": self._of_rottentomatoes,
                r"/(tv)/([^/]+(?:/s\d{2,}(?:/e\d{2,})?)?)/?": self._of_rottentomatoes,
                r"/browse/(.+?)/?": lambda name, *_: _page(self._browse.first_page(name)),
                r"/cnapi/browse/(.+?)/?": self._browse_json,
                r"/sitemaps/sitemap\.xml": lambda _, host: self._sitemap_index(
                    [name for name in _SITEMAPS if name.startswith("/sitemaps/")], host
                ),
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

    def _of_metacritic(self, path: str, slug: str, *_: object) -> Answer | None:
        return _page(self._metacritic.title(path, slug))

    def _composed(self, kind: str, slug: str, *_: object) -> Answer:
        body = self._metacritic.composed(kind, slug)
        return Answer(Body(metacritic.NO_SUCH_PAGE), JSON, status=404) if body is None else Answer(body, JSON)

    def _finder(self, query: Mapping[str, str], host: str) -> Answer | None:
        kind = next((kind for kind in metacritic.KINDS if str(kind.finder_id) == query.get("mcoTypeId")), None)
        if kind is None:
            return None
        limit, offset = int(query.get("limit", metacritic.FINDER_ROWS)), int(query.get("offset", 0))
        order = query.get("sortBy", "-metaScore")
        body = self._metacritic.finder(kind, order=order, limit=max(limit, 1), offset=max(offset, 0), host=host)
        return Answer(body, JSON)

    def _of_rottentomatoes(self, section: str, slug: str, *_: object) -> Answer | None:
        found = self._rottentomatoes.title(section, slug)
        if isinstance(found, str):
            return Answer(Body(b""), status=301, headers={"Location": f"/{section}/{found}"})
        return _page(found)

    def _browse_json(self, name: str, query: Mapping[str, str], _: str) -> Answer | None:
        after = query.get("after")
        return None if after is None else Answer(self._browse.following(name, after), JSON)

    # --- Sitemaps -----------------------------------------------------------------------------------------------------

    def _sitemap_index(self, names: list[str], host: str) -> Answer:
        """Return an index of all parts of the sitemaps of these names."""
        parts = ((name, part) for name in names for part in range(-(-self._listed(name)[0] // SITEMAP_PART)))
        return Answer(_xml("sitemapindex", "sitemap", (f"{host}{name}{part}.xml" for name, part in parts)), _XML)

    def _sitemap(self, name: str, part: str, _: Mapping[str, str], host: str) -> Answer | None:
        first = int(part) * SITEMAP_PART
        found = [host + path for path in self._listed(name)[1](first, first + SITEMAP_PART)]
        return Answer(_xml("urlset", "url", found), _XML) if found else None

    def _listed(self, name: str) -> tuple[int, Callable[[int, int], list[str]]]:
        """Return how many titles a sitemap lists, and what gives the paths of those from one place up to another."""
        site, path = _SITEMAPS[name]
        if path.startswith("/tv/"):
            paths = self._series_paths(name)
            return len(paths), lambda start, end: paths[start:end]
        listed, slug = self._catalogue.listed[site], self._catalogue.slug
        return len(listed), lambda start, end: [path.format(slug(site, index)) for index in listed.part(start, end)]

    @functools.cache  # noqa: B019 - as many as there are sitemaps
    def _series_paths(self, name: str) -> list[str]:
        """Return the paths of a sitemap of series or of seasons; Metacritic has both in one."""
        site, path = _SITEMAPS[name]
        series, found = self._catalogue.series, []
        for index in series.listed[site].part(0, series.count):
            slug, numbers = series.slug(site, index), series.season_numbers(index)
            if "seasons" not in name:
                found.append(path.format(slug))
            if "seasons" in name:
                found += [path.format(f"{slug}/s{season:02}") for season in numbers]
            elif site == "metacritic":
                found += [path.format(f"{slug}/{f'season-{season}' if season else 'specials'}") for season in numbers]
        return found


def not_found(site: Site) -> Answer:
    """Return a site's own page for what it does not have."""
    text = b"<!DOCTYPE html><html><head><title>404 - Not Found</title></head><body><h1>404 - Not Found</h1>"
    return Answer(Body(text + markup.elements(3_000, f"not found on {site}") + b"</body></html>"), status=404)


def _page(body: Body | None) -> Answer | None:
    return None if body is None else Answer(body)


def _with_slash(status: int, path: str, *_: object) -> Answer:
    return Answer(Body(f"{path}/".encode()), "text/plain", status, {"Location": f"{path}/"})


def _xml(root: str, element: str, locations: Iterable[str]) -> Body:
    rows = "".join(f"<{element}><loc>{escape(location)}</loc></{element}>\n" for location in locations)
    return Body(
        f'<?xml version="1.0" encoding="UTF-8"?>\n<{root} xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">\n'
        f"{rows}</{root}>\n".encode()
    )
