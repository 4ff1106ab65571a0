"""Sends alerts about what is wrong with a crawl, when it is over."""

from __future__ import annotations

import asyncio
import logging
import threading
from contextlib import suppress
from typing import TYPE_CHECKING

from scrapy.exceptions import NotConfigured

from moviecrawler.monitors.actions import chosen_actions
from moviecrawler.signals import summary_written

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Self

    from scrapy.crawler import Crawler

logger = logging.getLogger(__name__)

_TIMEOUT_SECONDS = 60.0
"""The time that all monitors and actions may take."""


class Alerts:
    """Run the monitors of `monitors/suite.py` in a thread at the end of a crawl.

    They run only if an action is switched on.
    """

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Read SPIDERMON_ENABLED, and the settings that switch actions on."""
        settings = crawler.settings
        if not (settings.getbool("SPIDERMON_ENABLED") and chosen_actions(settings)):
            raise NotConfigured
        alerts = cls(crawler)
        crawler.signals.connect(alerts.summary_written, summary_written)
        return alerts

    async def summary_written(self, lines: Sequence[str]) -> None:
        """Run the monitors, and wait for their actions for a minute at most."""
        loop = asyncio.get_running_loop()
        is_over = asyncio.Event()

        def work() -> None:
            # Imports Spidermon, which takes long.
            from moviecrawler.monitors.suite import run_suite  # noqa: PLC0415

            try:
                run_suite(self._crawler, lines)
            except Exception as error:  # noqa: BLE001
                # Spidermon raises many kinds of errors; their texts may hold secrets.
                logger.error(  # noqa: TRY400
                    "The alerts of this crawl could not be sent: %s", type(error).__name__
                )
            with suppress(RuntimeError):  # the loop has ended meanwhile
                loop.call_soon_threadsafe(is_over.set)

        # A daemon thread lets the process end while an action hangs.
        threading.Thread(target=work, name="alerts", daemon=True).start()
        try:
            async with asyncio.timeout(_TIMEOUT_SECONDS):
                await is_over.wait()
        except TimeoutError:
            logger.error(  # noqa: TRY400
                "The alerts of this crawl could not be sent within %.0f s", _TIMEOUT_SECONDS
            )
