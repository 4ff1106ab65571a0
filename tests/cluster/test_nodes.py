"""Nodes on one Redis: any of them takes any job and answers for all."""

import ast
import html
import re
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
import redis
from scrapyd_client import ScrapydClient

from moviecrawler.cluster.jobs import RESULTS
from moviecrawler.sites import SITES
from tests.checkout import run
from tests.services.nodes import (
    AUTH,
    DEPLOY_PASSWORD,
    Node,
    alive,
    name_of,
    project_egg,
    ran,
    toy_egg,
)
from tests.services.postgres import away
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
    assert f"DATABASE_URL={one.environment['DATABASE_URL']}\n" in environment
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
    settings = {"FRONTIER_RUN": "of-settings"}
    running = [
        one.schedule("slow", project="other", settings=settings, note="running0"),
        two.schedule("slow", settings=settings, note="running1"),
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
    # That of the node whose jobs are interpreters that start; each job has the same secrets.
    [started] = [each["id"] for each in one.jobs("running") if name_of(each) == one.name]
    assert started in listed
    secrets = ("of-settings", "running0", "running1", AUTH[1])
    assert not [secret for secret in secrets if secret in listed]


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
    with away(one.environment["DATABASE_URL"]):
        jobs = [
            one.schedule("metacritic", **film),
            two.schedule("metacritic", "moviecrawler", list="nonsense"),
            two.schedule("metacritic", settings={"FRONTIER_LEASE": "0"}, **film),
        ]
        unstored, argument, setting = one.wait_for_end(*jobs)
    assert unstored["reason"].startswith("store_unavailable: postgres can't be used, so nothing is")
    assert (unstored["result"], unstored["exit_code"]) == ("failed", 1)
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
        time.sleep(3)
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
