"""What Tor itself does.

These take a private Tor network, so they run where Debian's `tor` is installed (`pytest -m tor`).
"""

from contextlib import ExitStack, closing, suppress
from http.client import HTTPConnection
from pathlib import Path

import pytest

from moviecrawler.proxies.tor import TorPool
from moviecrawler.replica.process import ReplicaProcess
from tests.crawling import counts, scrapy
from tests.processes import crawl_command
from tests.services.https import HttpsFront
from tests.services.threads import Host
from tests.services.tor import CIRCUITS, TorNetwork, Watch
from tests.waiting import wait_for

pytestmark = pytest.mark.tor


@pytest.fixture
def pool(tor_network: TorNetwork) -> TorPool:
    """Return a pool of three circuits."""
    return TorPool("tor", f"http://{tor_network.tunnel}", 3)


def tokens(of: TorPool) -> list[bytes]:
    return [proxy.authorization or b"" for proxy in of.members.values()]


def carried(network: TorNetwork, watch: Watch, *credentials: bytes) -> list[set[str]]:
    """Make two connections with each credentials, all open at once.

    Returns the circuits over which they went.
    """
    since = len(watch.made)
    with Host() as host, ExitStack() as stack:
        for one in credentials * 2:
            stack.enter_context(closing(connect(network.tunnel, host, one)))
        assert watch.wait_for(since + 2 * len(credentials))
    found = watch.circuits(since)
    return [found[one.decode()] for one in credentials]


def connect(tunnel: str, host: Host, credentials: bytes) -> HTTPConnection:
    """Open a connection; circuits of a network that has just been started may fail."""
    for _ in range(6):
        connection = HTTPConnection(tunnel, timeout=60)
        connection.set_tunnel("127.0.0.1", host.port, {"Proxy-Authorization": credentials.decode()})
        with suppress(OSError):
            connection.connect()
            return connection
    raise AssertionError("no circuit of the network works")


@pytest.mark.promise(
    "Over Tor each circuit has credentials of its own; one that is refused is left for a new one."
)
def test_circuits_differ_by_token_and_a_ban_changes_one(
    tor_network: TorNetwork, pool: TorPool
) -> None:
    def another_keeps_its_own() -> bool:
        before = carried(tor_network, watch, *tokens(pool))
        pool.renew(pool.members["tor:c2"])
        after = carried(tor_network, watch, *tokens(pool))
        known = set.union(*before)
        assert len(known) == sum(map(len, before)), "two of them share a circuit"
        assert not after[1] & known
        return bool(after[0] & before[0] or after[2] & before[2])

    with tor_network.watched() as watch:
        # Tor itself may replace circuits that fail, but hardly two at once each time.
        wait_for(another_keeps_its_own)


def test_site_that_refuses_every_circuit_is_left_alone(
    tor_network: TorNetwork, tmp_path: Path
) -> None:
    with (
        ReplicaProcess(titles=300, light=True, faults={"challenge": 1.0}) as replica,
        HttpsFront(replica.urls["imdb"]) as front,
    ):
        ids = ",".join(f"tt{number:07}" for number in range(1, 61))
        command = crawl_command("imdb", "via=pages", f"ids={ids}", **CIRCUITS)
        settings = {**front.settings, "TOR_TUNNEL": f"http://{tor_network.tunnel}"}
        crawled = scrapy(*command, data=tmp_path, replica=None, **settings)
        assert counts(replica)["statuses"]["202"] <= 10 * 3
    assert (crawled.code, crawled.movies) == (1, [])
    assert set(crawled.misses.values()) <= {"blocked", "failed"}
