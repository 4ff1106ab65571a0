"""The SQLite file of the queue: opening it, and what to do when others delete or damage it."""

from __future__ import annotations

import logging
import os
import sqlite3
from contextlib import closing, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from filelock import FileLock

from moviecrawler.basics.errors import ConfigurationError, FrontierError, FrontierFullError
from moviecrawler.basics.files import read_package_file

if TYPE_CHECKING:
    from collections.abc import Callable

    Step = Callable[[sqlite3.Connection], "Result"]
    Identity = tuple[int, int]

logger = logging.getLogger(__name__)

Result = TypeVar("Result")

_LAYOUT = 3
"""The version of `queue.sql`, stored as `PRAGMA user_version`."""
_DRAFT = 2
"""The version of the draft before, in which `runs` had no column `fresh`."""
_ADD_FRESH = "ALTER TABLE runs ADD COLUMN fresh INTEGER NOT NULL DEFAULT 0;"
_BUSY_SECONDS = 10.0
"""Seconds to wait for the step of another process."""
_MOUNTS = Path("/proc/self/mountinfo")
_NETWORK_TYPES = {"nfs", "nfs4", "cifs", "smb3", "smbfs", "fuse.sshfs"}
_DAMAGE = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_IOERR_SHORT_READ}


class _DamagedError(FrontierError):
    """The file is not a database, or only a part of one."""


class QueueFile:
    """A connection to the file at `path`, for one thread.

    The file may be deleted or damaged at any time.
    """

    def __init__(self, path: Path, opening: Path, is_dead: Callable[[str], bool]) -> None:
        """Open nothing yet.

        Args:
            path: Of the file.
            opening: The lock file of who opens the file.
            is_dead: Tells whether a worker has ended; a function of SQL.
        """
        self.path = path
        self._is_dead = is_dead
        self._opening = opening
        self._connection: sqlite3.Connection | None = None
        self._identity: Identity | None = None  # of the file that the connection has open

    def take(self, step: Step[Result], *, makes_file: bool, is_reading: bool) -> Result:
        """Take a step.

        Args:
            step: What is done with the database.
            makes_file: Whether the file is made when it is missing, and again when it is damaged.
                Without a file, other steps are taken on an empty database in memory.
            is_reading: Whether the step writes nothing.

        Raises:
            FrontierError: The step can't be taken now.
            ConfigurationError: The file can't be here.
        """
        if not makes_file and not self.path.exists():
            self.close()
            with closing(self._connect(":memory:")) as empty:
                self._prepare(empty)
                return step(empty)
        try:
            return self._run(step, is_reading=is_reading)
        except _DamagedError as error:
            if not makes_file:
                sentence = f"{error}; the next crawl moves it away and begins anew"
                raise FrontierError(sentence) from error
            self._move_aside(str(error))
        return self._run(step, is_reading=is_reading)

    def close(self) -> None:
        """Close the file; the next step opens it again."""
        if self._connection is not None:
            with suppress(sqlite3.Error):  # of a file that is damaged
                self._connection.close()
        self._connection = None

    def _run(self, step: Step[Result], *, is_reading: bool) -> Result:
        try:
            connection = self._open()
            with connection:
                # A step that writes waits for its turn before it reads.
                connection.execute("BEGIN" if is_reading else "BEGIN IMMEDIATE")
                return step(connection)
        except OSError as error:
            raise FrontierError(f"{self.path}: {error}") from error
        except sqlite3.DatabaseError as error:
            raise self._explain(error) from error

    def _explain(self, error: sqlite3.DatabaseError) -> Exception:
        """Return what to raise for an error of SQLite; a fault of ours stays what it is."""
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_MISUSE)
        is_other_layout = code == sqlite3.SQLITE_ERROR and str(error).startswith("no such ")
        sentence = f"{self.path}: {error}"
        if is_other_layout or code in _DAMAGE or code & 0xFF in _DAMAGE:
            return _DamagedError(sentence)
        if code & 0xFF == sqlite3.SQLITE_FULL:
            return FrontierFullError(sentence)
        return FrontierError(sentence) if isinstance(error, sqlite3.OperationalError) else error

    # --- Opening ---------------------------------------------------------------------------------

    def _open(self) -> sqlite3.Connection:
        """Return a connection to the file that is at `path` now."""
        if self._connection is not None and _identity(self.path) == self._identity:
            return self._connection
        self.close()
        self.path.parent.mkdir(parents=True, exist_ok=True)
        _refuse_network(self.path.parent)
        self._opening.parent.mkdir(exist_ok=True)
        # SQLite fails when two processes make a file at the same time.
        with FileLock(self._opening, timeout=_BUSY_SECONDS):
            if not self.path.exists():
                # The log of a file that was deleted would be taken for that of the new one.
                for path in self._logs():
                    path.unlink(missing_ok=True)
            self._connection = self._connect(self.path)
            self._identity = _identity(self.path)
            try:
                self._prepare(self._connection)
            except BaseException:
                self.close()
                raise
        return self._connection

    def _connect(self, path: Path | str) -> sqlite3.Connection:
        connection = sqlite3.connect(
            path, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False
        )
        # What a step returns is JSON, in which what others have damaged may be any bytes.
        connection.text_factory = bytes
        connection.create_function("is_dead", 1, self._is_dead)
        return connection

    def _prepare(self, connection: sqlite3.Connection) -> None:
        """Make the tables, unless they are there."""
        ((version,),) = connection.execute("PRAGMA user_version")
        tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
        if version > _LAYOUT:
            raise ConfigurationError(
                f"{self.path} was made by a newer version of moviecrawler (its layout is {version},"
                f" and this version knows {_LAYOUT}); install that version again, or move the file"
                " away to begin a new queue"
            )
        is_draft = version == _DRAFT and b"runs" in tables
        if version < _LAYOUT and tables and not is_draft:
            raise ConfigurationError(
                f"{self.path} was made by another program; move it away, or set another DATA_DIR"
            )
        connection.executescript(read_package_file(__package__, "session.sql"))
        if is_draft:
            logger.warning("%s was made by an earlier version: all was taken over", self.path.name)
        if version < _LAYOUT:
            change = _ADD_FRESH if is_draft else read_package_file(__package__, "queue.sql")
            connection.executescript(
                f"BEGIN IMMEDIATE; {change} PRAGMA user_version = {_LAYOUT}; COMMIT;"
            )

    def _logs(self) -> list[Path]:
        """Return the files that SQLite keeps beside the file."""
        return [self.path.with_name(f"{self.path.name}{end}") for end in ("-wal", "-shm")]

    def _move_aside(self, reason: str) -> None:
        """Give a damaged file another name, unless another process has done so."""
        at = datetime.now(UTC)
        target = self.path.with_name(f"{self.path.name}.damaged-{at:%Y%m%dT%H%M%S.%fZ}")
        try:
            with FileLock(self._opening, timeout=_BUSY_SECONDS):
                self.close()
                if _identity(self.path) != self._identity:
                    return
                for path in (*self._logs(), self.path):
                    with suppress(FileNotFoundError):
                        path.rename(f"{target}{path.name.removeprefix(self.path.name)}")
        except OSError as error:
            raise FrontierError(f"{self.path} is damaged, and can't be moved: {error}") from error
        message = "the queue was damaged (%s): it was moved to %s, and a new one begun"
        logger.warning(message, reason, target.name)


def _identity(path: Path) -> Identity | None:
    try:
        # Three for each step, and Path's own takes twice as long.
        status = os.stat(path)  # noqa: PTH116
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _refuse_network(folder: Path) -> None:
    """Raise ConfigurationError for a folder that other machines may use, too.

    SQLite's log needs memory that all processes share.
    """
    device = folder.stat().st_dev
    number = f" {os.major(device)}:{os.minor(device)} "
    lines = []
    with suppress(OSError):  # not every system tells it
        lines = _MOUNTS.read_text("utf-8", "surrogateescape").splitlines()
    for line in lines:
        # 36 35 98:0 / /mnt/two rw,noatime shared:1 - ext4 /dev/sda rw
        mount, _, source = line.partition(" - ")
        kind = source.split(" ")[0]
        if number in mount and kind in _NETWORK_TYPES:
            raise ConfigurationError(
                f"{folder} is on a network file system ({kind}), where SQLite can't keep the queue;"
                " set DATA_DIR to a folder on a disk of this machine, or REDIS_URL to share a crawl"
            )
