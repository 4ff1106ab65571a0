"""A pass over IMDb's datasets: it fetches what has changed, and reads the requested titles."""

from __future__ import annotations

import asyncio
import gc
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING

from moviecrawler.basics.clock import utc_now
from moviecrawler.basics.progress import Progress
from moviecrawler.datasets.known import KnownTitles
from moviecrawler.datasets.tables import BASICS, CHARTS, NO_ID, RATINGS, Tables
from moviecrawler.datasets.titles import MissingTitle, dataset_names, read_titles
from moviecrawler.items import EncodedMovie, ListEntry, ListPage, Unchanged
from moviecrawler.sites import ID_SITE

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Generator, Iterable, Mapping, Sequence
    from datetime import datetime
    from pathlib import Path

    from moviecrawler.datasets.files import FileClient
    from moviecrawler.datasets.known import StoredTimes

_BATCH = 100
"""Titles that are read between two turns of the event loop."""
_COLLECTION_THRESHOLDS = (200_000, 50, 1_000)
"""Those of `gc` during a pass: more objects than all buffers hold. By default, a fifth of the time
goes into looking for cycles, of which titles have none."""
_CLOSING_POLL_SECONDS = 0.25


class DatasetPass:
    """Reads titles from the datasets of some host.

    One thread at a time may use it; `interrupt` may be called by any.
    """

    def __init__(
        self,
        url: str,
        folder: Path,
        words: str,
        client: FileClient,
        *,
        with_episodes: bool = False,
        stored: StoredTimes | None = None,
    ) -> None:
        """Store what a pass needs.

        Args:
            url: The host.
            folder: Where the files are put.
            words: Those of IMDB_DATASETS.
            client: Fetches the files.
            with_episodes: Whether the episodes of requested series are read, too.
            stored: Returns what the store has, so that nothing is read again that is the same; None
                to read everything.
        """
        self.at = utc_now()
        """When reading began."""
        self._stored = stored
        self._words = f"{words},episode" if with_episodes else words
        self._with_episodes = with_episodes
        self._url = url
        self._folder = folder
        self._client = client
        self._interrupts: list[Callable[[], object]] = [client.interrupt]
        self.damaged: dict[tuple[str, str], tuple[int, str]] = {}
        """As in `Tables`; it is complete at the end of the pass."""
        self.ranks: Mapping[str, int] = {}
        """The rank of each title of the chart that is requested."""
        self.list_damage = ""
        """Why titles of the list may be missing; it is known at the end of the pass."""

    @property
    def damaged_rows(self) -> int:
        """How many rows are damaged."""
        return sum(rows for rows, _ in self.damaged.values())

    def describe_damage(self) -> str:
        """Return a sentence about the damaged rows, of which there are some."""
        (dataset, row_id), (_, reason) = next(iter(self.damaged.items()))
        return (
            f"IMDb's datasets have {self.damaged_rows} damaged rows, the first in {dataset} of "
            f"{row_id or 'no id'}: {reason}"
        )

    def chart(self, name: str, limit: int | None, now: datetime) -> ListPage:
        """Return the chart that was computed, as far as it was requested."""
        ranks = sorted(self.ranks.items(), key=lambda item: item[1])
        return ListPage(
            site=ID_SITE,
            list_name=name,
            pass_at=now,
            next_offset=len(ranks),
            ends="list" if limit is None else "reading",
            entries=[ListEntry(site_id=site_id, rank=rank) for site_id, rank in ranks],
            computed=True,
            read_at=now,
        )

    def interrupt(self) -> None:
        """End what is being fetched or read, which then raises InterruptedReadError."""
        for interrupt in self._interrupts:
            interrupt()

    async def read(
        self,
        ids: Sequence[str],
        list_name: str | None,
        limit: int | None,
        is_closing: Callable[[], bool],
    ) -> AsyncGenerator[list[EncodedMovie | MissingTitle | Unchanged]]:
        """Yield what `titles` yields in batches, read in a thread until the crawl closes."""
        found = self.titles(ids, list_name, limit)
        thresholds = gc.get_threshold()
        gc.set_threshold(*_COLLECTION_THRESHOLDS)
        watch = asyncio.create_task(self._interrupt_when(is_closing))
        with ThreadPoolExecutor(1, "datasets") as thread:
            in_thread = partial(asyncio.get_running_loop().run_in_executor, thread)
            try:
                while batch := await in_thread(lambda: list(islice(found, _BATCH))):
                    yield batch
            finally:
                gc.set_threshold(*thresholds)
                watch.cancel()
                self.interrupt()
                await in_thread(found.close)

    async def _interrupt_when(self, is_closing: Callable[[], bool]) -> None:
        while not is_closing():  # noqa: ASYNC110 - Scrapy has no event for it
            await asyncio.sleep(_CLOSING_POLL_SECONDS)
        self.interrupt()

    def titles(
        self, ids: Sequence[str], list_name: str | None, limit: int | None
    ) -> Generator[EncodedMovie | MissingTitle | Unchanged]:
        """Fetch what has changed, and yield each requested title once, those of a chart by rank.

        The last ones are those whose rows are the same as before.

        Args:
            ids: Titles that are requested by their ids.
            list_name: The list that is requested; None for no list.
            limit: The number of titles of the list that are read at most; None for all.

        Raises:
            MovieCrawlerError: A file can't be fetched or read, or the pass was interrupted.
        """
        files = {name: self._folder / f"{name}.tsv.gz" for name in dataset_names(self._words)}
        for path in files.values():
            self._client.download(f"{self._url}/{path.name}", path, header_lines=1)
        with closing(Tables(files, self._folder, is_downloaded=True)) as tables:
            self._interrupts.append(tables.interrupt)
            self.at = utc_now()
            known = None
            if self._stored is not None:
                request = (list_name, limit, sorted(ids), self._words, self._with_episodes)
                known = KnownTitles(tables, self._folder, request, self._stored)
                if list_name not in CHARTS and known.find_request():
                    yield from map(_unchanged, known.unchanged())
                    return
            tables.want(ids)
            with Progress(self._client.report, "choosing titles"):
                if list_name in CHARTS:
                    self.ranks = tables.want_chart(list_name, limit)
                elif list_name is not None:
                    tables.want_all(limit)
                if self._with_episodes:
                    tables.want_episodes()
            found = read_titles(tables, self.at, self._client.report, known)
            is_chart = list_name in CHARTS
            yield from _ranked(found, self.ranks, frozenset(ids)) if is_chart else found
            if list_name is not None:
                self.list_damage = _list_damage(tables, list_name)
            self.damaged = tables.damaged
            if known is not None:
                yield from map(_unchanged, known.unchanged())
                known.remember(self.at)


def _unchanged(ids: list[str]) -> Unchanged:
    return Unchanged(site=ID_SITE, site_ids=ids)


def _ranked(
    titles: Iterable[EncodedMovie | MissingTitle],
    ranks: Mapping[str, int],
    ids: frozenset[str],
) -> list[EncodedMovie | MissingTitle]:
    """Return the titles of a chart by rank, after those that were requested by their `ids`.

    So are episodes. A title that may be in the chart, and has no rank as its row in `title.ratings`
    is damaged, has failed.
    """
    ranked: list[EncodedMovie | MissingTitle] = []
    for title in titles:
        site_id = title.site_id
        is_other = isinstance(title, MissingTitle) or title.kind == "episode"
        if is_other or site_id in ranks or site_id in ids:
            ranked.append(title)
        else:
            ranked.append(
                MissingTitle(site_id, "failed", f"its row in IMDb's {RATINGS} is damaged")
            )
    return sorted(ranked, key=lambda title: ranks.get(title.site_id, 0))


def _list_damage(tables: Tables, list_name: str) -> str:
    """Return why titles of a list may be missing; nothing when none is."""
    if not tables.list_size:
        return f"IMDb's datasets have no title of the list {list_name}"
    read = (BASICS, RATINGS) if list_name in CHARTS else (BASICS,)
    rows = sum(tables.damaged.get((dataset, NO_ID), (0, ""))[0] for dataset in read)
    return f"{rows:,} rows of IMDb's {' and '.join(read)} have no readable id" if rows else ""
