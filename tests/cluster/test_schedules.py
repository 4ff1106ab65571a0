"""Recurring jobs: what is due when, and one firing whatever the number of nodes."""

from __future__ import annotations

import re
import threading
import tomllib
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from unittest.mock import Mock
from zoneinfo import ZoneInfo

import pytest
import redis
from scrapyd.config import Config
from scrapyd.exceptions import ConfigError
from twisted.logger import capturedLogs, formatEvent

from moviecrawler.cluster.app import application
from moviecrawler.cluster.cron import Schedule, read_schedules
from moviecrawler.cluster.eggs import Egg
from moviecrawler.cluster.jobs import Outcome, UnknownVersionError
from moviecrawler.cluster.options import NodeOptions
from moviecrawler.cluster.schedules import CronScheduler
from moviecrawler.cluster.state import ClusterState, NodeInfo
from moviecrawler.errors import ConfigurationError
from moviecrawler.options import FrontierOptions
from tests.cluster.nodes import cluster, toy_egg
from tests.conftest import PROJECT as THIS_PROJECT
from tests.waiting import wait_for

PROJECT = "moviecrawler"
THREE = datetime(2026, 3, 2, 3, 0, tzinfo=UTC).timestamp()
MINUTE, HOUR, DAY = 60.0, 3600.0, 86_400.0


class Clock:
    """Shows the time that a test has set."""

    def __init__(self, now: float) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


def written(folder: Path, text: str) -> Path:
    path = folder / "schedules.toml"
    path.write_text(text, "utf-8")
    return path


def one(folder: Path, **fields: object) -> Schedule:
    lines = {"cron": "0 3 * * *", "spider": "imdb", **fields}
    table = "\n".join(f"{name} = {value!r}" for name, value in lines.items())
    (schedule,) = read_schedules(written(folder, f"[schedules.nightly]\n{table}\n"))
    return schedule


@pytest.fixture
def state(redis_url: str) -> ClusterState:
    return ClusterState(NodeOptions(redis_url=redis_url))


class Eggs:
    """The only version there is, which changes when a test deploys another."""

    def __init__(self) -> None:
        self.spiders = ["imdb", "metacritic"]

    def __call__(self, project: str, version: str | None) -> Egg:
        if project != PROJECT or version not in {None, "1"}:
            raise UnknownVersionError(f"version '{version}' not found")
        return Egg(project=project, version="1", sha256="", size=1, spiders=self.spiders, added_at=0)


def keeper(state: ClusterState, *schedules: Schedule, clock: Clock | None, eggs: Eggs | None = None) -> CronScheduler:
    return CronScheduler(state, schedules, eggs or Eggs(), clock=clock)


def begun(state: ClusterState, *schedules: Schedule, eggs: Eggs | None = None) -> tuple[CronScheduler, Clock]:
    """Return what has looked a second before three, and its clock."""
    clock = Clock(THREE - 1)
    node = keeper(state, *schedules, clock=clock, eggs=eggs)
    assert node.check() == pytest.approx(1.0)
    return node, clock


def queued(state: ClusterState) -> list[str]:
    return [pending.job.id for pending in state.pending()]


def finish_all(state: ClusterState) -> None:
    """Take every job and end it, as a node would."""
    node = state.options.node_name
    now = state.now()
    info = NodeInfo(id=node, name=node, url="", slots=9, started_at=now, draining=False, memory=0, processes={})
    state.beat(info, [])
    while (job := state.take(node)) is not None:
        outcome = Outcome(node=node, started_at=now, ended_at=now, reason="finished")
        assert state.settle(node, job, "finished", outcome)


# --- The file ---------------------------------------------------------------------------------------------------------


def test_file_says_what_recurs(tmp_path: Path) -> None:
    text = """
    timezone = "Europe/Berlin"
    [schedules.top]
    cron = "15 3 * * *"
    spider = "imdb"
    arguments = { list = "top", limit = 250 }
    settings = { FRONTIER_RUN = "top" }
    priority = 1
    [schedules.weekly]
    cron = "0 4 * * SUN"
    spider = "metacritic"
    project = "other"
    timezone = "UTC"
    missed = "skip"
    [schedules.off]
    cron = "* * * * *"
    spider = "imdb"
    enabled = false
    """
    top, weekly = read_schedules(written(tmp_path, text))
    assert (top.name, top.project, top.spider, top.priority) == ("top", PROJECT, "imdb", 1.0)
    assert top.job(datetime.now(UTC)).arguments == {"list": "top", "limit": "250"}
    assert top.settings == {"FRONTIER_RUN": "top"}
    assert (weekly.project, weekly.missed) == ("other", "skip")
    assert top.next_tick(THREE).astimezone(ZoneInfo(top.timezone)).strftime("%a %H:%M %Z") == "Tue 03:15 CET"
    assert weekly.next_tick(THREE) == datetime(2026, 3, 8, 4, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[schedules.a", "is wrong: "),
        ("", "is wrong: Object missing required field `schedules`"),
        ("[schedules.a]\nspider = 'imdb'", "schedules.a: Object missing required field `cron`"),
        ("[schedules.a]\ncron = '0 3 * * *'", "schedules.a: Object missing required field `spider`"),
        ("[schedules.a]\ncron = '0 25 * * *'\nspider = 'imdb'", "schedules.a: cron is '0 25 * * *': Bad hour"),
        ("[schedules.a]\ncron = '0 3 * *'\nspider = 'imdb'", "schedules.a: cron is '0 3 * *'; give five fields"),
        ("[schedules.a]\ncron = '0 0 3 * * *'\nspider = 'imdb'", "give five fields"),
        ("[schedules.a]\ncron = '0 3 30 2 *'\nspider = 'imdb'", "schedules.a: cron is '0 3 30 2 *'"),
        ("[schedules.a]\ncron = '0 3 * * *'\nspider = 'imdb'\ntimezone = 'Mars'", "schedules.a: timezone is 'Mars'"),
        ("timezone = '../etc/passwd'\n[schedules.a]\ncron = '0 3 * * *'\nspider = 'imdb'", "'../etc/passwd'"),
        ("[schedules.a]\ncron = '0 3 * * *'\nspider = 'imdb'\nmissed = 'all'", "schedules.a: Invalid enum value 'all'"),
        ("[schedules.a]\ncron = '0 3 * * *'\nspider = 'imdb'\ngrace = 0", "schedules.a: grace is 0.0"),
        (
            "[schedules.a]\ncron = '0 3 * * *'\nspider = 'imdb'\nargs = {}",
            "schedules.a: Object contains unknown field `args`",
        ),
        (f"[schedules.{'n' * 49}]\ncron = '0 3 * * *'\nspider = 'imdb'", "use up to 48 letters"),
        ("[schedules.'a b']\ncron = '0 3 * * *'\nspider = 'imdb'", "the name is 'a b'"),
        ("[schedules.a]\ncron = '0 3 * * *'\nspider = 'imdb'\nsettings = { MY_PASSWORD = 'x' }", "holds a secret"),
        ("[schedules.a]\ncron = '0 3 * * *'\nspider = 'imdb'\nsettings = { FEEDS = '{}' }", "can't be made by a job"),
        ("[schedules.a]\ncron = '0 3 * * *'\nspider = 'imdb'\narguments = { file = '/x' }", "file names a path"),
        ("[schedules.a]\ncron = '0 3 * * *'\nspider = 'imdb'\nproject = '../x'", "schedules.a: project is '../x'"),
    ],
)
def test_wrong_file_is_one_sentence(tmp_path: Path, text: str, expected: str) -> None:
    with pytest.raises(ConfigurationError) as error:
        read_schedules(written(tmp_path, text))
    assert expected in str(error.value)
    assert "schedules.toml" in str(error.value)
    assert "\n" not in str(error.value)


def test_missing_file_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"no\.toml' can't be read"):
        read_schedules(tmp_path / "no.toml")


# --- What is due ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cron", "last", "after", "missed", "late"),
    [
        ("0 3 * * *", -HOUR, -0.001, None, False),
        ("0 3 * * *", -HOUR, 0.0, 0, False),
        ("0 3 * * *", -HOUR, 59.9, 0, False),
        ("0 3 * * *", -HOUR, 60.0, 0, False),
        ("0 3 * * *", -HOUR, 60.1, 0, True),
        ("0 3 * * *", -3 * DAY, 1.0, 2, False),
        ("* * * * *", -35 * DAY, 0.0, 35 * 24 * 60 - 1, False),  # all that is remembered is one firing
    ],
)
def test_due_at_its_time_and_late_after_its_grace_and_missed_times_are_counted(
    tmp_path: Path, cron: str, last: float, after: float, missed: int | None, late: bool
) -> None:
    found = one(tmp_path, cron=cron).due(THREE + last, THREE + after)
    assert (found is None) == (missed is None)
    if found is not None:
        assert (found.tick.timestamp(), found.missed, found.late) == (THREE, missed, late)


def test_time_that_the_clocks_leave_out_comes_right_after(tmp_path: Path) -> None:
    schedule = one(tmp_path, cron="30 2 * * *", timezone="Europe/Berlin")
    before = datetime(2026, 3, 28, 12, 0, tzinfo=UTC).timestamp()
    first = schedule.next_tick(before)
    second = schedule.next_tick(first.timestamp())
    assert first == datetime(2026, 3, 29, 1, 0, tzinfo=UTC)
    assert second == datetime(2026, 3, 30, 0, 30, tzinfo=UTC)


def test_time_that_the_clocks_repeat_comes_once(tmp_path: Path) -> None:
    schedule = one(tmp_path, cron="30 2 * * *", timezone="Europe/Berlin")
    now = datetime(2026, 10, 24, 12, 0, tzinfo=UTC).timestamp()
    ticks = []
    for hour in range(48):  # looked at each hour, also in the one that comes twice
        after = now + hour * HOUR
        tick = schedule.next_tick(after)
        assert tick.timestamp() > after
        ticks.append(tick)
    assert sorted(set(ticks)) == [
        datetime(2026, 10, 25, 0, 30, tzinfo=UTC),
        datetime(2026, 10, 26, 1, 30, tzinfo=UTC),
        datetime(2026, 10, 27, 1, 30, tzinfo=UTC),
    ]


# --- Firing -----------------------------------------------------------------------------------------------------------


def test_two_nodes_fire_once(state: ClusterState, tmp_path: Path) -> None:
    schedules = read_schedules(
        written(tmp_path, "".join(f'[schedules.s{n}]\ncron = "0 3 * * *"\nspider = "imdb"\n' for n in range(50)))
    )
    clock = Clock(THREE - HOUR)
    nodes = [
        keeper(ClusterState(NodeOptions(redis_url=state.options.redis_url, node_name=name)), *schedules, clock=clock)
        for name in ("one", "two")
    ]
    for node in nodes:
        node.check()
    assert queued(state) == []
    clock.now = THREE + 1
    ready = threading.Barrier(2)

    def look(node: CronScheduler) -> None:
        ready.wait()
        for _ in range(3):
            node.check()

    threads = [threading.Thread(target=look, args=(node,)) for node in nodes]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(queued(state)) == sorted(f"s{n}-20260302T0300Z" for n in range(50))
    assert sum(node.counts["fired"] for node in nodes) == 50
    assert state.counters()["scheduled"] == 50


def test_job_is_what_the_file_says(state: ClusterState, tmp_path: Path) -> None:
    node, clock = begun(state, one(tmp_path, version="1", priority=3.0))
    clock.now = THREE
    node.check()
    (pending,) = state.pending()
    job = pending.job
    assert (job.project, job.spider, job.version, job.priority) == (PROJECT, "imdb", "1", 3.0)
    assert job.run == job.id


def test_each_job_fetches_anew_unless_a_run_is_named(tmp_path: Path) -> None:
    name = "n" * 48
    table = 'cron = "0 3 * * *"\nspider = "imdb"\n'
    path = written(
        tmp_path, f'[schedules.{name}]\n{table}[schedules.b]\n{table}settings = {{ FRONTIER_RUN = "shared" }}\n'
    )
    tick = datetime.fromtimestamp(THREE, UTC)
    runs = [schedule.job(tick).run for schedule in read_schedules(path)]
    assert runs == [f"{name}-20260302T0300Z", "shared"]
    for run in runs:
        assert FrontierOptions(url="redis://127.0.0.1", run=run).run == run


def test_schedule_that_is_new_fires_nothing_of_the_past(state: ClusterState, tmp_path: Path) -> None:
    keeper(state, one(tmp_path), clock=Clock(THREE + 5)).check()
    assert queued(state) == []


def test_schedule_does_not_overlap_with_itself(state: ClusterState, tmp_path: Path) -> None:
    node, clock = begun(state, one(tmp_path))
    with capturedLogs() as logged:
        for day in range(3):
            clock.now = THREE + day * DAY
            node.check()
    assert queued(state) == ["nightly-20260302T0300Z"]
    assert node.counts == {"fired": 1, "busy": 2}
    assert [formatEvent(event) for event in logged] == [
        "Schedule nightly: queued job nightly-20260302T0300Z of 2026-03-02 03:00 UTC",
        "Schedule nightly: skipped 2026-03-03 03:00 UTC, as its last job is not over",
        "Schedule nightly: skipped 2026-03-04 03:00 UTC, as its last job is not over",
    ]
    finish_all(state)
    clock.now += DAY
    node.check()
    assert queued(state) == ["nightly-20260305T0300Z"]


@pytest.mark.parametrize(("missed", "jobs"), [("once", ["nightly-20260305T0300Z"]), ("skip", [])])
def test_missed_times_by_rule(state: ClusterState, tmp_path: Path, missed: str, jobs: list[str]) -> None:
    schedule = one(tmp_path, missed=missed)
    node, clock = begun(state, schedule)
    clock.now = THREE + 3 * DAY + HOUR  # four times have passed without a node
    nodes = [node, keeper(state, schedule, clock=clock)]
    for node in nodes:
        node.check()
    assert queued(state) == jobs
    clock.now = THREE + 4 * DAY
    finish_all(state)
    for node in nodes:
        node.check()
    assert queued(state) == ["nightly-20260306T0300Z"]


def test_time_just_missed_still_counts_under_skip(state: ClusterState, tmp_path: Path) -> None:
    node, clock = begun(state, one(tmp_path, missed="skip"))
    clock.now = THREE + 60
    node.check()
    assert queued(state) == ["nightly-20260302T0300Z"]


def test_job_that_was_fired_is_not_fired_again_when_it_is_over(state: ClusterState, tmp_path: Path) -> None:
    node, clock = begun(state, one(tmp_path))
    clock.now = THREE + 1
    node.check()
    finish_all(state)
    for each in (node, keeper(state, one(tmp_path), clock=clock)):
        each.check()
    assert queued(state) == []
    assert state.counters()["scheduled"] == 1


def test_changed_times_begin_anew_beside_the_old_ones(state: ClusterState, tmp_path: Path) -> None:
    clock = Clock(THREE - HOUR)
    old, new = one(tmp_path), one(tmp_path, cron="30 2 * * *")
    nodes = [keeper(state, old, clock=clock), keeper(state, new, clock=clock)]
    for node in nodes:
        node.check()
    clock.now = THREE - HOUR / 2
    for node in nodes:
        node.check()
    finish_all(state)
    clock.now = THREE
    for node in nodes:
        node.check()
    assert queued(state) == ["nightly-20260302T0300Z"]
    assert state.counters()["scheduled"] == 2


def test_job_waits_until_its_spider_is_deployed(state: ClusterState, tmp_path: Path) -> None:
    eggs = Eggs()
    node, clock = begun(state, one(tmp_path, spider="rottentomatoes"), eggs=eggs)
    clock.now = THREE
    with capturedLogs() as logged:
        assert node.check() == pytest.approx(5)
        assert node.check() == pytest.approx(5)
    (text,) = [formatEvent(event) for event in logged]
    assert "no spider 'rottentomatoes'; there are imdb, metacritic; deploy it" in text
    eggs.spiders.append("rottentomatoes")
    node.check()
    assert queued(state) == ["nightly-20260302T0300Z"]


def test_full_queue_loses_no_firing(redis_url: str, tmp_path: Path) -> None:
    state = ClusterState(NodeOptions(redis_url=redis_url, max_pending=1))
    text = "".join(f'[schedules.{n}]\ncron = "0 3 * * *"\nspider = "imdb"\n' for n in "ab")
    node, clock = begun(state, *read_schedules(written(tmp_path, text)))
    clock.now = THREE
    assert node.check() == pytest.approx(5)
    assert queued(state) == ["a-20260302T0300Z"]
    finish_all(state)
    node.check()
    assert queued(state) == ["b-20260302T0300Z"]


def test_what_is_remembered_expires(state: ClusterState, tmp_path: Path) -> None:
    keeper(state, one(tmp_path), clock=Clock(THREE)).check()
    left: Any = state.client.ttl(state.keys.schedule("nightly"))
    assert timedelta(days=34) < timedelta(seconds=left) <= timedelta(days=35)


def test_clock_is_redis_own(state: ClusterState, redis_client: redis.Redis, tmp_path: Path) -> None:
    keeper(state, one(tmp_path), clock=None).check()
    seconds: Any = redis_client.time()
    known: Any = redis_client.hvals(state.keys.schedule("nightly"))
    assert float(known[0]) == pytest.approx(seconds[0], abs=30)


# --- In real nodes ----------------------------------------------------------------------------------------------------


def test_two_real_nodes_run_a_missed_job_once(redis_url: str, tmp_path: Path) -> None:
    path = written(tmp_path, '[schedules.yearly]\ncron = "0 3 1 1 *"\nspider = "quick"\nproject = "toy"\n')
    (schedule,) = read_schedules(path)
    state = ClusterState(NodeOptions(redis_url=redis_url, redis_prefix="scheduled"))
    # As if the nodes had been away since before the first of January.
    last = state.now() - 400 * DAY
    state.client.hset(state.keys.schedule("yearly"), schedule.when, f"{last:.3f}")
    notes = tmp_path / "notes"
    notes.mkdir()
    with cluster(tmp_path, redis_url, 2, prefix="scheduled", SCRAPYD_SCHEDULES_FILE=str(path)) as nodes:
        assert nodes.nodes[0].deploy(toy_egg(notes=notes)).json["status"] == "ok"
        wait_for(lambda: nodes.nodes[1].jobs("finished"), 60, lambda: nodes.nodes[0].log)
        (job,) = nodes.nodes[1].jobs("finished")
        text = [f"queued job {job['id']}" in node.log for node in nodes.nodes]
        assert sorted(text) == [False, True]
        assert "late" in next(node.log for node in nodes.nodes if "queued job" in node.log)
        (listed,) = nodes.nodes[1].get("schedules.json").json["schedules"]
    assert job["id"].startswith("yearly-")
    assert listed["last_job"] == {"id": job["id"], "project": "toy", "status": "finished"}
    assert datetime.fromisoformat(listed["next"]) == schedule.next_tick(state.now())
    assert len(list(notes.iterdir())) == 1
    assert state.counters()["scheduled"] == 1


def test_node_reads_the_file_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path, '[schedules.a]\ncron = "0 3 * * *"\nspider = "imdb"\n')
    loads = Mock(side_effect=tomllib.loads)
    monkeypatch.setattr("tomllib.loads", loads)
    monkeypatch.setenv("REDIS_URL", "redis://127.0.0.1:1/0")
    monkeypatch.setenv("SCRAPYD_SCHEDULES_FILE", str(path))
    application(Config(extra_sources=[str(THIS_PROJECT / "scrapyd" / "scrapyd.conf")]))
    assert loads.call_count == 1


def test_node_does_not_start_with_a_wrong_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path, '[schedules.a]\ncron = "61 * * * *"\nspider = "imdb"\n')
    monkeypatch.setenv("REDIS_URL", "redis://127.0.0.1:1/0")
    with pytest.raises(ConfigError, match=re.escape(f"{path}: schedules.a: cron is '61 * * * *': Bad minute")):
        application(Config({"schedules_file": str(path)}))
