"""Decides which of the replica's answers fail, and how."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from moviecrawler.errors import ConfigurationError
from moviecrawler.replica.words import Dice

if TYPE_CHECKING:
    from collections.abc import Mapping


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


def check_shares(shares: Mapping[Fault, float]) -> None:
    """Raise ConfigurationError unless the shares of requests that meet each fault are 0 to 1, and at most 1 together."""
    for fault, share in shares.items():
        if not 0 <= share <= 1:
            raise ConfigurationError(f"the share of {fault} is {share:g}; use 0 to 1")
    if sum(shares.values()) > 1:
        raise ConfigurationError(f"the shares of faults add up to {sum(shares.values()):g}; use at most 1")


def choose(seed: int, shares: Mapping[Fault, float], path: str, attempt: int) -> Fault | None:
    """Return what happens to the `attempt`th request for a path, counted from 1; None for a proper answer.

    The same crawl meets the same faults, and a retry is another attempt, which can succeed.
    """
    point = Dice(seed, attempt, path).random() if shares else 1.0
    for fault, share in shares.items():
        point -= share
        if point < 0:
            return fault
    return None


def parse_share(text: str) -> tuple[Fault, float]:
    """Return a fault and its share from "KIND:SHARE", such as "500:0.1". Raises ConfigurationError."""
    kind, _, share = text.rpartition(":")
    try:
        return Fault(kind), float(share)
    except ValueError:
        form = f"use KIND:SHARE, such as 500:0.1, with a KIND of {', '.join(Fault)}"
        raise ConfigurationError(f"--fail is {text!r}; {form}") from None
