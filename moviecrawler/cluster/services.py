"""Web services that answer from the catalogue and the frontier, as the pages do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from prometheus_client.core import GaugeMetricFamily
from scrapyd.webservice import param

from moviecrawler.basics.clock import utc_now
from moviecrawler.basics.errors import AwayError, ConfigurationError
from moviecrawler.catalogue.store import boost_named
from moviecrawler.cluster.webservice import ClusterService
from moviecrawler.cluster.webservice import Metrics as ClusterMetrics
from moviecrawler.frontier.progress import figures_of
from moviecrawler.sites import ID_SITE
from moviecrawler.sites.ids import parse_title_id

if TYPE_CHECKING:
    from collections.abc import Iterable

    from prometheus_client.metrics_core import Metric
    from twisted.web.server import Request

_MAX_BOOSTED = 1000
"""Titles that one request may name."""
_MAX_WEIGHT = 1e6


class Progress(ClusterService):
    """`progress.json`: how far the current runs are."""

    def render_GET(self, txrequest: Request) -> dict[str, Any]:
        runs = self.root.sources.frontier().runs
        return {"runs": [figures_of(run) for run in runs if run.is_current]}


class Metrics(ClusterMetrics):
    """`metrics`: the figures of the cluster, of this node's spiders, and of the runs."""

    def of_runs(self) -> Iterable[Metric]:
        """Yield how far each run is that has something open: it may stand still for days."""
        try:
            runs = self.root.sources.frontier().runs
        except (AwayError, ConfigurationError):
            return
        text = "Requests that have ended, of a run with open ones."
        family = GaugeMetricFamily("moviecrawler_run_ended", text, labels=["site", "run"])
        for run in runs:
            if run.account.open:
                family.add_metric([run.site, run.run], run.account.ended)
        yield family


class Boost(ClusterService):
    """`boost.json`: have titles fetched soon on all sites.

    `id` is one IMDb id or URL, or several with commas.
    """

    @param("id", dest="given", multiple=True)
    @param("weight", required=False, default=1.0, type=lambda given: float(given or 1))
    def render_POST(self, txrequest: Request, *, given: list[str], weight: float) -> dict[str, Any]:
        """Answer with how many titles were named, and how many of them the catalogue knows."""
        texts = ",".join(given).split(",")
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
