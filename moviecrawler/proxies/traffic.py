"""Counts requests, responses and bytes by site and pool."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy.downloadermiddlewares.stats import get_header_size, get_status_size

from moviecrawler.middlewares.compression import wire_size

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.http import Response
    from scrapy.statscollectors import StatsCollector

_REQUEST_LINE = len(b" ") + len(b" HTTP/1.1\r\n") + len(b"\r\n\r\n")
_END = len(b"\r\n\r\n")


def count_attempt(
    stats: StatsCollector, site: str, pool: str, outcome: str, request: Request | None, response: Response | None
) -> None:
    """Count an attempt by its outcome, and the bytes of HTTP as they crossed the wire: compressed, with headers.

    `request` is None when nothing reached the site. Bytes of TLS and TCP are not counted, nor those of an answer that broke off. The
    stats are `identity/<site>/<pool>/<outcome>`, `…/bytes_in` and `…/bytes_out`.
    """
    name = f"identity/{site}/{pool}/"
    stats.inc_value(name + outcome)
    if request is not None:
        size = get_header_size(request.headers) + len(request.body)
        stats.inc_value(f"{name}bytes_out", len(request.method) + len(request.url) + _REQUEST_LINE + size)
    if response is not None:
        size = get_header_size(response.headers) + wire_size(response)
        stats.inc_value(f"{name}bytes_in", get_status_size(response.status) + _END + size)
