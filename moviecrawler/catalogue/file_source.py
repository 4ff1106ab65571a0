"""What all sources of the catalogue's titles have in common: files that are brought up to date, and then read row by row."""

from __future__ import annotations

from abc import ABC, abstractmethod
from hashlib import blake2b, file_digest
from typing import TYPE_CHECKING, Any, ClassVar

from moviecrawler.catalogue.loading import Done, Imported, end_import, imported, load_parts
from moviecrawler.clock import utc_now
from moviecrawler.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from moviecrawler.database.connection import Database
    from moviecrawler.datasets.files import FileClient
    from moviecrawler.errors import ExtractionError

_MOST_DAMAGED = 1_000
"""Rows. A file with more of them is something else."""


class FileSource(ABC):
    """A source of titles."""

    name: ClassVar[str]
    is_read_first: ClassVar[bool] = False
    """Whether all rows are read before the first is imported, so that nothing is of a file with one that can't be right."""

    def __init__(self, origin: str, paths: Iterable[Path], instead: str) -> None:
        """Begin with nothing read. `origin` is a path, or a URL, whose files are to be fetched first.

        paths: the files that are read. instead: what to name in place of one that is not there.
        """
        self._origin = origin
        self._instead = instead
        self.paths = list(paths)
        self.is_remote = "://" in origin
        self.damaged = 0
        """Rows that could not be read, and were left out."""

    def fetch(self, client: FileClient) -> None:
        """Bring the files of a URL up to date.

        Raises DownloadError when one can't be had, and ExtractionError for one that isn't whole.
        """
        raise NotImplementedError

    def version(self) -> str:
        """Return what changes when the rows do: a hash of the files.

        Raises ConfigurationError for a file that isn't there or can't be right, and ExtractionError for one that isn't whole.
        """
        for path in self.paths:
            if not path.is_file():
                raise ConfigurationError(f"{path} is not there; name {self._instead}")
        if self.is_read_first:
            for _ in self.read():
                pass
        hashed = blake2b(digest_size=16)
        for path in self.paths:
            with path.open("rb") as file:
                hashed.update(path.name.encode() + file_digest(file, "blake2b").digest())
        return hashed.hexdigest()

    def rows(self) -> Iterator[Any]:
        """Return the rows, each an `ImportRow` but for episodes, in the same order for the same version.

        To iterate raises ExtractionError when a file is damaged.
        """
        self.damaged = 0
        return self.read()

    @abstractmethod
    def read(self) -> Iterator[Any]:
        """Yield the rows, as `rows` has it."""

    def import_into(
        self, database: Database, name: str, on_progress: Callable[[int], object] = lambda _: None
    ) -> Imported | None:
        """Import what the database has not of this version, and note it under `name`; return None when it has all.

        Raises what `version` and `rows` raise, and TransientStoreError.
        """
        version = self.version()
        done = imported(database, name, version)
        if done.rows is None:
            return None
        made = self.load(database, name, version, done, on_progress)
        end_import(database, name, version, utc_now())
        return made

    def load(
        self, database: Database, name: str, version: str, done: Done, on_progress: Callable[[int], object]
    ) -> Imported:
        """Import the rows that are not `done`."""
        return load_parts(database, name, version, self.rows(), done.rows or 0, on_progress)

    def count_damage(self, error: ExtractionError) -> None:
        """Count a damaged row; raise its error when there are too many."""
        self.damaged += 1
        if self.damaged > _MOST_DAMAGED:
            raise error
