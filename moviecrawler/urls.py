"""Ids and URLs of titles on the three sites, and how to tell one from the other."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import parse_qsl, quote, unquote_to_bytes, urlencode, urlsplit, urlunsplit

from moviecrawler.errors import ConfigurationError
from moviecrawler.texts import shortened

if TYPE_CHECKING:
    from moviecrawler.items import Site, TitleKind

HOMES: dict[Site, str] = {
    "imdb": "https://www.imdb.com",
    "metacritic": "https://www.metacritic.com",
    "rottentomatoes": "https://www.rottentomatoes.com",
}
"""Scheme and host of each live site: what canonical URLs begin with, wherever a page was fetched from."""

_NAME = r"(?!\.{1,2}(?:/|$))[^/\s?#\x00-\x1f\x7f-\x9f]{1,300}"
"""A segment of a path that names a title. Not one that leads up, and nothing that a terminal would take for a command; the
longest that the sites have is half as long."""
_PART: dict[Site, str] = {
    "metacritic": rf"/(?:season-[0-9]{{1,4}}(?:-[a-z0-9-]{{1,60}})?|specials)(?:/episode-{_NAME})?",
    # A special that comes out between two episodes of a season stands inside it: `s37.2`.
    "rottentomatoes": r"/s[0-9]{1,4}(?:\.[0-9]{1,3})?(?:/e[0-9]{1,4}(?:\.[0-9]{1,3})?|(?!/e[0-9]))",
}
"""What follows a series' id in that of a season or an episode."""
_NO_PART: dict[Site, str] = {"metacritic": r"(?!/season-|/specials)", "rottentomatoes": r"(?!/s[0-9])"}
"""What can't follow it in an address of the series itself: a part that is written in a way that is not known."""
_ID_IN_PATH: dict[Site, re.Pattern[str]] = {
    "imdb": re.compile(r"^/?(?:[a-z]{2}(?:-[a-z]{2})?/)?title/(?P<id>tt[0-9]{7,10})(?:/|$)"),
    "metacritic": re.compile(
        rf"^/?(?P<id>(?:movie|game|music)/{_NAME}|tv/{_NAME}(?:{_PART['metacritic']}|{_NO_PART['metacritic']}))(?:/|$)"
    ),
    "rottentomatoes": re.compile(
        rf"^/?(?P<id>m/{_NAME}|tv/{_NAME}(?:{_PART['rottentomatoes']}|{_NO_PART['rottentomatoes']}))(?:/|$)"
    ),
}
IMDB_ID = re.compile(r"tt[0-9]{7,10}")
"""A title's id on IMDb, which other sites name, too."""
_ID: dict[Site, re.Pattern[str]] = {
    "imdb": IMDB_ID,
    "metacritic": re.compile(rf"movie/{_NAME}|tv/{_NAME}(?:{_PART['metacritic']})?"),
    "rottentomatoes": re.compile(rf"m/{_NAME}|tv/{_NAME}(?:{_PART['rottentomatoes']})?"),
}
_ID_FORM: dict[Site, str] = {
    "imdb": "tt0111161",
    "metacritic": "movie/dune-part-two",
    "rottentomatoes": "m/dune_part_two",
}


_NATIONAL_IMDB = re.compile(r"^(?:.+\.)?imdb\.(?:de|es|fr|it|pt)$")
"""IMDb's translations, until 2012."""


def site_of(url: str) -> Site | None:
    """Return which live site a URL belongs to, or None.

    >>> site_of("https://m.imdb.com/title/tt0111161/")
    'imdb'
    >>> site_of("https://example.com/title/tt0111161/") is None
    True
    """
    try:
        host = (urlsplit(url).hostname or "").removeprefix("www.")
    except ValueError:  # what is no URL at all, such as "https://[…", is nobody's
        return None
    for site, home in HOMES.items():
        domain = home.removeprefix("https://www.")
        if host == domain or host.endswith("." + domain):
            return site
    return "imdb" if _NATIONAL_IMDB.match(host) else None


def id_in_url(site: Site, url: str) -> str | None:
    """Return the id of the title that a URL (or a path) of `site` names, or None when it names none.

    >>> id_in_url("imdb", "https://www.imdb.com/title/tt0111161/fullcredits/?ref_=tt_cl")
    'tt0111161'
    >>> id_in_url("metacritic", "/tv/the-wire/season-1/critic-reviews/")
    'tv/the-wire/season-1'
    >>> id_in_url("rottentomatoes", "https://www.rottentomatoes.com/m/iron_man/")
    'm/iron_man'
    >>> id_in_url("rottentomatoes", "https://www.rottentomatoes.com/tv/the_wire/s02/e05/reviews")
    'tv/the_wire/s02/e05'
    """
    try:
        found = _ID_IN_PATH[site].match(urlsplit(url).path)
    except ValueError:
        return None
    return found["id"] if found else None


class SeriesPart(NamedTuple):
    """Where in its series a title stands, by its id."""

    series_id: str
    kind: TitleKind
    """season or episode; `other` for a special inside a season."""
    season: int
    """0 for specials."""
    episode: int | None


_PART_OF_SERIES: dict[Site, re.Pattern[str]] = {
    "metacritic": re.compile(
        r"(?P<series>tv/[^/]+)/(?:season-(?P<season>[0-9]{1,4})(?P<special>-[^/]+)?|specials)"
        r"(?P<of_episode>/episode-(?:(?P<episode>[0-9]{1,4})(?:-[^/]*)?|[^/]+))?"
    ),
    "rottentomatoes": re.compile(
        r"(?P<series>tv/[^/]+)/s(?P<season>[0-9]{1,4})(?P<special>\.[0-9]+)?"
        r"(?P<of_episode>/e(?:(?P<episode>[0-9]{1,4})|[0-9.]+))?"
    ),
}


def part_of_series(site: Site, site_id: str) -> SeriesPart | None:
    """Return which part of which series an id names; None for a whole title, and on IMDb, whose ids don't tell.

    >>> part_of_series("rottentomatoes", "tv/the_wire/s02")
    SeriesPart(series_id='tv/the_wire', kind='season', season=2, episode=None)
    >>> part_of_series("metacritic", "tv/the-wire/season-2/episode-5-undertow")
    SeriesPart(series_id='tv/the-wire', kind='episode', season=2, episode=5)
    >>> part_of_series("metacritic", "tv/the-wire/specials").season, part_of_series("imdb", "tt0111161")
    (0, None)
    >>> part_of_series("rottentomatoes", "tv/the_wire/s02.1").kind
    'other'
    """
    found = _PART_OF_SERIES[site].fullmatch(site_id) if site in _PART_OF_SERIES else None
    if found is None:
        return None
    kind: TitleKind = "episode" if found["of_episode"] else "other" if found["special"] else "season"
    episode = int(found["episode"]) if found["episode"] else None
    return SeriesPart(found["series"], kind, int(found["season"] or 0), episode)


def title_url(site: Site, site_id: str, home: str | None = None) -> str:
    """Return the canonical URL of a title; below `home` (a scheme and host) instead of the live site when given.

    >>> title_url("imdb", "tt0111161")
    'https://www.imdb.com/title/tt0111161/'
    >>> title_url("rottentomatoes", "m/iron_man", "http://127.0.0.1:8000")
    'http://127.0.0.1:8000/m/iron_man'
    """
    base = (home or HOMES[site]).rstrip("/")
    path = {"imdb": f"/title/{site_id}/", "metacritic": f"/{site_id}/", "rottentomatoes": f"/{site_id}"}[site]
    return base + path


def parse_title_id(site: Site, text: str, home: str | None = None) -> str:
    """Return the id that a person means by `text`: the id itself, or any URL of the title on its site, or below `home`.

    Raises ConfigurationError, with the text and the form expected, when it is neither. Other sites' paths look the same.

    >>> parse_title_id("metacritic", "https://www.metacritic.com/movie/dune/")
    'movie/dune'
    """
    text = text.strip()
    candidate: str | None = text.strip("/")
    if "://" in text:
        candidate = id_in_url(site, text) if site_of(text) == site or _is_below(home, text) else None
    if candidate is None or not _ID[site].fullmatch(candidate):
        raise ConfigurationError(
            f"{shortened(repr(text), 200)} is not a title of {site}; give an id such as {_ID_FORM[site]}, or its URL"
        )
    return candidate


def _is_below(home: str | None, url: str) -> bool:
    try:
        return home is not None and urlsplit(url).netloc.lower() == urlsplit(home).netloc.lower()
    except ValueError:
        return False


_TRACKING = re.compile(
    r"^(?:utm_\w+|_g[al]|g(?:cl|bra)id|gclsrc|wbraid|dclid|fbclid|msclkid|ttclid|twclid|yclid|igsh(?:id)?|mc_[ce]id|mkt_tok"
    r"|_hs(?:enc|mi)|srsltid|cmp(?:id)?)$",
    re.IGNORECASE,
)
"""Query parameters that say where a visitor came from, whatever the site."""
_SITE_TRACKING: dict[Site, re.Pattern[str]] = {
    "imdb": re.compile(r"^(?:ref_?|pf_rd_\w+|pd_rd_\w+)$"),
    "metacritic": re.compile(r"^(?:ref|ftag)$"),
    "rottentomatoes": re.compile(r"^ref$"),
}
_SAME_HOST = {
    # A mobile browser is redirected to it; the pages are the same.
    "m.imdb.com": "www.imdb.com",
    **{home.removeprefix("https://www."): home.removeprefix("https://") for home in HOMES.values()},
}
_DEFAULT_PORTS = {"http": 80, "https": 443}
_IN_PATH = ":@!$&'()*+,;=~"
"""What a segment of a path may hold unescaped."""


def normalised(url: str, site: Site | None = None) -> str:
    """Return the form of a URL that all URLs of one page share; it is for comparing, not for asking the site.

    `site` is that of the URL when it can't be told from its host, as with a replica. Raises ValueError for what is no URL.

    Host in lower case, without a default port; the mobile host is the site's:

    >>> normalised("HTTPS://WWW.IMDb.com:443/title/tt0111161")
    'https://www.imdb.com/title/tt0111161'
    >>> normalised("https://m.imdb.com/title/tt0111161")
    'https://www.imdb.com/title/tt0111161'
    >>> normalised("http://127.0.0.1:8000/title/tt0111161")
    'http://127.0.0.1:8000/title/tt0111161'

    No fragment, no slash at the end, no parameter that only says where a visitor came from, on any site or on this one:

    >>> normalised("https://www.imdb.com/title/tt0111161/?ref_=chttp_t_1&pf_rd_m=A2#cast")
    'https://www.imdb.com/title/tt0111161'
    >>> normalised("https://www.metacritic.com/browse/movie/?page=2&utm_source=x&fbclid=y&gclid=z")
    'https://www.metacritic.com/browse/movie?page=2'
    >>> normalised("http://127.0.0.1:8000/title/tt0111161/?ref_=x", "imdb")
    'http://127.0.0.1:8000/title/tt0111161'

    The query in alphabetical order; each character escaped in one way, and one that means something else unescaped stays so:

    >>> normalised("https://www.metacritic.com/browse/movie?page=2&genre=drama")
    'https://www.metacritic.com/browse/movie?genre=drama&page=2'
    >>> normalised("https://www.rottentomatoes.com/m/am%c3%a9lie")
    'https://www.rottentomatoes.com/m/am%C3%A9lie'
    >>> normalised("https://www.rottentomatoes.com/m/am\u00e9lie")
    'https://www.rottentomatoes.com/m/am%C3%A9lie'
    >>> normalised("https://www.rottentomatoes.com/m/%61%2fb")
    'https://www.rottentomatoes.com/m/a%2Fb'
    """
    parts = urlsplit(url)
    scheme, host, port = parts.scheme, (parts.hostname or "").lower(), parts.port
    if not scheme or not host:
        raise ValueError(f"{url!r} is no URL with a scheme and a host")
    site = site or site_of(url)
    host = f"[{host}]" if ":" in host else _SAME_HOST.get(host, host)
    if port not in {None, _DEFAULT_PORTS.get(scheme)}:
        host += f":{port}"
    # One by one, as an escaped slash is no slash; and as bytes, as not all that is escaped is UTF-8.
    path = "/".join(quote(unquote_to_bytes(segment), safe=_IN_PATH) for segment in parts.path.split("/")).rstrip("/")
    own = _SITE_TRACKING[site] if site else None
    query = sorted(
        (name, value)
        for name, value in parse_qsl(parts.query, keep_blank_values=True, errors="surrogateescape")
        if not _TRACKING.match(name) and not (own and own.match(name))
    )
    return urlunsplit((scheme, host, path, urlencode(query, errors="surrogateescape"), ""))
