"""Nodes on one Redis: any of them takes any job and answers for all."""

import ast
import html
import os
import re
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis
from scrapyd_client import ScrapydClient

from moviecrawler.cluster.jobs import RESULTS, Result
from moviecrawler.cluster.options import NodeOptions
from moviecrawler.cluster.state import ClusterState
from moviecrawler.sites import SITES
from tests.checkout import run
from tests.services.nodes import (
    AUTH,
    DEPLOY_PASSWORD,
    Cluster,
    Node,
    alive,
    cluster,
    name_of,
    pid_of,
    project_egg,
    ran,
    toy_egg,
)
from tests.services.redis import RedisServer
from tests.waiting import wait_for

HOSTILE = {"name": "renamed", "x": "a=b -s LOG_FILE=/x", "y": "--help", "z": 'é"\n$(id)'}


@pytest.mark.promise("Any node answers for all: jobs are listed, and cancelled wherever they run.")
@pytest.mark.promise("Nodes take no job twice, and seconds without Redis lose and double nothing.")
def test_jobs_run_across_all_nodes_none_twice_and_report_how_they_ended(
    nodes: list[Node], notes: Path
) -> None:
    one, two = nodes
    assert one.deploy(toy_egg("2", notes), version="2").json["spiders"] == 4
    jobs = [
        two.schedule("quick", settings=None, _version="1", note="hostile", **HOSTILE),
        *(one.schedule("quick", note=f"plain{number}") for number in range(2)),
        two.schedule("quick", settings={"LOG_LEVEL": "NONSENSE"}),
        two.schedule("lost"),
    ]
    hostile, *plain, nonsense, lost = two.wait_for_end(*jobs)
    assert [each["reason"] for each in (hostile, *plain)] == ["finished"] * 3
    assert {name_of(each) for each in (hostile, *plain, nonsense, lost)} == {"node1", "node2"}
    assert [len(ran(notes, note)) for note in ("hostile", "plain*")] == [1, 2]
    for each in plain:
        assert [each[name] for name in ("version", "items", "errors", "pages", "bytes")] == [
            "2",
            1,
            0,
            0,
            0,
        ]
        assert 0 < each["seconds"] < 60
    # Why it ended stands in the log, too; of the lost one, only there.
    assert re.match("exit code 1: .*NONSENSE", nonsense["reason"])
    assert nonsense["items"] is None
    where = next(node for node in nodes if node.name == name_of(nonsense))
    assert "NONSENSE" in where.get(nonsense["log_url"].lstrip("/")).text
    assert lost["reason"].startswith(
        "exit code 1: NameError: Module 'toy' doesn't define any object named 'nowhere'"
    )
    arguments = {"note": "hostile", **HOSTILE}
    assert (hostile["version"], hostile["items"], hostile["args"]) == ("1", 1, arguments)
    assert ast.literal_eval((notes / "hostile.arguments").read_text()) == arguments
    version, environment = (notes / ran(notes, "hostile")[0]).read_text().split("\n", 1)
    assert version == "1"
    assert "DATABASE_URL=postgresql://store:of-the-stores@" in environment
    assert not [
        secret for secret in ("SCRAPYD_", AUTH[1], DEPLOY_PASSWORD) if secret in environment
    ]
    for node in nodes:
        assert not re.search(r"(?<!: )Traceback", node.log)  # its own, and none of its spiders'
        log = node.get(hostile["log_url"].lstrip("/"))
        if node.name == name_of(hostile):
            assert (log.code, log.headers["Content-Type"]) == (200, "text/plain; charset=utf-8")
            assert "a quick spider of version" in log.text
            end = node.request(hostile["log_url"].lstrip("/"), headers={"Range": "bytes=-100"})
            assert (end.code, end.text) == (206, log.text[-100:])
        else:
            assert (log.code, log.headers["Location"]) == (
                307,
                f"http://nodes.example:6800{hostile['log_url']}",
            )


def _fill_slots(one: Node, two: Node, notes: Path) -> list[str]:
    """Run a job of another project and one of the toy, and queue two; return their ids."""
    before = len(ran(notes, "running*"))
    one.deploy(toy_egg("1", notes), project="other", version="1")
    running = [
        one.schedule("slow", project="other", note="running0"),
        two.schedule("slow", settings={"FRONTIER_RUN": "of-settings"}, note="running1"),
    ]
    wait_for(lambda: len(ran(notes, "running*")) == before + 2)
    # As many jobs as there are slots: those that come wait by their priority.
    queued = [one.schedule("slow", priority="-1"), two.schedule("slow", priority="5")]
    wait_for(lambda: all(job["pid"] for job in two.jobs("running")))
    return [*running, *queued]


@pytest.mark.promise("Any node answers for all: jobs are listed, and cancelled wherever they run.")
def test_running_jobs_are_listed_by_any_node(nodes: list[Node], notes: Path) -> None:
    one, two = nodes
    other, job, low, high = _fill_slots(one, two, notes)
    assert [(job["id"], job["args"], job["settings"]) for job in two.jobs("pending")] == [
        (high, {}, {}),
        (low, {}, {}),
    ]
    [shown] = [each for each in one.jobs("running") if each["id"] == job]
    assert (shown["args"], shown["settings"]) == (
        {"note": "running1"},
        {"FRONTIER_RUN": "of-settings"},
    )
    for node in nodes:
        assert node.get("status.json", job=job).json["currstate"] == "running"
        assert node.get("daemonstatus.json").json["running"] == 2
    wait_for(
        lambda: sum(len(node["processes"]) for node in two.get("nodes.json").json["nodes"]) == 2
    )
    output = two.get("nodes.json").json["nodes"]
    assert [node["name"] for node in output] == ["node1", "node2"]
    assert {key for node in output for key in node["processes"]} == {f"other/{other}", f"toy/{job}"}
    assert all(node["memory"] > 0 and node["heartbeat_age_seconds"] < 12 for node in output)
    figures = one.get("metrics").text
    for line in (
        "moviecrawler_slots 2.0",
        "moviecrawler_jobs_running 2.0",
        "moviecrawler_nodes_lost_total 0.0",
    ):
        assert line in figures
    # What has not happened yet is told as 0: of a series that begins later, Prometheus sees no
    # increase.
    for spider in ("hanging", "imdb", "lost", "metacritic", "quick", "rottentomatoes", "slow"):
        pattern = rf'moviecrawler_jobs_total\{{result="(\w+)",spider="{spider}"\}}'
        assert re.findall(pattern, figures) == list(RESULTS)
    for site in SITES:
        assert f'moviecrawler_crawls_incomplete_total{{site="{site}"}} 0.0' in figures
    page = two.get("jobs").text  # Scrapyd's own
    assert all(each in page for each in (other, job, high, low))
    listed = subprocess.run(
        ["ps", "axww", "-o", "args"], capture_output=True, text=True, check=True
    ).stdout
    assert job in listed
    assert not [secret for secret in ("of-settings", "running1", AUTH[1]) if secret in listed]


@pytest.mark.promise("Any node answers for all: jobs are listed, and cancelled wherever they run.")
def test_jobs_are_cancelled_by_any_node_also_of_a_project_that_is_deleted(
    nodes: list[Node], notes: Path
) -> None:
    one, two = nodes
    other, job, low, high = _fill_slots(one, two, notes)
    [shown] = [each for each in one.jobs("running") if each["id"] == job]
    assert two.post("cancel.json", project="toy", job=low).json["prevstate"] == "pending"
    for node in nodes:
        # One of them does not run it.
        assert node.post("cancel.json", project="toy", job=job).json["prevstate"] == "running"
    [ended] = one.wait_for_end(job)
    assert (ended["reason"], ended["node"]) == ("cancelled", shown["node"])
    assert not alive(shown["pid"])
    assert one.post("cancel.json", project="toy", job=job).json["prevstate"] is None
    wait_for(lambda: one.get("status.json", job=high).json["currstate"] == "running")
    told = one.get("status.json", job=low).json
    assert (told["currstate"], told["reason"]) == ("finished", "cancelled")
    [never] = [each for each in one.jobs("finished") if each["id"] == low]
    assert (never["result"], never["starts"], never["log_url"]) == ("cancelled", [], None)
    assert never["start_time"] == never["end_time"]

    one.deploy(toy_egg("1", notes), project="other", version="2")
    assert two.post("delversion.json", project="other", version="2").json["status"] == "ok"
    assert one.get("listversions.json", project="other").json["versions"] == ["1"]
    # What runs of a project that is deleted is still there to be asked for, listed and cancelled.
    assert two.post("delproject.json", project="other").json["status"] == "ok"
    assert one.get("status.json", job=other, project="other").json["currstate"] == "running"
    assert [each["id"] for each in two.get("listjobs.json", project="other").json["running"]] == [
        other
    ]
    assert (
        two.post("cancel.json", project="other", job=other, signal="KILL").json["prevstate"]
        == "running"
    )
    assert one.wait_for_end(other)[0]["reason"] == "cancelled"
    assert one.get("listprojects.json").json["projects"] == ["toy"]
    for answer in (
        one.get("status.json", job="x", project="no"),
        one.get("listjobs.json", project="no"),
        one.post("cancel.json", project="no", job="x"),
        one.post("schedule.json", project="no", spider="quick"),
    ):
        assert (answer.json["status"], answer.json["message"]) == (
            "error",
            "project 'no' not found",
        )


def test_reason_of_a_job_is_the_error_that_ended_it_and_its_result_follows(
    nodes: list[Node],
) -> None:
    one, two = nodes
    assert one.deploy(project_egg(), "moviecrawler").json["status"] == "ok"
    film: dict[str, Any] = {"project": "moviecrawler", "ids": "movie/the-kettle"}
    jobs = [
        one.schedule("metacritic", **film),  # its database is away
        two.schedule("metacritic", "moviecrawler", list="nonsense"),
        two.schedule("metacritic", settings={"FRONTIER_LEASE": "0"}, **film),
    ]
    away, argument, setting = one.wait_for_end(*jobs)
    assert away["reason"].startswith("store_unavailable: postgres can't be used, so nothing is")
    assert (away["result"], away["exit_code"]) == ("failed", 1)
    assert "list is 'nonsense'" in argument["reason"]
    assert "FRONTIER_LEASE is '0'" in setting["reason"]
    for ended in (argument, setting):
        assert (ended["result"], ended["exit_code"]) == ("usage", 2)
        told = two.get("status.json", job=ended["id"]).json
        assert (told["result"], told["reason"]) == ("usage", ended["reason"])
        assert ended["reason"] in html.unescape(two.get(f"crawls/moviecrawler/{ended['id']}").text)
    figures = two.get("metrics").text
    assert 'moviecrawler_jobs_total{result="failed",spider="metacritic"} 1.0' in figures
    assert 'moviecrawler_jobs_total{result="usage",spider="metacritic"} 2.0' in figures
    assert one.post("delproject.json", project="moviecrawler").json["status"] == "ok"


def test_idle_node_sends_redis_few_commands(nodes: list[Node]) -> None:
    with redis.Redis.from_url(nodes[0].environment["SCRAPYD_REDIS_URL"]) as client:
        began = time.monotonic()
        before = client.info("stats")["total_commands_processed"]
        time.sleep(5)
        sent = client.info("stats")["total_commands_processed"] - before
        assert sent < 8 * len(nodes) * (time.monotonic() - began)  # and 2 with a lease of 20 s


@pytest.mark.promise("Scrapyd's API and clients work unchanged.")
def test_scrapyd_client_works_unchanged(nodes: list[Node], tmp_path: Path) -> None:
    one = ScrapydClient(nodes[0].url, *AUTH)
    two = ScrapydClient(nodes[1].url, *AUTH)
    assert one.projects() == ["toy"]
    assert "quick" in one.spiders("toy")
    job = one.schedule(
        "toy", "quick", [("setting", "LOG_LEVEL=DEBUG"), ("jobid", "given.by-me"), ("x", "1")]
    )
    assert job == "given.by-me"
    nodes[0].wait_for_end(job)
    assert two.status(job)["currstate"] == "finished"
    assert job in {each["id"] for each in two.jobs("toy")["finished"]}
    login = f"username = {AUTH[0]}\npassword = {AUTH[1]}\n"
    (tmp_path / "scrapy.cfg").write_text(
        f"[settings]\ndefault = x\n[deploy]\nurl = {nodes[1].url}/\n{login}project = toy\n"
    )
    scheduled = run(tmp_path, "scrapyd-client", "schedule", "-p", "toy", "slow")
    assert re.fullmatch(r"toy / slow => \w{32}\n", scheduled.output), scheduled.output


# --- Ends -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def its_redis() -> Iterator[RedisServer]:
    """Return the Redis of the breakable cluster."""
    with RedisServer() as running:
        yield running


@pytest.fixture(scope="module")
def breakable(
    tmp_path_factory: pytest.TempPathFactory, its_redis: RedisServer
) -> Iterator[Cluster]:
    """Return a cluster whose nodes and Redis are killed.

    Its spiders leave their notes in its folder.
    """
    options = {"SCRAPYD_LEASE_SECONDS": "3", "SCRAPYD_MAX_PROC": "1", "SCRAPYD_JOBS_TO_KEEP": "3"}
    with cluster(tmp_path_factory.mktemp("breakable"), its_redis.url, 2, **options) as running:
        running.nodes[0].deploy(toy_egg("1", running.folder))
        yield running


@pytest.mark.promise(
    "A dead node's jobs run again on the others, and each of their titles is stored once."
)
def test_node_that_ends_or_is_killed_gives_its_jobs_to_the_others_and_leaves_no_process(
    breakable: Cluster,
) -> None:
    notes = breakable.folder
    nodes = breakable.nodes
    long = nodes[0].schedule("slow", note="long")
    wait_for(lambda: len(ran(notes, "long")) == 1)
    [begun] = nodes[0].jobs("running")
    first, second = sorted(nodes, key=lambda node: node.name != name_of(begun))
    first.stop()
    [before] = ran(notes, "long")
    assert not alive(pid_of(before))
    wait_for(lambda: len(ran(notes, "long")) == 2)
    assert re.search(rf"Started toy/{long} as process \d+, start 2\n", second.log)
    assert [node["name"] for node in second.get("nodes.json").json["nodes"]] == [second.name]
    first.start()
    first.wait_until_ready()
    [left] = [pid_of(note) for note in ran(notes, "long") if note != before]
    # It is stopped at that moment, as by a terminal that closes.
    os.kill(left, signal.SIGSTOP)
    second.kill()
    os.kill(left, signal.SIGCONT)
    wait_for(lambda: len(ran(notes, "long")) == 3)
    wait_for(lambda: not alive(left))
    [again] = first.jobs("running")
    assert (again["id"], name_of(again)) == (long, first.name)
    second.start()
    second.wait_until_ready()
    # A process that dies is started again, too.
    wait_for(lambda: first.jobs("running")[0]["pid"])
    os.kill(first.jobs("running")[0]["pid"], signal.SIGKILL)
    wait_for(lambda: len(ran(notes, "long")) == 4)
    first.post("cancel.json", project="toy", job=long)
    assert first.wait_for_end(long)[0]["reason"] == "cancelled"


@pytest.mark.promise(
    "A job that dies each time is given up, and a node on which jobs would fail takes none."
)
def test_node_on_which_jobs_would_fail_takes_none_until_that_is_mended(breakable: Cluster) -> None:
    good = breakable.nodes[0]
    occupy = [good.schedule("slow") for _ in breakable.nodes]
    wait_for(lambda: len(good.jobs("running")) == 2)
    folder = breakable.folder / "bad"
    options = {**breakable.environment, "SCRAPYD_EGGS_DIR": str(folder / "eggs")}
    bad = Node(folder, options, "bad", auth=None)
    (folder / "eggs").touch()
    bad.start()
    try:
        wait_for(lambda: "eggs_dir can't be written to" in bad.get("readyz").text)
        assert "the node answers this machine only, without a password\n" in bad.log
        job = good.schedule("quick")
        figures = 'moviecrawler_node_fit{check="folders",node="bad"} 0.0'
        wait_for(lambda: figures in good.get("metrics").text)
        [shown] = [one for one in good.get("nodes.json").json["nodes"] if one["name"] == "bad"]
        assert "eggs_dir" in shown["unfit"]["folders"]
        assert re.search(r"bad takes no jobs\b.*\beggs_dir", good.get("").text, re.DOTALL)
        assert [each["id"] for each in good.jobs("pending")] == [job]
        logs = [node.folder / "logs" / "toy" / "quick" for node in breakable.nodes]
        for place in logs:
            place.mkdir(parents=True, exist_ok=True)
            for number in range(9):
                (place / f"{number}.log").touch()
        for each in occupy:
            good.post("cancel.json", project="toy", job=each, signal="KILL")
        [done] = good.wait_for_end(job)
        log = bad.get(done["log_url"].lstrip("/"))
        assert (log.code, log.text) == (404, f"the log is on {name_of(done)}\n")
        # Of 4, three are of others, and one is its own.
        assert sorted(len(list(place.iterdir())) for place in logs) == [4, 9]
        (folder / "eggs").unlink()
        bad.wait_until_ready()
    finally:
        bad.stop()


@pytest.mark.promise(
    "A job that dies each time is given up, and a node on which jobs would fail takes none."
)
def test_job_that_its_node_can_not_run_runs_on_another_one(breakable: Cluster) -> None:
    good = breakable.nodes[0]
    occupy = [good.schedule("slow") for _ in breakable.nodes]
    wait_for(lambda: len(good.jobs("running")) == 2)
    bad = Node(breakable.folder / "worse", breakable.environment, "worse", auth=None)
    (bad.folder / "logs").mkdir()
    (bad.folder / "logs" / "toy").touch()  # where the folder of its log should be
    bad.start()
    try:
        bad.wait_until_ready()
        job = good.schedule("quick")
        wait_for(lambda: "could not be run" in bad.get("readyz").text)
        for each in occupy:
            good.post("cancel.json", project="toy", job=each, signal="KILL")
        [done] = good.wait_for_end(job)
        assert done["reason"] == "finished"
        ends = [(start["node"].partition(":")[0], start["how"]) for start in done["starts"]]
        assert ends[0] == ("worse", "node_failed")
        assert ends[-1] == (name_of(done), "finished")
    finally:
        bad.stop()


def test_log_of_a_node_that_was_restarted_is_found_by_the_others(breakable: Cluster) -> None:
    good = breakable.nodes[0]
    occupy = [good.schedule("slow") for _ in breakable.nodes]
    wait_for(lambda: len(good.jobs("running")) == 2)
    other = Node(breakable.folder / "other", dict(breakable.environment), "other", auth=None)
    other.environment["SCRAPYD_NODE_URL"] = other.url
    other.start()
    try:
        other.wait_until_ready()
        [done] = good.wait_for_end(good.schedule("quick"))
        assert name_of(done) == "other"
        other.stop()
        path = done["log_url"]
        log = good.get(path.lstrip("/"))
        assert (log.code, log.text) == (404, "the log is on other\n")
        assert f"{other.url}{path}" not in good.get(f"crawls/toy/{done['id']}").text
        other.start()
        other.wait_until_ready()
        log = good.get(path.lstrip("/"))
        assert (log.code, log.headers["Location"]) == (307, f"{other.url}{path}")
        assert f'href="{other.url}{path}"' in good.get(f"crawls/toy/{done['id']}").text
        for each in occupy:
            good.post("cancel.json", project="toy", job=each, signal="KILL")
        good.wait_for_end(*occupy)
    finally:
        other.stop()


@pytest.mark.promise("Nodes take no job twice, and seconds without Redis lose and double nothing.")
def test_seconds_without_redis_lose_and_double_nothing(
    breakable: Cluster, its_redis: RedisServer
) -> None:
    def counted() -> Counter[tuple[str, Result]]:
        return Counter(ClusterState(NodeOptions(redis_url=its_redis.url)).snapshot().results)

    notes = breakable.folder
    (one, two) = breakable.nodes
    before = counted()
    ends_meanwhile = one.schedule("slow", note="meanwhile", seconds="3")
    goes_on = two.schedule("slow", note="on", seconds="8")
    wait_for(lambda: ran(notes, "on") and ran(notes, "meanwhile"))
    # At first it takes connections and says nothing, which must not stop a node from answering.
    its_redis._process.send_signal(signal.SIGSTOP)
    assert one.get("healthz").code == 200
    assert two.request("schedule.json", b"project=toy&spider=quick").code == 503
    its_redis.stop()
    refused = one.post("schedule.json", project="toy", spider="quick", jobid="kept")
    assert (refused.code, refused.json["status"]) == (503, "error")
    assert one.get("healthz").code == 200
    wait_for(lambda: one.get("readyz").code == 503)
    wait_for(lambda: "Redis can't be reached: " in one.log)
    assert two.get("jobs").code == 503
    figures = two.get("metrics")
    assert figures.code == 200
    assert "moviecrawler_redis_up 0.0" in figures.text
    assert f'moviecrawler_node_fit{{check="clock",node="{two.name}"}} 1.0' in figures.text
    assert "moviecrawler_slots" not in figures.text
    time.sleep(3.5)  # longer than a lease
    told = re.findall("Redis can't be reached: .*; spiders go on", one.log)
    assert len(told) == len(set(told)), "each reason once"
    its_redis.start()
    for node in (one, two):
        node.wait_until_ready()
    one.schedule("quick", note="after", jobid="kept")
    done = two.wait_for_end(ends_meanwhile, goes_on, "kept")
    assert [each["reason"] for each in done] == ["finished"] * 3
    assert [len(ran(notes, note)) for note in ("meanwhile", "on", "after")] == [1, 1, 1]
    assert counted() - before == {("slow", "ok"): 2, ("quick", "ok"): 1}


@pytest.mark.promise("Nodes take no job twice, and seconds without Redis lose and double nothing.")
def test_redis_that_is_full_can_be_read_and_is_called_full(
    breakable: Cluster, its_redis: RedisServer
) -> None:
    (one, two) = breakable.nodes
    job = one.schedule("slow", note="full", seconds="6")
    wait_for(lambda: ran(breakable.folder, "full"))
    its_redis.client.config_set("maxmemory", 1)
    try:
        wait_for(lambda: "Redis is full" in one.get("readyz").text)
        assert job in {each["id"] for each in two.jobs("running")}
        for page in ("", "crawls", "jobs", "nodes.json", "listversions.json?project=toy"):
            assert two.get(page).code == 200, page
        wait_for(lambda: "Redis is full" in two.get("readyz").text)
        for _ in range(5):
            assert "moviecrawler_redis_up 0.0" in two.get("metrics").text
            time.sleep(0.5)
        refused = two.deploy(toy_egg("2", breakable.folder), version="2")
        assert (refused.code, refused.json["message"]) == (
            503,
            "Redis is full: it has reached its maxmemory; give it more",
        )
        time.sleep(4)  # longer than a lease
    finally:
        its_redis.client.config_set("maxmemory", 0)
    [done] = one.wait_for_end(job)
    assert (done["reason"], len(done["starts"])) == ("finished", 1)
    for node in (one, two):
        node.wait_until_ready()


@pytest.mark.promise("Nodes take no job twice, and seconds without Redis lose and double nothing.")
def test_password_of_redis_that_was_changed_is_named(
    breakable: Cluster, its_redis: RedisServer
) -> None:
    (one, two) = breakable.nodes
    job = one.schedule("slow", note="password", seconds="6")
    wait_for(lambda: ran(breakable.folder, "password"))
    its_redis.client.config_set("requirepass", "changed")
    its_redis.client.client_kill_filter(_type="normal", skipme=True)
    try:
        expected = "Redis refuses the password in REDIS_URL, or the lack of one"
        wait_for(lambda: expected in one.get("readyz").text)
        answer = two.get("listjobs.json")
        assert (answer.code, expected in answer.json["message"]) == (503, True)
        time.sleep(4)  # longer than a lease
    finally:
        its_redis.client.config_set("requirepass", "")
    [done] = one.wait_for_end(job)
    assert (done["reason"], len(done["starts"])) == ("finished", 1)
    for node in (one, two):
        node.wait_until_ready()


@pytest.mark.promise(
    "A job that dies each time is given up, and a node on which jobs would fail takes none."
)
def test_redis_that_throws_keys_away_is_refused(breakable: Cluster, its_redis: RedisServer) -> None:
    its_redis.client.config_set("maxmemory", 2**30)
    its_redis.client.config_set("maxmemory-policy", "allkeys-lru")
    late = Node(breakable.folder / "late", breakable.environment, "late", auth=None)
    late.start()
    try:
        wait_for(lambda: "Redis throws keys away when it is full" in late.get("readyz").text)
        its_redis.client.config_set("maxmemory-policy", "noeviction")
        late.wait_until_ready()
    finally:
        its_redis.client.config_set("maxmemory", 0)
        its_redis.client.config_set("maxmemory-policy", "noeviction")
        late.stop()
