"""What is watched now: the popularity of films from TMDB's daily export of its ids (https://developer.themoviedb.org/docs/daily-id-exports).

The export names no IMDb ids: its rows only complete titles of which the catalogue knows TMDB's id, from Wikidata.
"""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from moviecrawler.catalogue.csv_import import LARGEST_ID
from moviecrawler.catalogue.fetching import MissingFileError
from moviecrawler.catalogue.file_source import FileSource
from moviecrawler.catalogue.lanes import popularity_of_tmdb
from moviecrawler.catalogue.rows import ImportRow
from moviecrawler.datasets.downloads import DownloadError, version_of
from moviecrawler.errors import ExtractionError
from moviecrawler.extract.datasets import gunzip, lines_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from datetime import date

    from moviecrawler.catalogue.fetching import Fetcher

HOME = "https://files.tmdb.org/p/exports"
_DAYS_BACK = 7
"""How old an export may be: today's is there from 8:00 UTC on."""
_LONGEST_LINE = 1 << 16
_BLOCK = 1 << 20
_EXPORT = re.compile(r"^movie_ids_\d\d_\d\d_\d{4}\.json\.gz(?:\..+)?$")


class Exported(msgspec.Struct):
    """A line of the export."""

    id: int
    original_title: str
    popularity: float
    adult: bool = False
    video: bool = False
    """A compilation, a concert or the like, not a film."""


def file_name(day: date) -> str:
    """Return the name of a day's export.

    >>> from datetime import date
    >>> file_name(date(2026, 11, 5))
    'movie_ids_11_05_2026.json.gz'
    """
    return f"movie_ids_{day:%m_%d_%Y}.json.gz"


def read_export(blocks: Iterable[bytes], on_error: Callable[[ExtractionError], object]) -> Iterator[Exported]:
    """Yield the films of an export's decompressed blocks, cut anywhere, without adult ones and without `video`s.

    A damaged line's error is handed to `on_error`. Raises ExtractionError when the data ends inside a line.
    """
    decoder = msgspec.json.Decoder(Exported)
    for number, line in enumerate(lines_of(blocks, "export", HOME, _LONGEST_LINE), start=1):
        try:
            film = decoder.decode(line)
        except msgspec.DecodeError as error:
            on_error(ExtractionError("export", HOME, f"line {number}: {error}"))
            continue
        if not 0 < film.id <= LARGEST_ID:
            on_error(ExtractionError("export", HOME, f"line {number}: id {film.id}"))
        elif not film.adult and not film.video:
            yield film


class TmdbExport(FileSource):
    """The films of TMDB's export."""

    name = "tmdb"

    def __init__(self, origin: str, data_dir: Path, *, day: date, fetcher: Fetcher | None = None) -> None:
        """Read the file `origin` (.json.gz or .json), or fetch the newest export up to `day` from below the URL `origin`."""
        super().__init__(origin.rstrip("/"), fetcher)
        self._folder = data_dir / "tmdb"
        self._day = day
        self._path = None if self._fetcher else Path(origin)

    def version(self) -> str:
        """Return what changes when the export does; see `FileSource`."""
        if self._path is None:
            self._path = self._fetch()
        self.check_there([self._path], f"an export such as {file_name(self._day)}")
        return version_of([self._path])

    def rows(self) -> Iterator[ImportRow]:
        """Yield the films in the export's order; see `FileSource`."""
        if self._path is None:
            self._path = self._fetch()
        self.measure([self._path])
        with self.reading(self._path) as file:
            is_gzip = file.read(2) == b"\x1f\x8b"
            file.seek(0)
            blocks = gunzip(file) if is_gzip else iter(lambda: file.read(_BLOCK), b"")
            for film in read_export(blocks, self.count_damage):
                yield ImportRow(
                    tmdb_id=film.id,
                    original_title=film.original_title.replace("\0", "") or None,
                    popularity=popularity_of_tmdb(film.popularity),
                    popularity_source="tmdb",
                )

    def _fetch(self) -> Path:
        """Fetch the newest export that there is, and forget older ones."""
        assert self._fetcher is not None  # noqa: S101 - checked at the start
        for days in range(_DAYS_BACK + 1):
            path = self._folder / file_name(self._day - timedelta(days=days))
            try:
                self._fetcher.download(f"{self._origin}/{path.name}", path)
            except MissingFileError:
                continue
            for other in self._folder.iterdir():
                if _EXPORT.match(other.name) and not other.name.startswith(path.name):
                    other.unlink(missing_ok=True)
            return path
        raise DownloadError(f"{self._origin} has no {file_name(self._day)}, nor one of the {_DAYS_BACK} days before")
