"""What all sources of the catalogue's titles have in common: files that are brought up to date, and then read row by row."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import contextmanager
from typing import TYPE_CHECKING, BinaryIO, ClassVar

from moviecrawler.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from moviecrawler.catalogue.fetching import Fetcher
    from moviecrawler.catalogue.rows import ImportRow
    from moviecrawler.errors import ExtractionError

_MOST_DAMAGED = 1_000
"""Rows. A file with more of them is something else."""


class FileSource(ABC):
    """A source of titles. Ask for its `version`, and for its `rows` when that is not what was read before."""

    name: ClassVar[str]

    def __init__(self, origin: str) -> None:
        """Begin with nothing read. `origin` is a path, or a URL, whose files are to be fetched first."""
        self._origin = origin
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

    @abstractmethod
    def version(self) -> str:
        """Return what changes when the rows do.

        Raises ConfigurationError for a file that isn't there or can't be right, and ExtractionError for one that isn't whole.
        """

    @abstractmethod
    def rows(self) -> Iterator[ImportRow | tuple[object, ...]]:
        """Yield the rows, in the same order for the same version. Raises ExtractionError when a file is damaged."""

    def check_there(self, paths: Iterable[Path], instead: str) -> None:
        """Raise ConfigurationError for the first file that is not there, with what to name instead; else measure them."""
        paths = list(paths)
        for path in paths:
            if not path.is_file():
                raise ConfigurationError(f"{path} is not there; name {instead}")
        self.measure(paths)

    def measure(self, paths: Iterable[Path]) -> None:
        """Take these files for all that is to be read, from the start."""
        self.total = sum(path.stat().st_size for path in paths)
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
