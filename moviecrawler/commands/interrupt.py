"""Ending a crawl by a second Ctrl-C, also while a callback holds the interpreter.

Scrapy's own handlers ask the event loop to stop, which a callback that does not come back never lets happen. This is the only place that uses Scrapy's private
handler; `tests/commands/test_interrupt.py` fails when a new version changes it.
"""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from scrapy.crawler import CrawlerProcessBase

_WITHIN = 5.0
"""Seconds for an event loop that still turns, to end with what it has begun."""


def end_at_second_signal(process: CrawlerProcessBase) -> None:
    """Have the system end this process soon after a second SIGINT or SIGTERM, whatever it is at then."""
    forced = process._signal_kill  # noqa: SLF001 - see above

    def end(number: int, frame: Any) -> None:
        os.write(2, b"Ending at once; at the latest in %d seconds.\n" % _WITHIN)
        # The system's own doing: no handler of Python's has to have its turn.
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_REAL, _WITHIN)
        forced(number, frame)

    process._signal_kill = end  # type: ignore[method-assign, assignment]  # noqa: SLF001 - see above
