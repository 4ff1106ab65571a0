"""Web services that read the catalogue and the frontier, too; the metrics."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import redis
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector
from scrapyd.webservice import param

from moviecrawler.basics.clock import utc_now
from moviecrawler.basics.errors import ConfigurationError, UnavailableError
from moviecrawler.catalogue.store import boost_named
from moviecrawler.cluster.fitness import CHECKS
from moviecrawler.cluster.jobs import RESULTS
from moviecrawler.cluster.webservice import ClusterService
from moviecrawler.frontier.progress import figures_of
from moviecrawler.sites import ID_SITE, SITES
from moviecrawler.sites.ids import parse_title_id

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from prometheus_client.metrics_core import Metric
    from twisted.web.server import Request

    from moviecrawler.cluster.state import NodeInfo, Snapshot
    from moviecrawler.cluster.webservice import Reply
    from moviecrawler.frontier.contract import RunReport

_MAX_BOOSTED = 1000
"""Titles that one request may name."""
_MAX_WEIGHT = 1e6


class Progress(ClusterService):
    """`progress.json`: how far the current runs are."""

    def render_GET(self, txrequest: Request) -> Reply:
        runs = self.root.sources.frontier().runs
        return {"runs": [figures_of(run) for run in runs if run.is_current]}


class Boost(ClusterService):
    """`boost.json`: have titles fetched soon on all sites.

    `id` is one IMDb id or URL, or several with commas.
    """

    @param("id", dest="texts", multiple=True)
    @param("weight", required=False, default=1.0, type=lambda text: float(text or 1))
    def render_POST(self, txrequest: Request, *, texts: list[str], weight: float) -> Reply:
        """Return how many titles were named, and how many of them the catalogue has."""
        texts = ",".join(texts).split(",")
        ids = list(dict.fromkeys(parse_title_id(ID_SITE, text) for text in texts if text.strip()))
        if not ids:
            raise ConfigurationError("'id' parameter is required")
        if len(ids) > _MAX_BOOSTED:
            raise ConfigurationError(
                f"{len(ids):,} titles are named; name at most {_MAX_BOOSTED:,}"
            )
        if not 0 < weight <= _MAX_WEIGHT:
            raise ConfigurationError(
                f"weight is {weight}; give a number above 0 and up to {_MAX_WEIGHT:,.0f}"
            )
        with self.root.sources.database.transaction(write=True) as cursor:
            unknown = boost_named(cursor, [("imdb", id_) for id_ in ids], weight, utc_now())
        return {"named": len(ids), "boosted": len(ids) - len(unknown)}


# --- Metrics --------------------------------------------------------------------------------------


class Metrics(ClusterService, Collector):
    """`metrics`: those of the cluster, of this node's spiders, and of the runs, for Prometheus."""

    def render(self, txrequest: Request) -> bytes:
        txrequest.setHeader("Content-Type", CONTENT_TYPE_LATEST)
        return generate_latest(self)

    def collect(self) -> Iterator[Metric]:
        """Yield the metric families; it is the method of a Prometheus collector."""
        launcher = self.root.node.launcher
        try:
            cluster = self.root.node.state.snapshot()
        except redis.exceptions.RedisError:
            yield _gauge("redis_up", _REDIS_UP, 0)
            yield from _of_nodes([launcher.info()])
        else:
            # A full Redis can still be read, but accepts no heartbeat.
            yield _gauge("redis_up", _REDIS_UP, int(not launcher.outage))
            yield from _of_cluster(cluster)
            with suppress(UnavailableError, ConfigurationError):
                yield _of_runs(self.root.sources.frontier().runs)
            yield from _of_nodes(cluster.nodes)
        yield from launcher.totals.collect()


_REDIS_UP = "Whether this node can use Redis."


def _gauge(name: str, text: str, value: float) -> Metric:
    return GaugeMetricFamily(f"moviecrawler_{name}", text, value)


def _of_cluster(cluster: Snapshot) -> Iterator[Metric]:
    """Yield the metrics that are the same on each node."""
    yield _gauge("jobs_pending", "Pending jobs.", len(cluster.pending))
    yield _gauge("jobs_running", "Running jobs.", len(cluster.running))
    slots = sum(node.slots for node in cluster.nodes if node.takes_jobs)
    yield _gauge("slots", "Slots of the nodes that take jobs.", slots)
    text = "Nodes that stopped sending heartbeats without having left."
    yield CounterMetricFamily("moviecrawler_nodes_lost", text, cluster.nodes_lost)
    text = "Jobs that ended, by result, and processes of jobs that died."
    results = CounterMetricFamily("moviecrawler_jobs", text, labels=["spider", "result"])
    deployed = {spider for egg in cluster.eggs for spider in egg.spiders}
    ended = {spider for spider, _ in cluster.results}
    # All results are exported from the start: Prometheus sees no increase to a first value.
    for spider in sorted({*SITES, *deployed, *ended}):
        for result in RESULTS:
            results.add_metric([spider, result], cluster.results.get((spider, result), 0))
    yield results


def _of_nodes(nodes: Sequence[NodeInfo]) -> Iterator[Metric]:
    """Yield the metrics of each node: of this one alone when the others are unknown."""
    text = "Whether a node can run jobs, by what it has checked."
    fit = GaugeMetricFamily("moviecrawler_node_fit", text, labels=["node", "check"])
    text = "Jobs of a node."
    jobs = GaugeMetricFamily("moviecrawler_node_jobs", text, labels=["node"])
    text = "Memory of a node without its spiders."
    memory = GaugeMetricFamily("moviecrawler_node_memory_bytes", text, labels=["node"])
    text = "Memory of a node's spiders."
    spiders = GaugeMetricFamily("moviecrawler_node_spiders_memory_bytes", text, labels=["node"])
    for node in nodes:
        for check in CHECKS:
            fit.add_metric([node.name, check], int(check not in node.unfit))
        jobs.add_metric([node.name], len(node.processes))
        memory.add_metric([node.name], node.memory)
        spiders.add_metric([node.name], node.spiders_memory)
    yield from (fit, jobs, memory, spiders)


def _of_runs(runs: Sequence[RunReport]) -> Metric:
    """Return the progress of each run with open requests: it may stand still for days."""
    text = "Requests that have ended, of a run with open ones."
    family = GaugeMetricFamily("moviecrawler_run_ended", text, labels=["site", "run"])
    for run in runs:
        if run.account.open:
            family.add_metric([run.site, run.run], run.account.ended)
    return family
