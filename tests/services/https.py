"""TLS in front of a server, in a process of its own.

It is a site's https address, where the server itself knows http only.
"""

import asyncio
import multiprocessing
import ssl
import tempfile
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit

import trustme

NAME = "site.invalid"
"""A name that stands in the certificate, and that no machine knows."""
_HOST = "127.0.0.1"
_CONTEXT = multiprocessing.get_context("forkserver")


class HttpsFront:
    """Forwards what comes to `url` to the server at an http URL, while the `with` block runs."""

    def __init__(self, url: str) -> None:
        self._target = urlsplit(url).netloc

    def __enter__(self) -> Self:
        self._folder = tempfile.TemporaryDirectory(prefix="https-")
        key = Path(self._folder.name, "key.pem")
        self.certificate = Path(self._folder.name, "authority.pem")
        """What a client has to trust, such as by SSL_CERT_FILE."""
        authority = trustme.CA()
        authority.cert_pem.write_to_path(self.certificate)
        authority.issue_cert(_HOST, NAME).private_key_and_cert_chain_pem.write_to_path(key)
        here, there = _CONTEXT.Pipe(duplex=False)
        self._process: Any = _CONTEXT.Process(
            target=_run, args=(key, self._target, there), daemon=True
        )
        self._process.start()
        there.close()
        with here:
            self.port = here.recv()
        self.url = f"https://{_HOST}:{self.port}"
        return self

    @property
    def settings(self) -> dict[str, str]:
        """The environment variables with which a crawl finds IMDb here."""
        return {"IMDB_URL": self.url, "SSL_CERT_FILE": str(self.certificate)}

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.join()
        self._folder.cleanup()


def _run(key: Path, target: str, port: Connection) -> None:
    asyncio.run(_serve(key, target, port))


async def _serve(key: Path, target: str, port: Connection) -> None:
    async def forward(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there_reader, there_writer = await asyncio.open_connection(*target.split(":"))
        # The server tells clients apart by this header.
        client = f"\r\nX-Forwarded-For: {writer.get_extra_info('peername')[0]}\r\n".encode()
        await asyncio.gather(_copy(reader, there_writer, client), _copy(there_reader, writer))

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(key)
    server = await asyncio.start_server(forward, _HOST, 0, ssl=context)
    port.send(server.sockets[0].getsockname()[1])
    await server.serve_forever()


async def _copy(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, client: bytes = b"\r\n"
) -> None:
    with suppress(ConnectionError):
        while piece := await reader.read(65_536):
            writer.write(piece.replace(b" HTTP/1.1\r\n", b" HTTP/1.1" + client))
            await writer.drain()
    writer.close()
