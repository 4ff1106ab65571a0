"""The interface of a store, and the limits of its batches and its buffer."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from moviecrawler.basics.errors import RejectedError
from moviecrawler.items import ListPage, Movie

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime
    from pathlib import Path

    from scrapy.settings import BaseSettings

    from moviecrawler.items import Miss


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Bounds of a store's batches and buffer. Bytes are those of the items' JSON."""

    batch_items: int = 500
    batch_bytes: int = 4 * 1024 * 1024
    batch_seconds: float = 2.0
    buffer_items: int = 2000
    """These include the batch that is being written."""
    buffer_bytes: int = 16 * 1024 * 1024
    """A larger item is buffered alone."""
    close_seconds: float = 30.0
    """Time that the store has for what is left when the spider closes; the rest is spooled."""

    @classmethod
    def from_settings(cls, settings: BaseSettings, default: Limits) -> Limits:
        """Return `default` with the value of STORE_BATCH_SECONDS, if that is set."""
        seconds = settings["STORE_BATCH_SECONDS"]
        return replace(default, batch_seconds=float(seconds or default.batch_seconds))

    def is_full(self, items: int, size: int) -> bool:
        """Return whether a batch of so many items and bytes is written without waiting for more."""
        return items >= self.batch_items or size >= self.batch_bytes

    def has_space(self, items: int, size: int, more: int) -> bool:
        """Return whether a buffer with so many items and bytes can take an item of `more` bytes."""
        return not items or (items < self.buffer_items and size + more <= self.buffer_bytes)


def time_of(item: Movie | Miss | ListPage) -> datetime:
    """Return when an item was fetched. Raises RejectedError for one without a time or a site_id."""
    if isinstance(item, ListPage):
        return item.read_at
    time = item.scraped_at if isinstance(item, Movie) else item.checked_at
    if time is None or item.site_id is None:
        raise RejectedError("a movie without site_id or scraped_at can't be stored")
    return time


@dataclass(slots=True, eq=False)
class Record:
    """An item on its way to one store."""

    item: Any
    """An item of the pipeline's `item_types`, such as a Movie or a Miss."""
    encoded: bytes
    """The result of the pipeline's `encode` when the item arrived; later changes of the object
    don't count."""
    since: float
    """When it was buffered, by `time.monotonic()`."""
    spool: Path | None = None
    """The spool file that it was loaded from; None for an item of this run."""
    slow: int = 0
    """How often writing it alone took too long."""


def in_order(records: Sequence[Record]) -> list[Movie | Miss | ListPage]:
    """Return the items of records in the order of their times.

    Raises RejectedError for one without a time or a site_id.
    """
    return sorted((record.item for record in records), key=time_of)


class Store(ABC):
    """A place that items are written to.

    All methods but `hurry` are called in the store's own thread, so that they may block.
    """

    name: str
    """The store's name in stats, signals, `rejected.jsonl` and spool files."""
    hurried = False
    """Whether SIGTERM or Ctrl-C is ending this process; the store then leaves work to the next
    run."""
    remark = ""
    """A sentence for the summary of the crawl, set by `close`."""

    figures: Mapping[str, int] = MappingProxyType({})
    """Stats of this store alone, such as `crowded_searches`, as counted by `write`."""

    @abstractmethod
    def open(self) -> None:
        """Connect.

        Raises TransientStoreError when a later try may work, ConfigurationError when none will.
        """

    @abstractmethod
    def write(self, records: Sequence[Record]) -> None:
        """Merge the records into what is stored (`matching.merging.merged`).

        Once it returns, they are durable. It may be called again with the same records, and
        reconnects when the connection was lost. Raises TransientStoreError to be called again later
        with the same records, TooSlowError to be called with fewer, RejectedError when one of them
        is to blame; records may be stored even then, but never half of one.
        """

    def hurry(self) -> None:
        """Note that SIGTERM or Ctrl-C is ending this process. Called in the event loop's thread."""
        self.hurried = True

    @abstractmethod
    def close(self) -> None:
        """Finish and disconnect. Called once, also when `open` or the last `write` failed."""
