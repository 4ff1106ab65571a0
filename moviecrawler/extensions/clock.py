"""Comparing this machine's clock with others' when a crawl begins: with a clock ahead, old data would hide newer for months."""

from __future__ import annotations

import asyncio
import logging
from contextlib import closing
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING

from scrapy import signals
from scrapy.exceptions import NotConfigured

from moviecrawler import clock
from moviecrawler.errors import MovieCrawlerError

if TYPE_CHECKING:
    from typing import Self

    from scrapy.crawler import Crawler
    from scrapy.http import Response
    from scrapy.settings import BaseSettings

logger = logging.getLogger(__name__)

_TIMEOUT_SECONDS = 10.0
"""Seconds for an answer."""
_MAX_ANSWERS = 5
"""Answers of the site whose dates are looked at."""


class ClockWatch:
    """Asks Redis for the time, or Postgres, or else takes the site's, which is in each answer's `Date`.

    When the clock differs by minutes, that is said, and what is stored gets the right time. Counts, in the stat
    `clock/ahead`, the seconds by which the clock is ahead; they are negative when it is behind.
    """

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._differences: list[timedelta] = []
        self._corrected = False
        clock.restore()

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Read REDIS_URL and DATABASE_URL."""
        if not hasattr(crawler.spidercls, "site"):
            raise NotConfigured  # such as `scrapy replay`, whose pages were answered long ago
        watch = cls(crawler)
        crawler.signals.connect(watch.spider_opened, signals.spider_opened)
        return watch

    async def spider_opened(self) -> None:
        """Compare, before the first request; where nobody can be asked, wait for the site's answers."""
        settings = self._crawler.settings
        for name, server, ask in (("REDIS_URL", "Redis", _ask_redis), ("DATABASE_URL", "Postgres", _ask_postgres)):
            if settings.get(name):
                try:
                    before = datetime.now(UTC)
                    async with asyncio.timeout(_TIMEOUT_SECONDS):
                        theirs = await ask(settings)
                    after = datetime.now(UTC)
                except (MovieCrawlerError, OSError, TimeoutError) as error:
                    logger.debug("%s can't be asked for the time: %s", name, error)
                    continue
                ahead = before + (after - before) / 2 - theirs
                if abs(ahead) >= clock.TOLERANCE:
                    self._correct(ahead, server)
                return
        self._crawler.signals.connect(self.response_received, signals.response_received)

    def response_received(self, response: Response) -> None:
        """Take the time of the site's first answers; when they contradict each other, none of them."""
        ahead = _ahead_of(response)
        if ahead is None:
            return
        self._differences.append(ahead)
        if len(self._differences) == 1 and abs(ahead) >= clock.TOLERANCE:
            self._correct(ahead, response.url.split("/")[2])
        if self._corrected and abs(ahead - self._differences[0]) >= clock.TOLERANCE:
            logger.warning(
                "The site's answers contradict each other in their dates, so this machine's clock is believed"
            )
            clock.restore()
            self._crawler.stats.set_value("clock/ahead", 0.0)
        elif len(self._differences) < _MAX_ANSWERS:
            return
        self._crawler.signals.disconnect(self.response_received, signals.response_received)

    def _correct(self, ahead: timedelta, whose: str) -> None:
        self._corrected = True
        clock.correct(datetime.now(UTC) - ahead)
        self._crawler.stats.set_value("clock/ahead", round(ahead.total_seconds(), 1))
        message = "The clock of this machine is %s %s that of %s: what is stored gets the time of the latter. Set this machine's clock (NTP)"
        logger.error(message, _in_words(abs(ahead)), "ahead of" if ahead > timedelta() else "behind", whose)


async def _ask_redis(settings: BaseSettings) -> datetime:
    from moviecrawler.frontier.report import asking  # noqa: PLC0415 - imports Redis' client

    async with asking(settings) as client:
        seconds, microseconds = await client.time()
    return datetime.fromtimestamp(seconds, UTC) + timedelta(microseconds=microseconds)


async def _ask_postgres(settings: BaseSettings) -> datetime:
    return await asyncio.to_thread(_postgres_time, settings["DATABASE_URL"])


def _postgres_time(url: str) -> datetime:
    import psycopg2  # noqa: PLC0415 - only a crawl with a Postgres needs its client

    from moviecrawler.database.connection import connect  # noqa: PLC0415 - as above

    try:
        with closing(connect(url)) as connection, connection.cursor() as cursor:
            cursor.execute("SET statement_timeout = '5s'")
            cursor.execute("SELECT clock_timestamp()")
            now: datetime = cursor.fetchall()[0][0]
            return now
    except psycopg2.Error as error:
        raise OSError(str(error)) from error


def _ahead_of(response: Response) -> timedelta | None:
    """Return how far this machine's clock is ahead of an answer's date; None when that is not known."""
    date, age = response.headers.get("Date"), response.headers.get("Age") or b"0"
    if date is None or "cached" in response.flags:
        return None
    try:
        theirs = parsedate_to_datetime(date.decode("latin-1")) + timedelta(seconds=int(age))  # of a copy on its way
        return datetime.now(UTC) - theirs
    except (TypeError, ValueError, OverflowError):  # of a date without a zone, or that is none
        return None


def _in_words(difference: timedelta) -> str:
    minutes = difference.total_seconds() / 60
    if minutes < 120:  # noqa: PLR2004 - two hours
        return f"{minutes:,.0f} minutes"
    return f"{minutes / 60:,.0f} hours" if minutes < 2880 else f"{minutes / 1440:,.0f} days"  # noqa: PLR2004 - two days
