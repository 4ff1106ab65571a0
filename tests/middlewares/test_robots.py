"""robots.txt in all its shapes: crawls against a site whose robots.txt answers as told."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from scrapy import Request
from scrapy.exceptions import IgnoreRequest
from scrapy.http import Response
from scrapy.utils.test import get_crawler

from moviecrawler.middlewares import robots
from moviecrawler.middlewares.robots import CautiousRobotsTxtMiddleware, RobotsRefusal
from moviecrawler.spiders.metacritic import MetacriticSpider
from tests.crawling import FAST, scrapy
from tests.middlewares.sites import Site, Told

NOTHING = b"User-agent: *\nDisallow: /\n"


@pytest.mark.promise(
    "robots.txt is obeyed, and a host whose robots.txt can't be had is asked for nothing."
)
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
        options = [
            part
            for name, value in {**FAST, "RETRY_TIMES": "1"}.items()
            for part in ("-s", f"{name}={value}")
        ]
        arguments = ("crawl", "metacritic", "-a", "ids=movie/0,movie/1", *options)
        finished = scrapy(*arguments, data=tmp_path, METACRITIC_URL=site.url)
        assert finished.misses == {"movie/0": outcome, "movie/1": outcome}
        assert sorted(site.pages) == (["/movie/0/", "/movie/1/"] if outcome == "absent" else [])


def test_a_bucket_that_refuses_the_robots_txt_that_it_does_not_have_gives_its_datasets(
    tmp_path: Path,
) -> None:
    with Site() as site:
        site.answers["/robots.txt"] = Told(403, b"<Error><Code>AccessDenied</Code></Error>")
        arguments = (
            "crawl",
            "imdb",
            "-a",
            "ids=tt0111161",
            "-a",
            "via=datasets",
            "-s",
            "RETRY_TIMES=0",
        )
        scrapy(*arguments, data=tmp_path, IMDB_DATASETS_URL=site.url)
        assert site.pages == ["/title.basics.tsv.gz"]


class Engine:
    """Answers requests for robots.txt with what it is told to."""

    def __init__(self) -> None:
        self.answers: list[Any] = []

    async def download_async(self, request: Request) -> Response:
        await asyncio.sleep(0)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return Response(request.url, status=answer[0], body=answer[1])


PAGE = "https://www.metacritic.com/movie/dune/"


def middleware_of(*answers: Any) -> tuple[CautiousRobotsTxtMiddleware, Engine]:
    """Return the middleware of a crawl whose requests are answered so."""
    contact = "moviecrawler/1.0 (+https://example.org/crawler)"
    crawler = get_crawler(MetacriticSpider, {"ROBOTSTXT_OBEY": True, "USER_AGENT": contact})
    engine = Engine()
    crawler._engine = engine  # type: ignore[assignment]
    engine.answers = list(answers)
    return CautiousRobotsTxtMiddleware.from_crawler(crawler), engine


def allowed(middleware: CautiousRobotsTxtMiddleware) -> bool:
    try:
        asyncio.run(middleware.process_request(Request(PAGE)))
    except IgnoreRequest:
        return False
    return True


@pytest.mark.promise(
    "robots.txt is obeyed, and a host whose robots.txt can't be had is asked for nothing."
)
@pytest.mark.parametrize(
    ("status", "body", "open_to_us"),
    [
        (200, b"", True),
        (200, NOTHING, False),
        (401, NOTHING, True),
        (410, NOTHING, True),
        (500, b"", False),
        (502, b"", False),
        (200, b"\xef\xbb\xbf" + NOTHING, False),
        (200, NOTHING.replace(b"\n", b"\r").rstrip(), False),
        (200, b"User-agent: MovieCrawler\nDisallow: /\n\nUser-agent: *\nAllow: /\n", False),
        (200, b"User-agent: MovieCrawler\nAllow: /\n\n" + NOTHING, True),
        # A word of CONTACT, which is no name of ours.
        (200, b"User-agent: Example\nAllow: /\n\n" + NOTHING, False),
        (200, NOTHING + b"# too much\n" * 1_000_000 + b"Allow: /\n", False),
        # Half a line at the end of what is read.
        (
            200,
            NOTHING + b"\nAllow: /nothing/else\n".rjust(512 * 1024 + 13 - len(NOTHING), b"#"),
            False,
        ),
    ],
)
def test_what_it_says_holds(status: int, body: bytes, open_to_us: bool) -> None:
    middleware, _ = middleware_of((status, body))
    assert allowed(middleware) == open_to_us


async def test_all_requests_that_wait_for_it_obey_it() -> None:
    middleware, engine = middleware_of((200, NOTHING))
    waiting = (middleware.process_request(Request(PAGE)) for _ in range(12))
    assert {type(told) for told in await asyncio.gather(*waiting, return_exceptions=True)} == {
        RobotsRefusal
    }
    assert not engine.answers


def test_it_is_asked_for_anew_after_a_day_and_after_an_hour_when_it_could_not_be_had(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    middleware, engine = middleware_of((200, b""), OSError("unreachable"), (200, NOTHING))
    clock = [1000.0]
    monkeypatch.setattr(robots, "monotonic", lambda: clock[0])
    # Seconds since the step before; whether the page may be asked for; answers that were not asked
    # for yet.
    for passed, is_open, left in (
        (0, True, 2),
        (86_399, True, 2),
        (1, False, 1),
        (3599, False, 1),
        (1, False, 0),
    ):
        clock[0] += passed
        assert (allowed(middleware), len(engine.answers)) == (is_open, left)
