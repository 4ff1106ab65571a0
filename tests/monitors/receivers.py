"""Who is told what is wrong: a web server that keeps what is posted to it."""

from __future__ import annotations

import json
from typing import Any

from tests.services.threads import QuietHandler, Server


class Webhook(Server):
    """Answers with the statuses given, one after the other, and then with 200."""

    def __init__(self, *statuses: int) -> None:
        self.bodies: list[bytes] = []
        self.requests: list[tuple[str, str, dict[str, str]]] = []
        left = list(statuses)
        receiver = self

        class Handler(QuietHandler):
            def do_POST(self) -> None:
                receiver.requests.append((self.command, self.path, dict(self.headers)))
                receiver.bodies.append(self.rfile.read(int(self.headers.get("Content-Length", 0))))
                answer = b'{"ok": true, "members": []}'  # what chat programs answer
                self.send_response(left.pop(0) if left else 200)
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            do_GET = do_PUT = do_POST  # noqa: N815 - their names in the standard library

        super().__init__(Handler)

    @property
    def url(self) -> str:
        return f"{super().url}/hooks/s3cret-token"

    @property
    def messages(self) -> list[dict[str, Any]]:
        return [json.loads(body) for body in self.bodies]
