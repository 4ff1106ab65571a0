import asyncio
from pathlib import Path
from typing import Any

import pytest
from scrapy import Request, Spider
from scrapy.exceptions import IgnoreRequest
from scrapy.http import Response
from scrapy.utils.test import get_crawler

from moviecrawler.frontier.budget_middleware import BudgetMiddleware
from moviecrawler.frontier.budgets import UNLIMITED
from moviecrawler.frontier.sqlite_backend import SqliteBackend
from moviecrawler.middlewares.blocks import ROBOTS_OF, SiteBlockMiddleware, SiteStopped
from moviecrawler.spiders.imdb import ImdbSpider

PAGE = b"<html>" + b"x" * 5000 + b"</html>"
TINY = b"<html></html>"


@pytest.fixture
def middleware(tmp_path: Path) -> SiteBlockMiddleware:
    settings = {"RETRY_TIMES": 1, "RETRY_BACKOFF": 0, "DATA_DIR": str(tmp_path)}
    crawler = get_crawler(ImdbSpider, settings)
    crawler.spider = Spider.from_crawler(crawler, name="test")
    middleware = SiteBlockMiddleware.from_crawler(crawler)
    middleware.budgets = BudgetMiddleware(crawler, UNLIMITED, SqliteBackend(tmp_path))
    return middleware


def request(path: str = "a", site: str = "imdb") -> Request:
    return Request(f"https://example.com/{site}/{path}", meta={"site": site, "expects": "page"})


def answer(
    middleware: SiteBlockMiddleware,
    sent: Request,
    body: bytes = PAGE,
    status: int = 200,
    headers: Any = None,
) -> Request | Response:
    response = Response(sent.url, status=status, headers=headers, body=body)
    return asyncio.run(middleware.process_response(sent, response))


@pytest.mark.promise("A healthy page is never taken for a block.")
@pytest.mark.parametrize("status", [404, 410, 500, 503, 304])
def test_answer_that_is_no_refusal_passes(middleware: SiteBlockMiddleware, status: int) -> None:
    assert isinstance(answer(middleware, request(), b"", status), Response)
    middleware.process_request(request())


@pytest.mark.promise("A refusal ends the crawl of that site.")
@pytest.mark.parametrize(
    ("status", "retry_after"), [(202, ""), (403, ""), (429, "120"), (503, "120")]
)
def test_refusal_stops_the_site_and_no_other(
    middleware: SiteBlockMiddleware, status: int, retry_after: str
) -> None:
    with pytest.raises(SiteStopped, match="imdb refused us"):
        answer(
            middleware, request(), b"", status, {"Retry-After": retry_after} if retry_after else {}
        )
    with pytest.raises(SiteStopped):
        middleware.process_request(request("b"))
    middleware.process_request(request("b", site="metacritic"))
    stats = middleware.crawler.stats
    assert stats.get_value("blocks/not_sent") == 1
    assert "imdb refused us" in stats.get_value("blocks/imdb/stopped")


def test_three_unexpected_pages_in_a_row_stop_the_site(middleware: SiteBlockMiddleware) -> None:
    for path in "abcdef":
        assert isinstance(answer(middleware, request(path), TINY), Request)
        # This begins the count anew.
        assert isinstance(answer(middleware, request(path), PAGE), Response)
    for path in "ab":
        assert isinstance(answer(middleware, request(path), TINY), Request)
    robots = Request("https://example.com/robots.txt", meta={ROBOTS_OF: "imdb"})
    assert isinstance(answer(middleware, robots), Response)  # which shows no proper page
    assert isinstance(answer(middleware, request(), b"", 404), Response)
    with pytest.raises(SiteStopped):
        answer(middleware, request("c"), TINY)


def test_one_page_that_is_always_unexpected_fails_alone(middleware: SiteBlockMiddleware) -> None:
    again = answer(middleware, request(), TINY)
    assert isinstance(again, Request)
    with pytest.raises(IgnoreRequest, match="unexpected page") as error:
        answer(middleware, again, TINY)
    assert not isinstance(error.value, SiteStopped)
    middleware.process_request(request("b"))
