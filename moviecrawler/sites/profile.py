"""The form of a site's profile: all that is known of a site, except its readers.

A profile is imported whenever the program starts, and readers only when a page is read. Therefore
the module of a profile imports nothing but this one.
"""

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from types import ModuleType
from typing import Literal, NamedTuple
from urllib.parse import urlsplit

from moviecrawler.basics.errors import ConfigurationError, ExtractionError
from moviecrawler.items import Page, ScoreKind, Site, TitleKind

NAME = r"(?!\.{1,2}(?:/|$))[^/\s?#\x00-\x1f\x7f-\x9f]{1,300}"
"""A pattern of a segment of a path that names a title, such as `the_wire`. It is not one that leads
up, and nothing that a terminal would take for a command; the longest that the sites have is half as
long."""
_SQL_NAME = re.compile("[a-z][a-z0-9_]{0,39}")
USUAL_FIELDS = frozenset(
    {
        "year",
        "release_date",
        "runtime_minutes",
        "genres",
        "certificate",
        "plot",
        "poster_url",
        "credits.director",
        "credits.writer",
        "credits.cast",
    }
)
"""The fields that title pages of every site are known to have."""


class Host(NamedTuple):
    """One of a site's hosts."""

    setting: str
    """The setting that replaces it, such as IMDB_URL."""
    live: str
    """Scheme and host."""
    description: str
    """A description of the setting."""
    has_files: bool = False
    """Whether it has large files, and no pages: it is asked without proxies, and outside of the
    site's budget."""


class Spelling(NamedTuple):
    """Another form of an id that the site understands, or that people write."""

    pattern: str
    """A regular expression of what is replaced."""
    replacement: str
    """The site's own form, as in `re.sub`."""


class SeriesIds(NamedTuple):
    """The form of the ids of seasons and episodes, which begin with that of their series."""

    series: str
    """A regular expression of a series' id."""
    part: str
    """A regular expression of what follows a series' id. Its groups are `season`, and where a site
    has such pages `special` (of what is not a season), `of_episode` and `episode`."""
    spellings: tuple[Spelling, ...] = ()
    """Applied to what follows a series' id, in lower case."""


class Ids(NamedTuple):
    """The form of a site's ids."""

    pattern: str
    """A regular expression of the id of a title without parts."""
    example: str
    path_prefix: str = ""
    """A regular expression of what may be before the id in the path of a page about a title."""
    spellings: tuple[Spelling, ...] = ()
    series: SeriesIds | None = None
    """None where the ids of series, seasons and episodes are of the same form as those of other
    titles."""


class ScoreProfile(NamedTuple):
    """One kind of score."""

    name: str
    """As its site calls it."""
    audience: Literal["critics", "users"]
    lowest: int
    scale: int
    """The highest value."""
    facts: tuple[str, ...]
    """What its site publishes beside the value: fields of `Score` such as `count` or `average`."""
    heading: str = ""
    """The heading of its column in a table; empty means its name."""
    short_heading: str = ""
    """The heading in a narrow table; empty means that of a wide one."""
    average_scale: int | None = None
    """The highest `Score.average`; None for a score without one."""
    columns: tuple[str, str] | None = None
    """The columns of its value and of its count where titles are rows, unlike those of every other
    score of any site; None for a finer score."""
    form: str = "g"
    """The format of a value in a table, such as `.1f`."""
    unit: str = ""
    rates_seasons: bool = True
    """Whether its site rates seasons; otherwise a season has the average of its episodes."""


class PageForm(NamedTuple):
    """A kind of pages that can be read."""

    path: str
    """A regular expression of the whole path of their addresses."""
    reader: str
    """The name of a function in the module `pages` of the site's package, which takes the body of a
    page. That of titles is `title`; the others read lists."""
    expects: Literal["page", "json"] = "page"
    """What the site answers; anything else is a refusal."""


class TitleList(NamedTuple):
    """A list of titles."""

    path: str
    """Path of its first page."""
    kind: TitleKind = "movie"
    """What it lists above all."""
    rows: int | None = None
    """How many rows a page has, where the pages are requested by their first row, and each says how
    many rows there are; None where each page names the next one."""
    is_trending: bool = False
    """Whether it is of what is popular today: what is due on it is fetched first."""


class Sitemap(NamedTuple):
    """One of a site's lists that are in sitemaps."""

    path: str
    """Path of the index."""
    kind: TitleKind
    """What it lists."""
    parts: str = ""
    """The beginning of the file names of the index's parts that list such titles."""


@dataclass(frozen=True, kw_only=True)
class SiteProfile:
    """What is known of a site."""

    id: Site
    """Its name in arguments, tables and stats, and that of its spider."""
    package: str
    """The package of the site, with its readers in the module `pages` and the replica's pages of it
    in the module `replica`."""
    spiders: str = "moviecrawler.spiders"
    """The module or package with its spider."""
    name: str
    """As people write it."""
    hosts: tuple[Host, ...]
    """The host of its pages first."""
    domains: tuple[str, ...]
    """The endings of its hosts, each with a dot before it, such as `.imdb.com`."""
    aliases: tuple[str, ...] = ()
    """Hosts with the same pages as the first of `hosts`."""
    title_path: str
    """The path of a title's page, with {} for the id."""
    ids: Ids
    per_second: float = 0.5
    """Requests that all nodes together make at most."""
    per_day: int
    authority: int
    """Its place when the title and year of a title count that the sites state differently: those of
    the lowest number count."""
    wikidata: str | None = None
    """Wikidata's property for its ids."""
    lists: Mapping[str, TitleList]
    """Its lists by the names that `list=` takes; the first is its main list."""
    list_names: str | None = None
    """A regular expression of the names of further lists."""
    sitemaps: Mapping[str, Sitemap] = field(default_factory=dict)
    """By the names of the lists: `sitemap` has the movies."""
    pages: tuple[PageForm, ...]
    published: frozenset[str]
    """The fields that its pages have for all kinds of titles, such as `genres` or `scores.imdb`."""
    published_of_kind: Mapping[TitleKind, Collection[str]] = field(default_factory=dict)
    """The fields that its pages have for one kind of titles only."""
    optional_fields: Collection[str] = ()
    """Pages omit these when empty, or other pages have them, so a missing one is no sign of a
    changed layout."""
    scores: Mapping[ScoreKind, ScoreProfile]
    """The kinds of scores that are its own, in the order in which they are shown. Another site may
    show them, too."""

    def __post_init__(self) -> None:
        """Raise ConfigurationError for a domain without a dot, and a name that can't be in SQL."""
        for domain in self.domains:
            if not domain.startswith("."):
                raise ConfigurationError(
                    f"domains of {self.id} has {domain!r}; write a dot before it, as .{domain}"
                )
        columns = [name for score in self.scores.values() for name in score.columns or ()]
        for name in (self.id, *self.scores, *columns):
            if not _SQL_NAME.fullmatch(name):
                raise ConfigurationError(
                    f"{name!r} can't be the name of a site, a score or a column; use up to 40 "
                    "small letters, digits and underscores, a letter first"
                )

    @property
    def home_setting(self) -> str:
        """The setting with scheme and host of its pages."""
        return self.hosts[0].setting

    @property
    def home(self) -> str:
        """Scheme and host of its live pages.

        Canonical URLs begin with it, wherever a page was fetched from.
        """
        return self.hosts[0].live

    @property
    def default_list(self) -> str:
        """The list that is crawled when the arguments name no title and no list."""
        return next(iter(self.lists))

    @property
    def trending(self) -> frozenset[str]:
        """The names of its lists of what is popular today."""
        return frozenset(name for name, titles in self.lists.items() if titles.is_trending)

    def has_host(self, host: str) -> bool:
        """Return whether a host, in lower case, is one of the live site's, or once was."""
        return f".{host}".endswith(self.domains)

    def is_live(self, home: str) -> bool:
        """Return whether a scheme and host is the live site's, and no replica's."""
        return self.has_host(urlsplit(home).hostname or "")

    def module(self, name: str) -> ModuleType:
        """Return a module of the site's package, imported now."""
        return import_module(f"{self.package}.{name}")

    def form_of(self, url: str) -> PageForm | None:
        """Return the kind of the page with this address; None when it is not known."""
        path = urlsplit(url).path
        return next((form for form in self.pages if re.fullmatch(form.path, path)), None)

    def list_form(self, url: str) -> PageForm:
        """Return the kind of a list's page. Raises ExtractionError for another address."""
        form = self.form_of(url)
        if form is None or form.reader == "title":
            raise ExtractionError("page", url, f"it is not a page of a list of {self.name}'s")
        return form

    def check_readers(self) -> None:
        """Raise ConfigurationError when its readers can't be imported: each page would be lost."""
        try:
            self.module("pages")
        except Exception as error:
            raise ConfigurationError(
                f"{self.package}.pages can't be imported ({type(error).__name__}: {error}); "
                f"mend it, or uninstall {self.package}"
            ) from error

    def reader(self, name: str) -> Callable[[bytes, str | None], Page]:
        """Return one of the functions that read its pages.

        It takes the body and the URL of a page, and raises no other error than ExtractionError.
        """
        from moviecrawler.extract.embedded import reader  # noqa: PLC0415 - as all of readers

        return reader(getattr(self.module("pages"), name))
