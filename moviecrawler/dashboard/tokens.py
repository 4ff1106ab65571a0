"""Tokens in forms: only who was given a page may send what is on it, so that no other site's page can do it for him."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

VALID_FOR = 12 * 3600
"""Seconds."""
_ROUNDED = 600
"""Seconds for which the same token is made, so that a page is not another one each time it is asked for."""
_AHEAD = 60
"""Seconds by which nodes' clocks may differ."""


class Tokens:
    """Makes and checks them. `read_secret` returns what all nodes share, None while it can't be had."""

    def __init__(self, read_secret: Callable[[], bytes | None]) -> None:
        self._read_secret = read_secret
        self._secret = secrets.token_bytes(32)

    def make(self, login: bytes, now: float) -> str:
        """Return a token for who has logged in like this."""
        return self._sign(login, int(now) // _ROUNDED * _ROUNDED)

    def check(self, token: str, login: bytes, now: float) -> bool:
        """Return whether it is one that who has logged in like this was given, not long ago."""
        made, _, _ = token.partition(".")
        if not (made.isascii() and made.isdigit() and len(made) < 20):  # noqa: PLR2004 - no time that there is
            return False
        expected = self._sign(login, int(made))
        return hmac.compare_digest(expected.encode(), token.encode()) and -_AHEAD <= now - int(made) <= VALID_FOR

    def _sign(self, login: bytes, made: int) -> str:
        self._secret = self._read_secret() or self._secret
        # The login's digest has a fixed length, so that no two logins and times look the same together.
        message = hashlib.sha256(login).digest() + str(made).encode()
        return f"{made}.{hmac.new(self._secret, message, hashlib.sha256).hexdigest()}"
