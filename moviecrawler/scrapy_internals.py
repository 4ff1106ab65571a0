"""What this package uses of Scrapy's engine and that is private there, and of Twisted.

The tests of whole crawls fail when a new version of Scrapy changes it.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from scrapy import Request
    from scrapy.core.engine import ExecutionEngine
    from scrapy.crawler import Crawler

logger = logging.getLogger(__name__)

_TASKS: set[asyncio.Future[None]] = set()  # asyncio itself keeps no task from being collected


def is_closing(engine: ExecutionEngine | None) -> bool:
    """Return whether the engine has begun to end its crawl."""
    if engine is None or engine.spider is None:
        return False
    slot = engine._slot  # noqa: SLF001 - see above
    return not engine.running or slot is None or slot.closing is not None


def describe_requests(engine: ExecutionEngine | None) -> str:
    """Return in words what the engine's requests wait for, and how many.

    It is empty when the engine has none.
    """
    if engine is None or engine.scraper.slot is None:
        return ""
    slots = engine.downloader.slots.values()
    sent = sum(len(slot.transferring) for slot in slots)
    queued = sum(len(slot.queue) for slot in slots)
    waits = {
        "an answer": sent,
        "a turn at their host": queued,
        "robots.txt, the budget or another try": len(engine.downloader.active) - sent - queued,
        "a callback or a store": len(engine.scraper.slot.active),
    }
    return "; ".join(f"for {what}: {count}" for what, count in waits.items() if count)


def end_crawl(crawler: Crawler, reason: str, why: str = "") -> None:
    """Begin to close the spider for a reason, unless it is closing; log `why` as an error.

    The stat `crawl/cause` has it, too.
    """
    if not is_closing(crawler.engine):
        if why:
            crawler.stats.set_value("crawl/cause", why)
            logger.error("%s", why, extra={"spider": crawler.spider})
        task = asyncio.ensure_future(crawler.engine.close_spider_async(reason=reason))
        _TASKS.add(task)
        task.add_done_callback(_TASKS.discard)


def describe_error(error: BaseException) -> str:
    """Return in one line why a request got no answer.

    Scrapy takes over the text of Twisted's ResponseFailed, which is a list of failures in the form
    of code. What these say is better.
    """
    reasons = getattr(error.__cause__, "reasons", [])
    texts = [reason.getErrorMessage().rstrip(".") for reason in reasons] or [str(error)]
    text = "; ".join(filter(None, texts))
    return f"{type(error).__name__}: {text}".partition("\n")[0].rstrip(": .")


class EngineSlot:
    """The engine's slot: the requests that are in progress."""

    def __init__(self, engine: ExecutionEngine) -> None:
        # It is there when the scheduler is opened.
        assert engine._slot is not None  # noqa: S101, SLF001
        self._slot = engine._slot  # noqa: SLF001 - see above

    def on_request_ended(self, ended: Callable[[Request], None]) -> None:
        """Call `ended` with each request that has left the engine.

        Then its callback has ended and its items have passed the pipelines, or a retry or a
        redirect has replaced it.
        """
        remove = self._slot.remove_request

        def remove_request(request: Request) -> None:
            if request in self._slot.inprogress:  # False when it was abandoned
                # This comes first, as removing the last request of a closing spider closes it.
                ended(request)
                remove(request)

        self._slot.remove_request = remove_request  # type: ignore[method-assign]

    @property
    def in_progress(self) -> int:
        """How many requests are in the downloader, or their answers in callbacks and pipelines."""
        return len(self._slot.inprogress)

    def wake(self) -> None:
        """Make the engine ask for requests now.

        By itself it asks when a request ends, and every 5 seconds.
        """
        self._slot.nextcall.schedule()

    def abandon(self) -> None:
        """Let a closing spider close without waiting for the requests in progress."""
        self._slot.inprogress.clear()
        if self._slot.closing is not None and not self._slot.closing.called:
            self._slot._maybe_fire_closing()  # noqa: SLF001 - see above
