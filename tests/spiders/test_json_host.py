"""Titles of Metacritic's are read from its JSON host, and from their pages where that doesn't have them or may not be asked."""

from __future__ import annotations

import json
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from scrapy.settings import Settings

from moviecrawler.catalogue.loading import load
from moviecrawler.catalogue.rows import ImportRow
from moviecrawler.catalogue.store import open_catalogue
from moviecrawler.errors import ConfigurationError
from moviecrawler.replica.movies import Catalogue
from moviecrawler.replica.sources import Answer, Generated
from moviecrawler.sites import SITES
from moviecrawler.spiders.metacritic import MetacriticSpider
from tests.crawling import crawl, crawl_command, scrapy
from tests.middlewares.sites import Site, Told
from tests.spiders.test_endless import spider_of

CATALOGUE = Catalogue(1, 40)
SLUGS = [CATALOGUE.slug("metacritic", index) for index in CATALOGUE.listed["metacritic"].part(0, 2)]
COMPOSED = "/composer/metacritic/pages/movies/{}/web"
PAGE = "/movie/{}/"


def served(path: str) -> Told:
    """Return what the replica answers."""
    answer = Generated(CATALOGUE, light=True).answer("metacritic", path, {}, SITES["metacritic"].home)
    assert isinstance(answer, Answer)
    return Told(answer.status, answer.body.identity())


TWO = f"ids={','.join(f'movie/{slug}' for slug in SLUGS)}"


@pytest.mark.parametrize(
    ("robots", "told", "outcome"),
    [
        (b"", None, "host"),
        (b"User-agent: *\nDisallow: /composer/\n", None, "pages"),
        (b"", Told(404, b'{"errors": [{"code": 404}]}'), "pages"),
        (b"", Told(200, b'{"components": []}'), "pages"),
        (b"", Told(500), "pages"),
        (b"", Told(403), "blocked"),
    ],
)
def test_title_is_read_from(robots: bytes, told: Told | None, outcome: str, tmp_path: Path) -> None:
    with Site() as pages, Site() as host:
        host.answers["/robots.txt"] = Told(200, robots) if robots else Told(404)
        for slug in SLUGS:
            pages.answers[PAGE.format(slug)] = served(PAGE.format(slug))
            host.answers[COMPOSED.format(slug)] = told or served(COMPOSED.format(slug))
        command = crawl_command("metacritic", TWO, RETRY_TIMES="1")
        finished = scrapy(*command, data=tmp_path, METACRITIC_URL=pages.url, METACRITIC_API_URL=host.url)
        stored = sorted(str(movie.site_id) for movie in finished.movies)
        assert stored == ([] if outcome == "blocked" else sorted(f"movie/{slug}" for slug in SLUGS))
        assert set(finished.misses.values()) == ({"blocked"} if outcome == "blocked" else set())
        assert sorted(pages.pages) == (sorted(map(PAGE.format, SLUGS)) if outcome == "pages" else [])
        if robots:
            assert host.asked == ["/robots.txt"]
        elif outcome == "host":
            assert sorted(host.pages) == sorted(COMPOSED.format(slug) + "?contentOnly=true" for slug in SLUGS)


def test_a_shared_crawl_asks_for_a_title_once_whose_page_is_read_after_the_host(redis_url: str, tmp_path: Path) -> None:
    with Site() as pages, Site() as host:
        host.answers["/robots.txt"] = Told(404)
        for slug in SLUGS:
            pages.answers[PAGE.format(slug)] = served(PAGE.format(slug))
            host.answers[COMPOSED.format(slug)] = Told(404, b'{"errors": [{"code": 404}]}')
        command = crawl_command("metacritic", TWO, METACRITIC_URL=pages.url, METACRITIC_API_URL=host.url)
        finished = scrapy(*command, data=tmp_path, REDIS_URL=redis_url)
        assert "metacritic: 2 titles asked for: 2 stored; in " in finished.log


@pytest.mark.parametrize(("status", "per_day", "at_host"), [(404, 10, 5), (500, 100, 10)])
def test_host_without_titles_takes_no_more_than_the_budget(
    status: int, per_day: int, at_host: int, database_url: str, tmp_path: Path
) -> None:
    places = CATALOGUE.listed["metacritic"].part(0, 20)
    rows = [
        ImportRow(
            imdb_id=CATALOGUE.imdb_id(place),
            title=CATALOGUE.basics(place).title,
            kind="movie",
            year=CATALOGUE.basics(place).year,
            site_ids={"metacritic": f"movie/{CATALOGUE.slug('metacritic', place)}"},
        )
        for place in places
    ]
    with closing(open_catalogue(Settings({"DATABASE_URL": database_url}))) as store:
        load(store, "test", "1", rows, len(rows), datetime.now(UTC))
    given = {"RETRY_TIMES": "0", "CATALOGUE_BATCH": "10" if per_day == 10 else "5"}
    given |= {"SITE_BUDGETS": json.dumps({"127.0.0.1": {"per_day": per_day}}), "CSV_ENABLED": "0"}
    with Site() as pages, Site() as host:
        host.answers["/robots.txt"] = pages.answers["/robots.txt"] = Told(404)
        for place in places:
            slug = CATALOGUE.slug("metacritic", place)
            pages.answers[PAGE.format(slug)] = served(PAGE.format(slug))
            host.answers[COMPOSED.format(slug)] = Told(status, b'{"errors": [{"code": 404}]}')
        finished = scrapy(
            *crawl_command("metacritic", "lane=due", **given),
            data=tmp_path,
            METACRITIC_URL=pages.url,
            METACRITIC_API_URL=host.url,
            DATABASE_URL=database_url,
        )
        assert finished.code == 0, finished.log
        assert len(host.pages) <= at_host
        assert len(pages.pages) == min(20, per_day - len(host.pages))


STAND_IN, OTHER, LIVE = "http://127.0.0.1:8001", "http://127.0.0.1:8002", "https://backend.metacritic.com"


@pytest.mark.parametrize(
    ("settings", "host"),
    [
        ({}, LIVE),
        ({"METACRITIC_URL": STAND_IN, "METACRITIC_API_URL": OTHER}, OTHER),
        ({"METACRITIC_URL": STAND_IN, "METACRITIC_API_URL": LIVE}, LIVE),
        ({"METACRITIC_URL": STAND_IN + "/"}, STAND_IN),
        ({"METACRITIC_URL": "https://metacritic.com"}, LIVE),
    ],
)
def test_lists_are_asked_for_at_the_json_host_that_belongs_to_the_pages(settings: dict[str, str], host: str) -> None:
    spider = spider_of(MetacriticSpider, settings)
    assert spider.list_request("new").url.startswith(f"{host}/finder/")
    assert spider.allowed_domains == sorted({urlsplit(url).hostname or "" for url in (spider.home, host)})


def test_a_stand_in_of_the_json_host_alone_does_not_lead_to_the_live_pages() -> None:
    with pytest.raises(ConfigurationError, match=r"METACRITIC_API_URL is .*; set METACRITIC_URL to a stand-in, too"):
        spider_of(MetacriticSpider, {"METACRITIC_API_URL": OTHER})


def test_live_json_host_is_not_asked_for_titles_of_another_site(tmp_path: Path) -> None:
    with Site() as pages:
        for slug in SLUGS:
            pages.answers[PAGE.format(slug)] = served(PAGE.format(slug))
        finished = crawl("metacritic", TWO, data=tmp_path, METACRITIC_URL=pages.url)
        assert len(finished.movies) == 2
        assert len(pages.pages) == 2
