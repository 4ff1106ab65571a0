"""Three nodes on one Redis: any of them takes any job and answers for all."""

from __future__ import annotations

import ast
import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from scrapyd_client import ScrapydClient

from moviecrawler.cluster.state import EVENTS
from tests.cluster.nodes import Node, alive, cluster, toy_egg
from tests.deploy.checkout import run
from tests.services.redis import RedisServer
from tests.waiting import wait_for

AUTH = ("operator", "pass:word")


@pytest.fixture(scope="module")
def notes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder where the toy's spiders tell that they ran."""
    return tmp_path_factory.mktemp("notes")


@pytest.fixture(scope="module")
def redis_server_of_ours() -> Iterator[RedisServer]:
    with RedisServer() as server:
        yield server


@pytest.fixture(scope="module")
def nodes(
    tmp_path_factory: pytest.TempPathFactory, redis_server_of_ours: RedisServer, notes: Path
) -> Iterator[list[Node]]:
    folder = tmp_path_factory.mktemp("nodes")
    options = {
        "DATABASE_URL": "postgresql://store:of-the-stores@127.0.0.1:1/x",
        "SCRAPYD_MAX_PROC": "1",
        # Where a loaded machine is not taken for a dead node.
        "SCRAPYD_LEASE_SECONDS": "12",
    }
    with cluster(folder, redis_server_of_ours.url, 3, auth=AUTH, **options) as running:
        assert running.nodes[0].deploy(toy_egg("1", notes)).json["status"] == "ok"
        yield running.nodes


@pytest.fixture(autouse=True)
def no_job_left(request: pytest.FixtureRequest) -> Iterator[None]:
    """Leave the shared nodes as they were, also where a test fails."""
    yield
    if "nodes" in request.fixturenames:
        [node, *_] = request.getfixturevalue("nodes")
        for job in [*node.jobs("pending"), *node.jobs("running")]:
            node.post("cancel.json", project=job["project"], job=job["id"], signal="KILL")
        wait_for(lambda: not node.jobs("running"))


HOSTILE = {"name": "renamed", "x": "a=b -s LOG_FILE=/x", "y": "--help", "z": 'é"\n$(id)'}


def ran(notes: Path, prefix: str) -> list[str]:
    return sorted(path.name for path in notes.glob(f"{prefix}-*"))


def pids(notes: Path, *prefixes: str) -> list[int]:
    return [int(name.rpartition("-")[2]) for prefix in prefixes for name in ran(notes, prefix)]


def test_jobs_run_across_all_nodes_none_twice_and_report_how_they_ended(nodes: list[Node], notes: Path) -> None:
    one, two, three = nodes
    assert one.deploy(toy_egg("2", notes), version="2").json["spiders"] == 7
    for node in nodes:
        assert node.get("listprojects.json").json["projects"] == ["toy"]
        assert node.get("listversions.json", project="toy").json["versions"] == ["1", "2"]
        assert "slow" in node.get("listspiders.json", project="toy").json["spiders"]
    jobs = [
        two.schedule("quick", settings=None, _version="1", note="hostile", **HOSTILE),
        *(one.schedule("quick", note=f"plain{number}") for number in range(3)),
        *(three.schedule(spider) for spider in ("nonsense", "lost", "dying")),
    ]
    hostile, *plain, nonsense, lost, dying = two.wait_for_end(*jobs)
    assert [each["reason"] for each in (hostile, *plain)] == ["finished"] * 4
    assert len({each["node"] for each in (hostile, *plain, nonsense, lost, dying)}) == 3
    assert [len(ran(notes, note)) for note in ("hostile", "plain*")] == [1, 3]
    # Nobody's poller has died of a job that another node was faster to take.
    for node in nodes:
        assert not re.search(r"(?<!: )Traceback", node.log)  # its own, and none of its spiders'
    for each in plain:
        figures = [each[name] for name in ("version", "items", "errors", "pages", "bytes")]
        assert figures == ["2", 1, 0, 0, 0]
        assert 0 < each["seconds"] < 60
    assert {(notes / name).read_text().splitlines()[0] for name in ran(notes, "plain*")} == {"2"}
    assert nonsense["reason"].startswith("exit code 1: ")
    assert "NONSENSE" in nonsense["reason"]
    assert nonsense["items"] is None
    # That stands in the spider's log only.
    assert lost["reason"].startswith("exit code 1: NameError: Module 'toy' doesn't define any object named 'nowhere'")
    # Why it ended stands in the log, too.
    where = next(node for node in nodes if nonsense["node"].startswith(f"{node.name}:"))
    assert "NONSENSE" in where.get(nonsense["log_url"].lstrip("/")).text
    assert dying["reason"] == "gave up: it was started 7 times; the last end: killed by signal 9"
    for ask, path in ((three.post, "schedule.json"), (three.get, "listspiders.json")):
        assert ask(path, project="toy", spider="quick", _version="9").json["message"] == "version '9' not found"
    got_its_arguments_and_the_stores_secrets(hostile, notes)
    tells_where_its_log_is(nodes, hostile)


def got_its_arguments_and_the_stores_secrets(hostile: dict[str, Any], notes: Path) -> None:
    """See that a spider was given the version and arguments that were asked for, and none of the node's secrets."""
    assert (hostile["version"], hostile["items"]) == ("1", 1)
    assert hostile["args"] == {"note": "hostile", **HOSTILE}
    assert ast.literal_eval((notes / "hostile.arguments").read_text()) == {"note": "hostile", **HOSTILE}
    version, *environment = (notes / ran(notes, "hostile")[0]).read_text().splitlines()
    assert version == "1"
    text = "\n".join(environment)
    assert "DATABASE_URL=postgresql://store:of-the-stores@" in text
    assert "SCRAPYD_" not in text
    assert AUTH[1] not in text


def tells_where_its_log_is(nodes: list[Node], job: dict[str, Any]) -> None:
    """See that the node that ran it serves its log, that others say which one that is, and that nothing else is served."""
    path = job["log_url"].lstrip("/")
    name = job["node"].partition(":")[0]
    for node in nodes:
        answer = node.get(path)
        if node.name == name:
            assert (answer.code, answer.headers["Content-Type"]) == (200, "text/plain; charset=utf-8")
            assert "a quick spider of version" in answer.text
            end = node.request(path, headers={"Range": "bytes=-100"})
            assert (end.code, end.text) == (206, answer.text[-100:])
        else:
            assert (answer.code, answer.text) == (404, f"the log is on {name}\n")
    missing = nodes[0].get("logs/toy/quick/nothing.log")
    assert (missing.code, missing.text) == (404, "there is no such log\n")
    for other in ("logs/../node.log", "logs/%2e%2e/node.log", "logs/toy/..%2f..%2f/node.log", "logs/toy/%2e%2e/x.log"):
        assert nodes[0].get(other).code in {404, 403}, other


COLUMNS = ["Project", "Spider", "Job", "PID", "Start", "Runtime", "Finish", "Log", "Cancel"]


def test_running_jobs_are_listed_and_cancelled_by_any_node(nodes: list[Node], notes: Path) -> None:
    one, two, three = nodes
    for version in ("1", "2"):
        one.deploy(toy_egg("1", notes), project="other", version=version)
    assert two.post("delversion.json", project="other", version="2").json["status"] == "ok"
    assert three.get("listversions.json", project="other").json["versions"] == ["1"]
    for node in nodes:
        node.get("logs")  # which is there before any job was
    done = two.schedule("quick", note="columns")
    two.wait_for_end(done)
    slow = [
        one.schedule("slow", project="other", note="running0"),
        two.schedule("slow", settings={"FRONTIER_RUN": "of-settings"}, note="running1"),
        two.schedule("slow", note="running2"),
    ]
    wait_for(lambda: len(ran(notes, "running*")) == 3)
    wait_for(lambda: all(job["pid"] for job in three.jobs("running")))
    # As many jobs as there are slots: those that come wait by their priority.
    low = one.schedule("slow", priority="-1")
    high = two.schedule("slow", priority="5")
    pending = three.jobs("pending")
    assert [job["id"] for job in pending] == [high, low]
    assert (pending[0]["args"], pending[0]["settings"]) == ({}, {})
    [shown] = [job for job in one.jobs("running") if job["id"] == slow[1]]
    assert (shown["args"], shown["settings"]) == ({"note": "running1"}, {"FRONTIER_RUN": "of-settings"})
    for node in nodes:
        assert node.get("status.json", job=slow[1]).json["currstate"] == "running"
        assert node.get("daemonstatus.json").json["running"] == 3
    nodes_are_listed_with_their_figures(nodes, slow)
    page_of_jobs_has_scrapyd_s_columns(two.get("jobs").text, done, slow, [high, low])
    listed = subprocess.run(["ps", "axww", "-o", "args"], capture_output=True, text=True, check=True).stdout
    assert slow[1] in listed
    for secret in ("of-settings", "running1", AUTH[1]):
        assert secret not in listed

    assert three.post("cancel.json", project="toy", job=low).json["prevstate"] == "pending"
    [running] = [each for each in three.jobs("running") if each["id"] == slow[1]]
    assert three.post("cancel.json", project="toy", job=slow[1]).json["prevstate"] == "running"
    [ended] = one.wait_for_end(slow[1])
    assert (ended["reason"], ended["node"]) == ("cancelled", running["node"])
    assert not alive(running["pid"])
    assert three.post("cancel.json", project="toy", job=slow[1]).json["prevstate"] is None
    wait_for(lambda: one.get("status.json", job=high).json["currstate"] == "running")
    assert one.get("status.json", job=low).json["currstate"] is None
    one.post("cancel.json", project="toy", job=slow[2], signal="KILL")
    assert two.wait_for_end(slow[2])[0]["reason"] == "cancelled"

    # What runs of a project that is deleted is still there to be asked for, listed and cancelled.
    wait_for(lambda: any(job["version"] == "1" for job in one.jobs("running")))
    assert three.post("delproject.json", project="other").json["status"] == "ok"
    assert one.get("status.json", job=slow[0]).json["currstate"] == "running"
    assert two.get("status.json", job=slow[0], project="other").json["currstate"] == "running"
    assert [job["id"] for job in two.get("listjobs.json", project="other").json["running"]] == [slow[0]]
    assert three.post("cancel.json", project="other", job=slow[0]).json["prevstate"] == "running"
    assert one.wait_for_end(slow[0])[0]["reason"] == "cancelled"
    for answer in (
        one.get("status.json", job="x", project="no"),
        one.get("listjobs.json", project="no"),
        one.post("cancel.json", project="no", job="x"),
    ):
        assert answer.json["message"] == "project 'no' not found"
    assert one.get("listprojects.json").json["projects"] == ["toy"]
    gone = one.post("schedule.json", project="other", spider="quick").json
    assert (gone["status"], gone["message"]) == ("error", "project 'other' not found")


def nodes_are_listed_with_their_figures(nodes: list[Node], running: list[str]) -> None:
    """See what each node tells of all, while each runs a job."""
    wait_for(lambda: sum(len(node["processes"]) for node in nodes[1].get("nodes.json").json["nodes"]) == 3)
    output = nodes[1].get("nodes.json").json["nodes"]
    assert [node["name"] for node in output] == ["node1", "node2", "node3"]
    assert [node["url"] for node in output] == [node.url for node in nodes]
    keys = [f"{project}/{job}" for project, job in zip(("other", "toy", "toy"), running, strict=True)]
    assert sorted(key for node in output for key in node["running"]) == sorted(keys)
    assert all(0 < node["memory"] <= 120 * 1024**2 for node in output), output
    assert all(node["heard_seconds_ago"] < 12 for node in output)
    figures = nodes[2].get("metrics").text
    assert "moviecrawler_slots 3.0" in figures
    assert "moviecrawler_jobs_running 3.0" in figures
    assert re.search(r'moviecrawler_jobs_total\{event="finished"\} \d', figures)
    # What has not happened yet is told as 0: of a series that begins later, Prometheus sees no increase.
    assert re.findall(r'moviecrawler_jobs_total\{event="(\w+)"\}', figures) == sorted(EVENTS)
    assert "moviecrawler_nodes_lost_total 0.0" in figures


def page_of_jobs_has_scrapyd_s_columns(page: str, done: str, running: list[str], waiting: list[str]) -> None:
    """See the columns that clients read by their places, as scrapydweb does."""
    assert re.findall("<th>(.*?)</th>", page) == COLUMNS
    rows = [
        re.findall("<td>(.*?)</td>", row, re.DOTALL) for row in re.findall(r"<tr>(\s*<td>.*?)</tr>", page, re.DOTALL)
    ]
    jobs = {row[2]: dict(zip(COLUMNS, row, strict=False)) for row in rows}
    for job in waiting:
        names = {"Project": "toy", "Spider": "slow", "Job": job, "Cancel": jobs[job]["Cancel"]}
        assert jobs[job] == {**dict.fromkeys(COLUMNS, ""), **names}
    for job in (done, *running):
        row = jobs[job]
        datetime.strptime(row["Start"], "%Y-%m-%d %H:%M:%S")  # noqa: DTZ007 - as clients read it
        assert re.fullmatch(r"\d:\d\d:\d\d", row["Runtime"])
        assert f"/logs/{row['Project']}/{row['Spider']}/{job}.log" in row["Log"]
        assert bool(row["PID"]) == (job != done) == bool(row["Cancel"]) == (not row["Finish"])


def test_scrapyd_client_works_unchanged(nodes: list[Node], tmp_path: Path) -> None:
    client = ScrapydClient(nodes[0].url, *AUTH)
    assert client.projects() == ["toy"]
    assert "quick" in client.spiders("toy")
    job = client.schedule("toy", "quick", [("setting", "LOG_LEVEL=DEBUG"), ("jobid", "given.by-me"), ("x", "1")])
    assert job == "given.by-me"
    nodes[0].wait_for_end(job)
    assert ScrapydClient(nodes[2].url, *AUTH).status(job)["currstate"] == "finished"
    assert job in {each["id"] for each in ScrapydClient(nodes[1].url, *AUTH).jobs("toy")["finished"]}
    (tmp_path / "scrapy.cfg").write_text(
        f"[settings]\ndefault = x\n[deploy]\nurl = {nodes[1].url}/\nusername = {AUTH[0]}\npassword = {AUTH[1]}\n"
        "project = toy\n"
    )
    ran = run(tmp_path, "scrapyd-client", "schedule", "-p", "toy", "quick")
    scheduled = re.fullmatch(r"toy / quick => (\w{32})\n", ran.output)
    assert scheduled is not None, ran.output
    nodes[0].wait_for_end(scheduled[1])


# --- Ends -------------------------------------------------------------------------------------------------------------


def test_node_that_ends_or_is_killed_gives_its_jobs_to_the_others_and_leaves_no_process(
    tmp_path: Path, redis_server_of_ours: RedisServer
) -> None:
    limits = {"SCRAPYD_STOP_SECONDS": "2", "SCRAPYD_LEASE_SECONDS": "3"}
    with cluster(tmp_path, redis_server_of_ours.url, 1, prefix="ends", **limits) as running:
        [first] = running.nodes
        first.deploy(toy_egg("1", tmp_path))
        short = first.schedule("slow", note="short", seconds="0.1")
        long = first.schedule("slow", note="long")
        stubborn = first.schedule("stubborn", note="stubborn")
        wait_for(lambda: all(ran(tmp_path, note) for note in ("short", "long", "stubborn")))
        before = pids(tmp_path, "long", "stubborn")
        first.stop()
        assert not any(alive(pid) for pid in before)
        second = running.add()
        [done] = second.wait_for_end(short)
        assert (done["reason"], done["node"].partition(":")[0]) == ("finished", "node1")
        wait_for(lambda: len(ran(tmp_path, "long")) == len(ran(tmp_path, "stubborn")) == 2)
        assert re.search(rf"Started toy/{long} as process \d+, start 2\n", second.log)
        assert {job["id"] for job in second.jobs("running")} == {long, stubborn}
        assert [node["name"] for node in second.get("nodes.json").json["nodes"]] == ["node2"]
        log = second.get(f"logs/toy/slow/{long}.log").text
        assert "INFO: Start 2 of this job, on node2" in log
        second.post("cancel.json", project="toy", job=stubborn, signal="KILL")
        stopped = second.schedule("slow", note="stopped")
        wait_for(lambda: ran(tmp_path, "stopped"))
        first.start()
        wait_for(lambda: len(second.get("nodes.json").json["nodes"]) == 2)
        left = [pid for pid in pids(tmp_path, "long", "stopped") if pid not in before]
        # One is stopped at that moment, as by a terminal that closes.
        os.kill(left[-1], signal.SIGSTOP)
        second.kill()
        os.kill(left[-1], signal.SIGCONT)
        wait_for(lambda: (len(ran(tmp_path, "long")), len(ran(tmp_path, "stopped"))) == (3, 2))
        wait_for(lambda: not any(alive(pid) for pid in left))
        assert {job["id"] for job in first.jobs("running")} == {long, stopped}
        assert [node["name"] for node in first.get("nodes.json").json["nodes"]] == ["node1"]
        assert first.get(f"logs/toy/slow/{stopped}.log").code == 200
        for job in (long, stopped):
            first.post("cancel.json", project="toy", job=job)
        assert [each["reason"] for each in first.wait_for_end(long, stopped)] == ["cancelled"] * 2


@pytest.fixture(scope="module")
def open_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[RedisServer, list[Node]]]:
    """Return a Redis that a test may stop, and two nodes without a password."""
    folder = tmp_path_factory.mktemp("open")
    quick = {"SCRAPYD_LEASE_SECONDS": "3"}
    with RedisServer() as server, cluster(folder, server.url, 2, **quick) as running:
        yield server, running.nodes


def test_node_without_a_password_answers_by_its_own_name_only(open_cluster: tuple[RedisServer, list[Node]]) -> None:
    [node, _] = open_cluster[1]
    for host in ("127.0.0.1", f"localhost:{node.port}", f"[::1]:{node.port}", "node1"):
        assert node.request("listprojects.json", headers={"Host": host}).json["projects"] == []
    for host in (f"evil.example:{node.port}", "127.0.0.1.evil.example", "[", ""):
        form = b"project=toy&spider=slow"
        headers = {"Host": host, "Origin": f"http://{host}"}
        assert node.request("schedule.json", form, headers).code == 403, host
        assert node.request("listprojects.json", headers={"Host": host}).code == 403
        assert node.request("healthz", headers={"Host": host}).code == 200


def test_seconds_without_redis_lose_and_double_nothing(
    open_cluster: tuple[RedisServer, list[Node]], tmp_path: Path
) -> None:
    server, [one, two] = open_cluster
    one.deploy(toy_egg("1", tmp_path))
    ends_meanwhile = one.schedule("slow", note="meanwhile", seconds="3")
    goes_on = two.schedule("slow", note="on", seconds="8")
    waiting = one.schedule("quick", note="seconds")
    one.wait_for_end(waiting)
    wait_for(lambda: ran(tmp_path, "on") and ran(tmp_path, "meanwhile"))
    # At first it takes connections and says nothing, which must not stop a node from answering.
    server._process.send_signal(signal.SIGSTOP)
    assert one.get("healthz").code == 200
    assert two.request("schedule.json", b"project=toy&spider=quick").code == 503
    server.stop()
    refused = one.post("schedule.json", project="toy", spider="quick", jobid="kept")
    assert (refused.code, refused.json["status"]) == (503, "error")
    assert one.get("healthz").code == 200
    wait_for(lambda: one.get("readyz").code == 503)
    assert two.get("jobs").code == 503
    time.sleep(3.5)  # longer than a lease
    server.start()
    for node in (one, two):
        node.wait_until_ready()
    one.schedule("quick", note="after", jobid="kept")
    done = two.wait_for_end(ends_meanwhile, goes_on, "kept")
    assert [each["reason"] for each in done] == ["finished"] * 3
    assert [len(ran(tmp_path, note)) for note in ("meanwhile", "on", "after", "seconds")] == [1, 1, 1, 1]
    counted = {name: int(count) for name, count in server.client.hgetall("{test}:counters").items()}
    assert counted == {b"scheduled": 4, b"started": 4, b"finished": 4}
