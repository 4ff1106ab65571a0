"""What stores refuse: published in Redis beside the file, shown page by page, and fetched again."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
import redis
from scrapy.settings import Settings

from moviecrawler.clock import utc_now
from moviecrawler.dashboard.stores import _ITEM_ID, fetch_again, page_of_rejected
from moviecrawler.extensions import publishing
from moviecrawler.extensions.crawl_keys import CrawlKeys
from moviecrawler.extensions.rejected_items import KEPT, RejectedItem, RejectedItems, record_of
from moviecrawler.frontier.keys import Keys
from moviecrawler.frontier.scheduler import FrontierScheduler
from moviecrawler.items import Fetch, RawPage, Site
from moviecrawler.redis_client import connect
from moviecrawler.replica.process import ReplicaProcess
from tests.crawling import Finished, counts, crawl, reset
from tests.pipelines.runs import make_miss, make_movie
from tests.services.redis import RedisServer
from tests.services.replica import IDS as ALL_IDS

IDS = ALL_IDS[:8]
SPOIL = f'''
from pathlib import Path

class Spoil:
    """Gives one title a year that no title has, and one a number that no store can keep, while a file is there."""
    def process_item(self, item):
        if not Path("spoilt").exists():
            return item
        if item.site_id == "{IDS[2]}" and hasattr(item, "year"):
            item.year = 15
        return item

class SpoilLater(Spoil):
    def process_item(self, item):
        if Path("spoilt").exists() and item.site_id == "{IDS[5]}" and hasattr(item, "list_rank"):
            item.list_rank = 10**30
        return item
'''
PIPELINES = {
    "spoil.Spoil": 50,
    "moviecrawler.pipelines.validate.ValidatePipeline": 100,
    "spoil.SpoilLater": 150,
    "moviecrawler.pipelines.csv.CsvPipeline": 300,
}
START_URLS: dict[Site, str] = {site: Keys(site, "").start_urls for site in ("imdb", "metacritic", "rottentomatoes")}


def ask(url: str, what: Any, *arguments: Any) -> Any:
    async def asked() -> Any:
        client = connect(url)
        try:
            return await what(client, *arguments)
        finally:
            await client.aclose()

    return asyncio.run(asked())


def page(url: str, before: str = "", size: int = 50) -> list[tuple[str, RejectedItem]]:
    items, _ = ask(url, page_of_rejected, before, size)
    return [(id_, item) for id_, item in items if item is not None]


def test_refused_items_are_published_and_their_titles_fetched_again(
    replica: ReplicaProcess, redis_url: str, redis_client: redis.Redis, tmp_path: Path
) -> None:
    (tmp_path / "spoil.py").write_text(SPOIL)
    (tmp_path / "spoilt").touch()

    def run(*arguments: str) -> Finished:
        settings = {"ITEM_PIPELINES": json.dumps(PIPELINES), "REDIS_URL": redis_url, "FRONTIER_NODE": "here"}
        return crawl("imdb", *arguments, data=tmp_path, replica=replica, **settings)

    done = run(f"ids={','.join(IDS)}")
    lines = [json.loads(line) for line in (tmp_path / "rejected.jsonl").read_text().splitlines()]
    assert {(line["store"], line["item"]["site_id"]) for line in lines} == {("validate", IDS[2]), ("csv", IDS[5])}
    told = page(redis_url)
    assert {(one.store, one.reason, one.site_id) for _, one in told} == {
        (line["store"], line["reason"], line["item"]["site_id"]) for line in lines
    }
    for _, one in told:
        assert (one.site, one.kind, one.run, one.node) == ("imdb", "Movie", "default", "here")
        assert one.url == f"{replica.urls['imdb']}/title/{one.site_id}/"
        assert one.title == ("imdb", one.site_id)
        assert one.item.startswith('{"site":"imdb"')
    assert 0 < redis_client.ttl(CrawlKeys.REJECTED) <= 30 * 86_400
    assert {movie.site_id for movie in done.movies} == set(IDS) - {IDS[2], IDS[5]}

    # The dupefilter of the same run knows their pages.
    (tmp_path / "spoilt").unlink()
    reset(replica)
    assert ask(redis_url, fetch_again, told[0][0], START_URLS)
    assert ask(redis_url, fetch_again, told[1][0], START_URLS)
    assert not ask(redis_url, fetch_again, told[1][0], START_URLS)
    again = run(f"ids={IDS[0]},{IDS[1]}", "limit=1")  # which the two don't count for
    assert again.code == 0, again.log
    assert {movie.site_id for movie in again.movies} == set(IDS)
    # The two, and the one that the new start names, each once; no other title.
    fetched = {path: number for path, number in counts(replica)["paths"].items() if path.startswith("/title/")}
    assert fetched == {f"/title/{site_id}/": 1 for site_id in (IDS[0], IDS[2], IDS[5])}
    assert redis_client.llen("imdb:start_urls") == redis_client.xlen(CrawlKeys.REJECTED) == 0


# --- Publishing ---------------------------------------------------------------------------------------------------------


def publisher(url: str) -> tuple[RejectedItems, Any]:
    """Return the extension of a crawl on that Redis, and its client."""
    client = connect(url, socket_connect_timeout=0.5, socket_timeout=0.5)
    crawler: Any = SimpleNamespace(
        settings=Settings({"REDIS_URL": "set", "FRONTIER_RUN": "a-run", "FRONTIER_NODE": "a-node"}),
        engine=SimpleNamespace(scheduler=FrontierScheduler(client)),
    )
    return RejectedItems(crawler), client


async def drained(items: RejectedItems) -> None:
    assert items._task is not None
    async with asyncio.timeout(20):
        await items._task


def test_items_wait_while_redis_is_away_and_nobody_waits_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(publishing, "PUBLISH_SECONDS", 0.1)

    async def run(server: RedisServer) -> None:
        items, client = publisher(server.url)
        server.stop()
        for number in range(250):
            items.item_rejected("csv", "no", make_movie(number))
        began = asyncio.get_running_loop().time()
        await items.spider_closed()
        assert asyncio.get_running_loop().time() - began < 8
        server.start()
        items.publish_soon()
        await drained(items)
        await client.aclose()

    with RedisServer() as server:
        asyncio.run(run(server))
        # Redis may have stored some of which the answer was lost.
        assert {one.site_id for _, one in page(server.url, size=999)} == {f"tt{number:07}" for number in range(250)}


def test_only_the_latest_are_kept_in_redis_and_in_the_process(
    redis_url: str, redis_client: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(publishing, "PUBLISH_SECONDS", 0.1)

    async def run() -> None:
        items, client = publisher(redis_url)
        for first, last in ((0, KEPT + 300), (5000, 5100)):
            for number in range(first, last):
                items.item_rejected("csv", "no", make_movie(number))
            assert len(items._waiting) <= KEPT
            await drained(items)
        await client.aclose()

    asyncio.run(run())
    assert redis_client.xlen(CrawlKeys.REJECTED) == KEPT
    told = page(redis_url, size=KEPT)
    assert (told[0][1].site_id, told[-1][1].site_id) == ("tt0005099", "tt0000400")


HOSTILE = "half a \ud83c \x00 \x1b[2J <script>"


@pytest.mark.parametrize(
    "item",
    [
        make_movie(1, title=HOSTILE, site_id=HOSTILE, url=HOSTILE, list_rank=10**30, plot="Rain. " * 100_000),
        make_movie(1, site="nowhere", site_id=None, url=None, credits=object(), scores={1: {2: b"3"}}),
        make_miss(1, reason=HOSTILE),
        RawPage(
            site="imdb", site_id=None, url="https://www.imdb.com/", status=200, fetched_at=utc_now(),
            archive_id="urn:uuid:1", record=b"\xff" * 1_000_000,
        ),
        "no JSON " + HOSTILE * 1000,
    ],
    ids=["movie", "senseless", "miss", "page", "text"],
)  # fmt: skip
def test_anything_is_record_of_in_a_few_kilobytes(item: Any) -> None:
    taken = record_of("csv", HOSTILE * 100, item, run="r", node="n", now=1.0)
    encoded = msgspec.json.encode(taken)
    assert len(encoded) < 30_000
    assert msgspec.json.decode(encoded, type=RejectedItem) == taken
    assert taken.reason.startswith("half a \\ud83c")
    assert "\\xff" not in taken.item


@pytest.mark.parametrize(
    ("changes", "title"),
    [
        ({}, ("imdb", "tt0000001")),
        ({"site_id": "rubbish"}, ("imdb", "tt0000001")),
        ({"site_id": "rubbish", "url": "https://www.imdb.com/"}, None),
        ({"site_id": "rubbish", "url": "x", "fetch": Fetch(url="https://m.imdb.com/title/tt0000007/?ref=1", status=200,
          attempts=1, wire_bytes=1, body_bytes=1)}, ("imdb", "tt0000007")),
        ({"site": "nowhere"}, None),
        ({"site_id": None, "url": None}, None),
    ],
)  # fmt: skip
def test_title_is_told_by_the_id_or_else_by_where_it_came_from(changes: dict[str, Any], title: Any) -> None:
    assert record_of("csv", "no", make_movie(1, **changes), run="r", node="n", now=1.0).title == title


# --- Reading ------------------------------------------------------------------------------------------------------------


def test_items_are_paged_through_each_once_while_others_come(redis_url: str, redis_client: redis.Redis) -> None:
    def add(number: int) -> None:
        item = record_of("csv", "no", make_movie(number), run="r", node="n", now=number)
        redis_client.xadd(CrawlKeys.REJECTED, {"item": msgspec.json.encode(item)})

    for number in range(25):
        add(number)
    redis_client.xadd(CrawlKeys.REJECTED, {"item": b'{"store":"\xff"}'})
    redis_client.xadd(CrawlKeys.REJECTED, {"item": "of another version"})
    items, in_all = ask(redis_url, page_of_rejected, "", 10)
    assert ([item for _, item in items[:2]], in_all) == ([None, None], 27)
    seen: list[tuple[str, RejectedItem | None]] = []
    before = ""
    while True:
        items, _ = ask(redis_url, page_of_rejected, before, 10)
        seen += items[:10]
        add(100 + len(seen))
        if len(items) <= 10:
            break
        before = items[9][0]
        assert _ITEM_ID.fullmatch(before)
    assert [one.at for _, one in seen if one is not None] == list(range(24, -1, -1))
    assert not any(map(_ITEM_ID.fullmatch, ["", "x", "1", "-", "1-", "1-1 ", f"{'9' * 30}-1", "1-1\n"]))
