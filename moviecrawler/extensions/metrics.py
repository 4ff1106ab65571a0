"""Hands a crawl's figures to its node, or adds them to its site's file.

Prometheus' node exporter reads the file.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import select
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from filelock import FileLock
from prometheus_client import CollectorRegistry, write_to_textfile
from scrapy import signals

from moviecrawler.basics.outages import Outage
from moviecrawler.cluster.figures import DESCRIPTOR, Totals, difference, samples_of, selected
from moviecrawler.politeness.gate import UNREACHABLE
from moviecrawler.signals import summary_written

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Self

    from scrapy.crawler import Crawler

    from moviecrawler.cluster.figures import Samples

logger = logging.getLogger(__name__)

_EVERY_SECONDS = 15.0
_LOCK_SECONDS = 5.0


class Metrics:
    """Reports the crawl's figures every 15 seconds, and once more with the summary at its end."""

    def __init__(self, crawler: Crawler, descriptor: int | None, folder: str) -> None:
        self._crawler = crawler
        self._site: str = crawler.spidercls.site  # type: ignore[attr-defined]
        self._descriptor = descriptor
        self._file = (
            Path(folder) / f"moviecrawler_{self._site}.prom"
            if folder and descriptor is None
            else None
        )
        self._added: Samples = samples_of(self._site, {})
        """This crawl's figures that the file has already."""
        self._outage = Outage()
        self._closing = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Read METRICS_FOLDER, and the descriptor that a node gave this process."""
        descriptor = os.environ.get(DESCRIPTOR)
        folder = crawler.settings["METRICS_FOLDER"]
        metrics = cls(crawler, int(descriptor) if descriptor else None, folder)
        crawler.signals.connect(metrics.spider_opened, signals.spider_opened)
        crawler.signals.connect(metrics.spider_closed, signals.spider_closed)
        crawler.signals.connect(metrics.summary_written, summary_written)
        return metrics

    def spider_opened(self) -> None:
        """Begin to report."""
        self._task = asyncio.get_running_loop().create_task(self._report_regularly())

    async def spider_closed(self) -> None:
        """Wait for the write under way, so that the final figures come last."""
        self._closing.set()
        if self._task is not None:
            await self._task

    async def summary_written(self, lines: Sequence[str]) -> None:
        """Report the final figures."""
        await self._report(lines)

    async def _report_regularly(self) -> None:
        while not self._closing.is_set():
            await self._report()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._closing.wait(), _EVERY_SECONDS)

    async def _report(self, summary: Sequence[str] | None = None) -> None:
        stats = selected(self._crawler.stats.get_stats())
        if self._descriptor is not None:
            line: dict[str, object] = {"stats": stats, "unreachable": self._unreachable_sites()}
            if summary is not None:
                line["summary"] = list(summary)
            hand_over(self._descriptor, json.dumps(line).encode() + b"\n")
        if self._file is not None:
            now = samples_of(self._site, stats)
            try:
                await asyncio.to_thread(add_to_file, self._file, difference(now, self._added))
            except OSError as error:  # also when another crawl keeps the lock for too long
                if self._outage.mark_down():
                    logger.warning("METRICS_FOLDER can't be written to (%s); retrying", error)
            else:
                self._outage.mark_up()
                self._added = now

    def _unreachable_sites(self) -> dict[str, str]:
        """Return why sites can't be reached from here, as their gates say."""
        found = self._crawler.stats.get_stats().items()
        return {
            name.removeprefix(UNREACHABLE): why
            for name, why in found
            if name.startswith(UNREACHABLE) and why
        }


def hand_over(descriptor: int, line: bytes) -> None:
    """Write as much of a line to a pipe as fits at once.

    A crawl never waits for a node that hangs.
    """
    for begin in range(0, len(line), select.PIPE_BUF):
        try:
            _, is_ready, _ = select.select([], [descriptor], [], 0)
            if not is_ready:
                return
            os.write(descriptor, line[begin : begin + select.PIPE_BUF])
        except OSError:  # the node is gone, which ends this process by other means
            return


def add_to_file(path: Path, samples: Samples) -> None:
    """Add figures to those in a file, which sum up all crawls. Call it in a thread.

    Raises OSError.
    """
    with FileLock(path.with_suffix(".lock"), timeout=_LOCK_SECONDS):
        totals = Totals()
        if path.exists():
            totals.read(path.read_text("utf-8"))
        totals.add(samples)
        registry = CollectorRegistry()
        registry.register(totals)
        write_to_textfile(str(path), registry)
