"""The first page: what needs attention, each site today, and the nodes."""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from moviecrawler.dashboard.pages import Page, PageRequest, Variables
from moviecrawler.dashboard.rendering import (
    State,
    counted,
    is_failure,
    job_path,
    run_path,
    site_name,
    when,
)
from moviecrawler.frontier.contract import RunName
from moviecrawler.sites import SITES

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from moviecrawler.catalogue.figures import SiteFigures
    from moviecrawler.cluster.state import JobStatus, NodeInfo
    from moviecrawler.dashboard.sources import Counts, Runs
    from moviecrawler.frontier.contract import RunReport, SiteState

_LATE_SHARE = 0.5
"""Share of a node's lease after which its heartbeat is late; one is sent in each third."""
_RECENTLY_SECONDS = 86_400
"""Time for which a job that failed needs attention."""
_MOST_CONCERNS = 30
"""Concerns that are shown; others are counted."""
_MOST_FAILED = 3
"""Failed jobs that are named; others are counted."""


class Overview(Page):
    """`/`."""

    template = "overview.html"
    title = "Overview"

    def show(self, request: PageRequest) -> Variables:
        ask_cluster = request.reads.start_cluster()
        ask_runs = request.reads.start_runs()
        ask_counts = request.reads.start_counts()
        cluster = ask_cluster()
        runs = ask_runs()
        counts = ask_counts()
        cards = cards_of(counts, runs, cluster.nodes if cluster else ())
        concerns = list(concerns_of_sites(cards))
        coming = None
        if cluster is not None:
            concerns += concerns_of_nodes(cluster.nodes, cluster.lost)
            concerns += concerns_of_jobs(cluster.finished, time.time())
            jobs = [*cluster.pending, *cluster.running]
            coming = {self.sources.run_of(status.job) for status in jobs}
        if runs is not None:
            concerns += concerns_of_runs(runs, coming)
        late_seconds = _LATE_SHARE * self.node.options.lease_seconds
        return {
            "refreshes": True,
            "concerns": sorted(concerns, key=lambda concern: concern.level != "bad"),
            "most": _MOST_CONCERNS,
            "cards": cards,
            "counts": counts,
            "cluster": cluster,
            "is_new": cluster is not None and not (cluster.eggs and cluster.jobs),
            "state_of": partial(state_of, late_seconds=late_seconds),
        }


def state_of(node: NodeInfo, late_seconds: float) -> State:
    """Return a node's state; it is late when its last heartbeat is older than `late_seconds`."""
    if node.draining:
        return State("calm", "draining")
    if node.unfit:
        return State("bad", "unfit", "; ".join(node.unfit.values()))
    if node.heartbeat_age_seconds > late_seconds:
        return State("warn", "late")
    return State("good", "up")


# --- A site's figures -----------------------------------------------------------------------------


class Card(NamedTuple):
    """A site's figures. None is unknown."""

    site: str
    unreachable: Mapping[str, str]
    """Why it can't be reached, by the node."""
    gate: State | None
    counts: SiteFigures | None
    hours: Sequence[int]
    """Titles fetched in each of the last hours."""
    state: SiteState | None
    open_runs: Sequence[RunReport] | None
    """The runs with open requests."""


def cards_of(counts: Counts | None, runs: Runs | None, nodes: Sequence[NodeInfo]) -> list[Card]:
    """Return the figures of each site: also of one that only the database has."""
    report = runs.report if runs else None
    cards = []
    for site in dict.fromkeys([*SITES, *(counts.sites if counts else ())]):
        unreachable = {
            node.name: node.unreachable[site] for node in nodes if site in node.unreachable
        }
        state = report.sites.get(site) if report else None
        card = Card(
            site=site,
            unreachable=unreachable,
            gate=gate_of(state, unreachable, report.now) if report and state else None,
            counts=counts.sites.get(site) if counts else None,
            hours=counts.hours.get(site, ()) if counts else (),
            state=state,
            open_runs=[run for run in report.runs if run.site == site and run.account.open]
            if report
            else None,
        )
        cards.append(card)
    return cards


def gate_of(site: SiteState, unreachable: Collection[str], now: float) -> State:
    """Return whether requests are sent to a site now."""
    if site.refusal is not None and (site.stopped_until or 0) > now:
        return State("bad", f"paused until {when(site.stopped_until)}", site.refusal)
    if site.refusal is not None:
        return State("warn", "probing", f"a test request checks the site: {site.refusal}")
    if unreachable:
        return State("warn", f"unreachable from {', '.join(sorted(unreachable))}")
    per_day = site.budget.per_day
    if per_day is not None and site.used_today >= per_day:
        return State("calm", "waiting until 00:00 UTC", "the daily budget is exhausted")
    return State("good", "open")


# --- What needs attention -------------------------------------------------------------------------


class Concern(NamedTuple):
    """Something that needs attention."""

    level: str
    """`bad`, or `warn` where nothing fails yet."""
    what: str
    why: str = ""
    """A sentence without a full stop."""
    since: float | None = None
    remedy: str = ""
    """The text of a button; empty when there is nothing to press."""
    path: str = ""


def concerns_of_nodes(nodes: Sequence[NodeInfo], lost: Mapping[str, float]) -> Iterator[Concern]:
    """Yield what is wrong with nodes."""
    if not any(node.takes_jobs for node in nodes):
        yield Concern("bad", "No node takes jobs", "Start a node, or see the log of one")
    for name, at in lost.items():
        why = "Its heartbeats stopped, and its jobs run elsewhere. Start it again, or see its log"
        yield Concern("bad", f"Node {name} is lost", why, at)
    for node in nodes:
        if node.unfit:
            why = f"{'; '.join(node.unfit.values())}. It takes jobs again as soon as that is mended"
            yield Concern("bad", f"{node.name} takes no jobs", why, node.unfit_since)


def concerns_of_sites(cards: Sequence[Card]) -> Iterator[Concern]:
    """Yield which sites can't be crawled."""
    for card in cards:
        name = site_name(card.site)
        if card.gate is not None and card.gate.kind == "bad" and card.state is not None:
            why = f"{card.gate.more}. No action needed: crawling resumes automatically"
            what = f"{name} is blocking us; {card.gate.word}"
            yield Concern("bad", what, why, card.state.refused_at)
        if card.unreachable:
            nodes = ", ".join(card.unreachable)
            why = "; ".join(dict.fromkeys(card.unreachable.values()))
            yield Concern("bad", f"{name} can't be reached from {nodes}", why)


def failed_jobs(finished: Sequence[JobStatus], now: float) -> list[JobStatus]:
    """Return the jobs of the last day that failed, unless the same job has succeeded since."""
    latest: dict[tuple[str, ...], JobStatus] = {}
    for status in finished:
        job = status.job
        values = f"{sorted(job.arguments.items())} {sorted(job.settings.items())}"
        latest.setdefault((job.project, job.spider, values), status)
    return [
        status
        for status in latest.values()
        if status.outcome is not None
        and is_failure(status.outcome)
        and now - status.outcome.ended_at < _RECENTLY_SECONDS
    ]


def concerns_of_jobs(finished: Sequence[JobStatus], now: float) -> Iterator[Concern]:
    """Yield which jobs have failed."""
    failed = failed_jobs(finished, now)
    for status in failed[:_MOST_FAILED]:
        outcome = status.outcome
        assert outcome is not None  # noqa: S101 - it has failed
        what = f"Job {status.job.id} of {status.job.spider} failed"
        yield Concern(
            "bad", what, outcome.reason, outcome.ended_at, "Log", f"{job_path(status.job)}#log"
        )
    more = len(failed) - _MOST_FAILED
    if more > 0:
        what = f"{counted(more, 'more job')} failed"
        yield Concern("bad", what, "", None, "Show", "/crawls?result=problems")


def concerns_of_runs(runs: Runs, coming: Collection[RunName | None] | None) -> Iterator[Concern]:
    """Yield which runs nobody works on, and which have dead letters or have lost requests.

    `coming` are the runs of pending and running jobs; None when they are unknown.
    """
    for run in runs.report.runs:
        name = RunName(run.site, run.run)
        site = site_name(run.site)
        if run.dead_letters:
            letters = runs.letters.get(name, [])
            what = f"{site}: {counted(run.dead_letters, 'dead letter')} of run {run.run}"
            why = letters[0].reason if letters else ""
            since = letters[-1].at if letters else None
            yield Concern("bad", what, why, since, "Requeue or drop", f"{run_path(run)}#letters")
        if run.account.lost:
            what = f"{site}: {counted(run.account.lost, 'request')} of run {run.run} lost"
            why = (
                "They were deleted from the queue. Start the run again to fetch what they were for"
            )
            yield Concern("bad", what, why, None, "Details", run_path(run))
        is_coming = coming is None or name in coming
        if run.account.open and run.state == "no worker" and not is_coming:
            what = f"{site}: {counted(run.account.open, 'request')} queued, no worker"
            why = f"Nobody works on run {run.run}"
            yield Concern("warn", what, why, run.started_at, "Resume or drop", run_path(run))
