"""Which lists of a site say what is popular now. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from moviecrawler.items import Site

TRENDING: dict[Site, frozenset[str]] = {
    "imdb": frozenset({"popular", "boxoffice"}),
    "metacritic": frozenset({"popular", "new"}),
    "rottentomatoes": frozenset({"movies_in_theaters", "movies_at_home/sort:popular"}),
}
"""Lists of what is popular today, by site."""
SITEMAP = "sitemap"
"""The name of a site's sitemap among its lists."""
