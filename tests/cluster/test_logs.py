"""Logs of jobs, as any node answers for them."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from twisted.web.test.requesthelper import DummyRequest

from moviecrawler.cluster.jobs import Job
from moviecrawler.cluster.logs import Logs, MissingLog
from moviecrawler.cluster.options import NodeOptions
from moviecrawler.cluster.state import JobStatus, Snapshot

JOB = Job(project="toy", spider="slow", id="a1")
PATH = (b"toy", b"slow", b"a1.log")


def node(folder: Path, url: str = "") -> Any:
    """Return what a missing log asks: this node, while another one runs the job."""
    other = SimpleNamespace(id="node2:abc", node_url=url)
    running = JobStatus(job=JOB, state="running", node_id="node2:abc", started_at=1.0)
    return SimpleNamespace(
        name="node1",
        options=NodeOptions(redis_url="redis://x", logs_dir=str(folder)),
        snapshot=Snapshot(running=[running]),
        state=SimpleNamespace(nodes=lambda: [other]),
    )


@pytest.mark.parametrize(("url", "code"), [("", 404), ("http://10.0.0.2:6800", 307)])
def test_log_of_another_node_is_there_or_says_where(tmp_path: Path, url: str, code: int) -> None:
    missing = MissingLog.of(node(tmp_path, url), PATH)
    assert missing is not None
    request: Any = DummyRequest([])
    request.path = b"/logs/toy/slow/a1.log"
    assert missing.render(request) == b"the log is on node2\n"
    assert request.responseCode == code
    assert request.responseHeaders.getRawHeaders("Location") == ([f"{url}/logs/toy/slow/a1.log"] if url else None)


def test_log_in_a_folder_that_nodes_share_is_served_by_any(tmp_path: Path) -> None:
    folder = tmp_path / "toy" / "slow"
    folder.mkdir(parents=True)
    (folder / "a1.log").write_text("line")
    assert MissingLog.of(node(tmp_path), PATH) is None


@pytest.mark.parametrize(
    "path", [(b"toy", b"..", b"a1.log"), (b"toy", b"slow/x", b"a1.log"), (b"toy", b"slow\0", b"a.log")]
)
def test_path_that_is_no_log_s_is_left_to_the_folder(tmp_path: Path, path: tuple[bytes, ...]) -> None:
    assert MissingLog.of(node(tmp_path), path) is None


@pytest.mark.parametrize("name", ["page.html", "a1.log", "image.svg", "page.html.gz"])
def test_every_file_is_plain_text(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("<script>")
    request: Any = DummyRequest([])
    served = Logs(str(tmp_path)).getChild(name.encode(), request)
    served.render_HEAD(request)
    assert request.responseHeaders.getRawHeaders("Content-Type") == ["text/plain; charset=utf-8"]
    assert request.responseHeaders.getRawHeaders("Content-Encoding") is None
