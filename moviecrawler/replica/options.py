"""The replica's options, for its two commands and for tests."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, get_args

from moviecrawler.errors import ConfigurationError
from moviecrawler.replica.faults import Fault, FaultPlan, parse_share
from moviecrawler.replica.robots import Robots

if TYPE_CHECKING:
    import argparse

MOST_TITLES = 6_000_000
"""How many titles the ids have room for."""
_HIGHEST_PORT = 65_535
_SITES = 3


@dataclass(slots=True, frozen=True, kw_only=True)
class Options:
    """How a replica behaves. Raises ConfigurationError for values that can't be right."""

    port: int = 0
    """IMDb's; Metacritic and Rotten Tomatoes are on the next two. 0 takes any three that are free."""
    host: str = "127.0.0.1"
    """The address to listen on, and the host of the URLs: beyond loopback only where nobody else can reach it."""
    titles: int = 1_000
    seed: int = 1
    pages: Path | None = None
    """A folder of saved pages to serve in place of generated ones."""
    latency: float = 0
    """Milliseconds that every answer waits."""
    rate_limit: int | None = None
    """Requests that a client may make in a second before it gets 429."""
    faults: dict[Fault, float] = field(default_factory=dict)
    """Share of requests that meet each fault."""
    robots: Robots = "open"
    light: bool = False
    """Whether pages are a few kB, without the bulk that the sites' pages have around their data."""

    def __post_init__(self) -> None:
        if not 0 <= self.port <= _HIGHEST_PORT - _SITES + 1:
            raise ConfigurationError(f"--port is {self.port}; use 0, or 1 to {_HIGHEST_PORT - _SITES + 1:,}")
        if not 1 <= self.titles <= MOST_TITLES:
            raise ConfigurationError(f"--titles is {self.titles}; use 1 to {MOST_TITLES:,}")
        if self.seed < 0:
            raise ConfigurationError(f"--seed is {self.seed}; use 0 or more")
        if not 0 <= self.latency < float("inf"):
            raise ConfigurationError(f"--latency is {self.latency:g}; use 0 or more milliseconds")
        if self.rate_limit is not None and self.rate_limit < 1:
            raise ConfigurationError(f"--rate-limit is {self.rate_limit}; use 1 or more requests a second")
        if self.robots not in get_args(Robots):
            raise ConfigurationError(f"--robots is {self.robots!r}; use one of {', '.join(get_args(Robots))}")
        FaultPlan(self.seed, self.faults)

    def arguments(self) -> list[str]:
        """Return the command line that means the same."""
        given = [
            f"--port={self.port}",
            f"--host={self.host}",
            f"--titles={self.titles}",
            f"--seed={self.seed}",
            f"--latency={self.latency:g}",
        ]
        given += [f"--fail={fault}:{share}" for fault, share in self.faults.items()]
        given.append(f"--robots={self.robots}")
        if self.pages is not None:
            given.append(f"--pages={self.pages}")
        if self.rate_limit is not None:
            given.append(f"--rate-limit={self.rate_limit}")
        if self.light:
            given.append("--light")
        return given


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the replica's options to a parser."""
    group = parser.add_argument_group("replica")
    group.add_argument(
        "--port", default="8000", metavar="P", help="IMDb's; the others follow; 0 for any (default: 8000)"
    )
    group.add_argument(
        "--host", default="127.0.0.1", metavar="ADDRESS", help="listen there (default: 127.0.0.1, this machine only)"
    )
    group.add_argument("--titles", default="1000", metavar="N", help="movies to make up (default: 1000)")
    group.add_argument("--seed", default="1", metavar="S", help="which movies those are (default: 1)")
    group.add_argument("--pages", metavar="DIR", help="serve the pages that DIR/INDEX.tsv names instead")
    group.add_argument("--latency", default="0", metavar="MS", help="milliseconds before every answer (default: 0)")
    group.add_argument("--rate-limit", metavar="N", help="requests a second and client; more get 429")
    group.add_argument(
        "--fail",
        action="append",
        default=[],
        metavar="KIND:SHARE",
        help=f"spoil a share of the answers, such as 500:0.1; KIND is one of {', '.join(Fault)}; can be repeated",
    )
    group.add_argument("--robots", default="open", metavar="MODE", help="robots.txt: open (default), or live as today")
    group.add_argument("--light", action="store_true", help="pages of a few kB, with the same data")


def parse_options(given: argparse.Namespace) -> Options:
    """Return the options given on a command line. Raises ConfigurationError for the first that can't be right."""
    faults: dict[Fault, float] = {}
    for text in given.fail:
        fault, share = parse_share(text)
        faults[fault] = faults.get(fault, 0) + share
    return Options(
        port=_whole("--port", given.port),
        host=given.host,
        titles=_whole("--titles", given.titles),
        seed=_whole("--seed", given.seed),
        pages=None if given.pages is None else Path(given.pages),
        latency=_number("--latency", given.latency),
        rate_limit=None if given.rate_limit is None else _whole("--rate-limit", given.rate_limit),
        faults=faults,
        robots=given.robots,
        light=given.light,
    )


def _whole(name: str, text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ConfigurationError(f"{name} is {text!r}; give a whole number") from None


def _number(name: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ConfigurationError(f"{name} is {text!r}; give a number") from None
