from __future__ import annotations

import asyncio
import base64
from typing import TYPE_CHECKING, Any

import pytest

from moviecrawler.errors import ConfigurationError
from moviecrawler.options import TorOptions
from moviecrawler.proxies import tor
from moviecrawler.proxies.tor import Address, TorError, TorPool
from tests.proxies.tor_fakes import FakeControl, FakeTunnel
from tests.services.threads import Host

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
    ("given", "sentence"),
    [
        ({"TOR_TUNNEL": "127.0.0.1:9080"}, "TOR_TUNNEL is '127.0.0.1:9080'; set it to"),
        ({"TOR_TUNNEL": "http://127.0.0.1"}, "TOR_TUNNEL is 'http://127.0.0.1'; set it to"),
        ({"TOR_TUNNEL": "http://127.0.0.1:99999"}, "TOR_TUNNEL is 'http://127.0.0.1:99999'; set it to"),
        ({"TOR_TUNNEL": "http://127.0.0.1:9080/x"}, "set it to where Tor's HTTPTunnelPort listens"),
        ({"TOR_TUNNEL": "https://127.0.0.1:9080"}, "set it to where Tor's HTTPTunnelPort listens"),
        ({"TOR_TUNNEL": "socks5h://127.0.0.1:9050"}, "a SOCKS port, which Scrapy can't use"),
        ({"TOR_CONTROL": "9051"}, "TOR_CONTROL is '9051'; set it to Tor's ControlPort"),
        ({"TOR_CONTROL": "127.0.0.1:9051/x"}, "TOR_CONTROL is '127.0.0.1:9051/x'; set it to"),
        ({"TOR_CIRCUITS": "0"}, "TOR_CIRCUITS is '0'; set it to a"),
        ({"TOR_CIRCUITS": "1.5"}, "TOR_CIRCUITS is"),
        ({"TOR_TIMEOUT": "soon"}, "TOR_TIMEOUT is 'soon'; set it to a number from 1 to 600"),
    ],
)
def test_wrong_setting_is_named_with_what_is_right(given: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ConfigurationError) as error:
        pool(**given)
    assert sentence in str(error.value)


@pytest.mark.parametrize("name", ["TOR_TUNNEL", "TOR_CONTROL"])
def test_password_in_the_wrong_place_is_not_shown(name: str) -> None:
    with pytest.raises(ConfigurationError) as error:
        pool(None, None, **{name: "http://me:hunter2@127.0.0.1:9080"})
    assert name in str(error.value)
    assert "hunter2" not in str(error.value)


@pytest.mark.parametrize(
    ("given", "address"),
    [
        ("tor:9051", Address("tor", 9051)),
        ("[::1]:9051", Address("::1", 9051)),
        ("/run/tor/control", Address(path="/run/tor/control")),
        ("unix:/run/tor/control", Address(path="/run/tor/control")),
        ("unix:///run/tor/control", Address(path="/run/tor/control")),
    ],
)
def test_control_port_is_a_port_or_a_socket(given: str, address: Address) -> None:
    assert pool(TOR_CONTROL=given)._control == address


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
        (b"\x05\xff", "but another port, such as its SOCKS port"),
        (b"SSH-2.0-OpenSSH_9.2" + b"x" * 20_000, "is not Tor's HTTPTunnelPort"),
        # What may pass by itself is tried until the time is over.
        (b"", "such as its SOCKS port, or its Tor is ending"),
        (
            b"HTTP/1.0 503 Service Unavailable (resolve failed)\r\n\r\n",
            "reach 127.0.0.1:443: 503 Service Unavailable (re",
        ),
        (None, "did not reach 127.0.0.1:443 within 1 s; it may still be looking for its first circuits"),
    ],
)
async def test_what_is_wrong_with_the_tunnel_is_one_sentence(answer: bytes | None, sentence: str) -> None:
    with FakeTunnel() as tunnel:
        tunnel.answers = [answer] * 99
        assert sentence in await refusal(pool(tunnel, TOR_TIMEOUT=1).open(SITE))


async def test_nothing_that_listens_is_named() -> None:
    with FakeTunnel() as tunnel:
        pass
    said = await refusal(pool(tunnel, TOR_TIMEOUT=1).open(SITE))
    assert said.startswith("nothing listens at TOR_TUNNEL 127.0.0.1:")
    assert "(Connection refused)" in said


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


@pytest.mark.parametrize("command", ["PROTOCOLINFO 1", "AUTHENTICATE", "GETINFO status/bootstrap-phase"])
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
