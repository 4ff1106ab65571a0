"""When the next request to a site may be sent: by SITE_BUDGETS, and by what its circuit says."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scrapy import signals
from scrapy.exceptions import NotConfigured

from moviecrawler.clock import utc_now, utc_text
from moviecrawler.frontier.budgets import begin_of_day, site_budget, until_next_day
from moviecrawler.frontier.circuit import Circuit, SharedCircuit
from moviecrawler.frontier.engine import NOT_SENT, NotSent, is_closing

if TYPE_CHECKING:
    from typing import Self

    from scrapy import Request
    from scrapy.crawler import Crawler

    from moviecrawler.frontier.budgets import Budget
    from moviecrawler.frontier.queue import Scripts, Turn

logger = logging.getLogger(__name__)

TURN_TAKEN = "turn_taken"
"""In the `meta` of a request that the shared queue has charged to the budget already."""
_CHECK_SECONDS = 0.25
"""Seconds between two looks whether the crawl closes, while a request waits for its turn."""
_RETRY_SECONDS = 1.0
_PROBE_SECONDS = 60.0


class Turns:
    """Gives each request its turn. This one keeps the budget for this process, and shares the day's count by a file in DATA_DIR."""

    def __init__(self, crawler: Crawler, budget: Budget) -> None:
        self.crawler = crawler
        self.budget = budget
        self.site: Any = crawler.spidercls.site  # type: ignore[attr-defined]
        self.circuit = Circuit()
        self._next = 0.0  # when the next request may be sent, by the event loop's clock
        self._is_told = False

    @property
    def _file(self) -> Path:
        """The file of today, which has a byte for each request: appending counts for all processes that share DATA_DIR."""
        return Path(self.crawler.settings["DATA_DIR"]) / f"requests-{self.site}-{utc_now():%Y-%m-%d}"

    @property
    def _is_due(self) -> bool:
        spider: Any = self.crawler.spider
        return spider.plan.lane is not None

    async def left_today(self) -> int | None:
        """Return how many requests the budget of the day still allows; None for any number."""
        if self.budget.per_day is None:
            return None
        return max(0, self.budget.per_day - (self._file.stat().st_size if self._file.exists() else 0))

    async def refusal(self) -> str | None:
        """Return why the site may not be asked, as far as it is known now; None when it may."""
        return self.circuit.refusal(self.site)

    async def take(self) -> bool:
        """Wait for the turn of a request; return whether it may be sent, which it may not when the crawl closes."""
        while not self._count():
            # The catalogue keeps what is due, and this crawl ends.
            if self._is_due or not await self._wait(until_next_day(utc_now()).total_seconds()):
                return False
        if self.budget.per_second is None:
            return True
        now, gap = asyncio.get_running_loop().time(), 1 / self.budget.per_second
        start = max(self._next, now - (self.budget.burst - 1) * gap)
        self._next = start + gap
        return await self._sleep(start - now)

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
            return file.tell() <= self.budget.per_day  # as many as were appended before, by whatever process

    async def _wait(self, seconds: float) -> bool:
        if not self._is_told:
            self._is_told = True
            until = utc_text(begin_of_day(utc_now()).timestamp() + 86_400)
            message = (
                "%d requests to %s are the budget of the day, which is spent: the crawl waits until %s and goes on"
            )
            logger.warning(message, self.budget.per_day, self.site, until, extra={"spider": self.crawler.spider})
        is_open = await self._sleep(seconds)
        self._is_told = False
        return is_open

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
        """Free what it holds."""


class SharedTurns(Turns):
    """Turns that all workers share through Redis."""

    def __init__(self, crawler: Crawler, budget: Budget) -> None:
        from moviecrawler.frontier.keys import SiteKeys  # noqa: PLC0415 - with Redis' client
        from moviecrawler.frontier.queue import Scripts  # noqa: PLC0415 - imports Redis' client
        from moviecrawler.redis_client import connect  # noqa: PLC0415 - as above

        super().__init__(crawler, budget)
        settings = crawler.settings
        self.client = connect(settings["REDIS_URL"])
        self.keys = SiteKeys(self.site, settings["REDIS_START_URLS_KEY"])
        self.scripts: Scripts = Scripts(self.client, budget, _PROBE_SECONDS)
        self.circuit: SharedCircuit = SharedCircuit(self.site, self._report)
        self.used = 0
        self._reports: set[asyncio.Task[None]] = set()

    async def left_today(self) -> int | None:
        """Return how many requests the budget of the day still allows; None for any number."""
        used = (await self._ask()).used
        return None if self.budget.per_day is None else max(0, self.budget.per_day - used)

    async def refusal(self) -> str | None:
        """Return why the site may not be asked, as Redis knows now; None when it may."""
        await self._ask()
        return self.circuit.refusal(self.site)

    async def take(self) -> bool:
        """Wait for the turn of a request; return whether it may be sent: not while the site refuses us, or when the day is spent."""
        while True:
            turn = await self._ask(turn=True)
            if turn.shut:
                return not turn.spent  # a block ends the request with its own error
            return await self._sleep(turn.delay / 1000)

    async def _ask(self, **step: Any) -> Turn:
        """Run the script until Redis answers, or the crawl closes: at the latest after FRONTIER_PATIENCE. Raises NotSent."""
        import redis.exceptions  # noqa: PLC0415 - only a shared crawl needs its client

        loop = asyncio.get_running_loop()
        failing_since: float | None = None
        while True:
            try:
                turn = await self.scripts.turn(self.keys, **step)
            except redis.exceptions.RedisError as error:
                if failing_since is None:
                    failing_since = loop.time()
                    logger.warning(
                        "Redis can't be used: %s; trying again", error, extra={"spider": self.crawler.spider}
                    )
                patience = self.crawler.settings.getfloat("FRONTIER_PATIENCE")
                if loop.time() - failing_since >= patience and not is_closing(self.crawler.engine):
                    message = "Redis could not be used for %g s"
                    logger.error(message, patience, extra={"spider": self.crawler.spider})  # noqa: TRY400 - a sentence says it
                    closing = self.crawler.engine.close_spider_async(reason="frontier_unreachable")
                    self._closing = loop.create_task(closing)
                    await asyncio.sleep(0)  # it begins to close
            else:
                self.circuit.update(shut=turn.shut, reason=turn.reason, spent=turn.spent, probing=turn.probing)
                return turn
            if not await self._sleep(_RETRY_SECONDS):
                raise NotSent

    def _report(self, refusal: tuple[str, int] | None) -> None:
        self.circuit.reporting = True

        async def report() -> None:
            try:
                await self._ask(refusal=refusal, answered=refusal is None)
            except NotSent:
                return
            finally:
                self.circuit.reporting = bool(self._reports - {asyncio.current_task()})

        task = asyncio.get_running_loop().create_task(report())
        self._reports.add(task)
        task.add_done_callback(self._reports.discard)

    async def close(self) -> None:
        """Wait for what is being reported, and disconnect."""
        if self._reports:
            await asyncio.wait(self._reports, timeout=_RETRY_SECONDS)
        await self.client.aclose()


class TurnsMiddleware:
    """Downloader middleware: a request to the spider's site waits for its turn, retries and redirects included."""

    def __init__(self, turns: Turns) -> None:
        self.turns = turns

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Read SITE_BUDGETS, REDIS_URL and DATA_DIR."""
        if not hasattr(crawler.spidercls, "site"):
            raise NotConfigured  # such as `scrapy replay`, which asks no site
        budget = site_budget(crawler.settings, crawler.spidercls.site)
        turns = (SharedTurns if crawler.settings.get("REDIS_URL") else Turns)(crawler, budget)
        crawler.signals.connect(turns.close, signals.engine_stopped)
        return cls(turns)

    async def process_request(self, request: Request) -> None:
        """Wait. Raises NotSent when the request's turn does not come in this crawl."""
        if request.meta.get("site") != self.turns.site or request.meta.pop(TURN_TAKEN, False):
            return
        if not await self.turns.take():
            request.meta[NOT_SENT] = True
            raise NotSent
