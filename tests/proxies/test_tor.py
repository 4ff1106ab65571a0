from __future__ import annotations

import asyncio
import base64
import threading

import pytest

from moviecrawler.errors import ConfigurationError
from moviecrawler.options import TorOptions
from moviecrawler.proxies import tor
from moviecrawler.proxies.pools import ProxyPoolError
from moviecrawler.proxies.tor import TorPool
from tests.proxies.tor_fakes import FakeControl, FakeTunnel
from tests.services.threads import Host
from tests.waiting import until

TUNNEL = "http://127.0.0.1:9080"


def pool(tunnel: FakeTunnel | None = None, control: FakeControl | None = None, url: str = TUNNEL) -> TorPool:
    return TorPool("tor", f"http://{tunnel.address}" if tunnel else url, control.address if control else "", 3)


async def refusal(made: TorPool) -> str:
    """Return the sentence with which the check at the start ends."""
    with pytest.raises(ProxyPoolError) as error:
        await made.open("https://127.0.0.1")
    return str(error.value)


def tokens(of: TorPool) -> list[bytes | None]:
    return [proxy.authorization for proxy in of.members.values()]


@pytest.fixture(autouse=True)
def _hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tor, "_START_SECONDS", 1)
    monkeypatch.setattr(tor, "_LISTENING_SECONDS", 1)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(
            ("TOR_TUNNEL", one)
            for one in ("127.0.0.1:9080", "http://127.0.0.1", "http://127.0.0.1:999999", f"{TUNNEL}/x")
        ),
        *(("TOR_TUNNEL", one) for one in ("https://127.0.0.1:9080", "socks5h://127.0.0.1:9050")),
        *(("TOR_CONTROL", one) for one in ("9051", "127.0.0.1:9051/x")),
        *((name, f"http://me:hunter2@{TUNNEL}") for name in ("TOR_TUNNEL", "TOR_CONTROL")),
    ],
)
def test_a_wrong_address_is_named_without_a_password(name: str, value: str) -> None:
    with pytest.raises(ConfigurationError, match=f"{name} ") as error:
        TorOptions.read({name: value})
    assert "hunter2" not in str(error.value)


@pytest.mark.promise("Over Tor each circuit has credentials of its own; when all are refused, new ones are asked for.")
def test_each_circuit_has_credentials_of_its_own_that_nobody_can_guess() -> None:
    made = pool(url="http://[::1]:9080/")
    assert {proxy.url for proxy in made.members.values()} == {"http://[::1]:9080"}
    assert len({*tokens(made), *tokens(pool())}) == 6
    for token in tokens(made):
        assert token is not None
        user, secret = base64.b64decode(token.removeprefix(b"Basic ")).decode().split(":")
        assert user == "tor"
        assert len(bytes.fromhex(secret)) == 12


def test_only_https_can_be_asked_through_tor() -> None:
    made = pool()
    assert made.accepts("https://www.imdb.com/title/tt1/")
    assert not made.accepts("http://www.imdb.com/title/tt1/")
    made.check("IMDB_URL", "https://www.imdb.com")
    with pytest.raises(ConfigurationError, match=r"IMDB_URL is 'http://127\.0\.0\.1:8000'.*https addresses only"):
        made.check("IMDB_URL", "http://127.0.0.1:8000")


# --- The check at the start ---------------------------------------------------------------------------------------------


async def test_the_check_reaches_the_host_and_sends_it_nothing() -> None:
    with Host() as host, FakeTunnel() as tunnel, FakeControl() as control:
        await pool(tunnel, control).open(f"https://{host.address}")
        assert await asyncio.to_thread(host.connected.wait, 10)
    assert [target for target, _ in tunnel.asked] == [host.address]
    assert host.received == b""


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (b"HTTP/1.0 501 Tor is not an HTTP Proxy\r\n\r\n<html>", "(HTTP/1.0 501 Tor is not an HTTP Proxy)"),
        (b"SSH-2.0-OpenSSH_9.2" + b"x" * 20_000, "it has to be Tor's HTTPTunnelPort, not its SOCKS port"),
        (b"", "(it hung up)"),
        (
            b"HTTP/1.0 503 Service Unavailable (resolve failed)\r\n\r\n",
            "(HTTP/1.0 503 Service Unavailable (resolve failed))",
        ),
        (None, "did not reach 127.0.0.1:443 (no answer in time)"),
    ],
)
async def test_what_is_wrong_with_the_tunnel_is_one_sentence(answer: bytes | None, sentence: str) -> None:
    with FakeTunnel() as tunnel:
        tunnel.answers = [answer] * 99
        assert sentence in await refusal(pool(tunnel))


async def test_nothing_that_listens_is_named() -> None:
    with FakeTunnel() as gone:
        pass
    said = await refusal(pool(gone))
    assert f"TOR_TUNNEL {gone.address} did not reach" in said
    assert "Connect call failed" in said


async def test_a_crawl_that_is_ended_while_it_connects_waits_for_no_thread() -> None:
    with FakeTunnel() as tunnel:
        tunnel.answers = [None]
        connecting = asyncio.create_task(pool(tunnel).open("https://127.0.0.1"))
        await until(lambda: bool(tunnel.asked))
        assert not [thread.name for thread in threading.enumerate() if thread.name.startswith("asyncio")]
        connecting.cancel()


async def test_tor_that_starts_a_little_later_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tor, "_START_SECONDS", 60)
    monkeypatch.setattr(tor, "_LISTENING_SECONDS", 60)
    with FakeTunnel() as gone:
        pass
    with Host() as host:
        checking = asyncio.create_task(pool(gone).open(f"https://{host.address}"))
        await asyncio.sleep(0.6)
        assert not checking.done()
        with FakeTunnel(gone.port) as tunnel:
            tunnel.answers = [b"HTTP/1.0 500 Internal Server Error\r\n\r\n"]
            await checking
        assert len(tunnel.asked) == 2


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
    assert ("asks for another password; set TOR_CONTROL_PASSWORD in the environment" in caplog.text) != works
    for secret in (password, given):
        assert not secret or secret[:5] not in caplog.text


@pytest.mark.parametrize("command", ["PROTOCOLINFO 1", "SIGNAL NEWNYM"])
async def test_a_control_port_that_is_silent_is_given_up_in_time(
    command: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(tor, "_CONTROL_TIMEOUT_SECONDS", 0.3)
    with FakeControl() as control:
        control.silent_at = command
        async with asyncio.timeout(20):
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
