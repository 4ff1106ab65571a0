"""The sites' robots.txt: open to crawlers, or as the sites serve them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from moviecrawler.items import Site

Robots = Literal["open", "live"]

_IMDB_OPEN = """\
User-agent: *
Disallow: /OnThisDay
Disallow: /ap/
Disallow: /mymovies/
Disallow: /registration/
Disallow: /search/name-text
Disallow: /search/title-text
Disallow: /tvschedule
"""

# On the live site the datasets have a host of their own, without a robots.txt.
_IMDB_LIVE = """\
User-agent: Googlebot
Disallow: /registration/

User-agent: Bingbot
Disallow: /registration/

User-agent: *
Disallow: /
Allow: /datasets/
"""

_METACRITIC = """\
User-agent: *
Disallow: /search
Disallow: /signup
Disallow: /login
Disallow: /user
"""

_ROTTENTOMATOES = """\
User-agent: *
Disallow: /m/*/pictures
Disallow: /tv/*/pictures
Disallow: /search
Disallow: /critics/self-submission/
Disallow: /user/account/*
"""


def robots_txt(site: Site, robots: Robots) -> str:
    """Return a site's robots.txt. Only IMDb's differs: live, it lets nobody in but the crawlers that it names."""
    if site == "imdb":
        return _IMDB_LIVE if robots == "live" else _IMDB_OPEN
    return _METACRITIC if site == "metacritic" else _ROTTENTOMATOES
