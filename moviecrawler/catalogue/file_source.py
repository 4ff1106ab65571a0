"""What all sources of the catalogue's titles have in common: files that are brought up to date, and then read row by row."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, BinaryIO, ClassVar

from moviecrawler.datasets.downloads import version_of
from moviecrawler.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from moviecrawler.catalogue.fetching import Fetcher
    from moviecrawler.errors import ExtractionError

_MOST_DAMAGED = 1_000
"""Rows. A file with more of them is something else."""


class FileSource(ABC):
    """A source of titles. Ask for its `version`, and for its `rows` when that is not what was read before."""

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
        self.total: int | None = None
        """Bytes of all files, as they lie on disk; None before `version` was called."""
        self.damaged = 0
        """Rows that could not be read, and were left out."""
        self._done = 0
        self._open: list[BinaryIO] = []

    @property
    def position(self) -> int:
        """Bytes read so far; what a progress bar shows of `total`."""
        return self._done + sum(file.tell() for file in self._open)

    async def fetch(self, fetcher: Fetcher) -> None:
        """Bring the files of a URL up to date.

        Raises DownloadError when one can't be had, and ExtractionError for one that isn't whole.
        """
        raise NotImplementedError

    def version(self) -> str:
        """Return what changes when the rows do.

        Raises ConfigurationError for a file that isn't there or can't be right, and ExtractionError for one that isn't whole.
        """
        for path in self.paths:
            if not path.is_file():
                raise ConfigurationError(f"{path} is not there; name {self._instead}")
        if self.is_read_first:
            for _ in self.read():
                pass
        self._begin()
        return version_of(self.paths)

    def rows(self) -> Iterator[Any]:
        """Return the rows, each an `ImportRow` but for episodes, in the same order for the same version.

        To iterate raises ExtractionError when a file is damaged.
        """
        self._begin()
        return self.read()

    @abstractmethod
    def read(self) -> Iterator[Any]:
        """Yield the rows, as `rows` has it."""

    def _begin(self) -> None:
        self.total = sum(path.stat().st_size for path in self.paths)
        self.damaged = self._done = 0

    @contextmanager
    def reading(self, path: Path) -> Iterator[BinaryIO]:
        """Open a file, and count what is read of it."""
        with path.open("rb") as file:
            self._open.append(file)
            try:
                yield file
            finally:
                self._open.remove(file)
                self._done += file.tell()

    def count_damage(self, error: ExtractionError) -> None:
        """Count a damaged row; raise its error when there are too many."""
        self.damaged += 1
        if self.damaged > _MOST_DAMAGED:
            raise error
