"""A pool of kind tor: its circuits, the check at the start, the control port. A forward proxy stands for Tor."""

from __future__ import annotations

import base64
import re
import socket
from typing import TYPE_CHECKING

import pytest

from moviecrawler.errors import ConfigurationError
from moviecrawler.options import TorOptions
from moviecrawler.proxies import tor
from moviecrawler.proxies.pools import ProxyPoolError
from moviecrawler.proxies.tor import TorPool
from tests.crawling import counts
from tests.proxies.fleets import crawl_over_tor
from tests.services.forward_proxy import Mode, ProxyFleet
from tests.services.https import NAME, HttpsFront
from tests.services.threads import Host, Server

if TYPE_CHECKING:
    from pathlib import Path

    from moviecrawler.replica.process import ReplicaProcess

TUNNEL = "http://127.0.0.1:9080"


class FakeControl(Server):
    """Tor's ControlPort."""

    def __init__(self, password: str | None = None) -> None:
        """Ask for a password, if one is given."""
        super().__init__(lambda connection, *_: self._serve(connection))
        self._password = password
        self.commands: list[str] = []
        self.silent_at = ""
        """The command that is never answered."""

    def _serve(self, connection: socket.socket) -> None:
        methods = "NULL" if self._password is None else "HASHEDPASSWORD"
        info = f'250-PROTOCOLINFO 1\n250-AUTH METHODS={methods}\n250-VERSION Tor="0.4.9.11"\n250 OK\n'
        for line in map(str.rstrip, connection.makefile(encoding="utf-8")):
            self.commands.append(line)
            answer = info if line == "PROTOCOLINFO 1" else "250 OK\n"
            given = re.sub(r"\\(.)", r"\1", line.removeprefix("AUTHENTICATE").strip()[1:-1])
            if line == self.silent_at:
                connection.recv(1)
            if line.startswith("AUTHENTICATE") and self._password not in {None, given}:
                connection.sendall(b"515 Authentication failed: Password did not match HashedControlPassword value\r\n")
                return
            connection.sendall(answer.replace("\n", "\r\n").encode())


def pool(tunnel: str = TUNNEL, control: FakeControl | None = None) -> TorPool:
    return TorPool("tor", tunnel, control.address if control else "", 3)


def tokens(of: TorPool) -> list[bytes | None]:
    return [proxy.authorization for proxy in of.members.values()]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *[("TOR_TUNNEL", one) for one in ("127.0.0.1:9080", "http://127.0.0.1", "http://127.0.0.1:999999")],
        *[("TOR_TUNNEL", one) for one in (f"{TUNNEL}/x", "https://127.0.0.1:9080", "socks5h://127.0.0.1:9050")],
        *[("TOR_CONTROL", one) for one in ("9051", "127.0.0.1:9051/x")],
        *[(name, f"http://me:hunter2@{TUNNEL}") for name in ("TOR_TUNNEL", "TOR_CONTROL")],
    ],
)
def test_a_wrong_address_is_named_without_a_password(name: str, value: str) -> None:
    with pytest.raises(ConfigurationError, match=f"{name} ") as error:
        TorOptions.read({name: value})
    assert "hunter2" not in str(error.value)


@pytest.mark.promise("Over Tor each circuit has credentials of its own; when all are refused, new ones are asked for.")
def test_each_circuit_has_credentials_of_its_own_that_nobody_can_guess() -> None:
    made = pool("http://[::1]:9080/")
    assert {proxy.url for proxy in made.members.values()} == {"http://[::1]:9080"}
    assert len({*tokens(made), *tokens(pool())}) == 6
    for token in tokens(made):
        assert re.fullmatch("tor:[0-9a-f]{24}", base64.b64decode((token or b"").removeprefix(b"Basic ")).decode())
    assert (made.accepts("https://www.imdb.com/"), made.accepts("http://www.imdb.com/")) == (True, False)


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
        (b"", "did not reach https://127.0.0.1"),
        (None, "timed out"),
    ],
    ids=["socks", "ssh", "hangs-up", "silent"],
)
async def test_what_is_wrong_with_the_tunnel_is_one_sentence(
    answer: bytes | None, sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tor, "_START_SECONDS", 0)
    monkeypatch.setattr(tor, "_TIMEOUT_SECONDS", 0.5)
    with Host() if answer is None else Server(lambda connection, *_: connection.sendall(answer)) as tunnel:
        with pytest.raises(ProxyPoolError, match=f"TOR_TUNNEL {tunnel.url} did not reach") as error:
            await pool(tunnel.url).open("https://127.0.0.1")
        assert sentence in str(error.value)
        assert "\n" not in str(error.value)


# --- The control port ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("password", "given", "works"),
    [
        ("hunter2", "hunter2", True),
        (*['quote " and \\ backslash'] * 2, True),
        ("hunter2", "", False),
        ("hunter2", "hunter3", False),
    ],
)
async def test_the_password_of_the_control_port_is_never_logged(
    password: str, given: str, works: bool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("TOR_CONTROL_PASSWORD", given)
    with caplog.at_level(1), FakeControl(password) as control:
        await pool(control=control).on_exhausted()
    assert ("SIGNAL NEWNYM" in control.commands) == works
    assert ("TOR_CONTROL_PASSWORD in the environment" in caplog.text) != works
    for secret in (password, given):
        assert not secret or secret[:5] not in caplog.text


@pytest.mark.parametrize("command", ["PROTOCOLINFO 1", "SIGNAL NEWNYM"])
async def test_a_control_port_that_is_silent_is_given_up(
    command: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(tor, "_TIMEOUT_SECONDS", 0.3)
    with FakeControl() as control:
        control.silent_at = command
        await pool(control=control).on_exhausted()
        assert f"TOR_CONTROL {control.address} can't be asked: " in caplog.text


@pytest.mark.promise("Over Tor each circuit has credentials of its own; when all are refused, new ones are asked for.")
async def test_a_new_identity_leaves_every_circuit_as_often_as_tor_allows(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1000.0
    monkeypatch.setattr(tor, "monotonic", lambda: now)
    with FakeControl() as control:
        made = pool(control=control)
        for later, does in ((1000.0, True), (1000.0, False), (1009.9, False), (1010.0, True), (1025.0, True)):
            now = later
            before = tokens(made)
            await made.on_exhausted()
            assert set(tokens(made)).isdisjoint(before) == does
        assert control.commands.count("SIGNAL NEWNYM") == 3
    alone = pool()
    before = tokens(alone)
    await alone.on_exhausted()
    assert tokens(alone) == before


# --- Crawls -------------------------------------------------------------------------------------------------------------


@pytest.mark.promise("Over Tor each circuit has credentials of its own; when all are refused, new ones are asked for.")
def test_every_request_leaves_over_one_of_the_circuits(
    replica: ReplicaProcess, front: HttpsFront, tmp_path: Path
) -> None:
    with ProxyFleet([Mode.WORK]) as fleet:
        (tunnel,) = fleet.proxies
        tunnel.takes_all, tunnel.hosts = True, {NAME: "127.0.0.1"}  # this machine itself knows no such name
        home = f"https://{NAME}:{front.port}"
        crawled = crawl_over_tor(front, tmp_path, "list=top", "limit=20", IMDB_URL=home, TOR_TUNNEL=tunnel.address_url)
        assert (crawled.code, len(crawled.movies)) == (0, 20), crawled.log
        assert {asked.target for asked in tunnel.asked} == {f"{NAME}:{front.port}"}
        used = {asked.password for asked in tunnel.asked}
    assert len(used) == 3
    assert not [secret for secret in used if secret in crawled.log]
    assert counts(replica)["requests"] >= 21


def test_a_crawl_that_tor_cannot_carry_asks_nothing_and_says_why(
    replica: ReplicaProcess, front: HttpsFront, tmp_path: Path
) -> None:
    # Plain http would go to a relay unencrypted.
    crawled = crawl_over_tor(front, tmp_path, "list=top", IMDB_URL=replica.urls["imdb"], TOR_TUNNEL=TUNNEL)
    assert crawled.code != 0
    assert "which takes https addresses only" in crawled.log
    assert "Traceback" not in crawled.log
    assert counts(replica)["requests"] == 0
