"""The crawls and the jobs: how far they are, and forms to schedule and cancel them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import quote
from uuid import uuid4

from moviecrawler.cluster.jobs import Job
from moviecrawler.dashboard.jobs import log_tail
from moviecrawler.dashboard.pages import Page, PageRequest, RefusedError

if TYPE_CHECKING:
    from moviecrawler.dashboard.sources import Frontier
    from moviecrawler.frontier.runs import RunReport

_ROWS = 50
"""Jobs of a state on a page."""
_LAST_PAGE = 1_000_000
_LATEST = 10**14
"""Milliseconds since 1970: in the year 5138."""


class Crawls(Page):
    """`/crawls`, and `/crawls/<project>/<job>`."""

    title = "Crawls and jobs"
    here: ClassVar[str] = "/crawls"

    def template_of(self, request: PageRequest) -> str:
        return "job.html" if request.path else "crawls.html"

    def show(self, request: PageRequest) -> dict[str, Any]:
        return self._one(request) if request.path else self._all(request)

    # --- All ----------------------------------------------------------------------------------------------------------

    def _all(self, request: PageRequest) -> dict[str, Any]:
        state = self.sources.state
        pending_at = request.whole_number("pending", 1, _LAST_PAGE, 1)
        finished_at = request.whole_number("finished", 1, _LAST_PAGE, 1)
        before = request.whole_number("before", 1, _LATEST, 0) or None
        frontier = request.attempt(self.sources.frontier)
        earlier, further = request.attempt(self.sources.earlier_runs, before, _ROWS, otherwise=([], None))
        counts = request.attempt(state.counts)
        return {
            "earlier": earlier,
            "further": further,
            "before": before,
            "counts": counts,
            "frontier": frontier,
            "has_frontier": self.sources.node.has_frontier,
            "runs": _by_activity(frontier),
            "pending": request.attempt(state.pending, None, (pending_at - 1) * _ROWS, _ROWS, otherwise=[]),
            "running": [
                (running, _run_of(running.job, frontier)) for running in request.attempt(state.running, otherwise=[])
            ],
            "finished": request.attempt(state.finished, None, (finished_at - 1) * _ROWS, _ROWS, otherwise=[]),
            "pending_at": pending_at,
            "finished_at": finished_at,
            "rows": _ROWS,
            "spiders": request.attempt(self._spiders, otherwise=[]),
        }

    def _spiders(self) -> list[tuple[str, str]]:
        eggs = self.sources.eggs
        return [
            (project, spider) for project in eggs.list_projects() for spider in sorted(eggs.find(project, None).spiders)
        ]

    # --- One ----------------------------------------------------------------------------------------------------------

    def _one(self, request: PageRequest) -> dict[str, Any]:
        if len(request.path) != 2:  # noqa: PLR2004 - project and job
            raise RefusedError("there is no such page", 404)
        view = self.sources.state.find(*request.path)
        if view is None:
            raise RefusedError("there is no such job; the oldest ones that are over are forgotten", 404)
        frontier = request.attempt(self.sources.frontier)
        log, why = log_tail(self.sources, view, request.authorization)
        run = _run_of(view.job, frontier)
        return {
            "heading": f"Job {view.job.id}",
            "view": view,
            "log": log,
            "no_log": why,
            "log_url": self.sources.node.log_url(view.job),
            "run": run,
            "frontier": frontier,
        }

    # --- Changes ------------------------------------------------------------------------------------------------------

    def act(self, request: PageRequest) -> tuple[str, str]:
        action = request.value("action")
        if action == "schedule":
            job = self._job(request)
            return f"/crawls/{quote(job.project)}/{quote(job.id)}", "scheduled"
        if action == "cancel":
            project, job_id = request.value("project"), request.value("job")
            former = self.sources.state.cancel(project, job_id)
            notices = {"pending": "cancelled", "running": "cancelling"}
            if former == "pending" or not request.path:
                return "/crawls", notices.get(former or "", "no-job")
            return f"/crawls/{quote(project)}/{quote(job_id)}", notices.get(former or "", "no-job")
        raise RefusedError(f"action is {action[:40]!r}; it is schedule or cancel")

    def _job(self, request: PageRequest) -> Job:
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
        self.sources.node.schedule(job)
        return job


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
        at_work = run.state == "running"
        runs.append(
            (
                run,
                rate.per_second if run.workers else None,
                rate.seconds_left(run.to_go) if at_work and run.to_go else None,
            )
        )
    return sorted(runs, key=lambda row: (not row[0].workers, not row[0].to_go, -(row[0].ended_at or row[0].started_at)))


def _run_of(job: Job, frontier: Frontier | None) -> RunReport | None:
    """Return the crawl that a job works on, if it shares one."""
    if frontier is None:
        return None
    return next((run for run in frontier.runs if run.site == job.spider and run.run == job.run), None)
