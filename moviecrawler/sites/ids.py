"""Converts between ids and URLs of titles."""

import re
from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from moviecrawler.basics.errors import ConfigurationError
from moviecrawler.basics.texts import shown
from moviecrawler.items import Site, TitleKind
from moviecrawler.sites import BY_AUTHORITY, ID_SITE, SITES
from moviecrawler.sites.profile import SeriesIds, Spelling

_UNKNOWN_PART = "/(?i:season[-_0-9]|s[0-9]|specials)"
"""Rejects season URLs in an unknown spelling, such as /season-one, so that they are not taken for
the series."""
_SEASON_IN_QUERY = re.compile("(?:^|&)season=([^&]*)")


def _series(parts: SeriesIds | None, otherwise: str) -> str:
    """Return the pattern of the ids of series and of their parts.

    `otherwise` is what may follow a series' id instead of a part.
    """
    return rf"|{parts.series}(?:(?P<part>{parts.part})|{otherwise})" if parts else ""


_ID = {
    site: re.compile(rf"(?P<id>{profile.ids.pattern}{_series(profile.ids.series, '')})")
    for site, profile in SITES.items()
}
_ID_IN_PATH = {
    site: re.compile(
        rf"^/?{profile.ids.path_prefix}(?P<id>{profile.ids.pattern}"
        rf"{_series(profile.ids.series, f'(?!{_UNKNOWN_PART})')})"
        r"(?:/|$)"
    )
    for site, profile in SITES.items()
}
_PART_OF_SERIES = {
    site: re.compile(f"(?P<series>{parts.series}){parts.part}")
    for site, profile in SITES.items()
    if (parts := profile.ids.series)
}


def check_site(name: str) -> None:
    """Raise ValueError for a name that is not that of a site."""
    if name not in SITES:
        raise ValueError(f"{name!r} is not a site; there are {', '.join(SITES)}")


def site_of(url: str) -> Site | None:
    """Return which live site a URL belongs to, or None.

    >>> site_of("https://m.imdb.com/title/tt0111161/")
    'imdb'
    >>> site_of("https://example.com/title/tt0111161/") is None
    True
    """
    try:
        host = urlsplit(url).hostname or ""
    except ValueError:  # what is no URL at all, such as "https://[…", is nobody's
        return None
    return next((site for site, profile in SITES.items() if profile.has_host(host)), None)


def id_in_url(site: Site, url: str | None) -> str | None:
    """Return the id of the title that a URL (or a path) of `site` names; None when it has none.

    >>> id_in_url("imdb", "https://www.imdb.com/title/tt0111161/fullcredits/?ref_=tt_cl")
    'tt0111161'
    >>> id_in_url("metacritic", "/tv/the-wire/season-1/critic-reviews/")
    'tv/the-wire/season-1'
    >>> id_in_url("rottentomatoes", "https://www.rottentomatoes.com/m/iron_man/")
    'm/iron_man'
    >>> id_in_url("rottentomatoes", "https://www.rottentomatoes.com/tv/the_wire/s02/e05/reviews")
    'tv/the_wire/s02/e05'

    One season has one id, in whatever way that the site understands its address is written. The
    address of a season that can't be understood does not name the series:

    >>> id_in_url("rottentomatoes", "/tv/the_wire/S2/E5")
    'tv/the_wire/s02/e05'
    >>> id_in_url("metacritic", "/tv/the-wire/season-0/")
    'tv/the-wire/specials'
    >>> id_in_url("metacritic", "/tv/the-wire/critic-reviews/?season=season-2")
    'tv/the-wire/season-2'
    >>> id_in_url("imdb", "/title/tt0306414/episodes/?season=4") is None
    True
    """
    try:
        address = urlsplit(url or "")
    except ValueError:
        return None
    match = _ID_IN_PATH[site].match(address.path)
    season = _SEASON_IN_QUERY.search(address.query)
    if match is not None and season is not None and not _part_in(match):
        match = _ID[site].fullmatch(f"{match['id']}/{season[1]}")
        if match is not None and not _part_in(match):
            return None
    return None if match is None else _canonical_id(site, match)


def _part_in(match: re.Match[str]) -> str:
    """Return what follows the series' id in an id; "" when that is of a whole title."""
    return match.groupdict().get("part") or ""


def _canonical_id(site: Site, match: re.Match[str]) -> str:
    """Return an id as the site writes it."""
    ids = SITES[site].ids
    part = _part_in(match)
    whole = _as_written(match["id"].removesuffix(part), ids.spellings)
    if ids.series is None or not part:
        return whole
    return whole + _as_written(part.lower(), ids.series.spellings)


def _as_written(text: str, spellings: Iterable[Spelling]) -> str:
    for spelling in spellings:
        text = re.sub(spelling.pattern, spelling.replacement, text)
    return text


def imdb_id_of(text: str) -> str | None:
    """Return the id that a text is, as IMDb writes it; None when it is not an id of IMDb.

    >>> imdb_id_of("tt00111161")
    'tt0111161'
    """
    match = _ID[ID_SITE].fullmatch(text)
    return None if match is None else _canonical_id(ID_SITE, match)


def is_same_id(one: str, other: str) -> bool:
    """Return whether two ids of a site are one id in two spellings.

    >>> is_same_id("m/iron_man", "m/Iron-Man")
    True
    """
    return _plain(one) == _plain(other)


def _plain(site_id: str) -> str:
    return unquote(site_id).lower().replace("_", "-").strip("/")


def current_id(site_id: str, aliases: Mapping[str, str]) -> str:
    """Return the id to which the aliases of a site lead; the id itself where it is none of them.

    >>> current_id("m/a", {"m/a": "m/b", "m/b": "m/c"})
    'm/c'
    >>> current_id("m/a", {"m/a": "m/b", "m/b": "m/a"})
    'm/a'
    """
    passed = {site_id}
    current = site_id
    while (following := aliases.get(current)) is not None:
        if following in passed:
            return site_id
        passed.add(following)
        current = following
    return current


class SeriesPart(NamedTuple):
    """The position of a title in its series, by its id."""

    series_id: str
    kind: TitleKind
    """season or episode; `other` for a special inside a season."""
    season: int
    """0 for specials."""
    episode: int | None


def part_of_series(site: Site, site_id: str) -> SeriesPart | None:
    """Return which part of which series an id names; None for a whole title.

    It is None also where a site's ids don't say it, as on IMDb.

    >>> part_of_series("rottentomatoes", "tv/the_wire/s02")
    SeriesPart(series_id='tv/the_wire', kind='season', season=2, episode=None)
    >>> part_of_series("metacritic", "tv/the-wire/season-2/episode-5-undertow")
    SeriesPart(series_id='tv/the-wire', kind='episode', season=2, episode=5)
    >>> part_of_series("metacritic", "tv/the-wire/specials").season
    0
    >>> part_of_series("imdb", "tt0111161") is None
    True
    >>> part_of_series("rottentomatoes", "tv/the_wire/s02.1").kind
    'other'
    """
    match = _PART_OF_SERIES[site].fullmatch(site_id) if site in _PART_OF_SERIES else None
    if match is None:
        return None
    groups = {name: text for name, text in match.groupdict().items() if text}
    kind: TitleKind = "other" if "special" in groups else "season"
    if "of_episode" in groups:
        kind = "episode"
    episode = int(groups["episode"]) if "episode" in groups else None
    return SeriesPart(groups["series"], kind, int(groups.get("season", 0)), episode)


def kind_of_id(site: Site, site_id: str) -> TitleKind | None:
    """Return what an id names by its form; None when it is not an id of the site.

    It is a film, unless the id is of the form of series or of their parts.

    >>> kind_of_id("rottentomatoes", "tv/the_wire"), kind_of_id("metacritic", "movie/dune")
    ('series', 'movie')
    """
    if part := part_of_series(site, site_id):
        return part.kind
    ids = SITES[site].ids
    if ids.series and re.fullmatch(ids.series.series, site_id):
        return "series"
    return "movie" if re.fullmatch(ids.pattern, site_id) else None


def title_url(site: Site, site_id: str, home: str | None = None) -> str:
    """Return the canonical URL of a title.

    When `home` (a scheme and host) is given, it is below that instead of the live site.

    >>> title_url("imdb", "tt0111161")
    'https://www.imdb.com/title/tt0111161/'
    >>> title_url("rottentomatoes", "m/iron_man", "http://127.0.0.1:8000")
    'http://127.0.0.1:8000/m/iron_man'
    """
    profile = SITES[site]
    return (home or profile.home).rstrip("/") + profile.title_path.format(site_id)


def parse_title_id(site: Site, text: str, home: str | None = None) -> str:
    """Return the id that a person means by `text`: the id itself, or a URL of the title.

    Any URL on its site, or below `home`, will do. Raises ConfigurationError, with the text and the
    form expected, when it is neither. Other sites' paths look the same.

    >>> parse_title_id("metacritic", "https://www.metacritic.com/movie/dune/")
    'movie/dune'
    """
    site_id = find_title_id(site, text, home)
    if site_id is None:
        raise ConfigurationError(
            f"{shown(text.strip())} is not a title of {site}; "
            f"give an id such as {SITES[site].ids.example}, or its URL"
        )
    return site_id


def find_title_id(site: Site, text: str, home: str | None = None) -> str | None:
    """Return the id as `parse_title_id` does; None when the text is neither an id nor a URL."""
    text = text.strip()
    candidate: str | None = text.strip("/")
    if "://" in text:
        candidate = (
            id_in_url(site, text) if site_of(text) == site or _is_below(home, text) else None
        )
    match = _ID[site].fullmatch(candidate or "")
    return None if match is None else _canonical_id(site, match)


def _is_below(home: str | None, url: str) -> bool:
    try:
        return home is not None and urlsplit(url).netloc.lower() == urlsplit(home).netloc.lower()
    except ValueError:
        return False


def by_authority(sites: Collection[Site]) -> list[Site]:
    """Return sites in the order in which their titles count.

    The last are those that only other workers know, whose records may be in the database, too.
    """
    known = [site for site in BY_AUTHORITY if site in sites]
    return known + sorted(set(sites).difference(known))
