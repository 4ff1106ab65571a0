from __future__ import annotations

import asyncio
import base64
import threading
from typing import TYPE_CHECKING, Any

import pytest

from moviecrawler.errors import ConfigurationError
from moviecrawler.options import TorOptions
from moviecrawler.proxies import tor
from moviecrawler.proxies.tor import TorError, TorPool
from tests.proxies.tor_fakes import FakeControl, FakeTunnel
from tests.services.threads import Host
from tests.waiting import until

if TYPE_CHECKING:
    from collections.abc import Coroutine

TUNNEL = "http://127.0.0.1:9080"
SITE = "https://127.0.0.1"


def pool(tunnel: FakeTunnel | None = None, control: FakeControl | None = None, **given: Any) -> TorPool:
    usual = {"TOR_TUNNEL": f"http://{tunnel.address}" if tunnel else TUNNEL, "TOR_CIRCUITS": 3, "TOR_TIMEOUT": 20}
    where = {"TOR_CONTROL": control.address} if control else {}
    return TorPool("tor", TorOptions.read({**usual, **where, **given}))


async def refusal(attempt: Coroutine[Any, Any, None]) -> str:
    """Return the sentence with which an attempt ends."""
    with pytest.raises(TorError) as error:
        await attempt
    return str(error.value)


def tokens(of: TorPool) -> list[bytes | None]:
    return [of.route(proxy).authorization for proxy in of.proxies]


# --- Settings -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(
            ("TOR_TUNNEL", one)
            for one in ("127.0.0.1:9080", "http://127.0.0.1", "http://127.0.0.1:99999", f"{TUNNEL}/x")
        ),
        *(("TOR_TUNNEL", one) for one in ("https://127.0.0.1:9080", "socks5h://127.0.0.1:9050")),
        *(("TOR_CONTROL", one) for one in ("9051", "127.0.0.1:9051/x")),
        *(
            (name, f"{scheme}me:hunter2@127.0.0.1:9080")
            for name in ("TOR_TUNNEL", "TOR_CONTROL")
            for scheme in ("", "http://")
        ),
    ],
)
def test_wrong_address_is_named_with_what_is_right_and_without_a_password(name: str, value: str) -> None:
    with pytest.raises(ConfigurationError) as error:
        pool(None, None, **{name: value})
    assert f"{name} is '{value.replace('me:hunter2', '***')}'; set it to " in str(error.value)


@pytest.mark.parametrize(
    "given", ["tor:9051", "[::1]:9051", "/run/tor/control", "unix:/run/tor/control", "unix:///run/tor/control"]
)
def test_control_port_is_a_port_or_a_socket(given: str) -> None:
    assert pool(TOR_CONTROL=given)._control in {"tor:9051", "[::1]:9051", "/run/tor/control"}


# --- Circuits -----------------------------------------------------------------------------------------------------------


def test_each_circuit_has_credentials_of_its_own_that_nobody_can_guess() -> None:
    made = pool(TOR_TUNNEL="http://[::1]:9080/")
    assert {made.route(proxy).url for proxy in made.proxies} == {"http://[::1]:9080"}
    assert len({*tokens(made), *tokens(pool())}) == 6
    for token in tokens(made):
        assert token is not None
        user, secret = base64.b64decode(token.removeprefix(b"Basic ")).decode().split(":")
        assert user == "tor"
        assert len(bytes.fromhex(secret)) == 12


def test_renewed_circuit_has_other_credentials_and_the_others_keep_theirs() -> None:
    made = pool()
    before = tokens(made)
    assert made.renew(made.proxies[1])
    after = tokens(made)
    assert after[1] not in before
    assert (after[0], after[2]) == (before[0], before[2])


def test_only_https_can_be_asked_through_tor() -> None:
    made = pool()
    assert made.accepts("https://www.imdb.com/title/tt1/")
    assert not made.accepts("http://www.imdb.com/title/tt1/")
    made.check("IMDB_URL", "https://www.imdb.com")
    with pytest.raises(ConfigurationError, match=r"IMDB_URL is 'http://127\.0\.0\.1:8000'.*https addresses only"):
        made.check("IMDB_URL", "http://127.0.0.1:8000")


# --- The start-up check -------------------------------------------------------------------------------------------------


async def test_check_reaches_the_host_and_sends_it_nothing() -> None:
    with Host() as host, FakeTunnel() as tunnel, FakeControl() as control:
        control.progress = [45, 80, 100]
        await pool(tunnel, control).open(f"https://{host.address}")
        assert await asyncio.to_thread(host.connected.wait, 10)
        assert control.commands.count("GETINFO status/bootstrap-phase") == 3
    assert [target for target, _ in tunnel.asked] == [host.address]
    assert host.received == b""


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (b"HTTP/1.0 501 Tor is not an HTTP Proxy\r\n\r\n<html>", "but another port, such as its SOCKS port"),
        (b"SSH-2.0-OpenSSH_9.2" + b"x" * 20_000, "is not Tor's HTTPTunnelPort"),
        (b"", "such as its SOCKS port, or its Tor is ending"),
        (
            b"HTTP/1.0 503 Service Unavailable (resolve failed)\r\n\r\n",
            "did not reach 127.0.0.1:443 (503 Service Unavailable (resolve failed)); it may still",
        ),
        (None, "did not reach 127.0.0.1:443 (504 no answer in time); it may still be looking for its first circuits"),
    ],
)
async def test_what_is_wrong_with_the_tunnel_is_one_sentence(answer: bytes | None, sentence: str) -> None:
    with FakeTunnel() as tunnel:
        tunnel.answers = [answer] * 99
        assert sentence in await refusal(pool(tunnel, TOR_TIMEOUT=1).open(SITE))


@pytest.mark.parametrize("name", ["TOR_TUNNEL", "TOR_CONTROL"])
async def test_nothing_that_listens_is_named(name: str) -> None:
    with FakeTunnel() as gone:
        pass
    where = {"TOR_TUNNEL": f"http://{gone.address}"} if name == "TOR_TUNNEL" else {"TOR_CONTROL": gone.address}
    said = await refusal(pool(None, None, TOR_TIMEOUT=1, **where).open(SITE))
    assert f"{name} {gone.address}" in said
    assert "Connection refused" in said


async def test_crawl_that_is_ended_while_it_connects_waits_for_no_thread() -> None:
    with FakeTunnel() as tunnel:
        tunnel.answers = [None]
        connecting = asyncio.create_task(pool(tunnel).open(SITE))
        await until(lambda: bool(tunnel.asked))
        assert not [thread.name for thread in threading.enumerate() if thread.name.startswith("asyncio")]
        connecting.cancel()


async def test_tor_that_starts_a_little_later_is_waited_for() -> None:
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


async def test_tor_without_circuits_is_named_with_how_far_it_is() -> None:
    with FakeTunnel() as tunnel, FakeControl() as control:
        control.progress = [45]
        said = await refusal(pool(tunnel, control, TOR_TIMEOUT=1).open(SITE))
    assert "has no circuits yet: it is at 45% (Loading relay descriptors)" in said


@pytest.mark.parametrize("password", ["hunter2", 'quote " and \\ backslash'])
async def test_password_comes_from_the_environment_and_is_never_logged(
    password: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("TOR_CONTROL_PASSWORD", password)
    with caplog.at_level(1), Host() as host, FakeTunnel() as tunnel, FakeControl(password) as control:
        await pool(tunnel, control).open(f"https://{host.address}")
    assert password[:5] not in caplog.text


@pytest.mark.parametrize("given", ["", "hunter3"])
async def test_wrong_password_is_named_and_not_shown(given: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOR_CONTROL_PASSWORD", given)
    with FakeTunnel() as tunnel, FakeControl("hunter2") as control:
        said = await refusal(pool(tunnel, control).open(SITE))
    assert "asks for another password; set TOR_CONTROL_PASSWORD in the environment" in said
    assert "hunter" not in said


@pytest.mark.parametrize("command", ["PROTOCOLINFO 1", "GETINFO status/bootstrap-phase"])
async def test_control_port_that_falls_silent_is_given_up_in_time(
    command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tor, "_CONTROL_TIMEOUT_SECONDS", 0.3)
    with FakeTunnel() as tunnel, FakeControl() as control:
        control.silent_at = command
        async with asyncio.timeout(20):
            assert "can't be asked: " in await refusal(pool(tunnel, control, TOR_TIMEOUT=1).open(SITE))


# --- A new identity -----------------------------------------------------------------------------------------------------


async def test_new_identity_leaves_every_circuit_as_often_as_tor_allows() -> None:
    now = 1000.0
    with FakeControl() as control:
        made = TorPool("tor", TorOptions.read({"TOR_TUNNEL": TUNNEL, "TOR_CONTROL": control.address}), lambda: now)
        for later, does in ((1000.0, True), (1000.0, False), (1009.9, False), (1010.0, True), (1025.0, True)):
            now = later
            before = tokens(made)
            await made.on_exhausted()
            assert set(tokens(made)).isdisjoint(before) == does
        assert control.commands.count("SIGNAL NEWNYM") == 3


async def test_without_a_control_port_there_is_no_new_identity() -> None:
    made = pool()
    before = tokens(made)
    await made.on_exhausted()
    assert tokens(made) == before
