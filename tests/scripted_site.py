"""A site for tests that answers each path as it is told."""

import urllib.error
import urllib.request
from dataclasses import dataclass, field

from tests.services.threads import QuietHandler, Server


@dataclass(frozen=True)
class Told:
    """An answer."""

    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)


class Site(Server):
    """Serves while the `with` block runs.

    Paths that are not in `answers` are those of the site at the URL `behind`; without one, it says
    404 of them.
    """

    def __init__(self, behind: str = "") -> None:
        self.answers: dict[str, Told] = {}
        self.asked: list[str] = []
        """Paths, with their queries."""
        site = self

        class Handler(QuietHandler):
            def do_GET(self) -> None:
                site.asked.append(self.path)
                told = site.answers.get(self.path.partition("?")[0])
                if told is None:
                    told = _ask(behind + self.path) if behind else Told(404)
                self.send_response(told.status)
                for name, value in {"Content-Length": str(len(told.body)), **told.headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(told.body)

        super().__init__(Handler)

    @property
    def pages(self) -> list[str]:
        """What was asked but robots.txt."""
        return [path for path in self.asked if path != "/robots.txt"]


def _ask(url: str) -> Told:
    """Return what a site answers."""
    try:
        with urllib.request.urlopen(url, timeout=20) as answer:
            return Told(answer.status, answer.read())
    except urllib.error.HTTPError as error:
        return Told(error.code, error.read())
