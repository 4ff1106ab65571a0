"""Spiders whose event loop stands still, and spiders that don't end when they are told to."""

from __future__ import annotations

import io
import re
import zipfile
from pathlib import Path
from types import SimpleNamespace

import pytest
import redis
from twisted.internet.defer import Deferred, maybeDeferred

from moviecrawler.catalogue.tables import read_movies
from moviecrawler.cluster.eggs import EggStore
from moviecrawler.cluster.jobs import Job
from moviecrawler.cluster.launcher import ClusterLauncher, _Held
from moviecrawler.cluster.options import NodeOptions
from moviecrawler.replica.movies import Catalogue
from moviecrawler.replica.process import ReplicaProcess
from tests.cluster.nodes import alive, cluster, toy_egg
from tests.crawling import FAST
from tests.deploy.checkout import checkout, project_egg
from tests.services.redis import RedisServer
from tests.waiting import wait_for

__all__ = ["checkout", "project_egg"]

HASTY = {"SCRAPYD_HANG_SECONDS": "2", "SCRAPYD_CANCEL_SECONDS": "1", "SCRAPYD_MAX_DEATHS": "1"}
TITLES = 8
HANGS = """

_read_title = ImdbSpider.read_title


def _hang(self, response):
    if "{title}" in response.url:
        import re
        re.match("(x+x+)+y", "x" * 40)
    return _read_title(self, response)


ImdbSpider.read_title = _hang
"""


@pytest.fixture
def launcher(tmp_path: Path, redis_url: str, monkeypatch: pytest.MonkeyPatch) -> ClusterLauncher:
    """Return a launcher whose jobs are processes of a test's, and whose event loop is not needed."""
    options = NodeOptions(redis_url=redis_url, eggs_dir=str(tmp_path / "eggs"), logs_dir=str(tmp_path / "logs"))
    eggs = EggStore(options)
    monkeypatch.setattr("moviecrawler.cluster.eggs.list_spiders", lambda _: ["slow"])
    eggs.put(io.BytesIO(toy_egg()), "toy", "1")
    made = ClusterLauncher(options, eggs)
    monkeypatch.setattr(made._fetching, "run", maybeDeferred)
    monkeypatch.setattr(made, "_beat_soon", lambda: None)
    return made


def test_slow_start_that_fails_by_itself_is_no_hang(launcher: ClusterLauncher, monkeypatch: pytest.MonkeyPatch) -> None:
    ended: Deferred[None] = Deferred()
    signals: list[object] = []
    process = SimpleNamespace(
        start=lambda: None,
        send=signals.append,
        ended=ended,
        heartbeats=0,
        pid=1,
        report=None,
        signal=None,
        exit_code=1,
        last_error="no such table",
        work=None,
    )
    monkeypatch.setattr("moviecrawler.cluster.launcher.SpiderProcess", lambda *_, **__: process)
    held = _Held(job=Job(project="toy", spider="slow", id="a1"), started_at=0.0)
    launcher._held[held.job.key] = held
    ends: list[object] = []
    Deferred.fromCoroutine(launcher._crawl(held, 0)).addCallback(ends.append)
    for _ in range(20):  # more looks than a spider at work may be silent for
        launcher._look()
    ended.callback(None)
    assert ends == [("finished", "exit code 1: no such table")]
    for _ in range(200):  # while Redis is away, say, the job is still this node's
        launcher._look()
    assert (held.hung, signals) == (False, [])


def pid_of(notes: Path, spider: str) -> int:
    """Return the process of a toy's spider that has begun."""
    wait_for(lambda: list(notes.glob(f"{spider}-*")), 60)
    return int(next(iter(notes.glob(f"{spider}-*"))).name.partition("-")[2])


def test_spider_that_hangs_or_does_not_end_is_killed_and_others_are_not(tmp_path: Path, redis_server: str) -> None:
    with cluster(tmp_path / "nodes", redis_server, 1, prefix=tmp_path.name, SCRAPYD_MAX_PROC="3", **HASTY) as running:
        [node] = running.nodes
        assert node.deploy(toy_egg("1", tmp_path)).json["status"] == "ok"
        waiting = node.schedule("slow")
        pid = pid_of(tmp_path, "slow")
        hanging = node.schedule("hanging")
        [done] = node.wait_for_end(hanging)
        assert done["reason"] == (
            "gave up: it was started 2 times; the last end: killed, as its event loop stood still"
        )
        assert f"toy/{hanging} hangs: its event loop stands still; killing process" in node.log
        assert re.search(r"toy/spiders\.py.*, line \d+ in start", node.log), "the traceback says where"
        assert 'moviecrawler_jobs_total{event="died"} 2.0' in node.get("metrics").text
        assert alive(pid), "a spider that waits is none that hangs"
        # One that does not end when it is told to is killed after a while, and a hung one as well.
        stubborn = node.schedule("stubborn", note="stubborn")
        ignoring = pid_of(tmp_path, "stubborn")
        for job in (waiting, stubborn):
            assert node.post("cancel.json", project="toy", job=job).json["prevstate"] == "running"
        assert {end["reason"] for end in node.wait_for_end(waiting, stubborn, seconds=30)} == {"cancelled"}
        assert not alive(ignoring)
        # Nor does it outlive its node.
        for path in tmp_path.glob("hanging-*"):
            path.unlink()
        node.schedule("hanging")
        pid = pid_of(tmp_path, "hanging")
        node.kill()
        wait_for(lambda: not alive(pid), 30)


@pytest.fixture(scope="module")
def hanging_egg(project_egg: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return an egg of this version whose reader of IMDb's pages hangs with one title."""
    made = tmp_path_factory.mktemp("egg") / "hanging.egg"
    with zipfile.ZipFile(project_egg) as ours, zipfile.ZipFile(made, "w") as hanging:
        for name in ours.namelist():
            content = ours.read(name)
            if name == "moviecrawler/spiders/imdb.py":
                content += HANGS.format(title=Catalogue(1, TITLES).imdb_id(2)).encode()
            if not name.endswith(".pyc"):
                hanging.writestr(name, content)
    return made


@pytest.mark.parametrize("shared", [True, False])
def test_page_that_hangs_is_set_aside_and_all_others_are_stored(
    shared: bool, tmp_path: Path, hanging_egg: Path
) -> None:
    """Two jobs that share a crawl, or one on its own: no more than two processes die of the page, and the job is not given up."""
    ids = [Catalogue(1, TITLES).imdb_id(place) for place in range(TITLES)]
    with RedisServer() as server, ReplicaProcess(titles=TITLES, light=True) as replica:
        options = {**HASTY, **replica.settings, "DATA_DIR": str(tmp_path / "data"), "SCRAPYD_MAX_PROC": "2"}
        if shared:
            options["REDIS_URL"] = server.url
        with cluster(tmp_path / "nodes", server.url, 1, **options) as running:
            [node] = running.nodes
            assert node.deploy(hanging_egg.read_bytes(), "moviecrawler", "1").json["status"] == "ok"
            # A lease outlives a hang until its node has counted it: else a third process gets the page meanwhile.
            settings = {**FAST, "FRONTIER_RUN": "hostile", "FRONTIER_LEASE": "6", "STORE_BATCH_SECONDS": "0.2"}
            jobs = [node.schedule("imdb", "moviecrawler", settings, ids=",".join(ids)) for _ in range(1 + shared)]
            assert {end["reason"] for end in node.wait_for_end(*jobs)} == {"finished"}
            assert 'moviecrawler_jobs_total{event="hung"} 2.0' in node.get("metrics").text
            assert f"still at {replica.urls['imdb']}/title/{ids[2]}/" in node.log
            assert 'moviecrawler_jobs_total{event="died"} 0.0' in node.get("metrics").text
        stored = {movie.site_id for movie in read_movies(tmp_path / "data" / "movies.csv")}
        assert stored == set(ids) - {ids[2]}
        if shared:
            with redis.Redis.from_url(server.url) as client:
                [letter] = client.hvals("{imdb}:hostile:deadletters")
            assert b"its page made a worker hang 2 times" in letter
        else:
            assert f"{ids[2]}" in (tmp_path / "data" / "misses.csv").read_text()
            assert "set aside, as it has made processes hang" in (tmp_path / "data" / "misses.csv").read_text()
