"""A site for tests that does to a crawler what it can: bombs, endless redirects, drips, wrong lengths, pages that hang."""

from __future__ import annotations

import gzip
import time
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache

from tests.services.threads import QuietHandler, Server

Wire = tuple[list[tuple[str, str]], bytes | Callable[[], Iterator[bytes]]]
"""Headers and the body, or what makes its pieces while they are sent."""

_MEGABYTE = 1024 * 1024
_PIECE = 64 * 1024
_ENDLESS_SECONDS = 120


_NEXT_DATA = b'<html><head></head><body><script id="__NEXT_DATA__" type="application/json">%b</script></body></html>'
_HTML = b'<html><head><title>Salt (2019) - IMDb</title></head><body><h1 id="overview-top">Salt</h1>%b</body></html>'


def _filled(unit: bytes, size: int) -> bytes:
    return unit * (size // len(unit))


def _bomb(megabytes: int) -> bytes:
    """Return so much white space as gzip, which is a thousandth of it."""
    return gzip.compress(b"<html>" + b" " * (megabytes * _MEGABYTE), compresslevel=9)


def _packed(body: bytes, encoding: str = "gzip") -> Wire:
    return [("Content-Encoding", encoding), ("Content-Length", str(len(body)))], body


def _page(body: bytes) -> Wire:
    """Return a page as sites send it: compressed, so that little on the wire is much to read."""
    return _packed(gzip.compress(body, compresslevel=1))


def _drip() -> Iterator[bytes]:
    ends = time.monotonic() + _ENDLESS_SECONDS
    while time.monotonic() < ends:
        yield b" "
        time.sleep(0.1)


def _flood() -> Iterator[bytes]:
    ends = time.monotonic() + _ENDLESS_SECONDS
    while time.monotonic() < ends:
        yield b"<p>and on</p>" * 5000


def _endless_headers() -> list[tuple[str, str]]:
    return [(f"X-Header-{number}", "a" * 1000) for number in range(20_000)]


HOSTILE: dict[str, Callable[[], Wire]] = {
    "gzip bomb": lambda: _packed(_bomb(40)),
    "bomb in a bomb": lambda: _packed(gzip.compress(_bomb(40)), "gzip, gzip"),
    "three hundred encodings": lambda: _packed(b"a" * 5000, ", ".join(["gzip"] * 300)),
    "members without content": lambda: _packed(_filled(gzip.compress(b""), 5 * _MEGABYTE)),
    "another encoding than it says": lambda: _packed(b"not brotli at all" * 500, "br"),
    "drip": lambda: ([], _drip),
    "flood": lambda: ([], _flood),
    "longer than it says": lambda: ([("Content-Length", "3000")], _HTML % (b"a" * 100_000)),
    "shorter than it says": lambda: ([("Content-Length", "9000000")], _HTML % (b"a" * 100_000)),
    "a length that is none": lambda: ([("Content-Length", "-5")], _HTML % (b"a" * 100_000)),
    "twenty thousand headers": lambda: (_endless_headers(), _HTML % (b"a" * 5000)),
    "links that are never closed": lambda: _page(_HTML % _filled(b"<link rel=canonical ", 15 * _MEGABYTE)),
    "classes without quotes": lambda: _page(_HTML % _filled(b"<a class= class=", 15 * _MEGABYTE)),
    "tags": lambda: _page(_HTML % _filled(b"<b>", 15 * _MEGABYTE)),
    "attributes": lambda: _page(_HTML % (b"<p " + b" ".join(b"a%d" % number for number in range(1_000_000)) + b">")),
    "empty lists": lambda: _page(_NEXT_DATA % (b'{"props":{"pageProps":[' + _filled(b"[],", 15 * _MEGABYTE) + b"1]}}")),
    "JSON inside of JSON": lambda: _page(_NEXT_DATA % _filled(b'{"a":', 10 * _MEGABYTE)),
    "numbers of thousands of digits": lambda: _page(
        _NEXT_DATA % (b'{"props":{"pageProps":{"total":' + b"9" * 100_000 + b"}}}")
    ),
    "a page of zeros": lambda: _page(bytes(15 * _MEGABYTE)),
}
"""What a title's page can be instead of one, by what it is."""
REDIRECTS = "redirects without an end"
KINDS = [*HOSTILE, REDIRECTS]


@cache
def _made(kind: str) -> Wire:
    return HOSTILE[kind]()


class HostileSite(Server):
    """Serves the titles of `bad` in the way that each is told, and everything else as `behind` does, a URL."""

    def __init__(self, behind: str, bad: dict[str, str]) -> None:
        self.asked: Counter[str] = Counter()
        """How often each path was asked for, without queries."""
        site = self

        class Handler(QuietHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                self.close_connection = True
                path = self.path.partition("?")[0]
                site.asked[path] += 1
                kind = next((kind for site_id, kind in bad.items() if site_id in path), None)
                if kind is None:
                    self._pass_on()
                elif kind == REDIRECTS:
                    self._send(302, [("Location", f"{path}?{site.asked[path]}"), ("Content-Length", "0")], b"")
                else:
                    self._send(200, *_made(kind))

            def _send(
                self, status: int, headers: list[tuple[str, str]], body: bytes | Callable[[], Iterator[bytes]]
            ) -> None:
                self.send_response(status)
                for name, value in [("Content-Type", "text/html"), ("Connection", "close"), *headers]:
                    self.send_header(name, value)
                self.end_headers()
                for piece in [body] if isinstance(body, bytes) else body():
                    for at in range(0, len(piece), _PIECE):
                        self.wfile.write(piece[at : at + _PIECE])

            def _pass_on(self) -> None:
                asked = urllib.request.Request(behind + self.path, headers={"Accept-Encoding": "gzip"})
                with urllib.request.urlopen(asked, timeout=20) as answer:
                    body = answer.read()
                    named = [(name, answer.headers[name]) for name in ("Content-Encoding",) if answer.headers[name]]
                self._send(200, [*named, ("Content-Length", str(len(body)))], body)

        super().__init__(Handler)
        for kind in set(bad.values()) - {REDIRECTS}:
            _made(kind)  # so that no client waits for it
