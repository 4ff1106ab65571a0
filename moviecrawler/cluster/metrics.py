"""`metrics`: the cluster's figures and those of this node's spiders, in the format of Prometheus."""

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
from scrapyd.webservice import WsResource

from moviecrawler.cluster.state import EVENTS, NODE_LOST
from moviecrawler.frontier.report import read_runs

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from prometheus_client.metrics_core import Metric
    from twisted.web.server import Request

    from moviecrawler.cluster.node import Node

_RUN_FIGURES = {
    "done": "Requests of a crawl that ended well.",
    "failed": "Requests of a crawl that became dead letters.",
    "to_go": "Requests of a crawl that are queued or leased.",
    "dead_letters": "Dead letters of a crawl that were not requeued or dropped.",
    "workers": "Workers of a crawl.",
}


class _Cluster(Collector):
    """Reads the figures of the whole cluster at each scrape."""

    def __init__(self, node: Node) -> None:
        self._node = node

    def describe(self) -> Iterable[Metric]:
        return ()

    def collect(self) -> Iterable[Metric]:
        """Yield the cluster's figures and those of this node's spiders. Raises redis.RedisError."""
        state = self._node.state
        jobs, nodes, counters = state.snapshot(), state.nodes(), state.counters()
        slots = sum(node.slots for node in nodes if not node.draining)
        yield GaugeMetricFamily("moviecrawler_jobs_pending", "Jobs that wait for a slot.", len(jobs.pending))
        yield GaugeMetricFamily("moviecrawler_jobs_running", "Jobs that run.", len(jobs.running))
        yield GaugeMetricFamily("moviecrawler_slots", "Slots of the nodes that take jobs.", slots)
        text = "Nodes that stopped sending heartbeats without having left."
        yield CounterMetricFamily("moviecrawler_nodes_lost", text, counters[NODE_LOST])
        events = CounterMetricFamily("moviecrawler_jobs", "Events of jobs.", labels=["event"])
        for event in sorted(EVENTS):
            events.add_metric([event], counters[event])
        yield events
        for name, text, figures in (
            ("jobs", "Jobs of a node.", [len(node.processes) for node in nodes]),
            ("memory_bytes", "Memory of a node without its spiders.", [node.memory for node in nodes]),
            ("spiders_memory_bytes", "Memory of a node's spiders.", [node.spiders_memory for node in nodes]),
        ):
            of_nodes = [([node.name], figure) for node, figure in zip(nodes, figures, strict=True)]
            yield _family(f"moviecrawler_node_{name}", text, ["node"], of_nodes)
        yield from self._node.launcher.figures().collect()
        # One node reports the runs, as to read them on each node would be most of the load of Redis.
        reports_runs = bool(nodes) and nodes[0].id == self._node.launcher.node_id
        runs = self._node.ask_frontier(read_runs) if reports_runs and self._node.has_frontier else []
        for name, text in _RUN_FIGURES.items():
            of_runs = [([run.site, run.run], getattr(run, name)) for run in runs]
            yield _family(f"moviecrawler_crawl_{name}", text, ["site", "run"], of_runs)


def _family(name: str, text: str, labels: Sequence[str], figures: Iterable[tuple[Sequence[str], float]]) -> Metric:
    family = GaugeMetricFamily(name, text, labels=labels)
    for values, figure in figures:
        family.add_metric(values, figure)
    return family


class Metrics(WsResource):  # type: ignore[misc]  # Scrapyd has no types
    """`metrics`."""

    def __init__(self, root: Any) -> None:
        super().__init__(root)
        self._registry = CollectorRegistry()
        self._registry.register(_Cluster(root.node))
        ProcessCollector(registry=self._registry)
        PlatformCollector(registry=self._registry)

    def render(self, txrequest: Request) -> bytes:
        txrequest.setHeader("Content-Type", CONTENT_TYPE_LATEST)
        return generate_latest(self._registry)
