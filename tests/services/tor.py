"""A Tor network of our own, on this machine only, for the tests marked `tor`: it takes `tor` and `tor-gencert` (Debian: tor)."""

from __future__ import annotations

import os
import random
import re
import secrets
import socket
import subprocess
import tempfile
import threading
import time
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Self

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

_AUTHORITIES = 3
_RELAYS = 3
_START_WITHIN = 120.0  # seconds; it takes about 15
_PORTS = range(20_000, 32_000)
"""Below those that Linux gives to outgoing connections, of which the relays make many before all have started."""

_ALL = """
TestingTorNetwork 1
Address 127.0.0.1
AssumeReachable 1
ShutdownWaitLength 0
DataDirectory {folder}
Log notice file {folder}/log
__OwningControllerProcess {owner}
"""
_AUTHORITY = """
Nickname {name}
ContactInfo nobody@example.invalid
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
ContactInfo nobody@example.invalid
ORPort {or_port}
SocksPort 0
ExitRelay 1
ExitPolicy accept *:*
ExitPolicyRejectPrivate 0
ExitPolicyRejectLocalInterfaces 0
RefuseUnknownExits 0
"""
_CLIENT = """
SocksPort auto
HTTPTunnelPort {tunnel} IsolateSOCKSAuth KeepAliveIsolateSOCKSAuth
ControlPort {control}
HashedControlPassword {hashed_password}
"""


@dataclass(frozen=True, slots=True)
class Client:
    """Where a Tor answers that is no relay: host and port."""

    tunnel: str
    control: str


class TorNetwork:
    """Three authorities, three relays from which connections leave, and a client, while the `with` block runs."""

    client: Client

    def __init__(self) -> None:
        self.password = secrets.token_hex(8)
        """Of the control ports."""
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._ports: set[int] = set()

    def __enter__(self) -> Self:
        self._temporary = tempfile.TemporaryDirectory(prefix="tor-", ignore_cleanup_errors=True)
        self._folder = Path(self._temporary.name)
        try:
            self._start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._processes.values():
            process.kill()
        for process in self._processes.values():
            process.wait()
        self._temporary.cleanup()

    def _start(self) -> None:
        # All of them know all authorities, so these have their keys and ports first.
        authorities = [self._make_authority(f"authority{number}") for number in range(_AUTHORITIES)]
        directories = "".join(line for line, _ in authorities)
        for number, (_, options) in enumerate(authorities):
            self._run(f"authority{number}", directories + options)
        for number in range(_RELAYS):
            self._run(f"relay{number}", directories + _RELAY.format(name=f"relay{number}", or_port=self._port()))
        # A client that asked before there is a consensus would wait longer and longer between its next questions.
        self._wait("authority0", "cached-microdesc-consensus", *(f"r relay{number} " for number in range(_RELAYS)))
        self.client = self._run_client(directories)
        self._wait("client", "log", "Bootstrapped 100%")

    def _run_client(self, directories: str) -> Client:
        client = Client(*(f"127.0.0.1:{self._port()}" for _ in range(2)))
        hashed_password = _output("tor", "--quiet", "--hash-password", self.password).split()[-1]
        self._run("client", directories + _CLIENT.format(**asdict(client), hashed_password=hashed_password))
        return client

    def _make_authority(self, name: str) -> tuple[str, str]:
        """Return the line by which others know an authority, and its own options."""
        folder = self._make_folder(name)
        keys = folder / "keys"
        keys.mkdir(mode=0o700)
        or_port, directory_port = self._port(), self._port()
        subprocess.run(
            [
                *("tor-gencert", "--create-identity-key", "--passphrase-fd", "0", "-m", "12"),
                *("-a", f"127.0.0.1:{directory_port}", "-c", keys / "authority_certificate"),
                *("-i", keys / "authority_identity_key", "-s", keys / "authority_signing_key"),
            ],
            input=b"-\n",
            capture_output=True,
            check=True,
        )
        authority = _found(r"^fingerprint (\w+)$", (keys / "authority_certificate").read_text())
        line = f"DirAuthority {name} orport={or_port} no-v2 v3ident={authority} 127.0.0.1:{directory_port}"
        options = _AUTHORITY.format(name=name, or_port=or_port, directory_port=directory_port)
        torrc = folder / "torrc"
        torrc.write_text(f"{_ALL.format(folder=folder, owner=os.getpid())}{options}{line} {'F' * 40}\n")
        listed = _output("tor", "--quiet", "--list-fingerprint", "--defaults-torrc", "/dev/null", "-f", str(torrc))
        fingerprint = _found(rf"^{name} ([\w ]+)$", listed).replace(" ", "")
        return f"{line} {fingerprint}\n", options

    def _make_folder(self, name: str) -> Path:
        folder = self._folder / name
        folder.mkdir(mode=0o700, exist_ok=True)
        return folder

    def _run(self, name: str, options: str) -> None:
        folder = self._make_folder(name)
        # They end when this process does, in whatever way.
        (folder / "torrc").write_text(_ALL.format(folder=folder, owner=os.getpid()) + options)
        self._processes[name] = subprocess.Popen(
            ["tor", "--defaults-torrc", "/dev/null", "-f", folder / "torrc"], stdout=subprocess.DEVNULL
        )

    def _port(self) -> int:
        while True:
            port = random.choice(_PORTS)  # noqa: S311 - no secret
            if port in self._ports:
                continue
            self._ports.add(port)
            try:
                socket.create_server(("127.0.0.1", port)).close()
            except OSError:
                continue
            return port

    def _wait(self, name: str, file: str, *signs: str) -> None:
        """Wait until a file of one of them has all the signs in it."""
        deadline = time.monotonic() + _START_WITHIN
        while not all(sign in self._read(name, file) for sign in signs):
            ended = [other for other, process in self._processes.items() if process.poll() is not None]
            if ended or time.monotonic() > deadline:
                name = ended[0] if ended else name
                raise RuntimeError(
                    f"the Tor network did not start; {name}'s log ends: {self._read(name, 'log')[-2000:]}"
                )
            time.sleep(0.1)

    def _read(self, name: str, file: str) -> str:
        path = self._folder / name / file
        return path.read_text() if path.exists() else ""

    @contextmanager
    def watched(self) -> Iterator[Watch]:
        """Yield what the client does while the `with` block runs."""
        host, port = self.client.control.split(":")
        with socket.create_connection((host, int(port))) as connection:
            watch = Watch(connection, self.password)
            try:
                yield watch
            finally:
                connection.shutdown(socket.SHUT_RDWR)
                watch.thread.join()


class Watch:
    """What a control port tells of connections and new identities."""

    def __init__(self, connection: socket.socket, password: str) -> None:
        self._lines = connection.makefile(encoding="utf-8")
        connection.sendall(f'AUTHENTICATE "{password}"\r\nSETEVENTS STREAM SIGNAL\r\n'.encode())
        assert [self._lines.readline().strip() for _ in range(2)] == ["250 OK", "250 OK"]
        self.made: list[tuple[str, str]] = []
        """Credentials and circuit of each connection that was made."""
        self.new_identities = 0
        self._changed = threading.Condition()
        self.thread = threading.Thread(target=self._read)
        self.thread.start()

    def wait_for(self, connections: int) -> bool:
        """Return whether so many were made, in a while."""
        with self._changed:
            return self._changed.wait_for(lambda: len(self.made) >= connections, 20)

    def circuits(self, since: int = 0) -> dict[str, set[str]]:
        """Return the circuits by credentials, in the order of their first connection, without the first `since` connections."""
        found: dict[str, set[str]] = {}
        for credentials, circuit in self.made[since:]:
            found.setdefault(credentials, set()).add(circuit)
        return found

    def _read(self) -> None:
        for line in self._lines:
            made = re.match(r'650 STREAM \d+ SUCCEEDED (\d+) .* SOCKS_USERNAME="([^"]*)"', line)
            if made:
                with self._changed:
                    self.made.append((made[2], made[1]))
                    self._changed.notify()
            self.new_identities += line.startswith("650 SIGNAL NEWNYM")


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
