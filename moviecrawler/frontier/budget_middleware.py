"""Delays each request until its site's budget (SITE_BUDGETS) allows it, and knows which sites have refused us."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from functools import partial
from math import ceil, inf
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

from scrapy import signals
from scrapy.exceptions import NotConfigured

from moviecrawler.clock import utc_now, utc_text
from moviecrawler.frontier.budgets import UNLIMITED, SiteReply, site_budget, until_next_day
from moviecrawler.frontier.engine import NOT_SENT, NotSent, end_crawl, is_closing

if TYPE_CHECKING:
    from typing import Self

    from scrapy import Request
    from scrapy.crawler import Crawler

    from moviecrawler.frontier.budgets import Budget
    from moviecrawler.items import Site

logger = logging.getLogger(__name__)

_CHECK_SECONDS = 0.25
"""Seconds between two checks whether the crawl closes, while a request waits."""
_RETRY_SECONDS = 1.0
"""Seconds until Redis is tried again after a failure."""


class LocalBudget:
    """The budget of one process.

    The count of the day is a file, so that all processes with one folder share it.
    """

    def __init__(self, site: Site, folder: Path, budget: Budget) -> None:
        self._site = site
        self._folder = folder
        self._budget = budget
        self._next = 0.0  # when the next request may be sent, by the monotonic clock

    async def ask(self, *, charge: bool = False) -> SiteReply:
        """Tell whether the site may be asked, and charge a request."""
        now = utc_now()
        per_day = self._budget.per_day
        path = (
            self._folder / f"requests-{self._site}-{now:%Y-%m-%d}"
        )  # has a byte for each request of the day
        used = path.stat().st_size if path.exists() else 0
        if not charge:
            return SiteReply(used=used)
        if per_day is not None:
            if not used:
                for old in path.parent.glob(f"requests-{self._site}-*"):
                    old.unlink(missing_ok=True)
            with path.open("ab", buffering=0) as file:
                file.write(b".")
                used = file.tell()  # each process appends, so the position counts for all
            if used > per_day:
                return SiteReply(
                    blocked=ceil(until_next_day(now).total_seconds() * 1000), spent=True, used=used
                )
        start = max(self._next, monotonic())
        self._next = start + 1 / (self._budget.per_second or inf)
        return SiteReply(delay=ceil(1000 * (start - monotonic())), used=used)


class BudgetMiddleware:
    """Downloader middleware that has each request to the spider's site wait for the budget, retries and redirects included.

    With Redis, all workers share the budget, and what the site has refused. Without it the budget
    is that of this process; processes with one DATA_DIR share the day's count.
    """

    def __init__(self, crawler: Crawler, budget: Budget) -> None:
        settings = crawler.settings
        self.crawler = crawler
        self.budget = budget
        self.site: Any = crawler.spidercls.site  # type: ignore[attr-defined]
        self.client: Any = None
        """The client of Redis, of a crawl with REDIS_URL."""
        self._refusals: dict[str, str] = {}  # why sites may not be asked
        # The probe is the one request that finds out whether the site answers again.
        self._may_probe = self._probing = (
            False  # whether the next request may be it; whether it waits for its answer
        )
        self._lock = (
            asyncio.Lock()
        )  # one request at a time is charged and waits, so that they leave one by one
        self._patience = settings.getfloat("FRONTIER_PATIENCE")
        self._failing_since: float | None = None
        self._reports: set[asyncio.Task[None]] = set()
        self._redis_errors: Any = ()
        if not settings.get("REDIS_URL"):
            self._ask_site: Any = LocalBudget(self.site, Path(settings["DATA_DIR"]), budget).ask
            return
        import redis.exceptions  # noqa: PLC0415 - only a shared crawl needs Redis' client

        from moviecrawler.frontier.keys import SiteKeys  # noqa: PLC0415 - with the client
        from moviecrawler.frontier.queue import Scripts  # noqa: PLC0415 - imports the client
        from moviecrawler.redis_client import connect  # noqa: PLC0415 - as above

        self.client = connect(settings["REDIS_URL"])
        self.keys = SiteKeys(self.site, settings["REDIS_START_URLS_KEY"])
        self.scripts: Scripts = Scripts(self.client, budget)
        self._ask_site = partial(self.scripts.ask, self.keys)
        self._redis_errors = redis.exceptions.RedisError
        crawler.signals.connect(self.close, signals.engine_stopped)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Read SITE_BUDGETS, REDIS_URL, FRONTIER_PATIENCE and DATA_DIR."""
        if not hasattr(crawler.spidercls, "site"):
            raise NotConfigured  # `scrapy replay` has a spider without a site
        return cls(crawler, site_budget(crawler.settings, crawler.spidercls.site))

    async def process_request(self, request: Request) -> None:
        """Wait for the budget.

        Raises NotSent when the crawl ends before the request may be sent.
        """
        is_charged = self._may_probe or self.budget != UNLIMITED
        if is_charged and request.meta.get("site") == self.site and not await self.take():
            request.meta[NOT_SENT] = True
            raise NotSent

    async def take(self) -> bool:
        """Charge a request and wait until it may be sent; return False when the crawl ends before that."""
        spider: Any = self.crawler.spider
        async with self._lock:
            with suppress(NotSent):
                while not is_closing(self.crawler.engine):
                    site = await self._ask(charge=True)
                    if not site.blocked:
                        return await self._sleep(site.delay / 1000)
                    if self.client is not None or spider.plan.lane is not None:
                        # The frontier, or the catalogue, knows what is still to be fetched.
                        return False
                    until = utc_text((now := utc_now()) + until_next_day(now))
                    message = "%d requests to %s are the budget of the day, which is spent: the crawl waits until %s and goes on"
                    logger.warning(
                        message, self.budget.per_day, self.site, until, extra={"spider": spider}
                    )
                    await self._sleep(site.blocked / 1000)
            return False

    async def left_today(self) -> int | None:
        """Return how many requests the budget of the day still allows; None for any number."""
        per_day = self.budget.per_day
        return None if per_day is None else max(0, per_day - (await self._ask()).used)

    async def ask_refusal(self) -> str | None:
        """Return why the spider's site may not be asked, as any worker knows; None when it may."""
        await self._ask()
        return self.refusal(self.site)

    def refusal(self, site: str) -> str | None:
        """Return why a site may not be asked, as far as it is known here; None when it may."""
        return self._refusals.get(site)

    def refused(self, site: str, reason: str, pause: float) -> None:
        """Note that a site has refused us.

        This process asks it nothing more, or with Redis nobody for `pause` seconds.
        """
        self._refusals[site] = reason
        self._report(site, refusal=(reason, round(pause * 1000)))

    def answered(self, site: str) -> None:
        """Let all workers ask the site again if the answer is to the probe, not to a request sent before the refusal."""
        if self._probing:
            self._report(site, answered=True)

    def _report(self, site: str, **step: Any) -> None:
        async def report() -> None:
            with suppress(NotSent):
                await self._ask(**step)

        if self.client is not None and site == self.site:
            self._probing = False
            task = asyncio.get_running_loop().create_task(report())
            self._reports.add(task)
            task.add_done_callback(self._reports.discard)

    async def _ask(self, **step: Any) -> SiteReply:
        """Ask whether the site may be asked, until Redis answers.

        Raises NotSent when the crawl closes before that.
        """
        while True:
            try:
                site: SiteReply = await self._ask_site(**step)
            except self._redis_errors as error:
                self.failed(error)
            else:
                if self.client is not None:
                    self.reached(site)
                return site
            if not await self._sleep(_RETRY_SECONDS):
                raise NotSent

    def reached(self, site: SiteReply) -> bool:
        """Note that Redis answers, and what it says of the site; return whether the site may be asked, or the probe is under way."""
        self._failing_since = None
        if (
            not self._reports
        ):  # otherwise the answer may be older than what this worker is about to tell
            self._may_probe = site.half_open
            self._probing = site.probing or (self._probing and site.blocked > 0)
            self._refusals.pop(self.site, None)
            if site.blocked and not site.spent and not self._probing:
                self._refusals[self.site] = site.reason
        return not site.blocked or self._probing or bool(self._reports)

    def failed(self, error: Exception) -> None:
        """Note that Redis can't be used, and end the crawl when that lasts longer than FRONTIER_PATIENCE."""
        now = asyncio.get_running_loop().time()
        self.crawler.stats.inc_value("frontier/errors")
        if self._failing_since is None:
            self._failing_since = now
            logger.warning(
                "Redis can't be used: %s; trying again",
                error,
                extra={"spider": self.crawler.spider},
            )
        if now - self._failing_since >= self._patience:
            end_crawl(
                self.crawler,
                "frontier_unreachable",
                f"Redis could not be used for {self._patience:g} s",
            )

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
        """Wait for reports on their way to Redis, and disconnect."""
        if self._reports:
            await asyncio.wait(self._reports, timeout=_RETRY_SECONDS)
        await self.client.aclose()
