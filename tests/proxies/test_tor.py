"""A pool of kind tor: its circuits, and the check at the start.

A forward proxy stands for Tor.
"""

import socket
from pathlib import Path

import pytest

from moviecrawler.proxies import tor
from moviecrawler.proxies.pools import ProxyPoolError
from moviecrawler.proxies.tor import TorPool
from moviecrawler.replica.process import ReplicaProcess
from tests.crawling import counts, scrapy
from tests.processes import crawl_command
from tests.services.forward_proxy import Mode, ProxyFleet
from tests.services.https import NAME, HttpsFront
from tests.services.threads import Host, Server
from tests.services.tor import CIRCUITS


def pool(tunnel: str) -> TorPool:
    return TorPool("tor", tunnel, 3)


async def test_tor_that_starts_a_little_later_is_waited_for_and_the_site_is_sent_nothing() -> None:
    answers = [b"HTTP/1.0 503 Service Unavailable\r\n\r\n", b"HTTP/1.0 200 OK\r\n\r\n"]
    asked: list[bytes] = []

    def serve(connection: socket.socket, *_: object) -> None:
        asked.append(connection.recv(1000))
        connection.sendall(answers[len(asked) - 1])
        assert connection.recv(1) == b""

    with Server(serve) as tunnel:
        await pool(tunnel.url).open("https://www.imdb.com")
    assert [head.split()[:2] for head in asked] == [[b"CONNECT", b"www.imdb.com:443"]] * 2
    assert len(set(asked)) == 2  # the second by another circuit


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (b"HTTP/1.0 501 Tor is not an HTTP Proxy\r\n\r\n<html>", "501 Tor is not an HTTP Proxy"),
        (b"SSH-2.0-OpenSSH_9.2\r\n", "it has to be Tor's HTTPTunnelPort, not its SOCKS port"),
        (None, "timed out"),
    ],
)
async def test_what_is_wrong_with_the_tunnel_is_one_sentence(
    answer: bytes | None, sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tor, "_START_SECONDS", 0)
    monkeypatch.setattr(tor, "_TIMEOUT_SECONDS", 0.5)
    with (
        Host()
        if answer is None
        else Server(lambda connection, *_: connection.sendall(answer)) as tunnel
    ):
        with pytest.raises(ProxyPoolError, match=f"TOR_TUNNEL {tunnel.url} did not reach") as error:
            await pool(tunnel.url).open("https://127.0.0.1")
        assert sentence in str(error.value)
        assert "\n" not in str(error.value)


@pytest.mark.promise(
    "Over Tor each circuit has credentials of its own; one that is refused is left for a new one."
)
def test_every_request_leaves_over_one_of_the_circuits(
    replica: ReplicaProcess, front: HttpsFront, tmp_path: Path
) -> None:
    with ProxyFleet([Mode.WORK]) as fleet:
        (tunnel,) = fleet.proxies
        tunnel.takes_all = True
        home = f"https://{NAME}:{front.port}"
        tor_tunnel = f"http://127.0.0.1:{tunnel.port}"
        settings = {**front.settings, "IMDB_URL": home, "TOR_TUNNEL": tor_tunnel}
        command = crawl_command("imdb", "via=pages", "list=top", "limit=20", **CIRCUITS)
        crawled = scrapy(*command, data=tmp_path, replica=None, **settings)
    assert (crawled.code, len(crawled.movies)) == (0, 20), crawled.log
    assert {asked.target for asked in tunnel.asked} == {f"{NAME}:{front.port}"}
    used = {asked.password for asked in tunnel.asked}
    assert len(used) == 3
    assert not [secret for secret in used if secret in crawled.log]
    assert counts(replica)["requests"] >= 21
