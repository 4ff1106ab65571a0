"""The cluster's state in a real Redis: nothing is lost, nothing is done twice at once."""

from collections.abc import Iterator

import msgspec
import pytest

from moviecrawler.basics.errors import ConfigurationError
from moviecrawler.cluster import keys
from moviecrawler.cluster.jobs import Job, Outcome, RunEnd
from moviecrawler.cluster.options import NodeOptions
from moviecrawler.cluster.state import EVENTS, NODE_LOST, Beat, ClusterState, JobStatus, NodeInfo

DEATHS = 7
"""Starts of a job that dies each time."""
KEY = "movies/job1"


@pytest.fixture
def state(redis_url: str) -> Iterator[ClusterState]:
    made = ClusterState(NodeOptions(redis_url=redis_url))
    yield made
    made.client.close()


def job(number: int = 1, /, priority: float = 0.0, **arguments: str) -> Job:
    return Job(
        project="movies", spider="imdb", id=f"job{number}", arguments=arguments, priority=priority
    )


def beat(state: ClusterState, node: str, *named: str, takes: bool = False) -> Beat:
    """Send a node's heartbeat, which names the jobs that run there.

    It names the given ones instead, if there are any: "" for none.
    """
    held = named or [one.job.key for one in state.snapshot().running if one.node == node]
    about = NodeInfo(
        id=node,
        name=node,
        url="http://x",
        slots=6,
        started_at=0,
        draining=False,
        memory=1,
        processes={},
    )
    return state.beat(about, held, is_news=False, takes=takes)


def take(state: ClusterState, node: str) -> JobStatus | None:
    """Let a node take the next job."""
    return beat(state, node, takes=True).taken


def counts(state: ClusterState) -> tuple[int, int, int]:
    """Return how many jobs are pending, running and finished."""
    now = state.snapshot()
    return len(now.pending), len(now.running), len(now.finished)


def end_job(
    state: ClusterState, node: str, how: RunEnd = "finished", number: int = 1, reason: str = ""
) -> bool:
    return state.record_end(node, job(number), how, Outcome(reason=reason or how, items=3))


def dies(state: ClusterState, node: str, other: str = "") -> None:
    """Let a node's lease end; the next heartbeat, of another one if it is named, finds it out."""
    state.client.zadd(keys.NODES, {node: state.now() * 1000 - 1})
    assert not other or node in beat(state, other).dead


def began(state: ClusterState, seconds_ago: float) -> None:
    """Have job 1 run for so long."""
    record = msgspec.json.decode(state.client.hget(keys.JOBS, KEY))
    record["started_at"] = state.now() - seconds_ago
    state.client.hset(keys.JOBS, KEY, msgspec.json.encode(record))


def a_takes_a_job(state: ClusterState, *others: str) -> None:
    """Let node a take the only job; other nodes live, too."""
    for node in ("a", *others):
        beat(state, node)
    state.schedule(job())
    assert take(state, "a") is not None


def runs_on(state: ClusterState) -> list[str]:
    return [one.node for one in state.snapshot().running]


def reason(state: ClusterState) -> str | None:
    """Return why the job that is over last has ended."""
    done = state.snapshot().finished[0].outcome
    return done.reason if done else None


# --- The queue ------------------------------------------------------------------------------------


def test_higher_priority_goes_first_and_among_equals_who_came_first(state: ClusterState) -> None:
    for number, priority in enumerate([0.0, 5.5, 0.0, -1.0, 5.5, 1e9]):
        state.schedule(job(number, priority=priority))
    expected = ["job5", "job1", "job4", "job0", "job2", "job3"]
    assert [pending.job.id for pending in state.snapshot().pending] == expected
    beat(state, "a")
    assert [taken.job.id for _ in range(6) if (taken := take(state, "a"))] == expected
    assert take(state, "a") is None


@pytest.mark.promise("A job that waits or runs is not started twice under its id.")
def test_job_that_is_sent_twice_is_queued_once_until_it_is_over_and_is_then_a_new_run(
    state: ClusterState,
) -> None:
    beat(state, "a")
    given = {"ids": "tt1", "name": 'é"\n\\/\x7f\u2028', "none": ""}
    state.schedule(job(1, 0.0, **given))
    for expected in ((1, 0, 0), (0, 1, 0)):
        state.schedule(job(1, 0.0, **given))
        with pytest.raises(
            ConfigurationError, match="'job1' is pending or running already, with other arguments"
        ):
            state.schedule(job(1, ids="tt2"))
        assert counts(state) == expected
        take(state, "a")
    assert end_job(state, "a")
    state.schedule(job(1, ids="tt2"))
    assert counts(state) == (1, 0, 0)
    taken = take(state, "a")
    assert taken is not None
    assert (taken.starts, taken.job.arguments) == (1, {"ids": "tt2"})


def test_the_queue_and_the_outcomes_have_a_bound(state: ClusterState) -> None:
    for number in range(1002):
        state.schedule(job(number))
        beat(state, "a", "", takes=True)
        end_job(state, "a", number=number)
    assert {each.job.id for each in state.snapshot().finished} == {
        f"job{number}" for number in range(2, 1002)
    }
    assert state.client.hlen(keys.JOBS) == 1000
    for number in (2, 1002):  # the oldest of them runs again
        state.schedule(job(number))
        take(state, "a")
    end_job(state, "a", number=1002)
    assert [each.job.id for each in state.snapshot().running] == ["job2"]
    state.client.zadd(keys.PENDING, {f"{number:016}x": 0 for number in range(100_000)})
    with pytest.raises(ConfigurationError, match="100,000 jobs are pending"):
        state.schedule(job())
    assert beat(state, "a", takes=True).taken is None, "they have no records"


def test_any_change_is_seen_in_the_next_snapshot_and_without_one_nothing_is_read(
    state: ClusterState, redis_url: str
) -> None:
    other = ClusterState(NodeOptions(redis_url=redis_url))
    seen = [state.snapshot()]
    for change in (
        lambda: beat(other, "a"),
        lambda: other.schedule(job()),
        lambda: take(other, "a"),
        lambda: other.cancel("movies", "job1"),
        lambda: end_job(other, "a", "cancelled"),
        lambda: other.leave("a"),
    ):
        change()
        seen.append(state.snapshot())
        assert seen[-1] is not seen[-2]
        assert state.snapshot() is seen[-1]
    beat(other, "b")
    last = state.snapshot()
    beat(other, "b")
    assert state.snapshot() is last
    other.client.close()


# --- Leases ---------------------------------------------------------------------------------------


@pytest.mark.promise(
    "A dead node's jobs run again on the others, and each of their titles is stored once."
)
def test_dead_node_s_job_goes_back_to_its_place_and_its_late_word_is_not_heard(
    state: ClusterState,
) -> None:
    for node in "ab":
        beat(state, node)
    for number, priority in ((2, 0), (1, 1)):
        state.schedule(job(number, priority))
    first = take(state, "a")
    assert first is not None
    assert 0 < state.now() - first.queued_at < 60
    dies(state, "a", "b")
    assert [pending.job.id for pending in state.snapshot().pending] == ["job1", "job2"]
    assert state.counters()[NODE_LOST] == 1
    again = take(state, "b")
    assert again is not None
    assert (again.job, again.queued_at, again.starts) == (first.job, first.queued_at, 2)
    assert not end_job(state, "a", "died")
    assert not end_job(state, "a")
    assert runs_on(state) == ["b"]


@pytest.mark.promise("A job that dies each time, and gets nowhere, is given up.")
@pytest.mark.parametrize(
    ("ends", "hours", "given_up"),
    [
        (["died"] * DEATHS, 0, True),
        (["recycled", "handed_back"] * 5, 0, False),
        ([*["died"] * (DEATHS - 1), "recycled"] * 3, 0, False),
        (["died"] * DEATHS, 23.9, True),
        (["died"] * 2 * DEATHS, 24.1, False),
    ],
    ids=["dies each time", "recycled", "recycled in between", "within a day", "once a day"],
)
def test_job_is_given_up_when_it_dies_each_time_and_gets_nowhere(
    state: ClusterState, ends: list[RunEnd], hours: float, given_up: bool
) -> None:
    beat(state, "a")
    state.schedule(job())
    for how in ends:
        assert take(state, "a") is not None
        began(state, hours * 3600)
        end_job(state, "a", how, reason="killed by signal 9")
    assert counts(state) == ((0, 0, 1) if given_up else (1, 0, 0))
    assert (
        not given_up
        or reason(state) == "gave up: it was started 7 times; the last end: killed by signal 9"
    )
    assert set(state.counters()) <= set(EVENTS)


@pytest.mark.parametrize(("silent_ms", "dead"), [(9_000, ["a"]), (10_500, [])])
def test_silence_of_one_node_is_its_death_and_silence_of_all_is_redis_own(
    state: ClusterState, silent_ms: int, dead: list[str]
) -> None:
    a_takes_a_job(state, "b")
    dies(state, "a")
    state.client.set(keys.LAST_BEAT, round(state.now() * 1000 - silent_ms))  # of a lease of 20 s
    assert list(beat(state, "b").dead) == dead
    assert runs_on(state) == ([] if dead else ["a"])


def test_node_that_was_found_dead_keeps_its_job_unless_another_has_begun_it(
    state: ClusterState,
) -> None:
    assert not beat(state, "a", KEY).stop, "Redis may have lost a job, which goes on"
    a_takes_a_job(state, "b")
    dies(state, "a", "b")
    assert counts(state) == (1, 0, 0)
    assert not beat(state, "a", KEY).stop
    assert (runs_on(state), counts(state)) == (["a"], (0, 1, 0))
    dies(state, "a", "b")
    take(state, "b")
    assert beat(state, "a", KEY).stop == {KEY: True}
    # The end of a job counts even if its node was found dead.
    dies(state, "b", "a")
    assert end_job(state, "b")
    assert counts(state) == (0, 0, 1)


def test_job_whose_hand_over_did_not_arrive_goes_back(state: ClusterState) -> None:
    a_takes_a_job(state)
    for seconds_ago, expected in ((9, (0, 1, 0)), (11, (1, 0, 0))):
        began(state, seconds_ago)
        beat(state, "a", "")
        assert counts(state) == expected


# --- Cancelling -----------------------------------------------------------------------------------


def test_running_job_s_node_is_told_of_each_cancellation(state: ClusterState) -> None:
    a_takes_a_job(state)
    for signal in ("TERM", "KILL"):
        assert state.cancel("movies", "job1", signal) == "running"
        assert beat(state, "a", KEY).cancels == {KEY: signal}
    assert state.cancel("movies", "job2") is None


@pytest.mark.parametrize("is_dead_first", [False, True])
def test_cancelled_job_of_a_node_that_dies_is_not_run_again(
    state: ClusterState, is_dead_first: bool
) -> None:
    a_takes_a_job(state, "b")
    if is_dead_first:
        dies(state, "a", "b")
    assert state.cancel("movies", "job1") == ("pending" if is_dead_first else "running")
    if not is_dead_first:
        dies(state, "a", "b")
    assert counts(state) == (0, 0, 1)
    assert reason(state) == "cancelled"
    assert beat(state, "a", KEY).stop == {KEY: True}
