"""TLS in front of a server, in a process of its own: a site's https address, where the server itself knows http only."""

from __future__ import annotations

import asyncio
import ssl
import subprocess
import sys
import tempfile
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Self
from urllib.parse import urlsplit

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

NAME = "site.invalid"
"""A name that stands in the certificate, and that no machine knows."""
_HOST = "127.0.0.1"


class HttpsFront:
    """Forwards what comes to `url` to the server at an http URL, while the `with` block runs."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._target = (parts.hostname or "", str(parts.port))

    def __enter__(self) -> Self:
        self._folder = tempfile.TemporaryDirectory(prefix="https-")
        folder = Path(self._folder.name)
        self.certificate = folder / "certificate.pem"
        """What a client has to trust, such as by SSL_CERT_FILE."""
        _write_certificate(self.certificate, folder / "key.pem")
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.services.https", self.certificate, folder / "key.pem", *self._target],
            cwd=Path(__file__).parents[2],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdout is not None
        with self._process.stdout as output:
            self.port = int(output.readline())
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()
        self._folder.cleanup()

    @property
    def url(self) -> str:
        """Scheme, host and port."""
        return f"https://{_HOST}:{self.port}"


def _write_certificate(certificate: Path, key: Path) -> None:
    """Make a certificate of this machine's address, good for a day, which vouches for itself."""
    private = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "test")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(private.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ip_address(_HOST)), x509.DNSName(NAME)]), critical=False
        )
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(private, hashes.SHA256())
    )
    certificate.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    key.write_bytes(
        private.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )


async def _serve(certificate: str, key: str, host: str, port: str) -> None:
    async def forward(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there_reader, there_writer = await asyncio.open_connection(host, int(port))
        # The server tells clients apart by this header.
        client = f"\r\nX-Forwarded-For: {writer.get_extra_info('peername')[0]}\r\n".encode()
        await asyncio.gather(_copy(reader, there_writer, client), _copy(there_reader, writer))

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    server = await asyncio.start_server(forward, _HOST, 0, ssl=context)
    print(server.sockets[0].getsockname()[1], flush=True)  # noqa: T201 - whoever started it reads it here
    await server.serve_forever()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, client: bytes = b"\r\n") -> None:
    with suppress(ConnectionError):
        while piece := await reader.read(65_536):
            writer.write(piece.replace(b" HTTP/1.1\r\n", b" HTTP/1.1" + client))
            await writer.drain()
    writer.close()


if __name__ == "__main__":
    asyncio.run(_serve(*sys.argv[1:]))
