"""A web server with the files of a folder, as simple as they come: no parts, and no ETags."""

from __future__ import annotations

import functools
from contextlib import contextmanager
from http.server import SimpleHTTPRequestHandler
from typing import TYPE_CHECKING

from tests.services.threads import QuietHandler, Server

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


class _Handler(QuietHandler, SimpleHTTPRequestHandler):
    pass


@contextmanager
def serving(folder: Path) -> Iterator[str]:
    with Server(functools.partial(_Handler, directory=str(folder))) as server:
        yield server.url
