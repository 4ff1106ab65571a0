"""Whether jobs can run on a machine: room and rights in the node's folders, its clock, its Redis.

A node that is not fit takes no jobs: it would fail each within seconds, and so take most of the
queue.
"""

from __future__ import annotations

import os
import shutil
import time
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING

from moviecrawler.basics.clock import check_clock, utc_now
from moviecrawler.basics.errors import ClockError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from moviecrawler.cluster.options import NodeOptions
    from moviecrawler.cluster.state import ClusterState

CHECKS = ("folders", "clock", "redis", "job")
"""What a node checks: its folders, its clock, whether Redis keeps its keys, and whether the latest
job could be run."""
_MIN_FREE_BYTES = 64 * 1024 * 1024
"""Free bytes that a folder needs: an unpacked egg, and some hours of logs."""
_PROBE = bytes(4096)
"""Bytes that are written to find out whether the disk or a quota is full."""
_FAILURE_PAUSE_SECONDS = 10.0
"""Seconds for which the node takes no job after it could not run one: others come first."""
_MEGABYTE = 1024 * 1024


class Fitness:
    """What is wrong with a node, as of the last heartbeat."""

    def __init__(self, options: NodeOptions, environ: Mapping[str, str] = os.environ) -> None:
        self._folders = {
            "logs_dir": Path(options.logs_dir).absolute(),
            "eggs_dir": Path(options.eggs_dir).absolute(),
        }
        self._data_dir = Path(environ.get("DATA_DIR") or "data").absolute()
        self._faults = dict.fromkeys(CHECKS, "")
        self._failed_at = float("-inf")
        self.since: float | None = None
        """Since when there is a fault: seconds since 1970."""

    @property
    def faults(self) -> dict[str, str]:
        """Why jobs would fail here: a sentence for each check that failed.

        Only those who have the password see what follows its first colon.
        """
        has_paused = time.monotonic() - self._failed_at >= _FAILURE_PAUSE_SECONDS
        return {
            check: fault
            for check, fault in self._faults.items()
            if fault and not (check == "job" and has_paused)
        }

    def check(self, state: ClusterState) -> None:
        """Check the folders and Redis. This blocks.

        Raises redis.RedisError.
        """
        self._faults["folders"] = self._write_fault() or self._space_fault()
        self._faults["redis"] = state.eviction_fault()
        self.since = (self.since or time.time()) if self.faults else None

    def note_clock(self, seconds_ahead: float) -> None:
        """Note by how much the node's clock is ahead of that of Redis."""
        self._faults["clock"] = ""
        try:
            check_clock(utc_now() - timedelta(seconds=seconds_ahead), "Redis")
        except ClockError as error:
            self._faults["clock"] = str(error)

    def note_failure(self, sentence: str) -> None:
        """Note that a job could not be run."""
        self._faults["job"] = sentence
        self._failed_at = time.monotonic()

    def _write_fault(self) -> str:
        for name, folder in self._folders.items():
            try:
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
                with TemporaryFile(dir=folder) as file:
                    file.write(_PROBE)
            except OSError as error:
                return f"{name} can't be written to: {error.strerror or error} ({folder})"
        return ""

    def _space_fault(self) -> str:
        data = self._data_dir
        while not data.exists() and data != data.parent:  # the first crawl makes it
            data = data.parent
        for name, folder in {**self._folders, "DATA_DIR": data}.items():
            free = shutil.disk_usage(folder).free
            if free < _MIN_FREE_BYTES:
                return (
                    f"the disk of {name} is full: {free // _MEGABYTE:,} MB are free, and jobs need "
                    f"{_MIN_FREE_BYTES // _MEGABYTE:,} MB ({folder})"
                )
        return ""
