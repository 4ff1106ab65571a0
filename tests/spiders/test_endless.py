"""Lists and sitemaps that have no end, or name what is no address: read as far as they make sense, and told."""

from __future__ import annotations

import json
import tempfile
from typing import Any

import pytest
from scrapy import Request
from scrapy.http import Response
from scrapy.utils.test import get_crawler

import moviecrawler.settings
from moviecrawler.extract.sitemaps import MOST_LOCATIONS
from moviecrawler.spiders.base import MovieSpider
from moviecrawler.spiders.metacritic import FINDER_PAGE, MOST_LISTED, MetacriticSpider
from moviecrawler.spiders.rottentomatoes import MOST_PAGES, RottenTomatoesSpider

INDEX = '<sitemapindex xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{}</sitemapindex>'


def spider_of(kind: type[MovieSpider], settings: dict[str, str] | None = None, **arguments: str) -> Any:
    own = {name: value for name, value in vars(moviecrawler.settings).items() if name.isupper()}
    given = {"DATA_DIR": tempfile.gettempdir(), **(settings or {})}
    return kind.from_crawler(get_crawler(kind, {**own, **given}), **arguments)


def index(*addresses: str) -> bytes:
    return INDEX.format("".join(f"<sitemap><loc>{address}</loc></sitemap>" for address in addresses)).encode()


def read(request: Request, body: bytes) -> list[Request]:
    """Return the requests that an answer leads to."""
    assert request.callback is not None
    yielded = request.callback(Response(request.url, body=body, request=request), **request.cb_kwargs)
    return [one for one in yielded if isinstance(one, Request)]


def missed(spider: Any) -> int:
    return int(spider.crawler.stats.get_value("lists/missed", 0))


def finder(total: int | None, slug: str = "dune") -> bytes:
    item = {"slug": slug, "title": "Dune", "premiereYear": 2021, "type": "movie", "typeId": 2}
    data: dict[str, Any] = {"items": [item]} | ({} if total is None else {"totalResults": total})
    return json.dumps({"data": data}).encode()


def test_finder_that_claims_more_titles_than_there_can_be_is_read_so_far() -> None:
    spider = spider_of(MetacriticSpider, list="new")
    pages = [one for one in read(spider.list_request("new"), finder(10**12)) if "offset" in one.cb_kwargs]
    assert len(pages) == MOST_LISTED // FINDER_PAGE - 1
    assert missed(spider) == 1


@pytest.mark.parametrize(("offset", "goes_on"), [(0, True), (MOST_LISTED - FINDER_PAGE, False)])
def test_finder_that_does_not_say_how_many_it_has_ends(offset: int, goes_on: bool) -> None:
    spider = spider_of(MetacriticSpider, list="new")
    pages = [one for one in read(spider.finder_request("new", offset), finder(None)) if one.priority]
    assert bool(pages) == goes_on
    assert missed(spider) == (not goes_on)


@pytest.mark.parametrize(("pages", "goes_on"), [(1, True), (MOST_PAGES - 1, True), (MOST_PAGES, False)])
def test_cursors_that_are_new_for_ever_are_followed_so_far(pages: int, goes_on: bool) -> None:
    spider = spider_of(RottenTomatoesSpider)
    row = {"title": "Dune", "mediaUrl": "/m/dune_2021", "emsId": "x", "type": "Movie"}
    body = {"grid": {"list": [row]}, "pageInfo": {"endCursor": "another", "hasNextPage": True}}
    seen = [f"cursor{number}" for number in range(pages)]
    request = spider.browse_request("movies_at_home", seen[-1], 30, seen)
    further = [one for one in read(request, json.dumps(body).encode()) if one.priority]
    assert bool(further) == goes_on
    assert missed(spider) == (not goes_on)


@pytest.mark.parametrize("limit", [{}, {"limit": "5"}])
def test_index_within_an_index_is_not_followed(limit: dict[str, str]) -> None:
    spider = spider_of(MetacriticSpider, None, list="sitemap", **limit)
    loop = index("https://www.metacritic.com/movies.xml", "https://www.metacritic.com/movies/1.xml")
    (part,) = read(spider.list_request("sitemap"), loop)
    assert part.url == "https://www.metacritic.com/movies/1.xml"
    assert missed(spider) == 0
    assert read(part, loop) == []
    assert missed(spider) == 1


def test_address_that_is_none_costs_the_other_parts_nothing() -> None:
    spider = spider_of(MetacriticSpider, list="sitemap")
    body = index("https://[www.metacritic.com/movies/1.xml", "https://www.metacritic.com/movies.xml?page=2")
    parts = read(spider.list_request("sitemap"), body)
    assert [one.url for one in parts] == ["https://www.metacritic.com/movies.xml?page=2"]
    assert missed(spider) == 1


@pytest.mark.parametrize("slug", ["..", "\x1b[2Jcleared", "a b", "x" * 301])
def test_row_whose_id_can_be_none_is_passed_over(slug: str, caplog: pytest.LogCaptureFixture) -> None:
    spider = spider_of(MetacriticSpider, list="new")
    assert read(spider.list_request("new"), finder(1, slug)) == []
    assert "can't be a title" in caplog.text
    assert "\x1b" not in caplog.text


def titles_of(*slugs: str) -> bytes:
    row = "<url><loc>https://www.rottentomatoes.com/m/{}</loc></url>"
    return f"<urlset>{''.join(map(row.format, slugs))}</urlset>".encode()


def test_limit_leads_to_as_many_parts_of_a_sitemap_as_it_needs() -> None:
    spider = spider_of(RottenTomatoesSpider, list="sitemap", limit="3")
    parts = [f"https://www.rottentomatoes.com/sitemaps/movie_{number}.xml" for number in range(3)]
    (first,) = read(spider.list_request("sitemap"), index(*parts))
    *titles, second = read(first, titles_of("dune", "up"))
    assert ([first.url, second.url], len(titles)) == (parts[:2], 2)
    assert [one.cb_kwargs["site_id"] for one in read(second, titles_of("alien", "heat"))] == ["m/alien"]


def test_sitemap_with_more_addresses_than_it_may_have_is_read_so_far_and_told() -> None:
    spider = spider_of(RottenTomatoesSpider, list="sitemap", limit="2")
    body = titles_of(*(f"dune_{number}" for number in range(MOST_LOCATIONS + 1)))
    assert len(read(spider.sitemap_request("sitemap", "/sitemaps/movie_1.xml"), body)) == 2
    assert missed(spider) == 1


@pytest.mark.parametrize(
    ("lane", "name", "parts"),
    [
        (None, "sitemap", ["movie_0"]),
        (None, "sitemap-series", ["tv-series_0"]),
        (None, "sitemap-seasons", ["tv-seasons_0"]),
        ("due", "sitemap", ["movie_0", "tv-series_0"]),
    ],
)
def test_an_index_at_one_address_is_asked_for_once(lane: str | None, name: str, parts: list[str]) -> None:
    spider = spider_of(RottenTomatoesSpider)
    spider.plan.lane = lane
    home, addresses = "https://www.rottentomatoes.com/sitemaps/", ("movie_0", "tv-series_0", "tv-seasons_0", "person_0")
    led = read(spider.sitemap_request(name), index(*(f"{home}{part}.xml" for part in addresses)))
    assert [request.url for request in led] == [f"{home}{part}.xml" for part in parts]


@pytest.mark.parametrize(
    "body",
    [
        index("https://www.rottentomatoes.com/sitemaps/films_1.xml"),
        index(),
        titles_of(),
        b"<urlset><url><loc>https://www.rottentomatoes.com/celebrity/x</loc></url><url/></urlset>",
    ],
    ids=["index of other parts", "empty index", "empty part", "part of other pages"],
)
def test_sitemap_with_nothing_of_the_known_kind_could_not_be_read(body: bytes) -> None:
    spider = spider_of(RottenTomatoesSpider, list="sitemap")
    request = spider.list_request("sitemap")
    if b"<urlset" in body:
        (request,) = read(request, index("https://www.rottentomatoes.com/sitemaps/movie_1.xml"))
    assert read(request, body) == []
    assert missed(spider) == 1
