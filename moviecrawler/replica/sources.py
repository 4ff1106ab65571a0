"""Answers requests under the sites' own paths."""

import functools
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import msgspec
from jinja2 import ChoiceLoader, Environment, PackageLoader, PrefixLoader, StrictUndefined
from markupsafe import Markup as HtmlText

from moviecrawler.basics.files import read_package_file
from moviecrawler.items import Site
from moviecrawler.replica.collection import Collection
from moviecrawler.replica.datasets import FILES, Dataset
from moviecrawler.sites import ID_SITE, SITES
from moviecrawler.sites.ids import title_url
from moviecrawler.sites.profile import Sitemap
from moviecrawler.sites.replicas import WORDS, Markup, Refusal, SeededRandom, replica_of


class _Markup(msgspec.Struct):
    fillers: dict[str, str]
    refusals: dict[str, Refusal]


_MARKUP = msgspec.convert(
    tomllib.loads(read_package_file("moviecrawler.replica", "markup.toml")), _Markup
)
REFUSALS = _MARKUP.refusals
"""By status or by fault."""


@functools.cache
def _filler(form: str, size: int, *, light: bool) -> HtmlText:
    """Return a part of about `size` bytes that has nothing about titles.

    It makes a page as large as the sites' own.
    """
    dice = SeededRandom(form, size)
    pieces = list[str]()
    written = 0
    while written < (1_000 if light else size):
        words = dice.choices(WORDS["filler"], k=12)
        fields = {
            "hash": f"{dice.getrandbits(32):08x}",
            "number": dice.below(24),
            "text": " ".join(words[4:]),
        }
        pieces.append(_MARKUP.fillers[form].format(*words, **fields))
        written += len(pieces[-1])
    return HtmlText("".join(pieces))  # noqa: S704 - made of our own words


_TEMPLATES = Environment(
    loader=ChoiceLoader(
        [
            PackageLoader("moviecrawler.replica", "."),
            # Those of a site are in its folder, such as `imdb/replica.html`.
            PrefixLoader(
                {site: PackageLoader(profile.package, ".") for site, profile in SITES.items()}
            ),
        ]
    ),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
)
# As the sites do it.
_TEMPLATES.filters["json"] = lambda data: HtmlText(msgspec.json.encode(data).decode())  # noqa: S704
# Templates lay JSON out for their readers, sites send it without spaces.
_TEMPLATES.filters["compact"] = lambda text: HtmlText(  # noqa: S704
    msgspec.json.encode(msgspec.json.decode(str(text))).decode()
)
# What has no value is left out of schema.org's data.
_TEMPLATES.filters["known"] = lambda data: {
    key: value for key, value in data.items() if value is not None
}


def render(site: Site, page: Markup, *, light: bool) -> bytes:
    """Return the page that a template of a site's folder makes.

    `light`: with little more than its data, but above the 2 kB below which a page passes for a
    throttle.
    """
    return (
        _TEMPLATES.get_template(f"{site}/{page.template}")
        .render(page.variables, filler=partial(_filler, light=light))
        .encode()
    )


HTML = "text/html; charset=utf-8"
JSON = "application/json"
SITEMAP_PART = 5_000
"""Titles in one part of a sitemap."""


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
        """Return the answer to a GET request, or None without such a page.

        `query`: the parameters; `host`: the scheme and host that were asked. Raises ValueError for
        a parameter that can't be read.
        """
        plain = path.strip("/")
        folder, _, file = plain.rpartition("/")
        if site == ID_SITE and folder == "datasets":
            return (
                Dataset(self._collection, self._folder, file)
                if self._folder and file in FILES
                else None
            )
        indexes, parts = self._sitemaps(site)
        if path in indexes:
            return _xml("sitemapindex", "sitemap", [f"{host}{part}" for part in indexes[path]])
        if path in parts:
            return _xml("urlset", "url", [title_url(site, one, host) for one in parts[path]])
        page = replica_of(site).list_page(self._collection, plain, query, host)
        if page is not None:
            return self._rendered(site, page)
        return self._title(site, path)

    def _rendered(self, site: Site, page: Markup) -> Answer:
        content_type = JSON if page.template.endswith(".json") else HTML
        return Answer(render(site, page, light=self._light), content_type)

    def _title(self, site: Site, path: str) -> Answer | None:
        before_id = SITES[site].title_path.partition("{}")[0].lstrip("/")
        found = self._collection.find(site, path.strip("/").removeprefix(before_id))
        if found is None:
            return None
        title, movie = found
        canonical = urlsplit(str(movie.url)).path
        if path != canonical:
            return Answer(b"", status=replica_of(site).MOVED, headers={"Location": canonical})
        return self._rendered(site, replica_of(site).title_page(title, movie))

    @functools.cache  # noqa: B019 - as many as there are sites
    def _sitemaps(self, site: Site) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
        """Return the parts of each index of a site's sitemaps, and the ids in each part.

        Both are by path. A site may have series and their seasons in one.
        """
        indexes: dict[str, list[str]] = {}
        kinds: dict[tuple[str, str], set[str]] = {}
        for sitemap in SITES[site].sitemaps.values():
            indexes[sitemap.path] = []
            beginning = _beginning_of_parts(sitemap)
            kinds.setdefault((sitemap.path, beginning), set()).add(sitemap.kind)
        parts = {}
        for (index_path, beginning), listed in kinds.items():
            ids = []
            titles = self._collection if "movie" in listed else self._collection.series
            for index, site_id in titles.ids[site].items():
                ids += [site_id] if listed & {"movie", "series"} else []
                if "season" in listed:
                    ids += [str(season.site_id) for season in titles.title(index).listed[site]]
            for start in range(0, len(ids), SITEMAP_PART):
                path = f"{beginning}{start // SITEMAP_PART}.xml"
                indexes[index_path].append(path)
                parts[path] = ids[start : start + SITEMAP_PART]
        return indexes, parts


def _beginning_of_parts(sitemap: Sitemap) -> str:
    """Return what the paths of a sitemap's parts begin with, such as `/sitemaps/movie_`."""
    if not sitemap.parts:
        return sitemap.path.removesuffix(".xml") + "/"
    return f"{sitemap.path.rpartition('/')[0]}/{sitemap.parts}"


def _xml(root: str, element: str, locations: list[str]) -> Answer:
    """Return an index of sitemaps, or one of them."""
    template = _TEMPLATES.get_template("sitemap.xml")
    text = template.render(root=root, element=element, locations=locations)
    return Answer(text.encode(), "application/xml")
