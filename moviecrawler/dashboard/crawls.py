"""The crawls and the jobs: how far they are, the end of a job's log, and forms to schedule and cancel them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote
from uuid import uuid4

from moviecrawler.cluster.eggs import find_egg
from moviecrawler.cluster.environment import log_path, read_end
from moviecrawler.cluster.jobs import Job
from moviecrawler.cluster.state import Snapshot
from moviecrawler.dashboard.pages import Page, PageRequest, RefusedError

if TYPE_CHECKING:
    from moviecrawler.cluster.node import Node
    from moviecrawler.cluster.state import JobStatus
    from moviecrawler.dashboard.sources import Frontier
    from moviecrawler.frontier.report import RunReport

_ROWS = 50
"""Jobs of a state on a page."""
_LAST_PAGE = 1_000_000
_TAIL_BYTES = 32 * 1024
"""Bytes of a log that are read from its end."""


class Crawls(Page):
    """`/crawls`, and `/crawls/<project>/<job>`."""

    template = "crawls.html"
    title = "Crawls and jobs"
    in_menu = "Crawls"

    def show(self, request: PageRequest) -> dict[str, Any]:
        return self._one(request) if request.path else self._all(request)

    def _all(self, request: PageRequest) -> dict[str, Any]:
        state = self.node.state
        pending_at = request.whole_number("pending", 1, _LAST_PAGE, 1)
        finished_at = request.whole_number("finished", 1, _LAST_PAGE, 1)
        frontier = request.attempt(self.sources.frontier)
        jobs = request.attempt(state.snapshot, otherwise=Snapshot())
        return {
            "earlier": frontier.earlier[:_ROWS] if frontier else [],
            "counts": {state: len(getattr(jobs, state)) for state in ("pending", "running", "finished")},
            "frontier": frontier,
            "runs": _by_activity(frontier),
            "pending": jobs.pending[(pending_at - 1) * _ROWS : pending_at * _ROWS],
            "running": [(one, _run_of(one.job, frontier)) for one in jobs.running],
            "finished": jobs.finished[(finished_at - 1) * _ROWS : finished_at * _ROWS],
            "pending_at": pending_at,
            "finished_at": finished_at,
            "rows": _ROWS,
            "spiders": request.attempt(self._spiders, otherwise=[]),
        }

    def _spiders(self) -> list[tuple[str, str]]:
        snapshot = self.node.state.snapshot()
        latest = [find_egg(snapshot.eggs, project) for project in snapshot.projects]
        return [(egg.project, spider) for egg in latest for spider in sorted(egg.spiders)]

    def _one(self, request: PageRequest) -> dict[str, Any]:
        if len(request.path) != 2:  # noqa: PLR2004 - project and job
            raise RefusedError("there is no such page", 404)
        view = self.node.state.snapshot().find(*request.path)
        if view is None:
            raise RefusedError("there is no such job; the oldest ones that are over are forgotten", 404)
        frontier = request.attempt(self.sources.frontier)
        log, why = _log_tail(self.node, view)
        return {
            "template": "job.html",
            "title": f"Job {view.job.id}",
            "view": view,
            "log": log,
            "no_log": why,
            "log_url": self.node.log_url(view.job),
            "run": _run_of(view.job, frontier),
        }

    def do_schedule(self, request: PageRequest) -> tuple[str, str]:
        """Queue the job of a form."""
        project, _, spider = request.value("spider").partition("/")
        try:
            priority = float(request.value("priority") or 0)
        except ValueError:
            raise RefusedError(f"the priority is {request.value('priority')[:40]!r}; give a number") from None
        job = Job(
            project=project,
            spider=spider,
            id=uuid4().hex,
            settings=_pairs("setting", request.value("settings")),
            arguments=_pairs("argument", request.value("arguments")),
            priority=priority,
        )
        self.node.schedule(job)
        return f"/crawls/{quote(project)}/{quote(job.id)}", "scheduled"

    def do_cancel(self, request: PageRequest) -> tuple[str, str]:
        project, job_id = request.value("project"), request.value("job")
        former = self.node.state.cancel(project, job_id)
        stays = request.path and former != "pending"
        path = f"/crawls/{quote(project)}/{quote(job_id)}" if stays else "/crawls"
        return path, {"pending": "cancelled", "running": "cancelling"}.get(former or "", "no-job")


def _pairs(what: str, text: str) -> dict[str, str]:
    """Return what stands in lines NAME=VALUE. Raises RefusedError."""
    found = {}
    for line in text.splitlines():
        name, equals, value = line.partition("=")
        if line.strip() and not equals:
            raise RefusedError(f"a line of the {what}s is {line[:80]!r}; write NAME=VALUE")
        if equals:
            found[name.strip()] = value.strip()
    return found


def _by_activity(frontier: Frontier | None) -> list[tuple[RunReport, float | None, float | None]]:
    """Return the crawls with rate and seconds left: those first that are at work, then the latest ones."""
    if frontier is None:
        return []
    runs = []
    for run in frontier.runs:
        rate = frontier.rates[run.site, run.run]
        left = rate.seconds_left(run.to_go) if run.state == "running" and run.to_go else None
        runs.append((run, rate.per_second if run.workers else None, left))
    return sorted(runs, key=lambda row: (not row[0].workers, not row[0].to_go, -(row[0].ended_at or row[0].started_at)))


def _run_of(job: Job, frontier: Frontier | None) -> RunReport | None:
    """Return the crawl that a job works on, if it shares one."""
    runs = [] if frontier is None else frontier.runs
    return next((run for run in runs if run.site == job.spider and run.run == job.run), None)


def _log_tail(node: Node, status: JobStatus) -> tuple[str, str]:
    """Return the last lines of a job's log, and a sentence on why there are none."""
    job = status.job
    try:
        return read_end(log_path(node.options, job.project, job.spider, job.id), _TAIL_BYTES), ""
    except OSError:
        pass
    if not status.node:
        return "", "It has no log, as it was never started."
    return "", f"Its log is on {status.node}." if status.node != node.name else "Its log is not here any more."
