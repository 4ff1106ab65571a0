"""What the workers of all sites know together, as the frontier's backends keep it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from moviecrawler.politeness.budgets import SiteReply

if TYPE_CHECKING:
    from collections.abc import Mapping

    from moviecrawler.politeness.budgets import Budget

Result = TypeVar("Result")


class KeptRobots(msgspec.Struct, frozen=True, kw_only=True):
    """The robots.txt of a host that a worker has fetched."""

    text: str
    fetched_at: float
    """Unix time."""


class Refusal(msgspec.Struct, frozen=True):
    """That a site has blocked us."""

    reason: str
    seconds: float
    """The pause."""


class Ledger(ABC):
    """What all workers know of the sites and of their proxies.

    Each method is one atomic step and may be called again after an error, as sending twice does no
    harm. Each raises FrontierError when the step cannot be done now.
    """

    @abstractmethod
    async def _step(
        self,
        kind: type[Result],
        step: str,
        site: str | None = None,
        run: str | None = None,
        /,
        **given: object,
    ) -> Result:
        """Take a step of a site, or of its run, and return its reply, which is of a `kind`."""

    async def ask(
        self,
        site: str,
        budget: Budget,
        *,
        charge: bool = False,
        refusal: Refusal | None = None,
        has_answered: bool = False,
    ) -> SiteReply:
        """Tell whether a site may be asked.

        Args:
            site: The site, or the name of hosts that are none of a site's.
            budget: What all workers together may ask of it.
            charge: Whether a request is charged, to the day of its turn.
            refusal: That the site has blocked us. Of several while it is closed, the longest pause
                counts.
            has_answered: Whether the site has answered the probe.
        """
        event = {"charge": charge, "refusal": refusal, "has_answered": has_answered}
        return await self._step(SiteReply, "ask", site, budget=budget, **event)

    async def read_robots(self, host: str) -> KeptRobots | None:
        """Return the robots.txt of a scheme and host that was fetched last; None without one."""
        kind: Any = KeptRobots | None
        kept: KeptRobots | None = await self._step(kind, "read_robots", host=host)
        return kept

    async def keep_robots(self, host: str, text: str) -> None:
        """Keep the robots.txt of a scheme and host, for 7 days at least."""
        await self._step(object, "keep_robots", host=host, text=text)

    async def exchange_bans(self, site: str, changes: Mapping[str, str | None]) -> dict[str, str]:
        """Write bans of a site's proxies, and return all that are known; without any, make no file.

        Args:
            site: The site that has banned them.
            changes: What is kept of a ban, by the proxy's key; None to delete it. A key that is
                no UTF-8 has surrogate escapes.
        """
        return await self._step(dict[str, str], "exchange_bans", site, changes=changes)

    @abstractmethod
    async def close(self) -> None:
        """Release what it holds open. It can be used again."""
