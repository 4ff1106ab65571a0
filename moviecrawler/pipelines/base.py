"""What all stores share: items are buffered, written in batches by a thread of their own, and accounted for one by one.

    process_item → buffer → batch → Store.write → `item_settled`: durable, rejected or spooled

The event loop never waits for a store. A store that is slow or down fills its buffer; then `process_item` awaits room,
which holds the crawl back, so that memory stays bounded and nothing is lost.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import random
import threading
import time
from abc import ABC, abstractmethod
from collections import deque
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec
from scrapy.exceptions import CloseSpider, NotConfigured
from scrapy.utils.conf import build_component_list
from scrapy.utils.misc import load_object

from moviecrawler.catalogue.stored import read_movie
from moviecrawler.errors import ConfigurationError, RejectedError, TransientStoreError
from moviecrawler.items import Miss, Movie
from moviecrawler.pipelines.files import append_rejected, check_data_dir, spool_files, write_spool
from moviecrawler.signals import item_rejected, item_settled, store_opened

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path
    from typing import Self

    from scrapy.crawler import Crawler
    from scrapy.settings import BaseSettings
    from scrapy.signalmanager import SignalManager
    from scrapy.statscollectors import StatsCollector

    from moviecrawler.signals import Outcome

logger = logging.getLogger(__name__)

_FIRST_DELAY = 0.2
_LONGEST_DELAY = 30.0
_ENDLESS = 10**9
"""More than any limit can be, and than a lock can wait."""
_IDLE_AFTER_ERROR = 60.0
_GRACE = 5.0
"""Seconds that a store which did not take everything in time is given to close."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How much a store's buffer holds, and when it is flushed. All above 0."""

    batch_items: int = 500
    batch_bytes: int = 4 * 1024 * 1024
    """Of the items' JSON, as are all bytes here."""
    batch_seconds: float = 2.0
    """The longest that an item waits for its batch to fill."""
    buffer_items: int = 2000
    """Including the batch that is being written. At least `batch_items`, else a batch could never fill."""
    buffer_bytes: int = 16 * 1024 * 1024
    """An item larger than that is taken when the buffer is empty."""
    close_seconds: float = 30.0
    """How long a store may take for what is left when the spider closes; the rest is spooled."""

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if not 0 < value < _ENDLESS:
                raise ConfigurationError(
                    f"STORE_{field.name.upper()} is {value}; set it above 0 and below {_ENDLESS:,}"
                )
        if self.buffer_items < self.batch_items:
            raise ConfigurationError(
                f"STORE_BUFFER_ITEMS is {self.buffer_items}; set it to STORE_BATCH_ITEMS ({self.batch_items}) or above"
            )

    @classmethod
    def from_settings(cls, settings: BaseSettings, default: Limits | None = None) -> Limits:
        """Read STORE_BATCH_ITEMS, STORE_BATCH_SECONDS and so on; `default` has the values of those that are not set."""
        given: dict[str, Any] = {}
        for field in fields(cls):
            name = f"STORE_{field.name.upper()}"
            read = settings.getfloat if isinstance(field.default, float) else settings.getint
            try:
                if settings.get(name) is not None:
                    given[field.name] = read(name)
            except (TypeError, ValueError):
                raise ConfigurationError(f"{name} is {settings[name]!r}; set it to a number above 0") from None
        return replace(default or cls(), **given)

    def batch_due(self, items: int, size: int, age: float) -> bool:
        """Return whether a batch of so many items and bytes, whose oldest waits for `age` seconds, is to be written."""
        return items >= self.batch_items or size >= self.batch_bytes or age >= self.batch_seconds

    def has_room(self, items: int, size: int, more: int) -> bool:
        """Return whether a buffer with so many items and bytes can take an item of `more` bytes."""
        return not items or (items < self.buffer_items and size + more <= self.buffer_bytes)


def backoff(attempt: int, chance: float) -> float:
    """Return the seconds to wait after the attempt of that number (from 1); `chance`, 0 to 1, spreads many processes."""
    doubled: float = _FIRST_DELAY * 2 ** min(attempt - 1, 16)
    return min(_LONGEST_DELAY, doubled) * (0.5 + chance / 2)


class _Spooled(msgspec.Struct):
    """A line of a spool file."""

    type: str
    item: msgspec.Raw


@dataclass(slots=True, eq=False)
class Record:
    """An item on its way into one store."""

    item: Any
    """A Movie or a Miss, or what else the pipeline takes."""
    encoded: bytes
    """The item as JSON, or as the pipeline's `encode` gives it: taken when it arrived, whatever becomes of the object
    since."""
    since: float
    """When it was buffered, by `time.monotonic()`."""
    spool: Path | None = None
    """The file that it was loaded from, when an earlier run could not store it."""


class Store(ABC):
    """Where items are kept. All methods are called from one thread, which is the store's own: they may block."""

    name: str
    """Names it in stats, signals, `rejected.jsonl` and spool files."""

    @abstractmethod
    def open(self) -> None:
        """Connect. Raises TransientStoreError when a later try may work, ConfigurationError when none will."""

    @abstractmethod
    def write(self, records: Sequence[Record]) -> None:
        """Store the records, all or none, so that they survive a crash of this process once it returns.

        A record of a title that is stored already replaces it, unless what is stored was scraped later. The same
        record may be written again. A connection that was lost is made anew. Raises TransientStoreError to be called
        again later with the same records, RejectedError when something in them is to blame.
        """

    def idle(self) -> float | None:
        """Do what is due besides writing; return the seconds until something is again, None for not before a batch."""
        return None

    @abstractmethod
    def close(self) -> None:
        """Finish and disconnect. Called once, also when `open` or the last `write` failed."""


def check_stores(settings: BaseSettings) -> None:
    """Raise ConfigurationError for a setting of a store that can't be right; nothing is connected."""
    Limits.from_settings(settings)
    for path in build_component_list(settings.get_component_priority_dict_with_base("ITEM_PIPELINES")):
        pipeline = load_object(path)
        if isinstance(pipeline, type) and issubclass(pipeline, BatchingPipeline):
            with suppress(NotConfigured):
                pipeline.store_from_settings(settings)


class BatchingPipeline:
    """Scrapy item pipeline that writes Movies and Misses, or other types of items, to a store; the rest pass through.

    Sends `moviecrawler.signals.item_settled` once an item, and `item_rejected`. Counts, under `store/<name>/`: `durable`, `rejected` and
    `spooled` items, `batches` written, `retries`, `seconds` spent in writing, `buffered_max` items.

    Attributes that begin with `_held` belong to the event loop's thread, those with `_queue` are guarded by `_changed`.
    """

    item_types: ClassVar[tuple[type, ...]] = (Movie, Miss)
    """What the store takes."""
    default_limits: ClassVar[Limits] = Limits()
    """What applies where settings say nothing else."""

    def __init__(
        self,
        store: Store,
        *,
        data_dir: Path,
        limits: Limits,
        stats: StatsCollector,
        signals: SignalManager,
        waits_to_open: bool = True,
    ) -> None:
        self.store = store
        self.limits = limits
        self._waits_to_open = waits_to_open
        self._data_dir = data_dir
        self._stats = stats
        self._signals = signals
        self._held: dict[Record, None] = {}  # everything that is not settled yet, in order
        self._held_bytes = 0
        self._loading: asyncio.Task[None] | None = None
        self._ended = False  # whether the thread is done, in the event loop's view
        self._changed = threading.Condition()
        self._queue: deque[Record] = deque()
        self._queue_bytes = 0
        self._deadline: float | None = None  # set, under `_changed`, when the spider closes

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Read DATA_DIR, STORE_UNREACHABLE and what `Limits` and the store read."""
        assert crawler.stats is not None  # noqa: S101 - Scrapy sets it before it creates components
        data_dir = check_data_dir(crawler.settings.get("DATA_DIR", "data"))
        return cls(
            cls.store_from_settings(crawler.settings),
            data_dir=data_dir,
            limits=Limits.from_settings(crawler.settings, cls.default_limits),
            stats=crawler.stats,
            signals=crawler.signals,
            waits_to_open=crawler.settings.get("STORE_UNREACHABLE", "fail") == "wait",
        )

    @classmethod
    def store_from_settings(cls, settings: BaseSettings) -> Store:
        """Return the store. Raises NotConfigured when the settings name none, ConfigurationError when they are wrong."""
        raise NotImplementedError

    def encode(self, item: Any) -> bytes:
        """Return what is counted and written of an item. Raises TypeError, ValueError or OverflowError."""
        return msgspec.json.encode(item)

    def spooled(self, record: Record) -> bytes:
        """Return a record's item as the JSON that a spool file holds."""
        return record.encoded

    @property
    def buffered(self) -> int:
        """How many items are not settled yet."""
        return len(self._held)

    # --- In the event loop --------------------------------------------------------------------------------------------

    async def open_spider(self) -> None:
        """Connect the store, and begin to load what earlier runs spooled.

        Raises CloseSpider when it can't be connected: at all, or now, unless it may be waited for.
        """
        self._loop = asyncio.get_running_loop()
        self._settled = asyncio.Event()
        opened: asyncio.Future[None] = self._loop.create_future()
        threading.Thread(target=self._work, args=(opened,), name=f"store-{self.store.name}", daemon=True).start()
        try:
            await opened
        except (ConfigurationError, TransientStoreError) as error:
            logger.error("%s can't be used, so nothing is crawled: %s", self.store.name, error)  # noqa: TRY400 - a sentence says it
            raise CloseSpider("store_unavailable") from error
        if Movie in self.item_types:
            self._signals.send_catch_log(store_opened, store=self.store.name)
        self._loading = self._loop.create_task(self._load_spool())

    async def process_item(self, item: Any) -> Any:
        """Put an item into the buffer; wait only while that is full."""
        if isinstance(item, self.item_types):
            try:
                record = Record(item, self.encode(item), time.monotonic())
            except (TypeError, ValueError, OverflowError) as error:
                record = Record(item, b"", time.monotonic())
                reason = f"not to be written as JSON: {error}"
                self._hold(record)
                await asyncio.to_thread(self._keep_rejected, record, reason)
                self._settle([record], "rejected", reason)
            else:
                await self._admit(record)
        return item

    async def close_spider(self) -> None:
        """Flush everything within `close_seconds`, and spool what the store did not take."""
        if self._loading is None:
            return  # it was never opened
        deadline = time.monotonic() + self.limits.close_seconds
        await asyncio.wait({self._loading}, timeout=self.limits.close_seconds)
        self._loading.cancel()
        await asyncio.wait({self._loading})
        with self._changed:
            self._deadline = deadline
            self._changed.notify()
        # The thread itself gives up at the deadline, unless it hangs inside the store.
        with suppress(TimeoutError):
            await asyncio.wait_for(self._until(lambda: self._ended or not self._held), self._time_left() + 0.5)
        unsettled = list(self._held)
        if unsettled:
            await self._spool(unsettled)
        # A store that took everything may finish in its own time.
        with suppress(TimeoutError):
            await asyncio.wait_for(self._until(lambda: self._ended), _GRACE if unsettled else None)

    async def _admit(self, record: Record) -> None:
        size = len(record.encoded)
        await self._until(lambda: self._ended or self.limits.has_room(len(self._held), self._held_bytes, size))
        if self._ended:
            raise RuntimeError(f"{self.store.name}: the store's thread has failed, see the log")
        self._hold(record)
        with self._changed:
            self._queue.append(record)
            self._queue_bytes += size
            self._changed.notify()

    def _hold(self, record: Record) -> None:
        self._held[record] = None
        self._held_bytes += len(record.encoded)
        self._stats.max_value(self._stat("buffered_max"), len(self._held))

    async def _until(self, condition: Callable[[], bool]) -> None:
        """Wait for a condition that only settled items, or the thread's end, can bring about."""
        while not condition():
            self._settled.clear()
            await self._settled.wait()

    def _settle(self, records: Sequence[Record], outcome: Outcome, reason: str | None = None) -> None:
        for record in records:
            # A thread that hung until after the deadline may still report what was spooled meanwhile.
            if record not in self._held:
                continue
            del self._held[record]
            self._held_bytes -= len(record.encoded)
            self._count(outcome)
            self._signals.send_catch_log(
                item_settled,
                item=record.item,
                store=self.store.name,
                outcome=outcome,
                reason=reason,
                earlier=record.spool is not None,
            )
            if outcome == "rejected":
                self._tell_rejected(reason or "", record.item)
        self._settled.set()

    async def _spool(self, records: Sequence[Record]) -> None:
        # What was loaded from a spool file is still in that file.
        fresh = [record for record in records if record.spool is None]
        try:
            if fresh:
                lines = (
                    msgspec.json.encode(_Spooled(type(record.item).__name__, msgspec.Raw(self.spooled(record))))
                    for record in fresh
                )
                path = await asyncio.to_thread(write_spool, self._data_dir, self.store.name, lines)
                logger.warning("%s did not take %d items in time: kept in %s", self.store.name, len(fresh), path)
        except OSError:
            # They are not settled, so whoever asked for them still counts them as not done.
            logger.exception("%s: %d items are lost, as they could not be spooled", self.store.name, len(fresh))
        else:
            self._settle(records, "spooled")

    async def _load_spool(self) -> None:
        for path in spool_files(self._data_dir, self.store.name):
            try:
                records = await asyncio.to_thread(self._read_spool, path)
                for record in records:
                    await self._admit(record)
                await self._until(partial(self._held.keys().isdisjoint, records))
                path.unlink(missing_ok=True)
            except OSError as error:
                logger.warning("%s: %s can't be loaded: %s", self.store.name, path, error)
            else:
                logger.info("%s: loaded %d items from %s", self.store.name, len(records), path)

    def _read_spool(self, path: Path) -> list[Record]:
        """Return the items of a file, whose size a buffer's bounds limit."""
        records = []
        types = {kind.__name__: kind for kind in self.item_types}
        for line in path.read_bytes().splitlines():
            try:
                spooled = msgspec.json.decode(line, type=_Spooled)
                kind, encoded = types[spooled.type], bytes(spooled.item)
                item: Any = read_movie(encoded) if kind is Movie else msgspec.json.decode(encoded, type=kind)
                records.append(Record(item, self.encode(item), time.monotonic(), path))
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, KeyError) as error:
                text, reason = line.decode(errors="replace"), f"{path.name} holds no item here: {error}"
                append_rejected(self._data_dir, self.store.name, reason, text)
                self._tell(self._tell_rejected, reason, text)
        return records

    def _tell_rejected(self, reason: str, item: Any) -> None:
        self._signals.send_catch_log(item_rejected, store=self.store.name, reason=reason, item=item)

    def _count(self, name: str) -> None:
        self._stats.inc_value(self._stat(name))

    def _count_batch(self, seconds: float) -> None:
        self._count("batches")
        self._stats.set_value(self._stat("seconds"), self._stats.get_value(self._stat("seconds"), 0.0) + seconds)

    def _end(self) -> None:
        self._ended = True
        self._settled.set()

    def _stat(self, name: str) -> str:
        return f"store/{self.store.name}/{name}"

    # --- In the store's thread ----------------------------------------------------------------------------------------

    def _work(self, opened: asyncio.Future[None]) -> None:
        try:
            if self._open(opened):
                while (batch := self._next_batch(self._idle())) is not None:
                    if batch:
                        self._flush(batch)
        except Exception:
            # What is buffered is spooled when the spider closes.
            logger.exception("%s: the store's thread failed", self.store.name)
        try:
            self.store.close()
        except Exception:
            logger.exception("%s could not be closed", self.store.name)
        self._tell(self._end)

    def _open(self, opened: asyncio.Future[None]) -> bool:
        try:
            self.store.open()
        except TransientStoreError as error:
            if not self._waits_to_open:
                self._tell(opened.set_exception, error)
                return False
            logger.warning("%s can't be opened, and will be tried again: %s", self.store.name, error)
            self._tell(opened.set_result, None)
            return self._attempt(self._open_again)
        except Exception as error:  # noqa: BLE001 - raised again, in `open_spider`
            self._tell(opened.set_exception, error)
            return False
        self._tell(opened.set_result, None)
        return True

    def _open_again(self) -> None:
        try:
            self.store.open()
        except TransientStoreError:
            raise
        except Exception as error:  # the crawl is running by now: it is spooled for, not broken off
            raise TransientStoreError(f"{type(error).__name__}: {error}") from error

    def _idle(self) -> float | None:
        try:
            return self.store.idle()
        except Exception:  # what is done besides writing must not stop the writing
            logger.exception("%s failed while idle", self.store.name)
            return _IDLE_AFTER_ERROR

    def _next_batch(self, pause: float | None) -> list[Record] | None:
        """Return a batch when one is due, an empty one after `pause` seconds without, None at the end."""
        until = float("inf") if pause is None else time.monotonic() + pause
        with self._changed:
            while True:
                now = time.monotonic()
                wake = until
                if self._queue:
                    oldest = self._queue[0].since
                    if self._closing() or self.limits.batch_due(len(self._queue), self._queue_bytes, now - oldest):
                        return self._take()
                    wake = min(wake, oldest + self.limits.batch_seconds)
                elif self._closing():
                    return None
                if now >= until:
                    return []
                self._changed.wait(None if wake == float("inf") else wake - now)

    def _take(self) -> list[Record]:
        batch: list[Record] = []
        size = 0
        while self._queue and len(batch) < self.limits.batch_items and size < self.limits.batch_bytes:
            batch.append(self._queue.popleft())
            size += len(batch[-1].encoded)
        self._queue_bytes -= size
        return batch

    def _flush(self, batch: list[Record]) -> None:
        """Write a batch; when it is rejected, halve it until the item that is to blame stands alone."""
        try:
            durable = self._attempt(lambda: self._write(batch))
        except RejectedError as error:
            reason = str(error)
        except Exception as error:  # what the store didn't foresee is a reason to refuse an item, not to end the crawl
            logger.exception("%s failed on a batch of %d", self.store.name, len(batch))
            reason = f"{type(error).__name__}: {error}"
        else:
            if durable:
                self._tell(self._settle, batch, "durable")
            return
        if len(batch) == 1:
            self._keep_rejected(batch[0], reason)
            self._tell(self._settle, batch, "rejected", reason)
            return
        middle = len(batch) // 2
        self._flush(batch[:middle])
        self._flush(batch[middle:])

    def _write(self, batch: list[Record]) -> None:
        started = time.perf_counter()
        try:
            self.store.write(batch)
        except OSError as error:  # of this machine, such as too many open files: no item is to blame
            raise TransientStoreError(f"{type(error).__name__}: {error}") from error
        self._tell(self._count_batch, time.perf_counter() - started)

    def _attempt(self, action: Callable[[], None]) -> bool:
        """Call until it no longer raises TransientStoreError; return False when the time to close is over before that."""
        for attempt in itertools.count(1):
            if self._closing() and not self._time_left():
                return False
            try:
                action()
            except TransientStoreError as error:
                delay = backoff(attempt, random.random())  # noqa: S311 - no secret
                logger.warning("%s: attempt %d failed, next in %.1f s: %s", self.store.name, attempt, delay, error)
                self._tell(self._count, "retries")
                self._sleep(delay)
            else:
                if attempt > 1:
                    logger.info("%s: attempt %d worked", self.store.name, attempt)
                return True
        raise AssertionError  # pragma: no cover - the count above never ends

    def _sleep(self, seconds: float) -> None:
        """Wait, but not longer than the spider's closing allows; when it begins to close, try again at once."""
        with self._changed:
            closing = self._closing()
            longest = min(seconds, self._time_left()) if closing else seconds
            self._changed.wait_for(lambda: self._closing() != closing, longest)

    def _closing(self) -> bool:
        return self._deadline is not None

    def _time_left(self) -> float:
        return float("inf") if self._deadline is None else max(0.0, self._deadline - time.monotonic())

    def _keep_rejected(self, record: Record, reason: str) -> None:
        logger.warning("%s rejected %s %s: %s", self.store.name, record.item.site, record.item.site_id, reason)
        append_rejected(self._data_dir, self.store.name, reason, record.item)

    def _tell(self, function: Callable[..., object], *args: object) -> None:
        # The loop is gone when a thread that hung comes back after all was spooled.
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(function, *args)
