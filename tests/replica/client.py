"""A client that shows an answer as it came over the wire, and the control paths of a replica."""

from __future__ import annotations

import http.client
import json
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

TITLES = 300
"""How many movies the tests' replica has."""


@dataclass
class Reply:
    status: int
    headers: dict[str, str]
    body: bytes


def ask(
    url: str,
    headers: dict[str, str] | None = None,
    *,
    method: str = "GET",
    body: bytes | None = None,
    timeout: float = 5,
) -> Reply:
    """Send one request; redirects are not followed, and bodies not decompressed."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.netloc, timeout=timeout)
    try:
        target = parts.path + (f"?{parts.query}" if parts.query else "")
        connection.request(method, target, body, headers or {})
        response = connection.getresponse()
        return Reply(response.status, {k.lower(): v for k, v in response.getheaders()}, response.read())
    finally:
        connection.close()


class Control:
    """The control paths of a replica."""

    def __init__(self, url: str) -> None:
        self._url = f"{url}/__replica__/"

    def counts(self, site: str = "imdb") -> dict[str, Any]:
        counts: dict[str, Any] = json.loads(ask(self._url + "counts").body)[site]
        return counts

    def options(self, **values: Any) -> Reply:
        return ask(self._url + "options", method="POST", body=json.dumps(values).encode())

    def reset(self) -> None:
        ask(self._url + "reset", method="POST")
