"""PROXY_POOLS, PROXY_ORDER and Tor's settings: what they give, and what is wrong with them."""

import base64
import json
import re
from pathlib import Path
from typing import Any

import pytest
from scrapy.settings import Settings

from moviecrawler.basics.errors import ConfigurationError
from moviecrawler.proxies.site_pools import SitePools

USER = "customer-7"
PASSWORD = "pa55w0rd-of-mine"  # noqa: S105
URL = f"http://{USER}:{PASSWORD}@proxy.example:8080"
GATEWAY = f"http://{USER}-session-{{session}}:{PASSWORD}@gate.example:7000"
TUNNEL = "http://127.0.0.1:9080"


def read(**settings: Any) -> SitePools:
    both = Settings()
    both.setmodule("moviecrawler.settings")
    both.update(
        {"PROXY_POOLS": "", "PROXY_ORDER": "", "TOR_TUNNEL": "", **settings}, priority="cmdline"
    )
    return SitePools.from_settings(both)


def pool(
    *urls: Any, kind: str = "datacenter", name: str = "datacenter", **more: Any
) -> dict[str, str]:
    """Return PROXY_POOLS with one pool."""
    return {"PROXY_POOLS": json.dumps({name: {"kind": kind, "urls": urls, **more}})}


def test_pools_are_read_from_json_and_from_a_file(tmp_path: Path) -> None:
    home = {"kind": "residential", "urls": ["http://user%3Bx:p%40ss@gate.example:1000/"]}
    pools = json.dumps(
        {
            "datacenter": {"kind": "datacenter", "urls": [URL, "http://203.0.113.9:3128"]},
            "home": home,
        }
    )
    file = tmp_path / "pools.json"
    file.write_text(pools)
    for given in (pools, str(file)):
        made = read(PROXY_POOLS=given, PROXY_ORDER="direct,datacenter,home")
        named = {(pool.kind, *pool.members) for pool in made.pools.values()}
        assert named == {
            ("direct",) * 2,
            ("datacenter", "datacenter:1", "datacenter:2"),
            ("residential", "home:1"),
        }
        proxy = made.pools["home"].members["home:1"]
        assert (proxy.url, proxy.authorization) == (
            "http://gate.example:1000",
            b"Basic dXNlcjt4OnBAc3M=",
        )
        assert [pool.name for pool in made.orders["metacritic"]] == ["direct", "datacenter", "home"]


def test_sessions_of_a_gateway_differ_by_a_token_and_a_renewed_one_has_another() -> None:
    for sessions in (1, 1000):
        assert len(read(**pool(GATEWAY, sessions=sessions)).pools["datacenter"].members) == sessions
    assert len(read(**pool(URL, sessions=0)).pools["datacenter"].members) == 1
    home = read(**pool(GATEWAY, name="home", kind="residential", sessions=3)).pools["home"]
    users: list[str] = []
    for _ in range(2):
        users += [
            base64.b64decode((one.authorization or b"")[6:]).decode()
            for one in home.members.values()
        ]
        home.renew(home.members["home:2"])
    assert all(re.fullmatch(rf"{USER}-session-[0-9a-f]{{24}}:{PASSWORD}", user) for user in users)
    assert (len({*users}), users[0], users[2]) == (4, users[3], users[5])
    assert {one.url for one in home.members.values()} == {"http://gate.example:7000"}


def test_a_proxy_keeps_its_key_when_its_place_in_the_list_changes() -> None:
    def keys(*urls: str) -> list[str | None]:
        return [proxy.key for proxy in read(**pool(*urls)).pools["datacenter"].members.values()]

    one = "http://u:p@h:1"
    other = "http://v:p@h:1"
    # The same host and port with other credentials is another proxy.
    assert len({*keys(one, other)}) == 2
    assert keys(one, other) == keys(other, one)[::-1]
    own = {
        read(FRONTIER_NODE=node).pools["direct"].members["direct"].key
        for node in ("node1", "node2")
    }
    assert len(own) == 2  # each node has an address of its own


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"PROXY_POOLS": URL}, "neither JSON nor a file with it that can be read"),
        (
            pool(URL, kind=PASSWORD),
            "Expected `str` matching regex '^(datacenter|residential|tor)$'",
        ),
        (pool(URL, url=URL), "unknown field `url`"),
        (pool(GATEWAY), "and the number of `sessions`; or neither"),
        (pool(URL, sessions=2), "is to have one URL with {session}"),
        (
            pool(GATEWAY, GATEWAY.replace("7000", "7001"), sessions=2),
            "is to have one URL with {session}",
        ),
        (pool(GATEWAY, sessions=-1), "Expected `int` >= 0"),
        (pool(GATEWAY, sessions=1001), "Expected `int` <= 1000"),
        (pool(URL.replace("proxy", "{session}")), "is to have one URL with {session}"),
        (pool(), "has no urls"),
        (pool(URL, name="direct"), "matching regex"),
        (pool(URL, URL), "has no urls, or one twice"),
        (pool(URL.replace("http:", "socks5:")), "Scrapy can't use SOCKS"),
        (pool(URL.replace("proxy", "pröxy")), "not of the form"),
        (pool("http://a%3Ab:" + PASSWORD + "@h:1"), "without a colon in the user"),
        (pool(kind="tor"), "takes no urls, but TOR_TUNNEL"),
        (
            {"TOR_TUNNEL": "socks5h://h:1"},
            "TOR_TUNNEL is 'socks5h://h:1'; set it to where Tor's HTTPTunnelPort listens",
        ),
        ({"TOR_TUNNEL": URL}, "TOR_TUNNEL is a value that may hold a password"),
        (
            {
                "TOR_TUNNEL": TUNNEL,
                "PROXY_ORDER": '{"imdb": "tor"}',
                "IMDB_URL": "http://127.0.0.1:8000",
            },
            (
                "IMDB_URL is 'http://127.0.0.1:8000', and requests to its site go through Tor, "
                "which takes https addresses only"
            ),
        ),
        (
            {"PROXY_ORDER": "direct,tor"},
            "a pool is none of direct; set it to direct,datacenter,tor for all sites",
        ),
        ({"PROXY_ORDER": URL}, "a pool is none of direct"),
        ({"PROXY_ORDER": "{" + URL}, "PROXY_ORDER can't be read"),
        ({"PROXY_ORDER": '{"imbd": "direct"}'}, "'imbd' is not a site; there are imdb"),
    ],
)
def test_a_wrong_entry_is_one_sentence_without_the_credentials(
    given: dict[str, str], expected: str
) -> None:
    with pytest.raises(ConfigurationError) as error:
        read(**given)
    sentence = str(error.value)
    assert expected in sentence
    assert not [sign for sign in (PASSWORD, USER, "\n") if sign in sentence]
