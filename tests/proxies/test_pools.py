from __future__ import annotations

import asyncio
import base64
import json
import re
from pathlib import Path
from typing import Any

import pytest
from scrapy.settings import Settings

from moviecrawler.errors import ConfigurationError
from moviecrawler.proxies.pools import Route
from moviecrawler.proxies.report import read_proxies
from moviecrawler.proxies.site_pools import SitePools

USER, PASSWORD = "customer-7", "pa55w0rd-of-mine"
URL = f"http://{USER}:{PASSWORD}@proxy.example:8080"
POOLS = json.dumps(
    {
        "datacenter": {"kind": "datacenter", "urls": [URL, "http://203.0.113.9:3128"]},
        "home": {"kind": "residential", "urls": ["http://user%3Bx:p%40ss@gate.example:1000/"]},
    }
)

ROTATING = {"PROXY_POOLS": POOLS, "PROXY_ORDER": "datacenter"}
"""Where nothing rotates, no policy is loaded."""


def options(**settings: Any) -> SitePools:
    both = Settings()
    both.setmodule("moviecrawler.settings")
    for name in ("PROXY_POOLS", "PROXY_ORDER", "WORKER_POOL", "TOR_TUNNEL"):
        both.set(name, "", priority="cmdline")
    both.update(settings, priority="cmdline")
    return SitePools.from_settings(both)


def test_pools_are_read_from_json_and_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "pools.json"
    file.write_text(POOLS)
    for given in (POOLS, str(file)):
        read = options(PROXY_POOLS=given, PROXY_ORDER="direct,datacenter,home")
        assert [(one.name, one.kind) for pool in read.pools.values() for one in pool.proxies] == [
            ("direct", "direct"),
            ("datacenter:1", "datacenter"),
            ("datacenter:2", "datacenter"),
            ("home:1", "residential"),
        ]
        pool = read.pools["home"]
        assert pool.route(pool.proxies[0]) == Route("http://gate.example:1000", b"Basic dXNlcjt4OnBAc3M=")
        assert [pool.name for pool in read.orders["metacritic"]] == ["direct", "datacenter", "home"]


GATEWAY = f"http://{USER}-session-{{session}}:{PASSWORD}@gate.example:7000"


def test_sessions_of_a_gateway_differ_by_a_token_and_a_renewed_one_has_another() -> None:
    entry = {"kind": "residential", "urls": [GATEWAY], "sessions": 3}
    home = options(PROXY_POOLS=json.dumps({"home": entry})).pools["home"]
    assert [proxy.name for proxy in home.proxies] == ["home:1", "home:2", "home:3"]

    def users() -> list[str]:
        return [base64.b64decode((home.route(one).authorization or b"")[6:]).decode() for one in home.proxies]

    before = users()
    for user in before:
        assert re.fullmatch(rf"{USER}-session-[0-9a-f]{{24}}:{PASSWORD}", user)
    assert home.renew(home.proxies[1])
    after = users()
    assert len({*before, *after}) == 4
    assert (after[0], after[2]) == (before[0], before[2])
    assert home.route(home.proxies[0]).url == "http://gate.example:7000"


def test_circuits_that_no_crawl_uses_are_not_reported() -> None:
    pools = options(TOR_TUNNEL="http://127.0.0.1:9080", PROXY_ORDER='{"imdb": "direct,tor"}')
    assert asyncio.run(read_proxies(None, pools))["imdb"] == []


def test_nothing_of_a_proxy_or_a_route_shows_its_credentials() -> None:
    pool = options(PROXY_POOLS=POOLS).pools["datacenter"]
    route = pool.route(pool.proxies[0])
    for shown in (repr(pool.proxies), repr(route), str(route), repr(pool)):
        assert PASSWORD not in shown
        assert USER not in shown
        assert "Y3VzdG9tZXI" not in shown
    assert PASSWORD.encode() in route.secrets


def test_a_proxy_keeps_its_id_when_its_place_in_the_list_changes() -> None:
    def ids(*urls: str) -> list[str]:
        pools = json.dumps({"a": {"kind": "datacenter", "urls": urls}})
        return [proxy.id for proxy in options(PROXY_POOLS=pools).pools["a"].proxies]

    one, other = "http://u:p@h:1", "http://v:p@h:1"
    assert len({*ids(one, other)}) == 2  # the same host and port with other credentials is another proxy
    assert ids(one, other) == ids(other, one)[::-1]
    assert len({*ids("http://u:session1@h:1", "http://u:session2@h:1")}) == 2


def pool(urls: Any = (URL,), kind: str = "datacenter", name: str = "datacenter", **more: int) -> str:
    return json.dumps({name: {"kind": kind, "urls": urls, **more}})


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"PROXY_POOLS": URL}, "neither JSON nor a file that can be read"),
        ({"PROXY_POOLS": "{" + URL}, "can't be understood"),
        ({"PROXY_POOLS": pool(kind=PASSWORD)}, "the kind is none of"),
        ({"PROXY_POOLS": json.dumps({"a": {"urls": [URL]}})}, "missing required field `kind`"),
        ({"PROXY_POOLS": json.dumps({"a": {"kind": "datacenter", "url": URL}})}, "unknown field `url`"),
        (
            {"PROXY_POOLS": pool([{"url": URL, "weight": 2}])},
            'put the URL alone in the place of {"url": ..., "weight": ...}',
        ),
        ({"PROXY_POOLS": pool([7])}, "Expected `str`, got `int`"),
        ({"PROXY_POOLS": pool([GATEWAY])}, "and the number of `sessions`; or neither"),
        ({"PROXY_POOLS": pool([URL], sessions=2)}, "is to have one URL with {session}"),
        ({"PROXY_POOLS": pool([URL.replace("proxy", "{session}")])}, "is to have one URL with {session}"),
        ({"PROXY_POOLS": pool([GATEWAY], sessions=1001)}, "Expected `int` <= 1000"),
        ({"PROXY_POOLS": pool([])}, "has no urls"),
        ({"PROXY_POOLS": pool(name="direct")}, "which is the pool of no proxy"),
        ({"PROXY_POOLS": pool(name="Home Sweet")}, "name it with up to 32"),
        ({"PROXY_POOLS": pool([URL, URL])}, "datacenter:2 is the same as one before"),
        ({"PROXY_POOLS": pool([URL.replace("http:", "socks5:")])}, "Scrapy can't use SOCKS"),
        ({"PROXY_POOLS": pool([URL.replace("http:", "https:")])}, "does not begin with http://"),
        ({"PROXY_POOLS": pool([URL.replace(":8080", "")])}, "not of the form"),
        ({"PROXY_POOLS": pool([URL.replace("8080", "99999")])}, "is no URL"),
        ({"PROXY_POOLS": pool([URL.replace("proxy", "pröxy")])}, "not in plain ASCII"),
        ({"PROXY_POOLS": pool(["http://a%3Ab:" + PASSWORD + "@h:1"])}, "has a colon in it"),
        ({"PROXY_POOLS": pool(kind="tor", urls=[])}, "TOR_TUNNEL is not set"),
        ({"TOR_CONTROL": "127.0.0.1:9051"}, "TOR_TUNNEL is not set"),
        ({"PROXY_ORDER": "direct,tor"}, "'tor' (it takes TOR_TUNNEL); PROXY_POOLS gives direct"),
        ({"PROXY_ORDER": "direct,,x"}, "each once"),
        ({"PROXY_ORDER": URL}, "looks like a proxy's URL"),
        ({"PROXY_ORDER": "{" + URL}, "looks like a proxy's URL"),
        ({"PROXY_ORDER": '{"imbd": "direct"}'}, "'imbd'; there are imdb, metacritic, rottentomatoes"),
        ({"PROXY_ORDER": '{"imdb": 7}'}, "Expected `str`"),
        ({"WORKER_POOL": "home"}, "WORKER_POOL names the pool 'home'"),
        ({"WORKER_POOL": URL}, "looks like a proxy's URL"),
        ({"PROXY_ATTEMPTS": "0"}, "PROXY_ATTEMPTS is '0'"),
        ({"PROXY_ATTEMPTS": "2.5"}, "a whole number"),
        ({"PROXY_QUARANTINE": "soon"}, "PROXY_QUARANTINE is 'soon'"),
        ({"PROXY_RUN_DATACENTER": "0"}, "PROXY_RUN_DATACENTER is '0'"),
        ({**ROTATING, "PROXY_BAN_POLICY": "no.such.Policy"}, "can't be loaded"),
        ({**ROTATING, "PROXY_BAN_POLICY": "collections.OrderedDict"}, "name a subclass of"),
    ],
)
def test_a_wrong_entry_is_one_sentence_without_the_credentials(given: dict[str, str], expected: str) -> None:
    with pytest.raises(ConfigurationError) as error:
        options(**given)
    sentence = str(error.value)
    assert expected in sentence
    assert PASSWORD not in sentence
    assert USER not in sentence
    assert "\n" not in sentence


def test_worker_pool_replaces_the_order_of_the_sites_that_rotate() -> None:
    tied = options(PROXY_POOLS=POOLS, WORKER_POOL="home", PROXY_ORDER='{"imdb": "direct,datacenter"}')
    assert {site: [pool.name for pool in order] for site, order in tied.orders.items()} == {"imdb": ["home"]}
    assert set(options(PROXY_POOLS=POOLS, WORKER_POOL="home").orders) == {"imdb", "metacritic", "rottentomatoes"}
    assert options(PROXY_POOLS=POOLS).orders == {}
