"""What proxies suffer is their pools' matter: three pools against a site that answers some."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from scrapy import Request
from scrapy.exceptions import DownloadConnectionRefusedError, DownloadTimeoutError
from scrapy.http import Response

from moviecrawler.politeness.gate import Closed
from moviecrawler.politeness.meta import DAMAGED
from moviecrawler.proxies.middleware import AttemptsFailedError
from tests.chain import VirtualLoop
from tests.proxies.chain import PAGE, URL, Chain, page

POOLS = ("near", "far", "home")
NAMES = [f"{pool}:{number}" for pool in POOLS for number in range(1, 5)]
"""The proxies of the pools, in the order of their use."""
SESSIONS = {
    "kind": "residential",
    "urls": ["http://me-{session}:pa55word@127.0.0.1:9"],
    "sessions": 2,
}
Answer = Callable[[Request], Awaitable[Response]]


def chain_of_pools(folder: Path, answer: Answer, **settings: Any) -> Chain:
    """Return a chain with three pools of four proxies each."""
    urls = [f"http://user{number}:pa55word@127.0.0.1:9" for number in range(4)]
    pools = {pool: {"kind": "datacenter", "urls": urls} for pool in POOLS}
    given = {"PROXY_POOLS": json.dumps(pools), "PROXY_ORDER": ",".join(POOLS)}
    return Chain(0, folder, answer, **given | settings)


async def refuse(request: Request) -> Response:
    return page(request, 403)


async def reject(request: Request) -> Response:
    return page(request, 407)


async def time_out(_: Request) -> Response:
    raise DownloadTimeoutError


async def be_away(_: Request) -> Response:
    raise DownloadConnectionRefusedError


async def damage(request: Request) -> Response:
    response = page(request)
    return response.replace(flags=[DAMAGED])


async def be_broken(request: Request) -> Response:
    return page(request, 502)


async def be_small(request: Request) -> Response:
    return page(request, 200, b"<html>Your plan has ended.</html>")


FAULTS = [refuse, reject, time_out, be_away, damage, be_broken, be_small]


def failing(proxies: list[str], fault: Answer) -> Answer:
    """Return a site that some proxies don't reach. It has no robots.txt."""

    async def answer(request: Request) -> Response:
        if request.meta["proxy_name"] in proxies:
            return await fault(request)
        return page(request, 404 if request.url.endswith("/robots.txt") else 200)

    return answer


def title(number: int) -> str:
    return f"https://www.imdb.com/title/tt{number:07}/"


@pytest.mark.promise("Proxies that fail cost no title.")
@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize(
    "proxies",
    [NAMES[:1], NAMES[:4], NAMES[:8], NAMES[:11], NAMES[1:]],
    ids=["one proxy", "one pool", "two pools", "all but the last", "all but the first"],
)
async def test_no_title_fails_while_any_proxy_reaches_the_site(
    proxies: list[str], fault: Answer, tmp_path: Path
) -> None:
    chain = chain_of_pools(tmp_path, failing(proxies, fault))
    for number in range(1, 9):
        assert (await chain.send(title(number))).body == PAGE
    assert chain.politeness.gate.closure is None
    resting = set().union(*(pool.dead for pool in chain.proxies.order))
    assert resting <= set(proxies)
    # Of each proxy, two failures may be the site's.
    assert len(chain.sent) <= 8 + 2 * len(proxies) + 8


@pytest.mark.promise("Proxies that fail cost no title.")
@pytest.mark.parametrize("fault", FAULTS)
async def test_no_title_fails_because_half_of_one_pool_do(fault: Answer, tmp_path: Path) -> None:
    proxies = [f"datacenter:{number}" for number in range(1, 6)]
    chain = Chain(10, tmp_path, failing(proxies, fault))
    for number in range(1, 30):
        assert (await chain.send(title(number))).body == PAGE
    assert chain.politeness.gate.closure is None


@pytest.mark.promise("Proxies that fail cost no title.")
@pytest.mark.parametrize("fault", [time_out, damage, be_broken])
def test_a_site_that_seems_unreachable_is_tried_through_further_proxies(
    fault: Answer, tmp_path: Path
) -> None:
    async def send() -> list[Response | None]:
        proxies = [f"datacenter:{number}" for number in range(1, 10)]
        chain = Chain(10, tmp_path, failing(proxies, fault))
        ended: list[Response | None] = []
        for number in range(60):
            try:
                ended.append(await chain.send(title(number)))
            except Closed:
                ended.append(None)
            await asyncio.sleep(5)
        return ended

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        ended = runner.run(send())
    assert ended[0] is None
    assert all(ended[40:])


@pytest.mark.promise("When all pools of a site are refused, the site is stopped.")
@pytest.mark.parametrize("fault", [refuse, be_small])
async def test_the_gate_hears_of_a_refusal_when_no_proxy_is_left(
    fault: Answer, tmp_path: Path
) -> None:
    chain = chain_of_pools(tmp_path, failing(NAMES, fault))
    with pytest.raises(Closed, match="no proxy is left of near, far, home"):
        await chain.send()
    assert chain.politeness.gate.closure.kind == "refused"
    assert [name for name, _ in chain.sent] == NAMES
    with pytest.raises(Closed):
        await chain.send()
    assert len(chain.sent) == len(NAMES)
    await chain.close()


@pytest.mark.parametrize("fault", [reject, time_out, be_away, damage, be_broken])
async def test_a_site_is_unreachable_when_all_pools_fail_alike(
    fault: Answer, tmp_path: Path
) -> None:
    chain = chain_of_pools(tmp_path, failing(NAMES, fault))
    with pytest.raises(Closed):
        await chain.send()
    assert chain.politeness.gate.closure.kind == "unreachable"
    assert {name for name, _ in chain.sent} >= set(NAMES[::4])
    sent = len(chain.sent)
    assert sent <= 2 * len(NAMES)
    with pytest.raises(Closed):
        await chain.send()
    assert len(chain.sent) == sent
    await chain.close()


@pytest.mark.parametrize("fault", [time_out, damage, be_broken])
async def test_a_request_fails_that_gets_no_answer_through_proxies_that_reach_the_site(
    fault: Answer, tmp_path: Path
) -> None:
    async def answer(request: Request) -> Response:
        if request.url == URL:
            return await fault(request)
        return page(request, 404 if request.url.endswith("/robots.txt") else 200)

    chain = chain_of_pools(tmp_path, answer)
    with pytest.raises(AttemptsFailedError, match=r"near:1 → .*; home:3 → .*; near:4 → "):
        await chain.send()
    assert len(chain.sent) == 3 * 3 + 3  # with a robots.txt before and after the last attempt
    assert chain.politeness.gate.closure is None
    assert (await chain.send(title(2))).body == PAGE


async def test_a_request_that_every_session_is_refused_for_is_not_sent_for_ever(
    tmp_path: Path,
) -> None:
    refusals = 0

    async def answer(request: Request) -> Response:
        nonlocal refusals
        await asyncio.sleep(0)
        if request.url != URL:
            return page(request)
        refusals += 1
        return page(request, 403)

    pools = json.dumps({"home": SESSIONS})
    chain = Chain(0, tmp_path, answer, PROXY_POOLS=pools, PROXY_ORDER="home")

    async def send_others() -> None:
        for number in range(2, 200):
            await chain.send(title(number))

    async with asyncio.TaskGroup() as tasks:
        refused = tasks.create_task(_ends_closed(chain))
        others = tasks.create_task(_ends_closed(chain, send_others))
    assert refused.result()
    assert others.done()
    assert refusals == 6
    await chain.close()


async def _ends_closed(chain: Chain, send: Callable[[], Awaitable[object]] | None = None) -> bool:
    try:
        await (chain.send() if send is None else send())
    except Closed:
        return True
    return False
