"""What may stand in a job, and what its end means."""

import errno
import os
import re
from pathlib import Path
from typing import Any
from unittest.mock import Mock, call

import msgspec
import pytest
from scrapy.settings import default_settings
from twisted.internet.error import ProcessExitedAlready
from twisted.internet.task import Clock
from twisted.web.error import Error

from moviecrawler import settings
from moviecrawler.basics.credentials import holds_secret, redacted
from moviecrawler.basics.errors import ConfigurationError
from moviecrawler.cluster import process
from moviecrawler.cluster.figures import Totals
from moviecrawler.cluster.jobs import JOB_SETTINGS, Job, Outcome, Report, RunEnd, check_job
from moviecrawler.cluster.launcher import _DRAIN_SECONDS
from moviecrawler.cluster.options import NodeOptions
from moviecrawler.cluster.state import JobStatus
from moviecrawler.cluster.webservice import Ready


def job(**changed: Any) -> Job:
    return Job(**{"project": "movies", "spider": "imdb", "id": "a1", **changed})


_BYTES = len(msgspec.json.encode(job(arguments={"a": ""})))
"""The size of a job with an empty argument."""


def test_ordinary_job_may_pass() -> None:
    arguments = {"ids": "tt1,tt2", "list": "movies_at_home/sort:newest", "name": "Amélie"}
    check_job(
        job(
            settings={"LOG_LEVEL": "DEBUG", "FRONTIER_RUN": "weekly"},
            arguments=arguments,
            priority=-3.5,
        )
    )
    check_job(job(arguments={"a": "x" * (65_536 - _BYTES)}))
    for version in ("1.0+dirty", "r12-feature/faster_lists"):
        check_job(job(version=version))
    check_job(job(settings={"FEEDS": "{}"}, arguments={"file": "ids.txt"}), "any")
    with pytest.raises(ConfigurationError, match="holds a secret"):
        check_job(job(settings={"DATABASE_URL": "postgresql://u:hunter2@h/d"}), "any")


@pytest.mark.parametrize("name", ["", "weekly"])
def test_a_job_s_run_has_the_name_that_its_settings_give_and_never_its_id(name: str) -> None:
    """Without a name, the crawl makes one of its arguments, and is told when it was queued."""
    queued = f"{1_780_000_000_250_000:016}"
    leased = JobStatus(
        job=job(id="imdb-top", settings={"FRONTIER_RUN": name} if name else {}),
        state="running",
        queue_member=queued,
    )
    given = process.spider_settings(NodeOptions(redis_url="", node_name="node1"), leased, {})
    assert "imdb-top" not in given.values()
    named = {"FRONTIER_RUN": name} if name else {"FRONTIER_ASKED_AT": "1780000000.250"}
    assert {key: value for key, value in given.items() if key.startswith("FRONTIER")} == {
        "FRONTIER_NODE": "node1",
        **named,
    }


@pytest.mark.parametrize(
    ("limit", "own", "made"),
    [
        (300, "301", "300"),
        (300, "299", "299"),
        (300, "1", "1"),
        (300, "0", "300"),
        (300, "much", "much"),
        (300, None, "300"),
        (0, "301", "301"),
        (0, None, None),
    ],
)
def test_a_job_may_only_lower_the_memory_limit_of_its_node(
    limit: int, own: str | None, made: str | None
) -> None:
    settings = {} if own is None else {"MEMUSAGE_LIMIT_MB": own}
    leased = JobStatus(job=job(settings=settings), state="running", queue_member="1" * 16)
    given = process.spider_settings(NodeOptions(redis_url="", memory_limit_mb=limit), leased, {})
    assert given.get("MEMUSAGE_LIMIT_MB") == made


@pytest.mark.parametrize(
    ("size", "end"), [(9, "one\ntwo\n"), (8, "one\ntwo\n"), (7, "two\n"), (4, ""), (0, "")]
)
def test_the_end_of_a_log_is_whole_lines(tmp_path: Path, size: int, end: str) -> None:
    log = tmp_path / "a.log"
    log.write_text("one\ntwo\n")
    assert process.read_end(log, size) == end
    assert process.last_lines(log, " \n") == "one\ntwo\n"
    assert process.last_lines(log, "why") == "why"
    assert log.read_text() == "one\ntwo\nwhy"


def test_a_process_that_is_gone_has_no_memory() -> None:
    assert process.memory_of() > 2**20
    assert process.memory_of(2**30) == 0


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        *(
            ({name: value}, f"{name} is")
            for name in ("project", "spider")
            for value in ("../etc", "-h", "a\x00")
        ),
        *(({"id": value}, "jobid is") for value in ("..", "a" * 65, "a b")),
        ({"id": "a" * 81}, f"jobid is {'a' * 80!r}; "),
        ({"settings": {"A" * 81: "x"}}, f"setting is called {'A' * 80!r}; "),
        ({"version": ""}, "version is"),
        *(({"priority": float(value)}, "priority is") for value in ("inf", "nan")),
        ({"settings": {"A B": "x"}}, "setting is called"),
        ({"settings": {"LOG_FILE": "/etc/passwd"}}, "LOG_FILE cannot be set by a job"),
        ({"settings": {"DEPTH_LIMIT": "1"}}, "DEPTH_LIMIT cannot be set by a job"),
        (
            {"settings": {"DATABASE_URL": "postgresql://u:hunter2@h/d"}},
            "DATABASE_URL holds a secret",
        ),
        ({"arguments": {"password": "x"}}, "holds a secret"),
        ({"arguments": {"file": "/etc/passwd"}}, "argument file names a path"),
        ({"arguments": {"_job": "x"}}, "argument is called"),
        ({"arguments": {"a": "\x00"}}, "NUL"),
        ({"arguments": {"a": "x" * (65_536 - _BYTES + 1)}}, "longer than 65,536 bytes"),
    ],
)
def test_hostile_job_is_refused_with_a_sentence(changed: dict[str, Any], expected: str) -> None:
    with pytest.raises(ConfigurationError, match=r"^[^\n]+$") as error:
        check_job(job(**changed))
    assert expected in str(error.value)
    assert "hunter2" not in str(error.value)


@pytest.mark.parametrize(
    ("reason", "stats", "ended", "expected"),
    [
        ("finished", "pages", {}, "finished"),
        ("finished", "pages", {"stopped": True}, "finished"),
        ("site_stopped", "pages", {}, "finished"),
        ("shutdown", "pages", {}, "finished"),
        ("shutdown", "pages", {"stopped": True}, "handed_back"),
        ("shutdown", "pages", {"cancelled": "TERM"}, "cancelled"),
        ("recycled", "pages", {}, "recycled"),
        ("recycled", "", {}, "died"),
        ("budget_spent", "pages", {"exit_code": 3}, "finished"),
        ("memusage_exceeded", "pages queue", {}, "recycled"),
        ("memusage_exceeded", "queue", {}, "died"),
        ("memusage_exceeded", "pages", {}, "finished"),  # it would begin anew each time
        ("frontier_unreachable", "pages", {}, "died"),
        (None, "", {"exit_code": 2}, "finished"),
        (None, "", {"exit_code": 1, "errors": "Timeout (0:01:00.1)!\nThread 0x1"}, "died"),
        (None, "", {"signal": 9}, "died"),
        (None, "", {"signal": 9, "stopped": True}, "handed_back"),
        (None, "", {"signal": 2, "cancelled": "INT"}, "cancelled"),
    ],
)
def test_end_of_a_process_means(
    reason: str | None, stats: str, ended: dict[str, Any], expected: str
) -> None:
    told = Report(**{"reason": reason, "errors": "x\nno such list\n", **ended})
    told.stats |= {"response_received_count": 10.0} if "pages" in stats else {}
    told.stats |= {"frontier/run/requested": 10.0} if "queue" in stats else {}
    how, why = told.classify()
    assert how == expected
    assert ended != {"exit_code": 2} or why == "exit code 2: no such list"


def test_spider_that_ignores_the_end_of_its_node_is_killed_before_that(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(process, "reactor", clock := Clock())
    spider = process.SpiderProcess(JobStatus(job=job(), state="running"), Totals())
    monkeypatch.setattr(spider, "send", sent := Mock())
    spider.stop()
    clock.advance(24)
    assert sent.call_args_list == [call("TERM")]
    clock.advance(_DRAIN_SECONDS - 24 - 4)
    assert sent.call_args_list == [call("TERM"), call("KILL")]


def test_a_process_is_given_its_task_reports_in_lines_and_ends() -> None:
    spider = process.SpiderProcess(JobStatus(job=job(), state="running"), Totals())
    spider.transport = transport = Mock(pid=5)
    spider.send("TERM")
    spider._task = b"{}"
    spider.connectionMade()
    transport.writeToChild.assert_called_once_with(0, b"{}")
    for data in (
        b'{"reason": "fin',
        b'ished"}\n{"stats": {"pages/read": 2}}\n{"clos',
        b'ing": "x"}',
    ):
        spider.childDataReceived(3, data)
    assert (spider.report.reason, spider.report.closing) == ("finished", None)
    assert spider.report.stats == {"pages/read": 2}
    spider.childDataReceived(1, b"it was printed")
    spider.childDataReceived(2, b"x" * 20_000)
    assert spider.report.errors == "x" * 16 * 1024
    transport.signalProcess.side_effect = ProcessExitedAlready
    spider.send("KILL")
    assert transport.signalProcess.call_args_list == [call("KILL")]
    spider.processEnded(Mock(value=Mock(signal=9, exitCode=None)))
    assert (spider.pid, spider.report.signal, spider.report.exit_code) == (None, 9, None)
    assert spider._ended.called


@pytest.mark.promise("No secret is in a log, a queue or a command line.")
def test_what_a_spider_writes_to_standard_error_is_kept_without_secrets() -> None:
    spider = process.SpiderProcess(JobStatus(job=job(), state="running"), Totals())
    spider.childDataReceived(2, b"no connection to postgresql://u:hunter2@h/d")
    assert ("@h/d" in spider.report.errors, "hunter2" in spider.report.errors) == (True, False)


def test_a_node_that_takes_no_jobs_is_not_ready_and_says_why() -> None:
    reasons = ["the disk of logs_dir is full: 3 MB are free (/srv)", "Redis throws keys away"]
    ready = Ready(Mock(node=Mock(launcher=Mock(unready_reasons=reasons))))
    with pytest.raises(Error) as refused:
        ready.render_GET(Mock())
    expected = b"the disk of logs_dir is full; Redis throws keys away"
    assert refused.value.message == expected, "no path and no address for strangers"


@pytest.mark.parametrize(
    ("lines", "exit_code", "expected"),
    [
        (
            ['{"closing": "store_unavailable", "cause": "PostgreSQL can\'t be used"}'],
            1,
            "store_unavailable: PostgreSQL can't be used",
        ),
        (
            [
                '{"closing": "budget_spent", "cause": "600 pages were fetched today"}',
                '{"reason": "budget_spent", "stats": {"x": 1}}',
            ],
            3,
            "budget_spent: 600 pages were fetched today",
        ),
        (['{"reason": "finished", "cause": "a pool has no proxy"}'], 0, "finished"),
        ([], 1, "exit code 1: next: nothing"),
    ],
)
def test_reason_is_the_sentence_of_what_ended_the_crawl(
    lines: list[str], exit_code: int, expected: str
) -> None:
    told = Report(errors="Traceback\nnext: nothing\n", exit_code=exit_code)
    for line in lines:
        told.update(line.encode())
    assert told.classify() == ("finished", expected)


@pytest.mark.parametrize(
    ("reason", "told", "is_nodes"),
    [
        (None, {"errors": f"x\nOSError: [Errno {errno.ENOSPC}] {os.strerror(errno.ENOSPC)}"}, True),
        (None, {"errors": f"x\nOSError: [Errno {errno.EROFS}] Read-only: '/logs/x'"}, True),
        (None, {"errors": f"ConnectionRefusedError: [Errno {errno.ECONNREFUSED}] x"}, False),
        (None, {"errors": "NameError: x"}, False),
        ("clock_wrong", {"cause": "the clock is 1,440 minutes ahead"}, True),
        ("store_unavailable", {"cause": "sqlite can't be used: database or disk is full"}, True),
        ("store_unavailable", {"cause": "PostgreSQL can't be used"}, False),
        (
            "store_stuck",
            {"cause": "database or disk is full", "stats": {"response_received_count": 1.0}},
            False,
        ),
    ],
)
def test_job_that_fails_for_a_reason_of_its_node_before_its_first_page_goes_back(
    reason: str | None, told: dict[str, Any], is_nodes: bool
) -> None:
    ended = Report(reason=reason, exit_code=1, **told)
    assert (ended.classify()[0] == "node_failed") == is_nodes


@pytest.mark.parametrize(
    ("how", "exit_code", "expected"),
    [
        ("finished", 0, "ok"),
        ("finished", 1, "failed"),
        ("finished", 2, "usage"),
        ("finished", 3, "unfinished"),
        ("finished", None, "failed"),
        ("cancelled", 0, "cancelled"),
    ],
)
def test_result_of_a_job_follows_from_its_exit_code(
    how: RunEnd, exit_code: int | None, expected: str
) -> None:
    assert Report(exit_code=exit_code).outcome(how, "x").result == expected


def test_what_a_spider_has_told_last_stands_in_the_outcome_and_nonsense_is_ignored() -> None:
    told = Report()
    for line in (
        b'{"stats": {"item_scraped_count": 1, "pages/read": 1}}',
        b'{"stats": {"item_scraped_count": 3}, "summary": ["3 titles asked for", "3 stored"]}',
        b'{"x":' + b"[" * 50_000,
        b'{"stats": 1}',
        b"\xff",
        b"",
        b'{"reason": "finished", "stats": {"log_count/ERROR": 2}}',
    ):
        told.update(line)
    assert (told.reason, told.stats["pages/read"]) == ("finished", 1)
    figures: Any = {
        "items": 3,
        "errors": 2,
        "pages": 0,
        "bytes": 0,
        "summary": ["3 titles asked for", "3 stored"],
    }
    assert told.outcome("finished", "finished") == Outcome(reason="finished", **figures)
    assert Report(exit_code=1).outcome("finished", "x") == Outcome(reason="x", exit_code=1)
    told.update(b'{"summary": ["' + b"x" * 501 + b'"]}')
    assert [len(line) for line in told.summary] == [500]


@pytest.mark.promise(
    "A job makes no setting that names a class, a path or a URL, and shows no secret."
)
def test_a_job_may_make_no_setting_that_does_harm() -> None:
    harmful = {
        "CONTACT",
        "USER_AGENT",
        "ROBOTSTXT_OBEY",
        "SITE_BUDGETS",
        "DOWNLOAD_MAXSIZE",
        "FRONTIER_NODE",
        "FEEDS",
    }
    assert not JOB_SETTINGS & harmful
    both = {**vars(default_settings), **vars(settings)}
    for name in JOB_SETTINGS:
        assert not re.search(r"[/\\]|\w\.[a-z]\w", str(both[name])) or name == "DOWNLOAD_SLOTS", (
            name
        )
        assert not re.search(r"CLASS|_URI|_URL|_DIR|FILE|MODULE|PATH", name), name


# --- Secrets --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("x", "postgresql://me:hunter2@db/x"),
        ("x", "postgresql://db/x?user=me&password=hunter2"),
        ("x", "host=db user=me password=hunter2"),
        ("x", '{"url": "postgresql:\\/\\/me:hunter2@db\\/x"}'),
        ("x", '{"url": "postgresql\\u003a//me\\u003ahunter2@db/x"}'),
        ("x", "postgresql%3A%2F%2Fme%3Ahunter2%40db%2Fx"),
        ("x", '{"aws_secret_access_key": "hunter2"}'),
        ("x", '{"a": {"urls": ["http://u:hunt@er2@h:1"]}}'),
        ("x", "Authorization: Basic aHVudGVyMg=="),
        ("x", "https://hunter2@files.example/imdb"),
        ("x", "a@b,me:hunter2@proxy.example:8080"),
        ("my_api_key", "hunter2"),
        ("MONGO_PWD", "hunter2"),
        ("ALERT_URLS", "slack://hunter2/lamps"),
        ("ALERT_WEBHOOK", "https://hooks.example/hunter2"),
    ],
)
def test_secret_is_found_in_whatever_form(name: str, value: str) -> None:
    assert holds_secret(name, value)


@pytest.mark.parametrize(
    "value",
    [
        "tt0000001,tt0000002",
        "https://www.imdb.com/title/tt0000001/",
        "https://social.example/@me",
        "a=b -s X=/x",
        "browse/at_home",
        "12:30",
    ],
)
def test_usual_argument_is_no_secret(value: str) -> None:
    assert not holds_secret("ids", value)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("no postgresql://me:hunter2@db/x", "no postgresql://***@db/x"),
        ("redis://:hunt@er2@h:1,redis://:x@i:2/a@b", "redis://***@h:1,redis://***@i:2/a@b"),
        ("no https://hunter2@files.example/imdb", "no https://***@files.example/imdb"),
        ("http://h:1/a:b@c and u:p@h", "http://h:1/a:b@c and ***@h"),
        ("bad dsn: host=db password=hunter2 user=me", "bad dsn: host=db password=*** user=me"),
        ('bad JSON: {"api_token": "hunter2", "x": 1}', 'bad JSON: {"api_token": "***", "x": 1}'),
        ("the token is missing: set X_TOKEN", "the token is missing: set X_TOKEN"),
    ],
)
def test_secrets_are_left_out_of_messages(text: str, shown: str) -> None:
    assert redacted(text) == shown
