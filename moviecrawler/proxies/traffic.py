"""Counts requests, responses and bytes by site and pool."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy.downloadermiddlewares.stats import get_header_size, get_status_size

from moviecrawler.middlewares.compression import wire_size

if TYPE_CHECKING:
    from collections.abc import Iterator

    from scrapy import Request
    from scrapy.http import Response
    from scrapy.statscollectors import StatsCollector

_REQUEST_LINE = len(b" ") + len(b" HTTP/1.1\r\n") + len(b"\r\n\r\n")
_END = len(b"\r\n\r\n")
_MEGABYTE = 1_000_000
_BYTES = ("bytes_in", "bytes_out")


class Traffic:
    """Counts attempts by outcome, and the bytes of HTTP as they crossed the wire: compressed, with headers.

    Bytes of TLS and TCP are not counted, nor those of an answer that broke off. The stats are
    `identity/<site>/<pool>/<outcome>`, `…/bytes_in` and `…/bytes_out`.
    """

    def __init__(self, stats: StatsCollector) -> None:
        self._stats = stats
        self._accounts: dict[tuple[str, str], set[str]] = {}

    def count(self, site: str, pool: str, outcome: str, request: Request | None, response: Response | None) -> None:
        """Count an attempt; without `request` when nothing reached the site."""
        self._add(site, pool, outcome, 1)
        if request is not None:
            size = get_header_size(request.headers) + len(request.body)
            self._add(site, pool, "bytes_out", len(request.method) + len(request.url) + _REQUEST_LINE + size)
        if response is not None:
            size = get_header_size(response.headers) + wire_size(response)
            self._add(site, pool, "bytes_in", get_status_size(response.status) + _END + size)

    def _add(self, site: str, pool: str, name: str, number: int) -> None:
        self._accounts.setdefault((site, pool), set()).add(name)
        self._stats.inc_value(f"identity/{site}/{pool}/{name}", number)

    def totals(self) -> Iterator[str]:
        """Yield a line for each site and pool."""
        for (site, pool), names in sorted(self._accounts.items()):
            numbers = {name: self._stats.get_value(f"identity/{site}/{pool}/{name}", 0) for name in {*names, *_BYTES}}
            into, out = (numbers.pop(name) / _MEGABYTE for name in _BYTES)
            outcomes = ", ".join(
                f"{numbers[name]:,} {name}" for name in sorted(numbers, key=lambda name: (-numbers[name], name))
            )
            attempts = sum(numbers.values())
            yield f"{site} via {pool}: {attempts:,} attempts ({outcomes}), {into:,.2f} MB in, {out:,.2f} MB out"
