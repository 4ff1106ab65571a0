"""Lock files that tell which workers live: the system frees the locks of a process that ends."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING
from urllib.parse import quote

from filelock import FileLock, Timeout

if TYPE_CHECKING:
    from pathlib import Path

_MAX_NAME_CHARACTERS = 200
_SUFFIX = ".lock"
_SWEPT_AFTER_SECONDS = 86_400.0
_CANT_LOCK = (Timeout, OSError, NotImplementedError)


class WorkerLocks:
    """The lock files `<worker>.lock` of a folder, of which this process holds some.

    Where the file system can lock nothing, nobody is found dead.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._held: dict[Path, FileLock] = {}

    def hold(self, worker: str) -> None:
        """Hold the lock of a worker of this process.

        When it begins, the files of workers that died long ago are deleted.
        """
        path = self._path(worker)
        if path in self._held:
            return
        self._sweep()
        with suppress(*_CANT_LOCK):
            self._folder.mkdir(parents=True, exist_ok=True)
            lock = _lock_on(path)
            lock.acquire()
            self._held[path] = lock

    def is_dead(self, worker: str) -> bool:
        """Tell whether the process that held a worker's lock has ended.

        Of a worker without a file nothing is known: others may have deleted it.
        """
        return self._is_free(self._path(worker))

    def remove(self, worker: str) -> None:
        """Delete the file of a worker that has ended."""
        path = self._path(worker)
        with suppress(OSError):
            path.unlink()
        if path in self._held:
            self._held.pop(path).release()

    def free_all(self) -> None:
        """Free the locks of this process, which tells others that its workers have ended."""
        while self._held:
            _, lock = self._held.popitem()
            lock.release()

    def _sweep(self) -> None:
        latest = time.time() - _SWEPT_AFTER_SECONDS
        with suppress(OSError):
            for path in self._folder.glob(f"*{_SUFFIX}"):
                if path.stat().st_mtime < latest and self._is_free(path):
                    path.unlink()

    def _is_free(self, path: Path) -> bool:
        if path in self._held or not path.exists():
            return False
        with suppress(*_CANT_LOCK), _lock_on(path):
            return True
        return False

    def _path(self, worker: str) -> Path:
        # A name ends with what is its own.
        return self._folder / f"{quote(worker, safe='')[-_MAX_NAME_CHARACTERS:]}{_SUFFIX}"


def _lock_on(path: Path) -> FileLock:
    return FileLock(path, timeout=0, thread_local=False, fallback_to_soft=False)
