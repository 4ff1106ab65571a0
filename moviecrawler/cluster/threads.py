"""Waiting for threads and for time in Twisted's event loop, from coroutines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from twisted.internet import reactor as _reactor
from twisted.internet.task import deferLater
from twisted.internet.threads import deferToThreadPool
from twisted.python.threadpool import ThreadPool

if TYPE_CHECKING:
    from collections.abc import Callable

    from twisted.internet.defer import Deferred

P = ParamSpec("P")
T = TypeVar("T")

reactor: Any = _reactor
"""A module that stands for whatever event loop was installed, which no type says."""


def pause(seconds: float) -> Deferred[None]:
    """Wait."""
    return deferLater(reactor, seconds)


class Threads:
    """A few threads that what is called in them does not share with others; the rest waits."""

    def __init__(self, name: str, most: int) -> None:
        self._pool = ThreadPool(0, most, name)

    def start(self) -> None:
        """Begin; ends after everything else when the event loop does."""
        self._pool.start()
        reactor.addSystemEventTrigger("after", "shutdown", self._pool.stop)

    def run(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> Deferred[T]:
        """Call a function in a thread."""
        return deferToThreadPool(reactor, self._pool, function, *args, **kwargs)
