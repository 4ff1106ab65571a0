"""Waiting for what comes to pass by itself, with a limit, in place of sleeping for luck."""

import asyncio
import time
from collections.abc import Callable

LONGEST = 180.0
"""Seconds: a machine that runs tests may be busy with others."""
_LOOK_AGAIN = 0.02
_LOOK_AGAIN_AT_LAST = 0.2
"""Seconds between two looks, which become longer: looking takes the time of what is waited for."""


def wait_for(
    condition: Callable[[], object],
    seconds: float = LONGEST,
    detail: Callable[[], object] = lambda: "",
) -> None:
    """Wait until a condition holds.

    When it does not in time, fail with the end of what `detail` returns.
    """
    deadline = time.monotonic() + seconds
    pause = _LOOK_AGAIN
    while not condition():
        assert time.monotonic() < deadline, (
            f"it did not come to pass in {seconds:g} s\n{str(detail())[-5000:]}"
        )
        time.sleep(pause)
        pause = min(_LOOK_AGAIN_AT_LAST, 1.2 * pause)


async def until(condition: Callable[[], object], seconds: float = LONGEST) -> float:
    """Wait without blocking the event loop until a condition holds; return how many seconds."""
    began = time.monotonic()
    while not condition():
        assert time.monotonic() - began < seconds, f"it did not come to pass in {seconds:g} s"
        await asyncio.sleep(_LOOK_AGAIN / 2)
    return time.monotonic() - began
