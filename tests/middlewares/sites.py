"""A site for tests that answers each path as it is told."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from tests.services.threads import QuietHandler, Server

NOT_FOUND = 404


@dataclass(frozen=True)
class Told:
    """An answer."""

    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)


class Site(Server):
    """Serves while the `with` block runs. Of paths that are not in `answers` it says 404."""

    def __init__(self, **answers: Told | Callable[[str], Told]) -> None:
        self.answers: dict[str, Told | Callable[[str], Told]] = dict(answers)
        self.asked: list[str] = []
        """Paths, with their queries."""
        site = self

        class Handler(QuietHandler):
            def do_GET(self) -> None:
                site.asked.append(self.path)
                answer = site.answers.get(self.path.partition("?")[0], Told(NOT_FOUND))
                told = answer if isinstance(answer, Told) else answer(self.path)
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
