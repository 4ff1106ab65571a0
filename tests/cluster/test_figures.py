from typing import Any
from unittest.mock import Mock

import pytest
import redis
from msgspec.structs import replace
from prometheus_client import CollectorRegistry, generate_latest

from moviecrawler.basics.errors import UnavailableError
from moviecrawler.cluster.figures import Totals, selected
from moviecrawler.cluster.services import Metrics, Progress
from moviecrawler.cluster.state import Egg, NodeInfo, Snapshot
from moviecrawler.frontier.contract import Account, RunReport


def text_of(totals: Totals) -> str:
    registry = CollectorRegistry()
    registry.register(totals)
    return generate_latest(registry).decode()


def test_sums_of_running_and_ended_crawls_never_fall() -> None:
    totals = Totals()
    totals.update("a", "imdb", {"titles/stored": 3, "downloader/response_status_count/200": 4})
    totals.update("b", "imdb", {"titles/stored": 1, "titles/failed": 2})
    before = text_of(totals)
    totals.end("a")
    totals.end("unknown")
    assert text_of(totals) == before
    totals.update("b", "imdb", {"titles/stored": 2, "titles/failed": 2})
    totals.end("b")
    text = text_of(totals)
    assert 'moviecrawler_titles_total{outcome="stored",site="imdb"} 5.0' in text
    assert 'moviecrawler_titles_total{outcome="failed",site="imdb"} 2.0' in text
    assert 'moviecrawler_responses_total{site="imdb",status="200"} 4.0' in text


def test_figures_without_labels_begin_at_zero() -> None:
    totals = Totals()
    totals.update("a", "imdb", {})
    assert 'moviecrawler_dead_letters_total{site="imdb"} 0.0' in text_of(totals)


def test_only_listed_stats_are_told_and_a_reason_counts_as_one() -> None:
    told = {"blocks/imdb/refusal": 2, "titles/requested": 5}
    stats = {"blocks/imdb/stopped": "HTTP status 403", "finish_reason": "finished", **told}
    assert selected(stats) == {"blocks/imdb/stopped": 1.0, **told}


NODE = NodeInfo(
    id="a:1",
    name="a",
    url="",
    slots=4,
    started_at=0,
    draining=False,
    memory=7,
    spiders_memory=8,
    processes={"toy/1": (5, None)},
)
DRAINING = replace(NODE, name="b", draining=True, processes={})
UNFIT = replace(NODE, name="c", unfit={"clock": "it is wrong"}, processes={})
CLUSTER = Snapshot(
    nodes=[NODE, DRAINING, UNFIT],
    nodes_lost=2,
    results={("gone", "ok"): 3},
    eggs=[Egg(project="toy", version="1", sha256="", spiders=["quick"], added_at=0)],
)
OPEN = RunReport(
    site="imdb",
    run="weekly",
    arguments="",
    account=Account(requested=3, stored=2, open=1),
    dead_letters=0,
    requeued=0,
    workers=0,
    started_at=0.0,
    ended_at=None,
    now=10_000.0,
)
OVER = replace(OPEN, run="over", account=Account(requested=2, stored=2), ended_at=1.0)


def root(snapshot: Any, runs: Any, outage: str = "") -> Any:
    """Return the root of a node, which reads the cluster and the runs."""
    made = Mock(node_name="a")
    made.node.state.snapshot.side_effect = [snapshot]
    made.node.launcher = Mock(outage=outage, info=Mock(return_value=NODE), totals=Totals())
    made.sources.frontier = Mock(side_effect=[runs])
    return made


def metrics(*given: Any) -> list[str]:
    text = Metrics(root(*given)).render(Mock()).decode()
    return [line.removeprefix("moviecrawler_") for line in text.splitlines() if line[0] != "#"]


def test_a_node_tells_of_the_cluster_of_all_nodes_and_of_open_runs() -> None:
    told = metrics(CLUSTER, Mock(runs=[OPEN, OVER]))
    for line in (
        "redis_up 1.0",
        "jobs_pending 0.0",
        "slots 4.0",
        "nodes_lost_total 2.0",
        'jobs_total{result="ok",spider="gone"} 3.0',
        'jobs_total{result="ok",spider="quick"} 0.0',
        'node_fit{check="clock",node="a"} 1.0',
        'node_fit{check="clock",node="c"} 0.0',
        'node_fit{check="redis",node="c"} 1.0',
        'node_jobs{node="a"} 1.0',
        'node_jobs{node="b"} 0.0',
        'node_memory_bytes{node="a"} 7.0',
        'node_spiders_memory_bytes{node="b"} 8.0',
        'run_ended{run="weekly",site="imdb"} 2.0',
    ):
        assert line in told, line
    assert not [line for line in told if 'run="over"' in line]


def test_a_node_tells_what_it_can_while_something_is_away() -> None:
    without_runs = metrics(CLUSTER, UnavailableError("away"), "Redis is full")
    assert {"redis_up 0.0", "slots 4.0", 'node_jobs{node="b"} 0.0'} <= {*without_runs}
    alone = metrics(redis.exceptions.ConnectionError("away"), None)
    assert {"redis_up 0.0", 'node_jobs{node="a"} 1.0'} <= {*alone}
    assert not [line for line in alone if "slots" in line or 'node="b"' in line]


@pytest.mark.parametrize("run", [OPEN, OVER])
def test_progress_is_that_of_current_runs(run: RunReport) -> None:
    shown: Any = Progress(root(None, Mock(runs=[run]))).render_GET(Mock())
    assert [one["run"] for one in shown["runs"]] == (["weekly"] if run is OPEN else [])
