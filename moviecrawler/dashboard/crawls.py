"""The list of runs and jobs, and the page of a job: its starts, and the end of its log."""

from __future__ import annotations

from collections import Counter
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from scrapyd.utils import get_file_path

from moviecrawler.cluster.process import log_url, read_end
from moviecrawler.dashboard.pages import ROWS, Page, PageRequest, RefusedError, Variables
from moviecrawler.dashboard.rendering import is_failure

if TYPE_CHECKING:
    from collections.abc import Sequence

    from moviecrawler.cluster.node import Node
    from moviecrawler.cluster.state import JobStatus
    from moviecrawler.dashboard.sources import Runs
    from moviecrawler.frontier.contract import RunReport

_FEW_RUNS = 10
"""Runs that are shown unless all are requested."""
_TAIL_BYTES = 32 * 1024
"""Bytes of a log that are read from its end."""


class Crawls(Page):
    """`/crawls`, and `/crawls/<project>/<job>`."""

    template = "crawls.html"
    title = "Crawls"

    def show(self, request: PageRequest) -> Variables:
        return self._one(request) if request.path else self._all(request)

    def _all(self, request: PageRequest) -> Variables:
        ask_runs = request.reads.start_runs()
        cluster = request.reads.start_cluster()()
        runs = ask_runs()
        jobs = [*cluster.running, *cluster.pending, *cluster.finished] if cluster else []
        matching = [status for status in jobs if _fits(status, request)]
        every_run = runs.report.runs if runs else []
        shown = every_run
        if request.value("runs") != "all":
            shown = [run for run in every_run if run.is_current] or every_run
            shown = shown[:_FEW_RUNS]
        return {
            # A refresh would empty the field of the search.
            "refreshes": "find" not in request.values,
            "is_finding": "find" in request.values,
            "q": request.value("q"),
            "spider": request.value("spider"),
            "result": request.value("result"),
            "jobs": cluster and jobs,
            "results": Counter(word for status in jobs for word in _results_of(status)),
            "spiders": sorted({status.job.spider for status in jobs}),
            "rows": matching[request.first :][:ROWS],
            "run_of": partial(self._run_of, runs),
            "page": request.page,
            "has_more": request.has_more(len(matching)),
            "runs": runs,
            "shown_runs": shown,
        }

    def _run_of(self, runs: Runs | None, status: JobStatus) -> RunReport | None:
        """Return the run of a job that is not finished, if it is known."""
        if runs is None or status.outcome is not None:
            return None
        return runs.find(self.sources.run_of(status.job))

    def _one(self, request: PageRequest) -> Variables:
        if len(request.path) != 2:  # noqa: PLR2004 - project and job
            raise RefusedError("there is no such page", 404)
        reads = request.reads
        ask_runs = reads.start_runs()
        cluster = reads.require(reads.start_cluster()())
        status = cluster.find(*request.path)
        if status is None:
            raise RefusedError(
                "there is no such job; of the finished jobs only the latest are kept", 404
            )
        log, why = _log_tail(self.node, status)
        runs = ask_runs()
        log_path = log_url(status.job)
        is_asked = request.value("ask") == "cancel" and status.outcome is None
        # Each node has the log of what it ran; the others may keep theirs elsewhere.
        urls = {name: url for name, url in cluster.urls.items() if name != self.node.name}
        return {
            "template": "job.html",
            "title": f"{status.job.spider}: job {status.job.id}",
            "refreshes": status.outcome is None and not is_asked,
            "is_asked": is_asked,
            "status": status,
            "log": log,
            "no_log": why,
            "log_path": log_path,
            "log_urls": {name: url + log_path for name, url in urls.items()},
            "run": runs and runs.find(self.sources.run_of(status.job)),
        }

    def do_cancel(self, request: PageRequest) -> tuple[str, str]:
        project, job_id = request.path
        former = self.node.state.cancel(project, job_id) or ""
        notice = {"pending": "cancelled", "running": "cancelling"}.get(former, "no-job")
        return "/crawls", notice


def _results_of(status: JobStatus) -> Sequence[str]:
    """Return the words by which a job is filtered."""
    outcome = status.outcome
    if outcome is None:
        return [status.state]
    problems = ["problems"] if is_failure(outcome) else []
    return ["finished", outcome.result, *problems]


def _fits(status: JobStatus, request: PageRequest) -> bool:
    """Return whether a job is one of those that the filters leave."""
    job = status.job
    result = request.value("result")
    reason = status.outcome.reason if status.outcome else ""
    values = [*job.arguments.items(), *job.settings.items()]
    text = " ".join([job.id, job.spider, status.node, reason, *chain(*values)]).casefold()
    return (
        (not result or result in _results_of(status))
        and request.value("spider") in {"", job.spider}
        and all(word in text for word in request.value("q").casefold().split())
    )


def _log_tail(node: Node, status: JobStatus) -> tuple[str, str]:
    """Return the last lines of a job's log, and a sentence on why there are none."""
    job = status.job
    try:
        path = get_file_path(node.options.logs_dir, job.project, job.spider, f"{job.id}.log").path
        return read_end(Path(path), _TAIL_BYTES), ""
    except OSError:
        pass
    if not status.node and not status.history:
        return "", "No log: the job was never started."
    ran_on = status.node or status.history[-1].node
    return (
        "",
        f"The log is on {ran_on}." if ran_on != node.name else "The log has been deleted.",
    )
