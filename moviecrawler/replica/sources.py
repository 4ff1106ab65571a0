"""What the replica serves: generated pages, by the sites' own paths."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Protocol
from xml.sax.saxutils import escape

from moviecrawler.replica import bulk, imdb, metacritic, rottentomatoes
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
"""Movies in one part of a sitemap."""


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
    """The pages of a catalogue's movies."""

    def __init__(self, catalogue: Catalogue, *, light: bool = False) -> None:
        self._catalogue = catalogue
        self._imdb = imdb.Pages(catalogue, light=light)
        self._metacritic = metacritic.Pages(catalogue, light=light)
        self._rottentomatoes = rottentomatoes.Pages(catalogue, light=light)
        self._datasets = {name: Dataset(catalogue, name) for name in TABLES}
        routes: dict[Site, dict[str, Callable[..., Answer | Dataset | None]]] = {
            "imdb": {
                r"/title/(tt\d+)/": lambda tt, *_: _page(self._imdb.title(tt)),
                r"(/title/tt\d+(?:/\w+)?)": _with_slash(308),
                r"/chart/top/?": lambda *_: _page(self._imdb.top()),
                r"/chart/moviemeter/?": lambda *_: _page(self._imdb.popular()),
                r"/chart/boxoffice/?": lambda *_: _page(self._imdb.box_office()),
                r"/datasets/([\w.]+)": lambda name, *_: self._datasets.get(name),
            },
            "metacritic": {
                r"/movie/([^/]+)/": lambda slug, *_: _page(self._metacritic.movie(slug)),
                r"(/movie/[^/]+)": _with_slash(301),
                r"/movies\.xml": partial(self._sitemap_index, "metacritic", "/movies/"),
                r"/movies/(\d+)\.xml": partial(self._sitemap, "metacritic", "/movie/{}/"),
                r"/composer/metacritic/pages/movies/([^/]+)/web": self._composed,
                r"/finder/metacritic/web": self._finder,
            },
            "rottentomatoes": {
                r"/m/([^/]+)/?": self._rottentomatoes_movie,
                r"/browse/(.+?)/?": lambda name, *_: _page(self._rottentomatoes.browse(name)),
                r"/cnapi/browse/(.+?)/?": self._browse_json,
                r"/sitemaps/sitemap\.xml": partial(self._sitemap_index, "rottentomatoes", "/sitemaps/movie_"),
                r"/sitemaps/movie_(\d+)\.xml": partial(self._sitemap, "rottentomatoes", "/m/{}"),
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

    def _composed(self, slug: str, *_: object) -> Answer:
        body = self._metacritic.composed(slug)
        if body is None:
            return Answer(Body(metacritic.NO_SUCH_PAGE), JSON, status=404)
        return Answer(body, JSON)

    def _finder(self, query: Mapping[str, str], host: str) -> Answer | None:
        if query.get("mcoTypeId") != "2":
            return None
        limit, offset = int(query.get("limit", metacritic.FINDER_ROWS)), int(query.get("offset", 0))
        order = query.get("sortBy", "-metaScore")
        body = self._metacritic.finder(order=order, limit=max(limit, 1), offset=max(offset, 0), host=host)
        return Answer(body, JSON)

    def _rottentomatoes_movie(self, slug: str, *_: object) -> Answer | None:
        canonical = self._rottentomatoes.canonical_slug(slug)
        if canonical is not None and canonical != slug:
            return Answer(Body(b""), status=301, headers={"Location": f"/m/{canonical}"})
        return _page(self._rottentomatoes.movie(slug))

    def _browse_json(self, name: str, query: Mapping[str, str], _: str) -> Answer | None:
        after = query.get("after")
        return None if after is None else Answer(self._rottentomatoes.browse_json(name, after), JSON)

    def _sitemap_index(self, site: SlugSite, prefix: str, _: Mapping[str, str], host: str) -> Answer:
        parts = range(-(-self._catalogue.count(site) // SITEMAP_PART))
        return Answer(_xml("sitemapindex", "sitemap", (f"{host}{prefix}{part}.xml" for part in parts)), _XML)

    def _sitemap(self, site: SlugSite, path: str, part: str, _: Mapping[str, str], host: str) -> Answer | None:
        first, count = int(part) * SITEMAP_PART, self._catalogue.count(site)
        indexes = (self._catalogue.nth(site, place) for place in range(first, min(first + SITEMAP_PART, count)))
        found = [host + path.format(self._catalogue.slug(site, index)) for index in indexes]
        return Answer(_xml("urlset", "url", found), _XML) if found else None


def not_found(site: Site) -> Answer:
    """Return a site's own page for what it does not have."""
    text = b"<!DOCTYPE html><html><head><title>404 - Not Found</title></head><body><h1>404 - Not Found</h1>"
    return Answer(Body(text + bulk.markup(3_000, f"not found on {site}") + b"</body></html>"), status=404)


def _page(body: Body | None) -> Answer | None:
    return None if body is None else Answer(body)


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
