"""Logs Scrapy's own events tersely, and bounds the length of a log message."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from scrapy.logformatter import LogFormatter, LogFormatterResult

from moviecrawler.basics.texts import shortened

if TYPE_CHECKING:
    from typing import Self

    from scrapy import Spider
    from scrapy.crawler import Crawler
    from scrapy.http import Response
    from twisted.python.failure import Failure

_LONGEST_MESSAGE = 10_000
"""Characters; longer messages are cut in the middle. Scrapy's stats at the end of a crawl fit."""
_LONGEST_TRACEBACK = 50_000
_CLIENTS = ("boto3", "botocore", "pymongo", "redis", "s3transfer", "urllib3")
"""Libraries that format a DEBUG message for each command, even if no handler takes it."""


class ShortRecord(logging.LogRecord):
    """A log record whose message and traceback are cut to a length, as either may quote a page."""

    def getMessage(self) -> str:  # noqa: N802 - logging's own name
        """Return the message with its arguments."""
        return shortened(super().getMessage(), _LONGEST_MESSAGE)

    @property
    def exc_text(self) -> str | None:
        """The traceback, once a formatter has written it."""
        return self._exc_text

    @exc_text.setter
    def exc_text(self, text: str | None) -> None:
        self._exc_text = None if text is None else shortened(text, _LONGEST_TRACEBACK)


class TerseLogFormatter(LogFormatter):
    """Scrapy's formatter, but a dropped item is one line: its id and why, not the whole item."""

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Bound everything that this process logs from now on.

        The clients' DEBUG messages are silenced.
        """
        logging.setLogRecordFactory(ShortRecord)
        for name in _CLIENTS:
            logging.getLogger(name).setLevel(logging.INFO)
        return super().from_crawler(crawler)

    def dropped(
        self,
        item: object,
        exception: BaseException,
        response: Response | Failure | None,  # noqa: ARG002 - Scrapy's own signature
        spider: Spider,
    ) -> LogFormatterResult:
        """Return the log record of an item that a pipeline refused."""
        args = {
            "site": getattr(item, "site", spider.name),
            "site_id": getattr(item, "site_id", None),
            "exception": exception,
        }
        return {
            "level": logging.WARNING,
            "msg": "Rejected %(site)s %(site_id)s: %(exception)s",
            "args": args,
        }
