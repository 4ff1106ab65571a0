"""What may stand in a job, and what its end means."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moviecrawler.cluster.jobs import Job, Report, check_job, check_name, classify_end
from moviecrawler.errors import ConfigurationError


def job(**changed: Any) -> Job:
    return Job(**{"project": "movies", "spider": "imdb", "id": "a1", **changed})


def test_ordinary_job_may_pass() -> None:
    check_name("version", "r12-feature/faster_lists")
    check_job(
        job(
            version="1.0+dirty",
            settings={"LOG_LEVEL": "DEBUG", "FRONTIER_RUN": "weekly"},
            arguments={"ids": "tt1,tt2", "list": "movies_at_home/sort:newest", "name": "Amélie"},
            priority=-3.5,
        )
    )


def test_job_works_on_a_crawl_of_its_own_unless_it_names_one() -> None:
    assert job(id="b" * 64).run == "b" * 64
    assert job(settings={"FRONTIER_RUN": "weekly"}).run == "weekly"


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({"project": "../etc"}, "project is"),
        ({"project": "a" * 65}, "project is"),
        ({"version": ""}, "version is"),
        ({"spider": "../../x"}, "spider is"),
        ({"spider": "-h"}, "spider is"),
        ({"spider": "a\x00"}, "spider is"),
        ({"id": ".."}, "jobid is"),
        ({"id": "a" * 65}, "jobid is"),
        ({"id": "a b"}, "jobid is"),
        ({"priority": float("inf")}, "priority is"),
        ({"priority": float("nan")}, "priority is"),
        ({"settings": {"A B": "x"}}, "setting is called"),
        ({"settings": {"LOG_FILE": "/etc/passwd"}}, "LOG_FILE can't be made by a job"),
        ({"settings": {"DATABASE_URL": "postgresql://u:hunter2@h/d"}}, "DATABASE_URL holds a secret"),
        ({"arguments": {"password": "x"}}, "holds a secret"),
        ({"arguments": {"_job": "x"}}, "argument is called"),
        ({"arguments": {"a": "\x00"}}, "NUL"),
        ({"arguments": {f"a{n}": "x" for n in range(65)}}, "has 65 arguments"),
        ({"arguments": {"a": "x" * 65_537}}, "longer than 65,536"),
    ],
)
def test_hostile_job_is_refused_with_a_sentence(changed: dict[str, Any], expected: str) -> None:
    with pytest.raises(ConfigurationError, match=r"^[^\n]+$") as error:
        check_job(job(**changed))
    assert expected in str(error.value)
    assert "hunter2" not in str(error.value)


@given(st.dictionaries(st.text(max_size=8), st.text(max_size=30), max_size=3), st.text(max_size=20), st.floats())
def test_any_job_is_refused_or_comes_back_whole(arguments: dict[str, str], name: str, priority: float) -> None:
    given_job = job(arguments=arguments, id=name, priority=priority)
    try:
        check_job(given_job)
    except ConfigurationError:
        return
    assert msgspec.json.decode(msgspec.json.encode(given_job), type=Job) == given_job
    assert "/" not in name
    assert not name.startswith(".")


def report(reason: str | None, pages: int = 10, *, shared: bool = True) -> Report:
    stats = {"response_received_count": float(pages), **({"frontier/errors": 0.0} if shared else {})}
    return Report(reason=reason, stats=stats)


@pytest.mark.parametrize(
    ("told", "ended", "expected"),
    [
        (report("finished"), {}, "finished"),
        (report("finished"), {"stopped": True}, "finished"),
        (report("site_stopped"), {}, "finished"),
        (report("shutdown"), {}, "finished"),
        (report("shutdown"), {"stopped": True}, "handed_back"),
        (report("shutdown"), {"cancelled": True}, "cancelled"),
        (report("recycled"), {}, "recycled"),
        (report("recycled", pages=0), {}, "died"),
        (report("memusage_exceeded"), {}, "recycled"),
        (report("memusage_exceeded", pages=0), {}, "died"),
        (report("memusage_exceeded", pages=0, shared=False), {}, "died"),
        (report("memusage_exceeded", shared=False), {}, "finished"),
        (report("frontier_unreachable"), {}, "died"),
        (report(None), {"exit_code": 2}, "finished"),
        (report(None), {"exit_code": 1, "hung": True}, "died"),
        (report(None), {"signal": 9}, "died"),
        (report(None), {"signal": 9, "stopped": True}, "handed_back"),
        (report(None), {"signal": 2, "cancelled": True}, "cancelled"),
    ],
)
def test_end_of_a_process_means(told: Report, ended: dict[str, Any], expected: str) -> None:
    usual = {"signal": None, "exit_code": None, "cancelled": False, "stopped": False, "hung": False}
    how, reason = classify_end(told, last_error="no such list", **{**usual, **ended})
    assert how == expected
    if ended == {"exit_code": 2}:
        assert reason == "exit code 2: no such list"


def test_what_a_spider_has_told_last_stands_in_the_outcome() -> None:
    told = Report()
    told.update(b'{"stats": {"item_scraped_count": 1, "pages/read": 1}}')
    told.update(b'{"stats": {"item_scraped_count": 3}, "summary": ["3 titles asked for", "3 stored"]}')
    told.update(b'{"reason": "finished", "stats": {"log_count/ERROR": 2}}')
    assert (told.reason, told.stats["pages/read"]) == ("finished", 1)
    expected = {"items": 3, "errors": 2, "pages": 0, "bytes": 0, "summary": ["3 titles asked for", "3 stored"]}
    assert told.figures == expected
    assert Report().figures == {"summary": []}


def test_cluster_whose_users_are_trusted_takes_any_setting_but_no_secret() -> None:
    check_job(job(settings={"FEEDS": "{}"}, arguments={"file": "ids.txt"}), "any")
    with pytest.raises(ConfigurationError, match="holds a secret"):
        check_job(job(settings={"DATABASE_URL": "postgresql://u:hunter2@h/d"}), "any")
