"""Size and time of the dashboard's pages of a cluster with 80 jobs, also while no store answers.

usage: python -m tests.benchmarks.dashboard_speed [ROUNDS]

The stores take connections and never answer.
"""

import os
import statistics
import tempfile
import time
from pathlib import Path
from unittest import mock
from urllib.request import urlopen

from moviecrawler.cluster.node import Node
from moviecrawler.cluster.options import NodeOptions
from moviecrawler.dashboard.pages import PageRequest
from moviecrawler.dashboard.site import make_pages
from moviecrawler.dashboard.sources import Sources
from tests.benchmarks.harness import figure, numbers
from tests.dashboard_stage import stage
from tests.dashboard_views import PAGES
from tests.services.threads import Host


def main() -> None:
    (rounds,) = numbers(20, least=(1,))
    with tempfile.TemporaryDirectory() as folder, stage(Path(folder), "trouble") as (url, _):
        sizes = []
        times = []
        for name, path in PAGES.items():
            taken = []
            for _ in range(rounds):
                began = time.perf_counter()
                with urlopen(url + path) as answer:
                    content = answer.read()
                taken.append(time.perf_counter() - began)
            sizes.append(len(content) / 1000)
            times.append(statistics.median(taken))
            print(f"{name:24} {len(content) / 1000:6.1f} kB {statistics.median(taken):7.3f} s")
    with Host() as silent, tempfile.TemporaryDirectory() as folder:
        redis_url = f"redis://{silent.address}/0"
        environ = {"REDIS_URL": redis_url, "DATABASE_URL": f"postgresql://{silent.address}/x"}
        with mock.patch.dict(os.environ, environ):
            sources = Sources(Node(NodeOptions(redis_url=redis_url, logs_dir=folder)))
        silent_times = []
        for here, page in make_pages(sources).items():
            request = PageRequest(path=("imdb", "x") if here == "/runs" else ())
            began = time.perf_counter()
            page.respond(request)
            silent_times.append(time.perf_counter() - began)
            print(f"{here:24} {'no answers':>9} {silent_times[-1]:7.3f} s")
        sources.close()
    figure("the largest page, in kB", max(sizes), at_most=150)
    figure("the slowest page, in s", max(times), at_most=0.1)
    figure("the slowest page while no store answers, in s", max(silent_times), at_most=3)


if __name__ == "__main__":
    main()
