"""What the replica serves: generated pages, by the sites' own paths."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final
from xml.sax.saxutils import escape

from moviecrawler.replica import imdb, metacritic, rottentomatoes
from moviecrawler.replica.bodies import Body, Bulk
from moviecrawler.replica.datasets import FILES, Dataset

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from moviecrawler.items import Site
    from moviecrawler.replica.collection import Collection

HTML, JSON, _XML = "text/html; charset=utf-8", "application/json", "application/xml"
SITEMAP_PART: Final = 5_000
"""Titles in one part of a sitemap."""
_PAGES: Final[dict[Site, str]] = {
    "imdb": r"/title/(tt\d+)(/?)",
    "metacritic": r"/(movie/[^/]+|tv/[^/]+(?:/(?:season-\d+(?:/episode-[^/]+)?|specials))?)(/?)",
    "rottentomatoes": r"/(m/[^/]+|tv/[^/]+(?:/s\d{2,}(?:/e\d{2,})?)?)/?",
}
"""The paths of titles' pages; those of IMDb and Metacritic end with a slash."""


@dataclass(slots=True, frozen=True)
class Answer:
    """An answer, before its encoding is known."""

    body: Body
    content_type: str = HTML
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)


class Generated:
    """The pages of a collection's titles, its lists, sitemaps and datasets."""

    def __init__(self, collection: Collection, folder: Path | None = None) -> None:
        """Take the collection, and the folder for its datasets; without one there are none."""
        self._collection, self._folder = collection, folder
        self._routes: dict[Site, dict[str, Callable[..., Answer | Dataset | None]]] = {
            "imdb": {
                rf"/chart/({'|'.join(imdb.CHARTS)})/?": lambda name, *_: Answer(imdb.chart(collection, name)),
                r"/datasets/([\w.]+)": self._dataset,
            },
            "metacritic": {
                r"/(movies|tvshows)\.xml": self._sitemap_index,
                r"/(movies|tvshows)/(\d+)\.xml": self._sitemap,
                r"/finder/metacritic/web": lambda query, host: _page(metacritic.finder(collection, query, host), JSON),
            },
            "rottentomatoes": {
                r"/browse/(.+?)/?": lambda name, *_: Answer(rottentomatoes.browse(collection, name)),
                r"/cnapi/browse/(.+?)/?": self._browse_json,
                r"/sitemaps/(sitemap)\.xml": self._sitemap_index,
                r"/sitemaps/((?:movie|tv-series|tv-seasons)_)(\d+)\.xml": self._sitemap,
            },
        }

    def answer(self, site: Site, path: str, query: Mapping[str, str], host: str) -> Answer | Dataset | None:
        """Return the answer to a GET request, or None when there is no such page.

        `query`: the parameters; `host`: the scheme and host that were asked. Raises ValueError for a parameter that can't be read.
        """
        if found := re.fullmatch(_PAGES[site], path):
            return self._title(site, *found.groups())
        for pattern, respond in self._routes[site].items():
            if found := re.fullmatch(pattern, path):
                return respond(*found.groups(), query, host)
        return None

    def _title(self, site: Site, site_id: str, slash: str = "/") -> Answer | None:
        if not slash:
            return _redirect(308 if site == "imdb" else 301, f"/{'title/' if site == 'imdb' else ''}{site_id}/")
        found = self._collection.find(site, site_id)
        if found is None:
            return None
        title, movie = found
        if movie.site_id != site_id:
            return _redirect(301, f"/{movie.site_id}")
        if site == "imdb":
            return Answer(imdb.title_page(movie))
        return Answer((metacritic if site == "metacritic" else rottentomatoes).title_page(title, movie))

    def _browse_json(self, name: str, query: Mapping[str, str], _: str) -> Answer | None:
        after = query.get("after")
        return None if after is None else Answer(rottentomatoes.browse_json(self._collection, name, after), JSON)

    def _dataset(self, file: str, *_: object) -> Dataset | None:
        return Dataset(self._collection, self._folder, file) if self._folder and file in FILES else None

    # --- Sitemaps -----------------------------------------------------------------------------------------------------

    def _sitemap_index(self, name: str, _: object, host: str) -> Answer:
        """Return an index of all parts of the sitemaps of a site."""
        names = (
            [f"/{name}/"]
            if name != "sitemap"
            else [f"/sitemaps/{kind}_" for kind in ("movie", "tv-series", "tv-seasons")]
        )
        parts = [(name, part) for name in names for part in range(-(-len(self._listed(name)) // SITEMAP_PART))]
        return _xml("sitemapindex", "sitemap", [f"{host}{name}{part}.xml" for name, part in parts])

    def _sitemap(self, name: str, part: str, _: object, host: str) -> Answer | None:
        listed = self._listed(f"/sitemaps/{name}" if name.endswith("_") else f"/{name}/")
        found = listed[int(part) * SITEMAP_PART : (int(part) + 1) * SITEMAP_PART]
        return _xml("urlset", "url", [host + path for path in found]) if found else None

    @functools.cache  # noqa: B019 - as many as there are sitemaps
    def _listed(self, name: str) -> list[str]:
        """Return the paths in a sitemap; Metacritic has series and their seasons in one."""
        site: Site = "rottentomatoes" if name.startswith("/sitemaps/") else "metacritic"
        slash = "/" if site == "metacritic" else ""
        if "movie" in name:
            return [f"/{site_id}{slash}" for site_id in self._collection.site_ids(site).values()]
        series, found = self._collection.series, []
        for index, site_id in series.site_ids(site).items():
            if "seasons" not in name:
                found.append(f"/{site_id}{slash}")
            if "series" not in name:
                found += [f"/{season.site_id}{slash}" for season in series.title(index).listed[site]]
        return found


def not_found(site: Site) -> Answer:
    """Return a site's own page for what it does not have."""
    text = (
        f"<!DOCTYPE html><html><head><title>404 - Not Found</title></head><body><h1>Not Found on {site}</h1>".encode()
    )
    return Answer(Body(text, Bulk("markup", 3_000), b"</body></html>"), status=404)


def _page(body: Body | None, content_type: str = HTML) -> Answer | None:
    return None if body is None else Answer(body, content_type)


def _redirect(status: int, path: str) -> Answer:
    return Answer(Body(path.encode()), "text/plain", status, {"Location": path})


def _xml(root: str, element: str, locations: list[str]) -> Answer:
    rows = "".join(f"<{element}><loc>{escape(location)}</loc></{element}>\n" for location in locations)
    head = f'<?xml version="1.0" encoding="UTF-8"?>\n<{root} xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">\n'
    return Answer(Body(f"{head}{rows}</{root}>\n".encode()), _XML)
