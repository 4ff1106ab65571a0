"""Removes a proxy's credentials from what it sends back: some proxies return all they were sent.

Nothing after it logs, keeps or stores a password: not the address of a redirect, nor a page.
"""

from __future__ import annotations

import base64
import html
import re
from typing import TYPE_CHECKING
from urllib.parse import quote

from moviecrawler.basics.credentials import without_userinfo

if TYPE_CHECKING:
    from collections.abc import Collection

    from scrapy.http import Response

_REMOVED = b"***"
_MIN_CHARACTERS = 6
_PERCENT_ESCAPE = re.compile(r"%[0-9A-F]{2}")


def redact(response: Response, authorization: bytes | None) -> Response:
    """Return a response without its proxy's credentials, and without any in its Location.

    Args:
        response: What the proxy sent, decompressed.
        authorization: The Proxy-Authorization of the request; None if it had none.
    """
    spellings = _spellings(authorization) if authorization else ()
    headers = {
        name: [_without(value, spellings) for value in values]
        for name, values in dict.items(response.headers)  # unchanged
    }
    if b"Location" in headers:
        headers[b"Location"] = [
            without_userinfo(value.decode("latin-1")).encode("latin-1")
            for value in headers[b"Location"]
        ]
    # What is still encoded is the body of a redirect, or damaged: it is not read.
    body = b"" if b"Content-Encoding" in headers else _without(response.body, spellings)
    if body == response.body and headers == response.headers:
        return response
    return response.replace(headers=headers, body=body)


def _spellings(authorization: bytes) -> list[bytes]:
    """Return the forms of credentials in which a proxy may send them back, the longest first.

    A user or a password that may be a word of a page, such as "casablanca", is looked for only
    together with the other one.
    """
    token = authorization.removeprefix(b"Basic ")
    pair = base64.b64decode(token).decode()
    user, _, password = pair.partition(":")
    secrets = [
        secret
        for secret in (pair, user, password)
        if len(secret) >= _MIN_CHARACTERS and not secret.isalpha()
    ]
    tokens = [token, *(base64.b64encode(secret.encode()) for secret in secrets)]
    spellings: set[str] = set()
    for text in (*secrets, *(token.decode().rstrip("=") for token in tokens)):
        escaped = quote(text, safe="")
        in_lower_case = _PERCENT_ESCAPE.sub(lambda match: match[0].lower(), escaped)
        spellings |= {text, escaped, in_lower_case, quote(text), html.escape(text)}
    return sorted((spelling.encode() for spelling in spellings), key=len, reverse=True)


def _without(text: bytes, spellings: Collection[bytes]) -> bytes:
    for spelling in spellings:
        text = text.replace(spelling, _REMOVED)
    return text
