"""What is on a request while it is on its way, and which proxy it takes.

Also what an answer means for that.
"""

import asyncio
import gzip
import json
import logging
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from scrapy import Request
from scrapy.exceptions import DownloadConnectionRefusedError
from scrapy.http import Response

from moviecrawler.middlewares.compression import sent_body
from moviecrawler.politeness.gate import Closed
from moviecrawler.proxies.middleware import AttemptsFailedError, ProxyMiddleware
from moviecrawler.proxies.policy import SiteBanPolicy
from tests.proxies.chain import PAGE, URL, Chain, page

_CIRCUITS = '{"tor": {"kind": "tor", "sessions": 2}}'
TOR = {"TOR_TUNNEL": "http://127.0.0.1:9", "PROXY_ORDER": "tor", "PROXY_POOLS": _CIRCUITS}
_SESSIONS = {
    "kind": "residential",
    "urls": ["http://me-{session}:pa55word@127.0.0.1:9"],
    "sessions": 2,
}
GATEWAY = {"PROXY_POOLS": json.dumps({"home": _SESSIONS}), "PROXY_ORDER": "home"}


class GoAwayPolicy(SiteBanPolicy):
    """An operator's own sign."""

    def response_is_ban(self, request: Request, response: Response) -> bool:
        return b"X-Go-Away" in response.headers or super().response_is_ban(request, response)


class GoAwayMiddleware(ProxyMiddleware):
    """An operator's own middleware, with that sign."""

    policy = GoAwayPolicy()


OWN_MIDDLEWARE = {
    "moviecrawler.proxies.middleware.ProxyMiddleware": None,
    f"{__name__}.GoAwayMiddleware": 620,
}
"""What an operator adds to DOWNLOADER_MIDDLEWARES to use it."""


async def test_credentials_are_on_a_request_only_while_it_is_on_its_way(tmp_path: Path) -> None:
    sent: list[Request] = []

    async def answer(request: Request) -> Response:
        sent.append(request)
        assert request.headers[b"Proxy-Authorization"]  # also of a redirect's target
        # The credentials are in no `meta`, at no time.
        assert request.meta["proxy"] == "http://127.0.0.1:9"
        if len(sent) == 2:
            return Response(
                request.url, status=302, headers={"Location": URL + "?ref_=x"}, request=request
            )
        return page(request, 403 if len(sent) == 1 else 200)

    assert (await Chain(4, tmp_path, answer).send()).status == 200
    assert len(sent) == 3
    for request in sent:
        assert b"Proxy-Authorization" not in request.headers
        assert not {"proxy", "_auth_proxy", "download_slot"} & request.meta.keys()
        assert "pa55word" not in repr(request.to_dict())


async def test_credentials_that_a_proxy_sends_back_reach_neither_spider_nor_archive(
    tmp_path: Path,
) -> None:
    async def answer(request: Request) -> Response:
        echo = PAGE + b"pa55word0" + (request.headers[b"Proxy-Authorization"] or b"")
        return page(request, 200, gzip.compress(echo), {"Content-Encoding": "gzip"})

    received = await Chain(1, tmp_path, answer, S3_BUCKET="lamps").send()
    assert received.body == PAGE + b"***Basic ***"
    assert sent_body(received) == (received.body, None)


@pytest.mark.promise("Proxies are off by default, and used in turn where a setting names them.")
async def test_a_site_without_an_order_is_asked_directly_and_a_block_stops_it(
    tmp_path: Path,
) -> None:
    async def challenge(request: Request) -> Response:
        assert "proxy" not in request.meta
        return page(request, 202, b"", {"x-amzn-waf-action": "challenge"})

    chain = Chain(2, tmp_path, challenge, PROXY_ORDER='{"metacritic": "datacenter"}')
    for _ in range(2):
        with pytest.raises(
            Closed,
            match=r"imdb is blocking us \(x-amzn-waf-action: challenge\)",
        ):
            await chain.send()
    assert chain.proxies is None
    assert chain.sent == [(None, None)]


@pytest.mark.parametrize(
    ("body", "headers", "middlewares"),
    [
        (b"<html></html>", {}, {}),
        (PAGE, {"X-Go-Away": "1"}, OWN_MIDDLEWARE),
    ],
    ids=["unexpected-page", "by-an-operators-policy"],
)
async def test_a_proxy_that_is_refused_rests_while_others_go_on(
    body: bytes,
    headers: dict[str, str],
    middlewares: dict[str, int | None],
    tmp_path: Path,
) -> None:
    async def answer(request: Request) -> Response:
        is_refused = request.meta["proxy_name"] == "datacenter:1"
        return page(request, 200, body, headers) if is_refused else page(request)

    chain = Chain(3, tmp_path, answer, middlewares)
    answers = [
        await chain.send(f"https://www.imdb.com/title/tt{number:07}/") for number in range(1, 9)
    ]
    assert all(one.body == PAGE and not one.headers for one in answers)
    assert Counter(proxy for proxy, _ in chain.sent) == {
        "datacenter:1": 1,
        "datacenter:2": 4,
        "datacenter:3": 4,
    }
    assert chain.proxies.order[0].dead == {"datacenter:1"}


async def test_a_proxy_rests_after_two_failures_in_a_row_and_not_after_one(tmp_path: Path) -> None:
    async def answer(request: Request) -> Response:
        return page(request, 504 if request.meta["proxy_name"] == "datacenter:1" else 200)

    chain = Chain(2, tmp_path, answer)
    for dead in (set(), {"datacenter:1"}):
        await chain.send()
        assert chain.proxies.order[0].dead == dead
    chain = Chain(3, tmp_path, 504)  # when three in a row fail, it is the site
    for _ in range(2):
        with pytest.raises(AttemptsFailedError):
            await chain.send()
    assert not chain.proxies.order[0].dead


@pytest.mark.parametrize(
    ("status", "end", "requests"),
    [(200, "HtmlResponse", 16), (403, "Closed", 2), (None, "ValueError", 16)],
)
async def test_requests_wait_for_a_proxy_rather_than_crowd_it_and_are_not_sent_after_a_stop(
    status: int | None, end: str, requests: int, tmp_path: Path
) -> None:
    flying = 0
    most = 0

    async def answer(request: Request) -> Response:
        nonlocal flying, most
        flying += 1
        most = max(most, flying)
        await asyncio.sleep(0.01)
        flying -= 1
        if status is None:
            raise ValueError  # which is nobody's fault
        return page(request, status)

    chain = Chain(2, tmp_path, answer)
    ended = await asyncio.gather(*(chain.send() for _ in range(16)), return_exceptions=True)
    assert most == 2
    assert {type(one).__name__ for one in ended} == {end}
    assert len(chain.sent) == requests


async def test_every_attempt_is_a_line_and_the_last_says_how_all_ended(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    chain = Chain(5, tmp_path, 500)
    with caplog.at_level(logging.INFO), pytest.raises(AttemptsFailedError) as failed:
        await chain.send()
    names = ["datacenter:1", "datacenter:2", "datacenter:3"]
    attempts = [line for line in caplog.messages if line.startswith("attempt")]
    assert attempts == [
        f"attempt {n}/3 GET {URL} via {name} → 500" for n, name in enumerate(names, 1)
    ]
    assert str(failed.value) == "; ".join(f"{name} → 500" for name in names)
    assert not chain.proxies.order[0].dead  # a broken server is not the proxies' fault
    with pytest.raises(AttemptsFailedError, match="direct → 500; datacenter:1 → 500; direct → 500"):
        await Chain(1, tmp_path, 500, PROXY_ORDER="direct,datacenter").send()


async def test_a_request_leaves_by_its_pool_and_robots_txt_proves_nothing_of_a_proxy(
    tmp_path: Path,
) -> None:
    chain = Chain(1, tmp_path, PROXY_ORDER="direct,datacenter")
    await chain.download(Request("https://www.imdb.com/robots.txt"))
    await chain.send(proxy_pool="datacenter")
    with pytest.raises(AttemptsFailedError, match=r"no proxy of home may be used for https"):
        await chain.send(proxy_pool="home")
    assert [proxy for proxy, _ in chain.sent] == ["direct", "datacenter:1"]
    assert [pool.good for pool in chain.proxies.order] == [set(), {"datacenter:1"}]


@pytest.mark.parametrize(
    ("settings", "statuses", "told"),
    [
        (TOR, [403] * 6, "403.* no proxy is left of tor"),
        (GATEWAY, [403] * 6, "403.* no proxy is left of home"),
        ({}, [403, 404], "403.* no proxy is left of datacenter"),
        ({}, [403, 200], "^no proxy is left of datacenter"),
    ],
    ids=["tor", "gateway", "a 404 shows nothing", "those that die are not taken for refused"],
)
async def test_a_session_that_is_refused_gets_a_fresh_one_twice_and_at_last_the_site_is_stopped(
    settings: dict[str, Any], statuses: list[int], told: str, tmp_path: Path
) -> None:
    async def answer(request: Request) -> Response:
        if len(chain.sent) > len(statuses):
            raise DownloadConnectionRefusedError
        return page(request, statuses[len(chain.sent) - 1])

    chain = Chain(2, tmp_path, answer, **settings, PROXY_ATTEMPTS=20)
    with pytest.raises(Closed, match=told):
        _ = [await chain.send() for _ in range(2)]
    tokens = {authorization for _, authorization in chain.sent} - {None}
    assert len(tokens) == len(statuses)
