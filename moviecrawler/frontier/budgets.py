"""How much may be asked of a site: by all workers together, or without Redis by one process (SITE_BUDGETS)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import msgspec

from moviecrawler.errors import ConfigurationError
from moviecrawler.sites import SITES, page_hosts_of

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

    from moviecrawler.items import Site

_LIVE = {
    host: {"per_second": profile.per_second, "per_day": profile.per_day}
    for profile in SITES.values()
    for host in (*(urlsplit(host.live).hostname for host in profile.hosts if not host.has_files), *profile.aliases)
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


def site_budget(settings: BaseSettings, site: Site) -> Budget:
    """Return the budget of the first of a site's hosts that has one. Raises ConfigurationError."""
    try:
        given = settings.getdict("SITE_BUDGETS") if settings.get("SITE_BUDGETS") else {}
    except (TypeError, ValueError):
        raise ConfigurationError("SITE_BUDGETS is no JSON object") from None
    budgets = {**_LIVE, **given}
    hosts = [urlsplit(url).hostname for url in page_hosts_of(site, settings).values()]
    host = next((host for host in hosts if host in budgets), None)
    try:
        return msgspec.convert(budgets.get(host, {}), Budget, strict=False)
    except msgspec.ValidationError as error:
        raise ConfigurationError(f"SITE_BUDGETS has a wrong budget for {host}: {error}") from None


def begin_of_day(now: datetime) -> datetime:
    """Return when the UTC day began, by which budgets are counted."""
    return now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)


def until_next_day(now: datetime) -> timedelta:
    """Return how long it takes until there is a new budget."""
    return begin_of_day(now) + timedelta(days=1) - now
