"""What a store is: where items are kept, in batches, and how large these are."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

from moviecrawler.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from scrapy.settings import BaseSettings

_FIRST_RETRY_SECONDS = 0.2
_MAX_RETRY_SECONDS = 30.0
_ENDLESS = 10**9
"""More than any limit can be, and than a lock can wait."""


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
    doubled: float = _FIRST_RETRY_SECONDS * 2 ** min(attempt - 1, 16)
    return min(_MAX_RETRY_SECONDS, doubled) * (0.5 + chance / 2)


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
    """Whether this process was told to end, so that what the next run can do as well is left to it. Set by the event loop's thread."""

    @abstractmethod
    def open(self) -> None:
        """Connect. Raises TransientStoreError when a later try may work, ConfigurationError when none will."""

    @abstractmethod
    def write(self, records: Sequence[Record]) -> None:
        """Store the records, all or none, so that they survive a crash of this process once it returns.

        A record of a title that is stored already replaces it, unless what is stored was scraped later. The same
        record may be written again. A connection that was lost is made anew. Raises TransientStoreError to be called
        again later with the same records, TooSlowError to be called with fewer, RejectedError when something in them is to
        blame.
        """

    def idle(self) -> float | None:
        """Do what is due besides writing; return the seconds until something is again, None for not before a batch."""
        return None

    @abstractmethod
    def close(self) -> None:
        """Finish and disconnect. Called once, also when `open` or the last `write` failed."""
