"""Ending a crawl by a second Ctrl-C, even while a callback does not return.

Scrapy's own handlers ask the event loop to stop, and it can't while a callback runs. This is the only place that uses Scrapy's private
handler; `tests/commands/test_interrupt.py` fails when a new version changes it.
"""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from scrapy.crawler import CrawlerProcessBase

_END_SECONDS = 5.0
"""Seconds for an event loop that still works to finish."""


def end_at_second_signal(process: CrawlerProcessBase) -> None:
    """Have the operating system end this process soon after a second SIGINT or SIGTERM."""
    forced = process._signal_kill  # noqa: SLF001 - see above

    def end(number: int, frame: Any) -> None:
        os.write(2, b"Ending at once; at the latest in %d seconds.\n" % _END_SECONDS)
        # The operating system ends the process then: no Python code has to run for that.
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_REAL, _END_SECONDS)
        forced(number, frame)

    process._signal_kill = end  # type: ignore[method-assign, assignment]  # noqa: SLF001 - see above
