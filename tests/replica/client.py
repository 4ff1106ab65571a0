"""A client that shows an answer as it came over the wire."""

import http.client
from typing import NamedTuple
from urllib.parse import urlsplit


class Reply(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes


def ask(
    url: str, headers: dict[str, str] | None = None, *, method: str = "GET", timeout: float = 60
) -> Reply:
    """Send one request; redirects are not followed, and bodies not decompressed."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.netloc, timeout=timeout)
    try:
        connection.request(
            method, parts.path + (f"?{parts.query}" if parts.query else ""), None, headers or {}
        )
        response = connection.getresponse()
        return Reply(
            response.status, {k.lower(): v for k, v in response.getheaders()}, response.read()
        )
    finally:
        connection.close()
