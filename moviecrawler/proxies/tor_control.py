"""Speaking to Tor's control port: how far Tor is, which circuits carry us, and a new identity."""

from __future__ import annotations

import asyncio
import logging
import re
import socket
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

import stem.connection
import stem.response
import stem.socket

from moviecrawler.errors import ConfigurationError
from moviecrawler.proxies.tor_tunnel import STARTING, TorError

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Self

# At its lowest levels it logs all that it sends, the password too.
logging.getLogger("stem").setLevel(logging.WARNING)

NEWNYM_EVERY = 10.0
"""Seconds that Tor lets pass between two new identities; it puts one that is asked for earlier off."""
_REBUILT_WITHIN = 5.0
"""Seconds in which Tor has circuits again after it has dropped all."""
_POLL = 0.2  # seconds
_EVENT = "650"
_Answer = TypeVar("_Answer")
_FORM = "set it to Tor's ControlPort, such as 127.0.0.1:9051, or to the path of its ControlSocket"


@dataclass(frozen=True, slots=True)
class ControlAddress:
    """Where Tor's control port listens: a host and a port, or the path of a socket."""

    host: str = ""
    port: int = 0
    path: str = ""

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read TOR_CONTROL. Raises ConfigurationError."""
        if "@" in text:
            # Not the value itself, which may hold a password.
            raise ConfigurationError(
                "TOR_CONTROL has a user or a password in it; remove them, and put the password into the environment as "
                "TOR_CONTROL_PASSWORD"
            )
        if path := re.fullmatch(r"(?:unix:(?://)?)?(/.+)", text):
            return cls(path=path[1])
        try:
            parts = urlsplit(f"//{text}")
            host, port = parts.hostname or "", parts.port
        except ValueError:
            host, port = "", None
        if not host or not port or parts.netloc != text:
            raise ConfigurationError(f"TOR_CONTROL is {text!r}; {_FORM}")
        return cls(host, port)

    def __str__(self) -> str:
        return self.path or f"{f'[{self.host}]' if ':' in self.host else self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class Circuit:
    """A circuit that has been built."""

    id: str
    """Tor's own number, never used twice while Tor runs."""
    exit: str
    """Fingerprint of the relay from which its connections leave."""
    authorization: bytes
    """The credentials whose connections it carries, as in Proxy-Authorization; empty for nobody's."""


class TorControl:
    """Asks a control port, each time over a connection of its own, in a thread, within a time."""

    def __init__(self, address: ControlAddress, password: str | None, timeout: float) -> None:
        """Take how many seconds Tor has for each answer."""
        self.address = address
        self._password = password
        self._timeout = timeout

    async def bootstrapped(self) -> str | None:
        """Return None when Tor has circuits, else how far it is, such as `45% (Loading relay descriptors)`.

        Raises TorError, like all that follow.
        """
        return await asyncio.to_thread(self._asked, _bootstrapped)

    async def circuits(self) -> list[Circuit]:
        """Return the circuits that there are."""
        return await asyncio.to_thread(self._asked, _circuits)

    async def new_identity(self) -> int:
        """Make Tor drop what circuits it has for new connections, and wait until it has.

        Return how many circuits it has built since, all others than before; 0 when it builds them only once they are asked for.
        It takes up to NEWNYM_EVERY seconds when another process has asked for the same just before.
        """
        return await asyncio.to_thread(self._asked, _new_identity)

    def _asked(self, question: Callable[[_Socket], _Answer]) -> _Answer:
        where = f"TOR_CONTROL {self.address}"
        try:
            with _Socket(self.address, self._timeout) as control:
                self._authenticate(control)
                return question(control)
        except stem.connection.MissingPassword:
            raise TorError(f"{where} asks for a password; set TOR_CONTROL_PASSWORD in the environment") from None
        except stem.connection.IncorrectPassword:
            raise TorError(
                f"{where} refuses the password in TOR_CONTROL_PASSWORD; set it to the one that HashedControlPassword in Tor's "
                "torrc was made from"
            ) from None
        except stem.connection.IncorrectSocketType:
            raise TorError(f"{where} does not speak the protocol of Tor's control port; {_FORM}") from None
        except (stem.connection.CookieAuthFailed, stem.connection.MissingAuthInfo) as error:
            raise TorError(
                f"{where} asks for a cookie: {_line(error)}; let this user read Tor's cookie (CookieAuthFileGroupReadable), or set "
                "HashedControlPassword in its torrc and TOR_CONTROL_PASSWORD in the environment"
            ) from None
        except (
            stem.ControllerError,
            stem.connection.AuthenticationFailure,  # any other: Tor was gone in between
            OSError,
            ValueError,  # stem's, and like the next ours, of an answer that can't be read
            LookupError,
        ) as error:
            raise TorError(f"{where} can't be asked: {_line(error)}", patience=STARTING) from None

    def _authenticate(self, control: _Socket) -> None:
        # stem escapes quotation marks, but not the mark that escapes them.
        password = None if self._password is None else self._password.replace("\\", "\\\\")
        stem.connection.authenticate(control, password=password)


class _Socket(stem.socket.ControlSocket):  # type: ignore[misc]  # stem has no types
    """stem's, with a time-out, and for names and IPv6 too. It has no threads, unlike stem's Controller."""

    def __init__(self, address: ControlAddress, timeout: float) -> None:
        super().__init__()
        self._address = address
        self.timeout = timeout
        self.connect()

    def _make_socket(self) -> socket.socket:
        address = self._address
        try:
            if not address.path:
                self._connection = socket.create_connection((address.host, address.port), self.timeout)
                return self._connection
            self._connection = socket.socket(socket.AF_UNIX)
            self._connection.settimeout(self.timeout)
            self._connection.connect(address.path)
        except OSError as error:
            raise stem.SocketError(error.strerror or str(error)) from None
        return self._connection

    def ask(self, question: str) -> Any:
        """Return the answer to a line; events that come before it are passed over."""
        self.send(question)
        while (answer := self.recv()).content()[0][0] == _EVENT:
            pass
        return answer

    def command(self, line: str) -> None:
        """Do as a line says. Raises stem.OperationFailed."""
        answer = self.ask(line)
        if not answer.is_ok():
            raise stem.OperationFailed(message=f"Tor answers {str(answer)!r} to {line}")

    def wait_for(self, event: str, within: float) -> None:
        """Wait until Tor tells of an event. Raises stem.SocketClosed when the time is over."""
        deadline = time.monotonic() + within
        while True:
            self._connection.settimeout(max(deadline - time.monotonic(), 0.001))
            if str(self.recv()).startswith(event):
                self._connection.settimeout(self.timeout)
                return


def _get_info(control: _Socket, key: str) -> str:
    answer = control.ask(f"GETINFO {key}")
    stem.response.convert("GETINFO", answer)
    value: bytes = answer.entries[key]
    return value.decode()


def _bootstrapped(control: _Socket) -> str | None:
    phase = dict(
        re.findall(r'(PROGRESS|SUMMARY)="?([^"]*?)"?(?= [A-Z]+=|$)', _get_info(control, "status/bootstrap-phase"))
    )
    if phase.get("PROGRESS") == "100":
        return None
    return f"{phase.get('PROGRESS', '?')}% ({phase.get('SUMMARY', 'unknown')})"


def _circuits(control: _Socket) -> list[Circuit]:
    found = []
    for line in _get_info(control, "circuit-status").splitlines():
        event: Any = stem.response.ControlMessage.from_str(f"650 CIRC {line}", "EVENT", normalize=True)
        if event.status == "BUILT" and event.path:
            authorization = (event.socks_username or "").encode()
            found.append(Circuit(event.id, event.path[-1][0], authorization))
    return found


def _new_identity(control: _Socket) -> int:
    before = {circuit.id for circuit in _circuits(control)}
    control.command("SETEVENTS SIGNAL")
    control.command("SIGNAL NEWNYM")
    control.wait_for("SIGNAL NEWNYM", NEWNYM_EVERY + control.timeout)
    control.command("SETEVENTS")
    deadline = time.monotonic() + _REBUILT_WITHIN
    while not (fresh := {circuit.id for circuit in _circuits(control)} - before) and time.monotonic() < deadline:
        time.sleep(_POLL)
    return len(fresh)


def _line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0]
