from __future__ import annotations

import asyncio
import logging
import re
import threading
from typing import TYPE_CHECKING, Any

import pytest
from scrapy.settings import Settings

from moviecrawler.errors import ConfigurationError
from moviecrawler.proxies import tor_control
from moviecrawler.proxies.tor import TorCircuits, TorError, TorOptions
from moviecrawler.proxies.tor_control import ControlAddress, TorControl
from tests.proxies.tor_fakes import EXITS, FakeControl, FakeTunnel, Host, authorization

if TYPE_CHECKING:
    from pathlib import Path

TUNNEL = "http://127.0.0.1:9080"


def options(**given: Any) -> TorOptions:
    read = TorOptions.from_settings(Settings({"TOR_TUNNEL": TUNNEL, "TOR_CIRCUITS": 3, "TOR_TIMEOUT": 20, **given}))
    assert read is not None
    return read


def circuits(tunnel: FakeTunnel, control: FakeControl | None = None, **given: Any) -> TorCircuits:
    where = {"TOR_CONTROL": control.address} if control else {}
    return TorCircuits(options(TOR_TUNNEL=f"http://{tunnel.address}", **where, **given))


def refusal(attempt: Any) -> str:
    """Return the sentence with which an attempt ends."""
    with pytest.raises(TorError) as error:
        asyncio.run(attempt())
    return str(error.value)


# --- Settings -----------------------------------------------------------------------------------------------------------


def test_without_tor_there_are_no_options() -> None:
    assert TorOptions.from_settings(Settings({"TOR_TUNNEL": "", "TOR_CONTROL": ""})) is None


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"TOR_TUNNEL": "127.0.0.1:9080"}, "TOR_TUNNEL is '127.0.0.1:9080'; set it to"),
        ({"TOR_TUNNEL": "http://127.0.0.1"}, "TOR_TUNNEL is 'http://127.0.0.1'; set it to"),
        ({"TOR_TUNNEL": "http://127.0.0.1:99999"}, "TOR_TUNNEL is 'http://127.0.0.1:99999'; set it to"),
        ({"TOR_TUNNEL": "http://127.0.0.1:9080/x"}, "set it to where Tor's HTTPTunnelPort listens"),
        ({"TOR_TUNNEL": "https://127.0.0.1:9080"}, "set it to where Tor's HTTPTunnelPort listens"),
        ({"TOR_TUNNEL": "socks5h://127.0.0.1:9050"}, "a SOCKS port, which Scrapy can't use"),
        ({"TOR_TUNNEL": "", "TOR_CONTROL": "127.0.0.1:9051"}, "TOR_CONTROL is set, but TOR_TUNNEL is not"),
        ({"TOR_CONTROL": "9051"}, "TOR_CONTROL is '9051'; set it to Tor's ControlPort"),
        ({"TOR_CONTROL": "127.0.0.1:9051/x"}, "TOR_CONTROL is '127.0.0.1:9051/x'; set it to"),
        ({"TOR_CIRCUITS": "0"}, "TOR_CIRCUITS is '0'; set it to a number from 1 to 64"),
        ({"TOR_CIRCUITS": "65"}, "TOR_CIRCUITS is '65'; set it to a number from 1 to 64"),
        ({"TOR_CIRCUITS": "1.5"}, "TOR_CIRCUITS is 1.5; set it to a whole number"),
        ({"TOR_CIRCUITS": "nan"}, "TOR_CIRCUITS is 'nan'; set it to a number from 1 to 64"),
        ({"TOR_TIMEOUT": "soon"}, "TOR_TIMEOUT is 'soon'; set it to a number from 1 to 600"),
    ],
)
def test_wrong_setting_is_named_with_what_is_right(given: dict[str, str], sentence: str) -> None:
    with pytest.raises(ConfigurationError) as error:
        options(**given)
    assert sentence in str(error.value)


@pytest.mark.parametrize("name", ["TOR_TUNNEL", "TOR_CONTROL"])
def test_password_in_the_wrong_place_is_not_shown(name: str) -> None:
    with pytest.raises(ConfigurationError) as error:
        options(**{name: "http://me:hunter2@127.0.0.1:9080"})
    assert name in str(error.value)
    assert "hunter2" not in str(error.value)


@pytest.mark.parametrize(
    ("given", "address"),
    [
        ("tor:9051", ControlAddress("tor", 9051)),
        ("[::1]:9051", ControlAddress("::1", 9051)),
        ("/run/tor/control", ControlAddress(path="/run/tor/control")),
        ("unix:/run/tor/control", ControlAddress(path="/run/tor/control")),
        ("unix:///run/tor/control", ControlAddress(path="/run/tor/control")),
    ],
)
def test_control_port_is_a_port_or_a_socket(given: str, address: ControlAddress) -> None:
    assert options(TOR_CONTROL=given).control == address


# --- Circuits by credentials --------------------------------------------------------------------------------------------


def test_each_circuit_has_credentials_of_its_own_that_nobody_can_guess() -> None:
    tor = TorCircuits(options(TOR_TUNNEL="http://[::1]:9080/"))
    proxies = [tor.proxy(number) for number in range(len(tor))]
    assert len(set(proxies)) == 3
    for proxy in proxies:
        user, token = proxy.removeprefix("http://").removesuffix("@[::1]:9080").split(":")
        assert user == "tor"
        assert len(bytes.fromhex(token)) == 12
    assert not set(proxies) & {TorCircuits(options()).proxy(0)}


def test_renewed_circuit_has_other_credentials_and_the_others_keep_theirs() -> None:
    tor = TorCircuits(options())
    before = [tor.proxy(number) for number in range(3)]
    tor.renew(1)
    after = [tor.proxy(number) for number in range(3)]
    assert after[1] not in before
    assert (after[0], after[2]) == (before[0], before[2])


def test_only_https_can_be_asked_through_tor() -> None:
    tor = TorCircuits(options())
    assert tor.takes("https://www.imdb.com/title/tt1/")
    assert not tor.takes("http://www.imdb.com/title/tt1/")
    tor.require_https("IMDB_URL", "https://www.imdb.com")
    with pytest.raises(ConfigurationError, match=r"IMDB_URL is 'http://127\.0\.0\.1:8000'.*https addresses only"):
        tor.require_https("IMDB_URL", "http://127.0.0.1:8000")


# --- The start-up check -------------------------------------------------------------------------------------------------


def test_check_reaches_the_host_and_sends_it_nothing() -> None:
    async def check() -> None:
        with Host() as host, FakeTunnel() as tunnel:
            await circuits(tunnel).check("127.0.0.1", host.port)
            assert await asyncio.to_thread(host.connected.wait, 10)
        assert [target for target, _ in tunnel.asked] == [host.address]
        assert host.received == b""

    asyncio.run(check())


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (b"HTTP/1.0 501 Tor is not an HTTP Proxy\r\n\r\n<html>", "is Tor's SocksPort, which Scrapy can't use"),
        (b"HTTP/1.0 501 Tor ControlPort is not an HTTP proxy\r\n\r\n", "is Tor's ControlPort; add `HTTPTunnelPort`"),
        (b"HTTP/1.1 405 Method Not Allowed\r\n\r\n", "answers '405 Method Not Allowed' to CONNECT, so it is no"),
        (b"HTTP/1.1 407 Who are you\r\n\r\n", "answers '407 Who are you' to CONNECT, so it is no"),
        (b"\x05\xff", r"answers b'\x05\xff', which is not HTTP"),
        (b"SSH-2.0-OpenSSH_9.2" + b"x" * 20_000, "answers b'SSH-2.0-OpenSSH_9.2x', which is not HTTP"),
    ],
)
def test_other_port_is_told_at_once(answer: bytes, sentence: str) -> None:
    async def check() -> None:
        with FakeTunnel() as tunnel:
            tunnel.answers = [answer]
            await circuits(tunnel).check("127.0.0.1", 443)

    assert sentence in refusal(check)


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (b"", "closed the connection without an answer; it is no HTTPTunnelPort (a SOCKS port does so)"),
        (
            b"HTTP/1.0 503 Service Unavailable (resolve failed)\r\n\r\n",
            "reach 127.0.0.1:443: 503 Service Unavailable (res",
        ),
        (b"HTTP/1.0 403 Forbidden (exit policy)\r\n\r\n", "could not reach 127.0.0.1:443: 403 Forbidden (exit policy)"),
        (None, "did not reach 127.0.0.1:443 within 1 s; it may still be looking for its first circuits"),
    ],
)
def test_what_may_pass_is_waited_for_as_long_as_tor_has(answer: bytes | None, sentence: str) -> None:
    async def check() -> None:
        with FakeTunnel() as tunnel:
            tunnel.answers = [answer] * 99
            await circuits(tunnel, TOR_TIMEOUT=1).check("127.0.0.1", 443)

    assert sentence in refusal(check)


def test_nothing_that_listens_is_told() -> None:
    async def check() -> None:
        with FakeTunnel() as tunnel:
            pass
        await circuits(tunnel, TOR_TIMEOUT=1).check("127.0.0.1", 443)

    said = refusal(check)
    assert said.startswith("nothing listens at TOR_TUNNEL 127.0.0.1:")
    assert "(Connection refused)" in said


def test_tor_that_starts_a_little_later_is_waited_for() -> None:
    async def check() -> None:
        with FakeTunnel() as gone:
            pass
        with Host() as host:
            checking = asyncio.create_task(circuits(gone).check("127.0.0.1", host.port))
            await asyncio.sleep(0.6)
            assert not checking.done()
            with FakeTunnel(gone.port) as tunnel:
                tunnel.answers = [b"HTTP/1.0 500 Internal Server Error\r\n\r\n"]
                await checking
            assert len(tunnel.asked) == 2

    asyncio.run(check())


# --- The control port ---------------------------------------------------------------------------------------------------


def test_control_port_shows_that_two_circuits_are_two(caplog: pytest.LogCaptureFixture) -> None:
    async def check() -> None:
        with Host() as host, FakeTunnel() as tunnel, FakeControl(tunnel) as control:
            control.progress = [45, 80, 100]
            await circuits(tunnel, control).check("127.0.0.1", host.port)
        assert len(tunnel.circuits) == 2
        assert control.commands.count("GETINFO status/bootstrap-phase") == 3
        exits = [EXITS[number % 5 + 2] for number in tunnel.circuits.values()]
        assert f"Tor reaches {host.address} over circuits of their own" in caplog.text
        assert f"from relays {exits[0]} and {exits[1]}" in caplog.text

    with caplog.at_level(logging.INFO):
        asyncio.run(check())


def test_tor_without_circuits_is_told_with_how_far_it_is() -> None:
    async def check() -> None:
        with FakeTunnel() as tunnel, FakeControl(tunnel) as control:
            control.progress = [45]
            await circuits(tunnel, control, TOR_TIMEOUT=1).check("127.0.0.1", 443)

    assert "has no circuits yet: it is at 45% (Loading relay descriptors)" in refusal(check)


def test_tunnel_whose_circuits_are_shared_is_told() -> None:
    async def check() -> None:
        with Host() as host, FakeTunnel() as tunnel, FakeControl(tunnel) as control:
            tunnel.isolates = False
            await circuits(tunnel, control).check("127.0.0.1", host.port)

    assert "or its HTTPTunnelPort has NoIsolateSOCKSAuth" in refusal(check)


@pytest.mark.parametrize("password", ["hunter2", 'quote " and \\ backslash'])
def test_password_comes_from_the_environment_and_is_never_logged(
    password: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def check() -> None:
        with Host() as host, FakeTunnel() as tunnel, FakeControl(tunnel, password) as control:
            await circuits(tunnel, control).check("127.0.0.1", host.port)
        assert "GETINFO circuit-status" in control.commands

    monkeypatch.setenv("TOR_CONTROL_PASSWORD", password)
    with caplog.at_level(1):
        asyncio.run(check())
    assert password[:5] not in caplog.text


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (None, "asks for a password; set TOR_CONTROL_PASSWORD in the environment"),
        ("hunter3", "refuses the password in TOR_CONTROL_PASSWORD"),
    ],
)
def test_wrong_password_is_told_and_not_shown(
    given: str | None, sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def check() -> None:
        with FakeTunnel() as tunnel, FakeControl(tunnel, "hunter2") as control:
            await circuits(tunnel, control).check("127.0.0.1", 443)

    monkeypatch.delenv("TOR_CONTROL_PASSWORD", raising=False)
    if given is not None:
        monkeypatch.setenv("TOR_CONTROL_PASSWORD", given)
    said = refusal(check)
    assert sentence in said
    assert "hunter" not in said


def test_control_socket_takes_the_cookie_beside_it(tmp_path: Path) -> None:
    cookie = tmp_path / "cookie"
    cookie.write_bytes(bytes(range(32)))
    path = str(tmp_path / "control")

    async def check() -> None:
        with (
            Host() as host,
            FakeTunnel() as tunnel,
            FakeControl(tunnel, path=path, cookie=str(cookie)) as control,
        ):
            await circuits(tunnel, control).check("127.0.0.1", host.port)
        assert len(tunnel.circuits) == 2

    asyncio.run(check())


def test_cookie_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    async def check() -> None:
        with FakeTunnel() as tunnel, FakeControl(tunnel, cookie=str(tmp_path / "gone")) as control:
            await circuits(tunnel, control).check("127.0.0.1", 443)

    assert "let this user read Tor's cookie" in refusal(check)


def test_port_that_is_no_control_port_is_told() -> None:
    async def check() -> None:
        with FakeTunnel() as tunnel, Host(b"HTTP/1.0 400 Bad Request\r\n\r\n") as other:
            where = f"127.0.0.1:{other.port}"
            await TorCircuits(options(TOR_TUNNEL=f"http://{tunnel.address}", TOR_CONTROL=where)).check("127.0.0.1", 443)

    assert "does not speak the protocol of Tor's control port" in refusal(check)


@pytest.mark.parametrize("command", ["PROTOCOLINFO 1", "AUTHENTICATE", "GETINFO circuit-status", "SIGNAL NEWNYM"])
def test_control_port_that_falls_silent_is_given_up_in_time(command: str) -> None:
    async def ask() -> None:
        with FakeTunnel() as tunnel, FakeControl(tunnel) as control:
            control.silent_at = command
            async with asyncio.timeout(20):
                await TorControl(
                    options(TOR_CONTROL=control.address).control or ControlAddress(), None, 0.3
                ).new_identity()

    assert re.fullmatch(r"TOR_CONTROL 127\.0\.0\.1:\d+ can't be asked: .*timed out.*", refusal(ask))


# --- A new identity -----------------------------------------------------------------------------------------------------


def test_new_identity_leaves_every_circuit_and_blocks_nothing_meanwhile(caplog: pytest.LogCaptureFixture) -> None:
    async def renew() -> None:
        with FakeTunnel() as tunnel, FakeControl(tunnel) as control:
            tor = circuits(tunnel, control)
            before = [tor.proxy(number) for number in range(3)]
            tunnel.circuits = {authorization(proxy): number for number, proxy in enumerate(before, 200)}
            asked, performed = asyncio.Event(), threading.Event()
            loop = asyncio.get_running_loop()
            control.before_event = lambda: (loop.call_soon_threadsafe(asked.set), performed.wait(20))
            renewing = asyncio.create_task(tor.new_identity())
            async with asyncio.timeout(20):
                await asked.wait()  # this very loop goes on while Tor makes us wait
            assert not renewing.done()
            assert [tor.proxy(number) for number in range(3)] == before
            performed.set()
            assert await renewing
            assert not set(before) & {tor.proxy(number) for number in range(3)}
            assert not tunnel.circuits

    with caplog.at_level(logging.INFO):
        asyncio.run(renew())
    assert "Tor has a new identity, and 1 fresh circuits" in caplog.text


def test_new_identity_is_asked_for_as_often_as_tor_allows() -> None:
    now = 1000.0

    async def renew() -> None:
        nonlocal now
        with FakeTunnel() as tunnel, FakeControl(tunnel) as control:
            where = {"TOR_TUNNEL": f"http://{tunnel.address}", "TOR_CONTROL": control.address}
            tor = TorCircuits(options(**where), clock=lambda: now)
            assert await tor.new_identity()
            for later, does in ((1000.0, False), (1009.9, False), (1010.0, True), (1010.1, False), (1025.0, True)):
                now = later
                kept = tor.proxy(0)
                assert await tor.new_identity() == does
                assert (tor.proxy(0) != kept) == does
            assert control.commands.count("SIGNAL NEWNYM") == 3

    asyncio.run(renew())


def test_tor_that_builds_circuits_only_when_asked_has_a_new_identity_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tor_control, "_REBUILT_WITHIN", 0.3)

    async def renew() -> None:
        with FakeTunnel() as tunnel, FakeControl(tunnel) as control:
            control.spare = []
            control._drop_circuits = lambda: None  # type: ignore[method-assign]
            assert await circuits(tunnel, control).new_identity()

    asyncio.run(renew())


def test_without_a_control_port_there_is_no_new_identity() -> None:
    tor = TorCircuits(options())
    before = tor.proxy(0)
    assert asyncio.run(tor.new_identity()) is False
    assert tor.proxy(0) == before
