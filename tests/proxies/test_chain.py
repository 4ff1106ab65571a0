"""What is on a request while it is on its way, and what is left of that afterwards."""

from __future__ import annotations

import asyncio
import json
import logging
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from scrapy import Request
from scrapy.exceptions import DownloadConnectionRefusedError, IgnoreRequest
from scrapy.http import Response

from moviecrawler.middlewares.blocks import SiteStopped
from moviecrawler.proxies.middleware import AttemptsFailedError
from moviecrawler.proxies.policy import SiteBanPolicy
from tests.proxies.chain import PAGE, URL, Chain, page

TOR = {
    "TOR_TUNNEL": "http://127.0.0.1:9",
    "PROXY_POOLS": '{"tor": {"kind": "tor", "sessions": 2}}',
    "PROXY_ORDER": "tor",
}
_SESSIONS = {"kind": "residential", "urls": ["http://me-{session}:pa55word@127.0.0.1:9"], "sessions": 2}
GATEWAY = {"PROXY_POOLS": json.dumps({"home": _SESSIONS}), "PROXY_ORDER": "home"}


class GoAwayPolicy(SiteBanPolicy):
    """An operator's own sign."""

    def response_is_ban(self, request: Request, response: Response) -> bool:
        return b"X-Go-Away" in response.headers or super().response_is_ban(request, response)


async def test_credentials_are_on_a_request_only_while_it_is_on_its_way(tmp_path: Path) -> None:
    sent: list[Request] = []

    async def answer(request: Request) -> Response:
        sent.append(request)
        assert request.headers[b"Proxy-Authorization"]  # also of a redirect's target
        assert request.meta["proxy"] == "http://127.0.0.1:9"  # the credentials are in no `meta`, at no time
        if len(sent) == 2:
            return Response(request.url, status=302, headers={"Location": URL + "?ref_=x"}, request=request)
        return page(request, 403 if len(sent) == 1 else 200)

    (response,) = await Chain(4, tmp_path, answer).run(URL)
    assert len(sent) == 3
    for request in sent:
        assert b"Proxy-Authorization" not in request.headers
        assert not {"proxy", "_auth_proxy", "download_slot"} & request.meta.keys()
        assert "pa55word" not in repr(request.to_dict())
    assert response.status == 200


@pytest.mark.promise("Proxies are off by default, and used in turn where a setting names them.")
async def test_a_site_without_an_order_is_asked_directly_and_a_block_stops_it(tmp_path: Path) -> None:
    challenge = partial(page, status=202, body=b"", headers={"x-amzn-waf-action": "challenge"})
    chain = Chain(2, tmp_path, challenge, PROXY_ORDER='{"metacritic": "datacenter"}')
    for _ in range(2):
        with pytest.raises(SiteStopped, match=r"imdb refused us \(x-amzn-waf-action: challenge\); ask again in 24 h"):
            await chain.run(URL)
    assert chain.rotation is None
    assert [one.meta.keys() & {"proxy_name", "proxy"} for one in chain.sent] == [set()]


async def test_a_proxy_that_gets_unexpected_pages_rests_while_others_go_on(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def answer(request: Request) -> Response:
        return page(request, body=b"<html></html>" if request.meta["proxy_name"] == "datacenter:1" else PAGE)

    with caplog.at_level(logging.INFO):
        chain = Chain(4, tmp_path, answer)
        answers = await chain.run(*(f"https://www.imdb.com/title/tt{number:07}/" for number in range(1, 41)))
    assert [one.body for one in answers] == [PAGE] * 40
    assert [one.proxy for one in chain.sent].count("datacenter:1") == 1
    assert "datacenter:1 is not used for imdb" in caplog.text


async def test_requests_wait_for_a_proxy_rather_than_crowd_it(tmp_path: Path) -> None:
    flying = most = 0

    async def answer(request: Request) -> Response:
        nonlocal flying, most
        flying += 1
        most = max(most, flying)
        await asyncio.sleep(0.01)
        flying -= 1
        return page(request)

    chain = Chain(2, tmp_path, answer)
    await asyncio.gather(*(chain.send(URL) for _ in range(30)))
    assert most == 2


@pytest.mark.parametrize("error", [IgnoreRequest("not now"), ValueError("a mistake")])
async def test_what_is_nobodys_fault_passes_and_frees_the_proxy(error: Exception, tmp_path: Path) -> None:
    def answer(request: Request) -> Response:
        if "tt0000001" in request.url:
            raise error
        return page(request)

    chain = Chain(1, tmp_path, answer)
    for _ in range(3):
        with pytest.raises(type(error), match=str(error)):
            await chain.run(URL.replace("tt0111161", "tt0000001"))
    assert (await chain.run(URL))[0].status == 200
    assert not chain.rotating._attempts


async def test_a_body_that_can_not_be_read_costs_an_attempt_and_holds_no_proxy(tmp_path: Path) -> None:
    damaged = [(b"gzip", b"not gzip"), (b"gzip", b"\x1f\x8b"), (b"\xff", PAGE), (b"zstd", PAGE)]

    async def answer(request: Request) -> Response:
        if damaged:
            encoding, body = damaged.pop()
            return Response(request.url, body=body, headers={"Content-Encoding": encoding}, request=request)
        return page(request)

    chain = Chain(5, tmp_path, answer, PROXY_ATTEMPTS=5)
    assert (await chain.run(URL))[0].body == PAGE
    assert not chain.rotating._attempts


async def test_a_site_that_was_stopped_is_not_asked_by_those_that_waited(tmp_path: Path) -> None:
    async def answer(request: Request) -> Response:
        await asyncio.sleep(0.01)
        return page(request, 403)

    chain = Chain(2, tmp_path, answer)
    ended = await asyncio.gather(*(chain.send(URL) for _ in range(16)), return_exceptions=True)
    assert all(isinstance(one, SiteStopped) for one in ended)
    assert len(chain.sent) == 2


async def test_an_operators_policy_decides(tmp_path: Path) -> None:
    async def answer(request: Request) -> Response:
        return page(request, headers={"X-Go-Away": "1"} if request.meta["proxy_name"] == "datacenter:1" else {})

    chain = Chain(2, tmp_path, answer, ROTATING_PROXY_BAN_POLICY=f"{__name__}.GoAwayPolicy")
    assert "X-Go-Away" not in (await chain.run(URL))[0].headers
    assert chain.pool("datacenter").dead == {"datacenter:1"}


async def test_robots_txt_leaves_by_a_proxy_and_proves_nothing_of_it(tmp_path: Path) -> None:
    chain = Chain(2, tmp_path)
    await chain.send("https://www.imdb.com/robots.txt", meta={})
    assert [one.proxy for one in chain.sent] == ["datacenter:1"]
    assert not chain.pool("datacenter").good


async def test_a_request_that_is_bound_to_a_pool_leaves_by_it_or_not_at_all(tmp_path: Path) -> None:
    chain = Chain(1, tmp_path, PROXY_ORDER="direct,datacenter")
    bound = {"site": "imdb", "expects": "page"}
    await chain.send(URL, {**bound, "proxy_pool": "datacenter"})
    with pytest.raises(AttemptsFailedError, match=r"no proxy of home may be used for https"):
        await chain.send(URL, {**bound, "proxy_pool": "home"})
    assert [one.proxy for one in chain.sent] == ["datacenter:1"]


@pytest.mark.parametrize("pool", [TOR, GATEWAY])
async def test_a_session_that_is_refused_gets_a_fresh_one_twice_and_then_rests(
    pool: dict[str, Any], tmp_path: Path
) -> None:
    chain = Chain(0, tmp_path, 403, **pool, PROXY_ATTEMPTS=20)
    with pytest.raises(SiteStopped, match=r"no proxy is left of (tor|home)"):
        await chain.run(URL)
    tokens = [one.authorization for one in chain.sent]
    assert None not in tokens
    assert len(tokens) == len(set(tokens)) == 2 * 3


async def test_proxies_that_die_are_not_taken_for_refused_because_one_was_refused_before(tmp_path: Path) -> None:
    statuses = [403, 200]

    async def answer(request: Request) -> Response:
        if not statuses:
            raise DownloadConnectionRefusedError
        return page(request, statuses.pop(0))

    chain = Chain(2, tmp_path, answer)
    await chain.run(URL)
    with pytest.raises(SiteStopped) as stopped:
        await chain.run(URL)
    assert "403" not in str(stopped.value)
    assert "24 h" not in str(stopped.value)
