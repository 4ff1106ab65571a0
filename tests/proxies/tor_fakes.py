"""Tor's two ports as they behave, without Tor behind them."""

from __future__ import annotations

import re
import socket

from tests.services.threads import Server, join


class _Server(Server):
    """Calls `_serve` with each connection."""

    def __init__(self, port: int = 0) -> None:
        super().__init__(lambda connection, *_: self._serve(connection), port)

    def _serve(self, connection: socket.socket) -> None:
        raise NotImplementedError


class FakeTunnel(_Server):
    """Tor's HTTPTunnelPort: makes connections to where CONNECT says."""

    def __init__(self, port: int = 0) -> None:
        super().__init__(port)
        self.answers: list[bytes | None] = []
        """What it says to the next requests, instead of doing as they ask; None for nothing at all."""
        self.asked: list[tuple[str, bytes]] = []
        """Target and credentials of each request."""
        self.hosts: dict[str, str] = {}
        """Addresses by name, beside those that this machine knows."""

    def _serve(self, connection: socket.socket) -> None:
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            if not (piece := connection.recv(1)):
                return
            head += piece
        asked = re.fullmatch(rb"CONNECT (\S+) HTTP/1\.1\r\nHost: \1\r\nProxy-Authorization: (Basic \S+)\r\n\r\n", head)
        assert asked is not None, head
        target, authorization = asked[1].decode(), asked[2]
        self.asked.append((target, authorization))
        if self.answers:
            answer = self.answers.pop(0)
            if answer is None:
                connection.recv(1)
            else:
                connection.sendall(answer)
            return
        host, _, port = target.rpartition(":")
        with socket.create_connection((self.hosts.get(host, host), int(port))) as there:
            connection.sendall(b"HTTP/1.0 200 OK\r\nVia: tor/1.0 tor-network (tor 0.4.9.11)\r\n\r\n")
            join(connection, there)


class FakeControl(_Server):
    """Tor's ControlPort."""

    def __init__(self, password: str | None = None) -> None:
        """Ask for a password, if one is given."""
        super().__init__()
        self._password = password
        self.commands: list[str] = []
        self.silent_at = ""
        """The command that is never answered."""

    def _serve(self, connection: socket.socket) -> None:
        for line in map(str.rstrip, connection.makefile(encoding="utf-8")):
            self.commands.append(line)
            if line == self.silent_at:
                connection.recv(1)
            elif line.startswith("AUTHENTICATE"):
                if not self._is_right(line):
                    connection.sendall(
                        b"515 Authentication failed: Password did not match HashedControlPassword value\r\n"
                    )
                    return
                connection.sendall(b"250 OK\r\n")
            else:
                connection.sendall(self._answer(line).replace("\n", "\r\n").encode())

    def _is_right(self, line: str) -> bool:
        given = line.removeprefix("AUTHENTICATE").strip()
        if self._password is None:
            return True
        return re.sub(r"\\(.)", r"\1", given[1:-1]) == self._password

    def _answer(self, line: str) -> str:
        match line.split():
            case ["PROTOCOLINFO", "1"]:
                methods = "NULL" if self._password is None else "HASHEDPASSWORD"
                return f'250-PROTOCOLINFO 1\n250-AUTH METHODS={methods}\n250-VERSION Tor="0.4.9.11"\n250 OK\n'
            case ["SIGNAL", "NEWNYM"]:
                return "250 OK\n"
        return f"510 Unrecognized command {line}\n"
