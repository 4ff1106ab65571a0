"""A site for tests that answers each path as it is told."""

import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass, field
from io import BufferedIOBase

from tests.services.threads import QuietHandler, Server


@dataclass(frozen=True)
class Told:
    """An answer."""

    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    """Beside its length, unless they say another one; what is empty is not sent."""


@dataclass(frozen=True)
class Asked:
    """A request."""

    path: str
    """With its query."""
    headers: dict[str, str]
    """By their names in small letters."""


class Site(Server):
    """Serves while the `with` block runs.

    Paths that are not in `answers` are those of the site at the URL `behind`; without one, it says
    404 of them.
    """

    def __init__(self, behind: str = "") -> None:
        self.answers: dict[str, Told | Callable[[Asked], Told | None]] = {}
        """Those of paths without queries; a function that returns None leaves a path as it is."""
        self.asked: list[Asked] = []
        self._behind = behind
        site = self

        class Handler(QuietHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                headers = {name.lower(): value for name, value in self.headers.items()}
                asked = Asked(self.path, headers)
                site.asked.append(asked)
                told = site.answer(asked)
                self.send_response(told.status)
                for name, value in {"Content-Length": str(len(told.body)), **told.headers}.items():
                    if value:
                        self.send_header(name, value)
                self.end_headers()
                site.send(asked, told.body, self.wfile)

        super().__init__(Handler)

    @property
    def pages(self) -> list[str]:
        """What was asked but robots.txt."""
        return [asked.path for asked in self.asked if asked.path != "/robots.txt"]

    def answer(self, asked: Asked) -> Told:
        """Return the answer to a request."""
        answer = self.answers.get(asked.path.partition("?")[0])
        told = answer(asked) if callable(answer) else answer
        return told or self.usual_answer(asked)

    def usual_answer(self, asked: Asked) -> Told:
        """Return the answer to a request of which nothing is told."""
        if not self._behind:
            return Told(404)
        try:
            with urllib.request.urlopen(self._behind + asked.path, timeout=20) as answer:
                return Told(answer.status, answer.read())
        except urllib.error.HTTPError as error:
            return Told(error.code, error.read())

    def send(self, asked: Asked, body: bytes, output: BufferedIOBase) -> None:
        """Send a body."""
        del asked
        output.write(body)
