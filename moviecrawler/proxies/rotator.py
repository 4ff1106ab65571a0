"""Whose turn it is: the exits of a site's pools, each with its share of the requests."""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from moviecrawler.proxies.health import Health
    from moviecrawler.proxies.pools import Proxy, ProxyPool

NoExit = Literal["wait", "exhausted", "none"]
"""`wait`: one will be free, or is being tried. `exhausted`: the site has refused all, or they are dead. `none`: no pool of the
site takes such a request."""


@dataclass(slots=True, order=True)
class _Seat:
    """An exit's place in the round."""

    turn: float
    """When its turn is, in requests of an exit with weight 1. The lowest is next."""
    place: int
    exit: Proxy = field(compare=False)
    in_flight: int = field(default=0, compare=False)
    left: int = field(default=0, compare=False)
    """How many more requests of a run it is held for."""


class RoundRobin:
    """The exits of one pool, for one site."""

    def __init__(self, pool: ProxyPool, health: Health, *, run: int, room: int) -> None:
        """Take for how many requests in a row an exit is used, and how many of them may be in flight at once."""
        self.pool = pool
        self._health = health
        self._run = run
        self._room = room
        self._seats = {exit_: _Seat(0.0, place, exit_) for place, exit_ in enumerate(pool.exits)}
        self._round = list(self._seats.values())  # a heap
        self._held: list[_Seat] = []
        self._turn = 0.0

    def take(self, now: float, tried: Collection[str]) -> Proxy | Literal["busy", "recovering", "tried"] | None:
        """Return the exit to use, which is in use until `release`.

        Otherwise say why there is none: those that could be used are `busy`, or are about to be tried (`recovering`), or
        this request has been through them (`tried`); None when all are quarantined.
        """
        why: Literal["busy", "recovering", "tried"] | None = None
        for seat in self._held:
            if self._usable(seat, now, tried) is True:
                return self._use(seat)
        passed: list[tuple[_Seat, bool]] = []
        chosen = None
        while self._round:
            seat = heapq.heappop(self._round)
            usable = self._usable(seat, now, tried)
            if usable is True:
                chosen = seat
                break
            passed.append((seat, usable is None))
            # What comes first of these is what is worth waiting for most.
            why = min((why, usable), key=("busy", "recovering", "tried", None).index)
        if chosen is not None:
            self._turn = max(self._turn, chosen.turn)
            chosen.turn = self._turn + 1 / (chosen.exit.weight * self._health.figures(chosen.exit.id).share)
            heapq.heappush(self._round, chosen)
        for seat, resting in passed:
            if chosen is not None:
                # It has missed its turn; all of them at once would be no round robin. One that rests is asked again when its
                # next turn would be, and not each time.
                seat.turn = max(seat.turn, self._turn) + (1 / seat.exit.weight if resting else 0)
            heapq.heappush(self._round, seat)
        if chosen is None:
            return why
        self._hold(chosen, now)
        return self._use(chosen)

    def _usable(
        self, seat: _Seat, now: float, tried: Collection[str]
    ) -> Literal[True, "busy", "recovering", "tried"] | None:
        exit_id = seat.exit.id
        state = self._health.state(exit_id, now)
        if state == "quarantined":
            return None
        if seat.exit.name in tried:
            return "tried"
        if seat.in_flight >= (self._room if self._health.proven(exit_id) else 1):
            return "busy" if state == "well" else "recovering"
        if state == "recovering" and not self._health.may_probe(exit_id, now):
            return "recovering"
        return True

    def _hold(self, seat: _Seat, now: float) -> None:
        if self._run > 1:
            self._held = [one for one in self._held if one.left and self._health.state(one.exit.id, now) == "well"]
            seat.left = self._run
            if seat not in self._held:
                self._held.append(seat)

    def _use(self, seat: _Seat) -> Proxy:
        seat.in_flight += 1
        if seat.left:
            seat.left -= 1
            if not seat.left:
                self._held.remove(seat)
        return seat.exit

    def release(self, exit_: Proxy) -> None:
        """Take note that a request through an exit has ended."""
        self._seats[exit_].in_flight -= 1


class ProxyRotator:
    """The pools of one site, in the order in which they are to be used."""

    def __init__(self, rings: Iterable[RoundRobin]) -> None:
        self._rings = {ring.pool.name: ring for ring in rings}

    def take(self, url: str, now: float, tried: Collection[str] = (), only: str | None = None) -> Proxy | NoExit:
        """Return the exit to send a request through, which is in use until `release`.

        Not one that the request was sent through before, unless there is no other. `only` names the one pool that it may
        leave through.
        """
        waits: set[str] = set()
        rings = [ring for name, ring in self._rings.items() if ring.pool.takes(url) and (only is None or only == name)]
        if not rings:
            return "none"
        for again in (tried, ()):
            for ring in rings:
                found = ring.take(now, again)
                if found == "busy":
                    return "wait"  # the next pool is for when this one can't be used
                if found is not None and not isinstance(found, str):
                    return found
                waits.add(found or "")
            if "recovering" in waits:
                return "wait"
            if "tried" not in waits:
                break
        return "exhausted"

    def release(self, exit_: Proxy) -> None:
        """Take note that a request through an exit has ended."""
        self._rings[exit_.pool].release(exit_)

    def others(self, exit_: Proxy, now: float, health: Health) -> bool:
        """Return whether another pool has an exit that may be used."""
        return any(
            health.state(other.id, now) == "well"
            for name, ring in self._rings.items()
            if name != exit_.pool
            for other in ring.pool.exits
        )

    def exhausted(self, now: float, health: Health, pool: str | None = None) -> bool:
        """Return whether no exit, or none of one pool, may be used or tried."""
        return all(
            health.state(exit_.id, now) == "quarantined"
            for name, ring in self._rings.items()
            if pool is None or name == pool
            for exit_ in ring.pool.exits
        )
