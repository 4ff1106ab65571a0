"""The eleven lines at the end of every crawl."""

from __future__ import annotations

import re
from pathlib import Path

from moviecrawler.extensions.summary import _traffic
from moviecrawler.replica.process import ReplicaProcess
from tests.crawling import Finished, change, crawl
from tests.services.replica import IDS

THIRTY = ",".join(IDS[:30])


def summary(finished: Finished) -> dict[str, str]:
    """Return the last eleven lines by what each begins with."""
    first, *others = finished.log.splitlines()[-11:]
    return dict(line.strip().split(": ", 1) for line in [first.partition("INFO: ")[2], *others])


def test_summary_tells_what_was_stored_what_was_not_and_what_is_due_next(
    replica: ReplicaProcess, database_url: str, tmp_path: Path
) -> None:
    finished = crawl("imdb", f"ids=tt0000001,{THIRTY}", data=tmp_path, replica=replica, DATABASE_URL=database_url)
    told = summary(finished)
    names = "imdb, stores, absent, failed, read in part, rejected and set aside, blocks, traffic, alarms, time, next"
    assert ", ".join(told) == names
    assert re.fullmatch(r"31 titles asked for: 30 stored, 1 absent; in [\d.]+ s \(finished\)", told["imdb"])
    assert re.fullmatch(r"csv 31 durable in \d+ batches; postgres 31 durable in \d+ batches", told["stores"])
    assert told["absent"] == "1 (1 HTTP status 404)"
    assert told["failed"] == "0"
    assert told["read in part"] == "0"
    assert told["blocks"] == told["alarms"] == "none"
    assert re.fullmatch(r"imdb via direct 0\.\d\d MB in, 0\.\d\d MB out", told["traffic"])
    assert "30 title pages read" in told["time"]
    assert re.fullmatch(r"nothing of this crawl; 0 titles are due now, the next one on .* UTC", told["next"])


def test_summary_tells_what_waits_in_the_shared_queue_and_what_is_due(
    replica: ReplicaProcess, database_url: str, redis_url: str, tmp_path: Path
) -> None:
    urls = {"DATABASE_URL": database_url, "REDIS_URL": redis_url, "FRONTIER_MAX_PAGES": "5", "FRONTIER_BATCH": "5"}
    told = summary(crawl("imdb", f"ids={THIRTY}", data=tmp_path, replica=replica, **urls))
    assert re.fullmatch(
        r"25 requests wait in the shared queue, for the next worker; \d+ titles are due now.*", told["next"]
    )


def test_traffic_has_the_outcomes_of_each_pool_also_of_an_operators_own_kind_of_refusal() -> None:
    pool = {"answered": 2, "refused/by country": 1, "bytes_in": 3_000_000, "bytes_out": 20_000}
    stats = {f"proxy/imdb/home/{name}": count for name, count in pool.items()}
    told = _traffic("imdb", {**stats, "downloader/response_bytes": 4_000_000, "proxy/metacritic/home/answered": 9})
    home = "imdb via home 3.00 MB in, 0.02 MB out (2 answered, 1 refused/by country)"
    assert told == f"imdb via direct 1.00 MB in, 0.00 MB out; {home}"


def test_summary_names_the_reasons_of_failures(replica: ReplicaProcess, tmp_path: Path) -> None:
    change(replica, faults={"500": 0.5, "truncated": 0.5})
    told = summary(crawl("imdb", f"ids={THIRTY}", data=tmp_path, replica=replica, RETRY_TIMES="0"))
    assert told["failed"].startswith("30 (")
    assert "HTTP status 500" in told["failed"]
    assert "http://" not in told["failed"]


def test_summary_says_why_a_site_was_stopped(replica: ReplicaProcess, tmp_path: Path) -> None:
    change(replica, faults={"403": 1})
    told = summary(crawl("imdb", f"ids={THIRTY}", "via=pages", data=tmp_path, replica=replica))
    assert "imdb refused us" in told["blocks"]
    assert told["alarms"].startswith("blocks/imdb")


def test_a_crawl_that_cannot_begin_has_a_summary(tmp_path: Path) -> None:
    finished = crawl("imdb", "ids=tt0000001", data=tmp_path, DATABASE_URL="postgresql://127.0.0.1:1/x")
    assert re.search(
        r"imdb: 0 titles asked for: nothing found; in [\d.]+ s \(store_unavailable\)\n  stores: none\n", finished.log
    )
    assert "\n  next: nothing of this crawl; the catalogue can't be asked\n" in finished.log
