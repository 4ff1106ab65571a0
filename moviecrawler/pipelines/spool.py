"""Spool files in DATA_DIR: items that a store could not write before its run ended.

The next run of the same store loads them.
"""

from __future__ import annotations

import errno
import os
import time
from shutil import disk_usage
from typing import TYPE_CHECKING

import msgspec
from filelock import FileLock, Timeout

from moviecrawler.items import Movie
from moviecrawler.pipelines.files import replacing
from moviecrawler.sites.fields import columns_of

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path


class _Line(msgspec.Struct):
    """A line of a spool file."""

    type: str
    item: msgspec.Raw


class Spool:
    """The spool files of one store in `<DATA_DIR>/spool`.

    All methods but the constructor block on the disk.
    """

    def __init__(self, data_dir: Path, store: str, item_types: Iterable[type]) -> None:
        self._folder = data_dir / "spool"
        self._store = store
        self._types = {kind.__name__: kind for kind in item_types}
        self._lock = FileLock(data_dir / f"spool-{store}.lock", timeout=0, thread_local=False)
        self._is_done = False

    def write(self, items: Iterable[object]) -> Path:
        """Write items to a new file, and return its path. Raises OSError."""
        self._folder.mkdir(exist_ok=True)
        path = self._folder / f"{self._store}-{time.time_ns()}-{os.getpid()}.jsonl"
        with replacing(path) as file:
            for item in items:
                line = _Line(type(item).__name__, msgspec.Raw(msgspec.json.encode(item)))
                file.write(msgspec.json.encode(line).decode() + "\n")
        return path

    def check_free_space(self, size: int) -> None:
        """Raise OSError when the disk has fewer than `size` bytes free."""
        self._folder.mkdir(exist_ok=True)
        if disk_usage(self._folder).free < size:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def begin_loading(self) -> list[Path]:
        """Return the files of earlier runs, oldest first; none while another process loads them.

        Then call `end_loading`, or before, from another thread: then there are none.
        """
        if not self._folder.is_dir():
            return []
        try:
            self._lock.acquire()
        except Timeout:
            return []
        if self._is_done:  # nobody would release it
            self._lock.release()
            return []
        return sorted(self._folder.glob(f"{self._store}-*.jsonl"))

    def end_loading(self) -> None:
        """Let another process load the files that are left."""
        self._is_done = True
        self._lock.release()

    def read(self, path: Path) -> tuple[list[object], list[str]]:
        """Return the items of a file, and what is wrong with its other lines. Raises OSError."""
        lines = path.read_bytes().splitlines()
        items: list[object] = []
        faults = [] if lines else ["it is empty"]
        for number, line in enumerate(lines, 1):
            try:
                decoded = msgspec.json.decode(line, type=_Line)
                item: object = msgspec.json.decode(decoded.item, type=self._types[decoded.type])
                if isinstance(item, Movie):  # an older version named fields otherwise
                    item.unknown_fields = columns_of(item.site, item.unknown_fields)
                items.append(item)
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, KeyError) as error:
                faults.append(f"line {number} holds no item: {error}")
        return items, faults
