"""Writes the queue of one store in batches.

This is a task of the event loop, with a thread for the calls that block.
"""

from __future__ import annotations

import asyncio
import logging
import math
import random
import threading
import time
from collections import deque
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, TypeVar

from moviecrawler.basics.errors import (
    OutputError,
    RejectedError,
    SchemaError,
    TooSlowError,
    TransientStoreError,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from moviecrawler.pipelines.base import BatchingPipeline
    from moviecrawler.pipelines.store import Limits, Record, Store

logger = logging.getLogger(__name__)
_T = TypeVar("_T")

_FIRST_RETRY_SECONDS = 0.2
_MAX_RETRY_SECONDS = 30.0
_MAX_SLOW_TRIES = 3
"""Retries of a single item that takes too long, before it is rejected."""


class _Thread:
    """A thread for one call at a time.

    Unlike an executor's, it doesn't keep the process alive while a call hangs.
    """

    def __init__(self, name: str) -> None:
        self._calls: SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None] = SimpleQueue()
        threading.Thread(target=self._work, name=name, daemon=True).start()

    def call(self, function: Callable[..., _T], *args: object) -> asyncio.Future[_T]:
        """Queue a call, and return its future."""
        future: Future[_T] = Future()
        self._calls.put((future, partial(function, *args)))
        return asyncio.wrap_future(future)

    def end(self) -> None:
        """End the thread after the queued calls."""
        self._calls.put(None)

    def _work(self) -> None:
        for future, call in iter(self._calls.get, None):
            if not future.set_running_or_notify_cancel():
                continue
            try:
                future.set_result(call())
            except BaseException as error:  # noqa: BLE001 - the future raises it again
                # asyncio's futures refuse StopIteration, and SystemExit would end the event loop.
                is_plain = isinstance(error, Exception) and not isinstance(error, StopIteration)
                future.set_exception(
                    error if is_plain else RuntimeError(f"{type(error).__name__}: {error}")
                )


class StoreWriter:
    """Open a store, write its queue in batches, and close the store at the end.

    Transient errors are retried.
    """

    def __init__(
        self, store: Store, limits: Limits, pipeline: BatchingPipeline, *, waits_to_open: bool
    ) -> None:
        self._store = store
        self._limits = limits
        self._pipeline = pipeline
        self._waits_to_open = waits_to_open
        self._changed = asyncio.Event()
        self._queue: deque[Record] = deque()
        self._queue_bytes = 0
        self._is_open = False
        self._hurried = False  # whether the queue is written without waiting for a batch to fill
        self._complete = False  # whether no more records will come
        self._closing = asyncio.Event()
        self._deadline = float("inf")  # by `time.monotonic()`; set when the spider closes

    @property
    def closing(self) -> bool:
        """Whether the spider is closing."""
        return self._closing.is_set()

    def time_left(self) -> float:
        """Return the seconds that are left for closing."""
        return max(0.0, self._deadline - time.monotonic())

    def put(self, record: Record) -> None:
        """Queue a record."""
        self._queue.append(record)
        self._queue_bytes += len(record.encoded)
        # The task sleeps until its oldest record is due: waking it for each record costs more than
        # queueing it.
        if len(self._queue) == 1 or self._limits.is_full(len(self._queue), self._queue_bytes):
            self._changed.set()

    def hurry(self) -> None:
        """Write the queue now, without waiting for full batches."""
        self._hurried = True
        self._changed.set()

    def begin_closing(self, most: float = math.inf) -> None:
        """Begin the `close_seconds`, or `most` if that is less, in which the queue must be written.

        More records may still come.
        """
        if not self.closing:
            self._deadline = time.monotonic() + min(self._limits.close_seconds, most)
            self._closing.set()
        self.hurry()

    def finish(self) -> None:
        """End when the queue is written, or the time is over."""
        self._complete = True
        self._changed.set()

    async def open(self) -> None:
        """Open the store, or let `run` retry that with `waits_to_open`.

        Raises the same as `Store.open`.
        """
        self._thread = _Thread(f"store-{self._store.name}")
        try:
            await self._thread.call(self._store.open)
            self._is_open = True
        except Exception as error:
            if not (self._waits_to_open and isinstance(error, TransientStoreError)):
                await self._close()
                raise
            logger.warning(
                "%s can't be opened now, and will be tried again: %s", self._store.name, error
            )

    async def run(self) -> None:
        """Write the queue until `finish`, and close the store. Raises nothing."""
        try:
            if self._is_open or await self._attempt(self._open_again):
                while batch := await self._next_batch():
                    await self._flush(batch)
        except Exception:
            # The buffered items are spooled when the spider closes.
            logger.exception("%s: writing failed", self._store.name)
        finally:
            closed = self._close()  # queued behind a call that hangs now
        if await closed:
            self._pipeline.count("unfinished")
        if self._store.remark:
            self._pipeline.remark(self._store.remark)

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
        except Exception as error:  # the crawl runs already: its items are spooled, and it goes on
            raise TransientStoreError(f"{type(error).__name__}: {error}") from error

    async def _next_batch(self) -> list[Record] | None:
        """Return a batch when one is due, None at the end."""
        while True:
            wait = float("inf")
            if self._queue:
                wait = self._queue[0].since + self._limits.batch_seconds - time.monotonic()
                is_due = wait <= 0 or self._limits.is_full(len(self._queue), self._queue_bytes)
                if is_due or self._hurried or self._complete:
                    return self._pop_batch()
            elif self._complete:
                return None
            else:
                self._hurried = False
            self._changed.clear()
            await _wait(self._changed, wait)

    def _pop_batch(self) -> list[Record]:
        batch: list[Record] = []
        size = 0
        while (
            self._queue
            and len(batch) < self._limits.batch_items
            and size < self._limits.batch_bytes
        ):
            batch.append(self._queue.popleft())
            size += len(batch[-1].encoded)
        self._queue_bytes -= size
        return batch

    async def _flush(self, batch: list[Record]) -> None:
        """Write a batch.

        When it is rejected or takes too long, it is halved until only the item to blame is left.
        """
        try:
            is_durable = await self._attempt(partial(self._write, batch))
        except SchemaError:
            raise  # no try and no other item would mend it
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
        except Exception as error:  # an unexpected error rejects an item, but doesn't end the crawl
            logger.exception("%s failed on a batch of %d", self._store.name, len(batch))
            reason = f"{type(error).__name__}: {error}"
        else:
            if is_durable:
                self._pipeline.report_outcome(batch, "durable")
            return
        if len(batch) == 1:
            await self._pipeline.reject(batch[0], reason)
            return
        middle = len(batch) // 2
        await self._flush(batch[:middle])
        await self._flush(batch[middle:])

    async def _write(self, batch: list[Record]) -> None:
        started = time.perf_counter()
        try:
            await self._thread.call(self._store.write, batch)
        except OSError as error:
            # An error of this machine, such as too many open files: no item is to blame.
            raise TransientStoreError(f"{type(error).__name__}: {error}") from error
        self._pipeline.count("batches")
        self._pipeline.count("seconds", time.perf_counter() - started)
        self._pipeline.set_figures(self._store.figures)

    async def _attempt(self, action: Callable[[], Awaitable[None]]) -> bool:
        """Call `action` until it raises no TransientStoreError.

        Returns False when the time to close is over first. Raises TooSlowError, and the other
        errors of `action`.
        """
        attempt = 1
        while self.time_left():
            try:
                await action()
            except TooSlowError:
                raise
            except TransientStoreError as error:
                delay = backoff(attempt)
                logger.warning(
                    "%s: attempt %d failed, next in %.1f s: %s",
                    self._store.name,
                    attempt,
                    delay,
                    error,
                )
                self._pipeline.count("retries")
                await self._pipeline.check_space()
                await self._sleep(delay)
                attempt += 1
            else:
                if attempt > 1:
                    self._pipeline.end_stuck()
                    logger.info("%s: attempt %d worked", self._store.name, attempt)
                return True
        return False

    async def _sleep(self, seconds: float) -> None:
        """Sleep, but not beyond the deadline of closing.

        Wakes up when the spider begins to close.
        """
        if self.closing:
            await asyncio.sleep(min(seconds, self.time_left()))
        else:
            await _wait(self._closing, seconds)


async def _wait(event: asyncio.Event, seconds: float) -> None:
    with suppress(TimeoutError):
        await asyncio.wait_for(event.wait(), None if seconds == float("inf") else seconds)


def backoff(attempt: int) -> float:
    """Return the seconds to wait after the attempt of that number, from 1.

    They are random, so that processes don't retry together.
    """
    doubled: float = _FIRST_RETRY_SECONDS * 2 ** min(attempt - 1, 16)
    return min(_MAX_RETRY_SECONDS, doubled) * random.uniform(0.5, 1)  # noqa: S311 - no secret
