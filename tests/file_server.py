"""A server of files, as sources of titles have them.

It has ETags, ranges, a robots.txt, and trouble on demand.
"""

import threading
from collections.abc import Iterator
from hashlib import md5

from werkzeug import Request, Response
from werkzeug.exceptions import RequestedRangeNotSatisfiable

from tests.scripted_site import Site, Told


class FileServer(Site):
    """Serves `files` by path, or what `answers` say first. Used as a context manager."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.stalls: set[str] = set()
        """Paths of which half the answer is sent, and then nothing."""
        self._gone = threading.Event()
        super().__init__()

    def stop(self) -> None:
        """Refuse connections, and let go of those that stall."""
        self._gone.set()
        super().stop()

    def usual_answer(self, request: Request) -> Response:
        """Return a file, or the part of it that is asked for."""
        body = self.files.get(request.path)
        if body is None:
            return Told(404, b"no such file")
        if request.path in self.stalls:
            return Told(200, self._half(body), {"Content-Length": f"{len(body)}"})
        whole = Told(200, body)
        whole.set_etag(md5(body).hexdigest())  # noqa: S324 - no secret
        try:
            return whole.make_conditional(request, accept_ranges=True, complete_length=len(body))
        except RequestedRangeNotSatisfiable as error:
            return error.get_response()

    def _half(self, body: bytes) -> Iterator[bytes]:
        yield body[: len(body) // 2]
        self._gone.wait(30)
