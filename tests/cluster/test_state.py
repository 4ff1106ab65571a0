"""The cluster's state in a real Redis: nothing is lost, nothing is done twice at once."""

from collections.abc import Callable, Iterator

import msgspec
import pytest

from moviecrawler.basics.errors import ConfigurationError
from moviecrawler.cluster import keys
from moviecrawler.cluster.jobs import RESULTS, Job, Outcome, RunEnd
from moviecrawler.cluster.options import NodeOptions
from moviecrawler.cluster.state import Beat, ClusterState, Egg, JobStatus, NodeInfo

DEATHS = 7
"""Starts of a job that dies each time."""
KEY = "movies/job1"


@pytest.fixture
def state(redis_url: str) -> Iterator[ClusterState]:
    """Return the state of an empty cluster."""
    made = ClusterState(NodeOptions(redis_url=redis_url))
    yield made
    made.client.close()


def job(number: int = 1, /, priority: float = 0.0, **arguments: str) -> Job:
    return Job(
        project="movies", spider="imdb", id=f"job{number}", arguments=arguments, priority=priority
    )


def beat(state: ClusterState, node: str, *named: str, takes: bool = False, unfit: str = "") -> Beat:
    """Send a node's heartbeat, which names the jobs that run there.

    It names the given ones instead, by their members of the queue, if there are any: "" for none.
    """
    held = named or [one.queue_member for one in state.snapshot().running if one.node == node]
    about = NodeInfo(
        id=node,
        name=node,
        url="http://x",
        slots=6,
        started_at=0,
        draining=False,
        unfit={"clock": unfit} if unfit else {},
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


def found(state: ClusterState, number: int = 1) -> JobStatus:
    status = state.snapshot().find("movies", f"job{number}")
    assert status is not None
    return status


def end_job(
    state: ClusterState, node: str, how: RunEnd = "finished", number: int = 1, reason: str = ""
) -> bool:
    """Record the end of what runs as a job now."""
    outcome = Outcome(result="ok", reason=reason or how, items=3)
    return state.record_end(node, found(state, number), how, outcome)


def dies(state: ClusterState, node: str, other: str = "") -> None:
    """Let a node's lease end; the next heartbeat, of another one if it is named, finds it out."""
    state.client.zadd(keys.NODES, {node: state.now() * 1000 - 1})
    assert not other or node in beat(state, other).dead


def began(state: ClusterState, seconds_ago: float) -> None:
    """Have job 1 run for so long."""
    record = msgspec.json.decode(state.client.hget(keys.JOBS, KEY))
    record["started_at"] = state.now() - seconds_ago
    state.client.hset(keys.JOBS, KEY, msgspec.json.encode(record))


def a_takes_a_job(state: ClusterState, *others: str) -> JobStatus:
    """Let node a take the only job; other nodes live, too."""
    for node in ("a", *others):
        beat(state, node)
    state.schedule(job())
    taken = take(state, "a")
    assert taken is not None
    return taken


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
    assert [running.job.id for running in state.snapshot().running] == expected


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
        taken = beat(state, "a", "", takes=True).taken
        assert taken is not None
        state.record_end("a", taken, "finished", Outcome(result="ok", reason="finished"))
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
    state.client.zremrangebyrank(keys.PENDING, 100, -1)
    assert beat(state, "a", takes=True).taken is None, "they have no records"


def test_each_change_makes_a_new_version_and_figures_of_memory_make_none(
    state: ClusterState, redis_url: str
) -> None:
    other = ClusterState(NodeOptions(redis_url=redis_url))
    versions = [state.version()]
    for change in (
        lambda: beat(other, "a"),
        lambda: other.schedule(job()),
        lambda: take(other, "a"),
        lambda: other.cancel("movies", "job1"),
        lambda: end_job(other, "a", "cancelled"),
        lambda: other.leave("a"),
    ):
        change()
        versions.append(state.version())
        assert versions[-1] != versions[-2]
    beat(other, "b")
    last = state.version()
    beat(other, "b")
    assert state.version() == last
    other.client.close()


def test_what_becomes_of_nodes_and_their_jobs_is_a_change(state: ClusterState) -> None:
    def changes(step: Callable[[], object]) -> bool:
        before = state.version()
        step()
        return state.version() != before

    member = a_takes_a_job(state, "b").queue_member
    assert changes(lambda: dies(state, "a", "b"))
    beat(state, "a", "")
    assert changes(lambda: beat(state, "a", member)), "it has the job again"
    assert not changes(lambda: beat(state, "a", member))
    began(state, 11)
    assert changes(lambda: beat(state, "a", "")), "it never got the job"
    take(state, "a")
    state.leave("a")
    assert changes(lambda: beat(state, "b")), "the job is given back"
    take(state, "b")
    state.client.delete(keys.JOBS)
    assert changes(lambda: beat(state, "b", "")), "the job is lost"


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
    assert state.snapshot().nodes_lost == 1
    again = take(state, "b")
    assert again is not None
    assert (again.job, again.queued_at, again.starts) == (first.job, first.queued_at, 2)
    assert not end_job(state, "a", "died")
    assert not end_job(state, "a")
    assert runs_on(state) == ["b"]


@pytest.mark.promise(
    "A job that dies each time is given up, and a node on which jobs would fail takes none."
)
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
    died = len(ends) if given_up and hours < 24 else ends.count("died")
    expected = {("imdb", "died"): died, ("imdb", "gave_up"): int(given_up)}
    assert state.snapshot().results == {name: count for name, count in expected.items() if count}
    assert {result for _, result in expected} <= set(RESULTS)


@pytest.mark.parametrize(("silent_ms", "dead"), [(9_000, ["a"]), (10_500, [])])
def test_silence_of_one_node_is_its_death_and_silence_of_all_is_redis_own(
    state: ClusterState, silent_ms: int, dead: list[str]
) -> None:
    a_takes_a_job(state, "b")
    dies(state, "a")
    state.client.set(keys.LAST_BEAT, round(state.now() * 1000 - silent_ms))  # of a lease of 20 s
    assert list(beat(state, "b").dead) == dead
    assert runs_on(state) == ([] if dead else ["a"])
    assert list(state.snapshot().lost) == dead
    beat(state, "a", "")
    assert state.snapshot().lost == {}, "it is back"
    dies(state, "a", "b")  # the next silence is that of one node
    now = state.now() * 1000
    state.client.zadd(keys.LOST, {"c": now - 86_400_001, "d": now - 86_300_000})
    beat(state, "b")
    assert {*state.snapshot().lost} == {"a", "d"}, "a day is over"
    assert [node.name for node in state.snapshot().nodes] == ["b"]
    assert state.client.hkeys(keys.NODE_INFOS) == [b"b"]


def test_node_that_was_found_dead_keeps_its_job_unless_another_has_begun_it(
    state: ClusterState,
) -> None:
    unknown = f"{1:016}{KEY}"
    assert not beat(state, "a", unknown).stop, "Redis may have lost a job, which goes on"
    member = a_takes_a_job(state, "b").queue_member
    dies(state, "a", "b")
    assert counts(state) == (1, 0, 0)
    assert not beat(state, "a", member).stop
    assert (runs_on(state), counts(state)) == (["a"], (0, 1, 0))
    [start] = found(state).history
    assert (start.number, start.node, start.how) == (1, "a", None), "it is the same start"
    dies(state, "a", "b")
    take(state, "b")
    assert beat(state, "a", member).stop == {member: True}
    # The end of a job counts even if its node was found dead.
    dies(state, "b", "a")
    assert end_job(state, "b")
    assert counts(state) == (0, 0, 1)


@pytest.mark.promise("Nodes take no job twice, and seconds without Redis lose and double nothing.")
def test_node_that_was_cut_off_does_not_adopt_what_was_queued_anew_under_the_same_id(
    state: ClusterState,
) -> None:
    cut_off = a_takes_a_job(state, "b")
    dies(state, "a", "b")
    take(state, "b")
    assert end_job(state, "b")
    state.schedule(job())
    outcome = Outcome(result="ok", reason="finished")
    assert not state.record_end("a", cut_off, "finished", outcome)
    assert beat(state, "a", cut_off.queue_member).stop == {cut_off.queue_member: True}
    assert counts(state) == (1, 0, 0)
    assert found(state).history == []


def test_job_whose_hand_over_did_not_arrive_goes_back(state: ClusterState) -> None:
    a_takes_a_job(state)
    for seconds_ago, expected in ((9, (0, 1, 0)), (11, (1, 0, 0))):
        began(state, seconds_ago)
        beat(state, "a", "")
        assert counts(state) == expected


# --- Cancelling -----------------------------------------------------------------------------------


def test_running_job_s_node_is_told_of_each_cancellation(state: ClusterState) -> None:
    member = a_takes_a_job(state).queue_member
    for signal in ("TERM", "KILL"):
        assert state.cancel("movies", "job1", signal) == "running"
        assert beat(state, "a", member).cancels == {member: signal}
    assert state.cancel("movies", "job2") is None


@pytest.mark.parametrize("is_dead_first", [False, True])
def test_cancelled_job_of_a_node_that_dies_is_not_run_again(
    state: ClusterState, is_dead_first: bool
) -> None:
    member = a_takes_a_job(state, "b").queue_member
    if is_dead_first:
        dies(state, "a", "b")
    assert state.cancel("movies", "job1") == ("pending" if is_dead_first else "running")
    if not is_dead_first:
        dies(state, "a", "b")
    assert counts(state) == (0, 0, 1)
    assert reason(state) == "cancelled"
    assert beat(state, "a", member).stop == {member: True}


# --- History --------------------------------------------------------------------------------------


def test_every_start_is_remembered_and_figures_are_those_of_all_starts(state: ClusterState) -> None:
    a_takes_a_job(state, "b")
    end_job(state, "a", "recycled")
    take(state, "b")
    dies(state, "b", "a")
    take(state, "a")
    end_job(state, "a")
    status = found(state)
    shown = [(start.number, start.node, start.how, start.reason) for start in status.history]
    assert shown == [
        (1, "a", "recycled", "recycled"),
        (2, "b", "died", "its node died"),
        (3, "a", "finished", "finished"),
    ]
    assert all(start.ended_at and start.ended_at >= start.started_at for start in status.history)
    assert status.outcome is not None
    assert (status.outcome.items, status.starts) == (6, 3)
    assert status.first_started_at == status.history[0].started_at


def test_of_very_many_starts_the_first_and_the_latest_are_remembered(state: ClusterState) -> None:
    beat(state, "a")
    state.schedule(job())
    for _ in range(60):
        take(state, "a")
        end_job(state, "a", "recycled")
    assert [start.number for start in found(state).history] == [1, *range(12, 61)]


def test_job_that_is_cancelled_while_it_waits_is_not_forgotten(state: ClusterState) -> None:
    state.schedule(job())
    assert state.cancel("movies", "job1") == "pending"
    status = found(state)
    assert (status.state, status.history, status.first_started_at) == ("finished", [], None)
    assert (reason(state), state.snapshot().results) == ("cancelled", {("imdb", "cancelled"): 1})


def test_version_of_a_job_is_fixed_when_it_first_starts(state: ClusterState) -> None:
    def deploy(version: str, at: float, project: str = "movies") -> None:
        egg = Egg(project=project, version=version, sha256="", spiders=["imdb"], added_at=at)
        state.client.hset(keys.EGGS, egg.key, msgspec.json.encode(egg))

    deploy("v9", 1.0)
    deploy("v10", 2.0)
    deploy("v11", 3.0, project="others")
    assert a_takes_a_job(state).version == "v10"
    end_job(state, "a", "handed_back")
    deploy("v12", 4.0)
    again = take(state, "a")
    assert again is not None
    assert (again.version, again.job.version) == ("v10", None)


# --- Sick nodes -----------------------------------------------------------------------------------


@pytest.mark.promise(
    "A job that dies each time is given up, and a node on which jobs would fail takes none."
)
def test_job_that_a_node_can_not_run_goes_to_another_and_once_more_to_the_same(
    state: ClusterState,
) -> None:
    a_takes_a_job(state, "b")
    end_job(state, "a", "node_failed", reason="the disk is full")
    assert take(state, "a") is None, "b comes first"
    beat(state, "b", unfit="its clock is wrong")
    assert take(state, "a") is not None, "there is no other one"
    end_job(state, "a", "node_failed", reason="the disk is full")
    assert counts(state) == (0, 0, 1)
    assert reason(state) == "the disk is full"
    state.schedule(job())
    take(state, "a")
    end_job(state, "a", "node_failed")
    taken = take(state, "b")
    assert taken is not None
    assert [start.node for start in taken.history] == ["a", "b"]


@pytest.mark.parametrize(
    ("minutes", "takes"), [(0, True), (1.9, True), (2.1, False), (-1440, False)]
)
def test_node_whose_clock_is_wrong_takes_no_job(
    state: ClusterState, monkeypatch: pytest.MonkeyPatch, minutes: float, takes: bool
) -> None:
    state.schedule(job())
    there = state.now() + minutes * 60
    monkeypatch.setattr("moviecrawler.cluster.state.time.time", lambda: there)
    answer = beat(state, "a", takes=True)
    assert (answer.taken is not None) == takes
    assert answer.clock_ahead == pytest.approx(minutes * 60, abs=5)


# --- What Redis may lose --------------------------------------------------------------------------


@pytest.mark.promise("A lost key in Redis never hangs a crawl, and what was lost is told.")
def test_lost_hash_of_jobs_stops_no_node(state: ClusterState) -> None:
    taken = a_takes_a_job(state, "b")
    state.schedule(job(2))
    state.client.delete(keys.JOBS)
    assert not beat(state, "a", taken.queue_member).stop
    assert take(state, "b") is None
    assert state.client.zcard(keys.PENDING) == 0
    outcome = Outcome(result="ok", reason="finished")
    assert state.record_end("a", taken, "finished", outcome)
    assert (counts(state), reason(state)) == ((0, 0, 1), "finished")
    a_takes_a_job(state)
    state.client.delete(keys.JOBS)
    dies(state, "a", "b")
    assert state.client.hlen(keys.RUNNING) == 0
    state.schedule(job())
    assert take(state, "b") is not None


@pytest.mark.promise("A lost key in Redis never hangs a crawl, and what was lost is told.")
def test_job_of_a_queue_that_was_lost_is_queued_when_it_is_sent_again(state: ClusterState) -> None:
    beat(state, "a")
    state.schedule(job(1, 2.0))
    state.client.delete(keys.PENDING)
    assert take(state, "a") is None
    state.schedule(job(2))
    state.schedule(job(1, 2.0))
    taken = take(state, "a")
    assert taken is not None
    assert taken.job.id == "job1"


def test_job_that_nobody_runs_any_more_is_not_queued_again_by_the_node_that_had_it(
    state: ClusterState,
) -> None:
    a_takes_a_job(state)
    state.client.delete(keys.RUNNING)
    assert not end_job(state, "a", "died")
    assert counts(state) == (0, 1, 0)
    assert end_job(state, "a", "finished")
    assert counts(state) == (0, 0, 1)


def test_finished_jobs_are_listed_with_the_latest_first(state: ClusterState) -> None:
    beat(state, "a")
    for number in (1, 2, 3):
        state.schedule(job(number))
        take(state, "a")
        end_job(state, "a", number=number)
    ended = state.snapshot().finished
    assert [status.job.id for status in ended] == ["job3", "job2", "job1"]
