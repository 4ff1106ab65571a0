"""The frontier's settings."""

from __future__ import annotations

import re
import socket
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlsplit

import msgspec

from moviecrawler.errors import ConfigurationError

if TYPE_CHECKING:
    from typing import Self

    from scrapy.settings import BaseSettings

LIVE_BUDGETS = {
    "www.imdb.com": {"per_second": 0.5, "per_day": 30_000},
    "www.rottentomatoes.com": {"per_second": 0.5, "per_day": 5_000},
    "www.metacritic.com": {"per_second": 0.5, "per_day": 600},
}
"""What all nodes together ask of a live site at most; SITE_BUDGETS adds hosts and replaces these."""
_REFUSED = {
    "SCHEDULER_SERIALIZER": "what is queued is JSON of one form, as pickle would run what others put there; remove it",
    "SCHEDULER_FLUSH_ON_START": "it would empty the queue of all workers; set FRONTIER_RUN to a new name instead",
    "SCHEDULER_QUEUE_CLASS": "the shared queue has levels of priority, first in, first out; remove it",
    "SCHEDULER_QUEUE_KEY": "keys are named by site and FRONTIER_RUN; remove it",
    "SCHEDULER_DUPEFILTER_KEY": "keys are named by site and FRONTIER_RUN; remove it",
}
"""scrapy-redis' settings that mean something else here, or that would do harm, and what to do."""
_RUN = re.compile(r"[\w.-]{1,64}")
_PREFIX = "FRONTIER_"


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


def site_budget(settings: BaseSettings, home: str) -> Budget:
    """Return the budget of the host in `home`, by SITE_BUDGETS. Raises ConfigurationError."""
    budgets = {**LIVE_BUDGETS, **_mapping(settings, "SITE_BUDGETS")}
    try:
        return msgspec.convert(budgets.get(urlsplit(home).hostname or "", {}), Budget, strict=False)
    except msgspec.ValidationError as error:
        raise ConfigurationError(f"SITE_BUDGETS has a wrong budget for {home}: {error}") from None


def node_of(settings: BaseSettings) -> str:
    """Return the name under which this machine is known to others: FRONTIER_NODE, or else its own."""
    return settings.get("FRONTIER_NODE") or socket.gethostname()


def _mapping(settings: BaseSettings, name: str) -> dict[str, Any]:
    try:
        return settings.getdict(name) if settings.get(name) else {}
    except (TypeError, ValueError):
        # Not the value itself, which may hold a password.
        raise ConfigurationError(f"{name} is no JSON object") from None


@dataclass(frozen=True, slots=True, kw_only=True)
class FrontierOptions:
    """How a worker takes part in a shared crawl. Each field is the setting `FRONTIER_<NAME>` if it names no other."""

    url: str
    """REDIS_URL."""
    run: str = "default"
    """Scopes queue, dupefilter and counters: crawls of one spider under two names run apart."""
    node: str = field(default_factory=socket.gethostname)
    """The name under which this machine's share is counted."""
    dupefilter: Literal["set", "bloom"] = "set"
    capacity: int = 10_000_000
    """URLs a window for which the Bloom filter is sized."""
    error: float = 0.001
    """Share of new URLs that a full Bloom filter takes for known ones."""
    window: float = 7 * 24 * 3600.0
    """Seconds for which a page is not fetched again because a link leads to it; it is forgotten after one to two of them."""
    lease: float = 60.0
    """Seconds without a heartbeat after which a worker's requests go back to the queue."""
    deliveries: int = 5
    """Times that a request is handed out to workers that die of it, before it becomes a dead letter."""
    batch: int = 32
    """Requests taken and acknowledged in one round trip, at most."""
    patience: float = 600.0
    """Seconds that a worker waits for a site that has refused us, for a new day's budget or for Redis, before it ends."""
    idle: float = 0.0
    """Seconds that a worker waits for new seeds after the crawl is done; scrapy-redis' SCHEDULER_IDLE_BEFORE_CLOSE, too."""
    max_pages: int = 0
    """Requests after which a worker ends, to be started anew; 0 for no limit."""
    max_seconds: float = 0.0
    """Seconds after which it does; 0 for no limit."""
    start_urls_key: str = "%(name)s:start_urls"
    """REDIS_START_URLS_KEY: the list or set of seeds from outside."""
    asked_at: float = 0.0
    """When somebody asked for this crawl, in seconds since 1970 by Redis' clock; 0 for when its process began. A node sets it."""
    budget: Budget = field(default_factory=Budget)
    """That of the site, from SITE_BUDGETS."""

    @classmethod
    def from_settings(cls, settings: BaseSettings, home: str) -> Self:
        """Read REDIS_URL, FRONTIER_RUN and so on, and the budget of the host in `home`. Raises ConfigurationError."""
        from moviecrawler.redis_client import connect, redis_parameters  # noqa: PLC0415 - imports Redis' client

        for name, why in _REFUSED.items():
            if settings.get(name) and str(settings[name]) not in {"0", "False", "false"}:
                raise ConfigurationError(f"{name} is {settings[name]!r}: {why}")
        given: dict[str, Any] = {
            name: settings.get(_PREFIX + name.upper())
            for name in cls.__dataclass_fields__
            if settings.get(_PREFIX + name.upper()) not in {None, ""}
        }
        if settings.get("SCHEDULER_IDLE_BEFORE_CLOSE") and given.get("idle") in {None, "0", 0}:
            given["idle"] = settings["SCHEDULER_IDLE_BEFORE_CLOSE"]
        if settings.get("REDIS_START_URLS_KEY"):
            given["start_urls_key"] = settings["REDIS_START_URLS_KEY"]
        parameters = redis_parameters(settings)
        budget = site_budget(settings, home)
        try:
            options = msgspec.convert({**given, "url": settings["REDIS_URL"], "budget": budget}, cls, strict=False)
        except msgspec.ValidationError as error:
            name = str(error).rpartition("$.")[2].rstrip("`").upper()
            raise ConfigurationError(
                f"{_PREFIX}{name} is {settings.get(_PREFIX + name)!r}: {str(error).partition(' - ')[0]}"
            ) from None
        connect(options.url, **parameters)  # opens nothing, but complains of what can't be
        return options

    def __post_init__(self) -> None:
        if urlsplit(self.url).scheme not in {"redis", "rediss", "unix"}:
            # Not the value itself, which may hold a password.
            raise ConfigurationError("REDIS_URL is no Redis URL; set it to one such as redis://127.0.0.1:6379/0")
        try:
            _ = self.start_urls_key % {"name": ""}
        except (KeyError, TypeError, ValueError):
            raise ConfigurationError(
                f"REDIS_START_URLS_KEY is {self.start_urls_key!r}; set it to one such as '%(name)s:start_urls'"
            ) from None
        if not _RUN.fullmatch(self.run):
            raise ConfigurationError(
                f"FRONTIER_RUN is {self.run!r}; set it to up to 64 letters, digits, dots, hyphens and underscores"
            )
        for name, least, most in (
            ("capacity", 1, 250_000_000),  # a Redis string has up to 2³² bits
            ("error", 1e-6, 0.5),
            ("window", 1, 1e9),
            ("lease", 1, 86_400),
            ("deliveries", 2, 99),
            ("batch", 1, 1000),
            ("patience", 0, 1e9),
            ("idle", 0, 1e9),
            ("max_pages", 0, 1e9),
            ("max_seconds", 0, 1e9),
            ("asked_at", 0, 1e11),
        ):
            value = getattr(self, name)
            if not least <= value <= most:
                raise ConfigurationError(
                    f"{_PREFIX}{name.upper()} is {value:g}; set it to a number from {least:g} to {most:,.0f}"
                )
