"""The thread in which a store is opened, written and closed, and what is queued for it."""

from __future__ import annotations

import itertools
import logging
import random
import threading
import time
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, Protocol

from moviecrawler.errors import RejectedError, TooSlowError, TransientStoreError
from moviecrawler.pipelines.files import append_rejected
from moviecrawler.pipelines.store import backoff

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from moviecrawler.pipelines.spool import Spool
    from moviecrawler.pipelines.store import Limits, Record, Store
    from moviecrawler.signals import Outcome

logger = logging.getLogger(__name__)

_IDLE_RETRY_SECONDS = 60.0
_MAX_SLOW_TRIES = 3
"""Times that an item is tried again, alone, which takes a store too long, before it is rejected."""


class Report(Protocol):
    """What takes the outcome of records. All methods are called in the event loop's thread."""

    def settle(self, records: Sequence[Record], outcome: Outcome, reason: str | None = None) -> None:
        """Take note of what became of records."""

    def count(self, name: str, amount: float = 1) -> None:
        """Add to one of the store's figures."""

    def count_unrecorded(self) -> None:
        """Add an item for which `rejected.jsonl` had no room."""

    def set_stuck(self, error: OSError | None) -> None:
        """Take note of whether what the store does not take could be spooled."""

    def end(self) -> None:
        """Take note that the thread is done."""


class StoreThread:
    """Writes what is queued in batches, tries again what may work later, and closes the store at the end.

    Called from the event loop are `start`, `put`, `hurry`, `begin_closing`, `finish` and `time_left`; `keep_rejected` and `call_in_loop` from any thread.
    Attributes that begin with `_queue`, and the three that follow these, are guarded by `_changed`.
    """

    def __init__(
        self, store: Store, limits: Limits, report: Report, *, data_dir: Path, spool: Spool, waits_to_open: bool
    ) -> None:
        self._store = store
        self._limits = limits
        self._report = report
        self._data_dir = data_dir
        self._spool = spool
        self._waits_to_open = waits_to_open
        self._changed = threading.Condition()
        self._queue: deque[Record] = deque()
        self._queue_bytes = 0
        self._hurried = False  # whether the queue is written without waiting for a batch to fill
        self._complete = False  # whether nothing more will be queued
        self._deadline: float | None = None  # set when the spider closes

    def start(self, loop: asyncio.AbstractEventLoop) -> asyncio.Future[None]:
        """Open the store. The future is done when that is; it raises what `Store.open` did."""
        self._loop = loop
        opened: asyncio.Future[None] = loop.create_future()
        threading.Thread(target=self._work, args=(opened,), name=f"store-{self._store.name}", daemon=True).start()
        return opened

    def put(self, record: Record) -> None:
        """Queue a record."""
        with self._changed:
            self._queue.append(record)
            self._queue_bytes += len(record.encoded)
            # The thread waits until its oldest record is due. To wake it for each one costs more than to queue it.
            if len(self._queue) == 1 or self._limits.batch_due(len(self._queue), self._queue_bytes, age=0):
                self._changed.notify()

    def hurry(self) -> None:
        """Have all that is queued by now written, in as few batches as can be."""
        with self._changed:
            self._hurried = True
            self._changed.notify()

    def begin_closing(self) -> None:
        """Have what is queued written within `close_seconds` from the first call on. More may still be queued."""
        with self._changed:
            if self._deadline is None:
                self._deadline = time.monotonic() + self._limits.close_seconds
        self.hurry()

    def finish(self) -> None:
        """End when all that is queued is written, or the time is over."""
        with self._changed:
            self._complete = True
            self._changed.notify()

    @property
    def closing(self) -> bool:
        """Whether the spider closes."""
        return self._deadline is not None

    def _work(self, opened: asyncio.Future[None]) -> None:
        try:
            if self._open(opened):
                while (batch := self._next_batch(self._idle())) is not None:
                    if batch:
                        self._flush(batch)
        except Exception:
            # What is buffered is spooled when the spider closes.
            logger.exception("%s: the store's thread failed", self._store.name)
        try:
            self._store.close()
        except Exception:
            logger.exception("%s could not be closed", self._store.name)
        self.call_in_loop(self._report.end)

    def _open(self, opened: asyncio.Future[None]) -> bool:
        try:
            self._store.open()
        except TransientStoreError as error:
            if not self._waits_to_open:
                self.call_in_loop(opened.set_exception, error)
                return False
            logger.warning("%s can't be opened, and will be tried again: %s", self._store.name, error)
            self.call_in_loop(opened.set_result, None)
            return self._attempt(self._open_again, self._look_for_room)
        except Exception as error:  # noqa: BLE001 - raised again, in `open_spider`
            self.call_in_loop(opened.set_exception, error)
            return False
        self.call_in_loop(opened.set_result, None)
        return True

    def _open_again(self) -> None:
        try:
            self._store.open()
        except TransientStoreError:
            raise
        except Exception as error:  # the crawl is running by now: it is spooled for, not broken off
            raise TransientStoreError(f"{type(error).__name__}: {error}") from error

    def _idle(self) -> float | None:
        try:
            return self._store.idle()
        except Exception:  # what is done besides writing must not stop the writing
            logger.exception("%s failed while idle", self._store.name)
            return _IDLE_RETRY_SECONDS

    def _next_batch(self, pause: float | None) -> list[Record] | None:
        """Return a batch when one is due, an empty one after `pause` seconds without, None at the end."""
        until = float("inf") if pause is None else time.monotonic() + pause
        with self._changed:
            while True:
                now = time.monotonic()
                wake = until
                if self._queue:
                    oldest = self._queue[0].since
                    if (
                        self._hurried
                        or self._complete
                        or self._limits.batch_due(len(self._queue), self._queue_bytes, now - oldest)
                    ):
                        return self._take()
                    wake = min(wake, oldest + self._limits.batch_seconds)
                elif self._complete:
                    return None
                else:
                    self._hurried = False
                if now >= until:
                    return []
                self._changed.wait(None if wake == float("inf") else wake - now)

    def _take(self) -> list[Record]:
        batch: list[Record] = []
        size = 0
        while self._queue and len(batch) < self._limits.batch_items and size < self._limits.batch_bytes:
            batch.append(self._queue.popleft())
            size += len(batch[-1].encoded)
        self._queue_bytes -= size
        return batch

    def _flush(self, batch: list[Record]) -> None:
        """Write a batch; when it is rejected or takes too long, halve it until the item that is to blame stands alone."""
        try:
            durable = self._attempt(lambda: self._write(batch), self._look_for_room)
        except RejectedError as error:
            reason = str(error)
        except TooSlowError as error:
            reason = f"takes too long: {error}"
            logger.warning("%s: a batch of %d %s", self._store.name, len(batch), reason)
            if len(batch) == 1 and batch[0].slow < _MAX_SLOW_TRIES:
                # The server may be slow for another reason.
                batch[0].slow += 1
                self._sleep(backoff(batch[0].slow + 3, random.random()))  # noqa: S311 - no secret
                self._flush(batch)
                return
        except Exception as error:  # what the store didn't foresee is a reason to refuse an item, not to end the crawl
            logger.exception("%s failed on a batch of %d", self._store.name, len(batch))
            reason = f"{type(error).__name__}: {error}"
        else:
            if durable:
                self.call_in_loop(self._report.settle, batch, "durable")
            return
        if len(batch) == 1:
            self.keep_rejected(batch[0], reason)
            self.call_in_loop(self._report.settle, batch, "rejected", reason)
            return
        middle = len(batch) // 2
        self._flush(batch[:middle])
        self._flush(batch[middle:])

    def _write(self, batch: list[Record]) -> None:
        started = time.perf_counter()
        try:
            self._store.write(batch)
        except OSError as error:  # of this machine, such as too many open files: no item is to blame
            raise TransientStoreError(f"{type(error).__name__}: {error}") from error
        self.call_in_loop(self._report.count, "batches")
        self.call_in_loop(self._report.count, "seconds", time.perf_counter() - started)

    def _look_for_room(self) -> None:
        """Find out whether what the store does not take could be spooled, after it has failed to write."""
        try:
            # Of all that the buffer may hold; a page is spooled in base 64.
            self._spool.check_room(self._limits.buffer_bytes * 3 // 2)
        except OSError as error:
            self.call_in_loop(self._report.set_stuck, error)
        else:
            self.call_in_loop(self._report.set_stuck, None)

    def _attempt(self, action: Callable[[], None], failed: Callable[[], None] = lambda: None) -> bool:
        """Call until it no longer raises TransientStoreError; return False when the time to close is over before that.

        `failed` is called after each attempt that raised it.
        """
        for attempt in itertools.count(1):
            if self.closing and not self.time_left():
                return False
            try:
                action()
            except TransientStoreError as error:
                delay = backoff(attempt, random.random())  # noqa: S311 - no secret
                logger.warning("%s: attempt %d failed, next in %.1f s: %s", self._store.name, attempt, delay, error)
                self.call_in_loop(self._report.count, "retries")
                failed()
                self._sleep(delay)
            else:
                if attempt > 1:
                    self.call_in_loop(self._report.set_stuck, None)
                    logger.info("%s: attempt %d worked", self._store.name, attempt)
                return True
        raise AssertionError  # pragma: no cover - the count above never ends

    def _sleep(self, seconds: float) -> None:
        """Wait, but not longer than the spider's closing allows; when it begins to close, try again at once."""
        with self._changed:
            closing = self.closing
            longest = min(seconds, self.time_left()) if closing else seconds
            self._changed.wait_for(lambda: self.closing != closing, longest)

    def time_left(self) -> float:
        """Return the seconds that are left for closing."""
        return float("inf") if self._deadline is None else max(0.0, self._deadline - time.monotonic())

    def keep_rejected(self, record: Record, reason: str) -> None:
        """Write a record to `rejected.jsonl`."""
        logger.warning("%s rejected %s %s: %s", self._store.name, record.item.site, record.item.site_id, reason)
        if not append_rejected(self._data_dir, self._store.name, reason, record.item):
            self.call_in_loop(self._report.count_unrecorded)

    def call_in_loop(self, function: Callable[..., object], *args: object) -> None:
        """Call a function in the event loop."""
        # The loop is gone when a thread that hung comes back after all was spooled.
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(function, *args)
