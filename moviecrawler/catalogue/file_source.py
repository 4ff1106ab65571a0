"""The base class of the catalogue's sources.

They are files that are downloaded if need be, and read row by row.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from hashlib import blake2b, file_digest
from typing import TYPE_CHECKING, Any, ClassVar

from moviecrawler.basics.clock import utc_now
from moviecrawler.basics.errors import ConfigurationError
from moviecrawler.catalogue.loading import Done, Imported, end_import, imported, load_parts
from moviecrawler.datasets.files import DownloadError, FileClient

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from moviecrawler.basics.errors import ExtractionError
    from moviecrawler.database.connection import Database

_MAX_DAMAGED_ROWS = 1_000
"""A file with more damaged rows is refused."""

Row = Any
"""An `ImportRow`, or the columns of an episode, which a source of its own imports."""


class FileSource(ABC):
    """A source of titles."""

    name: ClassVar[str]
    is_read_first: ClassVar[bool] = False
    """Whether all rows are read before the first is imported, so that nothing is imported from a
    file with a wrong row."""

    def __init__(self, origin: str, paths: Iterable[Path], instead: str) -> None:
        """Store the `paths` of the files.

        They are downloaded first if `origin` is a URL and not a path. `instead` is what an
        error tells the user to name in place of a missing file.
        """
        self._origin = origin
        self._instead = instead
        self.paths = list(paths)
        self.is_remote = "://" in origin
        self.rows_read = 0
        """Those that were not left out."""
        self.damaged = 0
        """Rows that were left out, as they could not be read."""
        self.first_damage = ""
        """Why the first of them was."""
        self.remark = ""
        """A remark on the files; empty for none."""

    def fetch_politely(
        self, agent: str, report: Callable[[str], object], *, obey_robots: bool
    ) -> None:
        """Download the files that have changed, if they are remote.

        Raises DownloadError when one can't be downloaded, and ExtractionError for one that isn't
        complete.
        """
        if self.is_remote:
            try:
                self.fetch(FileClient(agent, report, obey_robots=obey_robots))
            except DownloadError as error:
                reason = f"{error}; or fetch it by hand, and name it with --from"
                raise DownloadError(reason) from error

    def fetch(self, client: FileClient) -> None:
        """Download the files that have changed.

        Raises DownloadError when one can't be downloaded, and ExtractionError for one that isn't
        complete.
        """
        raise NotImplementedError

    def version(self) -> str:
        """Return a hash of the files.

        Raises ConfigurationError for a missing or wrong file, and ExtractionError for one that
        isn't complete.
        """
        for path in self.paths:
            if not path.is_file():
                raise ConfigurationError(f"{path} is not there; name {self._instead}")
        if self.is_read_first:
            for _ in self.rows():
                pass
        hashed = blake2b(digest_size=16)
        for path in self.paths:
            with path.open("rb") as file:
                hashed.update(path.name.encode() + file_digest(file, "blake2b").digest())
        return hashed.hexdigest()

    def rows(self) -> Iterator[Row]:
        """Return the rows in an order that depends on the version alone.

        Iterating raises ExtractionError when a file is damaged.
        """
        self.rows_read = 0
        self.damaged = 0
        self.first_damage = ""
        for row in self.read():
            self.rows_read += 1
            yield row

    @abstractmethod
    def read(self) -> Iterator[Row]:
        """Yield the rows for `rows`."""

    def import_into(
        self, database: Database, name: str, on_progress: Callable[[int], object] = lambda _: None
    ) -> Imported | None:
        """Import the rows that are missing from the database, and note the version under `name`.

        A version without rows is not noted. Returns None when no rows are missing. Raises the same
        as `version` and `rows`, and TransientStoreError.
        """
        version = self.version()
        done = imported(database, name, version)
        if done.rows is None:
            return None
        self.check(done)
        made = self.load(database, name, version, done, on_progress)
        if self.rows_read:
            end_import(database, name, version, utc_now())
        return made

    def check(self, done: Done) -> None:  # noqa: B027 - most sources have nothing to check
        """Raise ExtractionError for files that seem to be cut off; `done` is what was imported."""

    def load(
        self,
        database: Database,
        name: str,
        version: str,
        done: Done,
        on_progress: Callable[[int], object],
    ) -> Imported:
        """Import the rows after those that are `done`."""
        return load_parts(database, name, version, self.rows(), done.rows or 0, on_progress)

    def leave_out(self, reason: str, rows: int = 1) -> None:
        """Count rows that are left out."""
        self.damaged += rows
        self.first_damage = self.first_damage or reason

    def count_damage(self, error: ExtractionError, rows: int = 1) -> None:
        """Count damaged rows; raise their error when there are too many."""
        self.leave_out(str(error), rows)
        if self.damaged > _MAX_DAMAGED_ROWS:
            raise error
