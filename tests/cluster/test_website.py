"""What a node answers for other nodes, and while Redis is away, without a server."""

import json
from datetime import datetime
from typing import Any
from unittest.mock import Mock

import pytest
import redis
from twisted.internet.defer import Deferred
from twisted.web.server import NOT_DONE_YET

from moviecrawler.cluster.jobs import Job, Outcome
from moviecrawler.cluster.state import JobStatus, NodeInfo, Snapshot, Start
from moviecrawler.cluster.website import InThread, Root, SnapshotAdapter, respond_later

OTHER = NodeInfo(
    id="b:1",
    name="b",
    url="http://b:6800/",
    slots=1,
    started_at=0,
    draining=False,
    memory=0,
    processes={},
)
START = Start(number=1, node_id="b:1", started_at=100.0)
NO_LOG = "there is no such log\n"


def status(id_: str, state: Any, **given: Any) -> JobStatus:
    return JobStatus(job=Job(project="toy", spider="quick", id=id_), state=state, **given)


PENDING = status("waits", "pending")
RUNNING = status("runs", "running", node_id="b:1", starts=1, pid=5, history=[START])
NEVER = status("never", "finished", outcome=Outcome(reason="cancelled", ended_at=300.0))
CLUSTER = Snapshot(
    pending=[PENDING],
    running=[RUNNING, status("here", "running", node_id="a:1")],
    finished=[
        NEVER,
        status("gone", "finished", node_id="c:1"),
        status("over", "finished", starts=1, history=[START], outcome=NEVER.outcome),
    ],
    nodes=[OTHER],
)


@pytest.mark.promise("Any node answers for all: jobs are listed, and cancelled wherever they run.")
@pytest.mark.parametrize(
    ("id_", "code", "text", "location"),
    [
        ("runs", 307, "the log is on b\n", "http://b:6800/logs/toy/quick/runs.log"),
        ("gone", 404, "the log is on c\n", None),
        ("here", 404, NO_LOG, None),
        ("waits", 404, NO_LOG, None),
        ("nothing", 404, NO_LOG, None),
    ],
)
def test_a_node_that_has_not_a_log_names_the_one_that_has(
    id_: str, code: int, text: str, location: str | None
) -> None:
    node = Mock()
    node.name = "a"
    node.state.seen = CLUSTER
    request = Mock(path=f"/logs/toy/quick/{id_}.log".encode())
    assert Root._answer_without_log(Mock(node=node), request).decode() == text
    request.setResponseCode.assert_called_once_with(code)
    headers = dict(call.args for call in request.setHeader.call_args_list)
    assert headers.get("Location") == location


def test_scrapyds_pages_see_the_jobs_of_all_nodes() -> None:
    adapter = SnapshotAdapter(CLUSTER)
    assert adapter.queues["toy"].count() == 1
    assert adapter.queues["toy"].list() == [{"name": "quick", "_job": "waits"}]
    running = adapter.processes["toy/runs"]
    assert (running.pid, running.end_time) == (5, None)
    assert running.start_time == datetime.fromtimestamp(100)  # noqa: DTZ006 - as Scrapyd has it
    assert running.log_url == "/logs/toy/quick/runs.log"
    never, _, over = adapter.finished
    assert never.start_time == never.end_time == over.end_time > over.start_time
    assert (never.log_url, over.log_url) == (None, "/logs/toy/quick/over.log")


@pytest.mark.parametrize(
    ("needs_redis", "error", "code"),
    [(True, None, None), (True, "away", 503), (False, "away", None)],
)
def test_a_page_that_needs_redis_says_that_it_is_away(
    needs_redis: bool, error: str | None, code: int | None
) -> None:
    node = Mock()
    node.name = "a"
    node.state.snapshot.side_effect = error and redis.exceptions.ConnectionError(error)
    request = Mock()
    page = InThread(node, Mock(return_value=b"page"), needs_redis=needs_redis)
    answer = page._render(request)
    if code is None:
        assert answer == b"page"
        request.responseHeaders.removeHeader.assert_called_with("Access-Control-Allow-Origin")
    else:
        request.setResponseCode.assert_called_once_with(code)
        assert json.loads(answer)["message"] == "Redis can't be reached: away"


@pytest.mark.parametrize(
    ("method", "response", "written", "failed"),
    [
        (b"GET", b"page", [b"page"], 0),
        (b"HEAD", b"page", [], 0),
        (b"GET", ValueError("odd"), [], 1),
        (b"GET", None, [], 0),  # the client is gone
    ],
)
def test_a_response_is_sent_when_it_is_there(
    method: bytes, response: Any, written: list[bytes], failed: int
) -> None:
    gone: Deferred[None] = Deferred()
    responding: Deferred[bytes] = Deferred()
    request = Mock(method=method, notifyFinish=Mock(return_value=gone))
    assert respond_later(request, responding) == NOT_DONE_YET
    if response is None:
        gone.errback(ConnectionError())
    elif isinstance(response, bytes):
        responding.callback(response)
        request.setHeader.assert_called_once_with("Content-Length", "4")
    else:
        responding.errback(response)
    assert [call.args[0] for call in request.write.call_args_list] == written
    assert request.finish.call_count == isinstance(response, bytes)
    assert request.processingFailed.call_count == failed
