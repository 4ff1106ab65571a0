"""The figures of a single crawl for Prometheus: in a file that its node exporter reads, or sent to a push gateway.

A node of a cluster has a `metrics` service of its own; see `moviecrawler.cluster.metrics`.
"""

from __future__ import annotations

import asyncio
import logging
import re
import time
from contextlib import suppress
from http.client import HTTPException
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.error import HTTPError
from urllib.parse import unquote, urlsplit, urlunsplit

from prometheus_client import CollectorRegistry, push_to_gateway, write_to_textfile
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.exposition import basic_auth_handler, default_handler
from scrapy import signals
from scrapy.exceptions import NotConfigured

from moviecrawler.extensions.alarms import Alarms
from moviecrawler.extensions.coverage import CoverageWatch
from moviecrawler.extensions.outcomes import OUTCOMES, ended_by_itself
from moviecrawler.options import MetricsOptions, node_of
from moviecrawler.outages import Outages

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Self

    from prometheus_client.metrics_core import Metric
    from scrapy.crawler import Crawler

logger = logging.getLogger(__name__)

_TIMEOUT_SECONDS = 10.0
_JOB = "moviecrawler"
_LABELS = ("site", "run")
"""The labels of all metrics."""


_Figures = dict[tuple[str, ...], float]
_Gauge = tuple[tuple[str, ...], _Figures]
"""Labels, and a figure for each of their values."""


class _Counter(NamedTuple):
    """A counter, and the stats that it is made of."""

    name: str
    text: str
    pattern: re.Pattern[str]
    """Of a stat's name; its named groups are labels, all of which have few values."""


_POOL = r"proxy/[\w.:-]+/(?P<pool>[\w-]+)"
_STORE = r"store/(?P<store>\w+)"
COUNTERS = [
    _Counter(f"moviecrawler_{name}", text, re.compile(pattern))
    for name, text, pattern in (
        ("titles_asked", "Titles asked for.", "titles/asked"),
        ("titles", "Titles that ended, by how they did.", f"titles/(?P<outcome>{'|'.join(OUTCOMES)})"),
        ("responses", "Answers, by HTTP status.", r"downloader/response_status_count/(?P<status>\d{3})"),
        ("received_bytes", "Bytes of answers, as they came over the wire.", "downloader/response_bytes"),
        ("sent_bytes", "Bytes of requests.", "downloader/request_bytes"),
        ("request_errors", "Requests without an answer.", "downloader/exception_count"),
        ("retries", "Requests that were sent again.", "retry/count"),
        ("blocks", "Refusals, by how the site refused.", r"blocks/[\w.:-]+/(?P<kind>(?!stopped)\w+)"),
        (
            "extraction_errors",
            "Pages of an unknown shape, by the field that could not be read.",
            r"extraction/errors/(?P<field>[\w.]+)",
        ),
        ("list_pages_missed", "List pages that could not be read.", "lists/missed"),
        (
            "store_items",
            "Items that a store is done with, by what became of them.",
            _STORE + "/(?P<outcome>durable|rejected|spooled|lost)",
        ),
        ("store_batches", "Batches written.", _STORE + "/batches"),
        ("store_write_seconds", "Time spent in writing.", _STORE + "/seconds"),
        ("store_retries", "Writes that failed and were tried again.", _STORE + "/retries"),
        ("items_rejected", "Items that no title can have.", "items/rejected"),
        ("proxy_attempts", "Attempts through a pool of proxies, by outcome.", _POOL + r"/(?P<outcome>(?!bytes_)\w+)"),
        ("proxy_received_bytes", "Bytes that came through a pool.", _POOL + "/bytes_in"),
        ("proxy_sent_bytes", "Bytes that went through a pool.", _POOL + "/bytes_out"),
        ("pages", "Title pages that were read.", "coverage/pages"),
        ("partial_pages", "Title pages that are silent of a field that pages alike tell.", "coverage/partial"),
        (
            "silent_pages",
            "Title pages that are silent of a field, by field.",
            r"coverage/silent/(?P<field>[\w.]+)",
        ),
        ("frontier_round_trips", "Exchanges with the shared queue.", "frontier/round_trips"),
        ("frontier_errors", "Exchanges that failed.", "frontier/errors"),
        ("alarm_messages", "Messages about alarms.", "alarms/(?P<status>opened|reminder|recovered)"),
    )
]
GAUGES = {
    "moviecrawler_crawl_start_time_seconds": "When this process began the crawl, since 1970.",
    "moviecrawler_crawl_last_update_time_seconds": "When these figures were written, since 1970.",
    "moviecrawler_crawl_running": "1 while the crawl lasts, 0 after it.",
    "moviecrawler_crawl_success": "1 when the crawl ended by itself, 0 when something ended it; not there while it lasts.",
    "moviecrawler_site_stopped": "1 when the site has refused us and is asked nothing more.",
    "moviecrawler_field_pages": "Pages of this crawl that had a field, of moviecrawler_pages_total.",
    "moviecrawler_field_coverage_ratio": "Share of this crawl's pages that had a field.",
    "moviecrawler_alarms_open": "Alarms of the site that stand, by kind.",
    "moviecrawler_store_buffered_items_max": "Most items that waited for a store at once.",
}
_BUFFERED = re.compile(_STORE + "/buffered_max")


class Metrics:
    """Writes the crawl's figures every METRICS_EVERY seconds and at its end, to where the settings say."""

    def __init__(self, crawler: Crawler, options: MetricsOptions) -> None:
        self._crawler = crawler
        self._every = options.every
        self._run: str = crawler.settings["FRONTIER_RUN"]
        self._site: str = crawler.spidercls.site  # type: ignore[attr-defined]
        name = f"moviecrawler_{self._site}_{self._run}.prom"
        self._file = Path(options.folder) / name if options.folder else None
        self._gateway, self._user = _without_credentials(options.push_url) if options.push_url else ("", None)
        self._started = time.time()
        self._reason: str | None = None
        self._task: asyncio.Task[None] | None = None
        self._closing = asyncio.Event()
        self._outages = Outages()

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Read FRONTIER_RUN, and what `MetricsOptions` reads."""
        options = MetricsOptions.read(crawler.settings)
        if not (options.folder or options.push_url) or not hasattr(crawler.spidercls, "site"):
            raise NotConfigured
        metrics = cls(crawler, options)
        crawler.signals.connect(metrics.spider_opened, signals.spider_opened)
        crawler.signals.connect(metrics.spider_closed, signals.spider_closed)
        return metrics

    def spider_opened(self) -> None:
        """Begin to write."""
        self._task = asyncio.get_running_loop().create_task(self._write_now_and_then())

    async def spider_closed(self, reason: str) -> None:
        """Write the final figures."""
        self._closing.set()
        if self._task is not None:
            await self._task  # a write that has begun would replace the final figures
        self._reason = reason
        await self._write()

    async def _write_now_and_then(self) -> None:
        while not self._closing.is_set():
            await self._write()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._closing.wait(), self._every)

    async def _write(self) -> None:
        # What is collected is taken here, in the event loop's thread; what is written, in another.
        registry = CollectorRegistry()
        registry.register(_Snapshot(list(self._families())))
        if self._file is not None:
            await self._attempt("METRICS_FOLDER", write_to_textfile, str(self._file), registry)
        if self._gateway:
            await self._attempt("METRICS_PUSH_URL", self._push, registry)

    def _push(self, registry: CollectorRegistry) -> None:
        push_to_gateway(
            self._gateway,
            job=_JOB,
            registry=registry,
            # Each crawl replaces its own figures at the gateway, and no other's.
            grouping_key={
                "instance": node_of(self._crawler.settings),
                "site": self._site,
                "run": self._run,
            },
            timeout=_TIMEOUT_SECONDS,
            handler=default_handler if self._user is None else self._authorised,
        )

    def _authorised(
        self, url: str, method: str, timeout: float | None, headers: list[tuple[str, str]], data: bytes
    ) -> Callable[[], None]:
        assert self._user is not None  # noqa: S101 - else it isn't called
        return basic_auth_handler(url, method, timeout, headers, data, *self._user)

    async def _attempt(self, name: str, write: Callable[..., object], *arguments: object) -> None:
        try:
            await asyncio.to_thread(write, *arguments)
        except (OSError, HTTPException) as error:  # the latter of a gateway that speaks no HTTP
            if self._outages.begins(name):
                message = f"HTTP status {error.code}" if isinstance(error, HTTPError) else type(error).__name__
                logger.warning("Metrics could not be written to %s (%s), and will be tried again", name, message)
        else:
            self._outages.ends(name)

    # --- Figures ------------------------------------------------------------------------------------------------------

    def _families(self) -> Iterable[Metric]:
        stats = self._crawler.stats.get_stats()
        own = [self._site, self._run]
        for name, text, pattern in COUNTERS:
            family = CounterMetricFamily(name, text, labels=[*_LABELS, *pattern.groupindex])
            for values, total in _sums(stats, pattern).items():
                family.add_metric([*own, *values], total)
            yield family
        for name, (labels, figures) in self._gauges(stats).items():
            gauge = GaugeMetricFamily(name, GAUGES[name], labels=[*_LABELS, *labels])
            for of, figure in figures.items():
                gauge.add_metric([*own, *of], figure)
            yield gauge

    def _gauges(self, stats: Mapping[str, Any]) -> dict[str, _Gauge]:
        watch, alarms = self._crawler.get_extension(CoverageWatch), self._crawler.get_extension(Alarms)
        counted = watch.places.having if watch is not None else {}
        pages = watch.places.pages if watch is not None else 0
        fields: _Figures = {(name,): float(number) for name, number in counted.items() if number}
        kinds: _Figures = {}
        for alarm in alarms.open if alarms is not None else ():
            if alarm.site == self._site:
                kinds[alarm.kind,] = kinds.get((alarm.kind,), 0) + 1
        buffered = _sums(stats, _BUFFERED)
        ended: _Figures = {}
        if self._reason is not None:
            within_budget = getattr(self._crawler.spider, "refills", False)
            ended = {(): float(ended_by_itself(self._reason, within_budget=within_budget))}
        return {
            "moviecrawler_crawl_start_time_seconds": ((), {(): self._started}),
            "moviecrawler_crawl_last_update_time_seconds": ((), {(): time.time()}),
            "moviecrawler_crawl_running": ((), {(): float(self._reason is None)}),
            "moviecrawler_crawl_success": ((), ended),
            "moviecrawler_site_stopped": ((), {(): float(f"blocks/{self._site}/stopped" in stats)}),
            "moviecrawler_field_pages": (("field",), fields),
            "moviecrawler_field_coverage_ratio": (("field",), {of: number / pages for of, number in fields.items()}),
            "moviecrawler_alarms_open": (("kind",), kinds),
            "moviecrawler_store_buffered_items_max": (("store",), buffered),
        }


class _Snapshot:
    """Figures of one moment, as a registry takes them."""

    def __init__(self, families: list[Metric]) -> None:
        self.collect = lambda: families


def _without_credentials(url: str) -> tuple[str, tuple[str, str] | None]:
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    user = (unquote(parts.username), unquote(parts.password or "")) if parts.username else None
    return urlunsplit((parts.scheme, host, parts.path, "", "")), user


def _sums(stats: Mapping[str, Any], pattern: re.Pattern[str]) -> _Figures:
    sums: _Figures = {}
    for name, value in stats.items():
        found = pattern.fullmatch(name)
        if found is not None and isinstance(value, int | float):
            sums[found.groups()] = sums.get(found.groups(), 0.0) + value
    return sums
