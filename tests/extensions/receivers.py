"""Who is told what is wrong: a web server that keeps what is posted to it, and a mail server."""

import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from email import message_from_string
from email.message import Message
from typing import Any

from werkzeug import Request, Response

from tests.scripted_site import Site, Told


class Webhook(Site):
    """Answers with the statuses given, one after the other, and then with 200."""

    def __init__(self, *statuses: int) -> None:
        super().__init__()
        self._statuses = iter(statuses)

    def usual_answer(self, request: Request) -> Response:
        """Return the next status."""
        del request
        return Told(next(self._statuses, 200))

    @property
    def hook(self) -> str:
        """Where messages are posted."""
        return f"{self.url}/hooks/s3cret-token"

    @property
    def apprise_url(self) -> str:
        return f"json://127.0.0.1:{self.port}/s3cret-token"

    @property
    def messages(self) -> list[Any]:
        return [request.json for request in self.asked]


@contextmanager
def mail_server() -> Iterator[tuple[int, list[Message]]]:
    """Give the port of a mail server that takes everything, and the messages that it has taken."""
    taken: list[Message] = []

    class Dialogue(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            self.wfile.write(b"220 here\r\n")
            for line in self.rfile:
                command = line[:4].upper().strip()
                self.wfile.write(
                    {b"DATA": b"354 go on\r\n", b"QUIT": b"221 bye\r\n"}.get(
                        command, b"250 well\r\n"
                    )
                )
                if command == b"DATA":
                    lines = iter(self.rfile.readline, b".\r\n")
                    taken.append(message_from_string(b"".join(lines).decode()))
                    self.wfile.write(b"250 taken\r\n")
                elif command == b"QUIT":
                    return

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Dialogue) as server:
        threading.Thread(
            target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True
        ).start()
        try:
            yield server.server_address[1], taken
        finally:
            server.shutdown()
