"""The parts of pages that need nothing to run: what is said, and the lines of charts."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from scrapy.crawler import Crawler
from scrapy.settings import Settings

from moviecrawler import settings
from moviecrawler.cluster.jobs import Job, Outcome, Result
from moviecrawler.cluster.state import JobStatus, NodeInfo, Snapshot
from moviecrawler.dashboard.charts import history_chart
from moviecrawler.dashboard.crawls import name_of_run
from moviecrawler.dashboard.overview import Card, Concern, concerns, failed_jobs
from moviecrawler.frontier.contract import Account, RunName, RunReport, SiteState
from moviecrawler.frontier.runs import run_name
from moviecrawler.spiders.imdb import ImdbSpider

NOW = 1_780_000_000.0
QUIET = Card(site="imdb")
NODE = NodeInfo(
    id="a", name="a", url="", slots=4, started_at=0, draining=False, memory=1, processes={}
)
NOTHING: dict[str, Any] = {"troubles": [], "jobs": Snapshot(), "nodes": [NODE], "now": NOW}
PENDING = JobStatus(job=Job(project="p", spider="imdb", id="x"), state="pending")
RUN = RunReport(
    site="imdb",
    run="default",
    arguments="no arguments (0)",
    started_at=NOW,
    account=Account(requested=10, titles=10, stored=2, absent=1, open=7),
    dead_letters=0,
    requeued=0,
    workers=0,
    ended_at=None,
    now=NOW,
    site_state=SiteState(site="imdb"),
)


def found(*cards: Card, **changed: Any) -> list[Concern]:
    """Return the concerns of a cluster that has nothing but this."""
    return list(concerns(cards, **{**NOTHING, **changed}))


def test_work_without_a_worker_is_a_concern_unless_a_job_is_pending() -> None:
    idle = replace(QUIET, runs=[RUN])
    assert [concern.what for concern in found(idle)] == [
        "IMDb has 7 requests to go, and no worker."
    ]
    assert found(idle, jobs=Snapshot(pending=[PENDING])) == []
    assert found(idle, jobs=None) == []
    starting = JobStatus(job=Job(project="p", spider="imdb", id="x"), state="running")
    assert found(idle, jobs=Snapshot(running=[starting])) == []
    assert found(replace(QUIET, runs=[replace(RUN, workers=1)])) == []


def test_failed_job_is_a_concern_until_it_has_succeeded_or_a_day_has_passed() -> None:
    def over(spider: str, result: Result, ago: float) -> JobStatus:
        outcome = Outcome(ended_at=NOW - ago, result=result, reason="x")
        job = Job(project="p", spider=spider, id=f"{spider}-{ago}", arguments={"list": "top"})
        return JobStatus(job=job, state="finished", outcome=outcome)

    finished = [  # the latest first
        over("imdb", "ok", 10),
        over("metacritic", "cancelled", 20),
        over("due", "unfinished", 25),
        over("rottentomatoes", "usage", 30),
        over("imdb", "failed", 40),
        over("other", "gave_up", 50),
        over("old", "failed", 90_000),
    ]
    failed = failed_jobs(finished, NOW)
    assert [status.job.spider for status in failed] == ["rottentomatoes", "other"]
    [concern] = found(jobs=Snapshot(finished=finished))
    assert concern.what == "2 jobs have not done all that was asked for (other, rottentomatoes)."


def test_many_things_are_told_one_by_one() -> None:
    stopped = replace(QUIET, state=SiteState(site="imdb", refusal="x", stopped_until=NOW))
    letters = replace(QUIET, runs=[replace(RUN, workers=1, dead_letters=2)])
    sick = msgspec.structs.replace(NODE, unfit={"folders": "the disk is full"})
    told = found(stopped, letters, troubles=["Redis is away"], nodes=[sick])
    assert [concern.what for concern in told] == [
        "Redis is away",
        "No node is up and takes jobs.",
        "a takes no jobs: the disk is full.",
        "IMDb has refused us, and is not asked until 2026-05-28 20:26 UTC: x",
        "2 requests to IMDb became dead letters.",
    ]
    assert found(replace(stopped, is_probing=True)) == []


@pytest.mark.parametrize(
    "arguments",
    [{"list": "top", "limit": "9"}, {"ids": "tt0000002, tt0000001,tt0000002"}, {}, {"_x": "y"}],
)
def test_run_of_a_job_is_found_by_what_its_spider_calls_it(arguments: dict[str, str]) -> None:
    values = {name: value for name, value in vars(settings).items() if name.isupper()}
    given = Settings({**values, "IMDB_URL": "http://127.0.0.1:8000"})
    spider = ImdbSpider.from_crawler(Crawler(ImdbSpider, given), **arguments)
    job = Job(project="p", spider="imdb", id="imdb-top", arguments=arguments)
    found = name_of_run(job, given)
    assert found == run_name("imdb", given, spider.described_arguments)
    named = msgspec.structs.replace(job, settings={"FRONTIER_RUN": "weekly"})
    assert name_of_run(named, given) == RunName("imdb", "weekly")


@pytest.mark.parametrize(
    "job",
    [
        Job(project="p", spider="own", id="1"),
        Job(project="p", spider="imdb", id="1", arguments={"ids": "nonsense"}),
    ],
)
def test_job_of_which_no_run_is_known_is_linked_to_none(job: Job) -> None:
    given = Settings()
    given.setmodule("moviecrawler.settings")
    assert name_of_run(job, given) is None


def test_history_is_one_stepped_curve_a_score_out_of_100_with_a_gap_where_there_was_none() -> None:
    begin = datetime(2026, 1, 1, tzinfo=UTC)

    def change(kind: str, day: int, value: float | None, site: str = "imdb") -> SimpleNamespace:
        return SimpleNamespace(kind=kind, site=site, since=begin + timedelta(days=day), value=value)

    rows = [
        change("metascore", 5, None, "metacritic"),
        change("metascore", 0, 80, "metacritic"),
        change("imdb", 2, 7.0),
        change("imdb", 0, 9.0),
        change("metascore", 4, 70),
    ]
    chart = history_chart(rows, begin + timedelta(days=10))
    assert chart is not None
    assert (chart.lowest, chart.highest, chart.begins) == (70, 90, begin)
    assert chart.curves == [
        ("IMDb rating", "M0.0 0.0H120.0V120.0H600", 7.0),
        ("Metascore", "M0.0 60.0H300.0", None),
        ("Metascore on IMDb", "M240.0 120.0H600", 70),
    ]
    assert history_chart([change("imdb", 0, None)], begin) is None
