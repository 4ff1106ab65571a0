"""How many requests a site gets from all workers together (SITE_BUDGETS)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated
from urllib.parse import urlsplit

import msgspec
from msgspec import Meta

from moviecrawler.errors import ConfigurationError
from moviecrawler.sites import SITES, page_hosts_of

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

    from moviecrawler.items import Site

_DEFAULT_BUDGETS = {
    host: {"per_second": profile.per_second, "per_day": profile.per_day}
    for profile in SITES.values()
    for host in (
        *(urlsplit(host.live).hostname for host in profile.hosts if not host.has_files),
        *profile.aliases,
    )
}
"""Budgets of the live hosts; SITE_BUDGETS replaces them, and adds those of other hosts."""


class Budget(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How many requests all nodes together may send to a site."""

    per_second: Annotated[float, Meta(gt=0)] | None = None
    """Requests a second; None for no limit."""
    per_day: Annotated[int, Meta(gt=0)] | None = None
    """Requests a day (UTC); None for no limit."""


UNLIMITED = Budget()
"""The budget of a site that has none in SITE_BUDGETS."""


def site_budget(settings: BaseSettings, site: Site) -> Budget:
    """Return the budget of the first of a site's hosts that has one. Raises ConfigurationError."""
    try:
        given = settings.getdict("SITE_BUDGETS") if settings.get("SITE_BUDGETS") else {}
    except (TypeError, ValueError):
        raise ConfigurationError("SITE_BUDGETS is no JSON object") from None
    budgets = {**_DEFAULT_BUDGETS, **given}
    hosts = [urlsplit(url).hostname for url in page_hosts_of(site, settings).values()]
    host = next((host for host in hosts if host in budgets), None)
    try:
        return msgspec.convert(budgets.get(host, {}), Budget, strict=False)
    except msgspec.ValidationError as error:
        raise ConfigurationError(f"SITE_BUDGETS has a wrong budget for {host}: {error}") from None


def until_next_day(now: datetime) -> timedelta:
    """Return the time until the next UTC day, which has a new budget."""
    tomorrow = now.astimezone(UTC) + timedelta(days=1)
    return tomorrow.replace(hour=0, minute=0, second=0, microsecond=0) - now


class SiteReply(msgspec.Struct):
    """Whether a site may be asked. Times are in ms from now."""

    blocked: int = 0
    """How long the site may not be asked, as it has refused us or the day's budget is spent."""
    reason: str = ""
    spent: bool = False
    """Whether `blocked` is for the day's budget."""
    half_open: bool = False
    """Whether one request, the probe, may find out whether the site answers again."""
    probing: bool = False
    """Whether this request is the probe."""
    delay: int = 0
    """When the request that was charged may be sent."""
    used: int = 0
    """Requests that the day's budget was charged for."""
