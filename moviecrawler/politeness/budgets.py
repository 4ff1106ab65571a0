"""The rate limit and the daily budget of each site, over all workers (SITE_BUDGETS)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal
from urllib.parse import urlsplit

import msgspec
from msgspec import Meta

from moviecrawler.basics.errors import ConfigurationError
from moviecrawler.sites import SITES
from moviecrawler.sites.hosts import page_hosts_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from scrapy.settings import BaseSettings

    from moviecrawler.sites import Site

_FORM = """use {"imdb": {"per_second": 0.1, "per_day": 300}}"""
_LOOPBACK_HOSTS = ("127.0.0.1", "localhost")
"""Hosts that may be named whether or not a site is there: those of a replica."""


class Budget(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Maximum requests to a site, over all workers."""

    per_second: Annotated[float, Meta(ge=1e-6, le=1e6)] | None = None
    """Requests per second; None for no limit."""
    per_day: Annotated[int, Meta(ge=1, le=10**9)] | None = None
    """Requests per day (UTC); None for no limit."""


UNLIMITED = Budget()
"""The budget of a replica that has none in SITE_BUDGETS."""


Condition = Literal["open", "refused", "probed", "half_open", "budget_spent"]
"""`refused`: the site is blocking us. When the pause after that is over, it is `half_open`: one
request, the probe, may find out whether it answers again; and `probed` while another worker waits
for the response to that."""


class SiteReply(msgspec.Struct):
    """Whether a site may be asked. Times are in ms from now."""

    state: Condition = "open"
    blocked: int = 0
    """How long the site may not be asked, when it is blocking us or the day's budget is spent."""
    reason: str = ""
    probing: bool = False
    """Whether the request that was charged is the probe."""
    delay: int = 0
    """When the request that was charged may be sent."""
    used: int = 0
    """Requests that were charged to the day's budget."""


def site_budget(settings: BaseSettings, site: Site) -> Budget:
    """Return a site's budget.

    That is its profile's when one of its hosts is a live one, and else none, with the numbers that
    SITE_BUDGETS names for the site or for one of its hosts.

    Raises ConfigurationError.
    """
    named = _named_budgets(settings)
    profile = SITES[site]
    hosts = [_host(url) for url in page_hosts_of(site, settings).values()]
    numbers: dict[str, object] = {}
    if is_live(settings, site):
        numbers = {"per_second": profile.per_second, "per_day": profile.per_day}
        hosts += profile.aliases
    for name in (site, *reversed(hosts)):  # that of the pages has the last word
        numbers |= named.get(name, {})
    return msgspec.convert(numbers, Budget, strict=False)


def is_live(settings: BaseSettings, site: Site) -> bool:
    """Return whether a crawl requests pages of a live host of a site, not of a replica alone."""
    return any(map(SITES[site].is_live, page_hosts_of(site, settings).values()))


def _named_budgets(settings: BaseSettings) -> Mapping[str, dict[str, object]]:
    """Return SITE_BUDGETS, checked. Raises ConfigurationError."""
    try:
        named = settings.getdict("SITE_BUDGETS") if settings.get("SITE_BUDGETS") else {}
    except (TypeError, ValueError):
        raise ConfigurationError(f"SITE_BUDGETS is not a JSON object; {_FORM}") from None
    known = _known_names(settings)
    for name, numbers in named.items():
        if name not in known:
            names = ", ".join(known)
            raise ConfigurationError(f"SITE_BUDGETS names {name!r}, and there are {names}; {_FORM}")
        try:
            msgspec.convert(numbers, Budget, strict=False)
        except msgspec.ValidationError as error:
            message = f"SITE_BUDGETS has {numbers!r} for {name}: {error}; {_FORM}"
            raise ConfigurationError(message) from None
    return named


def _known_names(settings: BaseSettings) -> list[str]:
    """Return what SITE_BUDGETS may name: sites, and their live and configured hosts."""
    names: dict[str, None] = {}
    for site, profile in SITES.items():
        live = [host.live for host in profile.hosts if not host.has_files]
        configured = page_hosts_of(site, settings).values()
        hosts = [_host(url) for url in (*live, *configured)]
        names |= dict.fromkeys((site, *hosts, *profile.aliases))
    return [*names, *(host for host in _LOOPBACK_HOSTS if host not in names)]


def _host(url: str) -> str:
    return urlsplit(url).hostname or ""
