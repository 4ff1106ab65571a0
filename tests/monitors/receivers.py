"""Who is told of alarms: a web server that keeps what is posted to it, and a mail server that keeps its mails."""

from __future__ import annotations

import json
from email import message_from_bytes, policy
from email.message import EmailMessage
from socketserver import StreamRequestHandler
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


class MailServer(Server):
    """Takes every mail."""

    def __init__(self) -> None:
        self.mails: list[EmailMessage] = []
        receiver = self

        class Handler(StreamRequestHandler):
            def handle(self) -> None:
                self.wfile.write(b"220 test\r\n")
                for line in self.rfile:
                    word = line[:4].upper()
                    if word == b"DATA":
                        self.wfile.write(b"354 go on\r\n")
                        content = b"".join(iter(self.rfile.readline, b".\r\n"))
                        mail = message_from_bytes(content, policy=policy.default)
                        assert isinstance(mail, EmailMessage)
                        receiver.mails.append(mail)
                    self.wfile.write(b"221 bye\r\n" if word == b"QUIT" else b"250 fine\r\n")
                    if word == b"QUIT":
                        return

        super().__init__(Handler)

    @property
    def url(self) -> str:
        return f"smtp://{self.address}"
