"""Answers requests under the sites' own paths."""

from __future__ import annotations

import functools
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit
from xml.sax.saxutils import escape

import msgspec

from moviecrawler.sites.rottentomatoes import replica as rottentomatoes_pages
from moviecrawler.sites.metacritic import replica as metacritic_pages
from moviecrawler.sites.imdb import replica as imdb_pages
from moviecrawler.replica.datasets import FILES, Dataset
from moviecrawler.sites.ids import title_url

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from moviecrawler.items import Site
    from moviecrawler.replica.collection import Collection

HTML = "text/html; charset=utf-8"
JSON = "application/json"
SITEMAP_PART: Final = 5_000
"""Titles in one part of a sitemap."""
_TITLE_PAGES: Final = {
    "imdb": imdb_pages.title_page,
    "metacritic": metacritic_pages.title_page,
    "rottentomatoes": rottentomatoes_pages.title_page,
}


@dataclass(slots=True, frozen=True)
class Answer:
    """An answer, before its encoding is known."""

    body: bytes
    content_type: str = HTML
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)


class Source:
    """The pages of a collection's titles, its lists, sitemaps and datasets."""

    def __init__(
        self, collection: Collection, folder: Path | None = None, *, light: bool = False
    ) -> None:
        """Take the collection, and the folder for its datasets; without one there are none."""
        self._collection = collection
        self._folder = folder
        self._light = light

    def answer(
        self, site: Site, path: str, query: Mapping[str, str], host: str
    ) -> Answer | Dataset | None:
        """Return the answer to a GET request, or None when there is no such page.

        `query`: the parameters; `host`: the scheme and host that were asked. Raises ValueError for
        a parameter that can't be read.
        """
        titles = self._collection
        match site, path.strip("/").split("/"):
            case "imdb", ["chart", name] if name in imdb_pages.CHARTS:
                return Answer(imdb_pages.chart(titles, name, light=self._light))
            case "imdb", ["datasets", file]:
                return (
                    Dataset(titles, self._folder, file) if self._folder and file in FILES else None
                )
            case "metacritic", ["finder", "metacritic", "web"]:
                return _json(metacritic_pages.finder(titles, query, host))
            case "metacritic", ["movies.xml" | "tvshows.xml" as name]:
                return self._sitemap_index(site, [f"{name.removesuffix('.xml')}/"], host)
            case "rottentomatoes", ["browse", *name]:
                page = rottentomatoes_pages.browse(titles, "/".join(name), light=self._light)
                return Answer(page)
            case "rottentomatoes", ["cnapi", "browse", *name]:
                after = query.get("after")
                return _json(rottentomatoes_pages.browse_json(titles, "/".join(name), after))
            case "rottentomatoes", ["sitemaps", "sitemap.xml"]:
                names = [f"sitemaps/{kind}_" for kind in ("movie", "tv-series", "tv-seasons")]
                return self._sitemap_index(site, names, host)
            case _, ["movies" | "tvshows" | "sitemaps", file] if file.endswith(".xml"):
                return self._sitemap(site, path.strip("/").removesuffix(".xml"), host)
        return self._title(site, path)

    def _title(self, site: Site, path: str) -> Answer | None:
        found = self._collection.find(site, path.strip("/").removeprefix("title/"))
        if found is None:
            return None
        title, movie = found
        canonical = urlsplit(str(movie.url)).path
        if path != canonical:
            return Answer(
                b"", status=308 if site == "imdb" else 301, headers={"Location": canonical}
            )
        return Answer(_TITLE_PAGES[site](title, movie, light=self._light))

    def _sitemap_index(self, site: Site, names: list[str], host: str) -> Answer:
        parts = [part for name in names for part in self._sitemaps(site, name)]
        return _xml("sitemapindex", "sitemap", [f"{host}/{part}.xml" for part in parts])

    def _sitemap(self, site: Site, path: str, host: str) -> Answer | None:
        ids = self._sitemaps(site, path.rstrip("0123456789")).get(path)
        return _xml("urlset", "url", [title_url(site, one, host) for one in ids]) if ids else None

    @functools.cache  # noqa: B019 - as many as there are sitemaps
    def _sitemaps(self, site: Site, name: str) -> dict[str, list[str]]:
        """Return the ids of the titles in each part of a sitemap, by its path.

        Metacritic has series and their seasons in one.
        """
        titles = self._collection if "movie" in name else self._collection.series
        ids = []
        for index, site_id in titles.ids[site].items():
            ids += [] if "seasons" in name else [site_id]
            if "tvshows" in name or "seasons" in name:
                ids += [str(season.site_id) for season in titles.title(index).listed[site]]
        starts = range(0, len(ids), SITEMAP_PART)
        return {
            f"{name}{start // SITEMAP_PART}": ids[start : start + SITEMAP_PART] for start in starts
        }


def _json(data: dict[str, Any] | None) -> Answer | None:
    return None if data is None else Answer(msgspec.json.encode(data), JSON)


def _xml(root: str, element: str, locations: list[str]) -> Answer:
    rows = "".join(
        f"<{element}><loc>{escape(location)}</loc></{element}>\n" for location in locations
    )
    head = (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        f'<{root} xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">\n'
    )
    return Answer(f"{head}{rows}</{root}>\n".encode(), "application/xml")
