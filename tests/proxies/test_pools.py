from __future__ import annotations

import base64
import json
import re
from pathlib import Path
from typing import Any

import pytest
from scrapy.settings import Settings

from moviecrawler.errors import ConfigurationError
from moviecrawler.proxies.site_pools import SitePools

USER, PASSWORD = "customer-7", "pa55w0rd-of-mine"
URL = f"http://{USER}:{PASSWORD}@proxy.example:8080"
POOLS = json.dumps(
    {
        "datacenter": {"kind": "datacenter", "urls": [URL, "http://203.0.113.9:3128"]},
        "home": {"kind": "residential", "urls": ["http://user%3Bx:p%40ss@gate.example:1000/"]},
    }
)


def options(**settings: Any) -> SitePools:
    both = Settings()
    both.setmodule("moviecrawler.settings")
    for name in ("PROXY_POOLS", "PROXY_ORDER", "TOR_TUNNEL"):
        both.set(name, "", priority="cmdline")
    both.update(settings, priority="cmdline")
    return SitePools.from_settings(both)


def test_pools_are_read_from_json_and_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "pools.json"
    file.write_text(POOLS)
    for given in (POOLS, str(file)):
        read = options(PROXY_POOLS=given, PROXY_ORDER="direct,datacenter,home")
        assert [(one.name, pool.kind) for pool in read.pools.values() for one in pool.members.values()] == [
            ("direct", "direct"),
            ("datacenter:1", "datacenter"),
            ("datacenter:2", "datacenter"),
            ("home:1", "residential"),
        ]
        proxy = read.pools["home"].members["home:1"]
        assert (proxy.url, proxy.authorization) == ("http://gate.example:1000", b"Basic dXNlcjt4OnBAc3M=")
        assert [pool.name for pool in read.orders["metacritic"]] == ["direct", "datacenter", "home"]


GATEWAY = f"http://{USER}-session-{{session}}:{PASSWORD}@gate.example:7000"


def test_sessions_of_a_gateway_differ_by_a_token_and_a_renewed_one_has_another() -> None:
    entry = {"kind": "residential", "urls": [GATEWAY], "sessions": 3}
    home = options(PROXY_POOLS=json.dumps({"home": entry})).pools["home"]
    sessions = list(home.members.values())
    assert [proxy.name for proxy in sessions] == ["home:1", "home:2", "home:3"]

    def users() -> list[str]:
        return [base64.b64decode((one.authorization or b"")[6:]).decode() for one in sessions]

    before = users()
    for user in before:
        assert re.fullmatch(rf"{USER}-session-[0-9a-f]{{24}}:{PASSWORD}", user)
    assert home.renew(sessions[1])
    after = users()
    assert len({*before, *after}) == 4
    assert (after[0], after[2]) == (before[0], before[2])
    assert sessions[0].url == "http://gate.example:7000"


def test_a_proxy_keeps_its_key_when_its_place_in_the_list_changes() -> None:
    def keys(*urls: str) -> list[str | None]:
        pools = json.dumps({"a": {"kind": "datacenter", "urls": urls}})
        return [proxy.key for proxy in options(PROXY_POOLS=pools).pools["a"].members.values()]

    one, other = "http://u:p@h:1", "http://v:p@h:1"
    assert len({*keys(one, other)}) == 2  # the same host and port with other credentials is another proxy
    assert keys(one, other) == keys(other, one)[::-1]
    assert len({*keys("http://u:session1@h:1", "http://u:session2@h:1")}) == 2


def pool(urls: Any = (URL,), kind: str = "datacenter", name: str = "datacenter", **more: int) -> str:
    return json.dumps({name: {"kind": kind, "urls": urls, **more}})


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"PROXY_POOLS": URL}, "neither JSON nor a file with it that can be read"),
        ({"PROXY_POOLS": "{" + URL}, "malformed"),
        ({"PROXY_POOLS": pool(kind=PASSWORD)}, "Expected `str` matching regex '^(datacenter|residential|tor)$'"),
        ({"PROXY_POOLS": json.dumps({"a": {"urls": [URL]}})}, "missing required field `kind`"),
        ({"PROXY_POOLS": json.dumps({"a": {"kind": "datacenter", "url": URL}})}, "unknown field `url`"),
        ({"PROXY_POOLS": pool([7])}, "Expected `str`, got `int`"),
        ({"PROXY_POOLS": pool([GATEWAY])}, "and the number of `sessions`; or neither"),
        ({"PROXY_POOLS": pool([URL], sessions=2)}, "is to have one URL with {session}"),
        ({"PROXY_POOLS": pool([URL.replace("proxy", "{session}")])}, "is to have one URL with {session}"),
        ({"PROXY_POOLS": pool([GATEWAY], sessions=1001)}, "Expected `int` <= 1000"),
        ({"PROXY_POOLS": pool([])}, "has no urls"),
        ({"PROXY_POOLS": pool(name="direct")}, "matching regex"),
        ({"PROXY_POOLS": pool(name="Home Sweet")}, "matching regex"),
        ({"PROXY_POOLS": pool([URL, URL])}, "has no urls, or one twice"),
        ({"PROXY_POOLS": pool([URL.replace("http:", "socks5:")])}, "Scrapy can't use SOCKS"),
        ({"PROXY_POOLS": pool([URL.replace("http:", "https:")])}, "not of the form"),
        ({"PROXY_POOLS": pool([URL.replace(":8080", "")])}, "not of the form"),
        ({"PROXY_POOLS": pool([URL.replace("8080", "99999")])}, "not of the form"),
        ({"PROXY_POOLS": pool([URL.replace("proxy", "pröxy")])}, "not of the form"),
        ({"PROXY_POOLS": pool(["http://a%3Ab:" + PASSWORD + "@h:1"])}, "without a colon in the user"),
        ({"PROXY_POOLS": pool(kind="tor", urls=[])}, "takes no urls, but TOR_TUNNEL"),
        ({"TOR_CONTROL": "127.0.0.1:9051"}, "takes no urls, but TOR_TUNNEL"),
        (
            {"PROXY_ORDER": "direct,tor"},
            "a pool is none of direct; set it to direct,datacenter,tor for all sites",
        ),
        ({"PROXY_ORDER": "direct,,x"}, "a pool is none of direct"),
        ({"PROXY_ORDER": "direct", "ROTATING_PROXY_BAN_POLICY": "no.such.Policy"}, "is no ban policy"),
        ({"PROXY_ORDER": "direct", "ROTATING_PROXY_BAN_POLICY": "collections.OrderedDict"}, "is no ban policy"),
        ({"PROXY_ORDER": URL}, "a pool is none of direct"),
        ({"PROXY_ORDER": "{" + URL}, "PROXY_ORDER can't be read"),
        ({"PROXY_ORDER": '{"imbd": "direct"}'}, "Invalid enum value 'imbd'"),
        ({"PROXY_ORDER": '{"imdb": 7}'}, "Expected `str`"),
        ({"PROXY_ATTEMPTS": "0"}, "PROXY_ATTEMPTS is wrong: Expected `int` >= 1"),
        ({"PROXY_ATTEMPTS": "2.5"}, "Expected `int`"),
        ({"PROXY_RUN_RESIDENTIAL": "0"}, "PROXY_RUN_RESIDENTIAL is wrong"),
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
