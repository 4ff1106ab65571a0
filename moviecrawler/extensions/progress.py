"""Logs how far a crawl is, and what it waits for; shows it in one line of a terminal."""

from __future__ import annotations

import logging
import os
import shutil
import sys
import time
from collections import deque
from contextlib import suppress
from datetime import timedelta
from typing import TYPE_CHECKING, NamedTuple

from scrapy import signals
from scrapy.exceptions import NotConfigured
from scrapy.utils.asyncio import create_looping_call

from moviecrawler.basics.progress import logger as logged
from moviecrawler.frontier.contract import TITLE_OUTCOMES
from moviecrawler.politeness.middleware import politeness_of
from moviecrawler.scrapy_internals import describe_requests, is_closing

if TYPE_CHECKING:
    from typing import Self

    from scrapy import Spider
    from scrapy.crawler import Crawler
    from tqdm import tqdm

    from moviecrawler.frontier.contract import Account

logger = logging.getLogger(__name__)

_QUIET_INTERVALS = 2
"""LOGSTATS_INTERVALs without a response or the end of a title, after which a line names what the
crawl waits for."""
_DRAW_SECONDS = 0.5
"""Seconds between two drawings of the line."""
_RATE_SECONDS = 60.0
"""Seconds over which its rate is the average."""


class Progress:
    """Logs every LOGSTATS_INTERVAL seconds how this process's titles ended, if that has changed.

    While requests are under way and nothing comes in, it logs what the crawl waits for, less and
    less often, and counts the time in the stat `crawl/stalled_seconds`. `scrapy progress` shows all
    workers of a shared crawl.
    """

    def __init__(self, crawler: Crawler, interval: float) -> None:
        self._crawler = crawler
        self._interval = interval
        self._started = time.monotonic()
        self._changed_at = self._started
        self._looked_at = self._started
        self._seen = 0
        """Answers, and titles that have ended, at the last look."""
        self._quiet = _QUIET_INTERVALS * interval
        """Seconds without a change after which the next line is due."""

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Read LOGSTATS_INTERVAL (seconds)."""
        interval = crawler.settings.getfloat("LOGSTATS_INTERVAL")
        if interval <= 0:
            raise NotConfigured("LOGSTATS_INTERVAL is 0")
        progress = cls(crawler, interval)
        crawler.signals.connect(progress.spider_opened, signals.spider_opened)
        crawler.signals.connect(progress.spider_closed, signals.spider_closed)
        return progress

    def spider_opened(self) -> None:
        """Begin to log."""
        self._task = create_looping_call(self.log_progress)
        self._task.start(self._interval, now=False)

    def spider_closed(self) -> None:
        """End the logging."""
        if self._task.running:
            self._task.stop()

    def log_progress(self) -> None:
        """Log what has changed, or what the crawl waits for."""
        stats = self._crawler.stats
        now = time.monotonic()
        counts = {name: stats.get_value(f"titles/{name}", 0) for name in (*TITLE_OUTCOMES, "dead")}
        done = sum(counts.values())
        seen = done + stats.get_value("downloader/response_count", 0)
        if seen != self._seen:
            self._seen = seen
            self._changed_at = now
            self._quiet = _QUIET_INTERVALS * self._interval
            ended = ", ".join(f"{count:,} {outcome}" for outcome, count in counts.items() if count)
            self._log(
                "%d of %d titles done (%.0f per minute): %s",
                done,
                stats.get_value("titles/requested", 0),
                60 * done / max(now - self._started, self._interval),
                ended or "none",
            )
        elif waits := describe_requests(self._crawler.engine):
            stalled = now - self._looked_at
            # Scrapy's type, not its code, requires an int.
            stats.inc_value("crawl/stalled_seconds", stalled)  # type: ignore[arg-type]
            silent_seconds = now - self._changed_at
            if silent_seconds >= self._quiet:
                self._quiet *= 2
                message = "No response and no finished title for %.0f s; requests wait %s"
                self._log(message, silent_seconds, waits)
        self._looked_at = now

    def _log(self, message: str, *arguments: object) -> None:
        logger.info(message, *arguments, extra={"spider": self._crawler.spider})


# --- The line of a terminal -----------------------------------------------------------------------


def is_terminal() -> bool:
    """Return whether standard error is a terminal on which a line can be drawn again."""
    return sys.stderr.isatty() and os.environ.get("TERM") != "dumb"


class LineHandler(logging.Handler):
    """Writes warnings above the line, each as a sentence without what only a log needs.

    So it does with the lines of progress of long work that is one step of a crawl.
    """

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self.addFilter(lambda record: record.levelno > logging.INFO or record.name == logged.name)

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record."""
        # Only a terminal needs it: 0.03 s.
        from tqdm import tqdm  # noqa: PLC0415

        sentence = record.getMessage().partition("\n")[0]
        error = record.exc_info[1] if record.exc_info else None
        reason = f" ({type(error).__name__}: {error}; -L INFO shows more)" if error else ""
        level = f"{record.levelname}: " if record.levelno > logging.INFO else ""
        tqdm.write(f"{level}{sentence}{reason}", file=sys.stderr)


class _Titles(NamedTuple):
    done: int
    requested: int


class ProgressLine:
    """Shows in one line how far the crawls of a process are."""

    def __init__(self) -> None:
        self._crawlers: list[Crawler] = []
        self._counts: deque[tuple[float, int]] = deque()
        """Times, and how many titles were done then."""
        self._bar: tqdm = None  # of an untyped library

    def follow(self, crawler: Crawler) -> None:
        """Show a crawl in the line, which stays until the last spider has closed."""
        self._crawlers.append(crawler)
        crawler.signals.connect(self._begin, signals.engine_started)
        crawler.signals.connect(self._end, signals.spider_closed)

    def _begin(self) -> None:
        if self._bar is None:
            from tqdm import tqdm  # noqa: PLC0415 - as above

            tqdm.monitor_interval = 0
            # The size of a terminal that does not report it.
            size = {"ncols": 80, "nrows": 24}
            self._bar = tqdm(bar_format="{desc}", leave=False, file=sys.stderr, **size)
            self._drawing = create_looping_call(self.draw)
            # The engine runs when its signal has been sent.
            self._drawing.start(_DRAW_SECONDS, now=False)

    def _end(self, spider: Spider) -> None:
        if self._bar is None:
            return
        self.draw()  # a crawl may be over before it is time to draw
        others = [crawler for crawler in self._crawlers if crawler.spider is not spider]
        if not any(_is_open(crawler) for crawler in others):
            self._drawing.stop()
            self._bar.close()
            self._bar = None

    def draw(self) -> None:
        """Draw the line anew."""
        self._bar.ncols = shutil.get_terminal_size().columns - 1
        self._bar.set_description_str(self.text(time.monotonic()))

    def text(self, now: float) -> str:
        """Return the line: titles done of those requested, rate, time left, what it waits for.

        Args:
            now: Seconds by the monotonic clock.
        """
        counts = {crawler: _count_titles(crawler) for crawler in self._crawlers}
        done = sum(count.done for count in counts.values())
        unfinished = sum(count.requested for count in counts.values()) - done
        self._counts.append((now, done))
        while self._counts[0][0] < now - _RATE_SECONDS:
            self._counts.popleft()
        since, before = self._counts[0]
        per_minute = 60 * (done - before) / max(now - since, _DRAW_SECONDS)
        of_crawls = [
            f"{crawler.spidercls.name} {count.done:,}/{count.requested:,}"
            for crawler, count in counts.items()
        ]
        parts = [", ".join(of_crawls)]
        if per_minute:
            left = str(timedelta(seconds=int(60 * unfinished / per_minute))).removeprefix("0:")
            parts.append(f"{per_minute:,.0f} per minute, {left} left")
        parts += list(dict.fromkeys(filter(None, map(_describe_wait, self._crawlers))))
        return "; ".join(parts)


def _is_open(crawler: Crawler) -> bool:
    return crawler.spider is not None and crawler.crawling and not is_closing(crawler.engine)


def _count_titles(crawler: Crawler) -> _Titles:
    """Return how many titles of the run are done, and how many were requested, by all workers."""
    with suppress(AttributeError, RuntimeError):  # it has not begun
        stats = crawler.stats.get_stats()
        scheduler = crawler.engine.scheduler
        if scheduler is None:  # it has ended, and set the stats of its run
            done = sum(stats.get(f"frontier/run/{name}", 0) for name in TITLE_OUTCOMES)
            return _Titles(done, stats.get("frontier/run/titles", 0))
        account: Account | None = scheduler.account  # type: ignore[attr-defined]
        if account is not None:
            # The account of all workers comes every few seconds.
            by_all = sum(getattr(account, outcome) for outcome in TITLE_OUTCOMES)
            done = max(by_all, sum(stats.get(f"titles/{name}", 0) for name in TITLE_OUTCOMES))
            return _Titles(done, max(account.titles, done))
    return _Titles(0, 0)


def _describe_wait(crawler: Crawler) -> str:
    """Return what a crawl waits for; empty when it has begun nothing, or has ended."""
    with suppress(AttributeError, RuntimeError):
        if crawler.engine.start_time is None or crawler.engine.spider is None:
            return ""
        if is_closing(crawler.engine):
            return "storing what was fetched (Ctrl-C again ends at once)"
        for gate in politeness_of(crawler).gates.values():
            if wait := gate.describe_wait():
                return f"waiting for {wait}"
        if requests := describe_requests(crawler.engine):
            return f"waiting {requests.partition(':')[0]}"
    return ""
