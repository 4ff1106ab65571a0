"""Whole crawls at a gate: over several days, and by workers of which one has no network."""

from pathlib import Path

import pytest

from moviecrawler.replica.process import ReplicaProcess
from tests.chain import DAY, NOON
from tests.crawling import change, counts, crawl
from tests.services.replica import COLLECTION, EVERYTHING
from tests.waiting import wait_for
from tests.workers import SURE, WorkersOf, paused

DAYS_LATER = """
import time
from pathlib import Path

from scrapy import signals

from moviecrawler.politeness.middleware import politeness_of


class Clock:
    @classmethod
    def from_crawler(cls, crawler):
        def set_clocks():
            ahead = float(Path("now").read_text()) - time.time()
            crawler.spider.backend._clock = lambda: time.time() + ahead
            politeness_of(crawler).clock = crawler.spider.backend._clock

        clock = cls()
        clock.set_clocks = set_clocks
        crawler.signals.connect(clock.set_clocks, signals.spider_opened)
        return clock
"""
"""An extension that sets the queue's clock to the time in a file."""
WITHOUT_NETWORK = {"http_proxy": "http://127.0.0.1:1"}
"""The environment of a worker whose requests reach nobody."""


@pytest.mark.promise(
    "The exit code is 0 only when every requested title was stored or stated absent."
)
@pytest.mark.parametrize("site", EVERYTHING)
def test_a_list_of_three_budgets_is_stored_on_the_third_day(
    site: str, replica: ReplicaProcess, tmp_path: Path
) -> None:
    (tmp_path / "clock.py").write_text(DAYS_LATER)
    arguments = {"imdb": ["list=top"]}.get(site, EVERYTHING[site])
    ends = []
    for day in range(3):
        (tmp_path / "now").write_text(str(NOON + day * DAY))
        finished = crawl(
            site,
            *arguments,
            "limit=14",
            data=tmp_path,
            replica=replica,
            EXTENSIONS='{"clock.Clock": 0}',
            SITE_BUDGETS=f'{{"{site}": {{"per_day": 5}}}}',
        )
        ends.append((finished.code, len(finished.movies)))
    assert ends == [(3, 4), (3, 9), (0, 14)], finished.log
    assert counts(replica, site)["requests"] == 15  # the list's page was read once


@pytest.mark.promise("Faults that pass, such as a broken connection or a 500, cost no title.")
@pytest.mark.parametrize("patience", ["1", "60"], ids=["it ends first", "it sees the end"])
@pytest.mark.parametrize("is_first", [True, False], ids=["it begins", "it joins"])
def test_a_worker_without_network_leaves_all_titles_to_the_others(
    workers_of_any: WorkersOf, replica: ReplicaProcess, patience: str, is_first: bool
) -> None:
    """When it joins, the queue has the robots.txt for it, so that it tries pages, too."""
    change(replica, latency=1000)  # so that there is something left for a worker that joins
    ids = list(COLLECTION.ids["metacritic"].values())
    given = {
        **SURE,
        "RETRY_TIMES": "1",
        "CONCURRENT_REQUESTS": "2",
        "DOWNLOAD_TIMEOUT": "600",
    }
    with workers_of_any("metacritic", f"ids={','.join(ids)}", **given) as workers:

        def start_sick() -> None:
            workers.start(environment={**WITHOUT_NETWORK, "FRONTIER_PATIENCE": patience})
            wait_for(lambda: "metacritic can't be reached: " in workers.log)

        if is_first:
            start_sick()
        workers.start()
        if not is_first:
            wait_for(lambda: counts(replica, "metacritic")["requests"] >= 2)
            with paused(replica):  # else all could be done before the other has started
                start_sick()
        change(replica, latency=0)
        codes = workers.wait()
        assert codes == ([1, 0] if is_first else [0, 1]), workers.log
        assert sorted(str(movie.site_id) for movie in workers.movies) == sorted(ids)
        assert workers.state("failed") == 0
        assert "(site_unreachable)" in workers.log
        assert "Traceback" not in workers.log
