"""Nodes that end, are killed or can not run a job, and a Redis that is away or full."""

import os
import re
import signal
import time
from collections import Counter
from collections.abc import Iterator

import pytest

from moviecrawler.cluster.jobs import Result
from moviecrawler.cluster.options import NodeOptions
from moviecrawler.cluster.state import ClusterState
from tests.services.nodes import Cluster, Node, alive, cluster, name_of, pid_of, ran, toy_egg
from tests.services.redis import RedisServer
from tests.waiting import wait_for

LEASE_SECONDS = 3.0


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
    options = {
        "SCRAPYD_LEASE_SECONDS": str(LEASE_SECONDS),
        "SCRAPYD_MAX_PROC": "1",
        "SCRAPYD_JOBS_TO_KEEP": "3",
    }
    folder = tmp_path_factory.mktemp("breakable")
    with cluster(folder, its_redis.url, 2, forks_jobs=True, **options) as running:
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
        assert "the node accepts requests from this machine only, without a password\n" in bad.log
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
    ends_meanwhile = one.schedule("slow", note="meanwhile")
    goes_on = two.schedule("slow", note="on")
    wait_for(lambda: ran(notes, "on") and ran(notes, "meanwhile"))
    # At first it takes connections and says nothing, which must not stop a node from answering.
    gone_at = time.monotonic()
    its_redis._process.send_signal(signal.SIGSTOP)
    assert one.get("healthz").code == 200
    assert two.request("schedule.json", b"project=toy&spider=quick").code == 503
    its_redis.stop()
    (notes / "meanwhile.end").touch()
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
    _outlast_a_lease(gone_at)
    told = re.findall("Redis can't be reached: .*; spiders go on", one.log)
    assert len(told) == len(set(told)), "each reason once"
    its_redis.start()
    for node in (one, two):
        node.wait_until_ready()
    (notes / "on.end").touch()
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
    job = one.schedule("slow", note="full")
    wait_for(lambda: ran(breakable.folder, "full"))
    full_at = time.monotonic()
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
        _outlast_a_lease(full_at)
    finally:
        its_redis.client.config_set("maxmemory", 0)
    (breakable.folder / "full.end").touch()
    [done] = one.wait_for_end(job)
    assert (done["reason"], len(done["starts"])) == ("finished", 1)
    for node in (one, two):
        node.wait_until_ready()


@pytest.mark.promise("Nodes take no job twice, and seconds without Redis lose and double nothing.")
def test_password_of_redis_that_was_changed_is_named(
    breakable: Cluster, its_redis: RedisServer
) -> None:
    (one, two) = breakable.nodes
    job = one.schedule("slow", note="password")
    wait_for(lambda: ran(breakable.folder, "password"))
    changed_at = time.monotonic()
    its_redis.client.config_set("requirepass", "changed")
    its_redis.client.client_kill_filter(_type="normal", skipme=True)
    try:
        expected = "Redis refuses the password in REDIS_URL, or the lack of one"
        wait_for(lambda: expected in one.get("readyz").text)
        answer = two.get("listjobs.json")
        assert (answer.code, expected in answer.json["message"]) == (503, True)
        _outlast_a_lease(changed_at)
    finally:
        its_redis.client.config_set("requirepass", "")
    (breakable.folder / "password.end").touch()
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


def _outlast_a_lease(since: float) -> None:
    """Wait until a lease that was renewed last then, by the monotonic clock, is over."""
    time.sleep(max(0.0, since + LEASE_SECONDS + 0.5 - time.monotonic()))
