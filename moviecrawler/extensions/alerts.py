"""Sends alerts about what is wrong with a crawl, when it has finished."""

from __future__ import annotations

import asyncio
import logging
import threading
from concurrent.futures import Future
from typing import TYPE_CHECKING

from scrapy.exceptions import NotConfigured

from moviecrawler.extensions.checks import find_problems
from moviecrawler.extensions.messengers import NotSentError, messengers_of, silence_clients
from moviecrawler.signals import summary_written

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Self

    from scrapy.crawler import Crawler

    from moviecrawler.extensions.messengers import Messenger

logger = logging.getLogger(__name__)

_TIMEOUT_SECONDS = 60.0
"""Seconds that a crawl waits for its alerts to be sent."""


class Alerts:
    """Check a crawl at its end, and send one alert to each messenger if something is wrong."""

    def __init__(self, crawler: Crawler, messengers: Sequence[Messenger]) -> None:
        self._crawler = crawler
        self._messengers = messengers

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Read ALERT_WEBHOOK and ALERT_URLS."""
        get = crawler.settings.get
        messengers = messengers_of(get("ALERT_WEBHOOK", ""), get("ALERT_URLS", ""))
        if not messengers:
            raise NotConfigured("neither ALERT_WEBHOOK nor ALERT_URLS is set")
        alerts = cls(crawler, messengers)
        crawler.signals.connect(alerts.summary_written, summary_written)
        return alerts

    async def summary_written(self, lines: Sequence[str]) -> None:
        """Send what is wrong to all messengers at once."""
        problems = find_problems(self._crawler.stats.get_stats())
        if not problems:
            return
        silence_clients()
        title = f"{self._crawler.spidercls.name}: something is wrong"
        text = "\n".join([*(f"- {problem}" for problem in problems), "", *lines])
        await asyncio.gather(*(self._send(each, title, text) for each in self._messengers))

    async def _send(self, messenger: Messenger, title: str, text: str) -> None:
        extra = {"spider": self._crawler.spider}
        try:
            async with asyncio.timeout(_TIMEOUT_SECONDS):
                await asyncio.wrap_future(_start_sending(messenger, title, text))
        except Exception as error:  # noqa: BLE001 - a library's, whose text may hold a secret
            why = str(error) if isinstance(error, NotSentError) else type(error).__name__
            message = "The alert could not be sent to %s: %s"
            logger.error(message, messenger.name, why, extra=extra)  # noqa: TRY400
        else:
            logger.info("Sent an alert to %s", messenger.name, extra=extra)


def _start_sending(messenger: Messenger, title: str, text: str) -> Future[None]:
    """Send an alert in a daemon thread, which lets the process end while a service hangs."""
    sending: Future[None] = Future()
    sending.set_running_or_notify_cancel()  # a caller that stops waiting does not cancel it

    def send() -> None:
        try:
            messenger.send(title, text)
        except BaseException as error:  # noqa: BLE001 - handed to the caller
            sending.set_exception(error)
        else:
            sending.set_result(None)

    threading.Thread(target=send, name="alerts", daemon=True).start()
    return sending
