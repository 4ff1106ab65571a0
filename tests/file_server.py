"""A server of files, as sources of titles have them.

It has ETags, ranges, a robots.txt, and trouble on demand.
"""

import re
import threading
from hashlib import md5
from io import BufferedIOBase

from tests.scripted_site import Asked, Site, Told


class FileServer(Site):
    """Serves `files` by path, or what `answers` say first. Used as a context manager."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.stalls: set[str] = set()
        """Paths of which half the answer is sent, and then nothing."""
        self._gone = threading.Event()
        super().__init__()

    def __exit__(self, *_: object) -> None:
        self._gone.set()
        super().__exit__()

    def usual_answer(self, asked: Asked) -> Told:
        """Return a file, or the part of it that is asked for."""
        if asked.path not in self.files:
            return Told(404, b"no such file")
        body = self.files[asked.path]
        etag = f'"{md5(body).hexdigest()}"'  # noqa: S324 - no secret
        headers = {"ETag": etag}
        if asked.headers.get("if-none-match") == etag:
            return Told(304, headers=headers)
        ranged = re.fullmatch(r"bytes=(\d+)-(\d*)", asked.headers.get("range", ""))
        if ranged is None or asked.headers.get("if-range", etag) != etag:
            return Told(200, body, headers)
        first = int(ranged[1])
        last = min(int(ranged[2] or len(body)), len(body) - 1)
        if first > last:
            return Told(416, headers=headers)
        headers["Content-Range"] = f"bytes {first}-{last}/{len(body)}"
        return Told(206, body[first : last + 1], headers)

    def send(self, asked: Asked, body: bytes, output: BufferedIOBase) -> None:
        """Send a body, or half of it."""
        if asked.path not in self.stalls:
            output.write(body)
            return
        output.write(body[: len(body) // 2])
        output.flush()
        self._gone.wait(30)
