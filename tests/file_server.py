"""A server of files, as sources of titles have them.

It has ETags, ranges, a robots.txt, and trouble on demand.
"""

import re
import threading
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import md5
from urllib.parse import urlsplit

from tests.services.threads import QuietHandler, Server

Reply = tuple[int, dict[str, str], bytes]


@dataclass
class Asked:
    path: str
    headers: dict[str, str]


class FileServer(Server):
    """Serves `files` by path, or what `replies` say first. Used as a context manager."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.replies: dict[str, Callable[[Asked], Reply | None]] = {}
        """Asked before the files; None leaves the answer to them."""
        self.stalls: set[str] = set()
        """Paths of which half the answer is sent, and then nothing."""
        self.asked: list[Asked] = []
        self._gone = threading.Event()
        serving = self

        class Handler(QuietHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                parts = urlsplit(self.path)
                headers = {name.lower(): value for name, value in self.headers.items()}
                asked = Asked(parts.path, headers)
                serving.asked.append(asked)
                status, given, body = serving.reply(asked)
                self.send_response(status)
                for name, value in {"Content-Length": str(len(body)), **given}.items():
                    if value:
                        self.send_header(name, value)
                self.end_headers()
                if asked.path in serving.stalls:
                    self.wfile.write(body[: len(body) // 2])
                    self.wfile.flush()
                    serving._gone.wait(30)
                    return
                self.wfile.write(body)

        super().__init__(Handler)

    @property
    def paths(self) -> list[str]:
        """What was asked for, but for robots.txt."""
        return [asked.path for asked in self.asked if asked.path != "/robots.txt"]

    def __exit__(self, *_: object) -> None:
        self._gone.set()
        super().__exit__()

    def reply(self, asked: Asked) -> Reply:
        made = self.replies[asked.path](asked) if asked.path in self.replies else None
        if made is not None:
            return made
        if asked.path not in self.files:
            return 404, {}, b"no such file"
        body = self.files[asked.path]
        given = {"ETag": f'"{md5(body).hexdigest()}"'}  # noqa: S324 - no secret
        if asked.headers.get("if-none-match") == given["ETag"]:
            return 304, given, b""
        ranged = re.fullmatch(r"bytes=(\d+)-(\d*)", asked.headers.get("range", ""))
        if ranged is None or asked.headers.get("if-range", given["ETag"]) != given["ETag"]:
            return 200, given, body
        first = int(ranged[1])
        last = min(int(ranged[2] or len(body)), len(body) - 1)
        if first > last:
            return 416, given, b""
        return (
            206,
            {**given, "Content-Range": f"bytes {first}-{last}/{len(body)}"},
            body[first : last + 1],
        )
