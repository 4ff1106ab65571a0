"""The frontier's backend for one machine: a SQLite file, which the processes of a folder share."""

from __future__ import annotations

import asyncio
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING

from moviecrawler.frontier.contract import Backend, Opened, Reply
from moviecrawler.frontier.queue_file import QueueFile
from moviecrawler.frontier.sqlite_steps import Steps
from moviecrawler.frontier.worker_locks import WorkerLocks

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable
    from pathlib import Path

    from moviecrawler.politeness.ledger import Result

FILE = "queue.sqlite3"
LOCKS = "queue-locks"
"""The folder with a lock file for each worker."""
_OPENING = "opening"
"""The lock file of who opens FILE; the names of those of workers end in .lock."""
_READING = {"read_robots", "ids", "read", "letters"}
"""Steps that change nothing, and wait for no other process."""
_OF_OPERATORS = {"leave", "requeue", "drop_letter", "drop_run"}
"""Steps that make no file where there is none; nor do those that read."""


class SqliteBackend(Backend):
    """The queues of the processes that share a folder, in its `queue.sqlite3`.

    Its steps run in a thread of their own, so that the event loop never waits for the disk.
    """

    def __init__(self, folder: Path, clock: Callable[[], float] = time.time) -> None:
        """Open nothing yet. `clock` returns the Unix time."""
        locks = folder / LOCKS
        self._path = (folder / FILE).absolute()
        self._file = QueueFile(folder / FILE, opening=locks / _OPENING)
        self._locks = WorkerLocks(locks)
        self._clock = clock
        self._thread: ThreadPoolExecutor | None = None

    async def place(self, site: str) -> str:  # noqa: ARG002 - all sites share the file
        """Return the path of the file, and the machine that has it."""
        return f"{self._path} on {socket.gethostname()}"

    async def close(self) -> None:
        """Free the locks of this process' workers, and close the file."""
        thread = self._thread
        if thread is not None:
            await self._in_thread(self._locks.free_all)
            await self._in_thread(self._file.close)
            self._thread = None
            thread.shutdown()

    async def _step(
        self,
        kind: type[Result],  # noqa: ARG002 - of the method's result
        step: str,
        site: str | None = None,
        run: str | None = None,
        /,
        **given: object,
    ) -> Result:
        """Have `Steps` take a step."""
        is_reading = step in _READING or given.get("changes") == {}
        makes_file = not is_reading and step not in _OF_OPERATORS

        def take(database: sqlite3.Connection) -> Result:
            steps = Steps(database, (site, run), self._clock(), self._locks)
            if makes_file:
                steps.tell_time()
            result: Result = getattr(steps, step)(**given)
            return result

        how = {"makes_file": makes_file, "is_reading": is_reading}
        result = await self._in_thread(partial(self._file.take, take, **how))
        if isinstance(result, Opened | Reply):
            result.remarks += self._file.remarks
            self._file.remarks.clear()
        return result

    async def _in_thread(self, step: Callable[[], Result]) -> Result:
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, thread_name_prefix="queue")
        return await asyncio.get_running_loop().run_in_executor(self._thread, step)
