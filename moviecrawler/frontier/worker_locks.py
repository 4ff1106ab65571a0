"""Lock files that tell which workers live: the system frees the locks of a process that ends."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING
from urllib.parse import quote

from filelock import FileLock, Timeout

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

_MAX_NAME_CHARACTERS = 200
_SUFFIX = ".lock"


class WorkerLocks:
    """The lock files `<worker>.lock` of a folder, of which this process holds some.

    Where the file system can lock nothing, nobody is found dead.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._held: dict[str, FileLock] = {}
        self._files: dict[str, tuple[int, int]] = {}  # of the locks that are held

    def hold(self, worker: str) -> None:
        """Hold the lock of a worker of this process, anew when its file was deleted."""
        path = self._path(worker)
        if worker in self._held:
            if self._file(path) == self._files[worker]:
                return
            self._free(worker)
        lock = FileLock(path, timeout=0, thread_local=False, fallback_to_soft=False)
        with suppress(Timeout, OSError, NotImplementedError):
            self._folder.mkdir(parents=True, exist_ok=True)
            lock.acquire()
            self._held[worker] = lock
            self._files[worker] = self._file(path) or (0, 0)

    def is_dead(self, worker: str) -> bool:
        """Tell whether the process that held a worker's lock has ended.

        Of a worker without a file nothing is known: others may have deleted it.
        """
        path = self._path(worker)
        if worker in self._held or not path.exists():
            return False
        lock = FileLock(path, timeout=0, thread_local=False, fallback_to_soft=False)
        try:
            lock.acquire()
        except (Timeout, OSError, NotImplementedError):
            return False
        lock.release()
        return True

    def remove(self, worker: str) -> None:
        """Delete the file of a worker that has ended."""
        with suppress(OSError):
            self._path(worker).unlink()
        self._free(worker)

    def sweep(self, known: Collection[str]) -> None:
        """Delete the files of dead workers, but those of `known` ones, whose leases still run."""
        kept = {self._path(worker) for worker in [*known, *self._held]}
        with suppress(OSError):
            for path in set(self._folder.glob(f"*{_SUFFIX}")) - kept:
                lock = FileLock(path, timeout=0, thread_local=False, fallback_to_soft=False)
                with suppress(Timeout, NotImplementedError), lock:
                    path.unlink()

    def free_all(self) -> None:
        """Free the locks of this process, which tells others that its workers have ended."""
        for worker in list(self._held):
            self._free(worker)

    def _free(self, worker: str) -> None:
        lock = self._held.pop(worker, None)
        self._files.pop(worker, None)
        if lock is not None:
            lock.release()

    def _path(self, worker: str) -> Path:
        # A name ends with what is its own.
        return self._folder / f"{quote(worker, safe='')[-_MAX_NAME_CHARACTERS:]}{_SUFFIX}"

    @staticmethod
    def _file(path: Path) -> tuple[int, int] | None:
        try:
            status = path.stat()
        except OSError:
            return None
        return status.st_dev, status.st_ino
