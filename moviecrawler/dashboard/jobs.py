"""The cluster's jobs, a page of them at a time, and the end of a job's log, wherever it is."""

from __future__ import annotations

import os
import urllib.error
import urllib.request
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from moviecrawler.cluster.environment import log_path
from moviecrawler.cluster.jobs import Job
from moviecrawler.cluster.state import name_of, read_result, readable

if TYPE_CHECKING:
    from moviecrawler.cluster.jobs import Outcome
    from moviecrawler.cluster.state import ClusterState, NodeInfo, Running
    from moviecrawler.dashboard.sources import Sources

TAIL = 32 * 1024
"""Bytes of a log that are read from its end."""
_WHOLE = 200
"""Status of an answer that is not the end of a log, but all of it."""
_WITHIN = 3.0
"""Seconds in which another node has to answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobView:
    """A job and how it is."""

    job: Job
    state: str
    """`pending`, `running` or `finished`."""
    node: str | None = None
    """Name of the node that runs it, or ran it last."""
    running: Running | None = None
    outcome: Outcome | None = None


def pending_page(state: ClusterState, first: int, size: int) -> list[Job]:
    """Return the pending jobs of those places, next first. Raises redis.RedisError."""
    places = state.client.zrange(state.keys.pending, first, first + size - 1)
    return state.jobs([place[16:] for place in places])


def finished_page(state: ClusterState, first: int, size: int) -> list[JobView]:
    """Return the jobs that are over of those places, latest first. Raises redis.RedisError."""
    keys = state.client.zrange(state.keys.finished, first, first + size - 1, desc=True)
    found = state.client.hmget(state.keys.results, keys) if keys else []
    return [view for text in found if text and (view := _finished(text)) is not None]


def find_job(state: ClusterState, project: str, job_id: str) -> JobView | None:
    """Return one job; None when there is none of that id. Raises redis.RedisError."""
    key = f"{project}/{job_id}"
    pipe = state.client.pipeline(transaction=False)
    pipe.hget(state.keys.jobs, key)
    pipe.hexists(state.keys.running, key)
    pipe.hget(state.keys.results, key)
    spec, is_running, result = pipe.execute()
    if spec and is_running:
        for running in state.running(project):
            if running.job.key == key:
                return JobView(job=running.job, state="running", node=name_of(running.node), running=running)
    if spec:
        job = readable(spec, Job)
        return None if job is None else JobView(job=job, state="pending")
    return _finished(result) if result else None


def _finished(text: bytes) -> JobView | None:
    done = read_result(text)
    if done is None:
        return None
    return JobView(job=done.job, state="finished", node=name_of(done.outcome.node) or None, outcome=done.outcome)


# --- Logs --------------------------------------------------------------------------------------------------------------


class _Unmoved(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        return None


_OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}), _Unmoved)
"""Nodes are asked themselves, by no proxy, and lead nowhere else."""


def log_tail(sources: Sources, view: JobView, authorization: str | None) -> tuple[str, str]:
    """Return the last lines of a job's log, and a sentence on why there are none.

    Nodes share their user names and passwords, so another node is asked by what this one was asked with.
    """
    job = view.job
    path = log_path(sources.options, job.project, job.spider, job.id)
    # Where it ran last is the end of its log, though other nodes have a part of it, too.
    if view.node in {None, sources.node_name}:
        with suppress(OSError), path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - TAIL))
            return _lines(file.read(TAIL), whole=size <= TAIL), ""
    if view.node is None:
        return "", "It has no log, as it was never started."
    if view.node == sources.node_name:
        return "", "Its log is not here any more."
    node = next((node for node in sources.state.nodes() if node.name == view.node), None)
    if node is None:
        return "", f"Its log is on {view.node}, which is down."
    return _remote_tail(node, job, authorization)


def _remote_tail(node: NodeInfo, job: Job, authorization: str | None) -> tuple[str, str]:
    url = f"{node.url}/logs/{quote(f'{job.project}/{job.spider}/{job.id}.log')}?part=0-0"
    headers = {"Authorization": authorization} if authorization else {}
    try:
        request = urllib.request.Request(url, headers={**headers, "Range": f"bytes=-{TAIL}"})  # noqa: S310 - a node's
        with _OPENER.open(request, timeout=_WITHIN) as answer:
            # Of a log that is shorter, all.
            return _lines(answer.read(TAIL), whole=answer.status == _WHOLE), ""
    except (urllib.error.URLError, OSError, ValueError) as error:
        return "", f"Its log is on {node.name}, which does not give it: {error}"


def _lines(content: bytes, *, whole: bool) -> str:
    """Return text without the piece of a line that it may begin with."""
    if not whole:
        content = content.partition(b"\n")[2]
    return content.decode(errors="replace")
