"""Which list pages a crawl asks for: all at once where the list says how many there are, and none beyond its limit."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis

from moviecrawler.frontier.keys import SiteKeys
from moviecrawler.frontier.queue import LISTS, TITLES
from moviecrawler.items import Site
from moviecrawler.replica.collection import Collection
from moviecrawler.replica.process import ReplicaProcess
from moviecrawler.replica.rottentomatoes import BROWSE_ROWS
from moviecrawler.replica.sources import SITEMAP_PART
from moviecrawler.spiders.metacritic import FINDER_PAGE
from tests.crawling import counts, crawl, reset
from tests.frontier.workers import Workers, keys_of
from tests.waiting import wait_for

SITEMAP_TITLES = 16_000
"""So many that each site's sitemap has three parts."""
COLLECTION = Collection(1, SITEMAP_TITLES)
PATIENT = "30"
"""Seconds for a page of a list that the replica makes when it is first asked for."""


@pytest.fixture(scope="module")
def replica() -> Iterator[ReplicaProcess]:
    with ReplicaProcess(titles=SITEMAP_TITLES, light=True) as running:
        # It makes its lists when they are first asked for, which takes longer than a worker that is to end waits for a page.
        finder = "/finder/metacritic/web?mcoTypeId=2&sortBy=-releaseDate&limit=24&offset=0"
        for address in (
            running.urls["metacritic"] + finder,
            running.urls["rottentomatoes"] + "/browse/movies_in_theaters",
        ):
            urllib.request.urlopen(address, timeout=60).close()
        yield running


@pytest.fixture(autouse=True)
def _count_from_zero(replica: ReplicaProcess) -> None:
    reset(replica)


def requested(replica: ReplicaProcess, site: str, part: str) -> int:
    """Return how many pages were requested whose path has this in it."""
    return sum(number for path, number in counts(replica, site)["paths"].items() if part in path)


def queued(client: redis.Redis, site: Site, level: int) -> list[dict[str, Any]]:
    """Return URL and arguments of the requests that wait in the queue."""
    keys = keys_of(client, site)
    ids: Any = client.zrange(keys.queue, 0, -1)
    values: list[Any] = client.hmget(keys.requests, ids) if ids else []
    envelopes = [json.loads(value.partition(b"\n")[2]) for value in values if value.startswith(b"%d" % level)]
    return [{"url": envelope[1], **envelope[2]} for envelope in envelopes]


def crawl_pages(pages: int, spider: str, *arguments: str, data: Path, replica: ReplicaProcess, url: str) -> None:
    """Let a worker fetch so many pages, and end."""
    with Workers(
        *(spider, *arguments),
        data=data,
        replica=replica,
        redis_url=url,
        FRONTIER_MAX_PAGES=str(pages),
        DOWNLOAD_TIMEOUT=PATIENT,
    ) as workers:
        workers.start()
        workers.wait()
        assert "(recycled)" in workers.log


def test_finder_is_queued_whole_when_its_first_page_is_read(
    replica: ReplicaProcess, redis_url: str, redis_client: redis.Redis, tmp_path: Path
) -> None:
    crawl_pages(1, "metacritic", "list=new", data=tmp_path, replica=replica, url=redis_url)
    assert counts(replica, "metacritic")["requests"] == 1
    total = len(COLLECTION.site_ids("metacritic"))
    lists = queued(redis_client, "metacritic", LISTS)
    assert [page["offset"] for page in lists] == list(range(FINDER_PAGE, total, FINDER_PAGE))
    titles = queued(redis_client, "metacritic", TITLES)
    assert [title["found"]["list_rank"] for title in titles] == list(range(1, FINDER_PAGE + 1))


@pytest.mark.parametrize("site", ["metacritic", "rottentomatoes"])
def test_sitemap_is_queued_whole_when_its_index_is_read(
    site: Site, replica: ReplicaProcess, redis_url: str, redis_client: redis.Redis, tmp_path: Path
) -> None:
    crawl_pages(1, site, "list=sitemap", data=tmp_path, replica=replica, url=redis_url)
    assert counts(replica, site)["requests"] == 1
    assert len({page["url"] for page in queued(redis_client, site, LISTS)}) == 3
    assert not queued(redis_client, site, TITLES)


def test_cursors_are_followed_one_page_at_a_time(
    replica: ReplicaProcess, redis_url: str, redis_client: redis.Redis, tmp_path: Path
) -> None:
    crawl_pages(1, "rottentomatoes", "list=movies_in_theaters", data=tmp_path, replica=replica, url=redis_url)
    [following] = queued(redis_client, "rottentomatoes", LISTS)
    assert "/cnapi/browse/" in following["url"]
    assert following["before"] == BROWSE_ROWS == len(queued(redis_client, "rottentomatoes", TITLES))


@pytest.mark.parametrize(
    ("workers", "spider", "name", "limit", "part", "pages"),
    [
        (0, "metacritic", "new", FINDER_PAGE, "/finder/", 1),
        (0, "metacritic", "new", FINDER_PAGE + 1, "/finder/", 2),
        pytest.param(2, "metacritic", "new", FINDER_PAGE + 1, "/finder/", 2, marks=pytest.mark.long),
        (0, "metacritic", "sitemap", 20, ".xml", 2),
        (0, "rottentomatoes", "movies_at_home", BROWSE_ROWS, "/browse/", 1),
        pytest.param(0, "rottentomatoes", "movies_at_home", BROWSE_ROWS + 1, "/browse/", 2, marks=pytest.mark.long),
        (2, "rottentomatoes", "movies_at_home", BROWSE_ROWS + 1, "/browse/", 2),
        (2, "rottentomatoes", "sitemap", 20, ".xml", 2),
    ],
)
def test_limit_is_kept_with_no_more_list_pages_than_it_needs(
    workers: int,
    spider: str,
    name: str,
    limit: int,
    part: str,
    pages: int,
    replica: ReplicaProcess,
    redis_url: str,
    tmp_path: Path,
) -> None:
    arguments = [f"list={name}", f"limit={limit}"]
    if workers:
        with Workers(
            spider, *arguments, data=tmp_path, replica=replica, redis_url=redis_url, DOWNLOAD_TIMEOUT=PATIENT
        ) as running:
            running.start(workers)
            assert running.wait() == [0] * workers, running.log
            stored = len(running.movies)
    else:
        stored = len(crawl(spider, *arguments, data=tmp_path, replica=replica, DOWNLOAD_TIMEOUT=PATIENT).movies)
    assert stored == limit
    assert requested(replica, spider, part) == pages


@pytest.mark.long
def test_limit_beyond_the_first_part_of_a_sitemap_is_reached(
    replica: ReplicaProcess, redis_url: str, redis_client: redis.Redis, tmp_path: Path
) -> None:
    limit = SITEMAP_PART + 1

    def total() -> int:
        found = redis_client.exists(SiteKeys("rottentomatoes").runs)
        return int(redis_client.hget(keys_of(redis_client, "rottentomatoes").state, "total") or 0) if found else 0

    arguments = ("rottentomatoes", "list=sitemap", f"limit={limit}")
    with Workers(*arguments, data=tmp_path, replica=replica, redis_url=redis_url, DOWNLOAD_TIMEOUT=PATIENT) as workers:
        workers.start()
        wait_for(lambda: total() == 3 + limit, 60)  # the index, two parts, and the titles
    assert requested(replica, "rottentomatoes", ".xml") == 3
    assert not queued(redis_client, "rottentomatoes", LISTS)
