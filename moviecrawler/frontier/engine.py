"""What the scheduler and the stores need of Scrapy's engine and that has no public name.

Everything private is here. The tests of whole crawls fail when a new version of Scrapy changes it.
"""

from __future__ import annotations

import asyncio
import logging
from time import monotonic
from typing import TYPE_CHECKING

from scrapy.exceptions import IgnoreRequest

if TYPE_CHECKING:
    from collections.abc import Callable

    from scrapy import Request
    from scrapy.core.engine import ExecutionEngine
    from scrapy.crawler import Crawler

logger = logging.getLogger(__name__)

_TASKS: set[asyncio.Future[None]] = set()  # asyncio itself keeps no task from being collected


def is_closing(engine: ExecutionEngine | None) -> bool:
    """Return whether the engine has begun to end its crawl, whatever it still waits for."""
    if engine is None or engine.spider is None:
        return False
    return not engine.running or engine._slot is None or engine._slot.closing is not None  # noqa: SLF001 - see above


def under_way(engine: ExecutionEngine | None) -> str:
    """Return what the requests that the engine has taken wait for, with their numbers, in words; empty when it has taken none."""
    if engine is None or engine.scraper.slot is None:
        return ""
    slots = engine.downloader.slots
    # What has been taken and is at no host is between two middlewares.
    between = len(engine.downloader.active) - sum(len(slot.active) for slot in slots.values())
    waits: list[tuple[str, int, str]] = []
    for host, slot in slots.items():
        sent = f", the last sent {monotonic() - slot.lastseen:.0f} s ago"
        waits += [(f"an answer of {host}", len(slot.transferring), sent), (f"a turn at {host}", len(slot.queue), "")]
    waits += [
        ("robots.txt or another try", between, ""),
        ("a callback or a store", len(engine.scraper.slot.active), ""),
    ]
    return "; ".join(f"for {what}: {count}{more}" for what, count, more in waits if count)


def end_crawl(crawler: Crawler, reason: str, why: str = "") -> None:
    """Begin to close the spider for a reason, unless that has begun."""
    if not is_closing(crawler.engine):
        if why:
            logger.error("%s", why, extra={"spider": crawler.spider})
        task = asyncio.ensure_future(crawler.engine.close_spider_async(reason=reason))
        _TASKS.add(task)
        task.add_done_callback(_TASKS.discard)


NOT_SENT = "not_sent"
"""In the `meta` of a request that was not sent, as the budget of the day is spent or the crawl closes."""


class NotSent(IgnoreRequest):
    """The crawl stops, and the request was not sent. Its title stays to be done."""


def drop_unsent(engine: ExecutionEngine | None) -> None:
    """Have the requests that wait in the downloader's queue fail with NotSent, and send no more from there."""
    if engine is not None:
        for slot in engine.downloader.slots.values():
            slot.concurrency = 0
            while slot.queue:
                request, waiting, *_ = slot.queue.popleft()
                request.meta[NOT_SENT] = True
                waiting.errback(NotSent())


class EngineSlot:
    """The engine's account of what is in progress."""

    def __init__(self, engine: ExecutionEngine) -> None:
        assert engine._slot is not None  # noqa: S101, SLF001 - it is there when the scheduler is opened
        self._slot = engine._slot  # noqa: SLF001 - that is what this class is for

    def on_request_ended(self, ended: Callable[[Request], None]) -> None:
        """Call `ended` with each request that has left the engine.

        Its callback has run to its end and every item has passed the pipelines, or it was replaced by another request, such
        as a retry, which was scheduled before.
        """
        remove = self._slot.remove_request

        def remove_request(request: Request) -> None:
            if request in self._slot.inprogress:  # else it was abandoned
                # Before, as removing the last request of a closing spider goes on to close it.
                ended(request)
                remove(request)

        self._slot.remove_request = remove_request  # type: ignore[method-assign]

    def wake(self) -> None:
        """Have the engine ask for requests now; on its own it does so when a request ends, and every 5 seconds."""
        self._slot.nextcall.schedule()

    def abandon(self) -> None:
        """Let a closing spider close without the requests in progress, whatever becomes of them."""
        self._slot.inprogress.clear()
        if self._slot.closing is not None and not self._slot.closing.called:
            self._slot._maybe_fire_closing()  # noqa: SLF001 - see above
