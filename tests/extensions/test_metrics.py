"""A crawl's figures, as Prometheus' node exporter or a node reads them."""

import json
import os
import re
import subprocess
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest
from scrapy.utils.test import get_crawler

from moviecrawler.cluster.figures import DESCRIPTOR, FIGURES, Series, Totals
from moviecrawler.extensions.metrics import Metrics, hand_over
from moviecrawler.frontier.contract import TITLE_OUTCOMES
from moviecrawler.replica.process import ReplicaProcess
from moviecrawler.sites import SITES
from moviecrawler.spiders.imdb import ImdbSpider
from tests.crawling import crawl
from tests.metric_files import read, value
from tests.processes import crawl_command, environment


@pytest.mark.promise(
    "A node's /metrics has the figures of its crawls; a crawl without a node writes them to a file."
)
def test_file_tells_what_was_stored_and_grows_with_each_crawl(
    replica: ReplicaProcess, tmp_path: Path
) -> None:
    for times in (1, 2):
        given = ("ids=tt0000001", "list=top", "limit=20")
        finished = crawl(
            "imdb", *given, data=tmp_path, replica=replica, METRICS_FOLDER=str(tmp_path)
        )
        assert finished.code == 0, finished.log
        families = read(tmp_path)
        for name, labels, expected in (
            ("titles_requested", {}, 20),
            ("titles", {"outcome": "stored"}, 19),
            ("titles", {"outcome": "absent"}, 1),
            ("store_items", {"store": "sqlite", "outcome": "durable"}, 21),
            ("responses", {"status": "404"}, 1),
            ("pages", {}, 19),
        ):
            assert value(families, f"moviecrawler_{name}", **labels) == expected * times
    for family in families.values():
        assert re.fullmatch(r"moviecrawler_[a-z_]+", family.name)
        assert family.documentation.endswith(".")
        for sample in family.samples:
            assert sample.name.endswith("_total") == (family.type == "counter")
            assert sample.labels.keys() <= {
                "site",
                "outcome",
                "status",
                "kind",
                "field",
                "store",
                "pool",
                "result",
            }
            # No label says which title or URL it was.
            assert not any(re.search(r"tt\d|/", label) for label in sample.labels.values())


async def test_crawls_add_what_the_file_has_not_yet_and_a_damaged_one_loses_no_figure(
    tmp_path: Path,
) -> None:
    file = tmp_path / "moviecrawler_imdb.prom"
    file.write_text("}{ no metrics")
    for stored in (3, 4):
        crawler: Any = get_crawler(ImdbSpider, {"METRICS_FOLDER": str(tmp_path)})
        crawler.stats.set_value("titles/stored", stored)
        metrics = Metrics.from_crawler(crawler)
        await metrics._report()
        await metrics._report()
    assert value(read(tmp_path), "moviecrawler_titles", outcome="stored") == 7


def test_folder_that_can_not_be_written_to_stops_no_crawl(
    replica: ReplicaProcess, tmp_path: Path
) -> None:
    (tmp_path / "moviecrawler_imdb.prom").mkdir()
    finished = crawl(
        "imdb", "limit=5", data=tmp_path, replica=replica, METRICS_FOLDER=str(tmp_path)
    )
    assert finished.code == 0
    assert finished.log.count("METRICS_FOLDER can't be written to") == 1
    assert "Traceback" not in finished.log


@pytest.mark.promise(
    "A node's /metrics has the figures of its crawls; a crawl without a node writes them to a file."
)
def test_node_is_handed_the_figures_and_at_the_end_the_summary(
    replica: ReplicaProcess, tmp_path: Path
) -> None:
    reading, writing = os.pipe()
    with subprocess.Popen(
        ["scrapy", *crawl_command("imdb", "limit=5")],
        env=environment(tmp_path, replica, **{DESCRIPTOR: str(writing)}),
        cwd=tmp_path,
        pass_fds=[writing],
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        os.close(writing)
        with os.fdopen(reading) as pipe:
            lines = [json.loads(line) for line in pipe]
        _, log = process.communicate()
    assert process.returncode == 0, log
    assert len(lines) >= 2
    assert lines[-1]["stats"]["titles/stored"] == 5
    assert lines[-1]["unreachable"] == {}
    assert all(
        any(figure.pattern.fullmatch(name) for figure in FIGURES) for name in lines[-1]["stats"]
    )
    assert ["summary" in line for line in lines] == [False] * (len(lines) - 1) + [True]
    assert lines[-1]["summary"] == [line.strip() for line in log.splitlines()[-5:]]


def test_crawl_never_waits_for_a_node_that_does_not_read() -> None:
    reading, writing = os.pipe()
    for _ in range(100):
        hand_over(writing, b"x" * 10_000 + b"\n")
    os.close(reading)
    hand_over(writing, b"x\n")
    os.close(writing)


@pytest.mark.promise(
    "A node's /metrics has the figures of its crawls; a crawl without a node writes them to a file."
)
def test_crawls_that_end_while_many_scrape_are_counted_once() -> None:
    totals = Totals(["imdb"])
    pages = Series("moviecrawler_pages", ("imdb",))
    seen: list[float] = []
    is_over = Event()

    def scrape() -> None:
        while not is_over.is_set():
            seen.append(totals.sums()[pages])

    threads = [Thread(target=scrape) for _ in range(4)]
    for thread in threads:
        thread.start()
    for crawl_number in range(500):
        totals.update(crawl_number, "imdb", {"pages/read": 1})
        totals.end(crawl_number)
    is_over.set()
    for thread in threads:
        thread.join()
    assert max(seen) <= 500
    assert totals.sums()[pages] == 500


def test_series_of_every_site_are_there_from_the_beginning() -> None:
    sums = Totals(SITES).sums()
    assert {series.labels[0] for series in sums} == set(SITES)
    for site in SITES:
        assert sums[Series("moviecrawler_crawls_incomplete", (site,))] == 0
        for outcome in TITLE_OUTCOMES:
            assert Series("moviecrawler_titles", (site, outcome)) in sums
        assert Series("moviecrawler_store_items", (site, "postgres", "lost")) in sums
