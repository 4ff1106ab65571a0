"""The frontier's backend for one machine: a SQLite file, which the processes of a folder share."""

from __future__ import annotations

import asyncio
import re
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from hashlib import blake2b
from typing import TYPE_CHECKING

import msgspec

from moviecrawler.basics.files import read_package_file
from moviecrawler.frontier.contract import TERMS, Backend
from moviecrawler.frontier.queue_file import QueueFile
from moviecrawler.frontier.worker_locks import WorkerLocks

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from moviecrawler.frontier.contract import Opened, Worker
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
_FILES = ("run", "site", "open", "push", "take", "finish", "letters", "report")
"""The files of the steps, from what the others use."""


def _read_steps() -> dict[str, list[str]]:
    """Return the statements of each step, which is below a line such as "-- step: push".

    A line such as "-- include begin" stands for the statements of that step.
    """
    texts: dict[str, str] = {}
    for name in _FILES:
        _, *steps = read_package_file(__package__, f"{name}.sql").split("-- step: ")
        for step in steps:
            title, _, text = step.partition("\n")
            texts[title] = re.sub(r"-- include (\w+)\n", lambda name: texts[name[1]], text)
    return {step: text.split(";\n") for step, text in texts.items()}


_STEPS = _read_steps()


class SqliteBackend(Backend):
    """The queues of the processes that share a folder, in its `queue.sqlite3`.

    Its steps run in a thread of their own, so that the event loop never waits for the disk.
    """

    def __init__(self, folder: Path, clock: Callable[[], float] = time.time) -> None:
        """Open nothing yet. `clock` returns the Unix time."""
        locks = folder / LOCKS
        self._locks = WorkerLocks(locks)
        self._file = QueueFile(folder / FILE, locks / _OPENING, self._locks.is_dead)
        self._clock = clock
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="queue")

    async def place(self, site: str) -> str:  # noqa: ARG002 - all sites share the file
        """Return the path of the file, and the machine that has it."""
        return f"{self._file.path.absolute()} on {socket.gethostname()}"

    async def open(self, worker: Worker, requested_at: float | None, age: float) -> Opened:
        """Join a run as a worker, whose lock tells that it lives."""
        opened = await super().open(worker, requested_at, age)
        await self._in_thread(self._locks.hold, worker.name)
        return opened

    async def leave(self, worker: Worker) -> None:
        """Note that a worker has ended."""
        await super().leave(worker)
        await self._in_thread(self._locks.remove, worker.name)

    async def close(self) -> None:
        """Free the locks of this process' workers, and close the file."""
        await self._in_thread(self._locks.free_all)
        await self._in_thread(self._file.close)

    async def _reply_to(self, given: Mapping[str, object]) -> bytes:
        step = given["step"]
        is_reading = step in _READING or given.get("changes") == {}
        makes_file = not is_reading and step not in _OF_OPERATORS
        take = partial(self._file.take, makes_file=makes_file, is_reading=is_reading)
        return await self._in_thread(take, partial(self._run, given))

    def _run(self, given: Mapping[str, object], database: sqlite3.Connection) -> bytes:
        """Run the statements of a step; return what they return."""
        run = f"{given['site']}\0{given['run']}"
        parameters = {
            **msgspec.structs.asdict(TERMS),
            **given,
            "given": msgspec.json.encode(given).decode(),
            "name": given["run"],
            "run": int.from_bytes(blake2b(run.encode(), digest_size=6).digest(), "big"),
            "now": self._clock(),
        }
        reply = b"null"
        for statement in _STEPS[str(given["step"])]:
            for (value,) in database.execute(statement, parameters):
                reply = value
        return reply

    async def _in_thread(self, call: Callable[..., Result], *arguments: object) -> Result:
        return await asyncio.get_running_loop().run_in_executor(self._thread, call, *arguments)
