"""How soon a scheduled job runs, what a node costs, and what a second and a third node bring.

usage: PYTHONPATH=. python tests/benchmarks/cluster_start.py [--jobs N] [--seconds S] [--egg EGG]

Times are from the request of schedule.json until the spider runs, on an idle cluster of three nodes; beside it those of Scrapyd's
own node, of the same run, on the same machine. The crawl is bound by latency: pages take a second each.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path

from moviecrawler.cluster.jobs import Job, Outcome
from moviecrawler.cluster.options import NodeOptions
from moviecrawler.cluster.state import ClusterState, NodeInfo
from moviecrawler.replica.process import ReplicaProcess
from tests.benchmarks.harness import seconds, write_ids
from tests.cluster.nodes import Cluster, Node, cluster, toy_egg
from tests.services.redis import RedisServer
from tests.waiting import wait_for

_LATENCY = 1000  # ms
_AT_ONCE = 4
_QUEUED = 5000


def start_times(node: Node, notes: Path, jobs: int) -> list[float]:
    """Return the seconds until each of so many jobs, one after the other, ran."""
    taken = []
    for number in range(jobs):
        name = f"{node.name}-{number}"
        began = time.time()
        job = node.schedule("quick", note=name)
        wait_for(lambda name=name: list(notes.glob(f"{name}-*")))  # type: ignore[misc]
        taken.append(next(notes.glob(f"{name}-*")).stat().st_mtime - began)
        node.wait_for_end(job)
    return taken


class StockNode(Node):
    """A node as Scrapyd comes."""

    def start(self, *, wait: bool = True) -> StockNode:
        """Start it."""
        (self.folder / "scrapyd.conf").write_text(f"[scrapyd]\nhttp_port = {self.port}\n")
        with (self.folder / "node.log").open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "scrapyd", "--pidfile="],
                cwd=self.folder,
                stdout=log,
                stderr=log,
                env={name: value for name, value in self.environment.items() if not name.startswith("SCRAPYD_")},
            )
        if wait:
            wait_for(lambda: self.get("daemonstatus.json").code == 200)
        return self


def pages_per_second(running: Cluster, workers: int, span: float) -> float:
    """Return how many pages so many jobs of one crawl, each on a node of its own, store in a second."""
    node = running.nodes[0]
    run = f"with{workers}"
    wanted = round(workers * _AT_ONCE * (span + 40) * 1000 / _LATENCY)
    titles = write_ids(Path(node.folder), wanted)
    settings = {"FRONTIER_RUN": run, "CONCURRENT_REQUESTS": str(_AT_ONCE), "LOG_LEVEL": "WARNING"}
    jobs = [
        node.schedule("imdb", "moviecrawler", settings, file=str(titles), jobid=f"{run}-{number}")
        for number in range(workers)
    ]

    def done() -> int:
        runs = [found for found in node.get("progress.json").json["runs"] if found["run"] == run]
        return int(runs[0]["done"]) if runs and runs[0]["workers"] == workers else 0

    wait_for(lambda: done() >= workers * _AT_ONCE * 4, 60)
    before, began = done(), time.monotonic()
    time.sleep(span)
    rate = (done() - before) / (time.monotonic() - began)
    for job in jobs:
        node.post("cancel.json", project="moviecrawler", job=job)
    node.wait_for_end(*jobs)
    return rate


def drain(redis_url: str) -> tuple[float, float, float]:
    """Return the seconds for listing 5,000 jobs, and for taking and settling the first and the last 500 of them."""
    state = ClusterState(NodeOptions(redis_url=redis_url, redis_prefix="drain", lease_seconds=600))
    info = NodeInfo(id="n", name="n", url="http://n", slots=1, started_at=0, draining=False, memory=0, processes={})
    with closing(state.client):
        state.beat(info, [])
        for number in range(_QUEUED):
            state.schedule(Job(project="p", spider="s", id=str(number), arguments={"ids": "tt0111161"}))
        (listing,) = seconds(state.pending)

        def turn() -> None:
            for _ in range(500):
                job = state.take("n")
                if job is not None:
                    state.settle("n", job, "finished", Outcome(node="n", started_at=1, ended_at=2, reason="finished"))

        turns = seconds(turn, _QUEUED // 500)
    return listing, turns[0], turns[-1]


def main() -> None:
    """Run everything and print it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=15)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--egg", type=Path, help="of the project, built by scrapyd-deploy --build-egg; for the crawl")
    given = parser.parse_args()
    with (
        tempfile.TemporaryDirectory() as name,
        RedisServer() as server,
        ReplicaProcess(titles=5000, light=True, latency=_LATENCY) as replica,
    ):
        folder = Path(name)
        environment = {**replica.settings, "REDIS_URL": server.url, "DATA_DIR": str(folder / "data")}
        with cluster(folder, server.url, 3, SCRAPYD_LEASE_SECONDS="20", SCRAPYD_MAX_PROC="1", **environment) as running:
            node = running.nodes[0]
            node.deploy(toy_egg("1", folder))
            ours = start_times(node, folder, given.jobs)
            print(f"schedule.json → running spider: median {statistics.median(ours):.2f} s, slowest {max(ours):.2f} s")
            stock = StockNode(folder / "stock", {}, "stock", auth=None)
            stock.start()
            try:
                stock.deploy(toy_egg("1", folder))
                theirs = start_times(stock, folder, max(3, given.jobs // 3))
            finally:
                stock.stop()
            print(
                f"  Scrapyd's own:                median {statistics.median(theirs):.2f} s, slowest {max(theirs):.2f} s"
            )
            memory = max(told["memory"] for told in node.get("nodes.json").json["nodes"])
            print(f"memory of a node: {memory / 1024**2:.0f} MB")
            listing, first, last = drain(server.url)
            print(
                f"5,000 jobs: listed in {listing:.2f} s; the first 500 drained in {first:.2f} s, the last in {last:.2f} s"
            )
            if given.egg is not None:
                answer = node.deploy(given.egg.read_bytes(), "moviecrawler").json
                if answer["status"] != "ok":
                    raise SystemExit(answer["message"])
                rates = {count: pages_per_second(running, count, given.seconds) for count in (1, 2, 3)}
                for count, rate in rates.items():
                    print(f"{count} nodes: {rate:.2f} pages a second, {rate / rates[1] / count:.0%} of linear")


if __name__ == "__main__":
    main()
