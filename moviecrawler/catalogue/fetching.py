"""Fetching the files of other sources for a command that waits for them: politely, in parts, and never for ever."""

from __future__ import annotations

import asyncio
import logging
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import aiohttp
from protego import Protego

from moviecrawler.datasets.downloads import DownloadError, RangedDownload

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

logger = logging.getLogger(__name__)

LARGEST_ANSWER = 64 * 1024 * 1024
"""Bytes that one answer may have. Larger files are fetched in parts."""
_PART = 16 * 1024 * 1024
_TRIES = 4
_LONGEST_WAIT = 120.0
"""Seconds that a server may ask us to wait; what asks for more is told to the user."""
_PASSES = frozenset({408, 429, 500, 502, 503, 504})
"""Statuses that pass by themselves."""
_MISSING = frozenset({403, 404, 410})
"""A bucket that may not be listed says 403 of a file that isn't there."""
_OK, _CLIENT_ERROR, _SERVER_ERROR = 200, 400, 500


class MissingFileError(DownloadError):
    """The server has no such file."""


@dataclass(slots=True, kw_only=True, frozen=True)
class Answer:
    """A server's answer."""

    status: int
    headers: dict[str, str]
    """Names in lower case."""
    body: bytes = field(repr=False)


class Fetcher:
    """Asks one thing after the other, with time-outs, an honest user agent, and robots.txt obeyed.

    It runs an event loop of its own, so call it from a plain thread.
    """

    def __init__(
        self,
        user_agent: str,
        *,
        timeout: float = 120.0,
        backoff: float = 2.0,
        part: int = _PART,
        obey_robots: bool = True,
    ) -> None:
        """Wait `timeout` seconds at most for a whole answer, and `backoff` seconds, doubled each time, between tries.

        `obey_robots` is the operator's ROBOTSTXT_OBEY.
        """
        self._user_agent = user_agent
        self._obey_robots = obey_robots
        self._timeout = aiohttp.ClientTimeout(total=timeout, sock_connect=min(timeout, 20.0))
        self._backoff = backoff
        self._part = part
        self._robots: dict[str, Protego] = {}

    def get(self, url: str, headers: Mapping[str, str] | None = None) -> Answer:
        """Return the answer to a request, whatever its status, after some tries when it is one that passes.

        Raises DownloadError when robots.txt forbids it, the server can't be reached or wants us to wait too long.
        """
        if self._obey_robots and not self._allowed(url):
            raise DownloadError(
                f"{url}: the robots.txt of {urlsplit(url).netloc} disallows it; fetch the file by hand and name it"
            )
        return self._ask(url, headers or {})

    def download(self, url: str, path: Path, on_progress: Callable[[int], object] = lambda _: None) -> None:
        """Bring the file at `path` up to date, in parts, going on where an earlier try was broken off.

        `on_progress` is called with the bytes of each part. Raises MissingFileError when there is no such file, and
        DownloadError or OSError when it can't be had.
        """
        download = RangedDownload(path, self._part)
        try:
            done = False
            while not done:
                answer = self.get(url, download.headers())
                if answer.status in _MISSING:
                    raise MissingFileError(f"{url}: HTTP status {answer.status}")
                done = download.accept(answer.status, answer.headers, answer.body)
                on_progress(len(answer.body))
        finally:
            download.close()

    def _ask(self, url: str, headers: Mapping[str, str]) -> Answer:
        for number in range(1, _TRIES + 1):
            wait = self._backoff * 2 ** (number - 1)
            try:
                answer = asyncio.run(self._request(url, headers))
            except (aiohttp.ClientError, TimeoutError, OSError) as error:
                reason = f"{type(error).__name__}: {error}".strip(": ")
            else:
                if answer.status not in _PASSES:
                    return answer
                reason = f"HTTP status {answer.status}"
                wait = max(wait, _retry_after(answer))
            if number == _TRIES or wait > _LONGEST_WAIT:
                break
            logger.warning("%s: %s; trying again in %.0f s", url, reason, wait)
            time.sleep(wait)
        raise DownloadError(f"{url}: {reason} (tried {number} times); try again later")

    async def _request(self, url: str, headers: Mapping[str, str]) -> Answer:
        given = {"User-Agent": self._user_agent, **headers}
        async with (
            aiohttp.ClientSession(timeout=self._timeout, trust_env=True, auto_decompress=True) as session,
            session.get(url, headers=given, max_redirects=5) as response,
        ):
            body = bytearray()
            async for block in response.content.iter_any():
                body += block
                if len(body) > LARGEST_ANSWER:
                    raise DownloadError(f"{url}: an answer of more than {LARGEST_ANSWER} bytes")
            names = {name.lower(): value for name, value in response.headers.items()}
            return Answer(status=response.status, headers=names, body=bytes(body))

    def _allowed(self, url: str) -> bool:
        parts = urlsplit(url)
        origin = f"{parts.scheme}://{parts.netloc}"
        if origin not in self._robots:
            answer = self._ask(f"{origin}/robots.txt", {})
            if answer.status >= _SERVER_ERROR:
                raise DownloadError(f"{origin}/robots.txt: HTTP status {answer.status}; try again later")
            # RFC 9309: a host that has none allows everything.
            text = answer.body.decode("utf-8-sig", "replace") if answer.status < _CLIENT_ERROR else ""
            self._robots[origin] = Protego.parse(text)
        # By the product's name alone: groups are looked for in all words, such as those of CONTACT.
        return self._robots[origin].can_fetch(url, self._user_agent.partition(" ")[0])


def _retry_after(answer: Answer) -> float:
    """Return the seconds that a server asks us to wait; 0 when it names none, or a date."""
    asked = answer.headers.get("retry-after", "")
    return float(asked) if asked.isascii() and asked.isdigit() else 0.0
