"""The replica's options, and the faults that they ask for.

Some options can be changed while it runs.
"""

from __future__ import annotations

from datetime import date
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final, Literal

import msgspec
from msgspec import Meta

from moviecrawler import options
from moviecrawler.basics.errors import ConfigurationError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping
    from typing import Self

TODAY: Final = date(2026, 11, 1)
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
    """How a replica behaves; `_HELP` says what those are that its command takes."""

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

    def change(self, given: Mapping[str, Any]) -> Self:
        """Return these options with others in their places. Raises ConfigurationError."""
        for name in given:
            if name not in self.CHANGEABLE:
                can = ", ".join(self.CHANGEABLE)
                raise ConfigurationError(f"{name!r} can't be changed; {can} can")
        return self.read({**msgspec.to_builtins(self), **given})


_HELP = {
    "port": ("P", "IMDb's; the others follow; 0 for any (default: 8000)"),
    "host": ("ADDRESS", "listen there (default: 127.0.0.1, this machine only)"),
    "titles": ("N", "movies to make up (default: 1000)"),
    "series": ("N", "series to make up (default: one for 100 movies)"),
    "today": ("DATE", f"show series as of that day (default: {TODAY})"),
    "seed": ("S", "which movies those are (default: 1)"),
    "latency": ("MS", "milliseconds before every answer (default: 0)"),
    "rate_limit": ("N", "requests a second and client; more get 429"),
    "robots": ("MODE", "robots.txt: open (default), or live as today"),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the replica's options to a parser."""
    group = parser.add_argument_group("replica")
    for name, (metavar, words) in _HELP.items():
        default = "8000" if name == "port" else None
        group.add_argument(
            f"--{name.replace('_', '-')}", metavar=metavar, help=words, default=default
        )
    kinds = ", ".join(Fault)
    words = (
        f"spoil a share of the answers, such as 500:0.1; KIND is one of {kinds}; can be repeated"
    )
    group.add_argument("--fail", action="append", default=[], metavar="KIND:SHARE", help=words)
    group.add_argument("--light", action="store_true", help="pages of a few kB, with the same data")


def parse_options(given: argparse.Namespace) -> Options:
    """Return the options given on a command line.

    Raises ConfigurationError for the first that can't be right.
    """
    faults: dict[Fault, float] = {}
    for text in given.fail:
        kind, _, share = text.rpartition(":")
        try:
            faults[Fault(kind)] = faults.get(Fault(kind), 0) + float(share)
        except ValueError:
            form = f"use KIND:SHARE, such as 500:0.1, with a KIND of {', '.join(Fault)}"
            raise ConfigurationError(f"--fail is {text!r}; {form}") from None
    return Options.read(
        {**{name: getattr(given, name) for name in _HELP}, "light": given.light, "faults": faults}
    )
