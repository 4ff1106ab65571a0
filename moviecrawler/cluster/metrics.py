"""`metrics`: the cluster's figures, in the format of Prometheus."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    PlatformCollector,
    ProcessCollector,
    generate_latest,
)
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from moviecrawler.cluster.state import EVENTS, NODE_LOST
from moviecrawler.cluster.webservice import Answer, ClusterResource
from moviecrawler.frontier.report import read_current_runs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from prometheus_client.metrics_core import Metric
    from twisted.web.server import Request

    from moviecrawler.cluster.node import Node
    from moviecrawler.cluster.state import NodeInfo


_OF_A_NODE: tuple[tuple[str, str, Callable[[NodeInfo], int]], ...] = (
    ("moviecrawler_node_jobs", "Jobs of a node.", lambda node: len(node.processes)),
    ("moviecrawler_node_memory_bytes", "Memory of a node without its spiders.", lambda node: node.memory),
    (
        "moviecrawler_node_spiders_memory_bytes",
        "Memory of a node's spiders.",
        lambda node: sum(p.memory for p in node.processes.values()),
    ),
)
_OF_A_CRAWL = {
    "done": "Requests of a crawl that ended well.",
    "failed": "Requests of a crawl that did not.",
    "to_go": "Requests of a crawl that are queued or held.",
    "dead_letters": "Requests of a crawl that were set aside.",
    "workers": "Processes at a crawl.",
}


class _Cluster(Collector):
    """Reads the figures at each scrape. Every node gives those of the whole cluster."""

    def __init__(self, node: Node) -> None:
        self._node = node

    def describe(self) -> Iterable[Metric]:
        return ()

    def collect(self) -> Iterable[Metric]:
        """Yield the figures that are in Redis. Raises redis.RedisError."""
        state = self._node.state
        counts, nodes = state.counts(), state.nodes()
        slots = sum(node.slots for node in nodes if not node.draining)
        yield GaugeMetricFamily("moviecrawler_jobs_pending", "Jobs that wait for a slot.", counts.pending)
        yield GaugeMetricFamily("moviecrawler_jobs_running", "Jobs that run.", counts.running)
        yield GaugeMetricFamily("moviecrawler_slots", "Slots of the nodes that take jobs.", slots)
        counters = dict.fromkeys(EVENTS, 0) | state.counters()
        lost = counters.pop(NODE_LOST, 0)
        yield CounterMetricFamily("moviecrawler_nodes_lost", "Nodes that went silent without having left.", lost)
        events = CounterMetricFamily("moviecrawler_jobs", "What has happened to jobs.", labels=["event"])
        for event, count in sorted(counters.items()):
            events.add_metric([event], count)
        yield events
        for name, text, figure in _OF_A_NODE:
            yield _family(name, text, ["node"], [([one.name], figure(one)) for one in nodes])
        runs = self._node.ask_frontier(read_current_runs).runs if self._node.has_frontier else []
        for name, text in _OF_A_CRAWL.items():
            figures = [([run.site, run.run], getattr(run, name)) for run in runs]
            yield _family(f"moviecrawler_crawl_{name}", text, ["site", "run"], figures)


def _family(name: str, text: str, labels: Sequence[str], figures: Iterable[tuple[Sequence[str], float]]) -> Metric:
    family = GaugeMetricFamily(name, text, labels=labels)
    for values, figure in figures:
        family.add_metric(values, figure)
    return family


class Metrics(ClusterResource):
    """`metrics`."""

    def __init__(self, node: Node) -> None:
        super().__init__(node)
        self._registry = CollectorRegistry()
        self._registry.register(_Cluster(node))
        ProcessCollector(registry=self._registry)
        PlatformCollector(registry=self._registry)

    def render_GET(self, request: Request) -> dict[str, Any]:
        return {"metrics": generate_latest(self._registry).decode()}

    def encode(self, code: int, data: Any) -> Answer:
        if data is None or "metrics" not in data:
            return super().encode(code, data)
        return self.with_headers(code, data["metrics"].encode(), CONTENT_TYPE_LATEST)
