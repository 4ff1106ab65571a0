"""Programs for the lines of a shell: `scrapy` and `moviecrawler`, forked as in `tests.processes`.

Each is a small client, which starts in 20 ms. It passes its arguments, environment, folder and
output to this process, and ends with the exit code of the command that is forked here.
"""

import json
import os
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.processes import ForkedCommand

_CLIENT = f"""#!{sys.executable} -IS
import json, os, socket, sys
with socket.socket(socket.AF_UNIX) as server:
    server.connect(os.path.join(os.path.dirname(sys.argv[0]), "server"))
    program = os.path.basename(sys.argv[0])
    request = [program, sys.argv[1:], dict(os.environ), os.getcwd()]
    socket.send_fds(server, [json.dumps(request).encode()], [1, 2])
    sys.exit(int(server.recv(10)))
"""
_MAX_REQUEST_BYTES = 128 * 1024


@contextmanager
def forked_programs() -> Iterator[Path]:
    """Yield a folder of these programs, for the beginning of PATH."""
    with TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX) as server:
        for name in ("moviecrawler", "scrapy"):
            program = Path(folder, name)
            program.write_text(_CLIENT)
            program.chmod(0o755)
        server.bind(f"{folder}/server")
        server.listen()
        serving = threading.Thread(target=_serve, args=(server,))
        serving.start()
        try:
            yield Path(folder)
        finally:
            server.shutdown(socket.SHUT_RDWR)
            serving.join()


def _serve(server: socket.socket) -> None:
    while True:
        try:
            client, _ = server.accept()
        except OSError:  # it is shut down
            return
        with client:
            client.send(str(_run(client)).encode())


def _run(client: socket.socket) -> int:
    """Run the command that a client asks for; return its exit code."""
    request, descriptors, _, _ = socket.recv_fds(client, _MAX_REQUEST_BYTES, 2)
    program, arguments, environment, folder = json.loads(request)
    with ExitStack() as stack:
        for descriptor in descriptors:
            stack.callback(os.close, descriptor)
        stdout, stderr = (
            stack.enter_context(Path(f"/proc/{os.getpid()}/fd/{descriptor}").open("wb"))
            for descriptor in descriptors
        )
        return ForkedCommand(
            arguments,
            env=environment,
            cwd=Path(folder),
            stdout=stdout,
            stderr=stderr,
            program=program,
        ).wait()
