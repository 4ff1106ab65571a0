"""A site for tests that does to a crawler what it can.

Bombs, endless redirects, drips, wrong lengths, pages that hang.
"""

import gzip
import time
from collections.abc import Callable, Iterator
from functools import cache
from itertools import count

from werkzeug import Request, Response

from tests.scripted_site import Site, Told

Body = bytes | Callable[[], Iterator[bytes]]
"""A body, or what makes its pieces while they are sent."""
Wire = tuple[dict[str, str], Body]
_MEGABYTE = 1024 * 1024
_ENDLESS_SECONDS = 120
_NEXT_DATA = (
    b'<html><head></head><body><script id="__NEXT_DATA__" type="application/json">%b</script>'
    b"</body></html>"
)
_HTML = (
    b"<html><head><title>Salt (2019) - IMDb</title></head>"
    b'<body><h1 id="overview-top">Salt</h1>%b</body></html>'
)


def _filled(unit: bytes, megabytes: int) -> bytes:
    return unit * (megabytes * _MEGABYTE // len(unit))


def _packed(body: bytes, encoding: str = "gzip") -> Wire:
    return {"Content-Encoding": encoding, "Content-Length": str(len(body))}, body


def _page(body: bytes) -> Wire:
    """Return a page as sites send it: compressed, so that little on the wire is much to read."""
    return _packed(gzip.compress(body, compresslevel=1))


def _endless(piece: bytes, pause: float = 0.0) -> Wire:
    def pieces() -> Iterator[bytes]:
        ends = time.monotonic() + _ENDLESS_SECONDS
        while time.monotonic() < ends:
            yield piece
            time.sleep(pause)

    return {}, pieces


def _long(headers: dict[str, str]) -> Wire:
    return headers, _HTML % (b"a" * 100_000)


@cache
def _bomb() -> bytes:
    return gzip.compress(b"<html>" + b" " * (40 * _MEGABYTE), compresslevel=1)


HOSTILE: dict[str, Callable[[], Wire]] = {
    "gzip bomb": lambda: _packed(_bomb()),
    "bomb in a bomb": lambda: _packed(gzip.compress(_bomb()), "gzip, gzip"),
    "three hundred encodings": lambda: _packed(b"a" * 5000, ", ".join(["gzip"] * 300)),
    "members without content": lambda: _packed(_filled(gzip.compress(b""), 5)),
    "another encoding than it says": lambda: _packed(b"not brotli at all" * 500, "br"),
    "drip": lambda: _endless(b" ", pause=0.1),
    "flood": lambda: _endless(b"<p>and on</p>" * 5000),
    "longer than it says": lambda: _long({"Content-Length": "3000"}),
    "shorter than it says": lambda: _long({"Content-Length": "9000000"}),
    "a length that is none": lambda: _long({"Content-Length": "-5"}),
    "twenty thousand headers": lambda: _long(
        {f"X-Header-{number}": "a" * 1000 for number in range(20_000)}
    ),
    "links that are never closed": lambda: _page(_HTML % _filled(b"<link rel=canonical ", 15)),
    "tags": lambda: _page(_HTML % _filled(b"<b>", 15)),
    "empty lists": lambda: _page(
        _NEXT_DATA % (b'{"props":{"pageProps":[' + _filled(b"[],", 15) + b"1]}}")
    ),
    "JSON inside of JSON": lambda: _page(_NEXT_DATA % _filled(b'{"a":', 10)),
    "a page of zeros": lambda: _page(bytes(15 * _MEGABYTE)),
}
"""What a title's page can be instead of one, by what it is."""
REDIRECTS = "redirects without an end"
KINDS = [*HOSTILE, REDIRECTS]


@cache
def _made(kind: str) -> Wire:
    return HOSTILE[kind]()


class HostileSite(Site):
    """Serves each title of `bad` in the way that is given for it, and the rest as `behind` does.

    `behind` is a URL.
    """

    def __init__(self, behind: str, bad: dict[str, str]) -> None:
        super().__init__(behind)
        self._bad = bad
        self._count = count()
        for kind in set(bad.values()) - {REDIRECTS}:
            _made(kind)  # so that no client waits for it

    def usual_answer(self, request: Request) -> Response:
        """Return a title's answer, or that of the site behind."""
        path = request.path
        kind = next((kind for site_id, kind in self._bad.items() if site_id in path), None)
        if kind is None:
            return super().usual_answer(request)
        if kind == REDIRECTS:
            return Told(302, headers={"Location": f"{path}?{next(self._count)}"})
        headers, body = _made(kind)
        pieces = body() if callable(body) else iter([body])
        return Told(200, pieces, {"Content-Type": "text/html", **headers})
