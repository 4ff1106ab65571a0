"""What reading one page may take.

It is ended from outside when it takes more, so that a test fails instead of hanging.
"""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

LONGEST_SECONDS = 2.0
"""Processor time that a reader may take for one page."""


class TooSlowError(BaseException):
    """A page took longer than it may.

    Not an `Exception`, which every reader turns into an error of the page.
    """


@contextmanager
def processor_time(seconds: float = LONGEST_SECONDS) -> Iterator[None]:
    """Raise TooSlowError when what stands in the block takes more of this process' time.

    It is raised also inside of one `re.search`.
    """
    before = signal.signal(signal.SIGVTALRM, _too_slow)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def _too_slow(*_: Any) -> NoReturn:
    raise TooSlowError
