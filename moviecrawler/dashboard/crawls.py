"""The crawls and the jobs: how far they are, and forms to schedule and cancel them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import quote
from uuid import uuid4

from moviecrawler.cluster.jobs import Job
from moviecrawler.dashboard.jobs import log_tail
from moviecrawler.dashboard.pages import Asked, Page, RefusedError

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

    def template_of(self, asked: Asked) -> str:
        return "job.html" if asked.path else "crawls.html"

    def show(self, asked: Asked) -> dict[str, Any]:
        return self._one(asked) if asked.path else self._all(asked)

    # --- All ----------------------------------------------------------------------------------------------------------

    def _all(self, asked: Asked) -> dict[str, Any]:
        state = self.sources.state
        pending_at = asked.whole("pending", 1, _LAST_PAGE, 1)
        finished_at = asked.whole("finished", 1, _LAST_PAGE, 1)
        before = asked.whole("before", 1, _LATEST, 0) or None
        frontier = asked.attempt(self.sources.frontier)
        earlier, further = asked.attempt(self.sources.earlier_runs, before, _ROWS, otherwise=([], None))
        counts = asked.attempt(state.counts)
        return {
            "earlier": earlier,
            "further": further,
            "before": before,
            "counts": counts,
            "frontier": frontier,
            "has_frontier": self.sources.node.has_frontier,
            "runs": _by_activity(frontier),
            "pending": asked.attempt(state.pending, None, (pending_at - 1) * _ROWS, _ROWS, otherwise=[]),
            "running": [
                (running, _run_of(running.job, frontier)) for running in asked.attempt(state.running, otherwise=[])
            ],
            "finished": asked.attempt(state.finished, None, (finished_at - 1) * _ROWS, _ROWS, otherwise=[]),
            "pending_at": pending_at,
            "finished_at": finished_at,
            "rows": _ROWS,
            "spiders": asked.attempt(self._spiders, otherwise=[]),
        }

    def _spiders(self) -> list[tuple[str, str]]:
        eggs = self.sources.eggs
        return [
            (project, spider) for project in eggs.list_projects() for spider in sorted(eggs.find(project, None).spiders)
        ]

    # --- One ----------------------------------------------------------------------------------------------------------

    def _one(self, asked: Asked) -> dict[str, Any]:
        if len(asked.path) != 2:  # noqa: PLR2004 - project and job
            raise RefusedError("there is no such page", 404)
        view = self.sources.state.find(*asked.path)
        if view is None:
            raise RefusedError("there is no such job; the oldest ones that are over are forgotten", 404)
        frontier = asked.attempt(self.sources.frontier)
        log, why = log_tail(self.sources, view, asked.authorization)
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

    def act(self, asked: Asked) -> tuple[str, str]:
        action = asked.value("action")
        if action == "schedule":
            job = self._job(asked)
            return f"/crawls/{quote(job.project)}/{quote(job.id)}", "scheduled"
        if action == "cancel":
            project, job_id = asked.value("project"), asked.value("job")
            former = self.sources.state.cancel(project, job_id)
            notices = {"pending": "cancelled", "running": "cancelling"}
            if former == "pending" or not asked.path:
                return "/crawls", notices.get(former or "", "no-job")
            return f"/crawls/{quote(project)}/{quote(job_id)}", notices.get(former or "", "no-job")
        raise RefusedError(f"action is {action[:40]!r}; it is schedule or cancel")

    def _job(self, asked: Asked) -> Job:
        """Queue the job of a form."""
        project, _, spider = asked.value("spider").partition("/")
        try:
            priority = float(asked.value("priority") or 0)
        except ValueError:
            raise RefusedError(f"the priority is {asked.value('priority')[:40]!r}; give a number") from None
        job = Job(
            project=project,
            spider=spider,
            id=uuid4().hex,
            settings=_pairs("setting", asked.value("settings")),
            arguments=_pairs("argument", asked.value("arguments")),
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
