"""The replica's options, and the faults that they set.

Some options can be changed while it runs.
"""

from collections.abc import Mapping
from datetime import date
from enum import StrEnum
from typing import Annotated, ClassVar, Literal, Self

import msgspec
from msgspec import Meta

from moviecrawler import options
from moviecrawler.basics.errors import ConfigurationError

TODAY = date(2026, 11, 1)
"""The replica's date: titles without a release before it are upcoming and unrated."""


class Fault(StrEnum):
    """What can happen to a request instead of its answer."""

    SERVER_ERROR = "500"
    TIMEOUT = "timeout"
    """Nothing comes, and the connection stays open."""
    RESET = "reset"
    """The connection is aborted."""
    TRUNCATED = "truncated"
    """The connection is closed halfway through the body that Content-Length announced."""
    CHALLENGE = "challenge"
    """The site's own way to ask for a browser: 202 on IMDb, 403 on the others."""
    THROTTLE = "throttle"
    """A page of less than 2 kB with status 200."""
    FORBIDDEN = "403"
    RATE_LIMITED = "429"
    REDIRECT = "redirect"
    """302 to the same address with a marker, which is then answered."""
    NOT_FOUND = "404"


class Options(options.Options, frozen=True, kw_only=True):
    """How a replica behaves."""

    CHANGEABLE: ClassVar[tuple[str, ...]] = ("latency", "rate_limit", "robots", "faults", "today")
    """What can be changed while a replica runs."""

    port: Annotated[int, Meta(ge=0, le=65_533)] = 0
    host: str = "127.0.0.1"
    titles: Annotated[int, Meta(ge=1, le=200_000)] = 1_000
    series: Annotated[int, Meta(ge=0, le=10_000)] | None = None
    today: date = TODAY
    """The day on which the replica shows its series: seasons that begin later are not there yet."""
    seed: Annotated[int, Meta(ge=0, le=1_000_000_000)] = 1
    light: bool = False
    """Whether pages are a few kB, without the bulk that the sites' pages have around their data."""
    latency: Annotated[float, Meta(ge=0, le=86_400_000)] = 0.0
    rate_limit: Annotated[int, Meta(ge=1, le=1_000_000)] | None = None
    robots: Literal["open", "live"] = "open"
    faults: dict[Fault, float] = msgspec.field(default_factory=dict)
    """Share of requests that meet each fault."""

    def __post_init__(self) -> None:
        for fault, share in self.faults.items():
            if not 0 <= share <= 1:
                raise ConfigurationError(f"the share of {fault} is {share:g}; use 0 to 1")
        if (together := sum(self.faults.values())) > 1:
            raise ConfigurationError(f"the shares of faults add up to {together:g}; use at most 1")

    def change(self, given: Mapping[str, object]) -> Self:
        """Return these options with others in their places. Raises ConfigurationError."""
        for name in given:
            if name not in self.CHANGEABLE:
                can = ", ".join(self.CHANGEABLE)
                raise ConfigurationError(f"{name!r} can't be changed; {can} can")
        return self.read({**msgspec.to_builtins(self), **given})
