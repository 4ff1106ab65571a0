"""Files of other sources, kept on disk and fetched again only when they changed, and what is read from them."""

from __future__ import annotations

import heapq
import json
import os
import re
from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING

from filelock import FileLock, Timeout

from moviecrawler.errors import MovieCrawlerError
from moviecrawler.extract import datasets

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping
    from pathlib import Path

    from moviecrawler.extract.datasets import OnError
    from moviecrawler.items import Movie

_MOST_RESTARTS = 3
_MOST_POPULAR = 100
"""As long as IMDb's own chart of what is popular."""
_POPULAR_VOTES = 1_000
_CONTENT_RANGE = re.compile(r"^bytes (\d+)-(\d+)/(\d+)$")


class DownloadError(MovieCrawlerError):
    """A server's answer doesn't fit what it was asked for."""


class RangedDownload:
    """One large file, fetched in parts so that it never stands in memory, and resumed where it was broken off.

    Ask the server with `headers()`, hand its answer to `accept`, and repeat until that returns True; `path` then holds
    the file. What was fetched stays beside it as `NAME.part`, with the ETag that it belongs to in `NAME.part.etag`; the
    ETag of the whole file is in `NAME.etag`. Of several processes that fetch the same file at once, one can be resumed
    and the others work on parts of their own. Files are read and written here, so call `accept` off the event loop.
    """

    def __init__(self, path: Path, part: int) -> None:
        """Keep the file at `path` and ask for `part` bytes at a time."""
        self.path = path
        self.part = part
        self._restarts = 0
        path.parent.mkdir(parents=True, exist_ok=True)
        self._lock = FileLock(path.with_name(path.name + ".lock"), timeout=0, thread_local=False)
        mark = ""
        try:
            self._lock.acquire()
        except Timeout:
            mark = f".{os.getpid()}"
        self._partial = path.with_name(f"{path.name}{mark}.part")

    def headers(self) -> dict[str, str]:
        """Return the headers that ask for the next part, or for nothing if the file has not changed."""
        start = self._have()
        headers = {"Range": f"bytes={start}-{start + self.part - 1}", "Accept-Encoding": "identity"}
        if start:
            headers["If-Range"] = self._etag(self._partial) or ""
        elif self.path.exists() and (etag := self._etag(self.path)):
            headers["If-None-Match"] = etag
        return headers

    def accept(self, status: int, headers: Mapping[str, str], body: bytes) -> bool:
        """Take in an answer, whose header names are in lower case; return whether the file is complete.

        Raises DownloadError for an answer that doesn't fit, and OSError when it can't be written.
        """
        have = self._have()
        if not have:
            self._clear()  # a part whose ETag was not written yet belongs to nothing
        if status == 304 and not have:  # noqa: PLR2004 - HTTP's own number, as below
            return True
        if status == 416 and have:  # noqa: PLR2004 - what we have is longer than the file now is
            self._restart()
            return False
        if status == 200:  # noqa: PLR2004 - no ranges here, or the file has changed since the last part
            self._clear()
            return self._append(body, headers.get("etag"), total=len(body))
        if status != 206:  # noqa: PLR2004
            raise DownloadError(f"{self.path.name}: HTTP status {status}")
        given = _CONTENT_RANGE.match(headers.get("content-range", ""))
        if not given or int(given[2]) - int(given[1]) + 1 != len(body):
            raise DownloadError(f"{self.path.name}: {len(body)} bytes as {headers.get('content-range')!r}")
        if have and headers.get("etag") != self._etag(self._partial):
            self._restart()
            return False
        if int(given[1]) != have:
            raise DownloadError(f"{self.path.name}: asked for bytes from {have} on, got {given[0]!r}")
        return self._append(body, headers.get("etag"), total=int(given[3]))

    def close(self) -> None:
        """Let another process go on with the part that there is. Call it when done, or when giving up."""
        self._lock.release()

    def discard(self) -> None:
        """Forget the file, because it turned out to be damaged; it is then fetched anew."""
        self._clear()
        for path in (self.path, _etag_path(self.path)):
            path.unlink(missing_ok=True)

    def _append(self, body: bytes, etag: str | None, total: int) -> bool:
        with self._partial.open("ab") as file:
            file.write(body)
            file.flush()
            os.fsync(file.fileno())
        if etag:
            _etag_path(self._partial).write_text(json.dumps(etag), encoding="ascii")
        if self._partial.stat().st_size < total:
            if not etag:
                raise DownloadError(f"{self.path.name}: the server names no ETag, so its parts can't be told to fit")
            return False
        # In this order a kill leaves an old file with no ETag at worst, which is fetched again.
        _etag_path(self.path).unlink(missing_ok=True)
        self._partial.replace(self.path)
        with suppress(FileNotFoundError):
            _etag_path(self._partial).replace(_etag_path(self.path))
        return True

    def _have(self) -> int:
        if not self._partial.exists() or self._etag(self._partial) is None:
            return 0
        return self._partial.stat().st_size

    def _restart(self) -> None:
        self._restarts += 1
        if self._restarts > _MOST_RESTARTS:
            raise DownloadError(f"{self.path.name}: the file changes faster than it can be fetched")
        self._clear()

    def _clear(self) -> None:
        for path in (self._partial, _etag_path(self._partial)):
            path.unlink(missing_ok=True)

    @staticmethod
    def _etag(path: Path) -> str | None:
        try:
            etag = json.loads(_etag_path(path).read_text(encoding="ascii"))
        except (FileNotFoundError, ValueError):
            return None
        return etag if isinstance(etag, str) else None


def _etag_path(path: Path) -> Path:
    return path.with_name(path.name + ".etag")


def read_imdb_datasets(
    basics: Path, ratings: Path, *, chart: str | None, ids: Collection[str], limit: int | None, on_error: OnError
) -> Iterator[Movie]:
    """Yield the movies of a chart, if one is named, then those of `ids`; at most `limit` of the chart.

    `chart` is `top`, computed by IMDb's formula; `popular`, the films of the most votes, both marked as computed; or
    `all`, every movie and series in the order of the dataset. Raises ExtractionError when a file is damaged.
    """
    if chart is not None:
        with basics.open("rb") as titles, ratings.open("rb") as rated:
            blocks = datasets.gunzip(titles), datasets.gunzip(rated)
            if chart == "top":
                movies = iter(datasets.top_250(*blocks, on_error=on_error))
            elif chart == "popular":
                movies = _most_voted(
                    datasets.movies(*blocks, kinds={"movie"}, min_votes=_POPULAR_VOTES, on_error=on_error)
                )
            else:
                movies = datasets.movies(*blocks, kinds={"movie", "series"}, on_error=on_error)
            yield from islice(movies, limit)
    if ids:
        with basics.open("rb") as titles, ratings.open("rb") as rated:
            yield from datasets.movies(datasets.gunzip(titles), datasets.gunzip(rated), ids=ids, on_error=on_error)


def _most_voted(movies: Iterator[Movie]) -> Iterator[Movie]:
    for rank, movie in enumerate(heapq.nlargest(_MOST_POPULAR, movies, key=lambda m: m.scores[0].count or 0), start=1):
        movie.list_name, movie.list_rank, movie.list_computed = "popular", rank, True
        yield movie
