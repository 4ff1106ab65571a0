"""A site for tests that answers each path as it is told."""

from dataclasses import dataclass, field

from tests.services.threads import QuietHandler, Server


@dataclass(frozen=True)
class Told:
    """An answer."""

    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)


class Site(Server):
    """Serves while the `with` block runs. Of paths that are not in `answers` it says 404."""

    def __init__(self) -> None:
        self.answers: dict[str, Told] = {}
        self.asked: list[str] = []
        """Paths, with their queries."""
        site = self

        class Handler(QuietHandler):
            def do_GET(self) -> None:
                site.asked.append(self.path)
                told = site.answers.get(self.path.partition("?")[0], Told(404))
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
