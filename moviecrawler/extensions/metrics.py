"""The figures of a single crawl for Prometheus: in a file that its node exporter reads, or sent to a push gateway.

A node of a cluster has a `metrics` service of its own; see `moviecrawler.cluster.metrics`.
"""

from __future__ import annotations

import asyncio
import logging
import re
import time
from http.client import HTTPException
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.error import HTTPError
from urllib.parse import unquote, urlsplit, urlunsplit

from prometheus_client import CollectorRegistry, push_to_gateway, write_to_textfile
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.exposition import basic_auth_handler, default_handler
from prometheus_client.registry import Collector
from scrapy import signals
from scrapy.exceptions import NotConfigured

from moviecrawler.extensions.alarms import Alarms
from moviecrawler.extensions.coverage import CoverageWatch
from moviecrawler.extensions.outcomes import ended_by_itself
from moviecrawler.options import MetricsOptions, node_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Self

    from prometheus_client.metrics_core import Metric
    from scrapy.crawler import Crawler

logger = logging.getLogger(__name__)

_TIMEOUT_SECONDS = 10.0  # seconds
_JOB = "moviecrawler"
_LABELS = ("site", "run")
"""Of all metrics."""


_Figures = dict[tuple[str, ...], float]
_Gauge = tuple[tuple[str, ...], _Figures]
"""Labels, and a figure for each of their values."""


class _Counter(NamedTuple):
    """A counter, and the stats that it is made of."""

    name: str
    text: str
    pattern: str
    """Of a stat's name; its named groups are labels, all of which have few values."""
    labels: tuple[str, ...] = ()


COUNTERS = (
    _Counter("moviecrawler_titles_asked", "Titles asked for.", r"titles/asked"),
    _Counter(
        "moviecrawler_titles",
        "Titles that ended, by how they did.",
        r"titles/(?P<outcome>stored|absent|failed|blocked|disallowed|rejected|spooled|lost)",
        ("outcome",),
    ),
    _Counter(
        "moviecrawler_responses",
        "Answers, by HTTP status.",
        r"downloader/response_status_count/(?P<status>\d{3})",
        ("status",),
    ),
    _Counter(
        "moviecrawler_received_bytes", "Bytes of answers, as they came over the wire.", r"downloader/response_bytes"
    ),
    _Counter("moviecrawler_sent_bytes", "Bytes of requests.", r"downloader/request_bytes"),
    _Counter("moviecrawler_request_errors", "Requests without an answer.", r"downloader/exception_count"),
    _Counter("moviecrawler_retries", "Requests that were sent again.", r"retry/count"),
    _Counter(
        "moviecrawler_blocks",
        "Refusals, by how the site refused.",
        r"blocks/[\w.:-]+/(?P<kind>(?!stopped)\w+)",
        ("kind",),
    ),
    _Counter(
        "moviecrawler_extraction_errors",
        "Pages of an unknown shape, by the field that could not be read.",
        r"extraction/errors/(?P<field>[\w.]+)",
        ("field",),
    ),
    _Counter("moviecrawler_list_pages_missed", "List pages that could not be read.", r"lists/missed"),
    _Counter(
        "moviecrawler_store_items",
        "Items that a store is done with, by what became of them.",
        r"store/(?P<store>\w+)/(?P<outcome>durable|rejected|spooled|lost)",
        ("store", "outcome"),
    ),
    _Counter("moviecrawler_store_batches", "Batches written.", r"store/(?P<store>\w+)/batches", ("store",)),
    _Counter("moviecrawler_store_write_seconds", "Time spent in writing.", r"store/(?P<store>\w+)/seconds", ("store",)),
    _Counter(
        "moviecrawler_store_retries",
        "Writes that failed and were tried again.",
        r"store/(?P<store>\w+)/retries",
        ("store",),
    ),
    _Counter("moviecrawler_items_rejected", "Items that no title can have.", r"items/rejected"),
    _Counter(
        "moviecrawler_exit_attempts",
        "Attempts through a pool of proxies, by outcome.",
        r"identity/[\w.:-]+/(?P<pool>[\w-]+)/(?P<outcome>(?!bytes_)\w+)",
        ("pool", "outcome"),
    ),
    _Counter(
        "moviecrawler_exit_received_bytes",
        "Bytes that came through a pool.",
        r"identity/[\w.:-]+/(?P<pool>[\w-]+)/bytes_in",
        ("pool",),
    ),
    _Counter(
        "moviecrawler_exit_sent_bytes",
        "Bytes that went through a pool.",
        r"identity/[\w.:-]+/(?P<pool>[\w-]+)/bytes_out",
        ("pool",),
    ),
    _Counter("moviecrawler_pages", "Title pages that were read.", r"coverage/pages"),
    _Counter(
        "moviecrawler_partial_pages",
        "Title pages that are silent of a field that pages alike tell.",
        r"coverage/partial",
    ),
    _Counter(
        "moviecrawler_silent_pages",
        "Title pages that are silent of a field, by field.",
        r"coverage/silent/(?P<field>[\w.]+)",
        ("field",),
    ),
    _Counter("moviecrawler_frontier_round_trips", "Exchanges with the shared queue.", r"frontier/round_trips"),
    _Counter("moviecrawler_frontier_errors", "Exchanges that failed.", r"frontier/errors"),
    _Counter(
        "moviecrawler_alarm_messages",
        "Messages about alarms.",
        r"alarms/(?P<status>opened|reminder|recovered)",
        ("status",),
    ),
)
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
_BUFFERED = re.compile(r"store/(?P<store>\w+)/buffered_max")
_COMPILED = [(counter, re.compile(counter.pattern)) for counter in COUNTERS]


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
        self._has_warned: set[str] = set()

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
        if self._task is not None:
            self._task.cancel()
        self._reason = reason
        await self._write()

    async def _write_now_and_then(self) -> None:
        while True:
            await self._write()
            await asyncio.sleep(self._every)

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
            if name not in self._has_warned:
                message = f"HTTP status {error.code}" if isinstance(error, HTTPError) else type(error).__name__
                logger.warning("Metrics could not be written to %s (%s), and will be tried again", name, message)
            self._has_warned.add(name)
        else:
            self._has_warned.discard(name)

    # --- Figures ------------------------------------------------------------------------------------------------------

    def _families(self) -> Iterable[Metric]:
        stats = self._crawler.stats.get_stats()
        own = [self._site, self._run]
        for counter, pattern in _COMPILED:
            family = CounterMetricFamily(counter.name, counter.text, labels=[*_LABELS, *counter.labels])
            for values, total in _sums(stats, pattern, counter.labels).items():
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
        buffered = _sums(stats, _BUFFERED, ("store",))
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


class _Snapshot(Collector):
    """Figures of one moment."""

    def __init__(self, families: list[Metric]) -> None:
        self._families = families

    def collect(self) -> Iterable[Metric]:
        """Return them."""
        return self._families


def _without_credentials(url: str) -> tuple[str, tuple[str, str] | None]:
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    user = (unquote(parts.username), unquote(parts.password or "")) if parts.username else None
    return urlunsplit((parts.scheme, host, parts.path, "", "")), user


def _sums(stats: Mapping[str, Any], pattern: re.Pattern[str], labels: tuple[str, ...]) -> dict[tuple[str, ...], float]:
    sums: dict[tuple[str, ...], float] = {}
    for name, value in stats.items():
        found = pattern.fullmatch(name)
        if found is not None and isinstance(value, int | float):
            values = tuple(found[label] for label in labels)
            sums[values] = sums.get(values, 0.0) + value
    return sums
