"""What a store is: where items are kept, in batches, and how large these are."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any

from moviecrawler.errors import RejectedError
from moviecrawler.items import Movie
from moviecrawler.options import StoreOptions

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from scrapy.settings import BaseSettings

    from moviecrawler.items import Miss

_WHICH = ("CSV_ENABLED", "DATABASE_URL", "MONGO_URL", "S3_BUCKET", "S3_PREFIX", "S3_ENDPOINT_URL")
"""The settings that say which stores there are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How much a store's buffer holds, and when it is flushed. All bytes are those of the items' JSON."""

    batch_items: int = 500
    batch_bytes: int = 4 * 1024 * 1024
    batch_seconds: float = 2.0
    buffer_items: int = 2000
    """Including the batch that is being written."""
    buffer_bytes: int = 16 * 1024 * 1024
    """An item larger than that is taken when the buffer is empty."""
    close_seconds: float = 30.0

    @classmethod
    def from_settings(cls, settings: BaseSettings, default: Limits) -> Limits:
        """Return a store's own limits with STORE_BATCH_ITEMS, STORE_BATCH_SECONDS and STORE_CLOSE_SECONDS in their places."""
        options = StoreOptions.read(settings)
        items = options.store_batch_items or default.batch_items
        return replace(
            default,
            batch_items=items,
            batch_seconds=options.store_batch_seconds or default.batch_seconds,
            buffer_items=max(items, default.buffer_items),  # else a batch could never fill
            close_seconds=options.store_close_seconds or default.close_seconds,
        )

    def is_full(self, items: int, size: int) -> bool:
        """Return whether a batch of so many items and bytes is to be written without waiting for more."""
        return items >= self.batch_items or size >= self.batch_bytes

    def has_room(self, items: int, size: int, more: int) -> bool:
        """Return whether a buffer with so many items and bytes can take an item of `more` bytes."""
        return not items or (items < self.buffer_items and size + more <= self.buffer_bytes)


def path_of_stores(settings: BaseSettings, name: str, *of: str) -> Path:
    """Return the path of a file in DATA_DIR that says what these stores have: `name`, where {} stands for them and for `of`.

    When CSV files are to be made anew, since somebody has removed them, so is that file.
    """
    named = repr([*of, *(str(settings.get(name) or "") for name in _WHICH)])
    path = Path(settings["DATA_DIR"], name.format(blake2b(named.encode(), digest_size=6).hexdigest()))
    if settings.getbool("CSV_ENABLED") and not Path(settings["DATA_DIR"], "movies.sqlite3").exists():
        path.unlink(missing_ok=True)
    return path


def time_of(item: Movie | Miss) -> datetime:
    """Return when an item was read. Raises RejectedError for one that lacks what all stores find and compare it by."""
    time = item.scraped_at if isinstance(item, Movie) else item.checked_at
    if time is None or item.site_id is None:
        raise RejectedError("a movie without site_id or scraped_at can't be stored")
    return time


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
    slow: int = 0
    """Times that the store took too long for it alone."""


class Store(ABC):
    """Where items are kept. All methods are called from one thread, which is the store's own: they may block."""

    name: str
    """Names it in stats, signals, `rejected.jsonl` and spool files."""
    hurried = False
    """Whether SIGTERM or Ctrl-C ends this process: then it leaves to the next run what that can do."""
    remark = ""
    """What its user is to know at the end, for the summary; set by `close`."""

    @abstractmethod
    def open(self) -> None:
        """Connect. Raises TransientStoreError when a later try may work, ConfigurationError when none will."""

    @abstractmethod
    def write(self, records: Sequence[Record]) -> None:
        """Store the records, so that they survive a crash of this process once it returns. When it raises, some may be stored, each whole.

        What is stored of a title becomes what `catalogue.merging.merged` makes of that and the record; a store that only adds (S3) leaves
        it to who reads. The same record may be written again. A connection that was lost is made anew. Raises TransientStoreError to be called
        again later with the same records, TooSlowError to be called with fewer, RejectedError when something in them is to
        blame.
        """

    def idle(self) -> float | None:
        """Do what is due besides writing; return the seconds until something is again, None for not before a batch."""
        return None

    def hurry(self) -> None:
        """Take note that SIGTERM or Ctrl-C ends this process. The one method that the event loop's thread calls."""
        self.hurried = True

    @abstractmethod
    def close(self) -> None:
        """Finish and disconnect. Called once, also when `open` or the last `write` failed."""
