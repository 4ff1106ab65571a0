"""Lines of progress of long work, each with what is left."""

import logging
import time
from collections.abc import Callable
from threading import Event, Thread
from typing import Self

logger = logging.getLogger(__name__)
"""Gets the lines of a crawl: a terminal shows what is logged here, and warnings."""
INTERVAL_SECONDS = 10.0


def log(line: str) -> None:
    """Log a line."""
    logger.info("%s", line)


class Progress:
    """Reports every ten seconds how far some work is, also while one step of it takes long.

    It is a context manager: the work is its block.
    """

    def __init__(
        self,
        report: Callable[[str], object],
        subject: str,
        total: int = 0,
    ) -> None:
        """Take what gets each line, and what the work is.

        Args:
            report: Called in a thread with a line.
            subject: Such as `writing credits.csv`.
            total: How many steps or rows there are; 0 if that is not known.
        """
        self.done = 0
        """Steps that are done."""
        self._report = report
        self._subject = subject
        self._total = total
        self._is_over = Event()
        self._began = time.monotonic()
        self._thread = Thread(target=self._tell, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()

    def _tell(self) -> None:
        while not self._is_over.wait(INTERVAL_SECONDS):
            self._report(self._line(time.monotonic() - self._began))

    def _line(self, seconds: float) -> str:
        line = f"{self._subject} for {seconds:.0f} s"
        if self._total:
            line += f": {self.done:,} of {self._total:,} done"
        if 0 < self.done < self._total:
            left = seconds / self.done * (self._total - self.done)
            line += f", about {left:,.0f} s left"
        return line
