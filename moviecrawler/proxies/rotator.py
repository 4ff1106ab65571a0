"""Chooses the next proxy from a site's pools, each with its share of the requests."""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from moviecrawler.proxies.health import Health
    from moviecrawler.proxies.pools import Proxy, ProxyPool

Unusable = Literal["busy", "recovering", "tried", "quarantined"]
"""Why a proxy can't be used now."""
_WORTH_WAITING: list[Unusable] = ["busy", "recovering", "tried", "quarantined"]
"""The reasons, the shortest wait first."""
NoProxy = Literal["wait", "exhausted", "none"]
"""`wait`: a proxy will be free, or is being tried. `exhausted`: all are refused or dead. `none`: no pool of the site accepts such a
request."""


@dataclass(slots=True, order=True)
class _Place:
    """A proxy's place in the round."""

    turn: float
    """The lowest is next. Each request adds 1 for a proxy whose requests all succeed, and more for others."""
    number: int
    proxy: Proxy = field(compare=False)
    in_flight: int = field(default=0, compare=False)
    run_left: int = field(default=0, compare=False)
    """Requests left in its run, before the next proxy is used."""


class RoundRobin:
    """The proxies of one pool, for one site."""

    def __init__(self, pool: ProxyPool, health: Health, *, run: int, concurrency: int) -> None:
        """Create it. `run` is the number of requests in a row for which a proxy is used, `concurrency` how many may be in flight at once."""
        self.pool = pool
        self._health = health
        self._run = run
        self._concurrency = concurrency
        self._places = {proxy: _Place(0.0, number, proxy) for number, proxy in enumerate(pool.proxies)}
        self._round = list(self._places.values())  # a heap
        self._held: list[_Place] = []
        self._turn = 0.0

    def take(self, now: float, tried: Collection[str]) -> Proxy | Unusable:
        """Return the proxy to use, which is in use until `release`; or why there is none. `tried` are names not to use."""
        for place in self._held:
            if self._unusable(place, now, tried) is None:
                return self._use(place)
        passed: list[tuple[_Place, Unusable]] = []
        chosen = None
        while self._round and chosen is None:
            place = heapq.heappop(self._round)
            why = self._unusable(place, now, tried)
            if why is None:
                chosen = place
                self._turn = max(self._turn, place.turn)
                place.turn = self._turn + 1 / self._health.figures(place.proxy.id).success_share
                heapq.heappush(self._round, place)
            else:
                passed.append((place, why))
        for place, why in passed:
            if chosen is not None:
                # It missed its turn and joins at the end of the round. A quarantined one is skipped until its next turn, so that
                # it is not examined at every request.
                place.turn = max(place.turn, self._turn) + (why == "quarantined")
            heapq.heappush(self._round, place)
        if chosen is None:
            reasons = {why for _, why in passed}
            return next((why for why in _WORTH_WAITING if why in reasons), "quarantined")
        if self._run > 1:
            self._hold(chosen, now)
        return self._use(chosen)

    def _unusable(self, place: _Place, now: float, tried: Collection[str]) -> Unusable | None:
        proxy_id = place.proxy.id
        state = self._health.state(proxy_id, now)
        if state == "quarantined":
            return "quarantined"
        if place.proxy.name in tried:
            return "tried"
        if place.in_flight >= (self._concurrency if self._health.proven(proxy_id) else 1):
            return "busy" if state == "well" else "recovering"
        if state == "recovering" and not self._health.may_probe(proxy_id, now):
            return "recovering"
        return None

    def _hold(self, place: _Place, now: float) -> None:
        self._held = [one for one in self._held if one.run_left and self._health.state(one.proxy.id, now) == "well"]
        place.run_left = self._run
        if place not in self._held:
            self._held.append(place)

    def _use(self, place: _Place) -> Proxy:
        place.in_flight += 1
        if place.run_left:
            place.run_left -= 1
            if not place.run_left:
                self._held.remove(place)
        return place.proxy

    def release(self, proxy: Proxy) -> None:
        """Count a request through a proxy as ended."""
        self._places[proxy].in_flight -= 1


class ProxyRotator:
    """The pools of one site, in the order in which they are to be used."""

    def __init__(self, pools: Iterable[RoundRobin], health: Health) -> None:
        self._pools = {one.pool.name: one for one in pools}
        self._health = health

    def take(self, url: str, now: float, tried: Collection[str] = (), only: str | None = None) -> Proxy | NoProxy:
        """Return the proxy to send a request through, which is in use until `release`.

        Names in `tried` are used only when there is no other proxy. `only` names the one pool to choose from.
        """
        pools = [one for name, one in self._pools.items() if one.pool.accepts(url) and (only is None or only == name)]
        if not pools:
            return "none"
        reasons: set[Unusable] = set()
        for not_again in (tried, ()):
            for pool in pools:
                found = pool.take(now, not_again)
                if found == "busy":
                    return "wait"  # the next pool is used only when this one can't be
                if not isinstance(found, str):
                    return found
                reasons.add(found)
            if "recovering" in reasons:
                return "wait"
            if "tried" not in reasons:
                break
        return "exhausted"

    def release(self, proxy: Proxy) -> None:
        """Count a request through a proxy as ended."""
        self._pools[proxy.pool].release(proxy)

    def has_others(self, proxy: Proxy, now: float) -> bool:
        """Return whether another pool has a proxy that may be used."""
        return any(
            self._health.state(other.id, now) == "well"
            for name, one in self._pools.items()
            if name != proxy.pool
            for other in one.pool.proxies
        )

    def is_exhausted(self, now: float, pool: str | None = None) -> bool:
        """Return whether no proxy, or none of one pool, may be used or tried."""
        return all(
            self._health.state(proxy.id, now) == "quarantined"
            for name, one in self._pools.items()
            if pool is None or name == pool
            for proxy in one.pool.proxies
        )
