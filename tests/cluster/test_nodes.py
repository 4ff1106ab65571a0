"""Nodes on one Redis: any of them takes any job and answers for all."""

import ast
import os
import re
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis
from scrapyd_client import ScrapydClient

from moviecrawler.cluster.options import NodeOptions
from moviecrawler.cluster.state import EVENTS, ClusterState
from tests.deploy.checkout import run
from tests.services.nodes import (
    AUTH,
    DEPLOY_PASSWORD,
    Cluster,
    Node,
    alive,
    cluster,
    name_of,
    pid_of,
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
    assert (hostile["version"], hostile["items"]) == ("1", 1)
    assert hostile["args"] == {"note": "hostile", **HOSTILE}
    assert ast.literal_eval((notes / "hostile.arguments").read_text()) == {
        "note": "hostile",
        **HOSTILE,
    }
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


@pytest.mark.promise("Any node answers for all: jobs are listed, and cancelled wherever they run.")
def test_running_jobs_are_listed_and_cancelled_by_any_node(nodes: list[Node], notes: Path) -> None:
    one, two = nodes
    for version in ("1", "2"):
        one.deploy(toy_egg("1", notes), project="other", version=version)
    assert two.post("delversion.json", project="other", version="2").json["status"] == "ok"
    assert one.get("listversions.json", project="other").json["versions"] == ["1"]
    other = one.schedule("slow", project="other", note="running0")
    job = two.schedule("slow", settings={"FRONTIER_RUN": "of-settings"}, note="running1")
    wait_for(lambda: len(ran(notes, "running*")) == 2)
    # As many jobs as there are slots: those that come wait by their priority.
    low = one.schedule("slow", priority="-1")
    high = two.schedule("slow", priority="5")
    wait_for(lambda: all(job["pid"] for job in two.jobs("running")))
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
    assert all(node["memory"] > 0 and node["heard_seconds_ago"] < 12 for node in output)
    figures = one.get("metrics").text
    for line in (
        "moviecrawler_slots 2.0",
        "moviecrawler_jobs_running 2.0",
        "moviecrawler_nodes_lost_total 0.0",
    ):
        assert line in figures
    # What has not happened yet is told as 0: of a series that begins later, Prometheus sees no
    # increase.
    assert re.findall(r'moviecrawler_jobs_total\{event="(\w+)"\}', figures) == sorted(EVENTS)
    page = two.get("jobs").text  # Scrapyd's own
    assert all(each in page for each in (other, job, high, low))
    listed = subprocess.run(
        ["ps", "axww", "-o", "args"], capture_output=True, text=True, check=True
    ).stdout
    assert job in listed
    assert not [secret for secret in ("of-settings", "running1", AUTH[1]) if secret in listed]

    assert two.post("cancel.json", project="toy", job=low).json["prevstate"] == "pending"
    for node in nodes:
        # One of them does not run it.
        assert node.post("cancel.json", project="toy", job=job).json["prevstate"] == "running"
    [ended] = one.wait_for_end(job)
    assert (ended["reason"], ended["node"]) == ("cancelled", shown["node"])
    assert not alive(shown["pid"])
    assert one.post("cancel.json", project="toy", job=job).json["prevstate"] is None
    wait_for(lambda: one.get("status.json", job=high).json["currstate"] == "running")
    assert one.get("status.json", job=low).json["currstate"] is None

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
def server() -> Iterator[RedisServer]:
    with RedisServer() as running:
        yield running


@pytest.fixture(scope="module")
def breakable(tmp_path_factory: pytest.TempPathFactory, server: RedisServer) -> Iterator[Cluster]:
    """Return a cluster whose nodes and Redis are killed.

    Its spiders leave their notes in its folder.
    """
    options = {"SCRAPYD_LEASE_SECONDS": "3", "SCRAPYD_MAX_PROC": "1", "SCRAPYD_JOBS_TO_KEEP": "3"}
    with cluster(tmp_path_factory.mktemp("breakable"), server.url, 2, **options) as running:
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


def test_node_that_can_start_no_process_gives_the_job_back_at_once(breakable: Cluster) -> None:
    good = breakable.nodes[0]
    occupy = [good.schedule("slow") for _ in breakable.nodes]
    wait_for(lambda: len(good.jobs("running")) == 2)
    bad = Node(
        breakable.folder / "bad",
        {**breakable.environment, "SCRAPYD_EGGS_DIR": "/dev/null/eggs"},
        "bad",
        auth=None,
    )
    bad.start()
    try:
        bad.wait_until_ready()
        assert "the node answers this machine only, without a password\n" in bad.log
        began = time.monotonic()
        job = good.schedule("quick")
        wait_for(lambda: f"toy/{job} can't be started here: [Errno 20] Not a directory" in bad.log)
        wait_for(lambda: good.jobs("pending"))
        logs = [node.folder / "logs" / "toy" / "quick" for node in breakable.nodes]
        for folder in logs:
            folder.mkdir(parents=True, exist_ok=True)
            for number in range(9):
                (folder / f"{number}.log").touch()
        for each in occupy:
            good.post("cancel.json", project="toy", job=each, signal="KILL")
        [done] = good.wait_for_end(job)
        log = bad.get(done["log_url"].lstrip("/"))
        assert (log.code, log.text) == (404, f"the log is on {name_of(done)}\n")
        assert bad.log.count("can't be started here") <= 1 + (time.monotonic() - began) / 10
        # Of 4, three are of others, and one is its own.
        assert sorted(len(list(folder.iterdir())) for folder in logs) == [4, 9]
    finally:
        bad.stop()


@pytest.mark.promise("Nodes take no job twice, and seconds without Redis lose and double nothing.")
def test_seconds_without_redis_lose_and_double_nothing(
    breakable: Cluster, server: RedisServer
) -> None:
    def counted() -> Counter[str]:
        return ClusterState(NodeOptions(redis_url=server.url)).counters()

    notes = breakable.folder
    (one, two) = breakable.nodes
    before = counted()
    ends_meanwhile = one.schedule("slow", note="meanwhile", seconds="3")
    goes_on = two.schedule("slow", note="on", seconds="8")
    wait_for(lambda: ran(notes, "on") and ran(notes, "meanwhile"))
    # At first it takes connections and says nothing, which must not stop a node from answering.
    server._process.send_signal(signal.SIGSTOP)
    assert one.get("healthz").code == 200
    assert two.request("schedule.json", b"project=toy&spider=quick").code == 503
    server.stop()
    refused = one.post("schedule.json", project="toy", spider="quick", jobid="kept")
    assert (refused.code, refused.json["status"]) == (503, "error")
    assert one.get("healthz").code == 200
    wait_for(lambda: one.get("readyz").code == 503)
    wait_for(lambda: "Redis can't be reached: " in one.log)
    assert two.get("jobs").code == 503
    time.sleep(3.5)  # longer than a lease
    assert one.log.count("Redis can't be reached: ") == 1
    server.start()
    for node in (one, two):
        node.wait_until_ready()
    one.schedule("quick", note="after", jobid="kept")
    done = two.wait_for_end(ends_meanwhile, goes_on, "kept")
    assert [each["reason"] for each in done] == ["finished"] * 3
    assert [len(ran(notes, note)) for note in ("meanwhile", "on", "after")] == [1, 1, 1]
    assert counted() - before == {"scheduled": 3, "started": 3, "finished": 3}
