"""The five lines at the end of every crawl."""

import re
import tomllib
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock

import msgspec
import pytest
from scrapy.utils.test import get_crawler

from moviecrawler.extensions.summary import Summary, joint_lines
from moviecrawler.frontier.contract import Account
from moviecrawler.replica.process import ReplicaProcess
from moviecrawler.spiders.imdb import ImdbSpider
from tests.crawling import Finished, change, crawl, scrapy
from tests.processes import crawl_command
from tests.runs import make_miss, make_movie
from tests.services.replica import IDS

THIRTY = ",".join(IDS[:30])
CASES = tomllib.loads(Path(__file__).with_name("summaries.toml").read_text("utf-8"))


def summary(finished: Finished) -> dict[str, str]:
    """Return its lines by what each begins with."""
    lines = re.findall(r"^\w+: [\d,]+ titles asked for(?:.*\n){5}", finished.log, re.MULTILINE)[
        -1
    ].splitlines()
    told = dict(line.strip().split(": ", 1) for line in lines)
    assert ", ".join(told) == f"{lines[0].split(':')[0]}, stores, refusals, missing fields, next"
    return told


@pytest.mark.promise(
    "A crawl ends with five lines: titles, stores, refusals, missing fields, and what comes next."
)
def test_summary_tells_what_was_stored_what_was_not_and_what_is_due_next(
    replica: ReplicaProcess, database_url: str, tmp_path: Path
) -> None:
    finished = crawl(
        "imdb", f"ids=tt0000001,{THIRTY}", data=tmp_path, replica=replica, DATABASE_URL=database_url
    )
    told = summary(finished)
    ended = r"30 stored, 1 absent \(1 HTTP status 404\)"
    assert re.fullmatch(rf"31 titles asked for: {ended}; in [\d.]+ s \(finished\)", told["imdb"])
    assert re.fullmatch(
        r"postgres 31 durable in \d+ batches; sqlite 31 durable in \d+ batches", told["stores"]
    )
    assert told["refusals"] == told["missing fields"] == "none"
    assert re.fullmatch(
        r"nothing is left; 0 titles are due now, the next one on .* UTC", told["next"]
    )


def test_summary_tells_what_waits_in_the_shared_queue(
    replica: ReplicaProcess, redis_url: str, tmp_path: Path
) -> None:
    urls = {"REDIS_URL": redis_url, "FRONTIER_MAX_PAGES": "5", "FRONTIER_RUN": "five"}
    told = summary(crawl("imdb", f"ids={THIRTY}", data=tmp_path, replica=replica, **urls))
    assert told["imdb"].startswith("30 titles asked for: 5 stored, 25 waiting in the queue; ")
    assert told["next"] == "25 requests wait in the queue, and the same command continues with them"


def test_summary_names_the_reasons_of_failures(replica: ReplicaProcess, tmp_path: Path) -> None:
    change(replica, faults={"500": 0.5, "truncated": 0.5})
    told = summary(crawl("imdb", f"ids={THIRTY}", data=tmp_path, replica=replica, RETRY_TIMES="0"))
    assert told["imdb"].startswith("30 titles asked for: 30 failed (")
    assert "HTTP status 500" in told["imdb"]
    assert "http://" not in told["imdb"]


def test_a_crawl_that_cannot_begin_has_a_summary(tmp_path: Path) -> None:
    told = summary(
        crawl("imdb", "ids=tt0000001", data=tmp_path, DATABASE_URL="postgresql://127.0.0.1:1/x")
    )
    assert re.fullmatch(
        r"0 titles asked for: the crawl ended first; in [\d.]+ s \(store_unavailable\)",
        told["imdb"],
    )
    assert "postgres can't be used" in told["stores"]
    assert re.fullmatch(
        r"postgres can't be used, so nothing is crawled: .*127\.0\.0\.1.*; nothing was requested;"
        r" the same command begins again; the catalogue is unavailable",
        told["next"],
    )


def test_crawls_that_were_interrupted_before_they_began_have_no_summary() -> None:
    crawler = Mock(spidercls=ImdbSpider)
    crawler.get_extension.return_value = Summary(crawler)
    assert joint_lines([crawler], unknown="") == []


@pytest.mark.promise(
    "A crawl ends with five lines: titles, stores, refusals, missing fields, and what comes next."
)
@pytest.mark.parametrize("case", CASES)
async def test_the_five_lines_follow_from_the_stats(case: str) -> None:
    told = CASES[case]
    stats = {"finish_reason": "finished", **told.get("stats", {})}
    if "run" in told:
        figures = msgspec.structs.asdict(Account(**told["run"]))
        stats |= {f"frontier/run/{name}": figure for name, figure in figures.items()}
    crawler = get_crawler(ImdbSpider, told.get("settings"))
    assert crawler.stats is not None
    crawler.stats.set_stats(stats)
    plan = SimpleNamespace(note=told.get("note", ""), is_due=told.get("is_due", False))
    crawler.spider = SimpleNamespace(plan=plan)  # type: ignore[assignment]
    crawler.engine = SimpleNamespace(start_time=0.0)  # type: ignore[assignment]
    summary = Summary(crawler)
    summary.item_rejected("csv", make_movie(1, source="list"))
    summary.list_failed("The site refused us.", refused=True)
    for outcome, reason in told.get("reasons", ()):
        if outcome == "unread":
            summary.list_failed(reason, refused=False)
        elif outcome == "rejected":
            summary.item_rejected(reason, make_movie(1))
        else:
            summary.items_passed([make_miss(1, outcome=outcome, reason=reason)])
    await summary.spider_closed(stats["finish_reason"])
    assert [re.sub(r"in \d+\.\d s ", "", line) for line in summary.lines] == told["lines"]


@pytest.mark.promise(
    "A list or sitemap that can't be read, or has no end, is told and never taken for an empty one."
)
def test_a_list_that_can_not_be_read_is_not_an_empty_one(
    replica: ReplicaProcess, tmp_path: Path
) -> None:
    change(replica, faults={"500": 1})
    finished = crawl("metacritic", "limit=5", data=tmp_path, replica=replica, RETRY_TIMES="0")
    assert finished.code == 1
    assert summary(finished)["metacritic"].startswith(
        "0 titles asked for: the list could not be read (1 HTTP status 500); "
    )


@pytest.mark.promise(
    "A crawl ends with five lines: titles, stores, refusals, missing fields, and what comes next."
)
@pytest.mark.parametrize("quiet", [["--nolog"], ["-L", "ERROR"], ["--logfile", "crawl.log"]])
def test_summary_is_on_standard_error_whatever_becomes_of_the_log(
    quiet: list[str], replica: ReplicaProcess, tmp_path: Path
) -> None:
    finished = scrapy(*crawl_command("imdb", "limit=2"), *quiet, data=tmp_path, replica=replica)
    assert len(finished.log.splitlines()) == 5
    assert summary(finished)["imdb"].startswith("2 titles asked for: 2 stored; in ")
    if "--logfile" in quiet:
        assert "next: nothing is left" in (tmp_path / "crawl.log").read_text("utf-8")
