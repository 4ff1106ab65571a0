"""What a page says that no reader foresaw: its title is a miss, its list is told, and nothing else is lost."""

from __future__ import annotations

import re
from typing import Any

import pytest
from scrapy.http import Response

from moviecrawler.extract import imdb
from moviecrawler.extract.embedded import reader
from moviecrawler.items import Miss, Movie
from moviecrawler.spiders.imdb import ImdbSpider
from moviecrawler.spiders.metacritic import MetacriticSpider
from tests.shared import PROJECT
from tests.spiders.test_endless import missed, spider_of

PAGES = PROJECT / "tests" / "pages"


def changed(case: str, pattern: bytes, digits: int) -> bytes:
    """Return a page in which the number that follows a pattern has so many digits."""
    (page,) = (PAGES / case).glob("page.*")
    body, count = re.subn(pattern + rb"\d+", lambda found: found[1] + b"9" * digits, page.read_bytes())
    assert count
    return body


def test_title_with_a_day_of_twenty_digits_is_a_movie_without_that_date() -> None:
    spider = spider_of(ImdbSpider, ids="tt0900005")
    (request,) = spider.title_requests([("tt0900005", None)])
    body = changed("imdb/title-2026-castv2", rb'("day":\s*)', 20)
    (movie,) = spider.parse_title(Response(request.url, body=body, request=request), "tt0900005", None)
    assert isinstance(movie, Movie)
    assert movie.release_date is None
    assert "release_date" in movie.unknown_fields


def test_title_whose_reader_fails_as_nobody_foresaw_is_a_miss(monkeypatch: pytest.MonkeyPatch) -> None:
    @reader
    def title(body: bytes, url: str) -> None:
        raise OverflowError(body[:4], url)

    monkeypatch.setattr(imdb, "title", title)
    spider = spider_of(ImdbSpider, ids="tt0900005")
    (request,) = spider.title_requests([("tt0900005", None)])
    (miss,) = spider.parse_title(Response(request.url, body=b"<html>", request=request), "tt0900005", None)
    assert isinstance(miss, Miss)
    assert miss.outcome == "failed"
    assert "OverflowError" in miss.reason


def test_list_with_a_total_of_four_hundred_digits_is_told() -> None:
    spider = spider_of(MetacriticSpider, list="new")
    request = spider.list_request("new")
    body = changed("metacritic/finder-movies", rb'("totalResults":\s*)', 400)
    yielded: list[Any] = list(spider.parse_list(Response(request.url, body=body, request=request), "new", 0))
    assert yielded == []
    assert missed(spider) == 1
