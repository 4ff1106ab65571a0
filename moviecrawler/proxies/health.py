"""The health of proxies for one site; each site has its own, as one site may refuse a proxy that another accepts."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from dataclasses import dataclass, replace
from typing import Literal

from rotating_proxies.expire import exp_backoff

from moviecrawler.proxies.keys import HOUR

MAX_QUARANTINE_SECONDS = 7 * 24 * 3600.0
"""Longest quarantine, whatever Retry-After says."""
FORGIVEN_AFTER_SECONDS = 24 * 3600.0
"""Seconds after the end of a quarantine from which on the next refusal counts as the first one."""
MAX_FAILURES_IN_A_ROW = 1
"""Failed connections in a row that a proxy may have; one more quarantines it."""

_MONOTONIC_ZERO = time.time() - time.monotonic()
"""The time at which the monotonic clock was 0. Quarantines go by that clock, as a correction of the machine's clock must not end or
prolong them."""

State = Literal["well", "quarantined", "recovering"]
"""`recovering`: its quarantine is over, and it has not yet shown that the site answers it again."""


@dataclass(slots=True)
class Figures:
    """Outcomes of the requests that were sent through a proxy."""

    successes: int = 0
    failures: int = 0
    """Connections that failed, and answers that came damaged."""
    bans: int = 0
    """Refusals by the site."""
    seconds: float = 0.0
    """Latencies of the successes, added up."""

    def __add__(self, other: Figures) -> Figures:
        return Figures(
            self.successes + other.successes,
            self.failures + other.failures,
            self.bans + other.bans,
            self.seconds + other.seconds,
        )

    @property
    def requests(self) -> int:
        """Number of requests that ended."""
        return self.successes + self.failures + self.bans

    @property
    def latency(self) -> float | None:
        """Mean seconds of a success; None before the first."""
        return self.seconds / self.successes if self.successes else None

    @property
    def success_share(self) -> float:
        """Above 0 and at most 1; 1 for an unknown proxy."""
        return (self.successes + 2) / (self.requests + 2)


@dataclass(slots=True, frozen=True)
class Quarantine:
    """A time for which a proxy is not used for a site. Times are in seconds since 1970."""

    since: float
    until: float
    strikes: int
    """Quarantines so far, this one included, none of them forgiven."""
    reason: str
    served: bool = False
    """Whether the proxy has got an answer from the site since `until`."""


def state_of(quarantine: Quarantine | None, now: float) -> State:
    """Return the state that follows from a proxy's last quarantine."""
    if quarantine is None or quarantine.served:
        return "well"
    return "quarantined" if now < quarantine.until else "recovering"


class Health:
    """The health of the proxies of one site: figures of this process, and quarantines of all that share them.

    Decisions go by the argument `now`. `shift` is the lead of the shared clock over ours, in seconds.
    """

    def __init__(self, quarantine: float, proxies: int) -> None:
        """Create it. `quarantine` is the length of the first quarantine in seconds, `proxies` their number."""
        self._base = quarantine
        self._many = min(3, proxies)
        self._figures: dict[int, defaultdict[str, Figures]] = {}  # of this hour since 1970 and the one before
        self._unpublished: defaultdict[str, Figures] = defaultdict(Figures)  # the latest part of them
        self.quarantines: dict[str, Quarantine] = {}
        self._changed: set[str] = set()  # proxies whose quarantine other processes don't know yet
        self._failures_in_a_row: Counter[str] = Counter()
        self._failing: set[str] = set()  # proxies that failed since the last answer through any
        self.shift = 0.0
        self.is_shared = False
        """Whether other processes use the same proxies, so that they have to be asked before a probe."""
        self.wanted_probes: set[str] = set()
        """Proxies that this process wants to probe."""
        self.granted_probes: dict[str, float] = {}
        """Proxy → until when this process may probe it."""

    def now(self) -> float:
        """Return the time by the shared clock, in seconds since 1970."""
        return _MONOTONIC_ZERO + time.monotonic() + self.shift

    # --- What is known -------------------------------------------------------------------------------------------------

    def figures(self, proxy_id: str) -> Figures:
        """Return the figures of this process' requests through a proxy, in this hour and the one before."""
        return sum((hour[proxy_id] for hour in self._figures.values()), Figures())

    def state(self, proxy_id: str, now: float) -> State:
        """Return whether a proxy may be used."""
        return state_of(self.quarantines.get(proxy_id), now)

    def proven(self, proxy_id: str) -> bool:
        """Return whether the site has answered through a proxy since its last quarantine, so that it may get several requests at once."""
        quarantine = self.quarantines.get(proxy_id)
        return quarantine.served if quarantine is not None else self.figures(proxy_id).successes > 0

    def may_probe(self, proxy_id: str, now: float) -> bool:
        """Return whether this process may try a recovering proxy; if not, request it."""
        if not self.is_shared or self.granted_probes.get(proxy_id, 0.0) > now:
            return True
        self.wanted_probes.add(proxy_id)
        return False

    @property
    def in_trouble(self) -> bool:
        """Whether several proxies have failed since the last answer through any."""
        return len(self._failing) >= self._many

    # --- What happens --------------------------------------------------------------------------------------------------

    def succeeded(self, proxy_id: str, latency: float, sent_at: float) -> None:
        """Count an answer to a request that was sent at a time."""
        self._count(proxy_id, Figures(successes=1, seconds=latency))
        self._failing.clear()
        self._failures_in_a_row.pop(proxy_id, None)
        quarantine = self.quarantines.get(proxy_id)
        if quarantine is not None and not quarantine.served and sent_at >= quarantine.until:
            self._set(proxy_id, replace(quarantine, served=True))

    def refused(self, proxy_id: str) -> None:
        """Count a refusal by the site. Call `quarantine` as well, unless the proxy gets another address."""
        self._count(proxy_id, Figures(bans=1))
        self._failures_in_a_row.pop(proxy_id, None)

    def failed(
        self, proxy_id: str, reason: str, now: float, *, sites_fault: bool, certain: bool, renewed: bool = False
    ) -> bool:
        """Count a failed connection; return whether it quarantined the proxy.

        `certain`: the failure is certainly the proxy's. `sites_fault`: when several proxies fail in a row, the site is the cause, and
        none of them is quarantined. `renewed`: the proxy has another address now.
        """
        self._count(proxy_id, Figures(failures=1))
        self._failing.add(proxy_id)
        if renewed or (self.in_trouble and sites_fault and not certain):
            self._failures_in_a_row.pop(proxy_id, None)
            return False
        self._failures_in_a_row[proxy_id] += 1
        one_too_many = self._failures_in_a_row[proxy_id] > MAX_FAILURES_IN_A_ROW
        if not certain and not one_too_many and self.state(proxy_id, now) != "recovering":
            return False
        del self._failures_in_a_row[proxy_id]
        return self.quarantine(proxy_id, reason, now)

    def quarantine(self, proxy_id: str, reason: str, now: float, least: float = 0.0) -> bool:
        """Quarantine a proxy for at least `least` seconds; return whether that changes anything.

        A current quarantine is only prolonged to `least`, as the request was sent before the quarantine began.
        """
        before = self.quarantines.get(proxy_id)
        if before is not None and now < before.until:
            if now + least <= before.until:
                return False
            again = Quarantine(before.since, now + least, before.strikes, reason)
        else:
            forgiven = before is None or now - before.until > FORGIVEN_AFTER_SECONDS
            strikes = 1 if before is None or forgiven else before.strikes + 1
            usual = exp_backoff(strikes - 1, MAX_QUARANTINE_SECONDS, self._base)
            again = Quarantine(now, now + max(usual, min(least, MAX_QUARANTINE_SECONDS)), strikes, reason)
        self._set(proxy_id, again)
        return True

    def _count(self, proxy_id: str, more: Figures) -> None:
        hour = int(self.now() // HOUR)
        for old in self._figures.keys() - {hour, hour - 1}:
            del self._figures[old]
        self._figures.setdefault(hour, defaultdict(Figures))[proxy_id] += more
        self._unpublished[proxy_id] += more

    def _set(self, proxy_id: str, quarantine: Quarantine) -> None:
        self.quarantines[proxy_id] = quarantine
        self._changed.add(proxy_id)
        self.granted_probes.pop(proxy_id, None)

    # --- Sharing it ----------------------------------------------------------------------------------------------------

    @property
    def is_urgent(self) -> bool:
        """Whether there is something that other processes must know at once."""
        return bool(self._changed or self.wanted_probes)

    def take_unpublished(self) -> tuple[dict[str, Figures], dict[str, Quarantine]]:
        """Return what is not published yet, and mark it as published."""
        figures, self._unpublished = self._unpublished, defaultdict(Figures)
        quarantines = {proxy_id: self.quarantines[proxy_id] for proxy_id in self._changed}
        self._changed = set()
        return dict(figures), quarantines

    def put_back(self, figures: dict[str, Figures], quarantines: dict[str, Quarantine]) -> None:
        """Take back what could not be published."""
        for proxy_id, more in figures.items():
            self._unpublished[proxy_id] += more
        self._changed |= quarantines.keys() & self.quarantines.keys()

    def merge(self, quarantines: dict[str, Quarantine]) -> bool:
        """Replace the quarantines by those of all processes; return whether one changed."""
        ours = {proxy_id: self.quarantines[proxy_id] for proxy_id in self._changed if proxy_id in self.quarantines}
        before, self.quarantines = self.quarantines, {**quarantines, **ours}
        return self.quarantines != before
