"""A server of a test's own on this machine, with a thread for each connection."""

import socket
import sys
import threading
from contextlib import suppress
from http.server import ThreadingHTTPServer
from typing import Any, Self


class Server:
    """Listens on a free port while the `with` block runs.

    Between `stop` and `start` it refuses connections.

    `handler` is called with each connection, as one of the standard library's classes of request
    handlers is. Clients may hang up; any other error of a handler fails the test.
    """

    def __init__(self, handler: Any, port: int = 0) -> None:
        self.port = port
        """The same after its end."""
        self._handler = handler
        self._running: _Running | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def address(self) -> str:
        """Host and port."""
        return f"127.0.0.1:{self.port}"

    @property
    def url(self) -> str:
        """Scheme, host and port of a site."""
        return f"http://{self.address}"

    def start(self) -> None:
        """Accept connections."""
        self._running = _Running(("127.0.0.1", self.port), self._handler)
        self.port = self._running.server_port
        threading.Thread(target=self._running.serve_forever, args=(0.02,), daemon=True).start()

    def stop(self) -> None:
        """Refuse connections, and cut those that are open."""
        running = self._running
        self._running = None
        if running is not None:
            running.shutdown()
            running.server_close()
            # Closing alone would not wake the threads that read from them.
            for connection in running.open:
                cut(connection)
            assert not running.errors


class Host(Server):
    """Says one thing or nothing, and keeps what it is sent."""

    def __init__(self, says: bytes = b"") -> None:
        super().__init__(lambda connection, *_: self._serve(connection))
        self._says = says
        self.connected = threading.Event()
        self.received = b""

    def _serve(self, connection: socket.socket) -> None:
        self.connected.set()
        connection.sendall(self._says)
        while piece := connection.recv(1024):
            self.received += piece


class _Running(ThreadingHTTPServer):
    def __init__(self, address: tuple[str, int], handler: Any) -> None:
        self.open: list[socket.socket] = []
        self.errors: list[BaseException | None] = []
        super().__init__(address, handler)

    def get_request(self) -> tuple[socket.socket, Any]:
        connection, address = super().get_request()
        self.open.append(connection)
        return connection, address

    def handle_error(self, request: Any, client_address: Any) -> None:
        del request, client_address
        if not isinstance(sys.exception(), OSError):
            self.errors.append(sys.exception())


def copy(source: socket.socket, target: socket.socket) -> None:
    """Pass on what comes until it ends, and then the end."""
    with suppress(OSError):
        while piece := source.recv(65_536):
            target.sendall(piece)
    with suppress(OSError):
        target.shutdown(socket.SHUT_WR)


def join(one: socket.socket, other: socket.socket) -> None:
    """Pass on what comes from either to the other, until both have ended."""
    answering = threading.Thread(target=copy, args=(other, one))
    answering.start()
    copy(one, other)
    answering.join()


def cut(connection: socket.socket) -> None:
    """End a connection, also for who reads from it."""
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
