"""The first page: what needs attention, each site today, and the nodes."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from moviecrawler.dashboard.charts import spark
from moviecrawler.dashboard.pages import Page, PageRequest
from moviecrawler.dashboard.rendering import counted, is_failure, when
from moviecrawler.sites import SITES

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from moviecrawler.catalogue.figures import SiteFigures
    from moviecrawler.cluster.state import JobStatus, NodeInfo, Snapshot
    from moviecrawler.dashboard.sources import Counts
    from moviecrawler.frontier.contract import FrontierReport, RunReport, SiteState
    from moviecrawler.sites import Site

_LATE_SHARE = 0.5
"""Share of a node's lease after which its heartbeat is late; one is sent in each third."""
_RECENTLY_SECONDS = 86_400
"""Time for which a job that failed needs attention."""


class Overview(Page):
    """`/`."""

    template = "overview.html"
    title = "Overview"

    def show(self, request: PageRequest) -> dict[str, Any]:
        counts = request.attempt(self.sources.counts)
        frontier = request.attempt(self.sources.frontier)
        jobs = request.attempt(self.node.state.snapshot)
        # What did not answer is not asked again.
        nodes = None if jobs is None else request.attempt(self.node.state.nodes)
        cards = [card_of(site, counts, frontier) for site in SITES]
        found = concerns(cards, troubles=request.troubles, jobs=jobs, nodes=nodes, now=time.time())
        late = _LATE_SHARE * self.node.options.lease_seconds
        return {
            "refresh": self.here,
            "concerns": list(found),
            "cards": cards,
            "counts": counts,
            "jobs": jobs,
            "nodes": nodes,
            "spark": spark,
            "state_of": lambda node: state_of(node, late),
        }


def state_of(node: NodeInfo, late_seconds: float) -> Literal["draining", "unfit", "late", "up"]:
    """Return a node's state; it is late when its last heartbeat is older than `late_seconds`."""
    if node.draining:
        return "draining"
    if node.unfit:
        return "unfit"
    return "late" if node.heard_seconds_ago > late_seconds else "up"


# --- A site's figures -----------------------------------------------------------------------------


@dataclass(slots=True, kw_only=True)
class Card:
    """A site's figures. None is unknown."""

    site: Site
    counts: SiteFigures | None = None
    hours: list[int] | None = None
    """Titles read in each of the last hours."""
    state: SiteState | None = None
    runs: list[RunReport] = field(default_factory=list)
    is_probing: bool = False
    """Whether the pause of a refusal is over: the next request is its probe."""


def card_of(site: Site, counts: Counts | None, frontier: FrontierReport | None) -> Card:
    """Return a site's figures."""
    card = Card(site=site)
    if counts is not None:
        card.counts = counts.sites.get(site)
        card.hours = counts.hours.get(site)
    if frontier is not None:
        card.state = frontier.sites[site]
        card.runs = [run for run in frontier.runs if run.site == site]
        card.is_probing = (card.state.stopped_until or 0) <= frontier.now
    return card


# --- What needs attention -------------------------------------------------------------------------


class Concern(NamedTuple):
    """Something that needs attention."""

    what: str
    todo: str
    link: str = "/crawls"
    """The page with more about it, or a part of that."""


def failed_jobs(finished: Sequence[JobStatus], now: float) -> list[JobStatus]:
    """Return the jobs of the last day that failed, unless the same job has succeeded since."""
    latest: dict[tuple[str, str, str], JobStatus] = {}
    for status in finished:
        job = status.job
        given = f"{sorted(job.arguments.items())} {sorted(job.settings.items())}"
        latest.setdefault((job.project, job.spider, given), status)
    return [
        status
        for status in latest.values()
        if status.outcome is not None
        and is_failure(status.outcome)
        and now - status.outcome.ended_at < _RECENTLY_SECONDS
    ]


def concerns(
    cards: Sequence[Card],
    *,
    troubles: Sequence[str],
    jobs: Snapshot | None,
    nodes: Sequence[NodeInfo] | None,
    now: float,
) -> Iterator[Concern]:
    """Yield the concerns.

    `troubles` are sentences on stores that can't be reached. None is unknown.
    """
    for trouble in troubles:
        yield Concern(trouble, "See that it runs, and that every node can reach it.", "/#nodes")
    if nodes is not None and not any(node.takes_jobs for node in nodes):
        yield Concern("No node is up and takes jobs.", "Start a node, or see its log.", "/#nodes")
    for node in nodes or ():
        for fault in node.unfit.values():
            what = f"{node.name} takes no jobs: {fault}."
            yield Concern(what, "It takes jobs again as soon as that is mended.", "/#nodes")
    for card in cards:
        site = SITES[card.site].name
        state = card.state
        if state is not None and state.refusal is not None and not card.is_probing:
            yield Concern(
                f"{site} has refused us, and is not asked until {when(state.stopped_until)}: "
                f"{state.refusal}",
                "Leave it alone until then; it is tried again by itself. "
                "If it happens daily, lower the site's budget.",
            )
        if dead := sum(run.dead_letters for run in card.runs):
            what = (
                f"{counted(dead, 'request')} to {site} became "
                f"{'a dead letter' if dead == 1 else 'dead letters'}."
            )
            yield Concern(
                what, "See why with scrapy deadletters, and queue or drop them.", "/crawls#runs"
            )
        idle = sum(run.account.open for run in card.runs if run.state == "no worker")
        if idle and jobs is not None and not _is_coming(card.site, jobs):
            what = f"{site} has {counted(idle, 'request')} to go, and no worker."
            todo = (
                "Schedule a job with the arguments of its run, or drop that: scrapy progress drop."
            )
            yield Concern(what, todo, "/crawls#runs")
    if failed := failed_jobs(jobs.finished if jobs else (), now):
        names = ", ".join(sorted({status.job.spider for status in failed}))
        what = (
            f"{counted(len(failed), 'job has', 'jobs have')} not done all that was asked for "
            f"({names})."
        )
        yield Concern(what, "See its result and its log, and run it again.", "/crawls#over")


def _is_coming(site: Site, jobs: Snapshot) -> bool:
    """Return whether a job may soon work on a site's runs: it waits, or is just starting."""
    return bool(jobs.pending) or any(status.job.spider == site for status in jobs.running)
