"""What the log says of a crawl while it runs."""

from __future__ import annotations

import re
from pathlib import Path

from moviecrawler.replica.process import ReplicaProcess
from tests.crawling import change, crawl


def test_log_lines_say_how_far_it_is(replica: ReplicaProcess, tmp_path: Path) -> None:
    change(replica, latency=100)
    given = {"LOGSTATS_INTERVAL": "0.2", "CONCURRENT_REQUESTS": "4"}
    finished = crawl("imdb", "limit=20", data=tmp_path, replica=replica, **given)
    assert " of 20 titles done (" in finished.log
    assert not finished.output


def test_stalled_crawl_says_what_it_waits_for_less_and_less_often(replica: ReplicaProcess, tmp_path: Path) -> None:
    change(replica, latency=2500)
    given = {"LOGSTATS_INTERVAL": "0.2", "DOWNLOAD_TIMEOUT": "20", "ROBOTSTXT_OBEY": "0"}
    finished = crawl("imdb", "ids=tt0000001", data=tmp_path, replica=replica, **given)
    waited = "requests wait for an answer of 127.0.0.1: 1, the last sent [0-9]+ s ago"
    told = re.findall(f"Nothing has come in and no title has ended for [0-9]+ s; {waited}$", finished.log, re.MULTILINE)
    assert len(told) == 3  # after 0.4, 0.8 and 1.6 seconds
    assert 1 <= finished.stat("crawl/stalled_seconds") <= 5
