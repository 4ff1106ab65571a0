"""The parts of pages that need nothing to run: what is said, and the lines of charts."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace
from scrapy.crawler import Crawler
from scrapy.settings import Settings

from moviecrawler import settings
from moviecrawler.catalogue.figures import SiteFigures
from moviecrawler.cluster.jobs import Job, Outcome, Result
from moviecrawler.cluster.state import JobStatus, NodeInfo, Start
from moviecrawler.dashboard.charts import history_chart
from moviecrawler.dashboard.crawls import _fits, _log_tail
from moviecrawler.dashboard.overview import (
    cards_of,
    concerns_of_jobs,
    concerns_of_nodes,
    concerns_of_runs,
    concerns_of_sites,
    failed_jobs,
    gate_of,
    state_of,
)
from moviecrawler.dashboard.pages import PageRequest, RefusedError
from moviecrawler.dashboard.rendering import job_state, resume_path, run_state
from moviecrawler.dashboard.schedule import _job_of_path, _job_of_run, _values
from moviecrawler.dashboard.sources import Counts, Runs, Sources
from moviecrawler.dashboard.titles import _details
from moviecrawler.frontier.contract import (
    Account,
    DeadLetter,
    FrontierReport,
    RunName,
    RunReport,
    SiteState,
)
from moviecrawler.frontier.runs import run_name
from moviecrawler.items import Amount, Award, RelatedTitle
from moviecrawler.politeness.budgets import Budget
from moviecrawler.spiders.imdb import ImdbSpider
from tests.runs import make_movie

NOW = 1_780_000_000.0
NODE = NodeInfo(
    id="a", name="a", url="", slots=4, started_at=0, draining=False, memory=1, processes={}
)
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


def runs_of(*runs: RunReport, **sites: SiteState) -> Runs:
    return Runs(report=FrontierReport(now=NOW, sites={**sites}, runs=list(runs)))


def sources_of(given: Mapping[str, Any]) -> Sources:
    sources = Sources(SimpleNamespace())  # type: ignore[arg-type]
    sources.settings.setdict(given, "cmdline")
    return sources


def test_work_without_a_worker_is_a_concern_unless_a_job_of_that_run_is_coming() -> None:
    name = RunName("imdb", "default")
    [concern] = concerns_of_runs(runs_of(RUN), [])
    assert concern.what == "IMDb: 7 requests queued, no worker"
    assert (concern.remedy, concern.path) == ("Resume or drop", "/runs/imdb/default")
    assert list(concerns_of_runs(runs_of(RUN), [name])) == []
    assert list(concerns_of_runs(runs_of(RUN), None)) == [], "unknown"
    assert list(concerns_of_runs(runs_of(RUN), [RunName("imdb", "another")])) == [concern]
    for changes in ({"workers": 1}, {"account": Account()}):
        assert list(concerns_of_runs(runs_of(replace(RUN, **changes)), [])) == []


def test_dead_letters_and_lost_requests_are_concerns_with_their_cause() -> None:
    account = Account(requested=4, stored=2)
    [lost] = concerns_of_runs(runs_of(replace(RUN, account=account)), None)
    assert lost.what == "IMDb: 2 requests of run default lost"
    runs = runs_of(replace(RUN, workers=1, dead_letters=2))
    name = RunName("imdb", "default")
    runs.letters[name] = [
        DeadLetter(run=name, id="b", reason="it kills", at=NOW, body=""),
        DeadLetter(run=name, id="a", reason="it hangs", at=NOW - 9, body=""),
    ]
    [concern] = concerns_of_runs(runs, [])
    assert concern.what == "IMDb: 2 dead letters of run default"
    assert (concern.why, concern.since) == ("it kills", NOW - 9)
    assert concern.path == "/runs/imdb/default#letters"


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
        over("old", "failed", 86_400),
    ]
    failed = failed_jobs(finished, NOW)
    assert [status.job.spider for status in failed] == ["rottentomatoes", "other"]
    first, _ = concerns_of_jobs(finished, NOW)
    assert first.what == "Job rottentomatoes-30 of rottentomatoes failed"
    assert (first.why, first.since, first.path) == (
        "x",
        NOW - 30,
        "/crawls/p/rottentomatoes-30#log",
    )
    many = [over(f"spider{number}", "failed", number) for number in range(8)]
    told = [list(concerns_of_jobs(many[:count], NOW)) for count in (3, 4, 8)]
    assert [len(concerns) for concerns in told] == [3, 4, 4]
    assert [told[1][-1].what, told[2][-1].what] == ["1 more job failed", "5 more jobs failed"]


def test_nodes_that_are_lost_or_sick_are_concerns() -> None:
    sick = msgspec.structs.replace(NODE, unfit={"folders": "the disk is full"}, unfit_since=NOW)
    found = list(concerns_of_nodes([sick], {"b": NOW - 60}))
    assert [(concern.what, concern.since) for concern in found] == [
        ("No node takes jobs", None),
        ("Node b is lost", NOW - 60),
        ("a takes no jobs", NOW),
    ]
    assert list(concerns_of_nodes([NODE], {})) == []
    late = msgspec.structs.replace(NODE, heartbeat_age_seconds=31)
    draining = msgspec.structs.replace(sick, draining=True)
    nodes = (NODE, msgspec.structs.replace(NODE, heartbeat_age_seconds=30), late, sick, draining)
    words = [state_of(node, late_seconds=30).word for node in nodes]
    assert words == ["up", "up", "late", "unfit", "draining"]


def test_pages_of_a_list_are_numbered_from_1_to_the_last_that_is_shown() -> None:
    pages = [PageRequest(values={"page": text}) for text in ("", "x", "0", "2", "20", "21")]
    assert [page.page for page in pages] == [1, 1, 1, 2, 20, 20]
    assert [page.first for page in pages] == [0, 0, 0, 50, 950, 950]
    counts = ((0, 50), (0, 51), (3, 100), (3, 101), (4, 2_000))
    more = [pages[number].has_more(count) for number, count in counts]
    assert more == [False, True, False, True, False]


def test_the_fields_of_a_record_are_shown_as_texts() -> None:
    related = [
        RelatedTitle(relation="similar", site_id="tt0000002", title="Lamp"),
        RelatedTitle(relation="connection", site_id="tt0000003", title="Wick"),
        RelatedTitle(relation="connection", site_id="tt0000004", title="Oil", connection="Follows"),
    ]
    movie = make_movie(
        1,
        season=0,
        related=related,
        awards=[Award(event=None, wins=1, nominations=2)],
        amounts=[Amount(kind="opening_weekend", value=1_000, currency="USD")],
        external_ids={"ems": "1"},
    )
    shown = {
        "kind": "movie",
        "runtime_minutes": "",
        "season": "0",
        "awards": "all: 1 won, 2 nominated",
        "recommended": "Lamp",
        "connections": "see Wick; Follows Oil",
        "amounts": "opening weekend: 1,000 USD",
        "external_ids": "ems 1",
    }
    assert shown.items() <= _details(movie).items()
    movie = make_movie(1, title_type="tvSpecial", runtime_minutes=90)
    assert {"kind": "tvSpecial", "runtime_minutes": "90 min"}.items() <= _details(movie).items()


@pytest.mark.parametrize(
    ("values", "fits"),
    [
        ({}, (True, True)),
        ({"q": "WEEKLY top"}, (True, True)),
        ({"q": "weekly other"}, (False, False)),
        ({"q": "went wrong"}, (False, True)),
        ({"spider": "imdb"}, (True, True)),
        ({"spider": "due"}, (False, False)),
        ({"result": "pending"}, (True, False)),
        *(({"result": result}, (False, True)) for result in ("failed", "problems", "finished")),
    ],
    ids=str,
)
def test_a_job_is_found_by_its_words_its_spider_and_its_result(
    values: dict[str, str], fits: tuple[bool, bool]
) -> None:
    run = {"FRONTIER_RUN": "Weekly"}
    job = Job(project="p", spider="imdb", id="1", arguments={"list": "top"}, settings=run)
    outcome = Outcome(ended_at=NOW, result="failed", reason="it went wrong")
    pending = JobStatus(job=job, state="pending")
    failed = JobStatus(job=job, state="finished", outcome=outcome)
    request = PageRequest(values=values)
    assert (_fits(pending, request), _fits(failed, request)) == fits


def test_a_field_of_many_values_shows_the_first_and_how_many_more_there_are() -> None:
    genres = [f"genre {number}" for number in range(9)]
    shown = "; ".join(genres[:8])
    told = [_details(make_movie(1, genres=genres[:count]))["genres"] for count in (0, 8, 9)]
    assert told == ["", shown, f"{shown} and 1 more"]


@pytest.mark.parametrize(
    ("state", "unreachable", "expected"),
    [
        (SiteState(site="imdb"), [], "open"),
        (SiteState(site="imdb", refusal="403", stopped_until=NOW + 1), ["b"], "paused until"),
        (SiteState(site="imdb", refusal="403", stopped_until=NOW), [], "probing"),
        (SiteState(site="imdb"), ["b", "a"], "unreachable from a, b"),
        (SiteState(site="imdb", used_today=5, budget=Budget(per_day=5)), [], "waiting until 00:00"),
    ],
)
def test_a_card_says_what_the_gate_says(
    state: SiteState, unreachable: list[str], expected: str
) -> None:
    assert gate_of(state, unreachable, NOW).word.startswith(expected)


def test_sites_that_are_not_installed_here_are_shown_and_sick_ones_are_concerns() -> None:
    counts = Counts(at=NOW, titles=1, sites={"other": SiteFigures(site="other", known=3)}, hours={})
    blocked = SiteState(site="imdb", refusal="403", stopped_until=NOW + 60, refused_at=NOW - 60)
    away = msgspec.structs.replace(NODE, unreachable={"metacritic": "HTTP status 503"})
    cards = cards_of(counts, runs_of(imdb=blocked, metacritic=SiteState(site="metacritic")), [away])
    assert [card.site for card in cards] == ["imdb", "metacritic", "rottentomatoes", "other"]
    assert cards[3].counts is not None
    assert cards[2].gate is None, "unknown"
    assert (cards[0].open_runs, cards_of(None, None, [])[0].open_runs) == ([], None)
    (run,) = cards_of(None, runs_of(RUN), [])[0].open_runs or ()
    assert run == RUN
    found = list(concerns_of_sites(cards))
    assert found[0].what == "IMDb is blocking us; paused until 2026-05-28 20:27 UTC"
    assert found[0].since == NOW - 60
    assert found[1].what == "Metacritic can't be reached from a"


@pytest.mark.parametrize(
    "arguments",
    [{"list": "top", "limit": "9"}, {"ids": "tt0000002, tt0000001,tt0000002"}, {}, {"_x": "y"}],
)
def test_run_of_a_job_is_found_by_what_its_spider_calls_it(arguments: dict[str, str]) -> None:
    values = {name: value for name, value in vars(settings).items() if name.isupper()}
    given = {**values, "IMDB_URL": "http://127.0.0.1:8000"}
    crawler = Crawler(ImdbSpider, Settings(given))
    spider = ImdbSpider.from_crawler(crawler, **arguments)
    job = Job(project="p", spider="imdb", id="imdb-top", arguments=arguments)
    sources = sources_of({"IMDB_URL": "http://127.0.0.1:8000"})
    assert sources.run_of(job) == run_name("imdb", crawler.settings, spider.described_arguments)
    named = msgspec.structs.replace(job, settings={"FRONTIER_RUN": "weekly"})
    assert sources.run_of(named) == RunName("imdb", "weekly")


@pytest.mark.parametrize(
    "job",
    [
        Job(project="p", spider="own", id="1"),
        Job(project="p", spider="imdb", id="1", arguments={"ids": "nonsense"}),
    ],
)
def test_job_of_which_no_run_is_known_is_linked_to_none(job: Job) -> None:
    assert sources_of({}).run_of(job) is None


def test_a_run_whose_arguments_nobody_knows_can_not_be_gone_on_with() -> None:
    jobs: Any = SimpleNamespace(jobs=[])
    with pytest.raises(RefusedError, match="what the run gone was started with is not known here"):
        _job_of_run(sources_of({}), None, RunName("imdb", "gone"), jobs)
    job = Job(project="p", spider="imdb", id="1", settings={"FRONTIER_RUN": "weekly"})
    jobs.jobs.append(JobStatus(job=job, state="pending"))
    assert _job_of_run(sources_of({}), None, RunName("imdb", "weekly"), jobs) == job


def test_a_job_is_named_by_its_project_and_its_spider() -> None:
    assert _job_of_path(PageRequest(path=("p", "imdb"))) == Job(project="p", spider="imdb", id="")
    for path in (("p",), ("p", "imdb", "x")):
        with pytest.raises(RefusedError, match="there is no such page"):
            _job_of_path(PageRequest(path=path))


@pytest.mark.parametrize(
    ("state", "result", "reason", "shown"),
    [
        ("pending", None, "", ("calm", "pending", "")),
        ("running", None, "", ("good", "running", "")),
        ("finished", "ok", "finished", ("good", "ok", "")),
        ("finished", "unfinished", "shutdown", ("calm", "unfinished", "shutdown")),
        ("finished", "usage", "usage", ("bad", "wrong usage", "")),
        ("finished", "gave_up", "it was killed", ("bad", "gave up", "it was killed")),
    ],
)
def test_a_job_has_a_state_and_says_why(
    state: Any, result: Result | None, reason: str, shown: tuple[str, str, str]
) -> None:
    outcome = Outcome(ended_at=NOW, result=result, reason=reason) if result else None
    job = Job(project="p", spider="imdb", id="1")
    assert job_state(JobStatus(job=job, state=state, outcome=outcome)) == shown


def test_a_log_is_shown_or_it_is_said_why_there_is_none(tmp_path: Path) -> None:
    node: Any = SimpleNamespace(name="a", options=SimpleNamespace(logs_dir=str(tmp_path)))
    job = Job(project="p", spider="imdb", id="1")
    pending = JobStatus(job=job, state="pending")
    start = Start(number=1, node_id="b", started_at=NOW)
    for status, why in (
        (pending, "No log: the job was never started."),
        (msgspec.structs.replace(pending, node_id="a"), "The log has been deleted."),
        (msgspec.structs.replace(pending, history=[start]), "The log is on b."),
    ):
        assert _log_tail(node, status) == ("", why)
    (tmp_path / "p" / "imdb").mkdir(parents=True)
    (tmp_path / "p" / "imdb" / "1.log").write_text("all went well")
    assert _log_tail(node, pending) == ("all went well", "")


def test_a_run_is_gone_on_with_while_something_is_left_of_it() -> None:
    over = replace(RUN, account=Account(), ended_at=NOW)
    paths = [resume_path(run) for run in (RUN, over, replace(over, requeued=1))]
    assert paths == ["/schedule?run=imdb%2Fdefault", "", "/schedule?run=imdb%2Fdefault"]
    assert resume_path(replace(RUN, site="replay")) == ""
    blocked = SiteState(site="imdb", refusal="403", stopped_until=NOW + 60)
    states = [run_state(run) for run in (RUN, over, replace(RUN, site_state=blocked))]
    assert [state.word for state in states] == ["no worker", "finished", "paused"]
    assert [state.more for state in states] == ["", "", "until 2026-05-28 20:27 UTC: 403"]


@pytest.mark.parametrize(
    ("more", "values", "error"),
    [
        ("limit=1\n\n note = a=b", {"list": "top", "limit": "1", "note": " a=b"}, ""),
        ("list=other", {"list": "top"}, "list is given twice"),
        ("limit", {"list": "top"}, "a line is 'limit'; write NAME=VALUE"),
    ],
)
def test_further_arguments_of_a_form_are_lines(
    more: str, values: dict[str, str], error: str
) -> None:
    errors: dict[str, str] = {}
    filled_in = {"argument.list": "top", "argument.via": "", "setting.X": "1", "arguments": more}
    assert _values(PageRequest(values=filled_in), "argument.", errors) == values
    assert errors == ({"arguments": error} if error else {})


def test_history_is_one_stepped_curve_a_score_out_of_100_with_a_gap_where_there_was_none() -> None:
    begin = datetime(2026, 1, 1, tzinfo=UTC)

    def change(kind: str, day: int, value: float | None, site: str = "imdb") -> SimpleNamespace:
        since = begin + timedelta(days=day)
        normalised = value and value * (10 if kind == "imdb" else 1)
        return SimpleNamespace(
            kind=kind, site=site, since=since, value=value, normalised=normalised
        )

    rows = [
        change("metascore", 5, None, "metacritic"),
        change("metascore", 0, 80, "metacritic"),
        change("imdb", 2, 7.0),
        change("imdb", 0, 9.0),
        change("metascore", 4, 70),
        change("of-another-project", 5, 80, "elsewhere"),
    ]
    chart = history_chart(rows, begin + timedelta(days=10))
    assert chart is not None
    assert (chart.lowest, chart.highest) == (70, 90)
    assert (chart.begins, chart.middle) == (begin, begin + timedelta(days=5))
    assert chart.curves == [
        ("IMDb rating", "M0.0 0.0H120.0V120.0H600", 7.0),
        ("Metascore", "M0.0 60.0H300.0", None),
        ("Metascore on IMDb", "M240.0 120.0H600", 70),
        ("of-another-project on elsewhere", "M300.0 60.0H600", 80),
    ]
    assert history_chart([change("imdb", 0, None)], begin) is None
    constant = history_chart([change("metascore", 0, 80, "metacritic")], begin)
    assert constant is not None
    assert (constant.lowest, constant.highest) == (80, 90)
