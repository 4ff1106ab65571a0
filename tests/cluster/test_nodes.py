"""Three nodes on one Redis: any of them takes any job and answers for all."""

from __future__ import annotations

import ast
import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from scrapyd_client import ScrapydClient

from moviecrawler.cluster.state import EVENTS
from tests.cluster.nodes import Cluster, Node, alive, cluster, toy_egg
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
        "SCRAPYD_MAX_DEATHS": "1",
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


@pytest.fixture(scope="module")
def whole(nodes: list[Node]) -> dict[str, Any]:
    """Return how a job with strange arguments has ended."""
    sent = nodes[0].post("schedule.json", project="toy", spider="quick", note="whole", **HOSTILE)
    [done] = nodes[1].wait_for_end(sent.json["jobid"])
    return done


def ran(notes: Path, prefix: str) -> list[str]:
    return sorted(path.name for path in notes.glob(f"{prefix}-*"))


def test_deployed_through_one_scheduled_through_another_cancelled_through_a_third(
    nodes: list[Node], notes: Path
) -> None:
    one, two, three = nodes
    assert one.deploy(toy_egg("2", notes), version="2").json["spiders"] == 7
    for node in nodes:
        assert node.get("listprojects.json").json["projects"] == ["toy"]
        assert node.get("listversions.json", project="toy").json["versions"][-1] == "2"
        assert "slow" in node.get("listspiders.json", project="toy").json["spiders"]
    job = two.schedule("slow", note="cancelled")
    wait_for(lambda: ran(notes, "cancelled"))
    wait_for(lambda: three.jobs("running")[0]["pid"] is not None)
    [running] = [each for each in three.jobs("running") if each["id"] == job]
    for node in nodes:
        assert node.get("status.json", job=job).json["currstate"] == "running"
        assert node.get("daemonstatus.json").json["running"] == 1
    assert three.post("cancel.json", project="toy", job=job).json["prevstate"] == "running"
    [done] = one.wait_for_end(job)
    assert done["reason"] == "cancelled"
    assert done["node"] == running["node"]
    assert not alive(running["pid"])
    assert three.post("cancel.json", project="toy", job=job).json["prevstate"] is None


@pytest.mark.parametrize("count", [8, pytest.param(30, marks=pytest.mark.long)])
def test_jobs_run_across_all_nodes_and_none_twice(nodes: list[Node], notes: Path, count: int) -> None:
    jobs = [nodes[0].schedule("quick", note=f"of{count}-{number:02}") for number in range(count)]
    done = nodes[1].wait_for_end(*jobs)
    assert Counter(each["reason"] for each in done) == {"finished": count}
    assert [each["items"] for each in done] == [1] * count
    assert len({each["node"] for each in done}) == 3
    assert len(ran(notes, f"of{count}-*")) == count
    # Nobody's poller has died of a job that another node was faster to take.
    for node in nodes:
        assert "Traceback" not in node.log


def test_result_tells_how_a_job_ended(nodes: list[Node]) -> None:
    jobs = [nodes[0].schedule("quick", x="1"), nodes[0].schedule("nonsense"), nodes[0].schedule("lost")]
    good, bad, worse = nodes[2].wait_for_end(*jobs)
    assert (good["reason"], good["items"], good["errors"], good["pages"], good["bytes"]) == ("finished", 1, 0, 0, 0)
    assert 0 < good["seconds"] < 60
    assert good["args"] == {"x": "1"}
    assert bad["reason"].startswith("exit code 1: ")
    assert "NONSENSE" in bad["reason"]
    assert bad["items"] is None
    # That stands in the spider's log only.
    assert worse["reason"].startswith("exit code 1: NameError: Module 'toy' doesn't define any object named 'nowhere'")
    # Why it ended stands in the log, too.
    assert "NONSENSE" in nodes[0].get(bad["log_url"].lstrip("/")).text


def test_job_runs_the_version_that_it_names_and_else_the_latest(nodes: list[Node], notes: Path) -> None:
    for version in ("3", "4"):
        nodes[0].deploy(toy_egg(version, notes), version=version)
    jobs = [nodes[1].schedule("quick", note="named", _version="3"), nodes[1].schedule("quick", note="latest")]
    assert [done["version"] for done in nodes[0].wait_for_end(*jobs)] == ["3", "4"]
    told = [(notes / ran(notes, note)[0]).read_text().splitlines()[0] for note in ("named", "latest")]
    assert told == ["3", "4"]
    for path in ("schedule.json", "listspiders.json"):
        asked = nodes[2].post if path == "schedule.json" else nodes[2].get
        assert asked(path, project="toy", spider="quick", _version="9").json["message"] == "version '9' not found"


def test_version_and_project_that_are_deleted_are_gone_for_all(nodes: list[Node], notes: Path) -> None:
    nodes[0].deploy(toy_egg("1", notes), project="other", version="1")
    nodes[0].deploy(toy_egg("2", notes), project="other", version="2")
    assert nodes[1].post("delversion.json", project="other", version="2").json["status"] == "ok"
    assert nodes[2].get("listversions.json", project="other").json["versions"] == ["1"]
    for node in nodes:
        node.get("logs")  # which is there before any job was
    slow = nodes[0].schedule("slow", project="other", note="deleted")
    wait_for(lambda: ran(notes, "deleted"))
    wait_for(lambda: nodes[0].jobs("running")[0]["version"] == "1")
    assert nodes[2].post("delproject.json", project="other").json["status"] == "ok"
    # What runs is still there to be asked for, listed and cancelled.
    assert nodes[0].get("status.json", job=slow).json["currstate"] == "running"
    assert nodes[1].get("status.json", job=slow, project="other").json["currstate"] == "running"
    assert [job["id"] for job in nodes[1].get("listjobs.json", project="other").json["running"]] == [slow]
    assert nodes[2].post("cancel.json", project="other", job=slow).json["prevstate"] == "running"
    assert nodes[0].wait_for_end(slow)[0]["reason"] == "cancelled"
    for answer in (nodes[0].get("status.json", job="x", project="no"), nodes[0].get("listjobs.json", project="no")):
        assert answer.json["message"] == "project 'no' not found"
    assert nodes[0].post("cancel.json", project="no", job="x").json["message"] == "project 'no' not found"
    assert nodes[0].get("listprojects.json").json["projects"] == ["toy"]
    gone = nodes[0].post("schedule.json", project="other", spider="quick").json
    assert (gone["status"], gone["message"]) == ("error", "project 'other' not found")


def test_spider_gets_its_arguments_and_the_stores_secrets_and_not_the_node_s(
    whole: dict[str, Any], notes: Path
) -> None:
    assert (whole["reason"], whole["items"]) == ("finished", 1)
    assert whole["args"] == {"note": "whole", **HOSTILE}
    assert len(ran(notes, "whole")) == 1
    assert ast.literal_eval((notes / "whole.arguments").read_text()) == {"note": "whole", **HOSTILE}
    told = (notes / ran(notes, "whole")[0]).read_text()
    assert "DATABASE_URL=postgresql://store:of-the-stores@" in told
    assert "SCRAPYD_" not in told
    assert AUTH[1] not in told


def test_arguments_and_settings_show_in_no_list_of_processes(nodes: list[Node], notes: Path) -> None:
    job = nodes[0].schedule("slow", settings={"FRONTIER_RUN": "of-settings"}, note="unseen")
    wait_for(lambda: ran(notes, "unseen"))
    listed = subprocess.run(["ps", "axww", "-o", "args"], capture_output=True, text=True, check=True).stdout
    assert job in listed
    assert "of-settings" not in listed
    assert "unseen" not in listed
    assert AUTH[1] not in listed
    nodes[1].post("cancel.json", project="toy", job=job, signal="KILL")
    [done] = nodes[2].wait_for_end(job)
    assert done["reason"] == "cancelled"


def test_log_of_any_node_is_had_from_every_node(nodes: list[Node], whole: dict[str, Any]) -> None:
    path = whole["log_url"].lstrip("/")
    logs = {node.get(path).text for node in nodes}
    assert len(logs) == 1
    log = logs.pop()
    assert "a quick spider of version" in log
    for node in nodes:
        end = node.request(path, headers={"Range": "bytes=-100"})
        assert (end.code, end.text) == (206, log[-100:])
        longer = node.request(path, headers={"Range": f"bytes=-{len(log.encode()) + 1}"})
        assert (longer.code, longer.text) == (200, log)
    missing = nodes[0].get("logs/toy/quick/nothing.log")
    assert (missing.code, missing.json["message"]) == (404, "there is no such log")
    for path in ("logs/../node.log", "logs/%2e%2e/node.log", "logs/toy/..%2f..%2f/node.log", "logs/toy/%2e%2e/x.log"):
        assert nodes[0].get(path).code in {404, 403}, path


def test_spider_that_dies_is_started_again_and_then_given_up(nodes: list[Node]) -> None:
    [done] = nodes[0].wait_for_end(nodes[0].schedule("dying"))
    assert done["reason"] == "gave up: it was started 2 times; the last end: killed by signal 9"


def test_nodes_tell_of_themselves(nodes: list[Node], notes: Path) -> None:
    job = nodes[0].schedule("slow", note="told")
    wait_for(lambda: ran(notes, "told"))
    wait_for(lambda: sum(len(node["processes"]) for node in nodes[1].get("nodes.json").json["nodes"]) == 1)
    told = nodes[1].get("nodes.json").json["nodes"]
    assert [node["name"] for node in told] == ["node1", "node2", "node3"]
    assert [node["url"] for node in told] == [node.url for node in nodes]
    assert [key for node in told for key in node["running"]] == [f"toy/{job}"]
    assert all(0 < node["memory"] <= 120 * 1024**2 for node in told), told
    assert all(node["heard_seconds_ago"] < 12 for node in told)
    figures = nodes[2].get("metrics").text
    assert "moviecrawler_slots 3.0" in figures
    assert "moviecrawler_jobs_running 1.0" in figures
    assert re.search(r'moviecrawler_jobs_total\{event="finished"\} \d', figures)
    # What has not happened yet is told as 0: of a series that begins later, Prometheus sees no increase.
    told = re.findall(r'moviecrawler_jobs_total\{event="(\w+)"\}', figures)
    assert told == sorted(EVENTS)
    assert "moviecrawler_nodes_lost_total 0.0" in figures


def test_priority_decides_while_slots_are_taken(nodes: list[Node], notes: Path) -> None:
    slow = [nodes[0].schedule("slow", note=f"filling{number}") for number in range(3)]
    wait_for(lambda: len(ran(notes, "filling*")) == 3)
    low = nodes[0].schedule("slow", priority="-1")
    high = nodes[1].schedule("slow", priority="5")
    pending = nodes[2].jobs("pending")
    assert [job["id"] for job in pending] == [high, low]
    assert pending[0]["args"] == {}
    assert nodes[2].post("cancel.json", project="toy", job=low).json["prevstate"] == "pending"
    nodes[1].post("cancel.json", project="toy", job=slow[0])
    wait_for(lambda: nodes[0].get("status.json", job=high).json["currstate"] == "running")
    assert nodes[0].get("status.json", job=low).json["currstate"] is None


COLUMNS = ["Project", "Spider", "Job", "PID", "Start", "Runtime", "Finish", "Log", "Items", "Cancel"]


def test_page_of_jobs_begins_with_scrapyd_s_columns(nodes: list[Node]) -> None:
    """Clients read them by their places, as scrapydweb does."""
    done = nodes[0].schedule("quick", note="columns")
    nodes[0].wait_for_end(done)
    runs = [nodes[0].schedule("slow", note=f"columns{number}") for number in range(4)]
    wait_for(lambda: any(job["id"] in runs for job in nodes[0].jobs("running")))
    wait_for(lambda: all(job["pid"] for job in nodes[0].jobs("running")))
    page = nodes[1].get("jobs").text
    assert re.findall("<th>(.*?)</th>", page)[:10] == COLUMNS
    rows = [re.findall("<td>(.*?)</td>", row) for row in re.findall("<tr>(<td>.*?)</tr>", page)]
    jobs = {row[2]: dict(zip(COLUMNS, row, strict=False)) for row in rows if row[2] in {done, *runs}}
    waiting = [job for job in runs if not jobs[job]["Start"]]
    assert waiting
    for run in waiting:
        names = {"Project": "toy", "Spider": "slow", "Job": run, "Cancel": jobs[run]["Cancel"]}
        assert jobs[run] == {**dict.fromkeys(COLUMNS, ""), **names}
    began = [job for job in jobs.values() if job["Start"]]
    assert len(began) == 5 - len(waiting) > 1
    for job in began:
        datetime.strptime(job["Start"], "%Y-%m-%d %H:%M:%S")  # noqa: DTZ007 - as clients read it
        assert re.fullmatch(r"\d:\d\d:\d\d", job["Runtime"])
        assert f"/logs/toy/{job['Spider']}/{job['Job']}.log" in job["Log"]
        assert job["Items"] == ""
        assert bool(job["PID"]) == (job["Job"] != done) == bool(job["Cancel"]) == (not job["Finish"])


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
    told = {}
    for command in ("projects", "spiders", "schedule"):
        arguments = {"projects": [], "spiders": ["-p", "*"], "schedule": ["-p", "toy", "quick"]}[command]
        ended = subprocess.run(
            [str(Path(sys.executable).with_name("scrapyd-client")), command, *arguments],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert ended.returncode == 0, ended.stdout + ended.stderr
        told[command] = ended.stdout
    assert told["projects"] == "toy\n"
    assert told["spiders"] == "toy:\n  dying\n  hanging\n  lost\n  nonsense\n  quick\n  slow\n  stubborn\n"
    scheduled = re.fullmatch(r"toy / quick => (\w{32})\n", told["schedule"])
    assert scheduled is not None
    nodes[0].wait_for_end(scheduled[1])


# --- Ends -------------------------------------------------------------------------------------------------------------


@pytest.fixture
def small(tmp_path: Path, redis_server_of_ours: RedisServer, request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """Return a cluster of its own, whose nodes a test may end."""
    prefix = re.sub(r"\W", "", request.node.name)[:60]
    limits = {"SCRAPYD_DRAIN_SECONDS": "2", "SCRAPYD_STOP_SECONDS": "3"}
    with cluster(tmp_path, redis_server_of_ours.url, 1, prefix=prefix, **limits) as running:
        running.nodes[0].deploy(toy_egg("1", tmp_path))
        yield running


def test_node_that_is_told_to_end_hands_back_and_leaves_no_process(small: Cluster, tmp_path: Path) -> None:
    first = small.nodes[0]
    short = first.schedule("slow", note="short", seconds="0.5")
    long = first.schedule("slow", note="long")
    stubborn = first.schedule("stubborn", note="stubborn")
    wait_for(lambda: all(ran(tmp_path, note) for note in ("short", "long", "stubborn")))
    pids = [int(name.rpartition("-")[2]) for note in ("long", "stubborn") for name in ran(tmp_path, note)]
    first.stop()
    assert not any(alive(pid) for pid in pids)
    second = small.add()
    [done] = second.wait_for_end(short)
    assert (done["reason"], done["node"].partition(":")[0]) == ("finished", "node1")
    wait_for(lambda: len(ran(tmp_path, "long")) == len(ran(tmp_path, "stubborn")) == 2)
    # What the node that is gone has of its log can't be had, and that is said where it would stand.
    log = second.get(f"logs/toy/slow/{long}.log").text
    assert log.startswith("[start 1 to 1 of this log: on node1, which is down]\n")
    assert "INFO: Start 2 of this job, on node2" in log
    first.start()
    wait_for(lambda: len(second.get("nodes.json").json["nodes"]) == 2)
    whole = {node.get(f"logs/toy/slow/{long}.log").text for node in (first, second)}
    assert len(whole) == 1
    before, _, after = whole.pop().partition("INFO: Start 2 of this job, on node2")
    assert "Spider opened" in before
    assert "Spider opened" in after
    first.stop()
    assert {job["id"] for job in second.jobs("running")} == {long, stubborn}
    assert second.get("nodes.json").json["nodes"][0]["name"] == "node2"
    for job in (long, stubborn):
        second.post("cancel.json", project="toy", job=job, signal="KILL")
    second.wait_for_end(long, stubborn)
    assert "given up" not in second.log


def test_node_that_is_killed_gives_its_jobs_to_the_others_and_its_spiders_end(small: Cluster, tmp_path: Path) -> None:
    first = small.nodes[0]
    jobs = [first.schedule("slow", note=note) for note in ("moved", "stopped")]
    wait_for(lambda: ran(tmp_path, "moved") and ran(tmp_path, "stopped"))
    pids = [int(ran(tmp_path, note)[0].rpartition("-")[2]) for note in ("moved", "stopped")]
    second = small.add()
    # One is stopped at that moment, as by a terminal that closes.
    os.kill(pids[1], signal.SIGSTOP)
    first.kill()
    os.kill(pids[1], signal.SIGCONT)
    wait_for(lambda: len(ran(tmp_path, "moved")) == len(ran(tmp_path, "stopped")) == 2)
    wait_for(lambda: not any(alive(pid) for pid in pids))
    assert {running["id"] for running in second.jobs("running")} == set(jobs)
    assert [node["name"] for node in second.get("nodes.json").json["nodes"]] == ["node2"]
    assert second.get(f"logs/toy/slow/{jobs[0]}.log").code == 200
    for job in jobs:
        second.post("cancel.json", project="toy", job=job)
    second.wait_for_end(*jobs)


NO_PROCESSES = """
import os
from functools import partial


def unless_full(start, *arguments, **more):
    if os.path.exists("full"):
        raise BlockingIOError(11, "Resource temporarily unavailable")
    return start(*arguments, **more)


for name in ("fork", "posix_spawn", "posix_spawnp"):
    setattr(os, name, partial(unless_full, getattr(os, name)))
"""


@pytest.fixture(scope="module")
def open_node(tmp_path_factory: pytest.TempPathFactory, redis_server_of_ours: RedisServer) -> Iterator[Node]:
    """Return a node without a password, which can start no process while a file `full` is in its folder."""
    folder = tmp_path_factory.mktemp("open")
    (folder / "sitecustomize.py").write_text(NO_PROCESSES)
    options = {"PYTHONPATH": str(folder), "SCRAPYD_MAX_DEATHS": "0"}
    with cluster(folder, redis_server_of_ours.url, 1, prefix="open", **options) as running:
        running.nodes[0].deploy(toy_egg("1", folder))
        yield running.nodes[0]


def test_node_that_can_start_no_process_gives_no_job_up(open_node: Node) -> None:
    full = open_node.folder / "full"
    full.touch()
    job = open_node.schedule("quick", note="after")
    wait_for(lambda: open_node.log.count("can't be started here: [Errno 11]") > 1, told=lambda: open_node.log)
    assert not ran(open_node.folder.parent, "after")
    full.unlink()
    [done] = open_node.wait_for_end(job)
    assert done["reason"] == "finished"


def test_node_without_a_password_answers_by_its_own_name_only(open_node: Node) -> None:
    node = open_node
    for host in ("127.0.0.1", f"localhost:{node.port}", f"[::1]:{node.port}", "node1"):
        assert node.request("listprojects.json", headers={"Host": host}).json["projects"] == ["toy"]
    for host in (f"evil.example:{node.port}", "127.0.0.1.evil.example", "[", ""):
        form = b"project=toy&spider=slow"
        headers = {"Host": host, "Origin": f"http://{host}"}
        assert node.request("schedule.json", form, headers).code == 403, host
        assert node.request("listprojects.json", headers={"Host": host}).code == 403
        assert node.request("healthz", headers={"Host": host}).code == 200
    assert node.jobs("pending") == node.jobs("running") == []


def test_seconds_without_redis_lose_and_double_nothing(tmp_path: Path) -> None:
    with RedisServer() as server, cluster(tmp_path, server.url, 2) as running:
        one, two = running.nodes
        one.deploy(toy_egg("1", tmp_path))
        ends_meanwhile = one.schedule("slow", note="meanwhile", seconds="3")
        goes_on = two.schedule("slow", note="on", seconds="9")
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
        time.sleep(5)  # longer than a lease
        server.start()
        for node in running.nodes:
            node.wait_until_ready()
        one.schedule("quick", note="after", jobid="kept")
        done = two.wait_for_end(ends_meanwhile, goes_on, "kept")
        assert [each["reason"] for each in done] == ["finished"] * 3
        assert [len(ran(tmp_path, note)) for note in ("meanwhile", "on", "after", "seconds")] == [1, 1, 1, 1]
        counted = {name: int(count) for name, count in server.client.hgetall("{test}:counters").items()}
        assert counted == {b"scheduled": 4, b"started": 4, b"finished": 4}
