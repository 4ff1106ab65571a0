"""How crawls of what is due behave: the settings `CATALOGUE_*`, and the lists that say what is popular now."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING

from moviecrawler.catalogue.lanes import Shares
from moviecrawler.errors import ConfigurationError

if TYPE_CHECKING:
    from typing import Self

    from scrapy.settings import BaseSettings

    from moviecrawler.items import Site

TRENDING: dict[Site, frozenset[str]] = {
    "imdb": frozenset({"popular", "boxoffice"}),
    "metacritic": frozenset({"popular", "new"}),
    "rottentomatoes": frozenset({"movies_in_theaters", "movies_at_home/sort:popular"}),
}
"""Lists of what is popular today, by site."""
SITEMAP = "sitemap"


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogueOptions:
    """How a worker takes titles from the catalogue. Each field is the setting `CATALOGUE_<NAME>`."""

    batch: int = 25
    """Titles claimed at once; so many may wait, too."""
    lease: timedelta = timedelta(hours=2)
    """After which a dead worker's titles are due again."""
    shares: Shares = field(default_factory=Shares)
    """From CATALOGUE_BOOST_SHARE and CATALOGUE_STALE_SHARE."""
    idle: float = 0.0
    """Seconds that a worker waits for titles to become due, when none is."""
    lists: bool = True
    """Whether `lane=due` also reads the site's current lists, once a day, and its sitemap, once a month."""

    @classmethod
    def from_settings(cls, settings: BaseSettings) -> Self:
        """Read CATALOGUE_BATCH and so on. Raises ConfigurationError."""
        read = partial(_number, settings)
        try:
            shares = Shares(boosted=read("CATALOGUE_BOOST_SHARE", 0), stale=read("CATALOGUE_STALE_SHARE", 0))
        except ValueError as error:
            raise ConfigurationError(f"CATALOGUE_BOOST_SHARE or CATALOGUE_STALE_SHARE: {error}") from None
        return cls(
            batch=int(read("CATALOGUE_BATCH", 1)),
            lease=timedelta(seconds=read("CATALOGUE_LEASE", 1)),
            shares=shares,
            idle=read("CATALOGUE_IDLE", 0),
            lists=bool(read("CATALOGUE_LISTS", 0)),
        )


def _number(settings: BaseSettings, name: str, least: float) -> float:
    try:
        value = float(settings[name])
    except (TypeError, ValueError):
        value = least - 1
    if not least <= value < 1e9:  # noqa: PLR2004 - more than any of them can be
        raise ConfigurationError(f"{name} is {settings[name]!r}; set it to a number of at least {least:g}")
    return value
