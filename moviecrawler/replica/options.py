"""The replica's options: those of its command, which tests give too, and those that can be changed while it runs."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, get_args

import msgspec
from msgspec import Meta

from moviecrawler import options
from moviecrawler.errors import ConfigurationError
from moviecrawler.replica.faults import Fault, check_shares, parse_share

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping


Robots = Literal["open", "live"]
TODAY: Final = date(2026, 11, 1)
"""The replica's date: titles without a release before it are upcoming and unrated."""
MOST_TITLES, MOST_SERIES = 200_000, 10_000


class Options(options.Options, frozen=True, kw_only=True):
    """How a replica behaves; `_HELP` says what those are that its command takes."""

    port: Annotated[int, Meta(ge=0, le=65_533)] = 0
    host: str = "127.0.0.1"
    titles: Annotated[int, Meta(ge=1, le=MOST_TITLES)] = 1_000
    series: Annotated[int, Meta(ge=0, le=MOST_SERIES)] | None = None
    today: date = TODAY
    """The day on which the replica shows its series: seasons that begin later are not there yet."""
    seed: Annotated[int, Meta(ge=0, le=1_000_000_000)] = 1
    pages: str = ""
    light: bool = False
    """Whether pages are a few kB, without the bulk that the sites' pages have around their data."""
    latency: Annotated[float, Meta(ge=0, le=86_400_000)] = 0.0
    rate_limit: Annotated[int, Meta(ge=1, le=1_000_000)] | None = None
    robots: Robots = "open"
    faults: dict[Fault, float] = msgspec.field(default_factory=dict)
    """Share of requests that meet each fault."""
    clients: dict[str, Fault] = msgspec.field(default_factory=dict)
    """Clients whose every request meets a fault. A client's name is the first one in X-Forwarded-For, where a proxy says for
    whom it asks, or else its address."""
    renames: dict[str, str] = msgspec.field(default_factory=dict)
    """Words of pages, and what stands in their places: how a site changes its pages."""
    rename_after: Annotated[int, Meta(ge=0, le=1_000_000_000)] = 0
    """Answers that are as before."""

    def __post_init__(self) -> None:
        check_shares(self.faults)

    def change(self, given: Mapping[str, Any]) -> Options:
        """Return these options with others in their places. Raises ConfigurationError."""
        for name in given:
            if name not in CHANGEABLE:
                raise ConfigurationError(f"{name!r} can't be changed; {', '.join(CHANGEABLE)} can")
        return Options.read({**msgspec.to_builtins(self), **given})


CHANGEABLE = ("latency", "rate_limit", "robots", "faults", "clients", "renames", "rename_after", "today")
"""What can be changed while a replica runs."""
_HELP = {
    "port": ("P", "IMDb's; the others follow; 0 for any (default: 8000)"),
    "host": ("ADDRESS", "listen there (default: 127.0.0.1, this machine only)"),
    "titles": ("N", "movies to make up (default: 1000)"),
    "series": ("N", "series to make up (default: one for 100 movies)"),
    "today": ("DATE", f"show series as of that day (default: {TODAY})"),
    "seed": ("S", "which movies those are (default: 1)"),
    "pages": ("DIR", "serve the pages that DIR/INDEX.tsv names instead"),
    "latency": ("MS", "milliseconds before every answer (default: 0)"),
    "rate_limit": ("N", "requests a second and client; more get 429"),
    "robots": ("MODE", f"robots.txt: {get_args(Robots)[0]} (default), or live as today"),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the replica's options to a parser."""
    group = parser.add_argument_group("replica")
    for name, (metavar, words) in _HELP.items():
        default = "8000" if name == "port" else None
        group.add_argument(f"--{name.replace('_', '-')}", metavar=metavar, help=words, default=default)
    kinds = ", ".join(Fault)
    words = f"spoil a share of the answers, such as 500:0.1; KIND is one of {kinds}; can be repeated"
    group.add_argument("--fail", action="append", default=[], metavar="KIND:SHARE", help=words)
    group.add_argument("--light", action="store_true", help="pages of a few kB, with the same data")


def parse_options(given: argparse.Namespace) -> Options:
    """Return the options given on a command line. Raises ConfigurationError for the first that can't be right."""
    faults: dict[Fault, float] = {}
    for text in given.fail:
        fault, share = parse_share(text)
        faults[fault] = faults.get(fault, 0) + share
    return Options.read({**{name: getattr(given, name) for name in _HELP}, "light": given.light, "faults": faults})
