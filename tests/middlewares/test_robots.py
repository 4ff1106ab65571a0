"""A site whose robots.txt is out of order is not crawled: a crawl against a server whose robots.txt answers as told."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.crawling import FAST, scrapy


class Site(BaseHTTPRequestHandler):
    """Answers robots.txt with the status that the server was told to, and knows no page."""

    def do_GET(self) -> None:
        self.server.asked.append(self.path)  # type: ignore[attr-defined]
        status = self.server.robots if self.path == "/robots.txt" else 404  # type: ignore[attr-defined]
        if status is None:
            self.connection.close()
            return
        self.send_response(status)
        self.send_header("Content-Length", "5")
        self.end_headers()
        self.wfile.write(b"sorry")

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@pytest.fixture
def site() -> Iterator[ThreadingHTTPServer]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Site) as server:
        server.asked = []  # type: ignore[attr-defined]
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


@pytest.mark.parametrize(
    ("robots", "outcome"),
    [(404, "absent"), (410, "absent"), (500, "disallowed"), (502, "disallowed"), (None, "disallowed")],
)
def test_title_ends_as(robots: int | None, outcome: str, site: ThreadingHTTPServer, tmp_path: Path) -> None:
    site.robots = robots  # type: ignore[attr-defined]
    options = [part for name, value in {**FAST, "RETRY_TIMES": "1"}.items() for part in ("-s", f"{name}={value}")]
    url = f"http://127.0.0.1:{site.server_port}"
    finished = scrapy("crawl", "metacritic", "-a", "ids=movie/a,movie/b", *options, data=tmp_path, METACRITIC_URL=url)
    assert finished.misses == {"movie/a": outcome, "movie/b": outcome}
    assert set(site.asked) == {"/robots.txt"} | ({"/movie/a/", "/movie/b/"} if outcome == "absent" else set())  # type: ignore[attr-defined]
