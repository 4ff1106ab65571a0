"""Which lists of a site say what is popular now. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from moviecrawler.items import Site

TRENDING: dict[Site, frozenset[str]] = {
    "imdb": frozenset({"popular", "boxoffice", "populartv"}),
    "metacritic": frozenset({"popular", "new", "tv-popular", "tv-new"}),
    "rottentomatoes": frozenset({"movies_in_theaters", "movies_at_home/sort:popular", "tv_series_browse/sort:popular"}),
}
"""Lists of what is popular today, by site."""
SITEMAP = "sitemap"
"""What the names of a site's sitemaps begin with among its lists."""
