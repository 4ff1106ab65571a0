"""`metrics`: the cluster's figures and those of this node's spiders, in the format of Prometheus."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector
from scrapyd.webservice import WsResource

from moviecrawler.cluster.state import EVENTS, NODE_LOST

if TYPE_CHECKING:
    from collections.abc import Iterable

    from prometheus_client.metrics_core import Metric
    from twisted.web.server import Request

    from moviecrawler.cluster.node import Node


class _Cluster(Collector):
    """Reads the figures of the whole cluster at each scrape."""

    def __init__(self, node: Node) -> None:
        self._node = node

    def collect(self) -> Iterable[Metric]:
        """Yield the cluster's figures and those of this node's spiders. Raises redis.RedisError."""
        state, jobs = self._node.state, self._node.snapshot
        nodes, counters = state.nodes(), state.counters()
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
            family = GaugeMetricFamily(f"moviecrawler_node_{name}", text, labels=["node"])
            for node, figure in zip(nodes, figures, strict=True):
                family.add_metric([node.name], figure)
            yield family
        yield from self._node.launcher.figures().collect()


class Metrics(WsResource):  # type: ignore[misc]  # Scrapyd has no types
    """`metrics`."""

    def render(self, txrequest: Request) -> bytes:
        txrequest.setHeader("Content-Type", CONTENT_TYPE_LATEST)
        return generate_latest(_Cluster(self.root.node))
