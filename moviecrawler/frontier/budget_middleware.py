"""Delays each request until its site's budget (SITE_BUDGETS) allows it, and knows which sites have refused us."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scrapy import signals
from scrapy.exceptions import NotConfigured

from moviecrawler.clock import utc_now, utc_text
from moviecrawler.frontier.budgets import UNLIMITED, site_budget, until_next_day
from moviecrawler.frontier.engine import NOT_SENT, NotSent, end_crawl, is_closing

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler

    from moviecrawler.frontier.budgets import Budget
    from moviecrawler.frontier.queue import SiteReply

logger = logging.getLogger(__name__)

_CHECK_SECONDS = 0.25
"""Seconds between two checks whether the crawl closes, while a request waits."""
_RETRY_SECONDS = 1.0
"""Seconds until Redis is tried again after a failure."""


class BudgetMiddleware:
    """Downloader middleware that has each request to the spider's site wait for the budget, retries and redirects included.

    Without Redis the budget is that of this process; processes with one DATA_DIR share the day's count by a file.
    """

    half_open = False
    """Whether the next request may be the probe: the one request that finds out whether the site answers again."""

    def __init__(self, crawler: Crawler, budget: Budget) -> None:
        self.crawler = crawler
        self.budget = budget
        self.site: Any = crawler.spidercls.site  # type: ignore[attr-defined]
        self._refusals: dict[str, str] = {}  # by site, for the rest of the crawl
        self._next = 0.0  # when the next request may be sent, by the event loop's clock
        self._lock = asyncio.Lock()  # one request at a time is charged and waits, so that they leave one by one

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> BudgetMiddleware:
        """Read SITE_BUDGETS, REDIS_URL and DATA_DIR."""
        if not hasattr(crawler.spidercls, "site"):
            raise NotConfigured  # `scrapy replay` has a spider without a site
        kind = SharedBudgetMiddleware if crawler.settings.get("REDIS_URL") else BudgetMiddleware
        return kind(crawler, site_budget(crawler.settings, crawler.spidercls.site))

    async def process_request(self, request: Request) -> None:
        """Wait for the budget. Raises NotSent when the crawl ends before the request may be sent."""
        is_charged = self.budget != UNLIMITED or self.half_open
        if is_charged and request.meta.get("site") == self.site and not await self.take():
            request.meta[NOT_SENT] = True
            raise NotSent

    def refusal(self, site: str) -> str | None:
        """Return why a site may not be asked, as far as it is known here; None when it may."""
        return self._refusals.get(site)

    def refused(self, site: str, reason: str, pause: float) -> None:  # noqa: ARG002 - of use to the shared one
        """Note that a site has refused us, so that it is not asked for `pause` seconds, and not again by this process."""
        self._refusals[site] = reason

    def answered(self, site: str) -> None:
        """Note a proper answer."""

    async def ask_refusal(self) -> str | None:
        """Return why the spider's site may not be asked, as any worker knows; None when it may."""
        return self.refusal(self.site)

    async def left_today(self) -> int | None:
        """Return how many requests the budget of the day still allows; None for any number."""
        if self.budget.per_day is None:
            return None
        return max(0, self.budget.per_day - await self._used_today())

    async def take(self) -> bool:
        """Charge a request and wait until it may be sent; return False when the crawl ends before that."""
        async with self._lock:
            with suppress(NotSent):
                delay = None if is_closing(self.crawler.engine) else await self._charge()
                return delay is not None and await self.sleep(delay)
            return False

    async def _charge(self) -> float | None:
        """Charge a request; return the seconds until it may be sent, None for not in this crawl."""
        while not self._count():
            spider: Any = self.crawler.spider
            if spider.plan.lane is not None:
                return None  # the crawl ends, and the catalogue knows what is still due
            left = until_next_day(now := utc_now())
            message = (
                "%d requests to %s are the budget of the day, which is spent: the crawl waits until %s and goes on"
            )
            logger.warning(message, self.budget.per_day, self.site, utc_text(now + left), extra={"spider": spider})
            if not await self.sleep(left.total_seconds()):
                return None
        if self.budget.per_second is None:
            return 0.0
        time = asyncio.get_running_loop().time()
        start = max(self._next, time)
        self._next = start + 1 / self.budget.per_second
        return start - time

    @property
    def _file(self) -> Path:
        """Today's file, which has a byte for each request of any process that shares DATA_DIR."""
        return Path(self.crawler.settings["DATA_DIR"]) / f"requests-{self.site}-{utc_now():%Y-%m-%d}"

    async def _used_today(self) -> int:
        return self._file.stat().st_size if self._file.exists() else 0

    def _count(self) -> bool:
        """Charge a request to the day; return False when the budget of the day is spent."""
        if self.budget.per_day is None:
            return True
        path = self._file
        if not path.exists():
            for old in path.parent.glob(f"requests-{self.site}-*"):
                old.unlink(missing_ok=True)
        with path.open("ab", buffering=0) as file:
            file.write(b".")
            return file.tell() <= self.budget.per_day  # each process appends, so the position counts for all

    async def sleep(self, seconds: float) -> bool:
        """Sleep; return False, at once, when the crawl closes."""
        loop = asyncio.get_running_loop()
        until = loop.time() + seconds
        while (left := until - loop.time()) > 0:
            if is_closing(self.crawler.engine):
                return False
            await asyncio.sleep(min(_CHECK_SECONDS, left))
        return True


class SharedBudgetMiddleware(BudgetMiddleware):
    """The middleware of shared crawls: the site's budget, and whether it has refused us, are in Redis."""

    def __init__(self, crawler: Crawler, budget: Budget) -> None:
        from moviecrawler.frontier.keys import SiteKeys  # noqa: PLC0415 - with Redis' client
        from moviecrawler.frontier.queue import Scripts  # noqa: PLC0415 - imports Redis' client
        from moviecrawler.redis_client import connect  # noqa: PLC0415 - as above

        super().__init__(crawler, budget)
        settings = crawler.settings
        self.client = connect(settings["REDIS_URL"])
        self.keys = SiteKeys(self.site, settings["REDIS_START_URLS_KEY"])
        self.scripts: Scripts = Scripts(self.client, budget)
        self.probing = False
        """Whether this worker has sent the probe, and waits for the answer."""
        self._patience = settings.getfloat("FRONTIER_PATIENCE")
        self._failing_since: float | None = None
        self._reports: set[asyncio.Task[None]] = set()
        crawler.signals.connect(self.close, signals.engine_stopped)

    def refused(self, site: str, reason: str, pause: float) -> None:
        """Note a refusal; of the spider's site, tell Redis."""
        super().refused(site, reason, pause)
        if site == self.site:
            self._report(refusal=(reason, round(pause * 1000)))

    def answered(self, site: str) -> None:
        """Let all workers ask the site again if the answer is to the probe, not to a request sent before the refusal."""
        if site == self.site and self.probing:
            self._report(answered=True)

    def _report(self, **step: Any) -> None:
        async def report() -> None:
            with suppress(NotSent):
                await self._ask(**step)

        self.probing = False
        task = asyncio.get_running_loop().create_task(report())
        self._reports.add(task)
        task.add_done_callback(self._reports.discard)

    def reached(self, site: SiteReply) -> bool:
        """Note that Redis answers, and what it says of the site; return whether the site may be asked, or the probe is under way."""
        self._failing_since = None
        if not self._reports:  # otherwise the answer may be older than what this worker is about to tell
            self.half_open = site.half_open
            self.probing = site.probing or (self.probing and site.blocked > 0)
            self._refusals.pop(self.site, None)
            if site.blocked and not site.spent and not self.probing:
                self._refusals[self.site] = site.reason
        return not site.blocked or self.probing or bool(self._reports)

    def failed(self, error: Exception) -> None:
        """Note that Redis can't be used, and end the crawl when that lasts longer than FRONTIER_PATIENCE."""
        now = asyncio.get_running_loop().time()
        self.crawler.stats.inc_value("frontier/errors")
        if self._failing_since is None:
            self._failing_since = now
            message = "Redis can't be used: %s; trying again"
            logger.warning(message, error, extra={"spider": self.crawler.spider})
        if now - self._failing_since >= self._patience:
            end_crawl(self.crawler, "frontier_unreachable", f"Redis could not be used for {self._patience:g} s")

    async def ask_refusal(self) -> str | None:
        """Return why the site may not be asked, as Redis knows now; None when it may."""
        await self._ask()
        return self.refusal(self.site)

    async def _used_today(self) -> int:
        return (await self._ask()).used

    async def _charge(self) -> float | None:
        site = await self._ask(charge=True)
        return None if site.blocked else site.delay / 1000

    async def _ask(self, **step: Any) -> SiteReply:
        """Run `ask.lua` until Redis answers. Raises NotSent when the crawl closes, which FRONTIER_PATIENCE bounds."""
        import redis.exceptions  # noqa: PLC0415 - only a shared crawl needs its client

        while True:
            try:
                site = await self.scripts.ask(self.keys, **step)
            except redis.exceptions.RedisError as error:
                self.failed(error)
            else:
                self.reached(site)
                return site
            if not await self.sleep(_RETRY_SECONDS):
                raise NotSent

    async def close(self) -> None:
        """Wait for reports on their way to Redis, and disconnect."""
        if self._reports:
            await asyncio.wait(self._reports, timeout=_RETRY_SECONDS)
        await self.client.aclose()
