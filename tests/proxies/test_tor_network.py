"""What Tor itself does: these take a private Tor network, so they run where Debian's `tor` is installed (`pytest -m tor`)."""

from __future__ import annotations

import asyncio
import re
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import TYPE_CHECKING

import pytest

from moviecrawler.proxies.tor import TorPool
from moviecrawler.replica.process import ReplicaProcess
from tests.crawling import counts
from tests.proxies.fleets import crawl_over_tor
from tests.services.https import HttpsFront
from tests.services.threads import Host
from tests.waiting import wait_for

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from tests.services.tor import Client, TorNetwork, Watch

pytestmark = pytest.mark.tor

CIRCUITS = 3
ATTEMPT = re.compile(r"attempt (\d)/3 GET https://\S+(/title/tt\d+/) via (tor:c\d) → (\d+.*)")


def pool(client: Client, **given: str) -> TorPool:
    settings = {"TOR_TUNNEL": client.tunnel, "TOR_CONTROL": client.control, **given}
    return TorPool("tor", f"http://{settings['TOR_TUNNEL']}", settings["TOR_CONTROL"], CIRCUITS)


def tokens(of: TorPool) -> list[bytes]:
    return [proxy.authorization or b"" for proxy in of.members.values()]


@pytest.fixture(autouse=True)
def password(tor_network: TorNetwork, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("TOR_CONTROL_PASSWORD", tor_network.password)
    return tor_network.password


async def carried(network: TorNetwork, watch: Watch, *credentials: bytes) -> list[set[str]]:
    """Make two connections with each credentials, all open at once; return the circuits over which they went."""
    since = len(watch.made)
    with Host() as host:
        async with AsyncExitStack() as stack:
            for one in credentials * 2:
                await stack.enter_async_context(reached(network, host, one))
            assert await asyncio.to_thread(watch.wait_for, since + 2 * len(credentials))
    found = watch.circuits(since)
    return [found[one.decode()] for one in credentials]


def union(sets: list[set[str]]) -> set[str]:
    return {circuit for some in sets for circuit in some}


@asynccontextmanager
async def reached(network: TorNetwork, host: Host, credentials: bytes) -> AsyncIterator[None]:
    """Keep a connection open; circuits of a network that has just been started may fail."""
    answer = b""
    for _ in range(6):
        reader, writer = await asyncio.open_connection(*network.client.tunnel.split(":"))
        try:
            head = f"CONNECT {host.address} HTTP/1.1\r\nHost: {host.address}\r\nProxy-Authorization: "
            writer.write(head.encode() + credentials + b"\r\n\r\n")
            answer = await reader.readline()
            if b" 200 " in answer:
                yield
                return
        finally:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()
    raise AssertionError(answer)


def test_circuits_differ_by_token_and_a_ban_changes_one(tor_network: TorNetwork) -> None:
    async def use() -> None:
        made = pool(tor_network.client)
        before = await carried(tor_network, watch, *tokens(made))
        assert len(union(before)) == sum(map(len, before)), "two of them share a circuit"

        made.renew(made.members["tor:c2"])
        after = await carried(tor_network, watch, *tokens(made))
        assert not after[1] & union(before)
        # Tor itself may replace a circuit that fails, but hardly two at once.
        assert after[0] & before[0] or after[2] & before[2]

    with tor_network.watched() as watch:
        asyncio.run(use())


@pytest.mark.promise("Over Tor each circuit has credentials of its own; when all are refused, new ones are asked for.")
def test_new_identity_leaves_the_circuits_that_there_are(tor_network: TorNetwork) -> None:
    async def use() -> None:
        made = pool(tor_network.client)
        old = tokens(made)[0]
        [before] = await carried(tor_network, watch, old)
        await made.on_exhausted()
        assert tokens(made)[0] != old
        after = await carried(tor_network, watch, old, tokens(made)[0])
        assert not before & union(after), "even for the credentials of before"

    with tor_network.watched() as watch:
        asyncio.run(use())


# --- Crawling -----------------------------------------------------------------------------------------------------------


def over_tor(network: TorNetwork) -> dict[str, str]:
    return {
        "TOR_TUNNEL": f"http://{network.client.tunnel}",
        "TOR_CONTROL": network.client.control,
        "TOR_CONTROL_PASSWORD": network.password,
        "PROXY_POOLS": f'{{"tor": {{"kind": "tor", "sessions": {CIRCUITS}}}}}',
    }


def test_site_that_refuses_every_circuit_gets_one_new_identity_and_is_left_alone(
    tor_network: TorNetwork, tmp_path: Path
) -> None:
    with (
        ReplicaProcess(titles=300, light=True, faults={"challenge": 1.0}) as replica,
        HttpsFront(replica.urls["imdb"]) as front,
        tor_network.watched() as watch,
    ):
        ids = ",".join(f"tt{number:07}" for number in range(1, 61))
        crawled = crawl_over_tor(front, tmp_path, f"ids={ids}", **over_tor(tor_network))
        asked = counts(replica)["statuses"]["202"]
        # Tor delays a new identity that comes soon after another one.
        wait_for(lambda: watch.new_identities, told=lambda: crawled.log)
    assert crawled.code == 1
    assert crawled.movies == []
    assert set(crawled.misses.values()) <= {"blocked", "failed"}
    assert watch.new_identities == 1, crawled.log
    assert asked <= 10 * CIRCUITS
