"""What is seen of a crawl while it runs, in each of the ways that PROGRESS names."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import re
import subprocess
import sys
import termios
from contextlib import closing
from pathlib import Path

import pytest
from scrapy.utils.spider import DefaultSpider
from scrapy.utils.test import get_crawler

from moviecrawler.extensions.progress import Progress
from moviecrawler.replica.process import ReplicaProcess
from tests.crawling import LONGEST, change, crawl, environment, scrapy
from tests.processes import printed


@pytest.fixture(autouse=True)
def _slow(replica: ReplicaProcess) -> None:
    change(replica, latency=100)


def test_json_lines_count_up_to_the_end(replica: ReplicaProcess, tmp_path: Path) -> None:
    given = {"PROGRESS": "json", "CONCURRENT_REQUESTS": "4", "STORE_BATCH_SECONDS": "0.05"}
    finished = crawl("imdb", "limit=20", data=tmp_path, replica=replica, **given)
    lines = [json.loads(line) for line in finished.output.splitlines()]
    assert len(lines) > 2
    assert [line["stored"] for line in lines] == sorted(line["stored"] for line in lines)
    assert all(line["finished"] is None for line in lines[:-1])
    last = {"spider": "imdb", "asked": 20, "stored": 20, "failed": 0, "finished": "finished"}
    assert lines[-1].items() >= last.items()


def test_log_lines_say_how_far_it_is(replica: ReplicaProcess, tmp_path: Path) -> None:
    given = {"PROGRESS": "lines", "LOGSTATS_INTERVAL": "0.2", "CONCURRENT_REQUESTS": "4"}
    finished = crawl("imdb", "limit=20", data=tmp_path, replica=replica, **given)
    assert " of 20 titles done (" in finished.log
    assert "imdb: 20 titles asked for: 20 stored; in " in finished.log
    assert not finished.output


def test_worker_of_a_shared_crawl_shows_what_scrapy_progress_does(
    replica: ReplicaProcess, redis_url: str, tmp_path: Path
) -> None:
    given = {"REDIS_URL": redis_url, "FRONTIER_NODE": "node7"}
    often = {"LOGSTATS_INTERVAL": "0.2", "CONCURRENT_REQUESTS": "2"}
    crawled = crawl("imdb", "limit=20", data=tmp_path, replica=replica, **given, **often)
    assert crawled.code == 0, crawled.log
    shown = re.findall(
        r"INFO: (imdb \(default\) running: .* of .* requests done, .*; here: .*)$", crawled.log, re.MULTILINE
    )
    assert shown
    told = scrapy("progress", "--once", data=tmp_path, replica=replica, **given).output.splitlines()[0]
    words = [
        re.sub(r"[\d,:.]+", "#", re.sub(r", #?[\d:]+ left", "", line)) for line in (shown[-1].partition(";")[0], told)
    ]
    assert words[0] == words[1].replace("finished", "running")


def test_terminal_shows_a_bar_and_the_log_above_it(replica: ReplicaProcess, tmp_path: Path) -> None:
    ours, theirs = os.openpty()
    termios.tcsetwinsize(theirs, (40, 100))
    with subprocess.Popen(
        [sys.executable, "-m", "scrapy", "crawl", "imdb", "-a", "ids=tt0000001", "-a", "list=top", "-a", "limit=20"],
        env=environment(tmp_path, replica, TERM="xterm", COLUMNS="100", LOG_LEVEL="INFO"),
        stderr=theirs,
    ) as process:
        os.close(theirs)
        text = b"".join(printed(ours)).decode()
        assert process.wait(LONGEST) == 0
    assert "imdb: 100%|" in text
    assert "20/20" in text
    assert "tt0000001 absent: HTTP status 404" in text
    assert "DEBUG" not in text


def test_stalled_crawl_says_what_it_waits_for_less_and_less_often(replica: ReplicaProcess, tmp_path: Path) -> None:
    change(replica, latency=2500)
    given = {"LOGSTATS_INTERVAL": "0.2", "DOWNLOAD_TIMEOUT": "20", "ROBOTSTXT_OBEY": "0"}
    finished = crawl("imdb", "ids=tt0000001", data=tmp_path, replica=replica, **given)
    waited = "requests wait for an answer of 127.0.0.1: 1, the last sent [0-9]+ s ago"
    told = re.findall(f"Nothing has come in and no title has ended for [0-9]+ s; {waited}$", finished.log, re.MULTILINE)
    assert len(told) == 3  # after 0.4, 0.8 and 1.6 seconds


async def test_bars_of_two_crawls_leave_each_other_and_the_log_whole(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    crawler = get_crawler(DefaultSpider)
    shown, other = logging.StreamHandler(sys.stderr), logging.NullHandler()
    monkeypatch.setattr(logging.root, "handlers", [shown])
    first, second = Progress(crawler, "bar", 60), Progress(crawler, "bar", 60)
    first.spider_opened(DefaultSpider.from_crawler(crawler, name="imdb"))
    logging.root.addHandler(other)  # as Scrapy counts what a crawl logs
    second.spider_opened(DefaultSpider.from_crawler(crawler, name="metacritic"))
    first.spider_closed("finished")
    logging.getLogger("any").error("a line between")
    second.spider_closed("finished")
    logging.getLogger("any").error("a line after")
    assert logging.root.handlers == [shown, other]
    lines = re.split(r"[\r\n]+", capsys.readouterr().err.replace("\x1b[A", ""))
    assert lines.count("a line between") == lines.count("a line after") == 1


def test_log_in_a_file_is_not_shown_above_the_bar(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    crawler = get_crawler(DefaultSpider)
    spider = DefaultSpider.from_crawler(crawler, name="imdb")
    progress = Progress(crawler, "bar", 60)

    async def run() -> None:
        progress.spider_opened(spider)
        logging.getLogger("any").error("a line of the log")
        progress.spider_closed("finished")

    with closing(logging.FileHandler(tmp_path / "log")) as handler:
        monkeypatch.setattr(logging.root, "handlers", [handler])
        asyncio.run(run())
    assert (tmp_path / "log").read_text() == "a line of the log\n"
    shown = capsys.readouterr().err
    assert "imdb: 0 titles" in shown
    assert "a line of the log" not in shown
