"""Spiders whose event loop stands still, and spiders that don't end when they are told to."""

from __future__ import annotations

import io
import json
import os
import re
import signal
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from moviecrawler.catalogue.tables import read_movies
from moviecrawler.cluster.eggs import RUNNER
from moviecrawler.node_memory import DESCRIPTOR, NodeMemory, Work, create_memory
from moviecrawler.replica.movies import Catalogue
from moviecrawler.replica.process import ReplicaProcess
from tests.cluster.nodes import HANG, Node, alive, cluster, project_egg, toy_egg
from tests.crawling import FAST
from tests.services.redis import RedisServer
from tests.waiting import wait_for

HASTY = {
    "SCRAPYD_HANG_SECONDS": "2",
    "SCRAPYD_CANCEL_SECONDS": "1",
    "SCRAPYD_MAX_DEATHS": "0",
    "SCRAPYD_MAX_PROC": "3",
}
TITLES = 8
IDS = [Catalogue(1, TITLES).imdb_id(place) for place in range(TITLES)]
HANGS = f"""

_read_title = ImdbSpider.read_title


def _hang(self, response):
    if "{IDS[2]}" in response.url:
        {HANG}
    return _read_title(self, response)


ImdbSpider.read_title = _hang
"""


def pid_of(notes: Path, spider: str) -> int:
    """Return the process of a toy's spider that has begun."""
    wait_for(lambda: list(notes.glob(f"{spider}-*")), 60)
    return int(next(iter(notes.glob(f"{spider}-*"))).name.partition("-")[2])


def crawl_without_a_node(folder: Path, spider: str, begin: str, **settings: str) -> subprocess.Popen[bytes]:
    """Run a toy's spider by a line of a shell, `begin`, in which "$@" is the command; its report goes to the file `report`."""
    with zipfile.ZipFile(io.BytesIO(toy_egg("1", folder))) as archive:
        archive.extractall(folder / "toy.egg")
    task = {"egg": str(folder / "toy.egg"), "settings": settings, "arguments": {}, "hang_seconds": 2}
    command = ["sh", "-c", f"{begin} 3>report", "sh", sys.executable, "-P", RUNNER, "crawl", "toy", spider, "a1"]
    process = subprocess.Popen(command, cwd=folder, stdin=subprocess.PIPE)
    assert process.stdin is not None
    process.stdin.write(json.dumps(task).encode() + b"\n")
    process.stdin.flush()
    return process


def test_memory_of_a_spider_is_its_own_and_not_the_peak_of_its_node(tmp_path: Path) -> None:
    once_large = "import os, sys; b'x' * 2**28; os.execv(sys.argv[1], sys.argv[1:])"
    limits = {"MEMUSAGE_ENABLED": "1", "MEMUSAGE_LIMIT_MB": "200"}
    with crawl_without_a_node(tmp_path, "quick", f'exec {sys.executable} -c "{once_large}" "$@"', **limits) as process:
        assert process.wait(60) == 0
    assert json.loads((tmp_path / "report").read_text())["reason"] == "finished"


def test_spider_that_hangs_ends_without_a_node(tmp_path: Path) -> None:
    process = crawl_without_a_node(tmp_path, "hanging", 'exec "$@"')
    assert process.stdin is not None
    assert pid_of(tmp_path, "hanging") == process.pid
    process.stdin.close()  # the node is gone, and no thread gets the interpreter to end the process
    assert process.wait(30) == 1
    text = (tmp_path / "report").read_text()
    assert re.match(r"Timeout \(0:00:02\.\d+\)!\n.*spiders\.py.*, line \d+ in start", text, re.DOTALL)


def test_memory_stays_where_deployed_eggs_of_other_versions_look_for_it() -> None:
    descriptor = create_memory()
    try:
        NodeMemory(descriptor).begin(Work("u"))
        assert os.pread(descriptor, 24, 0) == b'\x0b\0\0\0{"url":"u"}' + bytes(9)
        NodeMemory(descriptor).forbid(["v"])
        assert os.pread(descriptor, 9, 4096) == b'\x05\0\0\0["v"]'
    finally:
        os.close(descriptor)
    assert DESCRIPTOR == "SPIDER_MEMORY_FD"


@pytest.fixture(scope="module")
def replica() -> Iterator[ReplicaProcess]:
    with ReplicaProcess(titles=TITLES, light=True) as running:
        yield running


@pytest.fixture(scope="module")
def server() -> Iterator[RedisServer]:
    with RedisServer() as running:
        yield running


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory, server: RedisServer, replica: ReplicaProcess) -> Iterator[Node]:
    """Return a node whose spiders share no frontier."""
    folder = tmp_path_factory.mktemp("hasty")
    options = {**HASTY, **replica.settings, "DATA_DIR": str(folder / "data")}
    with cluster(folder, server.url, 1, prefix="hasty", **options) as running:
        yield running.nodes[0]


def test_spider_that_hangs_or_does_not_end_is_killed_and_others_are_not(node: Node, tmp_path: Path) -> None:
    assert node.deploy(toy_egg("1", tmp_path)).json["status"] == "ok"
    waiting, hanging = node.schedule("slow"), node.schedule("hanging")
    stubborn = node.schedule("stubborn", note="stubborn")
    pid, ignoring = pid_of(tmp_path, "slow"), pid_of(tmp_path, "stubborn")
    [done] = node.wait_for_end(hanging)
    assert done["reason"] == "gave up: it was started 1 times; the last end: killed, as its event loop stood still"
    assert f"toy/{hanging} hangs: its event loop stands still; process" in node.log
    for log in (node.log, node.get(done["log_url"].lstrip("/")).text):
        assert re.search(r"toy/spiders\.py.*, line \d+ in start", log), "the traceback says where"
    assert 'moviecrawler_jobs_total{event="died"} 1.0' in node.get("metrics").text
    assert alive(pid), "a spider that waits is none that hangs"
    # One that does not end when it is told to is killed after a while, and a hung one as well.
    for job in (waiting, stubborn):
        assert node.post("cancel.json", project="toy", job=job).json["prevstate"] == "running"
    assert {end["reason"] for end in node.wait_for_end(waiting, stubborn, seconds=30)} == {"cancelled"}
    assert not alive(ignoring)


def test_spider_that_is_paused_with_its_node_is_started_again_and_not_given_up(node: Node, tmp_path: Path) -> None:
    assert node.deploy(toy_egg("1", tmp_path), "paused").json["status"] == "ok"
    job = node.schedule("slow", "paused")

    def spiders() -> list[int]:
        return [pid for note in tmp_path.glob("slow-*") if alive(pid := int(note.name.partition("-")[2]))]

    # A spider whose event loop turns before its watchdog wakes goes on after a pause. One more ends than SCRAPYD_MAX_DEATHS.
    while f"paused/{job} handed back: it was paused with its node" not in node.log:
        wait_for(spiders, 60, lambda: node.log)
        both = [*spiders(), node.process.pid]
        for number, seconds in ((signal.SIGSTOP, 1.3 * float(HASTY["SCRAPYD_HANG_SECONDS"])), (signal.SIGCONT, 1.0)):
            for pid in both:
                os.kill(pid, number)
            time.sleep(seconds)
    wait_for(spiders, 60, lambda: node.log)
    assert node.post("cancel.json", project="paused", job=job).json["prevstate"] == "running"
    assert [end["reason"] for end in node.wait_for_end(job)] == ["cancelled"]


def crawl_page_that_hangs(node: Node, replica: ReplicaProcess, jobs: int) -> None:
    """Crawl all titles by so many jobs, and see that no more than two processes die of the page, and no job is given up."""
    died = re.search(r'moviecrawler_jobs_total{event="died"} .*', node.get("metrics").text)
    egg = project_egg({"moviecrawler/spiders/imdb.py": lambda text: text + HANGS})
    assert node.deploy(egg, "moviecrawler", "1").json["status"] == "ok"
    # A lease outlives a hang until its node has counted it: else a third process gets the page meanwhile.
    settings = {**FAST, "FRONTIER_RUN": "hostile", "FRONTIER_LEASE": "6", "STORE_BATCH_SECONDS": "0.2"}
    ends = node.wait_for_end(*(node.schedule("imdb", "moviecrawler", settings, ids=",".join(IDS)) for _ in range(jobs)))
    assert {end["reason"] for end in ends} == {"finished"}
    metrics = node.get("metrics").text
    assert 'moviecrawler_jobs_total{event="hung"} 2.0' in metrics
    assert died is not None
    assert died[0] in metrics
    assert f"still at {replica.urls['imdb']}/title/{IDS[2]}/" in node.log
    stored = {movie.site_id for movie in read_movies(Path(node.environment["DATA_DIR"]) / "movies.csv")}
    assert stored == set(IDS) - {IDS[2]}


def test_page_that_hangs_is_set_aside_and_all_others_are_stored(node: Node, replica: ReplicaProcess) -> None:
    crawl_page_that_hangs(node, replica, jobs=1)
    misses = (Path(node.environment["DATA_DIR"]) / "misses.csv").read_text()
    assert IDS[2] in misses
    assert "set aside, as it has made processes hang" in misses


@pytest.mark.long  # short ones: the test above, and test_request_whose_page_has_hung_two_workers_is_set_aside
def test_page_that_hangs_is_set_aside_for_all_jobs_that_share_its_crawl(
    tmp_path: Path, server: RedisServer, replica: ReplicaProcess
) -> None:
    options = {**HASTY, **replica.settings, "DATA_DIR": str(tmp_path / "data"), "REDIS_URL": server.url}
    with cluster(tmp_path / "nodes", server.url, 1, prefix="sharing", **options) as running:
        crawl_page_that_hangs(running.nodes[0], replica, jobs=2)
    [letter] = server.client.hvals("{imdb}:hostile:deadletters")
    assert b"its page made a worker hang 2 times" in letter
