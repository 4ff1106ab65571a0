"""Threads for coroutines in Twisted's event loop."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from twisted.internet import reactor as _reactor
from twisted.internet.threads import deferToThreadPool
from twisted.python.threadpool import ThreadPool

if TYPE_CHECKING:
    from collections.abc import Callable

    from twisted.internet.defer import Deferred

P = ParamSpec("P")
T = TypeVar("T")

reactor: Any = _reactor
"""It is typed as Any, since Twisted types it as a module."""


class Threads:
    """A thread pool for one kind of calls, so that these don't wait for others."""

    def __init__(self, name: str, max_threads: int) -> None:
        self._pool = ThreadPool(0, max_threads, name)

    def start(self) -> None:
        """Start the pool; it stops when the event loop has ended."""
        self._pool.start()
        reactor.addSystemEventTrigger("after", "shutdown", self._pool.stop)

    def run(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> Deferred[T]:
        """Call a function in a thread."""
        return deferToThreadPool(reactor, self._pool, function, *args, **kwargs)
