"""A TCP proxy before a service, that is slow, cuts connections or is gone when a test says so."""

from __future__ import annotations

import socket
import threading
import time
from contextlib import suppress
from typing import Self


class Proxy:
    """Listens on a free port while the `with` block runs."""

    def __init__(self, host: str, port: int) -> None:
        self.latency = 0.0
        """Seconds that each piece of an answer waits."""
        self.cut_after: int | None = None
        """Bytes from clients after which their connections are cut; None for never. Set to None by a cut."""
        self.answers = 0
        """Pieces of answers that were passed on; one a round trip as long as answers are short."""
        self._target = (host, port)
        self._port = 0
        self._listener: socket.socket | None = None
        self._open: set[socket.socket] = set()

    @property
    def address(self) -> str:
        """Host and port to connect to; the same after a restart."""
        return f"127.0.0.1:{self._port}"

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Accept connections."""
        self._listener = socket.create_server(("127.0.0.1", self._port))
        self._port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, args=(self._listener,), daemon=True).start()

    def stop(self) -> None:
        """Refuse connections, and cut those that are open."""
        listener, self._listener = self._listener, None
        if listener is not None:
            # Closing alone would not wake the thread that accepts.
            with suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)
            listener.close()
        for connection in list(self._open):
            _cut(connection)

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                client, _ = listener.accept()
                service = socket.create_connection(self._target)
            except OSError:
                return
            self._open |= {client, service}
            threading.Thread(target=self._pass_on, args=(client, service, True), daemon=True).start()
            threading.Thread(target=self._pass_on, args=(service, client, False), daemon=True).start()

    def _pass_on(self, source: socket.socket, target: socket.socket, from_client: bool) -> None:
        with suppress(OSError):
            while data := source.recv(65_536):
                if from_client and self.cut_after is not None:
                    self.cut_after -= len(data)
                    if self.cut_after < 0:
                        self.cut_after = None
                        break
                if not from_client:
                    self.answers += 1
                    time.sleep(self.latency)
                target.sendall(data)
        for connection in (source, target):
            _cut(connection)
            connection.close()
            self._open.discard(connection)


def _cut(connection: socket.socket) -> None:
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
