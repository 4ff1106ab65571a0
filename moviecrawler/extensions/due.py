"""Gives `lane=due` its titles, which each worker claims from the catalogue in small batches."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from scrapy import signals
from scrapy.exceptions import CloseSpider

from moviecrawler.catalogue import claims
from moviecrawler.clock import utc_now, utc_text
from moviecrawler.errors import TransientStoreError
from moviecrawler.extensions.catalogue import CatalogueRecorder
from moviecrawler.politeness.budgets import until_next_day
from moviecrawler.politeness.gate import Closed
from moviecrawler.politeness.middleware import politeness_of
from moviecrawler.signals import item_passed

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from scrapy import Request

    from moviecrawler.catalogue.claims import Claim
    from moviecrawler.politeness.gate import Closure

logger = logging.getLogger(__name__)

DATASET_BATCH = 100_000
"""Titles that are claimed for one pass over IMDb's datasets, which takes the same time for any
number."""

_POLL_SECONDS = 0.25
"""Seconds between two looks at how much is left to fetch."""
_MORE_POLL_SECONDS = 1.0
"""Seconds between two looks at whether more may be claimed today."""
_IDLE_POLL_SECONDS = 5.0
"""Seconds between two looks at whether a title has become due."""
_MAX_PAUSE_SECONDS = 30.0


class DueTitles:
    """Yields requests of due titles, as fast as they are fetched, until nothing is due.

    The spider is a `MovieSpider`.
    """

    def __init__(self, spider: Any) -> None:
        recorder = spider.crawler.get_extension(CatalogueRecorder)
        assert recorder is not None  # noqa: S101 - MovieSpider.check has seen to it
        self.spider = spider
        self.recorder = recorder
        spider.crawler.signals.connect(recorder.item_passed, item_passed)
        self.options = recorder.options
        self._asked = 0
        self._has_told_of_budget = False
        # Whether this worker may have claims that it does not know.
        self._last_claim_unconfirmed = False
        self.gate = politeness_of(spider.crawler).gate

    async def requests(self) -> AsyncIterator[Request]:
        """Yield requests until the limit is reached, or nothing may be fetched for a while.

        The while is CATALOGUE_IDLE seconds. Nothing may be fetched when nothing is due, or the
        budget of the day is spent. A refusal ends it at once.
        """
        idle = 0.0
        pause = _POLL_SECONDS
        limit = self.spider.plan.limit
        while (limit is None or self._asked < limit) and not self.recorder.closed:
            try:
                await self._release()
                await self.recorder.flush()  # outcomes decide what is due
                closure = await self._closure()
                if closure is not None and closure.kind == "refused":
                    self._end_as("site_stopped", closure.sentence)
                    return
                budget = await self._budget_left()
                if budget == 0 and await self._day_is_over():
                    return
                if budget == 0 or closure is not None:
                    await asyncio.sleep(_MORE_POLL_SECONDS)
                    continue
                claimed, more = await self._claim(budget)
                pause = _POLL_SECONDS
            except Closed:
                return  # Redis was away for too long, and the crawl closes
            except TransientStoreError as error:
                if self.recorder.closed:
                    return
                self._last_claim_unconfirmed = True
                logger.warning(
                    "The catalogue can't be asked now, and will be tried again: %s", error
                )
                await asyncio.sleep(pause)
                pause = min(2 * pause, _MAX_PAUSE_SECONDS)
                continue
            if claimed:
                idle = 0.0
                self._has_told_of_budget = False
                async for request in self.spider.requests_of_claims(claimed):
                    yield request
                while self._is_full():  # noqa: ASYNC110 - the engine has no event for it
                    await asyncio.sleep(_POLL_SECONDS)
            elif more:
                await asyncio.sleep(_POLL_SECONDS)
            elif idle < self.options.idle:
                await asyncio.sleep(min(_IDLE_POLL_SECONDS, self.options.idle))
                idle += min(_IDLE_POLL_SECONDS, self.options.idle)
            else:
                await self._log_claims_of_others()
                return

    async def _log_claims_of_others(self) -> None:
        with suppress(TransientStoreError):
            number, until = await self.recorder.call(
                claims.claimed_by_others,
                self.spider.site,
                worker=self.recorder.worker,
                now=utc_now(),
            )
            if until is not None:
                message = (
                    "%d titles of %s are claimed by other workers, or by ones that were killed: "
                    "until %s at most"
                )
                logger.info(
                    message,
                    number,
                    self.spider.site,
                    utc_text(until),
                    extra={"spider": self.spider},
                )

    async def _closure(self) -> Closure | None:
        """Return why the site is not asked, besides the budget of the day; None when it is."""
        if self.spider.uses_datasets:
            return None
        await self.gate.ask()
        closure = self.gate.closure
        return closure if closure is not None and closure.kind != "budget_spent" else None

    # --- The budget of the day --------------------------------------------------------------------

    async def _budget_left(self) -> int | None:
        """Return how many titles can be fetched today and within half a claim's lease.

        Returns None for any number.
        """
        if self.spider.uses_datasets:
            return None
        left = await self.gate.left_today()
        per_second = self.gate.terms.budget.per_second
        limits = [] if left is None else [left]
        if per_second is not None:
            limits.append(max(1, int(per_second * self.options.lease / 2)))
        return max(0, min(limits) - len(self.recorder.fetching)) if limits else None

    async def _day_is_over(self) -> bool:
        """Return whether to end, as today's budget is spent.

        The next day is then too far away to wait for.
        """
        if await self.gate.left_today() != 0:
            return False  # requests under way will use up the rest
        reason = f"today's budget of {self.spider.site} is spent; the next day begins at 00:00 UTC"
        if not self._has_told_of_budget:
            self._has_told_of_budget = True
            logger.info("Nothing is claimed: %s", reason, extra={"spider": self.spider})
        if until_next_day(utc_now()).total_seconds() <= self.options.idle:
            return False
        self._end_as("budget_spent", reason)
        return True

    def not_sent(self, title_id: int) -> None:
        """Give back a title whose request was not sent, as the site is closed.

        Its claim does not count.
        """
        self.recorder.fetching.discard(title_id)
        self.recorder.claimed_ids.discard(title_id)
        self._last_claim_unconfirmed = True

    def _end_as(self, reason: str, why: str) -> None:
        """End the crawl once it is idle."""
        self.spider.crawler.stats.set_value("crawl/cause", why)

        def end() -> None:
            raise CloseSpider(reason)

        self.spider.crawler.signals.connect(end, signals.spider_idle, weak=False)

    async def _release(self) -> None:
        """Release claims that got no answer from the database.

        Claims on titles whose requests were not sent are released, too.
        """
        if self._last_claim_unconfirmed:
            await self.recorder.call(
                claims.release, self.recorder.worker, but=self.recorder.claimed_ids
            )
            self._last_claim_unconfirmed = False

    # --- Claims -----------------------------------------------------------------------------------

    async def _claim(self, budget: int | None) -> tuple[Sequence[Claim], bool]:
        """Return titles to fetch, within the budget.

        Also returns whether some may follow soon if there are none.
        """
        self.recorder.has_claimed = True
        size = DATASET_BATCH if self.spider.uses_datasets else self.options.batch
        if self.spider.plan.limit is not None:
            size = min(size, self.spider.plan.limit - self._asked)
        if budget is not None:
            size = min(size, budget)
        terms: dict[str, Any] = {
            "worker": self.recorder.worker,
            "lease": self.recorder.lease,
            "now": utc_now(),
        }
        site = self.spider.site
        found = await self.recorder.call(claims.claim, site, size, **terms)
        more = False
        if not found:
            size = min(size, self.options.batch)
            found, more = await self.recorder.call(claims.claim_unfound, site, size, **terms)
        self.recorder.claimed([claim.title_id for claim in found])
        self._asked += len(found)
        return found, more

    def _is_full(self) -> bool:
        """Return whether a whole batch is being fetched.

        With datasets no title waits for the site.
        """
        is_unlimited = self.spider.uses_datasets or self.recorder.closed
        return len(self.recorder.fetching) >= self.options.batch and not is_unlimited
