"""Delays each request until its site's budget allows it, and knows which sites have refused us."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from scrapy import signals

from moviecrawler.frontier.budgets import UNLIMITED, site_budget
from moviecrawler.frontier.contract import FrontierError
from moviecrawler.frontier.engine import NOT_SENT, NotSent, end_crawl, is_closing
from moviecrawler.frontier.runs import open_backend
from moviecrawler.sites import SITES

if TYPE_CHECKING:
    from typing import Self

    from scrapy import Request
    from scrapy.crawler import Crawler

    from moviecrawler.frontier.budgets import Budget, SiteReply
    from moviecrawler.frontier.contract import Backend

logger = logging.getLogger(__name__)

_CHECK_SECONDS = 0.25
"""Seconds between two checks whether the crawl closes, while a request waits."""
_RETRY_SECONDS = 1.0
"""Seconds until the backend is tried again after a failure."""


class BudgetMiddleware:
    """Downloader middleware that has each request to the spider's site wait for its turn.

    Retries and redirects wait as well. All workers share the budget, and what the site has refused.
    """

    def __init__(self, crawler: Crawler, budget: Budget, backend: Backend) -> None:
        self.crawler = crawler
        self.budget = budget
        self.backend = backend
        self.site: Any = crawler.spidercls.site  # type: ignore[attr-defined]
        self._refusals: dict[str, str] = {}  # why sites may not be asked
        # The probe is the one request that finds out whether the site answers again.
        self._may_probe = False  # whether the next request may be it
        self._is_probing = False  # whether it waits for its answer
        # One request at a time is charged and waits, so that they leave one by one.
        self._lock = asyncio.Lock()
        self._patience = crawler.settings.getfloat("FRONTIER_PATIENCE")
        self._failing_since: float | None = None
        self._reports: set[asyncio.Task[None]] = set()

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Read SITE_BUDGETS, REDIS_URL, FRONTIER_PATIENCE and DATA_DIR."""
        site: Any = crawler.spidercls.site  # type: ignore[attr-defined]
        # `scrapy replay` asks no site.
        budget = site_budget(crawler.settings, site) if site in SITES else UNLIMITED
        middleware = cls(crawler, budget, open_backend(crawler.settings))
        crawler.signals.connect(middleware.close, signals.engine_stopped)
        return middleware

    async def process_request(self, request: Request) -> None:
        """Wait for the budget.

        Raises NotSent when the crawl ends before the request may be sent.
        """
        is_charged = self._may_probe or self.budget != UNLIMITED
        if is_charged and request.meta.get("site") == self.site and not await self.take():
            request.meta[NOT_SENT] = True
            raise NotSent

    async def take(self) -> bool:
        """Charge a request and wait for its turn; return False when it may not be sent."""
        async with self._lock:
            with suppress(NotSent):
                if not is_closing(self.crawler.engine):
                    site = await self._ask(charge=True)
                    # Otherwise the frontier, or the catalogue, knows what is to be fetched.
                    return not site.blocked and await self._sleep(site.delay / 1000)
            return False

    async def left_today(self) -> int | None:
        """Return how many requests the budget of the day still allows; None for any number."""
        per_day = self.budget.per_day
        if per_day is None:
            return None
        return max(0, per_day - (await self._ask()).used)

    async def ask_refusal(self) -> str | None:
        """Return why the spider's site may not be asked, as any worker knows; None when it may."""
        await self._ask()
        return self.refusal(self.site)

    def refusal(self, site: str) -> str | None:
        """Return why a site may not be asked, as far as it is known here; None when it may."""
        return self._refusals.get(site)

    def refused(self, site: str, reason: str, pause: float) -> None:
        """Note that a site has refused us. Nobody asks it anything for `pause` seconds."""
        self._refusals[site] = reason
        self._report(site, refusal=(reason, pause))

    def answered(self, site: str) -> None:
        """Let all workers ask the site again if the answer is to the probe.

        An answer to a request that was sent before the refusal says nothing.
        """
        if self._is_probing:
            self._report(site, has_answered=True)

    def _report(self, site: str, **step: Any) -> None:
        async def report() -> None:
            with suppress(NotSent):
                await self._ask(**step)

        if site == self.site:
            self._is_probing = False
            task = asyncio.get_running_loop().create_task(report())
            self._reports.add(task)
            task.add_done_callback(self._reports.discard)

    async def _ask(self, **step: Any) -> SiteReply:
        """Ask whether the site may be asked, until the backend answers.

        Raises NotSent when the crawl closes before that.
        """
        while True:
            try:
                site = await self.backend.ask(self.site, self.budget, **step)
            except FrontierError as error:
                self.failed(error)
            else:
                self.reached(site)
                return site
            if not await self._sleep(_RETRY_SECONDS):
                raise NotSent

    def reached(self, site: SiteReply) -> bool:
        """Note that the backend answers, and what it says of the site.

        Returns:
            Whether the site may be asked, or the probe is under way.
        """
        self._failing_since = None
        # Otherwise the answer may be older than what this worker is about to report.
        if not self._reports:
            self._may_probe = site.half_open
            self._is_probing = site.probing or (self._is_probing and site.blocked > 0)
            self._refusals.pop(self.site, None)
            if site.blocked and not site.spent and not self._is_probing:
                self._refusals[self.site] = site.reason
        return not site.blocked or self._is_probing or bool(self._reports)

    def failed(self, error: FrontierError) -> None:
        """Note that the backend fails; end the crawl when that lasts for FRONTIER_PATIENCE."""
        now = asyncio.get_running_loop().time()
        self.crawler.stats.inc_value("frontier/errors")
        if self._failing_since is None:
            self._failing_since = now
            logger.warning("%s; trying again", error, extra={"spider": self.crawler.spider})
        if now - self._failing_since >= self._patience:
            why = f"{error}: for {self._patience:g} s"
            end_crawl(self.crawler, "frontier_unreachable", why)

    async def _sleep(self, seconds: float) -> bool:
        """Sleep; return False, at once, when the crawl closes."""
        loop = asyncio.get_running_loop()
        until = loop.time() + seconds
        while (left := until - loop.time()) > 0:
            if is_closing(self.crawler.engine):
                return False
            await asyncio.sleep(min(_CHECK_SECONDS, left))
        return True

    async def close(self) -> None:
        """Wait for reports on their way, and close the backend."""
        if self._reports:
            await asyncio.wait(self._reports, timeout=_RETRY_SECONDS)
        await self.backend.close()


def budget_middleware_of(crawler: Crawler) -> BudgetMiddleware:
    """Return the middleware that keeps the budget of a crawl."""
    middleware = crawler.get_downloader_middleware(BudgetMiddleware)
    assert middleware is not None  # noqa: S101 - MovieSpider enables it
    return middleware
