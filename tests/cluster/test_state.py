"""The cluster's state in a real Redis: nothing is lost, nothing is done twice at once."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from itertools import islice
from typing import Any

import msgspec
import pytest
import redis

from moviecrawler.cluster.jobs import Job, Outcome, QueueFullError, RunEnd
from moviecrawler.cluster.options import NodeOptions
from moviecrawler.cluster.state import EVENTS, NODE_LOST, ClusterState, LeaseLostError, NodeInfo, Process
from tests.waiting import wait_for


@pytest.fixture
def state(redis_url: str) -> Iterator[ClusterState]:
    made = ClusterState(NodeOptions(redis_url=redis_url, max_deaths=2, finished_to_keep=5))
    yield made
    made.client.close()


def job(number: int = 1, project: str = "movies", priority: float = 0.0, **arguments: str) -> Job:
    return Job(project=project, spider="imdb", id=f"job{number}", arguments=arguments, priority=priority)


def info(node: str, **processes: Process) -> NodeInfo:
    url = "http://127.0.0.1:1"
    return NodeInfo(id=node, name=node, url=url, slots=6, started_at=0, draining=False, memory=1, processes=processes)


def outcome(node: str, reason: str = "finished", ended_at: float = 2000.0) -> Outcome:
    return Outcome(node=node, started_at=1000.0, ended_at=ended_at, reason=reason, items=3)


def dies(state: ClusterState, node: str, other: str | None = None) -> None:
    """Let a node's lease end; the next heartbeat, of another one if it is named, finds it out."""
    state.client.zadd(state.keys.nodes, {node: state.now() * 1000 - 1})
    if other is not None:
        held = [running.job.key for running in state.running() if running.node == other]
        assert node in state.beat(info(other), held).dead


def a_takes_a_job(state: ClusterState, *others: str) -> None:
    """Let node a take the only job; other nodes live, too."""
    for node in ("a", *others):
        state.beat(info(node), [])
    state.schedule(job())
    assert state.take("a") is not None


# --- The queue --------------------------------------------------------------------------------------------------------


def reason(state: ClusterState) -> str:
    """Return why the job that is over last has ended."""
    done = state.finished(count=1)[0].outcome
    assert done is not None
    return done.reason


def test_higher_priority_goes_first_and_among_equals_who_came_first(state: ClusterState) -> None:
    for number, priority in enumerate([0.0, 5.5, 0.0, -1.0, 5.5, 1e14]):
        assert state.schedule(job(number, priority=priority))
    assert [pending.job.id for pending in state.pending()] == ["job5", "job1", "job4", "job0", "job2", "job3"]
    assert [pending.job.id for pending in state.pending(first=1, count=2)] == ["job1", "job4"]
    state.beat(info("a"), [])
    taken = [state.take("a") for _ in range(6)]
    assert [each and each.id for each in taken] == ["job5", "job1", "job4", "job0", "job2", "job3"]
    assert state.take("a") is None


def test_job_that_is_sent_twice_is_queued_once(state: ClusterState) -> None:
    assert state.schedule(job(1, ids="tt1"))
    assert state.schedule(job(1, ids="tt1"))
    assert state.counts().pending == 1
    assert not state.schedule(job(1, ids="tt2"))
    state.beat(info("a"), [])
    state.take("a")
    assert state.schedule(job(1, ids="tt1"))
    assert state.counts() == (0, 1, 0)


def test_job_that_is_over_is_queued_anew(state: ClusterState) -> None:
    a_takes_a_job(state)
    state.settle("a", job(), "finished", outcome("a"))
    assert state.counts() == (0, 0, 1)
    assert state.schedule(job())
    assert state.counts() == (1, 0, 0)
    assert state.state_of("job1", "movies") == "pending"


def test_queue_has_a_bound(redis_url: str) -> None:
    small = ClusterState(NodeOptions(redis_url=redis_url, max_pending=2))
    assert small.schedule(job(1))
    assert small.schedule(job(2))
    with pytest.raises(QueueFullError, match="2 jobs are pending"):
        small.schedule(job(3))
    small.client.close()


def test_ids_of_two_projects_do_not_meet(state: ClusterState) -> None:
    state.schedule(job(1, "one"))
    state.schedule(job(1, "other"))
    assert [pending.job.project for pending in state.pending("other")] == ["other"]
    assert [state.knows_jobs_of(project) for project in ("one", "other", "on")] == [True, True, False]
    assert state.cancel("one", "job1") == "pending"
    assert state.state_of("job1", "one") is None
    assert state.state_of("job1") == "pending"


def test_finished_jobs_are_kept_up_to_the_limit_latest_first(state: ClusterState) -> None:
    state.beat(info("a"), [])
    for number in range(7):
        state.schedule(job(number))
        state.take("a")
        state.settle("a", job(number), "finished", outcome("a", ended_at=2000 + number))
        time.sleep(0.002)  # they are told apart by the millisecond
    done = state.finished()
    assert [each.job.id for each in done] == ["job6", "job5", "job4", "job3", "job2"]
    assert done[0].outcome == outcome("a", ended_at=2006)
    assert state.client.hlen(state.keys.results) == 5
    assert state.client.hlen(state.keys.jobs) == state.client.hlen(state.keys.places) == 0


# --- Leases -----------------------------------------------------------------------------------------------------------


def test_node_without_a_lease_gets_no_job(state: ClusterState) -> None:
    state.schedule(job())
    with pytest.raises(LeaseLostError):
        state.take("a")
    state.beat(info("a"), [])
    dies(state, "a")
    with pytest.raises(LeaseLostError):
        state.take("a")
    assert state.counts().pending == 1


def test_dead_node_s_job_goes_back_to_its_place_and_its_late_word_is_not_heard(state: ClusterState) -> None:
    for node in "ab":
        state.beat(info(node), [])
    for number in (1, 2):
        state.schedule(job(number))
    first = state.take("a")
    assert first is not None
    assert 0 < state.now() - first.queued_at < 60
    dies(state, "a", "b")
    assert [pending.job.id for pending in state.pending()] == ["job1", "job2"]
    assert state.counters()[NODE_LOST] == 1
    assert [start.node for start in state.starts(first.key)] == ["a"]
    assert state.take("b") == msgspec.structs.replace(first, start=2)  # also as to when it was queued
    assert not state.settle("a", job(1), "died", outcome("a"))
    assert not state.settle("a", job(1), "finished", outcome("a"))
    assert [running.node for running in state.running()] == ["b"]
    assert [(start.node, start.number) for start in state.starts(first.key)] == [("a", 1), ("b", 2)]


def test_job_that_kills_its_nodes_is_given_up(state: ClusterState) -> None:
    state.schedule(job())
    for number in range(3):
        state.beat(info(f"a{number}"), [])
        state.beat(info("b"), [])
        assert state.take(f"a{number}") is not None
        dies(state, f"a{number}", "b")
    state.beat(info("b"), [])
    assert state.take("b") is None
    [done] = state.finished()
    assert done.outcome is not None
    assert done.outcome.reason == "gave up: it was started 3 times; the last end: its node died"
    assert done.job == job()


@pytest.mark.parametrize(
    ("ends", "given_up"),
    [
        (["died"] * 3, True),
        (["recycled", "handed_back"] * 5, False),
        (["died", "died", "recycled"] * 3, False),
    ],
)
def test_job_is_given_up_when_it_dies_each_time_and_not_when_it_is_recycled(
    state: ClusterState, ends: list[RunEnd], given_up: bool
) -> None:
    state.beat(info("a"), [])
    state.schedule(job())
    for how in ends:
        assert state.take("a") is not None
        state.settle("a", job(), how, outcome("a", "killed by signal 9"))
    assert state.counts() == ((0, 0, 1) if given_up else (1, 0, 0))
    assert not given_up or reason(state).endswith("killed by signal 9")
    assert state.counters().get("recycled", 0) == ends.count("recycled")
    assert set(state.counters()) <= set(EVENTS)


@pytest.mark.parametrize("hours", [23.9, 24.1])
def test_job_that_runs_for_months_outlives_any_number_of_nodes(state: ClusterState, hours: float) -> None:
    state.beat(info("a"), [])
    state.schedule(job())
    deaths = 0
    for _ in range(9):
        if state.take("a") is None:
            break
        begun = {"node": "a", "score": 0, "at": round((state.now() - hours * 3600) * 1000)}
        state.client.hset(state.keys.running, job().key, json.dumps(begun))
        state.settle("a", job(), "died", outcome("a"))
        deaths += 1
    assert deaths == (3 if hours < 24 else 9)


def test_silence_of_all_nodes_is_redis_own_and_nobody_s_death(state: ClusterState) -> None:
    a_takes_a_job(state, "b")
    for node in "ab":
        dies(state, node)
    state.client.set(state.keys.last_beat, round(state.now() * 1000 - 10_500))  # of a lease of 20 s
    assert state.beat(info("b"), []).dead == []
    assert state.beat(info("a"), ["movies/job1"]).stop == []
    assert [running.node for running in state.running()] == ["a"]


def test_silence_of_one_node_is_its_death(state: ClusterState) -> None:
    a_takes_a_job(state, "b")
    dies(state, "a")
    state.client.set(state.keys.last_beat, round(state.now() * 1000 - 9_000))  # b's
    assert state.beat(info("b"), []).dead == ["a"]
    assert state.counts() == (1, 0, 0)


def test_node_that_was_found_dead_keeps_its_job_unless_another_has_begun_it(state: ClusterState) -> None:
    a_takes_a_job(state, "b")
    dies(state, "a", "b")
    assert state.counts().pending == 1
    assert state.beat(info("a"), ["movies/job1"]) == ([], [], [], [], [])
    assert [running.node for running in state.running()] == ["a"]
    assert state.counts().pending == 0
    dies(state, "a", "b")
    state.take("b")
    assert state.beat(info("a"), ["movies/job1"]).stop == ["movies/job1"]


def test_job_that_was_cancelled_while_its_node_could_not_be_heard_is_stopped(state: ClusterState) -> None:
    a_takes_a_job(state, "b")
    dies(state, "a", "b")
    assert state.cancel("movies", "job1") == "pending"
    assert state.beat(info("a"), ["movies/job1"]).stop == ["movies/job1"]


def test_end_of_a_job_counts_even_if_its_node_was_found_dead(state: ClusterState) -> None:
    a_takes_a_job(state, "b")
    dies(state, "a", "b")
    assert state.settle("a", job(), "finished", outcome("a"))
    assert state.counts() == (0, 0, 1)
    state.beat(info("b"), [])
    assert state.take("b") is None


def test_job_whose_hand_over_did_not_arrive_goes_back(state: ClusterState, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("moviecrawler.cluster.state._UNCLAIMED_MS", 200)
    a_takes_a_job(state)
    state.beat(info("a"), [])
    assert state.counts().running == 1
    time.sleep(0.3)
    state.beat(info("a"), [])
    assert state.counts() == (1, 0, 0)


def test_running_jobs_survive_that_redis_lost_everything(state: ClusterState, redis_client: redis.Redis) -> None:
    a_takes_a_job(state)
    redis_client.flushdb()
    assert state.beat(info("a"), ["movies/job1"]).unknown == ["movies/job1"]
    state.adopt("a", job())
    assert state.beat(info("a"), ["movies/job1"]) == ([], [], [], [], [])
    assert state.settle("a", job(), "finished", outcome("a"))
    assert state.finished()[0].job == job()


# --- Cancelling -------------------------------------------------------------------------------------------------------


def test_running_job_s_node_is_told_to_ask_for_each_cancellation(
    state: ClusterState, redis_client: redis.Redis
) -> None:
    client: Any = redis_client  # its `pubsub` has no types
    with client.pubsub(ignore_subscribe_messages=True) as events:
        events.subscribe(state.keys.events)
        wait_for(lambda: redis_client.pubsub_numsub(state.keys.events)[0][1] == 1)
        state.beat(info("a"), [])
        state.schedule(job())
        state.take("a")
        assert state.cancel("movies", "job1") == "running"
        assert state.cancel("movies", "job1", "KILL") == "running"
        heard = [message["data"] for message in islice(events.listen(), 3)]
        assert events.get_message(timeout=0.1) is None
    assert heard == [b"wake", b"cancel\na\nmovies/job1\nTERM\n1", b"cancel\na\nmovies/job1\nKILL\n2"]
    assert state.beat(info("a"), ["movies/job1"]).cancels == [("movies/job1", "KILL", 2)]


def test_cancelled_job_of_a_node_that_dies_is_not_run_again(state: ClusterState) -> None:
    a_takes_a_job(state, "b")
    state.cancel("movies", "job1")
    dies(state, "a", "b")
    assert state.counts() == (0, 0, 1)
    assert reason(state) == "cancelled"


# --- What is told -----------------------------------------------------------------------------------------------------


def test_clusters_under_two_prefixes_are_two(state: ClusterState, redis_url: str) -> None:
    other = ClusterState(NodeOptions(redis_url=redis_url, redis_prefix="other"))
    state.schedule(job())
    assert other.counts() == (0, 0, 0)
    assert other.cancel("movies", "job1") is None
    other.client.close()
