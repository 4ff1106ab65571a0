"""Imports the current popularity of titles from TMDB's daily exports.

See https://developer.themoviedb.org/docs/daily-id-exports.

There is an export of films and one of series. They have no IMDb ids: they only complete titles
whose TMDB id is known from Wikidata.
"""

from __future__ import annotations

import gzip
import logging
import zlib
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, BinaryIO, cast

import msgspec
from msgspec import Meta

from moviecrawler.basics.errors import ExtractionError
from moviecrawler.catalogue.file_source import FileSource
from moviecrawler.catalogue.popularity import popularity_of_tmdb
from moviecrawler.catalogue.rows import LARGEST_ID, ImportRow
from moviecrawler.datasets.files import DownloadError, MissingFileError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from datetime import date

    from moviecrawler.datasets.files import FileClient

logger = logging.getLogger(__name__)

HOME = "https://files.tmdb.org/p/exports"
_DAYS_BACK = 7
"""How old an export may be; today's appears at 8:00 UTC."""
_MAX_LINE_BYTES = 1 << 16
_EXPORTS = ("movie", "tv_series")
"""The beginnings of the two exports' names."""


class Exported(msgspec.Struct):
    """A line of an export. Films have an `original_title`, series an `original_name`."""

    id: Annotated[int, Meta(ge=1, le=LARGEST_ID)]
    popularity: float
    original_title: str | None = None
    original_name: str | None = None
    adult: bool = False
    video: bool = False
    """A compilation, a concert or the like, not a film."""

    def __post_init__(self) -> None:
        if self.original_title is None and self.original_name is None:
            raise ValueError("neither original_title nor original_name")


def file_name(day: date, export: str = "movie") -> str:
    """Return the name of a day's export.

    >>> from datetime import date
    >>> file_name(date(2026, 11, 5)), file_name(date(2026, 11, 5), "tv_series")
    ('movie_ids_11_05_2026.json.gz', 'tv_series_ids_11_05_2026.json.gz')
    """
    return f"{export}_ids_{day:%m_%d_%Y}.json.gz"


def read_export(
    file: BinaryIO, on_error: Callable[[ExtractionError], object]
) -> Iterator[Exported]:
    """Yield the films or series of an export, but no adult titles and no `video`s.

    Calls `on_error` for a damaged line. Raises ExtractionError for a file that is damaged or cut
    off.
    """
    decoder = msgspec.json.Decoder(Exported)
    try:
        for number, line in enumerate(iter(lambda: file.readline(_MAX_LINE_BYTES), b""), start=1):
            if not line.endswith(b"\n"):
                raise ExtractionError(
                    "export", HOME, f"line {number} is too long, or the file is cut off"
                )
            try:
                title = decoder.decode(line)
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
                on_error(ExtractionError("export", HOME, f"line {number}: {error}"))
                continue
            if not title.adult and not title.video:
                yield title
    except (OSError, EOFError, zlib.error) as error:
        raise ExtractionError("export", HOME, f"damaged or cut off: {error}") from error


class TmdbExport(FileSource):
    """The films and series of TMDB's exports."""

    name = "tmdb"

    def __init__(self, origin: str, data_dir: Path, *, day: date) -> None:
        """Read the file `origin` (.json.gz or .json).

        If `origin` is a URL, the newest exports up to `day` are downloaded from it.
        """
        names = " or ".join(file_name(day, export) for export in _EXPORTS)
        paths = [] if "://" in origin else [Path(origin)]
        super().__init__(origin.rstrip("/"), paths, f"an export such as {names}")
        self._folder = data_dir / "tmdb"
        self._day = day

    def read(self) -> Iterator[ImportRow]:
        """Yield the films and then the series, in the exports' order; see `FileSource`."""
        for path in self.paths:
            with path.open("rb") as raw:
                is_gzip = raw.read(2) == b"\x1f\x8b"
            with gzip.open(path) if is_gzip else path.open("rb") as file:
                for title in read_export(cast("BinaryIO", file), self.count_damage):
                    number = "tmdb_series_id" if title.original_title is None else "tmdb_id"
                    popularity = popularity_of_tmdb(title.popularity)
                    yield ImportRow(
                        **{number: title.id},  # type: ignore[arg-type]
                        popularity=popularity,
                        popularity_source="tmdb",
                    )

    def fetch(self, client: FileClient) -> None:
        """Download the newest exports; see `FileSource`. A mirror may have only one of the two."""
        for export in _EXPORTS:
            path = self._fetch(client, export)
            if path is not None:
                self.paths.append(path)
                continue
            last = f"{file_name(self._day, export)}, nor one of the {_DAYS_BACK} days before"
            logger.warning("%s has no %s; it is left out", self._origin, last)
        if not self.paths:
            raise DownloadError(f"{self._origin} has no {self._instead}")

    def _fetch(self, client: FileClient, export: str) -> Path | None:
        """Download the newest export of that name and delete older ones.

        Return None when there is none.
        """
        for days in range(_DAYS_BACK + 1):
            path = self._folder / file_name(self._day - timedelta(days=days), export)
            try:
                client.download(f"{self._origin}/{path.name}", path)
            except MissingFileError:
                path.with_name(f"{path.name}.lock").unlink(missing_ok=True)
                continue
            for other in self._folder.glob(f"{export}_ids_*"):
                if not other.name.startswith(path.name):
                    other.unlink(missing_ok=True)
            return path
        return None
