"""How soon a scheduled job runs, and what a node costs.

usage: python -m tests.benchmarks.cluster_start [JOBS]

Times are from the request of schedule.json until the spider runs, of JOBS (15) on an idle cluster of three nodes; beside it those of Scrapyd's
own node, of the same run, on the same machine.
"""

from __future__ import annotations

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
from tests.benchmarks.harness import numbers, seconds
from tests.cluster.nodes import Node, cluster, toy_egg
from tests.services.redis import RedisServer
from tests.waiting import wait_for

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
    (jobs,) = numbers(15, least=(3,))
    with tempfile.TemporaryDirectory() as name, RedisServer() as server:
        folder = Path(name)
        environment = {"REDIS_URL": server.url, "DATA_DIR": str(folder / "data")}
        with cluster(folder, server.url, 3, SCRAPYD_LEASE_SECONDS="20", SCRAPYD_MAX_PROC="1", **environment) as running:
            node = running.nodes[0]
            node.deploy(toy_egg("1", folder))
            ours = start_times(node, folder, jobs)
            print(f"schedule.json → running spider: median {statistics.median(ours):.2f} s, slowest {max(ours):.2f} s")
            stock = StockNode(folder / "stock", {}, "stock", auth=None)
            stock.start()
            try:
                stock.deploy(toy_egg("1", folder))
                theirs = start_times(stock, folder, max(3, jobs // 3))
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


if __name__ == "__main__":
    main()
