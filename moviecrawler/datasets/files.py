"""Fetches large gzip files to disk.

A fetch that broke off is resumed, and a file is fetched again only when it has changed.
"""

from __future__ import annotations

import logging
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

from moviecrawler.basics.errors import InterruptedReadError, MovieCrawlerError
from moviecrawler.basics.progress import Progress
from moviecrawler.politeness.robots import MAX_BYTES, read_rules

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

logger = logging.getLogger(__name__)

_TIMEOUTS = (10.0, 60.0)  # seconds, to connect, and between two pieces of an answer
# Before each try; each goes on where the one before broke off.
_PAUSES_SECONDS = (0.0, 1.0, 2.0, 4.0, 8.0, 16.0)
_PROGRESS_SECONDS = 10.0
_SPARE_BYTES = 64 * 1024 * 1024  # that a download leaves free on the disk
_BLOCK = 1 << 20
_MB = 1_000_000
_ENDED = "the crawl was ended before all files were fetched"
_DAMAGES: Any = (OSError, EOFError, isal_zlib.error)  # of a gzip file that is read
_NO_TEXT = b"\xff"
"""A byte that is in no text of UTF-8."""
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
        self.report = report
        self._agent = user_agent.partition("/")[0]
        self._rules: dict[str, Protego] = {}  # by the URL of robots.txt
        self._ended = Event()
        self._answer: requests.Response | None = None

    def download(self, url: str, path: Path, *, header_lines: int = 0) -> None:
        """Bring the file at `path` up to date with a URL.

        It is not fetched when the server says that it has not changed. `NAME.part` is resumed, and
        replaces the file once it is accepted. `NAME.etag` has the ETag of the part, without one
        that of the file; `NAME.rows` has the number of rows of the file, and its URL.

        A file must be whole by its checksum, and have rows. One with less than half of the rows of
        the file before it from the same URL is refused, and that file stays.

        Args:
            url: Where the file is.
            path: Where it is put.
            header_lines: Lines before the first row.

        Raises:
            MissingFileError: The server has no such file.
            DownloadError: The file can't be fetched or written, or is damaged.
            InterruptedReadError: `interrupt` was called.
        """
        path.parent.mkdir(parents=True, exist_ok=True)
        # Another process that fetches the same file is waited for.
        with suppress(Timeout), FileLock(f"{path}.lock").acquire(cancel_check=self._ended.is_set):
            for pause in _PAUSES_SECONDS:
                if self._ended.wait(pause):
                    break
                try:
                    self._check_robots(url)
                    return self._fetch(url, path, header_lines)
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

    def _fetch(self, url: str, path: Path, header_lines: int) -> None:
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
                        self.report(
                            f"{path.name}: {have / _MB:,.0f} of {total / _MB:,.0f} MB, "
                            f"{left:.0f} min left"
                        )
        self._accept(url, path, part, header_lines)

    def _accept(self, url: str, path: Path, part: Path, header_lines: int) -> None:
        """Put a fetched file in the place of the one before it, unless it has too few rows."""
        etag_path = path.with_name(f"{path.name}.etag")
        rows_path = path.with_name(f"{path.name}.rows")
        try:
            lines, has_returns = self._read_through(part)
        except _DAMAGES as error:
            etag_path.unlink()  # by which the file before it would pass for this one
            part.unlink()
            raise DownloadError(
                f"{path.name} is not a complete gzip file, and is fetched anew next time:"
                f" {error} ({url})"
            ) from error

        rows = lines - header_lines
        rows_before = _rows_from(url, rows_path) if path.exists() else 0
        if rows <= 0 or 2 * rows < rows_before:
            etag_path.unlink()
            part.unlink()
            if not rows_before:
                raise DownloadError(
                    f"{path.name} has no rows, and is fetched anew next time ({url})"
                )
            message = (
                "%(url)s is refused, as it has %(rows)d rows, and the file before it %(before)d,"
                " which is used again; if the new one is right, delete %(path)s"
            )
            figures = {"url": url, "rows": max(0, rows), "before": rows_before, "path": path}
            logger.warning(message, figures)
            return

        if has_returns:
            self._without_returns(part).replace(path)
            part.unlink()
        else:
            part.replace(path)
        rows_path.write_text(f"{rows} {url}", encoding="utf-8")

    def _read_through(self, part: Path) -> tuple[int, bool]:
        """Return the number of lines of a gzip file, and whether it has a carriage return.

        DuckDB, which reads it later, looks at no checksum. Raises one of _DAMAGES.
        """
        lines = 0
        has_returns = False
        last = b"\n"
        with (
            part.open("rb") as packed,
            igzip.open(packed) as file,  # type: ignore[no-untyped-call]
            Progress(self.report, f"checking {part.stem}", part.stat().st_size) as progress,
        ):
            while block := file.read(_BLOCK):
                if self._ended.is_set():
                    raise InterruptedReadError(_ENDED)
                progress.done = packed.tell()
                lines += block.count(b"\n")
                has_returns = has_returns or b"\r" in block
                last = block[-1:]
        if last != b"\n":
            raise EOFError("a line is cut")
        return lines, has_returns

    def _without_returns(self, part: Path) -> Path:
        """Return a copy of a gzip file that has another byte for each carriage return in a line.

        That byte is not UTF-8, so that DuckDB leaves out the row. With a carriage return it would
        leave out the file.
        """
        copy = part.with_suffix(".copy")
        with (
            igzip.open(part) as file,  # type: ignore[no-untyped-call]
            igzip.open(copy, "wb") as target,  # type: ignore[no-untyped-call]
        ):
            while lines := file.readlines(_BLOCK):
                if self._ended.is_set():
                    raise InterruptedReadError(_ENDED)
                block = b"".join(lines).replace(b"\r\n", b"\n")
                target.write(block.replace(b"\r", _NO_TEXT))
        return copy

    def _check_robots(self, url: str) -> None:
        robots = urljoin(url, "/robots.txt")
        if self._obey_robots and robots not in self._rules:
            body = bytearray()
            with self._get(robots, headers=self._headers) as answer:
                if answer.status_code not in range(400, 500):
                    answer.raise_for_status()
                for block in answer.iter_content(_BLOCK) if answer.ok else ():
                    body += block
                    if len(body) > MAX_BYTES:
                        break
            self._rules[robots] = Protego.parse(read_rules(bytes(body)))
        if self._obey_robots and not self._rules[robots].can_fetch(url, self._agent):
            raise DownloadError(f"{url} is disallowed by robots.txt")


def _rows_from(url: str, rows_path: Path) -> int:
    """Return the rows of the file that was fetched from a URL before; 0 when it is not known."""
    if not rows_path.exists():
        return 0
    rows, _, origin = rows_path.read_text(encoding="utf-8", errors="replace").partition(" ")
    return int(rows) if origin == url and rows.isdecimal() else 0
