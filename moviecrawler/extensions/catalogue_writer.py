"""Writing to the catalogue from a crawl: in a thread, in batches, and again after the database was away."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from moviecrawler.catalogue.outcomes import AnyOutcome, Judged, record
from moviecrawler.catalogue.store import open_catalogue
from moviecrawler.errors import ConfigurationError, Outages, TransientStoreError

if TYPE_CHECKING:
    from collections.abc import Callable

    from scrapy.settings import BaseSettings

    from moviecrawler.database.connection import Database

logger = logging.getLogger(__name__)

_WRITE_BATCH = 200
"""Outcomes in one write."""
_MAX_WAITING_OUTCOMES = 20_000
"""Outcomes that are kept while the database is away. What is lost beyond makes titles due again, no more."""

T = TypeVar("T")


class CatalogueWriter:
    """Asks the catalogue's database in the one thread that may wait for it, and keeps what can't be written now."""

    def __init__(self, database: Database) -> None:
        self.closed = False
        """Whether the crawl is over, so that nothing can be asked any more."""
        self._database = database
        self._thread = ThreadPoolExecutor(1, "catalogue")
        self._waiting: deque[Callable[[Database], object] | AnyOutcome] = deque()
        self._left_out: set[int] = set()
        """Titles whose outcome was not kept. Their claims end, so that they are due again."""
        self._writing = asyncio.Lock()
        self._outages = Outages()

    @property
    def waiting(self) -> int:
        """How many outcomes, and other things to do, are not written."""
        return len(self._waiting)

    def close(self) -> None:
        """Ask nothing any more."""
        self.closed = True
        self._thread.shutdown(wait=False)

    async def call(self, function: Callable[..., T], *args: Any, **kwargs: Any) -> T:
        """Run a function in the thread; it takes the database first."""
        if self.closed:
            raise TransientStoreError("the crawl is over")
        loop = asyncio.get_running_loop()
        try:
            return await loop.run_in_executor(self._thread, partial(function, self._database, *args, **kwargs))
        except ConfigurationError as error:
            # All was right when the crawl began: the database may be itself again soon.
            raise TransientStoreError(str(error)) from error

    def add(self, what: Callable[[Database], object] | AnyOutcome) -> None:
        """Have an outcome written, or something else done, with the next batch."""
        self._waiting.append(what)
        if len(self._waiting) > _MAX_WAITING_OUTCOMES:
            first = self._waiting.popleft()
            if isinstance(first, AnyOutcome) and first.title_id:
                self._left_out.add(first.title_id)

    def _next_batch(self) -> list[Any]:
        """Return outcomes that can be written together, or one other thing to write."""
        batch = [self._waiting.popleft()]
        while (
            isinstance(batch[-1], AnyOutcome)
            and len(batch) < _WRITE_BATCH
            and self._waiting
            and isinstance(self._waiting[0], AnyOutcome)
        ):
            batch.append(self._waiting.popleft())
        return batch

    async def flush(self) -> set[int]:
        """Write what is known by now; return the titles that this ends. Raises nothing: what can't be written is kept."""
        async with self._writing:
            over, self._left_out = self._left_out, set()
            while self._waiting:
                batch = self._next_batch()
                try:
                    await self.call(_write, batch)
                except TransientStoreError as error:
                    self._waiting.extendleft(reversed(batch))
                    if self._outages.begins():
                        logger.warning("The catalogue can't be written now, and will be tried again: %s", error)
                    return over
                except Exception:  # titles stay claimed, and are due again when that ends
                    logger.exception("The catalogue refused what a list names")
                self._outages.ends()
                over |= {
                    o.title_id for o in batch if isinstance(o, AnyOutcome) and o.title_id and not _others_follow(o)
                }
        return over


def _others_follow(outcome: AnyOutcome) -> bool:
    return isinstance(outcome, Judged) and outcome.others_follow


def _write(database: Database, batch: list[Any]) -> None:
    """Write outcomes, or one other thing. Of outcomes, one that can't be written doesn't keep the others from it."""
    if not isinstance(batch[0], AnyOutcome):
        batch[0](database)
        return
    try:
        record(database, batch)
    except (TransientStoreError, ConfigurationError):
        raise  # all of them are tried again
    except Exception:
        if len(batch) == 1:
            logger.exception("The catalogue refused the outcome of %s; it is due again later", batch[0].asked_id)
            return
        for outcome in batch:
            _write(database, [outcome])


def ask(settings: BaseSettings, query: str, site: str, *, seconds: int) -> Any:
    """Return the row that answers a question on a site. It waits for the database up to `seconds`: call it in a thread.

    A thread that is still waiting keeps the process from ending. Raises MovieCrawlerError, also when the answer takes longer.
    """
    with closing(open_catalogue(settings)) as catalogue, catalogue.transaction() as cursor:
        cursor.execute("SET LOCAL statement_timeout = %s", (seconds * 1000,))
        cursor.execute(query, (site,))
        return cursor.fetchone()
