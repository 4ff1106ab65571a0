"""Fetches large files to disk.

A fetch that broke off is resumed, and a file is fetched again only when it has changed.
"""

from __future__ import annotations

import shutil
from contextlib import suppress
from functools import partial
from threading import Event
from time import monotonic
from typing import TYPE_CHECKING, Any
from urllib.parse import urljoin

import requests
from filelock import FileLock, Timeout
from isal import igzip, isal_zlib
from protego import Protego

from moviecrawler.errors import InterruptedReadError, MovieCrawlerError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

_TIMEOUTS = (10.0, 60.0)  # seconds, to connect, and between two pieces of an answer
# Before each try; each goes on where the one before broke off.
_PAUSES_SECONDS = (0.0, 1.0, 2.0, 4.0, 8.0, 16.0)
_PROGRESS_SECONDS = 10.0
_SPARE_BYTES = 64 * 1024 * 1024  # that a download leaves free on the disk
_BLOCK = 1 << 20
_MB = 1_000_000
_ENDED = "the crawl was ended before all files were fetched"
_DAMAGES: Any = (OSError, EOFError, isal_zlib.error)  # of a gzip file that is read
_MISSING = (403, 404, 410)  # a bucket that may not be listed says 403 of a file that is not there


class DownloadError(MovieCrawlerError):
    """A file can't be fetched or written."""


class MissingFileError(DownloadError):
    """The server has no such file."""


class FileClient:
    """Fetches files with the project's user agent, as robots.txt allows.

    Its methods block: call them off the event loop.
    """

    def __init__(
        self, user_agent: str, report: Callable[[str], object], *, obey_robots: bool = True
    ) -> None:
        """Call `report` with a line of progress every ten seconds."""
        self._headers = {"User-Agent": user_agent, "Accept-Encoding": "identity"}
        self._get = partial(requests.get, stream=True, timeout=_TIMEOUTS)
        self._obey_robots = obey_robots
        self._report = report
        self._agent = user_agent.partition("/")[0]
        self._rules: dict[str, Protego] = {}  # by the URL of robots.txt
        self._ended = Event()
        self._answer: requests.Response | None = None

    def download(self, url: str, path: Path) -> None:
        """Bring the file at `path` up to date with a URL.

        It is not fetched when the server says that it has not changed. `NAME.part` is resumed, and
        replaces the file once it is whole, a gzip file by its checksum. `NAME.etag` has the ETag of
        the part, without one that of the file. Raises MissingFileError, DownloadError and
        InterruptedReadError.
        """
        path.parent.mkdir(parents=True, exist_ok=True)
        # Another process that fetches the same file is waited for.
        with suppress(Timeout), FileLock(f"{path}.lock").acquire(cancel_check=self._ended.is_set):
            for pause in _PAUSES_SECONDS:
                if self._ended.wait(pause):
                    break
                try:
                    self._check_robots(url)
                    return self._fetch(url, path)
                except requests.RequestException as error:
                    reason = f"{type(error).__name__}: {error}"
                except OSError as error:
                    raise DownloadError(f"{path} can't be written: {error}") from error
            else:
                raise DownloadError(f"{url}: {reason}")
        raise InterruptedReadError(_ENDED)

    def interrupt(self) -> None:
        """End a fetch, which then raises InterruptedReadError. Any thread may call it."""
        self._ended.set()
        with suppress(Exception):  # it is closed already, or there is none
            self._answer.raw.shutdown()  # type: ignore[union-attr]

    def _fetch(self, url: str, path: Path) -> None:
        part = path.with_name(f"{path.name}.part")
        etag_path = path.with_name(f"{path.name}.etag")
        etag = etag_path.read_text(encoding="latin-1") if etag_path.exists() else ""
        have = part.stat().st_size if etag and part.exists() else 0
        headers = {"Range": f"bytes={have}-", "If-Range": etag} if have else {}
        if etag and path.exists() and not part.exists():
            headers["If-None-Match"] = etag
        # Redirects are not followed: robots.txt of the next host would have to be asked for.
        with self._get(url, headers=self._headers | headers, allow_redirects=False) as answer:
            status = answer.status_code
            given = answer.headers
            if status == requests.codes.not_modified:
                return
            if status in _MISSING:
                raise MissingFileError(f"{url}: HTTP status {status}")
            if status == requests.codes.requested_range_not_satisfiable:
                etag_path.unlink(missing_ok=True)  # without it, the part is not resumed
            answer.raise_for_status()
            begin = have if given.get("Content-Range", "").startswith(f"bytes {have}-") else 0
            if status != (requests.codes.partial_content if begin else requests.codes.ok):
                where = given.get("Location") or given.get("Content-Range")
                raise DownloadError(
                    f"{url}: asked for bytes from {have} on, got HTTP status {status}, {where}"
                )
            total = begin + int(given.get("Content-Length", 0))
            lacking = (total - begin + _SPARE_BYTES - shutil.disk_usage(path.parent).free) / _MB
            if lacking > 0:
                where = f"{path.parent} lacks {lacking:,.0f} MB of free space for {path.name}"
                raise DownloadError(f"{where}; free some, or set DATA_DIR to a larger disk")
            with part.open("ab" if begin else "wb") as file:
                etag_path.write_text(given.get("ETag", ""), encoding="latin-1")
                self._answer = answer
                started = monotonic()
                reported = started
                for block in answer.iter_content(_BLOCK):
                    file.write(block)
                    if (now := monotonic()) - reported >= _PROGRESS_SECONDS:
                        reported = now
                        have = file.tell()
                        left = (now - started) / 60 * max(0, total - have) / (have - begin)
                        self._report(
                            f"{path.name}: {have / _MB:,.0f} of {total / _MB:,.0f} MB, "
                            f"{left:.0f} min left"
                        )
        if path.suffix == ".gz" and (damage := self._damage_of(part)):
            etag_path.unlink()  # by which the file before it would pass for this one
            part.unlink()
            raise DownloadError(
                f"{url} is no whole gzip file, and is fetched anew next time: {damage}"
            )
        part.replace(path)

    def _damage_of(self, part: Path) -> str:
        """Return what is wrong with a gzip file, if anything is.

        DuckDB, which reads it, looks at no checksum.
        """
        last = b"\n"
        try:
            with igzip.open(part) as file:  # type: ignore[no-untyped-call]
                while block := file.read(_BLOCK):
                    if self._ended.is_set():
                        raise InterruptedReadError(_ENDED)
                    last = block[-1:]
        except _DAMAGES as error:
            return str(error)
        return "" if last == b"\n" else "a line is cut"

    def _check_robots(self, url: str) -> None:
        robots = urljoin(url, "/robots.txt")
        if self._obey_robots and robots not in self._rules:
            with self._get(robots, headers=self._headers) as answer:
                if answer.status_code not in range(400, 500):
                    answer.raise_for_status()
                rules = next(answer.iter_content(_BLOCK), b"") if answer.ok else b""
            self._rules[robots] = Protego.parse(rules.decode(errors="replace"))
        if self._obey_robots and not self._rules[robots].can_fetch(url, self._agent):
            raise DownloadError(f"{url} is disallowed by robots.txt")
