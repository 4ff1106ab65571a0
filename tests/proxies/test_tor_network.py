"""What Tor itself does: these take a private Tor network, so they run where Debian's `tor` is installed (`pytest -m tor`)."""

from __future__ import annotations

import asyncio
import logging
import re
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING

import pytest
from scrapy.settings import Settings

from moviecrawler.proxies.tor import TorCircuits, TorError, TorOptions
from moviecrawler.proxies.tor_tunnel import Tunnel, connected
from moviecrawler.replica.process import ReplicaProcess
from tests.crawling import counts
from tests.proxies.over_tor import crawl
from tests.proxies.tor_fakes import Host, authorization
from tests.services.https import HttpsFront

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from tests.services.tor import Client, TorNetwork, Watch

pytestmark = pytest.mark.tor

CIRCUITS = 3
ATTEMPT = re.compile(r"attempt (\d)/3 GET https://\S+(/title/tt\d+/) via (tor:c\d) → (\d+.*)")


def circuits(client: Client, **given: str | int) -> TorCircuits:
    options = TorOptions.from_settings(
        Settings(
            {
                "TOR_TUNNEL": f"http://{client.tunnel}",
                "TOR_CONTROL": client.control,
                "TOR_CIRCUITS": CIRCUITS,
                "TOR_TIMEOUT": 60,
                **given,
            }
        )
    )
    assert options is not None
    return TorCircuits(options)


@pytest.fixture(autouse=True)
def password(tor_network: TorNetwork, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("TOR_CONTROL_PASSWORD", tor_network.password)
    return tor_network.password


async def carried(network: TorNetwork, watch: Watch, *proxies: str) -> list[set[str]]:
    """Make two connections with each proxy's credentials, all open at once; return the circuits over which they went."""
    since = len(watch.made)
    with Host() as host:
        async with AsyncExitStack() as stack:
            for proxy in proxies * 2:
                await stack.enter_async_context(reached(network, host, authorization(proxy)))
            assert await asyncio.to_thread(watch.wait_for, since + 2 * len(proxies))
    found = watch.circuits(since)
    return [found[authorization(proxy).decode()] for proxy in proxies]


def union(sets: list[set[str]]) -> set[str]:
    return {circuit for some in sets for circuit in some}


@asynccontextmanager
async def reached(network: TorNetwork, host: Host, credentials: bytes) -> AsyncIterator[None]:
    """Keep a connection open; circuits of a network that has just been started may fail."""
    tunnel = Tunnel.parse(f"http://{network.client.tunnel}")
    async with AsyncExitStack() as stack:
        for tries_left in range(5, -1, -1):
            try:
                await stack.enter_async_context(connected(tunnel, host.address, credentials, 60))
                break
            except TorError as error:
                if not error.patience or not tries_left:
                    raise
        yield


def test_circuits_differ_by_token_and_a_ban_changes_one(tor_network: TorNetwork) -> None:
    async def use() -> None:
        tor = circuits(tor_network.client)
        before = await carried(tor_network, watch, *(tor.proxy(number) for number in range(CIRCUITS)))
        assert len(union(before)) == sum(map(len, before)), "two of them share a circuit"

        tor.renew(1)
        after = await carried(tor_network, watch, *(tor.proxy(number) for number in range(CIRCUITS)))
        assert not after[1] & union(before)
        # Tor itself may replace a circuit that fails, but hardly two at once.
        assert after[0] & before[0] or after[2] & before[2]

    with tor_network.watched() as watch:
        asyncio.run(use())


def test_new_identity_leaves_the_circuits_that_there_are(tor_network: TorNetwork) -> None:
    async def use() -> None:
        tor = circuits(tor_network.client)
        old = tor.proxy(0)
        [before] = await carried(tor_network, watch, old)
        assert await tor.new_identity()
        assert tor.proxy(0) != old
        after = await carried(tor_network, watch, old, tor.proxy(0))
        assert not before & union(after), "even for the credentials of before"
        # Another process knows nothing of this one: Tor puts its new identity off, and that is waited for.
        assert await circuits(tor_network.client).new_identity()
        assert watch.new_identities == 2
        [later] = await carried(tor_network, watch, old)
        assert not later & union([before, *after])

    with tor_network.watched() as watch:
        asyncio.run(use())


def test_tunnel_and_control_port_of_one_tor_pass_the_check(
    tor_network: TorNetwork, caplog: pytest.LogCaptureFixture
) -> None:
    client = tor_network.client
    with Host() as host, caplog.at_level(logging.INFO):
        for control in (client.control, client.control_socket, ""):
            asyncio.run(circuits(client, TOR_CONTROL=control).check("127.0.0.1", host.port))
    assert host.received == b""
    said = re.findall(
        r"Tor reaches 127\S+ over circuits of their own, the first two from relays (\w+) and (\w+)", caplog.text
    )
    assert len(said) == 2
    assert {relay for relays in said for relay in relays} <= tor_network.exits


def test_every_wrong_port_is_told(tor_network: TorNetwork) -> None:
    client, lonely = tor_network.client, tor_network.lonely
    tunnel = "TOR_TUNNEL"
    with Host() as host:
        gone = Host()
        with gone:
            pass
        for given, port, sentence in (
            ({tunnel: client.socks}, host.port, "is Tor's SocksPort, which Scrapy can't use"),
            ({tunnel: client.control}, host.port, "is Tor's ControlPort; add `HTTPTunnelPort`"),
            ({tunnel: client.shared_tunnel}, host.port, "or its HTTPTunnelPort has NoIsolateSOCKSAuth"),
            ({tunnel: client.tunnel, "TOR_CONTROL": lonely.control}, host.port, "has no circuits yet: it is at "),
            (
                {tunnel: client.tunnel, "TOR_CONTROL": client.socks},
                host.port,
                "does not speak the protocol of Tor's control",
            ),
            ({tunnel: lonely.tunnel, "TOR_CONTROL": ""}, host.port, "it may still be looking for its first circuits"),
            ({tunnel: client.tunnel}, gone.port, f"could not reach 127.0.0.1:{gone.port}: 5"),
        ):
            where = {**given, tunnel: f"http://{given[tunnel]}"}
            with pytest.raises(TorError) as error:
                asyncio.run(circuits(client, TOR_TIMEOUT=3, **where).check("127.0.0.1", port))
            assert sentence in str(error.value)


# --- Crawling -----------------------------------------------------------------------------------------------------------


def over_tor(network: TorNetwork) -> dict[str, str]:
    return {
        "TOR_TUNNEL": f"http://{network.client.tunnel}",
        "TOR_CONTROL": network.client.control,
        "TOR_CONTROL_PASSWORD": network.password,
        "TOR_CIRCUITS": str(CIRCUITS),
    }


def test_crawl_over_tor_stores_every_title_and_leaves_refused_circuits(tor_network: TorNetwork, tmp_path: Path) -> None:
    with (
        ReplicaProcess(titles=300, light=True, faults={"challenge": 0.06}) as replica,
        HttpsFront(replica.urls["imdb"]) as front,
        tor_network.watched() as watch,
    ):
        crawled = crawl(front, tmp_path, "list=top", "limit=60", **over_tor(tor_network))
        assert crawled.code == 0, crawled.log
        assert len({movie.site_id for movie in crawled.movies}) == 60
        assert counts(replica)["statuses"]["202"] == crawled.stat("identity/imdb/tor/challenge")
    attempts = [found.groups() for found in ATTEMPT.finditer(crawled.log)]
    refused = [(path, exit_) for number, path, exit_, outcome in attempts if outcome == "202 challenge"]
    assert refused
    for path, exit_ in refused:
        # The next attempt at what was refused went out elsewhere.
        assert {other for _, again, other, outcome in attempts if again == path and outcome == "200"} - {exit_}
    # The first two are those of the start-up check.
    used = list(watch.circuits().values())[2:]
    assert len(used) > CIRCUITS, "a refused circuit was used again"
    assert len(union(used)) == sum(map(len, used)), "two of them were one"
    for secret in (tor_network.password, *(name.removeprefix("Basic ") for name in watch.circuits())):
        assert secret not in crawled.log


def test_site_that_refuses_every_circuit_gets_one_new_identity_and_is_left_alone(
    tor_network: TorNetwork, tmp_path: Path
) -> None:
    with (
        ReplicaProcess(titles=300, light=True, faults={"challenge": 1.0}) as replica,
        HttpsFront(replica.urls["imdb"]) as front,
        tor_network.watched() as watch,
    ):
        ids = ",".join(f"tt{number:07}" for number in range(1, 61))
        crawled = crawl(front, tmp_path, f"ids={ids}", **over_tor(tor_network))
        asked = counts(replica)["statuses"]["202"]
    assert crawled.code == 1
    assert crawled.movies == []
    assert set(crawled.misses.values()) <= {"blocked", "failed"}
    assert watch.new_identities == 1, crawled.log
    assert asked <= 10 * CIRCUITS
