"""The first page: what needs attention, each site today, and the nodes."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from moviecrawler.cluster.state import Snapshot
from moviecrawler.dashboard.charts import spark
from moviecrawler.dashboard.pages import Page, PageRequest
from moviecrawler.dashboard.rendering import counted, is_failure, when
from moviecrawler.sites import SITES

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from moviecrawler.catalogue.figures import SiteFigures
    from moviecrawler.cluster.state import JobStatus
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
        jobs = request.attempt(self.node.state.snapshot, otherwise=Snapshot())
        nodes = request.attempt(self.node.state.nodes)
        cards = [card_of(site, counts, frontier) for site in SITES]
        failed = failed_jobs(jobs.finished, time.time())
        slots = None if nodes is None else sum(node.slots for node in nodes if not node.draining)
        found = concerns(
            cards, troubles=request.troubles, failed=failed, pending=len(jobs.pending), slots=slots
        )
        late = _LATE_SHARE * self.node.options.lease_seconds
        return {
            "refresh": self.here,
            "concerns": list(found),
            "cards": cards,
            "counts": counts,
            "jobs": jobs,
            "nodes": nodes or [],
            "state_of": lambda node: (
                "draining" if node.draining else "late" if node.heard_seconds_ago > late else "up"
            ),
        }


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
    stopped: str | None = None
    """Why it is not crawled now; None when it is."""
    stopped_until: float | None = None
    """Seconds since 1970."""
    trying: bool = False
    """Whether the circuit is half-open: the next request is its probe."""

    @property
    def line(self) -> str:
        """The points of the line of titles an hour."""
        return spark(self.hours or [])


def card_of(site: Site, counts: Counts | None, frontier: FrontierReport | None) -> Card:
    """Return a site's figures."""
    card = Card(site=site)
    if counts is not None:
        card.counts = counts.sites.get(site)
        card.hours = counts.hours.get(site)
    if frontier is not None:
        card.state = frontier.sites[site]
        card.runs = [run for run in frontier.runs if run.site == site]
        if card.state.refusal is not None:
            card.stopped = card.state.refusal
            card.stopped_until = card.state.stopped_until
            card.trying = (card.stopped_until or 0) <= frontier.now
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
        latest.setdefault((job.project, job.spider, str(sorted(job.arguments.items()))), status)
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
    failed: Sequence[JobStatus],
    pending: int,
    slots: int | None,
) -> Iterator[Concern]:
    """Yield the concerns.

    `troubles` are sentences on stores that can't be reached. `slots` counts those of nodes that
    take jobs; None when it is unknown.
    """
    for trouble in troubles:
        yield Concern(trouble, "See that it runs, and that every node can reach it.", "/#nodes")
    if slots == 0:
        yield Concern("No node is up and takes jobs.", "Start a node, or see its log.", "/#nodes")
    for card in cards:
        site = SITES[card.site].name
        if card.stopped is not None and not card.trying:
            yield Concern(
                f"{site} has refused us, and is not asked until {when(card.stopped_until)}: "
                f"{card.stopped}",
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
        if idle and not pending:
            what = f"{site} has {counted(idle, 'request')} to go, and no worker."
            yield Concern(what, "Schedule a job of its spider.", "/crawls#runs")
    if failed:
        names = ", ".join(sorted({status.job.spider for status in failed}))
        what = (
            f"{counted(len(failed), 'job has', 'jobs have')} not done all that was asked for "
            f"({names})."
        )
        yield Concern(what, "See its result and its log, and run it again.", "/crawls#over")
