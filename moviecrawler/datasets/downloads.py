"""Large files of other sources, kept on disk, fetched in parts, and fetched again only when they changed."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import time
from collections import deque
from contextlib import suppress
from hashlib import blake2b
from typing import TYPE_CHECKING

from filelock import FileLock, Timeout
from scrapy import Request, signals
from scrapy.exceptions import DownloadCancelledError, StopDownload
from scrapy.http.request import NO_CALLBACK

from moviecrawler.errors import MovieCrawlerError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping
    from pathlib import Path
    from typing import Any

    from scrapy.crawler import Crawler
    from scrapy.http import Headers, Response

    Ask = Callable[[Request], Awaitable[Response]]

_MOST_RESTARTS = 3
_SPARE = 64 * 1024 * 1024
"""Bytes that a download leaves free on the disk."""
_PROGRESS_SECONDS = 10.0
_ABANDONED_SECONDS = 24 * 3600.0
"""After which a part that hasn't grown is that of a process that was killed."""
_BLOCK = 1 << 20
_MB = 1_000_000
_MOST_AT_ONCE = 1 << 30
"""Bytes of a file that a server gives only as a whole: it stands in memory, for a moment twice."""
_SECONDS_TO_ANSWER = 60.0
_LEAST_SPEED = 256 * 1024
"""Bytes a second at which a whole file has to come; about the same is asked of a part by DATASET_PART and DOWNLOAD_TIMEOUT."""
_MISSING = frozenset({403, 404, 410})
"""Statuses of a file that isn't there; a bucket that may not be listed says 403."""
_ANSWERS = [status for status in range(200, 600) if status not in {301, 302, 303, 307, 308}]
"""Statuses that come here, whatever they say. Redirects are followed."""
_RANGE = re.compile(rb"bytes=(\d+)-(\d+)")
_CONTENT_RANGE = re.compile(r"^bytes (\d+)-(\d+)/(\d+)$")


class DownloadError(MovieCrawlerError):
    """A file can't be had: a server's answer doesn't fit what it was asked for, or there is none."""


class MissingFileError(DownloadError):
    """The server has no such file."""


class RangedDownload:
    """One large file, fetched in parts so that it never stands in memory, and resumed where it was broken off.

    Ask the server with `headers()`, hand its answer to `accept`, and repeat until that returns True; `path` then holds
    the file. What was fetched stays beside it as `NAME.part`, with the ETag that it belongs to in `NAME.part.etag`; the
    ETag of the whole file is in `NAME.etag`. Of several processes that fetch the same file at once, one can be resumed
    and the others work on parts of their own, which are removed in the end. Files are read and written here, so call `accept`
    off the event loop.
    """

    def __init__(self, path: Path, part: int) -> None:
        """Keep the file at `path` and ask for `part` bytes at a time."""
        self.path = path
        self.part = part
        self.total: int | None = None
        """Bytes of the whole file; None until the server has told."""
        self.have = 0
        """Bytes of it that were fetched, as of the last answer that was taken in. Files may be renamed at any moment."""
        self.whole: int | None = None
        """Bytes of the whole file, when the server gives no parts of it."""
        self._restarts = 0
        path.parent.mkdir(parents=True, exist_ok=True)
        self._lock = FileLock(path.with_name(path.name + ".lock"), timeout=0, thread_local=False)
        self._is_first = True
        try:
            self._lock.acquire()
        except Timeout:
            self._is_first = False
        self._partial = path.with_name(f"{path.name}.part" if self._is_first else f"{path.name}.{os.getpid()}.part")
        for other in path.parent.glob(f"{path.name}.*.part*"):
            with suppress(FileNotFoundError):
                if time.time() - other.stat().st_mtime > _ABANDONED_SECONDS:
                    other.unlink()

    def headers(self, most: int | None = None) -> dict[str, str]:
        """Return the headers that ask for the next part, or `most` bytes of it, or for nothing if the file has not changed."""
        if self.whole is not None:
            return {"Accept-Encoding": "identity"}
        start = self._have()
        last = start + min(self.part, most or self.part) - 1
        headers = {"Range": f"bytes={start}-{last}", "Accept-Encoding": "identity"}
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
        if status == 200 and not body and headers.get("content-length", "0") != "0":  # noqa: PLR2004 - see `_stop_whole`
            if have:
                self._restart()  # it has changed since the last part
            else:
                self._take_whole(int(headers["content-length"]))
            return False
        if status == 200:  # noqa: PLR2004 - no ranges here, or the file has changed since the last part
            self._clear()
            return self._append(body, headers.get("etag"), total=len(body))
        if status != 206:  # noqa: PLR2004
            raise DownloadError(f"{self.path.name}: HTTP status {status}")
        given = _CONTENT_RANGE.match(headers.get("content-range", ""))
        if not given or not body or int(given[2]) - int(given[1]) + 1 != len(body):  # an empty part leads nowhere
            raise DownloadError(f"{self.path.name}: {len(body)} bytes as {headers.get('content-range')!r}")
        if have and headers.get("etag") != self._etag(self._partial):
            self._restart()
            return False
        if int(given[1]) != have:
            raise DownloadError(f"{self.path.name}: asked for bytes from {have} on, got {given[0]!r}")
        self.total = int(given[3])
        if not have:
            self._check_room()
        return self._append(body, headers.get("etag"), total=int(given[3]))

    def _take_whole(self, size: int) -> None:
        """Have the whole file asked for, as the server gives no parts of it."""
        if size > _MOST_AT_ONCE:
            raise DownloadError(
                f"{self.path.name} has {size / _MB:,.0f} MB, of which the server gives no parts; use one that heeds Range"
            )
        self.total = self.whole = size
        self._check_room()

    def _check_room(self) -> None:
        free, needed = shutil.disk_usage(self.path.parent).free, self.total or 0
        if needed + _SPARE > free:
            raise DownloadError(
                f"{self.path.name} has {needed / _MB:,.0f} MB, and {free / _MB:,.0f} MB are free in {self.path.parent};"
                " make room, or set DATA_DIR to a larger disk"
            )

    def close(self) -> None:
        """Let another process go on with the part that there is. Call it when done, or when giving up."""
        if not self._is_first:
            self._clear()
        self._lock.release()

    def _append(self, body: bytes, etag: str | None, total: int) -> bool:
        with self._partial.open("ab") as file:
            file.write(body)
            file.flush()
            os.fsync(file.fileno())
        if etag:
            _etag_path(self._partial).write_text(json.dumps(etag), encoding="ascii")
        self.have = self._partial.stat().st_size
        if self.have < total:
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


def forget(path: Path) -> None:
    """Remove a file that turned out to be damaged; it is then fetched anew."""
    for each in (path, _etag_path(path)):
        each.unlink(missing_ok=True)


class Downloads:
    """Some files that are brought up to date together, one request at a time, and in turn, so that the size of all is soon known.

    Whoever uses it sends the requests through a crawl's downloader: the middlewares see to robots.txt, retries, proxies and stats.
    """

    def __init__(self, files: Mapping[str, Path], part: int, **meta: Any) -> None:
        """Keep the file of each URL at a path, and ask for `part` bytes at a time, with `meta` in the requests."""
        self.files = {url: RangedDownload(path, part) for url, path in files.items()}
        self._meta = {**meta, "expects": "other", "handle_httpstatus_list": _ANSWERS}
        self._waiting = deque(self.files)
        self._began: tuple[float, int] | None = None
        self._next_line = 0.0

    def next_request(self, most: int | None = None) -> Request:
        """Return the request for the next part of the file whose turn it is, or for `most` bytes of it."""
        url = self._waiting[0]
        file, meta = self.files[url], dict(self._meta)
        if file.whole is not None:
            seconds = _SECONDS_TO_ANSWER + file.whole / _LEAST_SPEED
            meta |= {"download_maxsize": file.whole, "download_timeout": seconds}
        return Request(url, headers=file.headers(most), meta=meta, callback=NO_CALLBACK, dont_filter=True)

    async def accept(self, response: Response) -> None:
        """Keep the answer to the last request. Raises DownloadError for one that doesn't fit, or can't be kept."""
        url = self._waiting.popleft()
        if response.status in _MISSING:
            raise MissingFileError(f"{url}: HTTP status {response.status}")
        headers = {
            name.decode("latin-1").lower(): values[0].decode("latin-1") for name, values in response.headers.items()
        }
        try:
            if not await asyncio.to_thread(self.files[url].accept, response.status, headers, response.body):
                self._waiting.append(url)
        except OSError as error:
            raise DownloadError(str(error)) from error

    async def finish(self, ask: Ask, tell: Callable[[str], object]) -> None:
        """Fetch what is missing; now and then, `tell` is given a line that says how far it is. Raises what `ask` and `accept` do."""
        while self._waiting:
            if (line := self.progress(time.monotonic())) is not None:
                tell(line)
            await self.accept(await ask(self.next_request()))

    def progress(self, now: float) -> str | None:
        """Return how much is fetched, how fast, and the time left; None when little time has passed since the last line.

        now: seconds, as of time.monotonic(). Of files whose server has not answered yet, nothing is known.
        """
        begun = [file for file in self.files.values() if file.total is not None]
        have, total = sum(file.have for file in begun), sum(file.total or 0 for file in begun)
        if self._began is None:
            self._began, self._next_line = (now, have), now + _PROGRESS_SECONDS
        if now < self._next_line or have == total:
            return None
        self._next_line = now + _PROGRESS_SECONDS
        speed = (have - self._began[1]) / (now - self._began[0])
        left = f"{(total - have) / speed / 60:.0f} min left" if speed > 0 else "nothing has come for a while"
        return f"{have / _MB:,.0f} of {total / _MB:,.0f} MB, {speed / _MB:.1f} MB a second, {left}"

    def close(self) -> None:
        """Let other processes go on with what there is."""
        for file in self.files.values():
            file.close()


def expect_parts(crawler: Crawler) -> None:
    """Have a crawl's downloader stop an answer that is more than the part that was asked for, before it comes.

    Some servers ignore Range, and one that heeds it gives the whole of a file that has changed since the last part. A web page says why there
    is no file, and comes whole.
    """
    crawler.signals.connect(_stop_whole, signals.headers_received)


def _stop_whole(headers: Headers, body_length: object, request: Request) -> None:
    asked = _RANGE.fullmatch(request.headers.get("Range") or b"")
    if not asked or "Content-Range" in headers or (headers.get("Content-Type") or b"").startswith(b"text/html"):
        return
    if isinstance(body_length, int) and body_length > int(asked[2]) - int(asked[1]) + 1:
        raise StopDownload(fail=False)


async def fetch(crawler: Crawler, request: Request) -> Response:
    """Return the answer to a request that a crawl's downloader sends. Raises DownloadError for whatever keeps it from us."""
    assert crawler.engine is not None  # noqa: S101 - a crawl that runs has one
    try:
        return await crawler.engine.download_async(request)
    except DownloadCancelledError as error:
        raise DownloadError(
            f"{request.url} has more than DOWNLOAD_MAXSIZE bytes, and the server neither heeds Range nor says how many; set"
            " DOWNLOAD_MAXSIZE above its size, all of which then stands in memory"
        ) from error
    except Exception as error:
        raise DownloadError(f"{request.url}: {type(error).__name__}: {error}".rstrip(": ")) from error


def version_of(paths: Iterable[Path]) -> str:
    """Return what changes whenever one of these files does: of each, what its server calls its version, else its content."""
    hashed = blake2b(digest_size=16)
    for path in paths:
        hashed.update(path.name.encode())
        if (etag := _etag_path(path)).exists():
            hashed.update(etag.read_bytes())
            continue
        with path.open("rb") as file:
            while block := file.read(_BLOCK):
                hashed.update(block)
    return hashed.hexdigest()
