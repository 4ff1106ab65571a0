"""The pages of jobs and runs.

They have their progress, their ends, the end of a job's log, and forms to schedule and cancel.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote
from uuid import uuid4

from scrapyd.utils import get_file_path

from moviecrawler.basics.errors import ConfigurationError
from moviecrawler.cluster.eggs import find_egg
from moviecrawler.cluster.jobs import Job
from moviecrawler.cluster.process import log_url, read_end
from moviecrawler.cluster.website import url_of_node
from moviecrawler.dashboard.pages import MOST_PAGES, Page, PageRequest, RefusedError
from moviecrawler.frontier.contract import RunName
from moviecrawler.frontier.runs import describe_crawl, run_name
from moviecrawler.sites import SITES

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

    from moviecrawler.cluster.node import Node
    from moviecrawler.cluster.state import JobStatus, Snapshot
    from moviecrawler.frontier.contract import FrontierReport, RunReport

_ROWS = 50
"""Rows of a table."""
_TAIL_BYTES = 32 * 1024
"""Bytes of a log that are read from its end."""


class Crawls(Page):
    """`/crawls`, and `/crawls/<project>/<job>`."""

    template = "crawls.html"
    title = "Crawls"

    def show(self, request: PageRequest) -> dict[str, Any]:
        return self._one(request) if request.path else self._all(request)

    def _all(self, request: PageRequest) -> dict[str, Any]:
        frontier = request.attempt(self.sources.frontier)
        jobs = request.attempt(self.node.state.snapshot)
        finished = jobs.finished if jobs else []
        first = (request.page - 1) * _ROWS
        wanted = request.value("schedule")
        return {
            # A refresh would empty a form that is being filled in.
            "refresh": None if wanted or request.page > 1 else self.here,
            "jobs": jobs,
            "run_of": {
                status.job.key: self._run_of(status.job, frontier)
                for status in (jobs.running if jobs else ())
            },
            "waiting": jobs.pending[:_ROWS] if jobs else [],
            "over": finished[first : first + _ROWS],
            "page": request.page,
            "has_more": first + _ROWS < len(finished) and request.page < MOST_PAGES,
            "runs": frontier.runs[:_ROWS] if frontier else None,
            "form": _form(jobs.find(*wanted.partition("/")[::2])) if wanted and jobs else None,
            "spiders": _spiders(jobs) if jobs else [],
            "now": time.time(),
        }

    def _one(self, request: PageRequest) -> dict[str, Any]:
        if len(request.path) != 2:  # noqa: PLR2004 - project and job
            raise RefusedError("there is no such page", 404)
        status = self.node.state.snapshot().find(*request.path)
        if status is None:
            raise RefusedError(
                "there is no such job; of the jobs that are over only the latest are kept", 404
            )
        log, why = _log_tail(self.node, status)
        nodes = request.attempt(self.node.state.nodes) or []
        log_path = log_url(status.job.project, status.job.spider, status.job.id)
        path = _path_of(status.job)
        return {
            "template": "job.html",
            "title": f"{status.job.spider}: job {status.job.id}",
            "refresh": None if status.outcome else path,
            "path": path,
            "status": status,
            "log": log,
            "no_log": why,
            "log_path": log_path,
            # Each node has the log of what it ran; the others may keep theirs elsewhere.
            "log_urls": {
                start.node: url_of_node(start.node, nodes) + log_path
                for start in status.history
                if start.node != self.node.name and url_of_node(start.node, nodes)
            },
            "run": self._run_of(status.job, request.attempt(self.sources.frontier)),
        }

    def _run_of(self, job: Job, frontier: FrontierReport | None) -> RunReport | None:
        """Return the run that a job works on, if there is one."""
        name = name_of_run(job, self.sources.settings)
        runs = [] if frontier is None else frontier.runs
        return next((run for run in runs if (run.site, run.run) == name), None)

    def do_schedule(self, request: PageRequest) -> tuple[str, str]:
        """Queue the job of a form."""
        project, _, spider = request.value("spider").partition("/")
        try:
            priority = float(request.value("priority") or 0)
        except ValueError:
            raise RefusedError(
                f"the priority is {request.value('priority')[:40]!r}; give a number"
            ) from None
        job = Job(
            project=project,
            spider=spider,
            id=uuid4().hex,
            settings=_pairs("setting", request.value("settings")),
            arguments=_pairs("argument", request.value("arguments")),
            priority=priority,
        )
        self.node.schedule(job)
        return _path_of(job), "scheduled"

    def do_cancel(self, request: PageRequest) -> tuple[str, str]:
        project = request.value("project")
        job_id = request.value("job")
        former = self.node.state.cancel(project, job_id) or ""
        return "/crawls", {"pending": "cancelled", "running": "cancelling"}.get(former, "no-job")


def _path_of(job: Job) -> str:
    return f"/crawls/{quote(job.project)}/{quote(job.id)}"


def _form(again: JobStatus | None) -> dict[str, str]:
    """Return the values of the schedule form: those of a job that is to run again, if any."""
    job = again.job if again else Job(project="", spider="", id="")
    lines = [
        "\n".join(f"{name}={value}" for name, value in sorted(values.items()))
        for values in (job.arguments, job.settings)
    ]
    return {
        "spider": f"{job.project}/{job.spider}",
        "arguments": lines[0],
        "settings": lines[1],
        "priority": f"{job.priority:g}",
    }


def _spiders(jobs: Snapshot) -> list[tuple[str, str]]:
    latest = [find_egg(jobs.eggs, project) for project in jobs.projects]
    return [(egg.project, spider) for egg in latest for spider in sorted(egg.spiders)]


def _pairs(what: str, text: str) -> dict[str, str]:
    """Return the values of lines NAME=VALUE by name. Raises RefusedError."""
    found = {}
    for line in text.splitlines():
        name, equals, value = line.partition("=")
        if line.strip() and not equals:
            raise RefusedError(f"a line of the {what}s is {line[:80]!r}; write NAME=VALUE")
        if equals:
            found[name.strip()] = value.strip()
    return found


def name_of_run(job: Job, settings: BaseSettings) -> RunName | None:
    """Return the name of a job's run, as its spider makes it; None when it has none."""
    site = next((site for site in SITES if site == job.spider), None)
    if site is None:
        return None
    if given := job.settings.get("FRONTIER_RUN"):
        return RunName(site, given)
    try:
        described = describe_crawl(site, settings, job.arguments)
    except ConfigurationError:  # such as of an id that is none: the spider ends at once
        return None
    return run_name(site, settings, described)


def _log_tail(node: Node, status: JobStatus) -> tuple[str, str]:
    """Return the last lines of a job's log, and a sentence that says why there are none."""
    job = status.job
    try:
        path = get_file_path(node.options.logs_dir, job.project, job.spider, f"{job.id}.log").path
        return read_end(Path(path), _TAIL_BYTES), ""
    except OSError:
        pass
    if not status.node:
        return "", "It has no log, as it was never started."
    return (
        "",
        f"Its log is on {status.node}."
        if status.node != node.name
        else "Its log is not here any more.",
    )
