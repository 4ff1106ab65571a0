"""Showing how far a crawl is."""

from __future__ import annotations

import asyncio
import json
import logging
import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from scrapy import signals
from scrapy.exceptions import NotConfigured
from scrapy.utils.asyncio import create_looping_call
from tqdm import tqdm

from moviecrawler.extensions.outcomes import OUTCOMES
from moviecrawler.frontier.engine import under_way
from moviecrawler.frontier.runs import Rate, details_of, line_of, name_of
from moviecrawler.frontier.shared import shared_scheduler

if TYPE_CHECKING:
    from typing import Self

    from scrapy import Spider
    from scrapy.crawler import Crawler

    from moviecrawler.frontier.runs import RunReport
    from moviecrawler.frontier.scheduler import FrontierScheduler

logger = logging.getLogger(__name__)

_REDRAW_SECONDS = 0.2
_REPORT_POLL_SECONDS = 1.0
"""Between two questions to Redis for the figures of all workers."""
_QUIET_INTERVALS = 2
"""LOGSTATS_INTERVALs without an answer and without the end of a title, after which a line says what the crawl waits for."""


class _AboveBars:
    """Standard error for a handler of the log: a line is written above the bars of all crawls of this process, or plainly without one."""

    def write(self, text: str) -> None:
        tqdm.write(text, file=sys.stderr, end="")

    def flush(self) -> None:
        sys.stderr.flush()


class Progress:
    """Shows the titles asked for and how each ended, by setting PROGRESS: a bar, log lines or JSON lines.

    Of a crawl that several workers share, bar and lines show the figures of all of them, as `scrapy progress` does, and then
    what this worker's titles became. While nothing comes in, the log says now and then what the crawl waits for.
    """

    def __init__(self, crawler: Crawler, mode: str, interval: float) -> None:
        self.crawler = crawler
        self.mode = mode
        self.interval = interval if mode == "lines" else _REDRAW_SECONDS
        self.started = self.changed = time.monotonic()
        self.seen = 0
        """Answers, and titles that have ended, when that changed last."""
        self.quiet = self.first_quiet = _QUIET_INTERVALS * interval
        """Seconds after `changed` when the next line is due, doubled with each; those of the first."""
        self.shown: dict[str, Any] = {}
        self.bar: tqdm[Any] | None = None
        self.run: RunReport | None = None
        self.rate: Rate | None = None
        self.following: asyncio.Task[None] | None = None

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Read PROGRESS and LOGSTATS_INTERVAL (seconds)."""
        mode = crawler.settings["PROGRESS"]
        if mode == "auto":
            mode = "bar" if sys.stderr.isatty() else "lines"
        interval = crawler.settings.getfloat("LOGSTATS_INTERVAL")
        if mode == "off" or interval <= 0:
            raise NotConfigured("PROGRESS is off")
        progress = cls(crawler, mode, interval)
        crawler.signals.connect(progress.spider_opened, signals.spider_opened)
        crawler.signals.connect(progress.spider_closed, signals.spider_closed)
        return progress

    def spider_opened(self, spider: Spider) -> None:
        """Begin to show."""
        self.started = self.changed = time.monotonic()
        if self.mode == "bar":
            for handler in logging.root.handlers:
                # A log that goes to a file, or nowhere, stays there.
                if isinstance(handler, logging.StreamHandler) and handler.stream is sys.stderr:
                    handler.setStream(_AboveBars())
            self.bar = tqdm(desc=spider.name, unit=" titles", file=sys.stderr, dynamic_ncols=True, leave=True)
        scheduler = shared_scheduler(self.crawler)
        if scheduler is not None and self.mode != "json":
            self.following = asyncio.get_running_loop().create_task(self._follow(scheduler))
        self.task = create_looping_call(self.show)
        self.task.start(self.interval, now=False)

    def spider_closed(self, reason: str) -> None:
        """Show the final figures."""
        if self.following is not None:
            self.following.cancel()
        if self.task.running:
            self.task.stop()
        self.show(reason=reason)
        if self.bar is not None:
            self.bar.close()

    async def _follow(self, scheduler: FrontierScheduler) -> None:
        """Ask Redis now and then how far all workers are."""
        import redis.exceptions  # noqa: PLC0415 - only a shared crawl needs its client

        from moviecrawler.frontier.report import read_runs  # noqa: PLC0415 - as above

        budget = {scheduler.keys.site: scheduler.budget}
        while True:
            with suppress(redis.exceptions.RedisError):
                for report in await read_runs(scheduler.server, scheduler.keys.site, scheduler.keys.run, budget):
                    self.rate = self.rate or Rate(report.started_at)
                    self.rate.update(report.ended, report.active_until)
                    self.run = report
            await asyncio.sleep(max(self.interval, _REPORT_POLL_SECONDS))

    def figures(self) -> dict[str, int]:
        """Return how many titles were asked for, and how many ended in each way."""
        stats = self.crawler.stats
        return {name: stats.get_value(f"titles/{name}", 0) for name in ("asked", *OUTCOMES)}

    def show(self, reason: str | None = None) -> None:
        """Show the figures as they are now; `reason` is why the spider closed, None while it runs."""
        figures = self.figures()
        done = sum(figures[outcome] for outcome in OUTCOMES)
        if reason is None:
            self._tell_quiet(done + self.crawler.stats.get_value("downloader/response_count", 0))
        if self.bar is not None:
            ended = {k: figures[k] for k in OUTCOMES[1:] if figures[k]}
            if self.run is not None and self.rate is not None:
                self.bar.total, self.bar.n = self.run.total, self.run.ended
                self.bar.set_description_str(name_of(self.run), refresh=False)
                self.bar.set_postfix_str(f"{details_of(self.run, self.rate)}; {_here(figures)}", refresh=True)
            else:
                self.bar.total, self.bar.n = figures["asked"], done
                self.bar.set_postfix(ended, refresh=True)
        elif self.mode == "json":
            line = {"spider": self.crawler.spidercls.name, **figures, "finished": reason}
            if line != self.shown:
                self.shown = line
                print(json.dumps(line), flush=True)  # noqa: T201 - that is what this mode is for
        elif reason is None and self.run is not None and self.rate is not None:
            line = {"line": f"{line_of(self.run, self.rate)}; {_here(figures)}"}
            if line != self.shown:
                self.shown = line
                logger.info("%s", line["line"], extra={"spider": self.crawler.spider})
        elif reason is None and figures != self.shown:
            self.shown = figures
            per_minute = 60 * done / max(time.monotonic() - self.started, _REDRAW_SECONDS)
            logger.info(
                "%d of %d titles done (%.0f a minute): %s",
                done,
                figures["asked"],
                per_minute,
                ", ".join(f"{figures[outcome]} {outcome}" for outcome in OUTCOMES),
                extra={"spider": self.crawler.spider},
            )

    def _tell_quiet(self, seen: int) -> None:
        """Say what the crawl waits for when nothing has come in for long."""
        now = time.monotonic()
        if seen != self.seen:
            self.seen, self.changed, self.quiet = seen, now, self.first_quiet
        elif now - self.changed >= self.quiet and (waits := under_way(self.crawler.engine)):
            self.quiet *= 2
            message = "Nothing has come in and no title has ended for %.0f s; requests wait %s"
            logger.info(message, now - self.changed, waits, extra={"spider": self.crawler.spider})


def _here(figures: dict[str, int]) -> str:
    """Return what became of this worker's own titles."""
    ended = ", ".join(f"{figures[outcome]:,} {outcome}" for outcome in OUTCOMES if figures[outcome])
    return f"here: {ended or 'nothing yet'}"
