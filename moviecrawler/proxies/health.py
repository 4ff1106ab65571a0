"""How well each exit serves one site. What one site makes of an exit says nothing of another's."""

from __future__ import annotations

import time
from collections import defaultdict
from dataclasses import dataclass
from typing import Literal

from rotating_proxies.expire import exp_backoff

LONGEST_QUARANTINE = 7 * 24 * 3600.0
"""Seconds, however often an exit was refused, and whatever Retry-After says."""
FORGIVEN_AFTER = 24 * 3600.0
"""Seconds after the end of a quarantine from which the next refusal counts as the first again."""
FAILURES_IN_A_ROW = 2
"""Connections in a row that an exit has to fail for a quarantine: a single one may be an accident."""

_BEGAN = time.time() - time.monotonic()
"""What this process takes for the time at which its monotonic clock stood at 0: a clock that is set right later, as one without
a battery is, must not make a quarantine end, or last for years."""

State = Literal["well", "quarantined", "recovering"]
"""`recovering`: its quarantine is over, and it has not yet shown that the site answers it again."""


@dataclass(slots=True)
class Figures:
    """What became of the requests that went out through an exit."""

    successes: int = 0
    failures: int = 0
    """Connections that failed, and answers that came damaged."""
    bans: int = 0
    """Refusals by the site."""
    seconds: float = 0.0
    """Latencies of the successes, added up."""

    def add(self, other: Figures) -> None:
        """Add what became of further requests."""
        self.successes += other.successes
        self.failures += other.failures
        self.bans += other.bans
        self.seconds += other.seconds

    @property
    def requests(self) -> int:
        """How many have ended."""
        return self.successes + self.failures + self.bans

    @property
    def latency(self) -> float | None:
        """Mean seconds of a success; None before the first."""
        return self.seconds / self.successes if self.successes else None

    @property
    def share(self) -> float:
        """Share of requests that succeed, above 0 and at most 1; an exit that nothing is known of is given credit."""
        return (self.successes + 2) / (self.requests + 2)


@dataclass(slots=True, frozen=True)
class Quarantine:
    """A time for which an exit is not used for a site. Times are in seconds since 1970."""

    since: float
    until: float
    strikes: int
    """Quarantines so far, this one included, none of them forgiven."""
    reason: str
    served: bool = False
    """Whether the exit has got an answer from the site since `until`."""


def state_of(quarantine: Quarantine | None, now: float) -> State:
    """Return what an exit's last quarantine makes of it."""
    if quarantine is None or quarantine.served:
        return "well"
    return "quarantined" if now < quarantine.until else "recovering"


class Health:
    """What is known of the exits of one site: here, and, once `learn` is called, by other processes.

    Decides by the time `now` that it is given; `shift` is what other processes' clock is ahead of this one's.
    """

    def __init__(self, quarantine: float, exits: int) -> None:
        """Take how long the first quarantine is (s), and how many exits there are."""
        self._base = quarantine
        self._many = min(3, exits)
        self._known: dict[str, Figures] = {}  # other processes' and ours, as they were last told
        self._untold: defaultdict[str, Figures] = defaultdict(Figures)  # ours since
        self.quarantines: dict[str, Quarantine] = {}
        self._changed: set[str] = set()
        self._row: dict[str, int] = {}  # failures in a row, in this process
        self._failing: set[str] = set()  # exits that failed since the last answer through any
        self.shift = 0.0
        self.alone = True
        """Whether no other process has a say, so that none has to be asked before a probe."""
        self.wanted: set[str] = set()
        """Exits that would be probed if no other process does."""
        self.granted: dict[str, float] = {}
        """Until when this process may probe each."""

    def now(self) -> float:
        """Return the time by the clock that all processes share."""
        return _BEGAN + time.monotonic() + self.shift

    # --- What is known -------------------------------------------------------------------------------------------------

    def figures(self, exit_id: str) -> Figures:
        """Return what became of an exit's requests."""
        known = self._known.get(exit_id)
        untold = self._untold.get(exit_id)
        if known is None or untold is None:
            return known or untold or Figures()
        both = Figures()
        both.add(known)
        both.add(untold)
        return both

    def state(self, exit_id: str, now: float) -> State:
        """Return whether an exit may be used."""
        return state_of(self.quarantines.get(exit_id), now)

    def proven(self, exit_id: str) -> bool:
        """Return whether the site has answered an exit, lately or at all, so that more than one request may be risked."""
        quarantine = self.quarantines.get(exit_id)
        return quarantine.served if quarantine is not None else self.figures(exit_id).successes > 0

    def may_probe(self, exit_id: str, now: float) -> bool:
        """Return whether this process is the one to try an exit that is recovering; if not, ask to be."""
        if self.alone or self.granted.get(exit_id, 0.0) > now:
            return True
        self.wanted.add(exit_id)
        return False

    # --- What happens --------------------------------------------------------------------------------------------------

    def succeeded(self, exit_id: str, latency: float, sent_at: float) -> None:
        """Take note of an answer to a request that was sent at a time."""
        figures = self._untold[exit_id]
        figures.successes += 1
        figures.seconds += latency
        self._failing.clear()
        self._row.pop(exit_id, None)
        quarantine = self.quarantines.get(exit_id)
        if quarantine is not None and not quarantine.served and sent_at >= quarantine.until:
            self._set(
                exit_id, Quarantine(quarantine.since, quarantine.until, quarantine.strikes, quarantine.reason, True)
            )

    def refused(self, exit_id: str) -> None:
        """Count a refusal by the site; what it means for the exit is for `quarantine` to say."""
        self._untold[exit_id].bans += 1
        self._row.pop(exit_id, None)

    def failed(
        self, exit_id: str, reason: str, now: float, *, sites_fault: bool, certain: bool, renewed: bool = False
    ) -> bool:
        """Take note of a failed connection; return whether it was one too many, so that the exit rests.

        `certain` is a failure that is the exit's without doubt. `sites_fault` is whether the site is to blame when several
        exits fail in a row: then none of them is. `renewed` is whether the exit has another address now.
        """
        self._untold[exit_id].failures += 1
        self._failing.add(exit_id)
        if renewed or (self.in_trouble and sites_fault and not certain):
            self._row.pop(exit_id, None)
            return False
        self._row[exit_id] = self._row.get(exit_id, 0) + 1
        if not certain and self._row[exit_id] < FAILURES_IN_A_ROW and self.state(exit_id, now) != "recovering":
            return False
        del self._row[exit_id]
        return self.quarantine(exit_id, reason, now)

    @property
    def in_trouble(self) -> bool:
        """Whether several exits have failed in a row, and none has got an answer."""
        return len(self._failing) >= self._many

    def quarantine(self, exit_id: str, reason: str, now: float, least: float = 0.0) -> bool:
        """Let an exit rest, for `least` seconds or longer; return whether that is news.

        One that rests already does so no longer for it, unless for `least`: the request was sent before.
        """
        before = self.quarantines.get(exit_id)
        if before is not None and now < before.until:
            if now + least <= before.until:
                return False
            again = Quarantine(before.since, now + least, before.strikes, reason)
        else:
            forgiven = before is None or now - before.until > FORGIVEN_AFTER
            strikes = 1 if before is None or forgiven else before.strikes + 1
            seconds = max(exp_backoff(strikes - 1, LONGEST_QUARANTINE, self._base), min(least, LONGEST_QUARANTINE))
            again = Quarantine(now, now + seconds, strikes, reason)
        self._set(exit_id, again)
        return True

    def _set(self, exit_id: str, quarantine: Quarantine) -> None:
        self.quarantines[exit_id] = quarantine
        self._changed.add(exit_id)
        self.granted.pop(exit_id, None)

    # --- Sharing it ----------------------------------------------------------------------------------------------------

    @property
    def urgent(self) -> bool:
        """Whether there is something that other processes have to know at once."""
        return bool(self._changed)

    def tell(self) -> tuple[dict[str, Figures], dict[str, Quarantine]]:
        """Return what other processes don't know, and take it for told."""
        figures, self._untold = self._untold, defaultdict(Figures)
        for exit_id, more in figures.items():
            self._known.setdefault(exit_id, Figures()).add(more)
        quarantines = {exit_id: self.quarantines[exit_id] for exit_id in self._changed}
        self._changed = set()
        return dict(figures), quarantines

    def untell(self, figures: dict[str, Figures], quarantines: dict[str, Quarantine]) -> None:
        """Take back what could not be told."""
        for exit_id, more in figures.items():
            self._untold[exit_id].add(more)
            known = self._known[exit_id]
            known.add(Figures(-more.successes, -more.failures, -more.bans, -more.seconds))
        self._changed |= quarantines.keys() & self.quarantines.keys()

    def learn(self, figures: dict[str, Figures] | None, quarantines: dict[str, Quarantine]) -> bool:
        """Take over what all processes together know, None for no news; return whether a quarantine has changed."""
        if figures is not None:
            self._known = figures
        mine = {exit_id: self.quarantines[exit_id] for exit_id in self._changed if exit_id in self.quarantines}
        before, self.quarantines = self.quarantines, {**quarantines, **mine}
        return self.quarantines != before
