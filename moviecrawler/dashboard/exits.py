"""The exits: from where each site is asked, and how it takes that. No proxy's password or user gets here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from moviecrawler.dashboard.pages import Asked, Page, RefusedError
from moviecrawler.errors import ConfigurationError
from moviecrawler.proxies.health import Figures, Quarantine, State, state_of
from moviecrawler.proxies.options import ProxyOptions
from moviecrawler.proxies.pools import ListedPool
from moviecrawler.proxies.shared_health import clear_quarantines, read_health
from moviecrawler.urls import HOMES

if TYPE_CHECKING:
    from moviecrawler.items import Site
    from moviecrawler.proxies.pools import Proxy, ProxyPool

_MASK = "***"
_ROWS = 200
"""Exits of a site on a page."""


@dataclass(slots=True, kw_only=True)
class Row:
    """How one exit serves one site, by the last 24 hours."""

    id: str
    name: str
    kind: str
    where: str
    """Scheme, host and port of a proxy, with what it is asked with masked; empty where there is none."""
    figures: Figures
    quarantine: Quarantine | None
    state: State

    @property
    def answered(self) -> float | None:
        """Share of requests that were answered; None before the first."""
        return self.figures.successes / self.figures.requests if self.figures.requests else None


class Exits(Page):
    """`/exits`."""

    template = "exits.html"
    title = "Exits"
    here: ClassVar[str] = "/exits"

    def show(self, asked: Asked) -> dict[str, Any]:
        """Return the exits of each site that rotates."""
        page = asked.whole("page", 1, 1_000_000, 1)
        options = self._options(asked)
        known = {
            exit_.id: (pool, exit_) for pool in (options.pools if options else {}).values() for exit_ in pool.proxies
        }
        read = asked.attempt(self._read, otherwise={}) if self.sources.has_frontier else {}
        shown: list[dict[str, Any]] = []
        for site in HOMES:
            now, figures, quarantines = read.get(site, (0.0, {}, {}))
            order = options.orders.get(site, ()) if options else ()
            expected = [exit_.id for pool in order for exit_ in pool.proxies if pool.kind != "direct"]
            ids = list(dict.fromkeys([*expected, *sorted({*figures, *quarantines})]))
            rows = [_row(id_, known, now, figures.get(id_, Figures()), quarantines.get(id_)) for id_ in ids]
            rows.sort(key=lambda row: ("quarantined", "recovering", "well").index(row.state))
            shown.append(
                {
                    "site": site,
                    "order": [pool.name for pool in order],
                    "rows": rows[(page - 1) * _ROWS : page * _ROWS],
                    "total": len(rows),
                    "quarantined": sum(row.state == "quarantined" for row in rows),
                }
            )
        used = {pool.name for order in (options.orders.values() if options else ()) for pool in order}
        unused = [
            pool
            for pool in (options.pools.values() if options else ())
            if pool.name not in used and pool.kind != "direct"
        ]
        most = max(site["total"] for site in shown)
        return {
            "shown": shown,
            "unused": [(pool.name, len(pool.proxies)) for pool in unused],
            "page": page,
            "has_more": page * _ROWS < most,
            "has_frontier": self.sources.has_frontier,
        }

    def act(self, asked: Asked) -> tuple[str, str]:
        """Let an exit be used again."""
        site, exit_id = asked.value("site"), asked.value("exit")
        if asked.value("action") != "release" or site not in HOMES:
            raise RefusedError("the action is release, of an exit and a site")
        cleared = self.sources.ask_frontier(lambda client: clear_quarantines(client, site, [exit_id]))
        return "/exits", "released" if cleared else "no-exit"

    def _options(self, asked: Asked) -> ProxyOptions | None:
        try:
            return ProxyOptions.from_settings(self.sources.settings)
        except ConfigurationError as error:
            asked.troubles.append(f"This node's proxies can't be named: {error}")
            return None

    def _read(self) -> dict[Site, tuple[float, dict[str, Figures], dict[str, Quarantine]]]:
        async def read(client: Any) -> dict[Site, tuple[float, dict[str, Figures], dict[str, Quarantine]]]:
            return {site: await read_health(client, site) for site in HOMES}

        found: dict[Site, tuple[float, dict[str, Figures], dict[str, Quarantine]]] = self.sources.ask_frontier(read)
        return found


def _row(
    id_: str, known: dict[str, tuple[ProxyPool, Proxy]], now: float, figures: Figures, quarantine: Quarantine | None
) -> Row:
    pool, exit_ = known.get(id_, (None, None))
    name, kind, where = id_, "", ""
    if pool is not None and exit_ is not None:
        name, kind = exit_.name, exit_.kind
        if isinstance(pool, ListedPool):
            route = pool.route(exit_)
            where = route.url or ""
            if route.authorization is not None:
                where = where.replace("://", f"://{_MASK}@", 1)
    return Row(
        id=id_,
        name=name,
        kind=kind,
        where=where,
        figures=figures,
        quarantine=quarantine,
        state=state_of(quarantine, now),
    )
