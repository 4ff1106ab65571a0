"""Recurring jobs: what is due when, and one firing whatever the number of nodes."""

from __future__ import annotations

import io
import re
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from unittest.mock import Mock
from zoneinfo import ZoneInfo

import pytest
import redis
from twisted.logger import capturedLogs, formatEvent

from moviecrawler.cluster.cron import Schedule, read_schedules
from moviecrawler.cluster.eggs import Egg, EggStore
from moviecrawler.cluster.jobs import Outcome, UnknownVersionError
from moviecrawler.cluster.options import NodeOptions
from moviecrawler.cluster.schedules import CronScheduler
from moviecrawler.cluster.state import ClusterState, NodeInfo
from moviecrawler.errors import ConfigurationError
from moviecrawler.options import FrontierOptions
from tests.cluster.nodes import cluster, toy_egg
from tests.waiting import wait_for

PROJECT = "moviecrawler"
THREE = datetime(2026, 3, 2, 3, 0, tzinfo=UTC).timestamp()
MINUTE, HOUR, DAY = 60.0, 3600.0, 86_400.0


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


class Cron(CronScheduler):
    """That of a node, at the time that a test has set; 1 is the only version there is, and has the spiders that a test has deployed."""

    def __init__(self, state: ClusterState, *schedules: Schedule, now: float = THREE - 1) -> None:
        self.now, self.spiders = now, ["imdb", "metacritic"]
        super().__init__(state, schedules, self.find, clock=lambda: self.now)
        self.check()

    def find(self, project: str, version: str | None) -> Egg:
        if project != PROJECT or version not in {None, "1"}:
            raise UnknownVersionError(f"version '{version}' not found")
        return Egg(project=project, version="1", sha256="", size=1, spiders=self.spiders, added_at=0)

    def at(self, seconds: float) -> float:
        """Check the clock so many seconds after three; return the seconds until the next check."""
        self.now = THREE + seconds
        return self.check()


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
    version = "1"
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
    job = top.job(datetime.now(UTC))
    assert (job.project, job.spider, job.version, job.priority) == (PROJECT, "imdb", "1", 1.0)
    assert job.arguments == {"list": "top", "limit": "250"}
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
        ("[schedules.a]\ncron = '0 25 * * *'\nspider = 'imdb'", "schedules.a: cron is '0 25 * * *': Bad hour"),
        ("[schedules.a]\ncron = '0 3 * *'\nspider = 'imdb'", "schedules.a: cron is '0 3 * *'; give five fields"),
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


@pytest.mark.parametrize(
    ("day", "expected"),
    [
        ("2026-03-28T12:00", ["2026-03-29T01:00", "2026-03-30T00:30"]),  # what the clocks leave out comes right after
        (
            "2026-10-24T12:00",
            ["2026-10-25T00:30", "2026-10-26T01:30", "2026-10-27T01:30"],
        ),  # what they repeat comes once
    ],
)
def test_time_that_a_change_of_the_clocks_leaves_out_or_repeats_comes_once(
    tmp_path: Path, day: str, expected: list[str]
) -> None:
    schedule = one(tmp_path, cron="30 2 * * *", timezone="Europe/Berlin")
    now = datetime.fromisoformat(f"{day}+00:00").timestamp()
    ticks = set()
    for hour in range(24 * len(expected) - 24):  # looked at each hour, also in the one that comes twice
        after = now + hour * HOUR
        tick = schedule.next_tick(after)
        assert tick.timestamp() > after
        ticks.add(tick)
    assert sorted(ticks) == [datetime.fromisoformat(f"{time}+00:00") for time in expected]


# --- Firing -----------------------------------------------------------------------------------------------------------


def test_two_nodes_fire_once(state: ClusterState, tmp_path: Path) -> None:
    schedules = read_schedules(
        written(tmp_path, "".join(f'[schedules.s{n}]\ncron = "0 3 * * *"\nspider = "imdb"\n' for n in range(50)))
    )
    options = [NodeOptions(redis_url=state.options.redis_url, node_name=name) for name in ("one", "two")]
    nodes = [Cron(ClusterState(own), *schedules, now=THREE - HOUR) for own in options]
    assert queued(state) == []
    ready = threading.Barrier(2)

    def look(node: Cron) -> None:
        ready.wait()
        for _ in range(3):
            node.at(1)

    threads = [threading.Thread(target=look, args=(node,)) for node in nodes]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(queued(state)) == sorted(f"s{n}-20260302T0300Z" for n in range(50))
    assert state.counters()["scheduled"] == 50


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
    assert Cron(state, one(tmp_path), now=THREE - 1).check() == pytest.approx(1.0)
    Cron(state, one(tmp_path, cron="0 2 * * *"), now=THREE)
    assert queued(state) == []


def test_schedule_does_not_overlap_with_itself(state: ClusterState, tmp_path: Path) -> None:
    node = Cron(state, one(tmp_path))
    with capturedLogs() as logged:
        for day in range(3):
            node.at(day * DAY)
    assert queued(state) == ["nightly-20260302T0300Z"]
    assert [formatEvent(event) for event in logged] == [
        "Schedule nightly: queued job nightly-20260302T0300Z of 2026-03-02 03:00 UTC",
        "Schedule nightly: skipped 2026-03-03 03:00 UTC, as its last job is not over",
        "Schedule nightly: skipped 2026-03-04 03:00 UTC, as its last job is not over",
    ]
    finish_all(state)
    node.at(3 * DAY)
    assert queued(state) == ["nightly-20260305T0300Z"]


@pytest.mark.parametrize(
    ("missed", "jobs", "text"),
    [
        ("once", ["nightly-20260305T0300Z"], "queued job nightly-20260305T0300Z of 2026-03-05 03:00 UTC late"),
        ("skip", [], "skipped 2026-03-05 03:00 UTC, which was missed"),
    ],
)
def test_missed_times_by_rule(state: ClusterState, tmp_path: Path, missed: str, jobs: list[str], text: str) -> None:
    schedule = one(tmp_path, missed=missed)
    nodes = [Cron(state, schedule)]
    with capturedLogs() as logged:
        nodes[0].at(3 * DAY + HOUR)  # four times have passed without a node
    assert [formatEvent(event) for event in logged] == [f"Schedule nightly: {text}, and skipped 3 before it"]
    nodes.append(Cron(state, schedule, now=nodes[0].now))
    assert queued(state) == jobs
    finish_all(state)
    for node in nodes:
        node.at(4 * DAY)
    assert queued(state) == ["nightly-20260306T0300Z"]


def test_job_that_was_fired_is_not_fired_again_when_it_is_over(state: ClusterState, tmp_path: Path) -> None:
    node = Cron(state, one(tmp_path))
    node.at(1)
    finish_all(state)
    node.at(1)
    Cron(state, one(tmp_path), now=THREE + 1)
    state.client.hset(state.keys.schedule("nightly"), one(tmp_path).when, f"{THREE - 1:.3f}")  # as if that were lost
    node.at(1)
    assert queued(state) == []
    assert state.counters()["scheduled"] == 1


def test_changed_times_begin_anew_beside_the_old_ones(state: ClusterState, tmp_path: Path) -> None:
    nodes = [Cron(state, one(tmp_path, **cron), now=THREE - HOUR) for cron in ({}, {"cron": "30 2 * * *"})]
    for seconds in (-HOUR / 2, 0):
        finish_all(state)
        for node in nodes:
            node.at(seconds)
    assert queued(state) == ["nightly-20260302T0300Z"]
    assert state.counters()["scheduled"] == 2


def test_job_waits_until_its_spider_is_deployed(state: ClusterState, tmp_path: Path) -> None:
    node = Cron(state, one(tmp_path, spider="rottentomatoes"))
    with capturedLogs() as logged:
        assert node.at(0) == node.check() == pytest.approx(5)
    (text,) = [formatEvent(event) for event in logged]
    assert "no spider 'rottentomatoes'; there are imdb, metacritic; deploy it" in text
    node.spiders.append("rottentomatoes")
    node.check()
    assert queued(state) == ["nightly-20260302T0300Z"]


def test_full_queue_loses_no_firing(redis_url: str, tmp_path: Path) -> None:
    state = ClusterState(NodeOptions(redis_url=redis_url, max_pending=1))
    text = "".join(f'[schedules.{n}]\ncron = "0 3 * * *"\nspider = "imdb"\n' for n in "ab")
    node = Cron(state, *read_schedules(written(tmp_path, text)))
    assert node.at(0) == pytest.approx(5)
    assert queued(state) == ["a-20260302T0300Z"]
    finish_all(state)
    node.check()
    assert queued(state) == ["b-20260302T0300Z"]


def test_what_is_remembered_expires(state: ClusterState, tmp_path: Path) -> None:
    Cron(state, one(tmp_path))
    left: Any = state.client.ttl(state.keys.schedule("nightly"))
    assert timedelta(days=34) < timedelta(seconds=left) <= timedelta(days=35)


def test_clock_is_redis_own(state: ClusterState, redis_client: redis.Redis, tmp_path: Path) -> None:
    CronScheduler(state, [one(tmp_path)], Mock()).check()
    seconds: Any = redis_client.time()
    known: Any = redis_client.hvals(state.keys.schedule("nightly"))
    assert float(known[0]) == pytest.approx(seconds[0], abs=30)


# --- In a real node ---------------------------------------------------------------------------------------------------


def test_real_node_runs_a_missed_job(redis_url: str, tmp_path: Path) -> None:
    path = written(tmp_path, '[schedules.yearly]\ncron = "0 3 1 1 *"\nspider = "quick"\nproject = "toy"\n')
    (schedule,) = read_schedules(path)
    state = ClusterState(NodeOptions(redis_url=redis_url, redis_prefix="scheduled", eggs_dir=str(tmp_path / "eggs")))
    # As if no node had been there since before the first of January.
    last = state.now() - 400 * DAY
    state.client.hset(state.keys.schedule("yearly"), schedule.when, f"{last:.3f}")
    EggStore(state).put(io.BytesIO(toy_egg(notes=tmp_path)), "toy", "1")
    with cluster(tmp_path, redis_url, 1, prefix="scheduled", SCRAPYD_SCHEDULES_FILE=str(path)) as running:
        [node] = running.nodes
        wait_for(lambda: node.jobs("finished"), 60, lambda: node.log)
        (job,) = node.jobs("finished")
        assert re.search(f"Schedule yearly: queued job {job['id']} of .* late", node.log)
        (listed,) = node.get("schedules.json").json["schedules"]
    assert job["id"].startswith("yearly-")
    assert listed["last_job"] == {"id": job["id"], "project": "toy", "status": "finished"}
    assert datetime.fromisoformat(listed["next"]) == schedule.next_tick(state.now())
    assert state.counters()["scheduled"] == 1
