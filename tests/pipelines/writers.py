"""Processes that store invented movies in one place at once, and that a test may kill."""

import asyncio
import os
import random
import signal
import warnings
from collections.abc import Iterator
from multiprocessing.connection import Connection
from pathlib import Path

from moviecrawler.pipelines.mongo import MongoStore
from moviecrawler.pipelines.postgres import PostgresStore
from moviecrawler.pipelines.sqlite import SqliteStore
from tests.processes import CONTEXT
from tests.runs import LIMIT, make_movie, running


class Writer:
    """A process that stores `count` titles from the number `first` on.

    They are scraped `age` seconds before the tests' time. With `repeat`, it goes on with the titles
    after these, for ever. Into the database of `url`, of Postgres or Mongo, else into CSV files.
    """

    def __init__(
        self,
        folder: Path,
        url: str = "",
        *,
        first: int,
        count: int,
        age: int = 0,
        repeat: bool = False,
    ) -> None:
        self._told, child = CONTEXT.Pipe(duplex=False)
        arguments = (folder, url, first, count, age, repeat, child)
        self._process = CONTEXT.Process(target=_write, args=arguments, daemon=True)
        self._process.start()
        child.close()

    def durable(self) -> Iterator[str]:
        """Yield the ids of titles as they are told durable, until the process has ended."""
        while True:
            try:
                outcome, site_id = self._told.recv()
            except (EOFError, OSError):
                return
            assert outcome == "durable"
            yield site_id

    def kill(self) -> set[str]:
        """Kill it; return the ids that it had told by then and that were not read yet."""
        assert self._process.pid is not None
        os.kill(self._process.pid, signal.SIGKILL)
        told = set(self.durable())
        self._process.join(LIMIT)
        return told

    def finish(self) -> None:
        """Wait until it has stored all."""
        list(self.durable())
        self._process.join(60)
        assert self._process.exitcode == 0


def _write(
    folder: Path, url: str, first: int, count: int, age: int, repeat: bool, told: Connection
) -> None:
    warnings.simplefilter("error")

    async def write(first: int) -> None:
        store = (
            SqliteStore(folder)
            if not url
            else (MongoStore if url.startswith("mongodb") else PostgresStore)(url)
        )
        async with running(store, folder, batch_items=25, buffer_items=50) as run:
            done = 0
            while True:
                numbers = list(range(first, first + count))
                random.shuffle(numbers)
                for number in numbers:
                    await run.process(make_movie(number, age))
                    for site_id, outcome, _ in run.reported[done:]:
                        told.send((outcome, site_id))
                    done = len(run.reported)
                if not repeat:
                    break
                first += count
        # Mongo compares titles again that another process has written meanwhile.
        assert not run.count("retries") or isinstance(store, MongoStore), "a deadlock, or the like"

    asyncio.run(write(first))
