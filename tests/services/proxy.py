"""A TCP proxy before a service, that is slow, cuts connections or is gone when a test says so."""

import socket
import threading
import time
from contextlib import suppress

from tests.services.threads import Server, cut


class Proxy(Server):
    """Listens on a free port while the `with` block runs."""

    def __init__(self, host: str, port: int) -> None:
        super().__init__(lambda client, *_: self._serve(client))
        self.latency = 0.0
        """Seconds that each piece of an answer waits."""
        self.cut_after: int | None = None
        """Bytes from clients after which their connections are cut; None for never. Set to None by
        a cut."""
        self.answers = 0
        """Pieces of answers that were passed on; one a round trip as long as answers are short."""
        self._target = (host, port)

    def _serve(self, client: socket.socket) -> None:
        with socket.create_connection(self._target) as service:
            answering = threading.Thread(target=self._pass_on, args=(service, client, False))
            answering.start()
            self._pass_on(client, service, True)
            answering.join()

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
        cut(source)
        cut(target)
