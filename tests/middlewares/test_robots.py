"""robots.txt in all its shapes: crawls against a site whose robots.txt answers as told."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest
from scrapy import Request
from scrapy.exceptions import IgnoreRequest
from scrapy.http import Response
from scrapy.utils.test import get_crawler

from moviecrawler.middlewares import robots
from moviecrawler.middlewares.robots import CautiousRobotsTxtMiddleware
from moviecrawler.spiders.metacritic import MetacriticSpider
from tests.crawling import FAST, Finished, scrapy
from tests.middlewares.sites import Site, Told

NOTHING = b"User-agent: *\nDisallow: /\n"


def crawl_titles(site: Site, folder: Path, titles: int = 2) -> Finished:
    options = [part for name, value in {**FAST, "RETRY_TIMES": "1"}.items() for part in ("-s", f"{name}={value}")]
    ids = ",".join(f"movie/{n}" for n in range(titles))
    return scrapy("crawl", "metacritic", "-a", f"ids={ids}", *options, data=folder, METACRITIC_URL=site.url)


@pytest.mark.promise("robots.txt is obeyed, and a host whose robots.txt can't be had is asked for nothing.")
@pytest.mark.parametrize(
    ("told", "outcome"),
    [
        (Told(404, NOTHING), "absent"),
        (Told(200, b"cut off", {"Content-Length": "999"}), "failed"),
        (Told(301, headers={"Location": "/robots.txt"}), "failed"),
        (Told(202, headers={"x-amzn-waf-action": "challenge"}), "blocked"),
    ],
)
def test_title_ends_as(told: Told, outcome: str, tmp_path: Path) -> None:
    with Site() as site:
        site.answers["/robots.txt"] = told
        finished = crawl_titles(site, tmp_path)
        assert finished.misses == {"movie/0": outcome, "movie/1": outcome}
        assert sorted(site.pages) == (["/movie/0/", "/movie/1/"] if outcome == "absent" else [])


def test_all_requests_that_wait_for_it_obey_it(tmp_path: Path) -> None:
    def late(_: str) -> Told:
        time.sleep(1)
        return Told(200, NOTHING)

    with Site() as site:
        site.answers["/robots.txt"] = late
        finished = crawl_titles(site, tmp_path, titles=12)
        assert set(finished.misses.values()) == {"disallowed"}
        assert len(finished.misses) == 12
        assert site.asked == ["/robots.txt"]


def test_a_bucket_that_refuses_the_robots_txt_that_it_does_not_have_gives_its_datasets(tmp_path: Path) -> None:
    with Site() as site:
        site.answers["/robots.txt"] = Told(403, b"<Error><Code>AccessDenied</Code></Error>")
        arguments = ("crawl", "imdb", "-a", "ids=tt0111161", "-a", "via=datasets", "-s", "RETRY_TIMES=0")
        scrapy(*arguments, data=tmp_path, IMDB_DATASETS_URL=site.url)
        assert site.pages == ["/title.basics.tsv.gz"]


class Engine:
    """Answers requests for robots.txt with what it is told to."""

    def __init__(self) -> None:
        self.answers: list[Any] = []

    async def download_async(self, request: Request) -> Response:
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return Response(request.url, status=answer[0], body=answer[1])


PAGE = "https://www.metacritic.com/movie/dune/"


def middleware_of(*answers: Any) -> tuple[CautiousRobotsTxtMiddleware, Engine]:
    """Return the middleware of a crawl whose requests are answered so."""
    contact = "moviecrawler/1.0 (+https://example.org/crawler)"
    crawler = get_crawler(MetacriticSpider, {"ROBOTSTXT_OBEY": True, "USER_AGENT": contact})
    crawler._engine = engine = Engine()  # type: ignore[assignment]
    engine.answers = list(answers)
    return CautiousRobotsTxtMiddleware.from_crawler(crawler), engine


def allowed(middleware: CautiousRobotsTxtMiddleware) -> bool:
    try:
        asyncio.run(middleware.process_request(Request(PAGE)))
    except IgnoreRequest:
        return False
    return True


@pytest.mark.promise("robots.txt is obeyed, and a host whose robots.txt can't be had is asked for nothing.")
@pytest.mark.parametrize(
    ("status", "body", "open_to_us"),
    [
        (200, b"", True),
        (200, NOTHING, False),
        (401, NOTHING, True),
        (410, NOTHING, True),
        (502, b"", False),
        (200, b"\xef\xbb\xbf" + NOTHING, False),
        (200, NOTHING.replace(b"\n", b"\r").rstrip(), False),
        (200, b"User-agent: MovieCrawler\nDisallow: /\n\nUser-agent: *\nAllow: /\n", False),
        (200, b"User-agent: MovieCrawler\nAllow: /\n\n" + NOTHING, True),
        # A word of CONTACT, which is no name of ours.
        (200, b"User-agent: Example\nAllow: /\n\n" + NOTHING, False),
        (200, NOTHING + b"# too much\n" * 1_000_000 + b"Allow: /\n", False),
    ],
)
def test_what_it_says_holds(status: int, body: bytes, open_to_us: bool) -> None:
    middleware, _ = middleware_of((status, body))
    assert allowed(middleware) == open_to_us


def test_it_is_asked_for_anew_after_a_day_and_after_an_hour_when_it_could_not_be_had(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    middleware, engine = middleware_of((200, b""), OSError("unreachable"), (200, NOTHING))
    now = 1000.0
    monkeypatch.setattr(robots, "monotonic", lambda: now)
    assert allowed(middleware)
    now += 24 * 3600 - 1
    assert allowed(middleware)
    assert len(engine.answers) == 2
    now += 1
    assert not allowed(middleware)
    now += 3599
    assert not allowed(middleware)
    assert len(engine.answers) == 1
    now += 1
    assert not allowed(middleware)
    assert not engine.answers
