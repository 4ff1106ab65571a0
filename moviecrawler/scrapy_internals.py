"""Everything private that is used of Scrapy, Scrapyd and Twisted, and every change made to them.

Each part says why. `tests/test_scrapy_internals.py` fails when a new version changes what a part
relies on.
"""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING

from scrapy.downloadermiddlewares.httpcompression import HttpCompressionMiddleware
from scrapy.utils._compression import _DecompressionMaxSizeExceeded

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Callable

    from scrapy import Request
    from scrapy.commands import ScrapyCommand
    from scrapy.core.engine import ExecutionEngine
    from scrapy.crawler import Crawler
    from scrapy.settings import BaseSettings
    from twisted.web.http import HTTPChannel
    from twisted.web.http import Request as HttpRequest

logger = logging.getLogger(__name__)

CHECK_SECONDS = 0.1
"""Seconds between two checks whether a crawl has closed."""
PROXY_META = ("proxy", "_auth_proxy", "_scheme_proxy", "download_slot")
"""Keys of `meta` that Scrapy's proxy middleware and downloader set for one attempt. They are
removed after it, as the next attempt may be sent through another proxy."""
_CLOSINGS: dict[ExecutionEngine, asyncio.Future[None]] = {}
"""What has begun to close a spider, by its engine: asyncio itself keeps no task from being
collected."""


# --- The engine -----------------------------------------------------------------------------------
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
    engine = crawler.engine
    # The engine closes a moment later, when pages that came at the same time may have been read.
    if engine in _CLOSINGS or is_closing(engine):
        return
    if why:
        crawler.stats.set_value("crawl/cause", why)
        logger.error("%s", why, extra={"spider": crawler.spider})
    closing = asyncio.ensure_future(engine.close_spider_async(reason=reason))
    _CLOSINGS[engine] = closing
    closing.add_done_callback(lambda _: _CLOSINGS.pop(engine))


def describe_error(error: BaseException) -> str:
    """Return in one line why a request got no response.

    Scrapy takes over the text of Twisted's ResponseFailed, which is a list of failures in the form
    of code. The messages of these failures are better.
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
        """Number of requests in the downloader, and of responses in callbacks and pipelines."""
        return len(self._slot.inprogress)

    def wake(self) -> None:
        """Make the engine request the next ones now.

        It does so automatically when a request ends, and every 5 seconds.
        """
        self._slot.nextcall.schedule()

    def abandon(self) -> None:
        """Let a closing spider close without waiting for the requests in progress."""
        self._slot.inprogress.clear()
        if self._slot.closing is not None and not self._slot.closing.called:
            self._slot._maybe_fire_closing()  # noqa: SLF001 - see above


# --- Commands -------------------------------------------------------------------------------------


def commands_of(settings: BaseSettings) -> dict[str, ScrapyCommand]:
    """Return the commands of a project, by name."""
    # Every caller has imported it.
    from scrapy.cmdline import _get_commands_dict  # noqa: PLC0415

    return _get_commands_dict(settings, inproject=True)


def check_options(check: Callable[[ScrapyCommand, Namespace, Callable[[], None]], None]) -> None:
    """Have `check` see the options of every command, also of Scrapy's own.

    It is given the command, the options, and a function that has Scrapy process these. What it
    raises as a UsageError is a sentence with exit code 2; Scrapy has no other place for that before
    it sets up the log.
    """
    from scrapy.commands import ScrapyCommand  # noqa: PLC0415 - only commands need it

    process = ScrapyCommand.process_options

    def process_options(self: ScrapyCommand, args: list[str], opts: Namespace) -> None:
        check(self, opts, lambda: process(self, args, opts))

    ScrapyCommand.process_options = process_options  # type: ignore[method-assign]


# --- The crawler and its extensions ---------------------------------------------------------------


class _AnnouncedStop:
    """Replaces the `stop_async` of a crawler."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._stop = crawler.stop_async
        self.listeners: list[Callable[[], object]] = []

    async def __call__(self) -> None:
        for announce in self.listeners:
            announce()
        while (  # noqa: ASYNC110 - Scrapy has no event for it
            self._crawler.crawling
            and self._crawler.engine.running
            and is_closing(self._crawler.engine)
        ):
            await asyncio.sleep(CHECK_SECONDS)
        await self._stop()


def announce_end(crawler: Crawler, announce: Callable[[], object]) -> None:
    """Call `announce` at SIGINT or SIGTERM, also while the crawl closes, and let it close then.

    Otherwise Scrapy stops the engine at once, and the process ends before the last items are
    stored. Scrapy has no signal for it.
    """
    if not isinstance(crawler.stop_async, _AnnouncedStop):
        crawler.stop_async = _AnnouncedStop(crawler)  # type: ignore[method-assign]
    crawler.stop_async.listeners.append(announce)


def measure_own_memory() -> None:
    """Make Scrapy's extension MemoryUsage report the most bytes that this process has used.

    Its own figure starts with the memory of the node that spawned the process. Linux only.
    """
    from scrapy.extensions.memusage import MemoryUsage  # noqa: PLC0415 - only jobs of a node do

    MemoryUsage.get_virtual_size = _peak_memory  # type: ignore[assignment, method-assign]


def _peak_memory(_: object) -> int:
    status = Path("/proc/self/status").read_text("utf-8")
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024


# --- The downloader -------------------------------------------------------------------------------


class DecodingMiddleware(HttpCompressionMiddleware, ABC):
    """Scrapy's middleware, with bodies decoded by `decode`.

    Scrapy decodes in steps of 10 kB, accepts the readable part of a damaged body as the whole, and
    has no setting for either.
    """

    @abstractmethod
    def decode(self, body: bytes, encoding: bytes, max_size: int) -> bytes:
        """Return a body that was sent with this Content-Encoding.

        Raises the error of `too_large` for a body of more than `max_size` bytes (0: no limit).
        """

    def _handle_encoding(
        self, body: bytes, content_encoding: list[bytes], max_size: int
    ) -> tuple[bytes, list[bytes]]:
        encoding = b", ".join(content_encoding).strip().lower()
        return self.decode(body, encoding, max_size), []


def too_large(size: int, max_size: int) -> ValueError:
    """Return the error by which Scrapy's middleware ignores a body of that many bytes."""
    return _DecompressionMaxSizeExceeded(size, max_size)


def tunnel_status(exception: Exception) -> str:
    """Return the status with which a proxy refused a tunnel; "" for any other error.

    It is taken from the message of Scrapy's TunnelError, as Scrapy keeps it nowhere else.
    """
    # It is imported by then where there is a tunnel.
    from scrapy.core.downloader.handlers.http11 import TunnelError  # noqa: PLC0415

    if not isinstance(exception, TunnelError):
        return ""
    status = str(exception).partition("'status': ")[2][:3]
    return status if status.isascii() and status.isdigit() else ""


# --- Twisted's web server -------------------------------------------------------------------------


def make_requests_by(app: object, make: type[HttpRequest]) -> None:
    """Have the web server of Scrapyd's application make its requests by `make`."""
    from twisted.application.internet import TCPServer  # noqa: PLC0415 - of a node alone
    from twisted.application.service import IServiceCollection  # noqa: PLC0415 - as above

    for service in IServiceCollection(app):  # type: ignore[misc]  # an interface of zope's
        if isinstance(service, TCPServer):
            service.args[1].requestFactory = make


def method_and_path(channel: HTTPChannel) -> tuple[bytes, bytes]:
    """Return the method and the path of the request whose headers a channel has just read.

    The request itself gets them when its body has come.
    """
    # Twisted takes the path's type from another variable of the same name.
    return channel._command, channel._path  # type: ignore[return-value]  # noqa: SLF001 - see above


def parse_forms(request: HttpRequest, *, is_now: bool) -> None:
    """Have Twisted parse a request's form in the event loop, or not at all."""
    request._parsePOSTFormSubmission = is_now  # noqa: SLF001 - see above
