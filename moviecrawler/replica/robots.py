"""The sites' robots.txt: open to crawlers, or as the sites serve them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from moviecrawler.items import Site

Robots = Literal["open", "live"]

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
_DISALLOWED: dict[Site, str] = {
    "imdb": "/OnThisDay /ap/ /mymovies/ /registration/ /search/name-text /search/title-text /tvschedule",
    "metacritic": "/search /signup /login /user",
    "rottentomatoes": "/m/*/pictures /tv/*/pictures /search /critics/self-submission/ /user/account/*",
}
"""What each site forbids to all; IMDb only where it is open."""


def robots_txt(site: Site, robots: Robots) -> str:
    """Return a site's robots.txt. Only IMDb's differs: live, it lets nobody in but the crawlers that it names."""
    if site == "imdb" and robots == "live":
        return _IMDB_LIVE
    return "User-agent: *\n" + "".join(f"Disallow: {path}\n" for path in _DISALLOWED[site].split())
