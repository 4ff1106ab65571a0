"""How much all nodes together may ask of a site: SITE_BUDGETS."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import msgspec

from moviecrawler.errors import ConfigurationError

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

LIVE_BUDGETS = {
    "www.imdb.com": {"per_second": 0.5, "per_day": 30_000},
    "www.rottentomatoes.com": {"per_second": 0.5, "per_day": 5_000},
    "www.metacritic.com": {"per_second": 0.5, "per_day": 600},
}
"""What all nodes together ask of a live site at most; SITE_BUDGETS adds hosts and replaces these."""


class Budget(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How many requests all nodes together may make to a site."""

    per_second: float | None = None
    """None for as fast as the workers can."""
    burst: int = 1
    """How many may go out at once after a pause."""
    per_day: int | None = None
    """By UTC days; None for no limit."""

    def __post_init__(self) -> None:
        if self.burst < 1 or any(limit is not None and limit <= 0 for limit in (self.per_second, self.per_day)):
            raise ValueError("each is above 0")


UNLIMITED = Budget()
"""That of a site whose host has none."""


def site_budget(settings: BaseSettings, home: str) -> Budget:
    """Return the budget of the host in `home`, by SITE_BUDGETS. Raises ConfigurationError."""
    try:
        given = settings.getdict("SITE_BUDGETS") if settings.get("SITE_BUDGETS") else {}
    except (TypeError, ValueError):
        raise ConfigurationError("SITE_BUDGETS is no JSON object") from None
    try:
        return msgspec.convert({**LIVE_BUDGETS, **given}.get(urlsplit(home).hostname or "", {}), Budget, strict=False)
    except msgspec.ValidationError as error:
        raise ConfigurationError(f"SITE_BUDGETS has a wrong budget for {home}: {error}") from None
