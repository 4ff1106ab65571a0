"""The crawls and the jobs: how far they are, the end of a job's log, and forms to schedule and cancel them."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any
from urllib.parse import quote
from uuid import uuid4

import requests

from moviecrawler.cluster.environment import log_path, read_end
from moviecrawler.cluster.jobs import Job
from moviecrawler.cluster.logs import request_log
from moviecrawler.dashboard.pages import Page, PageRequest, RefusedError

if TYPE_CHECKING:
    from moviecrawler.cluster.node import Node
    from moviecrawler.cluster.state import JobStatus
    from moviecrawler.dashboard.sources import Frontier
    from moviecrawler.frontier.runs import RunReport

_ROWS = 50
"""Jobs of a state on a page."""
_SCRAPYD_ROWS = 200
"""Jobs of a state on Scrapyd's page; listjobs.json has all."""
_LAST_PAGE = 1_000_000
_LATEST = 10**14
"""Milliseconds since 1970: in the year 5138."""
_TAIL_BYTES = 32 * 1024
"""Bytes of a log that are read from its end."""
_SILENT_SECONDS = 3.0
"""Longest time between two parts of what another node sends."""


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
        before = request.whole_number("before", 1, _LATEST, 0) or None
        frontier = request.attempt(self.sources.frontier)
        earlier, further = request.attempt(self.sources.earlier_runs, before, _ROWS, otherwise=([], None))
        running = request.attempt(state.running, otherwise=[])
        return {
            "earlier": earlier,
            "further": further,
            "before": before,
            "counts": request.attempt(state.counts),
            "frontier": frontier,
            "runs": _by_activity(frontier),
            "pending": request.attempt(state.pending, None, (pending_at - 1) * _ROWS, _ROWS, otherwise=[]),
            "running": [(one, _run_of(one.job, frontier)) for one in running],
            "finished": request.attempt(state.finished, None, (finished_at - 1) * _ROWS, _ROWS, otherwise=[]),
            "pending_at": pending_at,
            "finished_at": finished_at,
            "rows": _ROWS,
            "spiders": request.attempt(self._spiders, otherwise=[]),
        }

    def _spiders(self) -> list[tuple[str, str]]:
        eggs = self.node.eggs
        return [(project, spider) for project in eggs.list_projects() for spider in sorted(eggs.find(project).spiders)]

    def _one(self, request: PageRequest) -> dict[str, Any]:
        if len(request.path) != 2:  # noqa: PLR2004 - project and job
            raise RefusedError("there is no such page", 404)
        view = self.node.state.find(*request.path)
        if view is None:
            raise RefusedError("there is no such job; the oldest ones that are over are forgotten", 404)
        frontier = request.attempt(self.sources.frontier)
        log, why = _log_tail(self.node, view, request.authorization)
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


class Jobs(Page):
    """`/jobs`. Its first columns are those of Scrapyd's page: clients read them by position."""

    template = "jobs.html"
    title = "Jobs"

    def show(self, request: PageRequest) -> dict[str, Any]:
        state = self.node.state
        counts = state.counts()
        return {
            "redis_now": state.now(),
            "log_url": self.node.log_url,
            "parts": {
                f"Pending ({counts.pending})": state.pending(count=_SCRAPYD_ROWS),
                f"Running ({counts.running})": state.running(),
                f"Finished ({counts.finished})": state.finished(count=_SCRAPYD_ROWS),
            },
        }


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


def _log_tail(node: Node, status: JobStatus, authorization: str | None) -> tuple[str, str]:
    """Return the last lines of a job's log, and a sentence on why there are none.

    The end of a log is on the node that ran the job last. Nodes share their user names and passwords, so `authorization` is valid
    on other nodes, too.
    """
    job = status.job
    if status.node in {"", node.name}:
        with suppress(OSError):
            return _lines(*read_end(log_path(node.options, job.project, job.spider, job.id), _TAIL_BYTES)), ""
        return "", "Its log is not here any more." if status.node else "It has no log, as it was never started."
    other = next((other for other in node.state.nodes() if other.name == status.node), None)
    if other is None:
        return "", f"Its log is on {status.node}, which is down."
    headers = {"Authorization": authorization} if authorization else {}
    url = f"{other.url}{node.log_url(job)}?part=0-0"
    try:
        with request_log(url, {**headers, "Range": f"bytes=-{_TAIL_BYTES}"}, _SILENT_SECONDS) as answer:
            answer.raise_for_status()
            # A shorter log is sent whole.
            content = next(answer.iter_content(_TAIL_BYTES), b"")
            return _lines(content, whole=answer.status_code == requests.codes.ok), ""
    except requests.RequestException as error:
        return "", f"Its log is on {other.name}, which did not send it: {error}"


def _lines(content: bytes, whole: bool) -> str:
    """Return text without the incomplete line that it may begin with."""
    return (content if whole else content.partition(b"\n")[2]).decode(errors="replace")
