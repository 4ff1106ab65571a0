"""A site for tests that answers each path as it is told."""

import logging
import re
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable, Mapping

from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

logging.getLogger("werkzeug").setLevel(logging.ERROR)


class Told(Response):
    """An answer, whose type is what its headers say, or none."""

    default_mimetype = None

    def __init__(
        self,
        status: int = 200,
        body: bytes | Iterable[bytes] = b"",
        headers: Mapping[str, str] | None = None,
    ) -> None:
        # Of a list, a length that the headers say is not corrected.
        super().__init__([body] if isinstance(body, bytes) else body, status, headers)


class Site(HTTPServer):
    """Serves while the `with` block runs.

    Paths that are not in `answers` are those of the site at the URL `behind`; without one, it says
    404 of them.
    """

    def __init__(self, behind: str = "") -> None:
        super().__init__("127.0.0.1", threaded=True)
        self.answers: dict[str, Told | Callable[[Request], Told | None]] = {}
        """Those of paths without queries; a function that returns None leaves a path as it is."""
        self._behind = behind
        self.expect_request(re.compile("")).respond_with_handler(self._answer)

    def __exit__(self, *error: object) -> None:
        self.stop()
        self.check()

    def thread_target(self) -> None:
        """Serve until it is stopped, which it soon notices."""
        assert self.server is not None
        self.server.serve_forever(0.02)

    @property
    def url(self) -> str:
        """Scheme, host and port."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def asked(self) -> list[Request]:
        """The requests that were answered, but for those of the head alone."""
        return [request for request, _ in self.log if request.method != "HEAD"]

    @property
    def pages(self) -> list[str]:
        """What was asked but robots.txt, each with its query."""
        return [target_of(asked) for asked in self.asked if asked.path != "/robots.txt"]

    def _answer(self, request: Request) -> Response:
        answer = self.answers.get(request.path)
        told = answer if isinstance(answer, Told | None) else answer(request)
        return told or self.usual_answer(request)

    def usual_answer(self, request: Request) -> Response:
        """Return the answer to a request of which nothing is told."""
        if not self._behind:
            return Told(404)
        try:
            with urllib.request.urlopen(self._behind + target_of(request), timeout=20) as answer:
                return Told(answer.status, answer.read())
        except urllib.error.HTTPError as error:
            return Told(error.code, error.read())


def target_of(request: Request) -> str:
    """Return a request's path and query as they were sent."""
    return str(request.environ["REQUEST_URI"])
