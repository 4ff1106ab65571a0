"""Answers requests under the sites' own paths, with generated or with saved pages."""

from __future__ import annotations

import csv
import functools
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qsl, urlsplit
from xml.sax.saxutils import escape

import msgspec

from moviecrawler.errors import ConfigurationError
from moviecrawler.replica import imdb, metacritic, rottentomatoes
from moviecrawler.replica.datasets import FILES, Dataset
from moviecrawler.sites import SITES
from moviecrawler.urls import site_of, title_url

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from moviecrawler.items import Site
    from moviecrawler.replica.collection import Collection

_Key = tuple["Site", str, tuple[tuple[str, str], ...]]
HTML = "text/html; charset=utf-8"
JSON = "application/json"
SITEMAP_PART: Final = 5_000
"""Titles in one part of a sitemap."""


@dataclass(slots=True, frozen=True)
class Answer:
    """An answer, before its encoding is known."""

    body: bytes
    content_type: str = HTML
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)


class Generated:
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
            case "imdb", ["chart", name] if name in imdb.CHARTS:
                return Answer(imdb.chart(titles, name, light=self._light))
            case "imdb", ["datasets", file]:
                return (
                    Dataset(titles, self._folder, file) if self._folder and file in FILES else None
                )
            case "metacritic", ["finder", "metacritic", "web"]:
                return _json(metacritic.finder(titles, query, host))
            case "metacritic", ["movies.xml" | "tvshows.xml" as name]:
                return self._sitemap_index(site, [f"{name.removesuffix('.xml')}/"], host)
            case "rottentomatoes", ["browse", *name]:
                return Answer(rottentomatoes.browse(titles, "/".join(name), light=self._light))
            case "rottentomatoes", ["cnapi", "browse", *name]:
                return _json(rottentomatoes.browse_json(titles, "/".join(name), query.get("after")))
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
        if site == "imdb":
            return Answer(imdb.title_page(movie, light=self._light))
        module = metacritic if site == "metacritic" else rottentomatoes
        return Answer(module.title_page(title, movie, light=self._light))

    def _sitemap_index(self, site: Site, names: list[str], host: str) -> Answer:
        parts = [
            (name, part)
            for name in names
            for part in range(-(-len(self._listed(site, name)) // SITEMAP_PART))
        ]
        return _xml("sitemapindex", "sitemap", [f"{host}/{name}{part}.xml" for name, part in parts])

    def _sitemap(self, site: Site, path: str, host: str) -> Answer | None:
        name = path.rstrip("0123456789")
        first = int(path.removeprefix(name) or 0) * SITEMAP_PART
        found = self._listed(site, name)[first : first + SITEMAP_PART]
        return (
            _xml("urlset", "url", [title_url(site, site_id, host) for site_id in found])
            if found
            else None
        )

    @functools.cache  # noqa: B019 - as many as there are sitemaps
    def _listed(self, site: Site, name: str) -> list[str]:
        """Return the ids of the titles in a sitemap.

        Metacritic has series and their seasons in one.
        """
        titles = self._collection if "movie" in name else self._collection.series
        found = []
        for index, site_id in titles.ids[site].items():
            found += [] if "seasons" in name else [site_id]
            if "tvshows" in name or "seasons" in name:
                found += [str(season.site_id) for season in titles.title(index).listed[site]]
        return found


class SavedPages:
    """The pages of a folder, as its INDEX.tsv names them.

    It has for each `file` its `url`, when it was `captured`, and its `kind`.

    Of several files for one address the newest is served: "2025-12" is newer than "<=2025-12", and
    of equals the last. Pages of all of a site's hosts are on that site's port. Bodies of redirects
    are left out, as they are no answers by themselves. A file of bare JSON whose address is that of
    a page is put back into its script.
    """

    def __init__(self, folder: Path) -> None:
        """Read the index. Raises ConfigurationError when it can't be read."""
        self._folder = folder
        index = folder / "INDEX.tsv"
        self._files: dict[_Key, tuple[str, str]] = {}
        try:
            with index.open(encoding="utf-8", newline="") as lines:
                rows = list(csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE))
            for row in sorted(
                rows,
                key=lambda row: (row["captured"].removeprefix("<="), row["captured"][:1] != "<"),
            ):
                site = site_of(row["url"])
                address = urlsplit(row["url"])
                if site is not None and row["kind"] != "redirect":
                    query = parse_qsl(address.query, keep_blank_values=True)
                    self._files[_key(site, address.path, query)] = row["file"], row["url"]
        except (OSError, KeyError, UnicodeDecodeError) as error:
            raise ConfigurationError(
                f"--pages is {str(folder)!r}, but {index} can't be read ({error!r}); "
                "give a folder with an INDEX.tsv that has the columns file, kind, url and captured"
            ) from error

    def answer(self, site: Site, path: str, query: Mapping[str, str], host: str) -> Answer | None:
        """Return the newest page that was saved from an address, or None.

        See `Generated.answer`.
        """
        del host  # links in saved pages stay as they are
        file, url = self._files.get(_key(site, path, query.items()), ("", ""))
        if not file:
            return None
        content = (self._folder / file).read_bytes()
        address = urlsplit(url)
        home = urlsplit(SITES[site].home)
        is_page = address.netloc == home.netloc and not address.path.endswith(".json")
        if not is_page:
            return Answer(content, JSON)
        if content[:1] in {b"{", b"["}:
            name = b"__NUXT_DATA__" if content.startswith(b"[") else b"__NEXT_DATA__"
            content = b'<script id="%b" type="application/json">%b</script>' % (
                name,
                content.strip(),
            )
        return Answer(content)


def _key(site: Site, path: str, query: Iterable[tuple[str, str]]) -> _Key:
    return site, path.rstrip("/"), tuple(sorted(query))


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
