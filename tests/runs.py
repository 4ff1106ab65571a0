"""Invented movies, and a pipeline that runs as Scrapy runs it."""

import asyncio
import json
import resource
import sys
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import msgspec
from scrapy.crawler import Crawler
from scrapy.utils.test import get_crawler

from moviecrawler.items import (
    Credit,
    Fetch,
    ListEntry,
    ListPage,
    Miss,
    Movie,
    Offer,
    Score,
    Site,
)
from moviecrawler.pipelines.base import BatchingPipeline
from moviecrawler.pipelines.store import Limits, Record, Store
from moviecrawler.signals import item_outcomes, item_rejected
from moviecrawler.sites.fields import unknown_fields_of

LIMIT = 10.0
"""Seconds after which a test that waits for something fails."""
BEGIN = datetime(2026, 3, 1, 12, tzinfo=UTC)
RENT = Offer(
    provider="Vudu",
    kind="rent",
    country="US",
    price=3.99,
    currency="USD",
    quality="HD",
    source="JustWatch",
)
STREAM = Offer(
    provider="Netflix",
    kind="subscription",
    country="US",
    url="https://netflix.example/1",
    source="JustWatch",
    scope="season",
)


def led_from(old_id: str) -> Fetch:
    """Return how a page is fetched that was requested by an id which its site has given up."""
    return Fetch(
        url="https://example.com/",
        requested_id=old_id,
        is_alias=True,
        status=200,
        attempts=1,
        wire_bytes=9,
        body_bytes=9,
    )


def make_miss(number: int, age: float = 0, **changes: Any) -> Miss:
    """Return the miss of a title of a number, asked for `age` seconds before the tests' time."""
    site_id = f"tt{number:07}"
    miss = Miss(
        site="imdb",
        site_id=site_id,
        url=f"https://www.imdb.com/title/{site_id}/",
        outcome="absent",
        reason="HTTP status 404",
        checked_at=BEGIN - timedelta(seconds=age),
    )
    return replace(miss, **changes)


def make_list(ranks: dict[str, int], days: float = 0, **changes: Any) -> ListPage:
    """Return IMDb's Top 250 with these ranks, read that many days after the tests' time."""
    at = BEGIN + timedelta(days=days)
    page = ListPage(
        site="imdb",
        list_name="top",
        pass_at=at,
        next_offset=len(ranks),
        ends="list",
        entries=[ListEntry(site_id=site_id, rank=rank) for site_id, rank in ranks.items()],
        read_at=at,
    )
    return replace(page, **changes)


def make_movie(number: int, age: float = 0, **changes: Any) -> Movie:
    """Return the invented movie of a number, scraped `age` seconds before the tests' time.

    A list's row tells what it has.
    """
    site_id = f"tt{number:07}"
    movie = Movie(
        site="imdb",
        site_id=site_id,
        imdb_id=site_id,
        url=f"https://www.imdb.com/title/{site_id}/",
        title=f"The Lamp of Brewick, Part {number}",
        kind="movie",
        year=2001,
        credits=[
            Credit(name="Odile Farrow", role="director", position=1, person_id="nm0000007"),
            Credit(
                name=f"Person {number}",
                role="cast",
                position=1,
                person_id=f"nm{number:07}",
                character="Wick",
            ),
            Credit(name="An Extra", role="cast", position=2),
        ],
        scores=[Score(kind="imdb", value=7.5, count=1000 + number)],
        scraped_at=BEGIN - timedelta(seconds=age),
    )
    movie = replace(movie, **changes)
    if movie.source == "list":
        movie.unknown_fields = unknown_fields_of(movie)
    return movie


def record_of(item: Movie | Miss | ListPage) -> Record:
    """Return an item on its way into a store."""
    return Record(item, msgspec.json.encode(item), 0.0)


def crawler_of(folder: Path, end: Any = None, **settings: str) -> Crawler:
    """Return the crawler of a crawl that goes on until `end` is called."""
    crawler = get_crawler(
        settings_dict={"DATA_DIR": str(folder), "STORE_UNREACHABLE": "wait", **settings}
    )
    slot = SimpleNamespace(closing=None)
    engine: Any = SimpleNamespace(spider=object(), running=True, _slot=slot, close_spider_async=end)
    crawler.engine = engine
    return crawler


class Run:
    """One run of a store's pipeline: what became of items, counted and left in files."""

    def __init__(self, store: Store, folder: Path, limits: Limits, **settings: str) -> None:
        self.ended_by: list[str] = []
        """Reasons for which the pipeline has ended the crawl."""
        self.crawler = crawler_of(folder, self._end, **settings)
        assert self.crawler.stats is not None
        self.stats = self.crawler.stats
        self.folder = folder
        self.reported: list[tuple[str | None, str, str | None]] = []
        self.told: list[tuple[str, Any]] = []
        """Of `item_rejected`, reason and item."""
        self.crawler.signals.connect(self._note, item_outcomes)
        self.crawler.signals.connect(self._note_rejected, item_rejected)
        self.pipeline = BatchingPipeline(self.crawler, store, limits)

    async def process(self, *items: Movie | Miss | ListPage) -> None:
        """Give items to the pipeline, one after the other."""
        for item in items:
            await self.pipeline.process_item(item)

    async def _end(self, *, reason: str) -> None:
        self.ended_by.append(reason)

    def _note(self, items: Sequence[Movie], store: str, outcome: str, reason: str | None) -> None:
        assert store == self.pipeline.store.name
        self.reported += [
            (item.site_id, outcome, reason) for item in items if isinstance(item, Movie | Miss)
        ]

    def _note_rejected(self, item: Any, store: str, reason: str) -> None:
        assert store == self.pipeline.store.name
        self.told.append((reason, item))

    def outcomes(self) -> dict[str | None, str]:
        """Return the outcome of each item, after checking that it has one only."""
        doubled = [
            site_id
            for site_id, times in Counter(entry[0] for entry in self.reported).items()
            if times > 1
        ]
        assert not doubled
        return {site_id: outcome for site_id, outcome, _ in self.reported}

    def count(self, name: str) -> Any:
        return self.stats.get_value(f"store/{self.pipeline.store.name}/{name}", 0)

    def rejected(self) -> list[dict[str, Any]]:
        path = self.folder / "rejected.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def spool_files(self) -> list[Path]:
        return sorted((self.folder / "spool").glob("*"))


@asynccontextmanager
async def running(
    store: Store, folder: Path, redis_url: str = "", **limits: Any
) -> AsyncIterator[Run]:
    """Open a store's pipeline, and close it at the end of the block."""
    defaults: dict[str, Any] = {"batch_items": 10, "buffer_items": 20, "batch_seconds": 0.02}
    run = Run(store, folder, Limits(**{**defaults, **limits}), REDIS_URL=redis_url)
    await run.pipeline.open_spider()
    try:
        yield run
    finally:
        await run.pipeline.close_spider()


def crawl(store: Store, folder: Path, *items: Movie | Miss | ListPage, **limits: Any) -> Run:
    """Store items as one crawl does."""

    async def crawled() -> Run:
        async with running(store, folder, **limits) as run:
            await run.process(*items)
        return run

    return asyncio.run(crawled())


@contextmanager
def largest_file(size: int) -> Iterator[None]:
    """Let no file of this process grow beyond so many bytes, as a full disk does."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    writes_none = sys.dont_write_bytecode
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, limits[1]))
    sys.dont_write_bytecode = True  # Python would leave modules that are cut
    try:
        with patch("moviecrawler.pipelines.spool.disk_usage", lambda _: SimpleNamespace(free=size)):
            yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        sys.dont_write_bytecode = writes_none


def title(site: Site, site_id: str, **fields: Any) -> Movie:
    """Return an invented movie of a site."""
    defaults: dict[str, Any] = {
        "url": f"https://example.com/{site_id}",
        "title": "Salt Harbour",
        "kind": "movie",
    }
    return Movie(**{**defaults, "scraped_at": BEGIN, **fields}, site=site, site_id=site_id)
