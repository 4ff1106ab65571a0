"""Large files of other sources: kept on disk, resumed where a fetch broke off, and fetched again only when they changed."""

from __future__ import annotations

import gzip
import shutil
import time
import zlib
from contextlib import contextmanager, suppress
from hashlib import blake2b
from threading import Event
from typing import TYPE_CHECKING
from urllib.parse import urljoin, urlsplit

import requests
from filelock import FileLock, Timeout
from protego import Protego

from moviecrawler.errors import InterruptedReadError, MovieCrawlerError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from pathlib import Path

_TIMEOUT_SECONDS = (10.0, 60.0)
"""To connect, and between two pieces of an answer."""
_MAX_FAILURES = 4
"""Tries in a row that fetch nothing before a file is given up."""
_RETRY_SECONDS = 1.0
"""Before the second try; doubled for each further one."""
_SPARE_BYTES = 64 * 1024 * 1024
"""Room that a download leaves free on the disk."""
_ROBOTS_BYTES = 512 * 1024
_PROGRESS_SECONDS = 10.0
_BLOCK = 1 << 20
_MB = 1_000_000
_SERVER_ERROR = 500
_MAX_REDIRECTS = 5
_MISSING = frozenset({403, 404, 410})
"""Statuses of a file that is not there; a bucket that may not be listed says 403."""


class DownloadError(MovieCrawlerError):
    """A file can't be had."""


class MissingFileError(DownloadError):
    """The server has no such file."""


class FileClient:
    """Fetches files with the project's user agent, as robots.txt allows. Its methods block: call them off the event loop."""

    def __init__(
        self,
        user_agent: str,
        *,
        obey_robots: bool = True,
        tell: Callable[[str], object] = lambda _: None,
    ) -> None:
        """Give `tell` a line of progress every ten seconds."""
        self._session = requests.Session()
        self._session.headers["User-Agent"] = user_agent
        self._agent = user_agent.partition("/")[0]
        self._robots: dict[str, Protego] = {}
        self._obey_robots, self._tell = obey_robots, tell
        self._ended = Event()
        self._answer: requests.Response | None = None

    def download(self, url: str, path: Path) -> None:
        """Bring the file at `path` up to date with a URL, unless the server says that it has not changed.

        What was fetched before a break stays as `NAME.part` with its ETag, and is resumed. A gzip file replaces the one before it
        only when its checksum is right. Raises MissingFileError, DownloadError for whatever else keeps the file from us, and
        InterruptedReadError.
        """
        path.parent.mkdir(parents=True, exist_ok=True)
        self._check_robots(url)
        with self._locked(path):
            part, failures = path.with_name(f"{path.name}.part"), 0
            while True:
                before = _size(part)
                try:
                    if self._fetch(url, path, part):
                        return
                    reason = "the answer ended early"
                except requests.RequestException as error:
                    reason = f"{type(error).__name__}: {error}"
                except OSError as error:
                    raise DownloadError(f"{path} can't be written: {error}") from error
                failures = 1 if _size(part) > before else failures + 1
                if failures > _MAX_FAILURES:
                    raise DownloadError(f"{url}: {reason}")
                self._ended.wait(_RETRY_SECONDS * 2 ** (failures - 1))
                self._check()

    def interrupt(self) -> None:
        """End a fetch, which then raises InterruptedReadError. Any thread may call it."""
        self._ended.set()
        if (answer := self._answer) is not None:
            with suppress(Exception):  # it is closed already
                answer.raw.shutdown()

    def close(self) -> None:
        """Close the connections."""
        self._session.close()

    def _fetch(self, url: str, path: Path, part: Path) -> bool:
        """Return whether the file is whole now."""
        etag = _etag_of(part)
        have = _size(part) if etag else 0
        headers = {"Accept-Encoding": "identity"}
        if have:
            headers |= {"Range": f"bytes={have}-", "If-Range": etag}
        elif path.exists() and (known := _etag_of(path)):
            headers["If-None-Match"] = known
        with self._get(url, headers) as answer:
            status = answer.status_code
            if status == requests.codes.not_modified and not have:
                return True
            if status in _MISSING:
                raise MissingFileError(f"{url}: HTTP status {status}")
            if status == requests.codes.requested_range_not_satisfiable:
                part.unlink(missing_ok=True)
                return False
            answer.raise_for_status()
            is_rest = status == requests.codes.partial_content
            if is_rest and not answer.headers.get("Content-Range", "").startswith(f"bytes {have}-"):
                raise DownloadError(
                    f"{url}: asked for bytes from {have} on, got {answer.headers.get('Content-Range')!r}"
                )
            begin = have if is_rest else 0
            total = begin + int(answer.headers.get("Content-Length", 0))
            self._check_room(path, total - begin)
            # The ETag is written first: a part of unknown version would be resumed with bytes of another one.
            _etag_path(part).write_text(answer.headers.get("ETag", ""), encoding="latin-1")
            self._answer = answer
            try:
                self._write(answer, part, begin, total)
            finally:
                self._answer = None
        if _size(part) < total:
            return False
        self._check_whole(url, part)
        # A kill in between leaves a file without an ETag at worst, which is fetched again.
        _etag_path(path).unlink(missing_ok=True)
        part.replace(path)
        _etag_path(part).replace(_etag_path(path))
        return True

    def _get(self, url: str, headers: Mapping[str, str]) -> requests.Response:
        """Return the answer to a request, after redirects within the same host."""
        for _ in range(_MAX_REDIRECTS):
            answer = self._session.get(
                url, headers=headers, stream=True, timeout=_TIMEOUT_SECONDS, allow_redirects=False
            )
            if not answer.is_redirect:
                return answer
            answer.close()
            target = urljoin(url, answer.headers["Location"])
            if urlsplit(target)[:2] != urlsplit(url)[:2]:
                raise DownloadError(
                    f"{url} redirects to {target}, which is another host; name that if it is to be asked"
                )
            url = target
        raise DownloadError(f"{url}: more than {_MAX_REDIRECTS} redirects")

    def _write(self, answer: requests.Response, part: Path, begin: int, total: int) -> None:
        started = told = time.monotonic()
        have = begin
        with part.open("ab" if begin else "wb") as file:
            for block in answer.iter_content(_BLOCK):
                self._check()
                file.write(block)
                have += len(block)
                now = time.monotonic()
                if now - told >= _PROGRESS_SECONDS and have > begin:
                    told, speed = now, (have - begin) / (now - started)
                    left = f", {max(0, total - have) / speed / 60:.0f} min left" if total else ""
                    name = part.name.removesuffix(".part")
                    self._tell(
                        f"{name}: {have / _MB:,.0f} of {total / _MB:,.0f} MB, {speed / _MB:.1f} MB a second{left}"
                    )

    def _check_whole(self, url: str, part: Path) -> None:
        """Raise DownloadError for a gzip file that is damaged: DuckDB, which reads it, looks at no checksum."""
        if not part.name.endswith(".gz.part"):
            return
        reason, last = "", b"\n"
        try:
            with gzip.open(part) as file:
                while block := file.read(_BLOCK):
                    self._check()
                    last = block[-1:]
        except (OSError, EOFError, zlib.error) as error:
            reason = str(error)
        if last != b"\n":
            reason = reason or "it ends inside a line"
        if reason:
            part.unlink()
            raise DownloadError(f"{url} is no whole gzip file, and is fetched anew next time: {reason}")

    def _check_room(self, path: Path, needed: int) -> None:
        free = shutil.disk_usage(path.parent).free
        if needed + _SPARE_BYTES > free:
            raise DownloadError(
                f"{path.name} takes {needed / _MB:,.0f} MB more, and {free / _MB:,.0f} MB are free in {path.parent};"
                " make room, or set DATA_DIR to a larger disk"
            )

    def _check_robots(self, url: str) -> None:
        parts = urlsplit(url)
        root = f"{parts.scheme}://{parts.netloc}"
        if not self._obey_robots:
            return
        if root not in self._robots:
            try:
                with self._session.get(f"{root}/robots.txt", stream=True, timeout=_TIMEOUT_SECONDS) as answer:
                    body = answer.raw.read(_ROBOTS_BYTES, decode_content=True) if answer.ok else b""
                    if answer.status_code >= _SERVER_ERROR:
                        answer.raise_for_status()
            except requests.RequestException as error:
                raise DownloadError(f"robots.txt of {parts.netloc} can't be fetched: {error}") from error
            self._robots[root] = Protego.parse(body.decode(errors="replace"))
        if not self._robots[root].can_fetch(url, self._agent):
            raise DownloadError(f"{url} is disallowed by robots.txt")

    @contextmanager
    def _locked(self, path: Path) -> Iterator[None]:
        """Wait until no other process fetches the same file."""
        lock = FileLock(path.with_name(f"{path.name}.lock"), timeout=0.5)
        while True:
            self._check()
            with suppress(Timeout):
                lock.acquire()
                break
        try:
            yield
        finally:
            lock.release()

    def _check(self) -> None:
        if self._ended.is_set():
            raise InterruptedReadError("the crawl was ended before all files were fetched")


def forget(path: Path) -> None:
    """Remove a file that turned out to be damaged; it is then fetched anew."""
    path.unlink(missing_ok=True)
    _etag_path(path).unlink(missing_ok=True)


def version_of(paths: Iterable[Path]) -> str:
    """Return what changes whenever one of these files does: of each its ETag, or a hash of its content."""
    hashed = blake2b(digest_size=16)
    for path in paths:
        if etag := _etag_of(path):
            hashed.update(f"{path.name} {etag}\n".encode())
            continue
        with path.open("rb") as file:
            while block := file.read(_BLOCK):
                hashed.update(block)
    return hashed.hexdigest()


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _etag_path(path: Path) -> Path:
    return path.with_name(f"{path.name}.etag")


def _etag_of(path: Path) -> str:
    """Return the ETag that a file was served with; empty when it is not known."""
    try:
        return _etag_path(path).read_text(encoding="latin-1")
    except FileNotFoundError:
        return ""
