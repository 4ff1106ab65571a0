"""A pool of kind tor: its circuits, the check at the start, the control port.

A forward proxy stands for Tor.
"""

import base64
import re
import socket
from pathlib import Path

import pytest

from moviecrawler.proxies import tor
from moviecrawler.proxies.pools import ProxyPoolError
from moviecrawler.proxies.tor import TorPool
from moviecrawler.replica.process import ReplicaProcess
from tests.crawling import counts
from tests.proxies.fleets import crawl_over_tor
from tests.services.forward_proxy import Mode, ProxyFleet
from tests.services.https import NAME, HttpsFront
from tests.services.threads import Host, Server


class FakeControl(Server):
    """Tor's ControlPort."""

    def __init__(self, password: str = "", silent_at: str = "") -> None:
        """Ask for a password, if one is given, and never answer the command `silent_at`."""
        super().__init__(lambda connection, *_: self._serve(connection))
        self.password = password
        self.silent_at = silent_at
        self.commands: list[str] = []

    def _serve(self, connection: socket.socket) -> None:
        methods = "HASHEDPASSWORD" if self.password else "NULL"
        info = (
            f'250-PROTOCOLINFO 1\n250-AUTH METHODS={methods}\n250-VERSION Tor="0.4.9.11"\n250 OK\n'
        )
        for line in map(str.rstrip, connection.makefile(encoding="utf-8")):
            self.commands.append(line)
            if line == self.silent_at:
                connection.recv(1)
            given = re.sub(r"\\(.)", r"\1", line.removeprefix("AUTHENTICATE").strip()[1:-1])
            if line.startswith("AUTHENTICATE") and self.password not in {"", given}:
                connection.sendall(
                    b"515 Authentication failed: "
                    b"Password did not match HashedControlPassword value\r\n"
                )
                return
            answer = info if line == "PROTOCOLINFO 1" else "250 OK\n"
            connection.sendall(answer.replace("\n", "\r\n").encode())


def pool(tunnel: str = "http://127.0.0.1:9080", control: FakeControl | None = None) -> TorPool:
    return TorPool("tor", tunnel, control.address if control else "", 3)


def tokens(of: TorPool) -> list[str]:
    return [
        base64.b64decode((proxy.authorization or b"")[6:]).decode() for proxy in of.members.values()
    ]


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


@pytest.mark.parametrize(
    ("control", "given", "works"),
    [
        (FakeControl("hunter2"), "hunter2", True),
        (FakeControl('quote " and \\ backslash'), 'quote " and \\ backslash', True),
        (FakeControl("hunter2"), "hunter3", False),
        (FakeControl(silent_at="PROTOCOLINFO 1"), "", False),
        (FakeControl(silent_at="SIGNAL NEWNYM"), "", False),
    ],
)
async def test_a_control_port_that_is_silent_or_wants_another_password_is_told_without_it(
    control: FakeControl,
    given: str,
    works: bool,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setenv("TOR_CONTROL_PASSWORD", given)
    monkeypatch.setattr(tor, "_TIMEOUT_SECONDS", 0.3 if control.silent_at else 30)
    with caplog.at_level(1), control:
        await pool(control=control).on_exhausted()
        assert (f"TOR_CONTROL {control.address} can't be asked: " in caplog.text) != works
    assert ("TOR_CONTROL_PASSWORD in the environment" in caplog.text) != works
    assert "SIGNAL NEWNYM" in control.commands or not works
    assert not [
        secret for secret in (control.password, given) if secret and secret[:5] in caplog.text
    ]


@pytest.mark.promise(
    "Over Tor each circuit has credentials of its own; "
    "when all are refused, new ones are asked for."
)
async def test_a_new_identity_leaves_every_circuit_as_often_as_tor_allows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with FakeControl() as control:
        for made, does in ((pool(control=control), True), (pool(), False)):
            for now, is_allowed in (
                (1000.0, True),
                (1009.9, False),
                (1010.0, True),
                (1025.0, True),
            ):
                monkeypatch.setattr(tor, "monotonic", lambda now=now: now)
                before = tokens(made)
                await made.on_exhausted()
                assert set(tokens(made)).isdisjoint(before) == (does and is_allowed)
        assert control.commands.count("SIGNAL NEWNYM") == 3


@pytest.mark.promise(
    "Over Tor each circuit has credentials of its own; "
    "when all are refused, new ones are asked for."
)
def test_every_request_leaves_over_one_of_the_circuits(
    replica: ReplicaProcess, front: HttpsFront, tmp_path: Path
) -> None:
    with ProxyFleet([Mode.WORK]) as fleet:
        (tunnel,) = fleet.proxies
        tunnel.takes_all = True
        home = f"https://{NAME}:{front.port}"
        crawled = crawl_over_tor(
            front,
            tmp_path,
            "list=top",
            "limit=20",
            IMDB_URL=home,
            TOR_TUNNEL=f"http://127.0.0.1:{tunnel.port}",
        )
    assert (crawled.code, len(crawled.movies)) == (0, 20), crawled.log
    assert {asked.target for asked in tunnel.asked} == {f"{NAME}:{front.port}"}
    used = {asked.password for asked in tunnel.asked}
    assert len(used) == 3
    assert not [secret for secret in used if secret in crawled.log]
    assert counts(replica)["requests"] >= 21
