"""Writes what is queued for one store, in batches: a task of the event loop, with a thread for what waits for the store."""

from __future__ import annotations

import asyncio
import itertools
import logging
import random
import threading
import time
from collections import deque
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, TypeVar

from moviecrawler.errors import OutputError, RejectedError, TooSlowError, TransientStoreError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from moviecrawler.pipelines.base import BatchingPipeline
    from moviecrawler.pipelines.spool import Spool
    from moviecrawler.pipelines.store import Limits, Record, Store

logger = logging.getLogger(__name__)
_T = TypeVar("_T")

_IDLE_RETRY_SECONDS = 60.0
_FIRST_RETRY_SECONDS = 0.2
_MAX_RETRY_SECONDS = 30.0
_MAX_SLOW_TRIES = 3
"""Times that an item is tried again, alone, which takes a store too long, before it is rejected."""


class _Thread:
    """A thread for one call at a time. Unlike an executor's, it keeps no process from ending while a call hangs."""

    def __init__(self, name: str) -> None:
        self._calls: SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None] = SimpleQueue()
        threading.Thread(target=self._work, name=name, daemon=True).start()

    def call(self, function: Callable[..., _T], *args: object) -> asyncio.Future[_T]:
        """Return the future of a call, which is made when those before it are over."""
        future: Future[_T] = Future()
        self._calls.put((future, partial(function, *args)))
        return asyncio.wrap_future(future)

    def end(self) -> None:
        """End when all calls are over."""
        self._calls.put(None)

    def _work(self) -> None:
        for future, call in iter(self._calls.get, None):
            if not future.set_running_or_notify_cancel():
                continue
            try:
                future.set_result(call())
            except BaseException as error:  # noqa: BLE001 - raised again by who waits for the call
                # No future of asyncio takes a StopIteration, and a SystemExit would end the event loop.
                is_plain = isinstance(error, Exception) and not isinstance(error, StopIteration)
                future.set_exception(error if is_plain else RuntimeError(f"{type(error).__name__}: {error}"))


class StoreWriter:
    """Opens a store, writes what is queued in batches, tries again what may work later, and closes the store at the end."""

    def __init__(
        self, store: Store, limits: Limits, report: BatchingPipeline, *, spool: Spool, waits_to_open: bool
    ) -> None:
        self._store = store
        self._limits = limits
        self._report = report
        self._spool = spool
        self._waits_to_open = waits_to_open
        self._changed = asyncio.Event()
        self._queue: deque[Record] = deque()
        self._queue_bytes = 0
        self._is_open = False
        self._hurried = False  # whether the queue is written without waiting for a batch to fill
        self._complete = False  # whether nothing more will be queued
        self._closing = asyncio.Event()
        self._deadline = float("inf")  # by `time.monotonic()`; set when the spider closes

    @property
    def closing(self) -> bool:
        """Whether the spider closes."""
        return self._closing.is_set()

    def time_left(self) -> float:
        """Return the seconds that are left for closing."""
        return max(0.0, self._deadline - time.monotonic())

    def put(self, record: Record) -> None:
        """Queue a record."""
        self._queue.append(record)
        self._queue_bytes += len(record.encoded)
        # The task waits until its oldest record is due. To wake it for each one costs more than to queue it.
        if len(self._queue) == 1 or self._limits.is_full(len(self._queue), self._queue_bytes):
            self._changed.set()

    def hurry(self) -> None:
        """Have all that is queued by now written, in as few batches as can be."""
        self._hurried = True
        self._changed.set()

    def begin_closing(self) -> None:
        """Have what is queued written within `close_seconds` from the first call on. More may still be queued."""
        if not self.closing:
            self._deadline = time.monotonic() + self._limits.close_seconds
            self._closing.set()
        self.hurry()

    def finish(self) -> None:
        """End when all that is queued is written, or the time is over."""
        self._complete = True
        self._changed.set()

    async def open(self) -> None:
        """Open the store; one that may be waited for is opened later when it can't be now. Raises what `Store.open` does."""
        self._thread = _Thread(f"store-{self._store.name}")
        try:
            await self._thread.call(self._store.open)
            self._is_open = True
        except Exception as error:
            if not (self._waits_to_open and isinstance(error, TransientStoreError)):
                await self._close()
                raise
            logger.warning("%s can't be opened, and will be tried again: %s", self._store.name, error)

    async def run(self) -> None:
        """Write what is queued until `finish`, and close the store. Raises nothing."""
        try:
            if self._is_open or await self._attempt(self._open_again):
                while (batch := await self._next_batch(await self._idle())) is not None:
                    if batch:
                        await self._flush(batch)
        except Exception:
            # What is buffered is spooled when the spider closes.
            logger.exception("%s: writing failed", self._store.name)
        finally:
            closed = self._close()  # also one that hangs now, when it comes back
        if await closed:
            self._report.count("unfinished")
        self._report.remark(self._store.remark)

    def _close(self) -> asyncio.Future[bool]:
        closed = self._thread.call(self._close_store)
        self._thread.end()
        return closed

    def _close_store(self) -> bool:
        """Close the store, and return whether that failed."""
        try:
            self._store.close()
        except OutputError as error:
            logger.error("%s: %s", self._store.name, error)  # noqa: TRY400 - a sentence says it
        except Exception:
            logger.exception("%s could not be closed", self._store.name)
        else:
            return False
        return True

    async def _open_again(self) -> None:
        try:
            await self._thread.call(self._store.open)
        except Exception as error:  # the crawl is running by now: it is spooled for, not broken off
            raise TransientStoreError(f"{type(error).__name__}: {error}") from error

    async def _idle(self) -> float | None:
        try:
            return await self._thread.call(self._store.idle)
        except Exception:  # what is done besides writing must not stop the writing
            logger.exception("%s failed while idle", self._store.name)
            return _IDLE_RETRY_SECONDS

    async def _next_batch(self, pause: float | None) -> list[Record] | None:
        """Return a batch when one is due, an empty one after `pause` seconds without, None at the end."""
        until = float("inf") if pause is None else time.monotonic() + pause
        while True:
            now = time.monotonic()
            wake = until
            if self._queue:
                due = self._queue[0].since + self._limits.batch_seconds
                is_due = now >= due or self._limits.is_full(len(self._queue), self._queue_bytes)
                if is_due or self._hurried or self._complete:
                    return self._take()
                wake = min(wake, due)
            elif self._complete:
                return None
            else:
                self._hurried = False
            if now >= until:
                return []
            self._changed.clear()
            await _wait(self._changed, wake - now)

    def _take(self) -> list[Record]:
        batch: list[Record] = []
        size = 0
        while self._queue and len(batch) < self._limits.batch_items and size < self._limits.batch_bytes:
            batch.append(self._queue.popleft())
            size += len(batch[-1].encoded)
        self._queue_bytes -= size
        return batch

    async def _flush(self, batch: list[Record]) -> None:
        """Write a batch; when it is rejected or takes too long, halve it until the item that is to blame stands alone."""
        try:
            is_durable = await self._attempt(partial(self._write, batch))
        except RejectedError as error:
            reason = str(error)
        except TooSlowError as error:
            reason = f"takes too long: {error}"
            logger.warning("%s: a batch of %d %s", self._store.name, len(batch), reason)
            if len(batch) == 1 and batch[0].slow < _MAX_SLOW_TRIES:
                # The server may be slow for another reason.
                batch[0].slow += 1
                await self._sleep(backoff(batch[0].slow + 3))
                await self._flush(batch)
                return
        except Exception as error:  # what the store didn't foresee is a reason to refuse an item, not to end the crawl
            logger.exception("%s failed on a batch of %d", self._store.name, len(batch))
            reason = f"{type(error).__name__}: {error}"
        else:
            if is_durable:
                self._report.settle(batch, "durable")
            return
        if len(batch) == 1:
            await self._report.reject(batch[0], reason)
            return
        middle = len(batch) // 2
        await self._flush(batch[:middle])
        await self._flush(batch[middle:])

    async def _write(self, batch: list[Record]) -> None:
        started = time.perf_counter()
        try:
            await self._thread.call(self._store.write, batch)
        except OSError as error:  # of this machine, such as too many open files: no item is to blame
            raise TransientStoreError(f"{type(error).__name__}: {error}") from error
        self._report.count("batches")
        self._report.count("seconds", time.perf_counter() - started)

    async def _attempt(self, action: Callable[[], Awaitable[None]]) -> bool:
        """Call until it no longer raises TransientStoreError; return False when the time to close is over before that.

        Raises whatever else it raises, and TooSlowError.
        """
        for attempt in itertools.count(1):
            if not self.time_left():
                return False
            try:
                await action()
            except TooSlowError:
                raise
            except TransientStoreError as error:
                delay = backoff(attempt)
                logger.warning("%s: attempt %d failed, next in %.1f s: %s", self._store.name, attempt, delay, error)
                self._report.count("retries")
                await self._look_for_room()
                await self._sleep(delay)
            else:
                if attempt > 1:
                    self._report.set_stuck(None)
                    logger.info("%s: attempt %d worked", self._store.name, attempt)
                return True
        raise AssertionError  # pragma: no cover - the count above never ends

    async def _look_for_room(self) -> None:
        """Find out whether what the store does not take could be spooled, after it has failed to write."""
        error = None
        try:
            # Of all that the buffer may hold; a page is spooled in base 64.
            await self._thread.call(self._spool.check_room, self._limits.buffer_bytes * 3 // 2)
        except OSError as full:
            error = full
        self._report.set_stuck(error)

    async def _sleep(self, seconds: float) -> None:
        """Wait, but not longer than the spider's closing allows; when it begins to close, try again at once."""
        if self.closing:
            await asyncio.sleep(min(seconds, self.time_left()))
        else:
            await _wait(self._closing, seconds)


async def _wait(event: asyncio.Event, seconds: float) -> None:
    with suppress(TimeoutError):
        await asyncio.wait_for(event.wait(), None if seconds == float("inf") else seconds)


def backoff(attempt: int) -> float:
    """Return the seconds to wait after the attempt of that number (from 1), which chance spreads over many processes."""
    doubled: float = _FIRST_RETRY_SECONDS * 2 ** min(attempt - 1, 16)
    return min(_MAX_RETRY_SECONDS, doubled) * random.uniform(0.5, 1)  # noqa: S311 - no secret
