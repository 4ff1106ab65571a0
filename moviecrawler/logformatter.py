"""How Scrapy's own events are logged."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from scrapy.logformatter import LogFormatter, LogFormatterResult

if TYPE_CHECKING:
    from scrapy import Spider
    from scrapy.http import Response
    from twisted.python.failure import Failure


class TerseLogFormatter(LogFormatter):
    """Scrapy's formatter, but a dropped item is one line: its id and why, not the whole item."""

    def dropped(
        self,
        item: Any,
        exception: BaseException,
        response: Response | Failure | None,  # noqa: ARG002 - Scrapy's own signature
        spider: Spider,
    ) -> LogFormatterResult:
        """Return the log record of an item that a pipeline refused."""
        return {
            "level": logging.WARNING,
            "msg": "Rejected %(site)s %(site_id)s: %(exception)s",
            "args": {
                "site": getattr(item, "site", spider.name),
                "site_id": getattr(item, "site_id", None),
                "exception": exception,
            },
        }
