"""What a spider makes of a title's page that nobody foresaw.

The title is stored or a miss, and nothing else is lost.
"""

import re
from types import SimpleNamespace

import pytest
from scrapy.http import Request, Response
from scrapy.spidermiddlewares.httperror import HttpError

from moviecrawler.basics.errors import ConfigurationError
from moviecrawler.frontier.serialisation import DueTitle
from moviecrawler.items import Entry, ListRow, Miss, Page
from moviecrawler.sites.imdb import pages as imdb
from moviecrawler.sites.titles import new_title
from moviecrawler.spiders.arguments import Seed
from moviecrawler.spiders.imdb import ImdbSpider
from moviecrawler.spiders.results import movie_and_seasons
from tests.answers import answer, spider_of


@pytest.mark.promise("A damaged or hostile page costs bounded time and memory, and no other title.")
def test_title_whose_reader_fails_as_nobody_foresaw_is_a_miss(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def title(body: bytes) -> None:
        raise OverflowError(body[:4])

    monkeypatch.setattr(imdb, "title", title)
    entry = Entry(site_id="tt0900005", title="Salt", kind="movie")
    found = ListRow(list_name="top", list_rank=7, entry=entry)
    miss, listed = answer(spider_of(ImdbSpider).title_request("tt0900005", found), b"<html>")
    assert isinstance(miss, Miss)
    assert miss.outcome == "failed"
    assert "OverflowError" in miss.reason
    assert listed.source == "list"  # what the list says of it is stored


def test_the_next_id_that_may_be_a_titles_is_tried_when_the_site_has_no_such_page() -> None:
    spider = spider_of(ImdbSpider)
    ids = ["tt0900005", "tt0900006"]
    due = DueTitle(title_id=1, ids=ids, boosted=False, evidence="list", expected=None)
    request = spider._due_request(due)
    absent = SimpleNamespace(value=HttpError(Response(request.url, status=404)), request=request)
    _, following = spider.title_failed(absent)
    assert following.cb_kwargs["site_id"] == "tt0900006"


@pytest.mark.parametrize(
    "seed",
    [
        b"rubbish",
        b"\xff",
        b'{"url": 1}',
        b'{"url": "tt0000001", "meta": {}}',
        b'{"url": "tt1"',
        b"[" * 9999,
    ],
)
async def test_a_seed_that_is_none_is_refused(seed: bytes) -> None:
    with pytest.raises(ConfigurationError, match=r"is not a seed|is not a title of imdb"):
        await spider_of(ImdbSpider, via="pages").request_of_seed(seed)


async def test_a_seed_says_how_its_title_is_asked_for() -> None:
    request = await spider_of(ImdbSpider, via="pages").request_of_seed(
        b'{"url": "https://m.imdb.com/title/tt0000001/?ref_=x", "priority": 100, '
        b'"proxy_pool": "tor", "max_retries": 0}'
    )
    assert (request.url, request.priority, request.dont_filter) == (
        "https://www.imdb.com/title/tt0000001/",
        100,
        True,
    )
    assert (request.meta["proxy_pool"], request.meta["max_retry_times"]) == ("tor", 0)


@pytest.mark.parametrize(
    "text", ["https://me:pass/w@rd@host/x", '{"url": "http://me:password@host", "meta": 1}']
)
async def test_a_seed_with_a_password_is_not_shown(text: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        await spider_of(ImdbSpider, via="pages").request_of_seed(text.encode())
    assert not re.search(r"pass|w@rd|host", str(refused.value))
    assert Seed.parse(b"tt1").url == "tt1"


@pytest.mark.parametrize(("number", "year"), [(1, 2001), (2, None)])
def test_a_series_has_the_year_of_its_first_season_only(number: int, year: int | None) -> None:
    season = new_title("rottentomatoes", f"tv/salt/s{number:02}", "Salt", series_title="Salt Roads")
    season.year = 2001
    page = Page(site="rottentomatoes", kind="tv", movie=season)
    series, seasons = movie_and_seasons(page, season, "tv/salt")
    assert (series.site_id, series.title, series.year) == ("tv/salt", "Salt Roads", year)
    assert seasons == [season]
    assert movie_and_seasons(page, season, str(season.site_id)) == (season, [])


@pytest.mark.parametrize("retries", [0, 100])
def test_a_seed_says_how_often_its_title_is_tried_again(retries: int) -> None:
    seed = '{"url": "tt0900001", "max_retries": %d}'
    assert Seed.parse((seed % retries).encode()).max_retries == retries
    for wrong in (-1, 101):
        with pytest.raises(ConfigurationError, match="is not a seed"):
            Seed.parse((seed % wrong).encode())


def test_each_title_is_requested_once_up_to_the_limit_and_what_is_none_is_passed_by() -> None:
    spider = spider_of(ImdbSpider, limit=2, via="pages")
    ids = ["tt0900001", "tt0900001", "nm0900001", "tt0900002", "tt0900003"]
    found = [request.cb_kwargs["site_id"] for request in spider.title_requests(ids)]
    assert found == ["tt0900001", "tt0900002"]
    assert list(spider.title_requests(["tt0900003"])) == []


def test_full_credits_are_requested_as_the_title_was() -> None:
    movie = new_title("imdb", "tt0900001", "Salt", "movie")
    url = "https://www.imdb.com/title/tt0900001/"
    response = Response(url, request=Request(url, meta={"proxy_pool": "tor", "a": 1}))
    assert spider_of(ImdbSpider, via="pages").complete(movie, response) is movie
    request = spider_of(ImdbSpider, credits="full").complete(movie, response)
    assert request.url == f"{url}fullcredits/"
    assert request.meta == {"expects": "page", "site": "imdb", "proxy_pool": "tor"}


class LampSpider(ImdbSpider):
    """A spider of somebody else for the same site."""

    name = "lamps"


def test_a_spider_is_described_by_its_name_where_that_is_not_its_sites() -> None:
    for kind, is_named in ((LampSpider, True), (ImdbSpider, False)):
        spider = spider_of(kind, ids="tt0900001")
        assert ("lamps" in str(spider.described_arguments)) is is_named
        assert spider.allowed_domains == ["datasets.imdbws.com", "www.imdb.com"]
