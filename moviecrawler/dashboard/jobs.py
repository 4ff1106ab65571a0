"""The page of jobs that Scrapyd's clients read, and the end of a job's log, from the node that has it."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import quote

import requests

from moviecrawler.cluster.environment import log_path
from moviecrawler.cluster.logs import request_log
from moviecrawler.dashboard.pages import Page, PageRequest

if TYPE_CHECKING:
    from moviecrawler.cluster.jobs import Job
    from moviecrawler.cluster.state import JobStatus, NodeInfo
    from moviecrawler.dashboard.sources import Sources

TAIL_BYTES = 32 * 1024
"""Bytes of a log that are read from its end."""
_SILENT_SECONDS = 3.0
"""Longest time between two parts of what another node sends."""
_ROWS = 200
"""Jobs of a state on the page; listjobs.json has all."""


class Jobs(Page):
    """`/jobs`. Its first columns are those of Scrapyd's page: clients read them by position."""

    template = "jobs.html"
    title = "Jobs"
    here: ClassVar[str] = "/jobs"

    def show(self, request: PageRequest) -> dict[str, Any]:
        state = self.sources.state
        counts = state.counts()
        return {
            "redis_now": state.now(),
            "log_url": self.sources.node.log_url,
            "parts": {
                f"Pending ({counts.pending})": state.pending(count=_ROWS),
                f"Running ({counts.running})": state.running(),
                f"Finished ({counts.finished})": state.finished(count=_ROWS),
            },
        }


def log_tail(sources: Sources, status: JobStatus, authorization: str | None) -> tuple[str, str]:
    """Return the last lines of a job's log, and a sentence on why there are none.

    Nodes share their user names and passwords, so `authorization` is valid on other nodes, too.
    """
    job = status.job
    path = log_path(sources.options, job.project, job.spider, job.id)
    # The end of a log is on the node that ran the job last.
    if status.node in {"", sources.node_name}:
        with suppress(OSError), path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - TAIL_BYTES))
            return _lines(file.read(TAIL_BYTES), whole=size <= TAIL_BYTES), ""
    if not status.node:
        return "", "It has no log, as it was never started."
    if status.node == sources.node_name:
        return "", "Its log is not here any more."
    node = next((node for node in sources.state.nodes() if node.name == status.node), None)
    if node is None:
        return "", f"Its log is on {status.node}, which is down."
    return _remote_tail(node, job, authorization)


def _remote_tail(node: NodeInfo, job: Job, authorization: str | None) -> tuple[str, str]:
    url = f"{node.url}/logs/{quote(f'{job.project}/{job.spider}/{job.id}.log')}?part=0-0"
    headers = {"Authorization": authorization} if authorization else {}
    try:
        with request_log(url, {**headers, "Range": f"bytes=-{TAIL_BYTES}"}, _SILENT_SECONDS) as answer:
            answer.raise_for_status()
            # A shorter log is sent whole.
            content = next(answer.iter_content(TAIL_BYTES), b"")
            return _lines(content, whole=answer.status_code == requests.codes.ok), ""
    except requests.RequestException as error:
        return "", f"Its log is on {node.name}, which did not send it: {error}"


def _lines(content: bytes, *, whole: bool) -> str:
    """Return text without the incomplete line that it may begin with."""
    if not whole:
        content = content.partition(b"\n")[2]
    return content.decode(errors="replace")
