"""Which pages lists and sitemaps lead to.

All at once where a list says how many there are, none beyond a limit, and no end that is none.
"""

import json
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from scrapy import Request

from moviecrawler.basics.errors import ConfigurationError
from moviecrawler.items import ListPage
from moviecrawler.replica.process import ReplicaProcess
from moviecrawler.sites.rottentomatoes.replica import BROWSE_ROWS
from moviecrawler.sites.sitemaps import MOST_LOCATIONS
from moviecrawler.spiders.lists import MOST_PAGES, TRENDING_SIZE
from moviecrawler.spiders.metacritic import MetacriticSpider
from moviecrawler.spiders.rottentomatoes import RottenTomatoesSpider
from tests.answers import answer, missed, spider_of
from tests.crawling import counts, crawl

MC = "https://www.metacritic.com"
RT = "https://www.rottentomatoes.com"
STAND_IN = "http://127.0.0.1:8001"
OTHER = "http://127.0.0.1:8002"
FINDER_ROWS = 24
API = "https://backend.metacritic.com"

NOW = "2026-03-01T12:00:00+00:00"


def index(*addresses: str) -> bytes:
    rows = "".join(f"<sitemap><loc>{address}</loc></sitemap>" for address in addresses)
    namespace = "http://www.sitemaps.org/schemas/sitemap/0.9"
    return f'<sitemapindex xmlns="{namespace}">{rows}</sitemapindex>'.encode()


def part(*addresses: str) -> bytes:
    rows = "".join(f"<url><loc>{address}</loc></url>" for address in addresses)
    return f"<urlset>{rows}</urlset>".encode()


def films(*slugs: str) -> bytes:
    return part(*(f"{RT}/m/{slug}" for slug in slugs))


def finder(total: int | str | None, slug: str = "dune") -> bytes:
    item = {"slug": slug, "title": "Dune", "premiereYear": 2021, "type": "movie", "typeId": 2}
    return json.dumps(
        {"data": {"items": [item], **({} if total is None else {"totalResults": total})}}
    ).encode()


BROWSED = json.dumps(
    {
        "grid": {
            "list": [{"title": "Dune", "mediaUrl": "/m/dune_2021", "emsId": "x", "type": "Movie"}]
        },
        "pageInfo": {"endCursor": "another", "hasNextPage": True},
    }
).encode()


def led_to(request: Request, body: bytes) -> tuple[list[str], list[str]]:
    """Return the list pages that an answer leads to, and the titles."""
    found = [one for one in answer(request, body) if isinstance(one, Request)]
    pages = [one.url for one in found if "site_id" not in one.cb_kwargs]
    return pages, [one.cb_kwargs["site_id"] for one in found if "site_id" in one.cb_kwargs]


@pytest.mark.promise(
    "A list or sitemap that can't be read, or has no end, is told and never taken for an empty one."
)
@pytest.mark.parametrize(
    ("total", "limit", "pages", "unread", "ends"),
    [
        (3 * FINDER_ROWS, {}, 2, 0, None),
        (FINDER_ROWS + 1, {}, 1, 0, None),
        (FINDER_ROWS, {}, 0, 0, "list"),
        (3 * FINDER_ROWS, {"limit": str(FINDER_ROWS + 1)}, 1, 0, None),
        (3 * FINDER_ROWS, {"limit": str(FINDER_ROWS)}, 0, 0, "reading"),
        (10**12, {}, MOST_PAGES - 1, 1, None),
        (None, {}, 0, 1, None),
        (int("9" * 400), {}, 0, 1, None),
    ],
)
def test_a_finder_leads_to_all_its_pages_at_once(
    total: int | None, limit: dict[str, Any], pages: int, unread: int, ends: str | None
) -> None:
    spider = spider_of(MetacriticSpider, list="new", **limit)
    found = answer(spider.list_request("new"), finder(total))
    offsets = [
        one.cb_kwargs["before"] for one in found if isinstance(one, Request) and one.priority
    ]
    assert offsets == [FINDER_ROWS * (number + 1) for number in range(pages)]
    for page in [one for one in found if isinstance(one, ListPage)]:
        assert page.next_offset == FINDER_ROWS
        assert page.ends == ends
    assert missed(spider) == unread


@pytest.mark.parametrize("beyond", [0, 1])
def test_a_finder_that_goes_on_after_the_last_page_that_is_read_is_told(
    beyond: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("moviecrawler.spiders.lists.MOST_PAGES", 3)
    spider = spider_of(MetacriticSpider, list="new")
    found = answer(spider.list_request("new"), finder(3 * FINDER_ROWS + beyond))
    assert len([page for page in found if isinstance(page, Request) and page.priority]) == 2
    assert missed(spider) == beyond


def test_the_last_page_of_a_finder_ends_the_list_or_the_reading() -> None:
    for total, ends in ((2 * FINDER_ROWS, "list"), (2 * FINDER_ROWS + 1, "reading")):
        spider = spider_of(MetacriticSpider, list="new", limit=str(2 * FINDER_ROWS))
        found = answer(spider.page_request("new", NOW, FINDER_ROWS), finder(total))
        assert [page.ends for page in found if isinstance(page, ListPage)] == [ends]
        assert not [page for page in found if isinstance(page, Request) and page.priority]


def test_a_list_is_read_until_it_has_enough_titles() -> None:
    spider = spider_of(RottenTomatoesSpider, list="movies_at_home", limit="2")
    assert not spider.has_enough_titles(1, ["m/a"])
    assert spider.has_enough_titles(2)
    assert spider.has_enough_titles(0, ["m/a", "m/b"])
    spider.plan.is_due = True
    assert not spider.has_enough_titles(TRENDING_SIZE - 1)
    assert spider.has_enough_titles(TRENDING_SIZE)


def test_a_page_without_titles_ends_a_list_though_it_names_another_page() -> None:
    spider = spider_of(RottenTomatoesSpider)
    empty = json.dumps({**json.loads(BROWSED), "grid": {"list": []}}).encode()
    (page,) = answer(spider.page_request("movies_at_home", NOW, 32, 1, "another"), empty)
    assert (page.ends, page.entries) == ("list", [])


@pytest.mark.parametrize(
    ("page", "limit", "goes_on"),
    [
        (1, None, True),
        (MOST_PAGES - 1, None, True),
        (MOST_PAGES, None, False),
        (1, 32, True),
        (1, 31, False),
    ],
)
def test_cursors_are_followed_one_page_at_a_time_and_not_for_ever(
    page: int, limit: int | None, goes_on: bool
) -> None:
    spider = spider_of(RottenTomatoesSpider)
    # Others may have asked for what is listed.
    spider.is_shared = True
    spider.plan.limit = limit
    request = spider.page_request("movies_at_home", NOW, 30, page, "another")
    # A cursor that comes again is the same page, which the dupefilter drops.
    assert not request.dont_filter
    listed, title, *pages = answer(request, BROWSED)
    assert [one.url for one in pages] == ([request.url] if goes_on else [])
    assert listed.ends == (None if goes_on else "reading")
    assert [(entry.rank, entry.site_id) for entry in listed.entries] == [(31, "m/dune_2021")]
    assert (title.cb_kwargs["site_id"], title.cb_kwargs["found"].list_rank) == (
        "m/dune_2021",
        31,
    )
    assert missed(spider) == (page == MOST_PAGES)


@pytest.mark.parametrize("limit", [{}, {"limit": "5"}])
def test_an_index_within_an_index_is_not_followed(limit: dict[str, Any]) -> None:
    spider = spider_of(MetacriticSpider, list="sitemap", **limit)
    loop = index(f"{MC}/movies.xml", f"{MC}/movies/1.xml")
    (request,) = answer(spider.list_request("sitemap"), loop)
    assert (request.url, missed(spider)) == (f"{MC}/movies/1.xml", 0)
    assert (answer(request, loop), missed(spider)) == ([], 1)


def test_an_address_that_is_none_costs_the_other_parts_nothing() -> None:
    spider = spider_of(MetacriticSpider, list="sitemap")
    body = index("https://[www.metacritic.com/movies/1.xml", f"{MC}/movies.xml?page=2")
    assert led_to(spider.list_request("sitemap"), body) == ([f"{MC}/movies.xml?page=2"], [])
    assert missed(spider) == 1


@pytest.mark.parametrize("slug", ["..", "\x1b[2Jcleared", "a b", "x" * 301])
def test_a_row_whose_id_can_be_none_is_passed_over(
    slug: str, caplog: pytest.LogCaptureFixture
) -> None:
    spider = spider_of(MetacriticSpider, list="new")
    (page,) = answer(spider.list_request("new"), finder(1, slug))
    assert (page.entries, page.ends) == ([], "list")
    assert "can't be a title" in caplog.text
    assert "\x1b" not in caplog.text


def test_a_limit_leads_to_as_many_parts_of_a_sitemap_as_it_needs() -> None:
    spider = spider_of(RottenTomatoesSpider, list="sitemap", limit="3")
    parts = [f"{RT}/sitemaps/movie_{number}.xml" for number in range(3)]
    (first,) = answer(spider.list_request("sitemap"), index(*parts))
    *titles, second = answer(first, films("dune", "up"))
    assert ([first.url, second.url], len(titles)) == (parts[:2], 2)
    assert led_to(second, films("alien", "heat")) == ([], ["m/alien"])


@pytest.mark.parametrize(
    ("is_due", "name", "parts"),
    [
        (False, "sitemap", ["movie_0", "movie_1"]),
        (False, "sitemap-series", ["tv-series_0"]),
        (False, "sitemap-seasons", ["tv-seasons_0"]),
        (True, "sitemap", ["movie_0", "movie_1", "tv-series_0"]),
    ],
)
def test_an_index_leads_to_all_parts_of_what_is_asked_for(
    is_due: bool, name: str, parts: list[str]
) -> None:
    spider = spider_of(RottenTomatoesSpider)
    spider.plan.is_due = is_due
    named = ("movie_0", "movie_1", "tv-series_0", "tv-seasons_0", "person_0")
    body = index(*(f"{RT}/sitemaps/{one}.xml" for one in named))
    assert led_to(spider.sitemap_request(name), body) == (
        [f"{RT}/sitemaps/{one}.xml" for one in parts],
        [],
    )


@pytest.mark.promise(
    "A list or sitemap that can't be read, or has no end, is told and never taken for an empty one."
)
@pytest.mark.parametrize(
    ("is_index", "body", "titles"),
    [
        (True, index(f"{RT}/sitemaps/films_1.xml"), 0),
        (True, index(), 0),
        (False, films(), 0),
        (False, b"<urlset><url><loc>%s/celebrity/x</loc></url><url/></urlset>" % RT.encode(), 0),
        (False, films(*(f"dune_{number}" for number in range(MOST_LOCATIONS + 1))), 2),
        (False, b"<urlset><url>", 0),
    ],
    ids=[
        "index of other parts",
        "empty index",
        "empty part",
        "part of other pages",
        "too many addresses",
        "cut",
    ],
)
def test_what_can_not_be_read_of_a_sitemap_is_told(
    is_index: bool, body: bytes, titles: int
) -> None:
    spider = spider_of(RottenTomatoesSpider, list="sitemap", limit="2")
    request = spider.sitemap_request("sitemap", "" if is_index else "/sitemaps/movie_1.xml")
    assert [len(found) for found in led_to(request, body)] == [0, titles]
    assert missed(spider) == 1


# --- The limit ------------------------------------------------------------------------------------


@pytest.mark.promise("A limit is kept, with no more list pages than it needs.")
@pytest.mark.parametrize(
    ("spider", "name", "limit", "path", "pages"),
    [
        ("metacritic", "new", FINDER_ROWS + 1, "/finder/", 2),
        ("metacritic", "sitemap", 20, ".xml", 2),
        ("rottentomatoes", "movies_at_home", BROWSE_ROWS, "/browse/", 1),
    ],
)
def test_a_limit_is_kept_with_no_more_list_pages_than_it_needs(
    spider: str,
    name: str,
    limit: int,
    path: str,
    pages: int,
    replica: ReplicaProcess,
    tmp_path: Path,
) -> None:
    finished = crawl(spider, f"list={name}", f"limit={limit}", data=tmp_path, replica=replica)
    assert len(finished.movies) == limit
    assert (
        sum(number for one, number in counts(replica, spider)["paths"].items() if path in one)
        == pages
    )


# --- Metacritic's two hosts -----------------------------------------------------------------------


@pytest.mark.promise("A crawl of a replica asks a live host only where a setting names it.")
@pytest.mark.parametrize(
    ("settings", "host"),
    [
        ({}, API),
        ({"METACRITIC_URL": STAND_IN, "METACRITIC_API_URL": OTHER}, OTHER),
        ({"METACRITIC_URL": STAND_IN, "METACRITIC_API_URL": API}, API),
        ({"METACRITIC_URL": STAND_IN + "/"}, STAND_IN),
        ({"METACRITIC_URL": "https://metacritic.com"}, API),
    ],
)
def test_lists_are_asked_for_at_the_json_host_that_belongs_to_the_pages(
    settings: dict[str, str], host: str
) -> None:
    spider: Any = spider_of(MetacriticSpider, settings)
    assert spider.list_request("new").url.startswith(f"{host}/finder/")
    assert spider.title_request("tv/salt/season-2", None).url == f"{spider.home}/tv/salt/season-2/"
    assert spider.allowed_domains == sorted(
        {urlsplit(url).hostname or "" for url in (spider.home, host)}
    )


def test_a_stand_in_of_the_json_host_alone_does_not_lead_to_the_live_pages() -> None:
    with pytest.raises(
        ConfigurationError, match=r"METACRITIC_API_URL is .*; set METACRITIC_URL to a replica, too"
    ):
        spider_of(MetacriticSpider, {"METACRITIC_API_URL": OTHER})
