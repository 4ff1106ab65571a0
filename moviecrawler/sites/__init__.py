"""The sites: name, hosts, addresses and ids of titles, how often each is asked, and its scores.

All other parts take this from here. README.md says what else another site needs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

from moviecrawler.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from moviecrawler.items import ScoreKind, Site

NAME = r"(?!\.{1,2}(?:/|$))[^/\s?#\x00-\x1f\x7f-\x9f]{1,300}"
"""A segment of a path that names a title. Not one that leads up, and nothing that a terminal would
take for a command; the longest that the sites have is half as long."""


class Host(NamedTuple):
    """One of a site's hosts."""

    setting: str
    """The setting that replaces it."""
    live: str
    """Scheme and host."""
    has_files: bool = False
    """Whether it has large files, and no pages: it is asked without proxies, and outside of the
    site's budget."""


class Parts(NamedTuple):
    """How the ids of seasons and episodes are written, which begin with that of their series.

    Regular expressions.
    """

    series: str
    part: str
    """What follows a series' id. Its groups are `season`, `special` (of what is no season),
    `of_episode` and `episode`."""
    spellings: tuple[tuple[str, str], ...]
    """What the site understands as well after a series' id, in lower case, and how it writes that
    itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteProfile:
    """What is known of a site. `id`, `before_id` and what `Parts` has are regular expressions."""

    name: str
    """As people write it."""
    hosts: tuple[Host, ...]
    """That of its pages first."""
    domains: tuple[str, ...]
    """With a dot before them, hosts of the site end so."""
    aliases: tuple[str, ...]
    """Hosts with the same pages as the first of `hosts`."""
    title_path: str
    """The path of a title's page, with {} for the id."""
    before_id: str = ""
    """What may be before the id in the path of a page that is about a title."""
    id: str
    """The form of the id of a title without parts."""
    spellings: tuple[tuple[str, str], ...] = ()
    """Other forms in which people write such an id, and the site's own."""
    parts: Parts | None = None
    """None where the ids of series, seasons and episodes are of the same form as those of other
    titles."""
    example: str
    """An id."""
    per_second: float = 0.5
    """Requests that all nodes together make at most."""
    per_day: int
    trending: frozenset[str]
    """Its lists of what is popular today."""
    wikidata: str
    """Wikidata's property for its ids."""

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

    def has_host(self, host: str) -> bool:
        """Return whether a host, in lower case, is one of the live site's, or once was."""
        return f".{host}".endswith(self.domains)

    def is_live(self, home: str) -> bool:
        """Return whether a scheme and host is the live site's, and no replica's."""
        return self.has_host(urlsplit(home).hostname or "")


SITES: dict[Site, SiteProfile] = {
    "imdb": SiteProfile(
        name="IMDb",
        hosts=(
            Host("IMDB_URL", "https://www.imdb.com"),
            Host("IMDB_DATASETS_URL", "https://datasets.imdbws.com", has_files=True),
        ),
        domains=(".imdb.com",),
        aliases=("imdb.com", "m.imdb.com"),
        title_path="/title/{}/",
        before_id=r"(?:[a-z]{2}(?:-[a-z]{2})?/)?title/",
        id="tt[0-9]{7,10}",
        # IMDb fills its numbers up to seven digits: tt00900001 is tt0900001.
        spellings=(("^tt0+(?=[0-9]{7})", "tt"),),
        example="tt0111161",
        per_day=30_000,
        trending=frozenset({"popular", "boxoffice", "populartv"}),
        wikidata="P345",
    ),
    "metacritic": SiteProfile(
        name="Metacritic",
        hosts=(
            Host("METACRITIC_URL", "https://www.metacritic.com"),
            Host("METACRITIC_API_URL", "https://backend.metacritic.com"),
        ),
        domains=(".metacritic.com",),
        aliases=("metacritic.com",),
        title_path="/{}/",
        id=f"movie/{NAME}",
        parts=Parts(
            series=f"tv/{NAME}",
            part=r"(?i:/(?:season-(?P<season>[0-9]{1,4})(?P<special>-[a-z0-9-]{1,60})?|specials)"
            rf"(?P<of_episode>/episode-(?:(?=(?P<episode>[0-9]{{1,4}})(?:[-/]|$))|){NAME})?)",
            spellings=((r"^/season-0+(?=/|$)", "/specials"), (r"^/season-0+(?=[1-9])", "/season-")),
        ),
        example="movie/dune-part-two",
        per_second=0.2,
        per_day=600,
        trending=frozenset({"popular", "new", "tv-popular", "tv-new"}),
        wikidata="P1712",
    ),
    "rottentomatoes": SiteProfile(
        name="Rotten Tomatoes",
        hosts=(Host("ROTTENTOMATOES_URL", "https://www.rottentomatoes.com"),),
        domains=(".rottentomatoes.com",),
        aliases=("rottentomatoes.com",),
        title_path="/{}",
        id=f"m/{NAME}",
        parts=Parts(
            series=f"tv/{NAME}",
            # A special between two episodes of a season has a number inside the season's: `s37.2`.
            part=r"(?i:/s(?P<season>[0-9]{1,4})(?P<special>\.[0-9]{1,3})?"
            r"(?:(?P<of_episode>/e(?:(?P<episode>[0-9]{1,4})(?![0-9.])|[0-9]{1,4}\.[0-9]{1,3}))"
            r"|(?!/e[0-9])))",
            spellings=(
                (r"(/[se])([0-9])(?=[./]|$)", r"\g<1>0\2"),
                (r"(/[se])0+(?=[0-9]{2})", r"\1"),
            ),
        ),
        example="m/dune_part_two",
        per_day=5_000,
        trending=frozenset(
            {"movies_in_theaters", "movies_at_home/sort:popular", "tv_series_browse/sort:popular"}
        ),
        wikidata="P1258",
    ),
}
"""Every site, in the order in which they are shown."""

BY_AUTHORITY: tuple[Site, ...] = ("imdb", "rottentomatoes", "metacritic")
"""Whose title and year count, where the sites differ. The database's functions have the same
order."""


class ScoreForm(NamedTuple):
    """What one kind of score looks like."""

    site: Site
    """Whose score it is. Another site may show it, too."""
    name: str
    """As its site calls it."""
    lowest: int
    scale: int
    """The highest value."""
    average_scale: int | None
    """The highest `Score.average`; None for a score without one."""
    columns: tuple[str, str] | None
    """The columns of its value and of its count where titles are rows; None for a finer score."""
    facts: tuple[str, ...]
    """What its site publishes beside the value: fields of `Score`."""


_OPINIONS = ("liked", "neutral", "disliked", "sentiment")
_CRITICS = ("count", "average", "liked", "disliked", "certified", "sentiment")
_AUDIENCE = (*_CRITICS, "reviews")

SCORES: dict[ScoreKind, ScoreForm] = {
    "imdb": ScoreForm(
        site="imdb",
        name="IMDb rating",
        lowest=1,
        scale=10,
        average_scale=None,
        columns=("imdb_rating", "imdb_votes"),
        facts=("count", "reviews", "histogram"),
    ),
    "metascore": ScoreForm(
        site="metacritic",
        name="Metascore",
        lowest=0,
        scale=100,
        average_scale=100,
        columns=("metascore", "metascore_reviews"),
        facts=("count", "average", *_OPINIONS),  # Metacritic marks only what is a must-see
    ),
    "metacritic_user": ScoreForm(
        site="metacritic",
        name="Metacritic users",
        lowest=0,
        scale=10,
        average_scale=None,
        columns=("metacritic_user_score", "metacritic_user_ratings"),
        facts=("count", *_OPINIONS),
    ),
    "tomatometer": ScoreForm(
        site="rottentomatoes",
        name="Tomatometer",
        lowest=0,
        scale=100,
        average_scale=10,
        columns=("tomatometer", "tomatometer_reviews"),
        facts=_CRITICS,
    ),
    "popcornmeter": ScoreForm(
        site="rottentomatoes",
        name="Popcornmeter",
        lowest=0,
        scale=100,
        average_scale=5,
        columns=("popcornmeter", "popcornmeter_ratings"),
        facts=_AUDIENCE,
    ),
    "tomatometer_top": ScoreForm(
        site="rottentomatoes",
        name="Tomatometer, top critics",
        lowest=0,
        scale=100,
        average_scale=10,
        columns=None,
        facts=_CRITICS,
    ),
    "popcornmeter_all": ScoreForm(
        site="rottentomatoes",
        name="Popcornmeter, all",
        lowest=0,
        scale=100,
        average_scale=5,
        columns=None,
        facts=_AUDIENCE,
    ),
    "popcornmeter_verified": ScoreForm(
        site="rottentomatoes",
        name="Popcornmeter, verified",
        lowest=0,
        scale=100,
        average_scale=5,
        columns=None,
        facts=_AUDIENCE,
    ),
}
"""Every score, in the order in which they are shown."""

SCOREBOARD_KINDS: tuple[ScoreKind, ...] = tuple(
    kind for kind, form in SCORES.items() if form.columns
)
"""The scores that each site shows as its own; the other kinds are finer ones."""


def hosts_of(site: Site, settings: Mapping[str, Any]) -> dict[str, str]:
    """Return the scheme and host of each setting that names one of a site's hosts.

    That of its pages is first. An empty setting means the live host beside the live pages. Beside a
    replica it means none: a crawl of a replica asks a live host only where a setting names it.
    """
    profile = SITES[site]
    home = settings[profile.home_setting].rstrip("/")
    hosts = {profile.home_setting: home}
    for host in profile.hosts[1:]:
        if url := settings.get(host.setting) or (host.live if profile.is_live(home) else ""):
            hosts[host.setting] = url.rstrip("/")
    return hosts


def page_hosts_of(site: Site, settings: Mapping[str, Any]) -> dict[str, str]:
    """Return those of `hosts_of` that have pages: what budgets and proxies are for."""
    files = {host.setting for host in SITES[site].hosts if host.has_files}
    return {
        setting: url for setting, url in hosts_of(site, settings).items() if setting not in files
    }


def datasets_url(settings: Mapping[str, Any]) -> str:
    """Return scheme and host of IMDb's datasets.

    Raises ConfigurationError when there is none beside a replica of the pages.
    """
    url = hosts_of("imdb", settings).get("IMDB_DATASETS_URL")
    if url is None:
        live = SITES["imdb"].hosts[1].live
        raise ConfigurationError(
            f"IMDB_DATASETS_URL is not set, and IMDB_URL is {settings['IMDB_URL']!r}, "
            f"no host of IMDb's; set it to where the datasets are, which may be {live}"
        )
    return url


def user_agent(settings: Mapping[str, Any]) -> str:
    """Return USER_AGENT, with CONTACT where there is one."""
    contact = f" (+{settings['CONTACT']})" if settings["CONTACT"] else ""
    return f"{settings['USER_AGENT']}{contact}"
