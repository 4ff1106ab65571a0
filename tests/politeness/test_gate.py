"""What a gate does while time passes, for requests of crawls that have one folder."""

import asyncio
import logging
from pathlib import Path
from typing import Any
from unittest.mock import AsyncMock, Mock

import pytest
from scrapy import Request
from scrapy.exceptions import DownloadTimeoutError
from scrapy.http import Response

from moviecrawler.basics.errors import FrontierError
from moviecrawler.politeness.gate import Closed, Disallowed
from moviecrawler.politeness.meta import CLOSED_META
from moviecrawler.spiders.metacritic import MetacriticSpider
from tests.chain import Chain, page

HOME = "https://www.metacritic.com"
API = "https://backend.metacritic.com"
NOON = 1_790_000_000 // 86_400 * 86_400 + 43_200
"""A Unix time at noon."""
HOUR = 3600.0
DAY = 24 * HOUR


class World:
    """The sites, as they are asked."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.robots: dict[str, Any] = {}
        """By scheme and host, the text of a robots.txt, or its status, or an error; by default
        there is none."""
        self.pages: dict[str, Any] = {}
        """By path, the status of a page, or an error; by default it is 200."""
        self.delay = 0.0
        """Seconds until a page answers."""
        self.sent: list[tuple[float, str]] = []
        """When what was asked."""
        self.began = 0.0

    def clock(self) -> float:
        return NOON + asyncio.get_running_loop().time()

    def crawl(self, **settings: Any) -> Chain:
        """Return another crawl of Metacritic that has joined a run."""
        given = {"SITE_BUDGETS": "", "RETRY_TIMES": 1, **settings}
        chain = Chain(self.folder, self._answer, MetacriticSpider, self.clock, **given)
        chain.politeness.has_joined = True
        return chain

    async def _answer(self, request: Request) -> Response:
        now = asyncio.get_running_loop().time()
        host, path = request.url[:8] + request.url[8:].partition("/")[0], request.url[8:]
        path = "/" + path.partition("/")[2]
        self.sent.append((now, path))
        told = self.pages.get(path, 200)
        if path == "/robots.txt":
            told = self.robots.get(host, 404)
        else:
            await asyncio.sleep(self.delay)
        request.meta["download_latency"] = asyncio.get_running_loop().time() - now
        if isinstance(told, Exception):
            raise told
        if isinstance(told, str):
            return page(request, 200, told.encode())
        if told == 301:
            return page(request, 301, headers={"Location": "/moved"})
        return page(request, told)

    def times(self, path: str) -> list[int]:
        """Return when a path was asked, in seconds."""
        return [round(at) for at, asked in self.sent if asked == path]

    @property
    def paths(self) -> list[str]:
        """Return what was asked besides robots.txt."""
        return [path for _, path in self.sent if path != "/robots.txt"]


@pytest.fixture
def world(tmp_path: Path) -> World:
    """Return sites, and crawls that ask them."""
    return World(tmp_path)


async def send(chain: Chain, *paths: str, host: str = HOME) -> list[str]:
    """Send requests at once; return the status of each answer, or what was raised."""
    ended = await asyncio.gather(
        *(chain.send(f"{host}/{path}") for path in paths), return_exceptions=True
    )
    return [str(one.status) if isinstance(one, Response) else type(one).__name__ for one in ended]


async def now() -> float:
    return asyncio.get_running_loop().time()


# --- Turns ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "robots", "delay", "times"),
    [
        ({}, 404, 0.0, [0, 5, 10]),  # spaced by a little more than the rate asks for
        ({"SITE_BUDGETS": '{"metacritic": {"per_second": 0.1}}'}, 404, 0.0, [0, 10, 21]),
        ({"DOWNLOAD_DELAY": "30"}, 404, 0.0, [0, 30, 60]),
        ({"DOWNLOAD_DELAY": "1"}, 404, 0.0, [0, 5, 10]),
        ({}, "User-agent: *\nCrawl-delay: 20\n", 0.0, [0, 20, 40]),
        ({}, "User-agent: other\nCrawl-delay: 20\n", 0.0, [0, 5, 10]),
        ({}, 404, 9.0, [0, 9, 18]),
    ],
    ids=["rate", "slower", "delay", "shorter-delay", "crawl-delay", "of-others", "slow-site"],
)
async def test_the_gap_is_the_longest_that_somebody_asks_for(
    world: World, settings: dict[str, str], robots: Any, delay: float, times: list[int]
) -> None:
    world.robots[HOME] = robots
    world.delay = delay
    chain = world.crawl(**settings)
    if delay:  # each is sent when the one before has answered, so that its time is known
        for _ in times:
            assert await send(chain, "movie/a/") == ["200"]
    else:
        assert await send(chain, *["movie/a/"] * len(times)) == ["200"] * len(times)
    assert world.times("/movie/a/") == times


async def test_hosts_of_a_site_and_its_workers_share_its_rate(world: World) -> None:
    one, two = world.crawl(), world.crawl()
    await asyncio.gather(
        send(one, "movie/a/", "movie/b/"), send(two, "list", host=API), send(two, "movie/c/")
    )
    times = sorted(round(at) for at, path in world.sent if path != "/robots.txt")
    assert times == [0, 5, 10, 16]


async def test_a_shorter_delay_has_no_effect_which_is_said_once(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(2):
        await send(world.crawl(DOWNLOAD_DELAY="1"), "movie/a/", "movie/b/")
    said = "DOWNLOAD_DELAY is 1 s, which has no effect: metacritic is asked once in 5 s at most, by"
    assert caplog.text.count(said) == 2  # by each crawl
    caplog.clear()
    for seconds in ("5", "9"):
        await send(world.crawl(DOWNLOAD_DELAY=seconds), "movie/a/")
    await send(world.crawl(), "movie/a/")
    assert "DOWNLOAD_DELAY" not in caplog.text


async def test_a_replica_is_asked_as_fast_as_it_answers_and_a_delay_that_is_set_holds(
    world: World,
) -> None:
    local = {"METACRITIC_URL": "http://127.0.0.1"}
    world.robots["http://127.0.0.1"] = "User-agent: *\nCrawl-delay: 20\n"
    world.delay = 3.0
    chain = world.crawl(**local)
    await send(chain, *["a"] * 5, host="http://127.0.0.1")
    assert world.times("/a") == [0] * 5
    chain = world.crawl(DOWNLOAD_DELAY=7, **local)
    await send(chain, *["b"] * 3, host="http://127.0.0.1")
    assert world.times("/b") == [3, 10, 17]


async def test_a_request_that_waits_is_given_back_when_the_crawl_ends(world: World) -> None:
    chain = world.crawl(DOWNLOAD_DELAY=600)
    await send(chain, "movie/a/")
    waiting = asyncio.create_task(send(chain, "movie/b/", "movie/c/"))
    await asyncio.sleep(100)
    await chain.engine.close_spider_async("shutdown")
    assert await waiting == ["Closed", "Closed"]
    assert await now() < 101
    assert world.paths == ["/movie/a/"]


# --- robots.txt -----------------------------------------------------------------------------------

NOTHING = "User-agent: *\nDisallow: /\n"


async def test_all_requests_that_wait_for_a_robots_txt_obey_it(world: World) -> None:
    world.robots[HOME] = NOTHING
    assert await send(world.crawl(), *"abcdefgh") == ["Disallowed"] * 8
    assert world.sent == [(0.0, "/robots.txt")]


async def test_each_host_of_a_site_has_its_own(world: World) -> None:
    world.robots[API] = NOTHING
    chain = world.crawl()
    assert await send(chain, "movie/a/") == ["200"]
    assert await send(chain, "list", host=API) == ["Disallowed"]
    with pytest.raises(Disallowed, match="robots"):
        await chain.send(f"{API}/another")


async def test_it_is_asked_for_again_after_a_day(world: World) -> None:
    chain = world.crawl()
    for hours in (0, 23.9, 0.2):
        await asyncio.sleep(hours * HOUR)
        await send(chain, "movie/a/")
    assert len(world.times("/robots.txt")) == 2


@pytest.mark.promise(
    "robots.txt is obeyed, and a host that has given none for 7 days is asked for nothing."
)
@pytest.mark.parametrize("gone", [503, DownloadTimeoutError("no answer")])
async def test_an_earlier_one_holds_for_a_week_while_none_can_be_had(
    world: World, gone: Any
) -> None:
    world.robots[HOME] = "User-agent: *\nDisallow: /tv/\n"
    assert await send(world.crawl(), "movie/a/") == ["200"]
    world.robots[HOME] = gone
    await asyncio.sleep(6 * DAY)
    chain = world.crawl()  # another process: what all know of it is in the queue
    assert await send(chain, "movie/a/", "tv/a") == ["200", "Disallowed"]
    asked = len(world.times("/robots.txt"))
    assert await send(chain, "movie/b/") == ["200"]
    assert len(world.times("/robots.txt")) == asked  # it is tried again in an hour
    await asyncio.sleep(DAY)
    for crawl in (chain, world.crawl()):
        assert await send(crawl, "movie/c/") == ["Closed"]


# --- Unreachable ----------------------------------------------------------------------------------


@pytest.mark.promise("Faults that pass, such as a broken connection or a 500, cost no title.")
async def test_a_site_without_robots_txt_is_tried_after_30_s_and_then_after_twice_as_long(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    world.robots[HOME] = 503
    chain = world.crawl(RETRY_TIMES=0)
    with caplog.at_level(logging.INFO):
        assert await send(chain, *"abcdefgh") == ["Closed"] * 8
        assert world.times("/robots.txt") == [0]  # once for all that wait
        await asyncio.sleep(100)
        assert await send(chain, "movie/a/") == ["Closed"]
        assert "HTTP status 503, since " in chain.crawler.stats.get_value("unreachable/metacritic")
        world.robots[HOME] = 404
        await asyncio.sleep(120)
        assert await send(chain, "movie/a/") == ["200"]
        await asyncio.sleep(500)
    assert world.times("/robots.txt") == [0, 30, 90, 210]
    why = "metacritic can't be reached: robots.txt can't be fetched: HTTP status 503"
    assert caplog.text.count(why) == 1
    assert caplog.text.count("metacritic is no longer paused") == 1
    assert chain.engine.reasons == []  # it is the scheduler that ends a crawl


async def test_after_a_last_attempt_without_answer_robots_txt_decides_whose_fault_it_was(
    world: World,
) -> None:
    world.pages["/movie/a/"] = DownloadTimeoutError("no answer")
    chain = world.crawl()
    with pytest.raises(DownloadTimeoutError):  # it fails by its own fault
        await chain.send(f"{HOME}/movie/a/")
    assert world.paths == ["/movie/a/"] * 2
    assert await send(chain, "movie/b/") == ["200"]
    world.robots[HOME] = DownloadTimeoutError("no answer")
    request = Request(f"{HOME}/movie/a/", meta={"site": "metacritic", "retry_times": 1})
    assert len(world.times("/robots.txt")) == 2  # not after an earlier attempt
    waiting = asyncio.create_task(send(chain, "movie/b/"))
    with pytest.raises(Closed) as closed:
        await chain.download(request)
    assert request.meta[CLOSED_META] is closed.value
    assert closed.value.is_put_last
    assert chain.politeness.gate.unreachable_seconds == 0
    assert await waiting == ["Closed"]
    assert world.paths == [*["/movie/a/"] * 2, "/movie/b/", "/movie/a/"]
    assert await send(chain, "movie/b/") == ["Closed"]


async def test_an_answer_of_a_broken_server_is_the_titles_own(world: World) -> None:
    world.pages["/movie/a/"] = 500
    chain = world.crawl()
    assert await send(chain, "movie/a/") == ["500"]
    assert len(world.times("/robots.txt")) == 1
    assert await send(chain, "movie/b/") == ["200"]


async def test_a_fault_of_this_worker_hides_no_refusal_and_a_refusal_no_fault(
    world: World,
) -> None:
    sick, other = world.crawl(), world.crawl()
    world.robots[HOME] = 503
    assert await send(sick, "movie/a/") == ["Closed"]
    world.robots[HOME] = 404
    world.pages["/movie/b/"] = 403
    assert await send(other, "movie/b/") == ["Closed"]
    await sick.politeness.gate.ask()
    assert sick.politeness.gate.closure.kind == "refused"
    await asyncio.sleep(40)
    assert sick.politeness.gate.unreachable_seconds is None  # it was reached meanwhile
    assert sick.politeness.gate.closure.kind == "refused"


async def test_a_queue_that_fails_is_asked_again_until_the_patience_is_over(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    chain = world.crawl()
    gate = chain.politeness.gate
    gate.ledger = Mock(ask=AsyncMock(side_effect=FrontierError("away")), close=AsyncMock())
    asking = asyncio.create_task(gate.ask())
    gate.report_refusal("metacritic is blocking us (status 403)", 60)
    await asyncio.sleep(599.5)
    assert gate.ledger.ask.await_count == 2 * 600
    assert (caplog.text.count("away; trying again"), chain.engine.reasons) == (1, [])
    await asyncio.sleep(1)
    assert chain.engine.reasons == ["frontier_unreachable"]
    assert caplog.text.count("the last report did not reach the queue") == 1
    assert gate.closure.kind == "refused"
    with pytest.raises(Closed, match="the crawl ends"):
        await asking


# --- Refused --------------------------------------------------------------------------------------


@pytest.mark.promise(
    "After a refusal, one request finds out for all workers whether the site answers again."
)
async def test_one_request_at_a_time_finds_out_whether_a_site_answers_again(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    one, two = world.crawl(), world.crawl()
    world.pages["/movie/a/"] = 403
    with caplog.at_level(logging.INFO):
        assert await send(one, "movie/a/", "movie/b/") == ["Closed"] * 2
        await asyncio.sleep(DAY)
        world.sent.clear()
        world.delay = 10
        both = await asyncio.gather(send(one, *"abc"), send(two, *"def"))
        assert sorted(both[0] + both[1]) == ["200", *["Closed"] * 5]  # the others come again later
        assert len(world.paths) == 1
        await two.politeness.gate.ask()
        assert await send(two, "movie/c/") == ["200"]
    said = "is blocking us (status 403); metacritic is paused until 2026-09-22 12:00 UTC"
    assert caplog.text.count(said) == 1
    assert "Probing metacritic with one request" in caplog.text


async def test_the_answer_to_an_older_request_does_not_open_a_site(world: World) -> None:
    chain = world.crawl()
    world.delay = DAY + 40
    older = asyncio.create_task(send(chain, "older"))
    await asyncio.sleep(10)
    world.delay = 0
    world.pages["/a"] = 403
    assert await send(chain, "a") == ["Closed"]
    await asyncio.sleep(DAY)
    world.delay = 50
    probe = asyncio.create_task(send(chain, "b"))
    assert await older == ["200"]
    assert await send(world.crawl(), "c") == ["Closed"]
    assert await probe == ["200"]
    assert await send(world.crawl(), "c") == ["200"]


async def test_a_probe_that_is_redirected_opens_the_site(world: World) -> None:
    chain = world.crawl()
    world.pages = {"/a": 403, "/old": 301}
    assert await send(chain, "a") == ["Closed"]
    await asyncio.sleep(DAY)
    assert await send(chain, "old") == ["200"]
    assert world.paths == ["/a", "/old", "/moved"]
    assert await send(world.crawl(), "c") == ["200"]


@pytest.mark.promise(
    "After a refusal, one request finds out for all workers whether the site answers again."
)
async def test_what_is_no_page_opens_nothing_and_a_second_refusal_lasts_twice_as_long(
    world: World,
) -> None:
    chain = world.crawl()
    world.pages = {"/a": 403, "/gone": 404}
    await send(chain, "a")
    for days in (1, 2):
        await asyncio.sleep(days * DAY - 10)
        assert await send(chain, "b") == ["Closed"]
        await asyncio.sleep(20)
        await chain.politeness.gate.ask()
        assert await send(chain, "gone") == ["404"]
        assert await send(chain, "b") == ["Closed"]  # the answer to the probe is not known
        await asyncio.sleep(60)
        await chain.politeness.gate.ask()
        assert await send(chain, "a") == ["Closed"]
    until = chain.politeness.gate.closure.until
    assert until == pytest.approx(world.clock() + 4 * DAY, abs=10)


async def test_a_refusal_costs_one_request_and_what_waits_for_its_turn_is_not_sent(
    world: World,
) -> None:
    one, two = world.crawl(), world.crawl()
    world.pages["/a"] = 403
    ended = await asyncio.gather(send(one, *"abcd"), send(two, *"efgh"))
    assert ended[0] == ended[1] == ["Closed"] * 4
    assert world.paths == ["/a"]
    assert (await one.politeness.gate.ask()).used <= 2  # each worker had one at the gate
    later = world.crawl()
    world.sent.clear()
    assert await send(later, "a") == ["Closed"]
    assert world.sent == []  # not even a robots.txt


async def test_a_refusal_that_comes_when_the_day_is_spent_is_kept(world: World) -> None:
    world.pages["/b"] = 403
    chain = world.crawl(SITE_BUDGETS='{"metacritic": {"per_day": 2}}')
    assert await send(chain, "a", "b", "c") == ["200", "Closed", "Closed"]
    await chain.close()
    await asyncio.sleep(13 * HOUR)  # the next day
    later = world.crawl()
    assert await send(later, "a") == ["Closed"]
    assert later.politeness.gate.closure.kind == "refused"


# --- The day's budget -----------------------------------------------------------------------------


@pytest.mark.promise("Without Redis, processes with one folder share the day's budget.")
async def test_the_day_is_shared_and_the_last_request_of_it_is_sent(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    budget = {"SITE_BUDGETS": '{"metacritic": {"per_day": 5}}'}
    one, two = world.crawl(**budget), world.crawl(**budget)
    both = await asyncio.gather(send(one, *"abcd"), send(two, *"efgh"))
    assert sorted(both[0] + both[1]) == [*["200"] * 5, *["Closed"] * 3]
    assert len(world.paths) == 5
    assert one.politeness.gate.closure.kind == "budget_spent"
    said = "the daily budget is exhausted; metacritic is paused until 2026-09-22 00:00 UTC"
    assert caplog.text.count(said) == 2  # by each crawl
    await asyncio.sleep(12 * HOUR)
    later = world.crawl(**budget)
    assert await send(later, "a") == ["200"]
    assert (await later.politeness.gate.ask()).used == 1


async def test_a_probe_that_spends_the_day_leaves_a_budget_that_is_spent(world: World) -> None:
    chain = world.crawl(SITE_BUDGETS='{"metacritic": {"per_day": 1}}')
    world.pages = {"/a": 403, "/gone": 404}
    await send(chain, "a")
    await asyncio.sleep(DAY)
    await chain.politeness.gate.ask()
    assert await send(chain, "gone") == ["404"]
    await asyncio.sleep(61)
    await chain.politeness.gate.ask()
    assert chain.politeness.gate.closure.kind == "budget_spent"


# --- The log --------------------------------------------------------------------------------------


async def test_a_wait_of_more_than_30_s_is_a_line_a_minute(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    chain = world.crawl(DOWNLOAD_DELAY=200)
    await send(chain, "movie/a/")
    waiting = asyncio.create_task(send(chain, "movie/b/", "movie/c/"))
    with caplog.at_level(logging.INFO):
        for _ in range(380):
            await asyncio.sleep(1)
            chain.politeness.gate.log_long_wait()
    lines = [text for text in caplog.messages if text.startswith("Waiting for")]
    turn = f"s: the next turn at {HOME}"
    assert lines == [f"Waiting for {n} {turn}" for n in (31, 91, 151, 31, 91, 151)]
    await waiting


async def test_a_worker_that_waits_says_for_which_site_and_why(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    one, two = world.crawl(), world.crawl()
    world.pages["/a"] = 403
    await send(one, "a")
    await asyncio.sleep(DAY)
    world.delay = 50
    probe = asyncio.create_task(send(one, "b"))
    await asyncio.sleep(1)
    await two.politeness.gate.ask()
    with caplog.at_level(logging.INFO):
        for _ in range(45):
            await asyncio.sleep(1)
            two.politeness.gate.log_long_wait()
    (line,) = [text for text in caplog.messages if text.startswith("Waiting for")]
    assert "is blocking us (status 403); another worker sends the probe" in line
    assert await probe == ["200"]
