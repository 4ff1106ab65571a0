"""The base class of the stores' pipelines.

Items are buffered and written in batches, and each item's outcome is reported:

    process_item → buffer → batch → Store.write
    → `item_outcomes`: durable, rejected, spooled or lost

The event loop never blocks on a store. A store that is slow or down fills its buffer;
`process_item` then waits for space, which slows the crawl down, so that memory stays bounded and
nothing is lost. A store that can neither write nor spool stops the crawl at once until it can.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec
from scrapy.exceptions import CloseSpider, NotConfigured
from scrapy.utils.conf import build_component_list
from scrapy.utils.misc import load_object

from moviecrawler.basics.errors import ClockError, ConfigurationError, TransientStoreError
from moviecrawler.items import Batch, ListPage, Miss, Movie
from moviecrawler.pipelines.files import append_rejected, check_data_dir
from moviecrawler.pipelines.processor import taken_items
from moviecrawler.pipelines.spool import Spool
from moviecrawler.pipelines.store import Limits, Record
from moviecrawler.pipelines.writer import StoreWriter
from moviecrawler.scrapy_internals import announce_end, is_closing
from moviecrawler.signals import (
    item_outcomes,
    item_rejected,
    store_opened,
    worker_idle,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path
    from typing import Self

    from scrapy.crawler import Crawler
    from scrapy.settings import BaseSettings

    from moviecrawler.pipelines.store import Store
    from moviecrawler.signals import Outcome

logger = logging.getLogger(__name__)

_CLOSE_GRACE_SECONDS = 5.0
"""Seconds to close for a store that did not write everything in time."""
_SIGNAL_SECONDS = 5.0
"""Seconds after a signal in which a store takes what is left: containers are killed after ten."""
_SPACE_POLL_SECONDS = 0.5
"""Seconds after which an item that waits for space checks again whether the crawl is ending."""
_STUCK_SECONDS = 60.0
"""Seconds after which a worker of a shared crawl ends if a store can neither write nor spool, so
that others get its titles."""


def check_stores(settings: BaseSettings) -> None:
    """Raise ConfigurationError for a wrong setting of a store, without connecting."""
    for path in build_component_list(
        settings.get_component_priority_dict_with_base("ITEM_PIPELINES")
    ):
        pipeline = load_object(path)
        if isinstance(pipeline, type) and issubclass(pipeline, BatchingPipeline):
            with suppress(NotConfigured):
                pipeline.store_from_settings(settings)


class BatchingPipeline:
    """Write items of the `item_types` to a store, and pass all items on, as a Scrapy item pipeline.

    Sends `moviecrawler.signals.item_outcomes`, with each item once, and `item_rejected`. Counts,
    under `store/<name>/`: `durable`, `rejected`, `spooled` and `lost` items, of the rejected ones
    those that are `rejected_from_spool`, `batches`, `retries`, `seconds` of writing,
    `buffered_max` items, `damaged` spool files, and the store's own `figures`; in
    `items/unrecorded` the rejected items that could not be written to `rejected.jsonl`. Runs in
    the event loop; calls that block run in the `StoreWriter`'s thread.
    """

    item_types: ClassVar[tuple[type, ...]] = (Movie, Miss, ListPage)
    """The types of items that the store takes."""
    default_limits: ClassVar[Limits] = Limits()
    """The limits where settings don't change them."""

    def __init__(self, crawler: Crawler, store: Store, limits: Limits) -> None:
        assert crawler.stats is not None  # noqa: S101 - Scrapy sets it before it creates components
        self.store = store
        self.limits = limits
        self._crawler = crawler
        self._stats = crawler.stats
        self._signals = crawler.signals
        self._data_dir = check_data_dir(crawler.settings.get("DATA_DIR", "data"))
        self._spool_files = Spool(self._data_dir, store.name, self.item_types)
        self._stuck = False  # whether the store can neither write nor spool
        self._waited_for_since = math.inf  # when nothing was left to be done but its writing
        self._pending: dict[Record, None] = {}  # records without an outcome, in order
        self._pending_bytes = 0
        self._most_pending = 0
        self._opening: asyncio.Event | None = None
        self._loading: asyncio.Task[None] | None = None
        self._writing: asyncio.Task[None] | None = None
        self._progress = asyncio.Event()
        waits = crawler.settings.get("STORE_UNREACHABLE", "fail") == "wait"
        self._writer = StoreWriter(store, limits, self, waits_to_open=waits)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Read DATA_DIR, STORE_UNREACHABLE, and the settings of `Limits` and the store."""
        settings = crawler.settings
        return cls(
            crawler,
            cls.store_from_settings(settings),
            Limits.from_settings(settings, cls.default_limits),
        )

    @classmethod
    def store_from_settings(cls, settings: BaseSettings) -> Store:
        """Return the store.

        Raises NotConfigured when the settings name none, ConfigurationError when they are wrong.
        """
        raise NotImplementedError

    def encode(self, item: Any) -> bytes:
        """Return an item in the form in which it is written.

        Raises TypeError, ValueError or OverflowError.
        """
        return msgspec.json.encode(item)

    async def open_spider(self) -> None:
        """Open the store, and begin to load the spool files of earlier runs.

        Raises CloseSpider when it can't be opened, unless STORE_UNREACHABLE is `wait` and a later
        try may work.
        """
        self._opening = asyncio.Event()
        try:
            await self._open()
        finally:
            self._opening.set()

    async def _open(self) -> None:
        self._loop = asyncio.get_running_loop()
        # With an empty queue nothing more comes to fill a batch, so it is written now.
        self._signals.connect(self._hurry, worker_idle)
        announce_end(self._crawler, self.store.hurry)
        try:
            await self._writer.open()
        except (ConfigurationError, TransientStoreError) as error:
            why = f"{self.store.name} can't be used, so nothing is crawled: {error}"
            logger.error("%s", why)  # noqa: TRY400 - the error's sentence says it all
            self._stats.set_value("crawl/cause", why)
            self.remark(f"{self.store.name} can't be used")
            reason = "clock_wrong" if isinstance(error, ClockError) else "store_unavailable"
            raise CloseSpider(reason) from error
        if Movie in self.item_types:
            self._signals.send_catch_log(store_opened, store=self.store.name)
            self._stats.inc_value(self._stat("durable"), 0)  # the summary names the store
        self._writing = self._loop.create_task(self._writer.run())
        self._writing.add_done_callback(self._writing_ended)
        self._loading = self._loop.create_task(self._load_spool())

    async def process_item(self, item: Any) -> Any:
        """Put an item, or each of a batch, into the buffer; wait while that is full."""
        if isinstance(item, Batch) and Movie in self.item_types:
            now = time.monotonic()
            for movie, encoded in zip(item.movies, item.encoded, strict=True):
                await self._enqueue(Record(movie, encoded, now))
        elif isinstance(item, self.item_types):
            taken_items.get([]).append(item)
            record = Record(item, b"", time.monotonic())
            try:
                record.encoded = self.encode(item)
            except (TypeError, ValueError, OverflowError) as error:
                self._add_pending(record)
                await self.reject(record, f"can't be written as JSON: {error}")
            else:
                await self._enqueue(record)
        return item

    async def close_spider(self) -> None:
        """Write everything in the time for that, and spool what the store did not take."""
        if self._opening is not None:
            # Another store was refused, so that the crawl ends, while this one is being opened.
            await self._opening.wait()
        if self._loading is None or self._writing is None:
            return  # the store was never opened
        if self._has_signal:
            self.store.hurry()
        # Items from spool files must not wait until their batch is due: a short crawl would never
        # load them.
        self._begin_closing()
        await asyncio.wait({self._loading}, timeout=self._writer.time_left())
        self._loading.cancel()
        await asyncio.wait({self._loading})
        self._writer.finish()
        # The writer gives up at the deadline, unless it hangs inside the store.
        with suppress(TimeoutError):
            await asyncio.wait_for(
                self._until(lambda: self._has_ended or not self._pending),
                self._writer.time_left() + 0.5,
            )
        pending = list(self._pending)
        if pending:
            await self._spool(pending)
        # A store that took everything may take its time to close.
        await asyncio.wait({self._writing}, timeout=_CLOSE_GRACE_SECONDS if pending else None)
        self._writing.cancel()

    @property
    def _has_signal(self) -> bool:
        """Whether SIGTERM or Ctrl-C has ended the crawl."""
        return not self._crawler.engine.running

    def _begin_closing(self) -> None:
        """Begin the `close_seconds` for what is left.

        Whoever sends a signal kills soon: then that is at most `_SIGNAL_SECONDS`.
        """
        self._writer.begin_closing(_SIGNAL_SECONDS if self._has_signal else math.inf)

    async def _enqueue(self, record: Record) -> None:
        size = len(record.encoded)
        await self._wait_for_space(size)
        if self._has_ended and not self._writer.closing:  # when closing, the item is spooled
            raise RuntimeError(f"{self.store.name}: writing has failed, see the log")
        self._add_pending(record)
        self._writer.put(record)

    async def _wait_for_space(self, size: int) -> None:
        """Wait for space in the buffer; when the crawl ends, no longer than closing may take."""
        while not self._has_ended and (
            self._stuck or not self.limits.has_space(len(self._pending), self._pending_bytes, size)
        ):
            self._writer.hurry()
            if is_closing(self._crawler.engine):
                # The engine waits for this item before it closes the spider, so the deadline must
                # begin now.
                self._begin_closing()
            if not self._writer.time_left():
                return
            self._progress.clear()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._progress.wait(), _SPACE_POLL_SECONDS)

    def _add_pending(self, record: Record) -> None:
        self._pending[record] = None
        self._pending_bytes += len(record.encoded)
        if len(self._pending) > self._most_pending:
            self._most_pending = len(self._pending)
            self._stats.set_value(self._stat("buffered_max"), self._most_pending)

    async def _until(self, condition: Callable[[], bool]) -> None:
        """Wait for a condition.

        Only outcomes of items, or the end of the writing, can bring it about.
        """
        while not condition():
            self._progress.clear()
            await self._progress.wait()

    def report_outcome(
        self, records: Sequence[Record], outcome: Outcome, reason: str | None = None
    ) -> None:
        """Report the outcome of records, each once."""
        # An item that the store takes after the deadline may have been spooled meanwhile.
        finished = [record for record in records if record in self._pending]
        if finished:
            self._waited_for_since = math.inf
            self._stats.inc_value(self._stat(outcome), len(finished))
        for record in finished:
            del self._pending[record]
            self._pending_bytes -= len(record.encoded)
            if outcome == "rejected":
                self._send_rejected(reason or "", record.item)
        for earlier in (False, True):
            if items := [
                record.item for record in finished if (record.spool is not None) is earlier
            ]:
                if earlier and outcome == "rejected":  # no title of this crawl counts as failed
                    self._stats.inc_value(self._stat("rejected_from_spool"), len(items))
                told = {
                    "store": self.store.name,
                    "outcome": outcome,
                    "reason": reason,
                    "earlier": earlier,
                }
                self._signals.send_catch_log(item_outcomes, items=items, **told)
        self._progress.set()

    async def _spool(self, records: Sequence[Record]) -> None:
        # Items that were loaded from a spool file are still in that file.
        fresh = [record for record in records if record.spool is None]
        try:
            if fresh:
                path = await asyncio.to_thread(
                    self._spool_files.write, [record.item for record in fresh]
                )
                logger.warning(
                    "%s did not take %d items in time; they are spooled in %s",
                    self.store.name,
                    len(fresh),
                    path,
                )
        except OSError as error:
            message = (
                "%s: %d items are lost: neither stored nor spooled (%s); ask for their titles again"
            )
            # The disk's message says it all.
            logger.error(message, self.store.name, len(fresh), error)  # noqa: TRY400
            self.report_outcome(fresh, "lost", f"neither stored nor spooled: {error}")
            self.report_outcome(
                [record for record in records if record.spool is not None], "spooled"
            )
        else:
            self.report_outcome(records, "spooled")

    async def _load_spool(self) -> None:
        try:
            for path in await asyncio.to_thread(self._spool_files.begin_loading):
                try:
                    await self._load_file(path)
                except OSError as error:
                    self._tell_damaged(f"{path} stays, as it can't be loaded: {error}")
        except OSError as error:
            self._tell_damaged(f"spool files of earlier runs can't be loaded: {error}")
        finally:
            self._spool_files.end_loading()

    async def _load_file(self, path: Path) -> None:
        """Load a spool file, then delete it; a damaged one is kept. Raises OSError."""
        records, faults = await asyncio.to_thread(self._read_file, path)
        kept = path.with_name(f"{path.name}.damaged")
        if faults:
            self._tell_damaged(
                f"{path} is damaged ({faults[0]}; {len(faults)} in all): it stays as {kept.name},"
                f" and its other {len(records)} items are loaded"
            )
        for record in records:
            await self._enqueue(record)
        self._writer.hurry()  # the file has waited long enough
        await self._until(partial(self._pending.keys().isdisjoint, records))
        if faults:
            await asyncio.to_thread(path.rename, kept)
        else:
            await asyncio.to_thread(path.unlink, missing_ok=True)
        logger.info("%s: loaded %d items from %s", self.store.name, len(records), path)

    def _read_file(self, path: Path) -> tuple[list[Record], list[str]]:
        """Return the items of a spool file, and what is wrong with the rest.

        They fit into memory as they fitted into a buffer.
        """
        items, faults = self._spool_files.read(path)
        now = time.monotonic()
        return [Record(item, self.encode(item), now, path) for item in items], faults

    def _tell_damaged(self, sentence: str) -> None:
        """Log that a spool file could not be loaded, or not all of it, and count it."""
        logger.error("%s: %s", self.store.name, sentence)
        self.count("damaged")

    async def check_space(self) -> None:
        """Stop the crawl while the store can neither write nor spool.

        A worker of a shared crawl ends after a while.
        """
        was_stuck = self._stuck
        try:
            # The whole buffer must fit; pages are spooled in base 64, which is a third longer.
            await asyncio.to_thread(
                self._spool_files.check_free_space, self.limits.buffer_bytes * 3 // 2
            )
            self.end_stuck()
        except OSError as error:
            self._stuck = True
            if not was_stuck:
                message = (
                    "%s can neither be written nor spooled (%s): "
                    "the crawl waits until there is space in %s"
                )
                # The disk's message says it all.
                logger.error(message, self.store.name, error, self._data_dir)  # noqa: TRY400
                self._stats.inc_value(self._stat("stuck"))
                if self._crawler.settings.get("REDIS_URL"):
                    self._loop.call_later(_STUCK_SECONDS, self._end_if_stuck)

    def _hurry(self, is_all_fetched: bool) -> None:
        """Write at once; end the crawl that has waited for this store alone for too long.

        That is FRONTIER_PATIENCE, but no less than the time that the store has at a crawl's end.
        The crawl's end spools the items, and their requests go back.
        """
        self._writer.hurry()
        if not (is_all_fetched and self._pending):
            self._waited_for_since = math.inf
            return
        now = time.monotonic()
        self._waited_for_since = min(self._waited_for_since, now)
        patience = self._crawler.settings.getfloat("FRONTIER_PATIENCE")
        seconds = max(patience, self.limits.close_seconds)
        if now - self._waited_for_since >= seconds:
            message = f"has taken nothing for {seconds:g} s, and nothing else is left to do"
            self._end_crawl("store_unavailable", message)

    def end_stuck(self) -> None:
        """Let the crawl go on."""
        self._stuck = False
        self._progress.set()

    def _end_if_stuck(self) -> None:
        if self._stuck:
            self._end_crawl(
                "store_stuck",
                "can still neither be written nor spooled: others get this worker's titles",
            )

    def _end_crawl(self, reason: str, message: str) -> None:
        if not is_closing(self._crawler.engine):
            logger.error("%s %s; the crawl ends", self.store.name, message)
            self._stats.set_value("crawl/cause", f"{self.store.name} {message}")
            self._ending = self._loop.create_task(
                self._crawler.engine.close_spider_async(reason=reason)
            )

    def _send_rejected(self, reason: str, item: Any) -> None:
        self._signals.send_catch_log(item_rejected, store=self.store.name, reason=reason, item=item)

    def remark(self, text: str) -> None:
        """Add a sentence to the summary of the crawl."""
        self._stats.set_value(self._stat("remark"), text)

    def count(self, name: str, amount: float = 1) -> None:
        """Add to one of the store's stats."""
        # Scrapy's type, not its code, asks for an int.
        self._stats.inc_value(self._stat(name), amount)  # type: ignore[arg-type]

    def set_figures(self, figures: Mapping[str, int]) -> None:
        """Set stats that the store counts itself."""
        for name, value in figures.items():
            self._stats.set_value(self._stat(name), value)

    async def reject(self, record: Record, reason: str) -> None:
        """Write a record to `rejected.jsonl`, and report it rejected."""
        logger.warning(
            "%s rejected %s %s: %s", self.store.name, record.item.site, record.item.site_id, reason
        )
        if not await asyncio.to_thread(
            append_rejected, self._data_dir, self.store.name, reason, record.item
        ):
            self._stats.inc_value("items/unrecorded")
        self.report_outcome([record], "rejected", reason)

    @property
    def _has_ended(self) -> bool:
        return self._writing is not None and self._writing.done()

    def _writing_ended(self, _: object) -> None:
        """End the crawl when writing has failed."""
        self._progress.set()
        if not self._writer.closing and not is_closing(self._crawler.engine):
            self._writer.begin_closing()  # items that come from now on are spooled
            self._end_crawl(
                "store_failed", "can't be written any more: what it did not take is spooled"
            )

    def _stat(self, name: str) -> str:
        return f"store/{self.store.name}/{name}"
