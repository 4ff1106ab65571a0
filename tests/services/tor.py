"""A Tor network of our own, on this machine only, for the tests marked `tor`.

It takes `tor` and `tor-gencert` (Debian: tor).
"""

import os
import random
import re
import secrets
import socket
import subprocess
import tempfile
import threading
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Self

import pytest

from tests.waiting import wait_for

_RELAYS = 3
_START_SECONDS = 120  # at most; it takes about 15
_CONNECTED = re.compile(r'650 STREAM \d+ SUCCEEDED (\d+) .*SOCKS_USERNAME="([^"]*)"')
"""An event of the control port: a connection was made over a circuit, with credentials."""
_ALL = """
TestingTorNetwork 1
Address 127.0.0.1
ContactInfo nobody@example.invalid
AssumeReachable 1
ShutdownWaitLength 0
"""
_AUTHORITY = """
Nickname authority
ORPort {or_port}
DirPort {directory_port}
SocksPort 0
ExitRelay 0
AuthoritativeDirectory 1
V3AuthoritativeDirectory 1
TestingV3AuthInitialVotingInterval 5
TestingV3AuthInitialVoteDelay 2
TestingV3AuthInitialDistDelay 2
V3AuthVotingInterval 10
V3AuthVoteDelay 2
V3AuthDistDelay 2
V3AuthNIntervalsValid 10
TestingDirAuthVoteExit *
TestingDirAuthVoteGuard *
TestingMinExitFlagThreshold 0
TestingMinFastFlagThreshold 0
"""
_RELAY = """
Nickname {name}
ORPort auto
SocksPort 0
ExitRelay 1
ExitPolicy accept *:*
ExitPolicyRejectPrivate 0
ExitPolicyRejectLocalInterfaces 0
RefuseUnknownExits 0
"""
_CLIENT = """
SocksPort 0
HTTPTunnelPort {tunnel} IsolateSOCKSAuth KeepAliveIsolateSOCKSAuth
ControlPort {control}
HashedControlPassword {password}
"""

CIRCUITS = {
    "PROXY_ORDER": '{"imdb": "tor"}',
    "PROXY_POOLS": '{"tor": {"kind": "tor", "sessions": 3}}',
    "DOWNLOAD_TIMEOUT": "30",
    "DOWNLOAD_DELAY": "0",
    "AUTOTHROTTLE_ENABLED": "0",
}
"""Settings with which IMDb is crawled over three circuits."""


class TorNetwork:
    """A Tor network that runs while the `with` block does.

    It is an authority, three relays from which connections leave, and a client.
    """

    def __init__(self) -> None:
        self.tunnel = f"127.0.0.1:{_port()}"
        self.control = f"127.0.0.1:{_port()}"
        self.password = secrets.token_hex(8)
        """Of the client's control port."""

    def __enter__(self) -> Self:
        with ExitStack() as self._running:
            folder = tempfile.TemporaryDirectory(prefix="tor-", ignore_cleanup_errors=True)
            self._folder = Path(self._running.enter_context(folder))
            options, authority = self._make_authority(_port(), _port())
            self._run("authority", options + authority)
            relays = [f"relay{number}" for number in range(_RELAYS)]
            for name in relays:
                self._run(name, _RELAY.format(name=name) + authority)
            # A client that asked before there is a consensus would wait longer and longer between
            # its next questions.
            consensus = self._folder / "authority" / "cached-microdesc-consensus"
            wait_for(
                lambda: (
                    consensus.exists()
                    and all(f"r {name} " in consensus.read_text() for name in relays)
                ),
                _START_SECONDS,
            )
            hashed = _output("tor", "--quiet", "--hash-password", self.password).split()[-1]
            client = _CLIENT.format(tunnel=self.tunnel, control=self.control, password=hashed)
            log = self._run("client", client + authority)
            wait_for(lambda: "Bootstrapped 100%" in log.read_text(), _START_SECONDS)
            self._stop = self._running.pop_all().close
        return self

    def __exit__(self, *_: object) -> None:
        self._stop()

    def _make_authority(self, or_port: int, directory_port: int) -> tuple[str, str]:
        """Return the authority's own options, and the line by which all know it."""
        folder = self._folder / "authority"
        keys = folder / "keys"
        keys.mkdir(parents=True, mode=0o700)
        folder.chmod(0o700)
        subprocess.run(
            [
                "tor-gencert",
                "--create-identity-key",
                "--passphrase-fd",
                "0",
                "-m",
                "12",
                "-a",
                f"127.0.0.1:{directory_port}",
                "-c",
                keys / "authority_certificate",
                "-i",
                keys / "authority_identity_key",
                "-s",
                keys / "authority_signing_key",
            ],
            input=b"-\n",
            capture_output=True,
            check=True,
        )
        identity = _found(r"^fingerprint (\w+)$", (keys / "authority_certificate").read_text())
        line = (
            f"DirAuthority authority orport={or_port} no-v2 "
            f"v3ident={identity} 127.0.0.1:{directory_port}"
        )
        options = _AUTHORITY.format(or_port=or_port, directory_port=directory_port)
        torrc = folder / "torrc"
        torrc.write_text(f"{_ALL}{options}DataDirectory {folder}\n{line} {'F' * 40}\n")
        listed = _output(
            "tor",
            "--quiet",
            "--list-fingerprint",
            "--defaults-torrc",
            "/dev/null",
            "-f",
            str(torrc),
        )
        fingerprint = _found(r"^authority ([\w ]+)$", listed).replace(" ", "")
        return options, f"{line} {fingerprint}\n"

    def _run(self, name: str, options: str) -> Path:
        """Start a Tor that ends when this process does; return its log."""
        folder = self._folder / name
        folder.mkdir(mode=0o700, exist_ok=True)
        torrc = folder / "torrc"
        torrc.write_text(f"{_ALL}{options}DataDirectory {folder}\n")
        log = folder / "log"
        own = ["--__OwningControllerProcess", str(os.getpid())]
        with log.open("wb") as file:
            process = subprocess.Popen(
                ["tor", "--defaults-torrc", "/dev/null", "-f", str(torrc), *own], stdout=file
            )
        self._running.callback(process.wait)
        self._running.callback(process.kill)
        return log

    @contextmanager
    def watched(self) -> Iterator["Watch"]:
        """Yield what the client does while the `with` block runs."""
        host, port = self.control.split(":")
        with (
            socket.create_connection((host, int(port))) as control,
            control.makefile("rw", encoding="utf-8", newline="\r\n") as lines,
        ):
            for command in (f'AUTHENTICATE "{self.password}"', "SETEVENTS STREAM"):
                lines.write(f"{command}\n")
                lines.flush()
                assert lines.readline() == "250 OK\r\n"
            watch = Watch()
            thread = threading.Thread(target=watch.read, args=[lines])
            thread.start()
            yield watch
            control.shutdown(socket.SHUT_RDWR)
            thread.join()


class Watch:
    """What a control port says of connections."""

    def __init__(self) -> None:
        self.made: list[tuple[str, str]] = []
        """Credentials and circuit of each connection that was made."""
        self._changed = threading.Condition()

    def wait_for(self, connections: int) -> bool:
        """Return whether so many were made, in a while."""
        with self._changed:
            return self._changed.wait_for(lambda: len(self.made) >= connections, 20)

    def circuits(self, since: int = 0) -> dict[str, set[str]]:
        """Return the circuits by credentials, in the order of their first connection.

        The first `since` connections are left out.
        """
        found: dict[str, set[str]] = {}
        for credentials, circuit in self.made[since:]:
            found.setdefault(credentials, set()).add(circuit)
        return found

    def read(self, lines: Iterable[str]) -> None:
        """Take what the control port writes until it is closed."""
        for line in lines:
            if connected := _CONNECTED.match(line):
                circuit, credentials = connected.groups()
                with self._changed:
                    self.made.append((credentials, circuit))
                    self._changed.notify()


def _port() -> int:
    """Return a free port below those that Linux gives to outgoing connections.

    The relays make many of these at the start.
    """
    while True:
        port = random.randrange(20_000, 32_000)  # noqa: S311 - no secret
        with suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port


def _output(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def _found(pattern: str, text: str) -> str:
    found = re.search(pattern, text, re.MULTILINE)
    assert found is not None, f"no {pattern} in {text!r}"
    return found[1]


@pytest.fixture(scope="session")
def tor_network() -> Iterator[TorNetwork]:
    """Return a network whose client has circuits."""
    with TorNetwork() as network:
        yield network
