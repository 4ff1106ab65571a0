"""The replica's options, for its two commands and for tests."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from moviecrawler.errors import ConfigurationError
from moviecrawler.replica.faults import Fault, FaultPlan, parse_share
from moviecrawler.replica.robots import Robots

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

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
            f"--{name.replace('_', '-')}={value}" for name in _READ_AS if (value := getattr(self, name)) is not None
        ]
        given += [f"--fail={fault}:{share}" for fault, share in self.faults.items()]
        return [*given, "--light"] if self.light else given


_READ_AS: dict[str, Callable[[str], Any]] = {
    **dict.fromkeys(("port", "titles", "seed", "rate_limit"), int),
    "latency": float,
    "pages": Path,
    "host": str,
    "robots": str,
}
_HELP = {
    "port": ("P", "IMDb's; the others follow; 0 for any (default: 8000)"),
    "host": ("ADDRESS", "listen there (default: 127.0.0.1, this machine only)"),
    "titles": ("N", "movies to make up (default: 1000)"),
    "seed": ("S", "which movies those are (default: 1)"),
    "pages": ("DIR", "serve the pages that DIR/INDEX.tsv names instead"),
    "latency": ("MS", "milliseconds before every answer (default: 0)"),
    "rate_limit": ("N", "requests a second and client; more get 429"),
    "robots": ("MODE", "robots.txt: open (default), or live as today"),
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
    texts = {name: text for name in _READ_AS if (text := getattr(given, name)) is not None}
    options = {name: _read(name, text) for name, text in texts.items()}
    return Options(**options, faults=faults, light=given.light)


def _read(name: str, text: str) -> Any:
    try:
        return _READ_AS[name](text)
    except ValueError:
        number = "a number" if _READ_AS[name] is float else "a whole number"
        raise ConfigurationError(f"--{name.replace('_', '-')} is {text!r}; give {number}") from None
