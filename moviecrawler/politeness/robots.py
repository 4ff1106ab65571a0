"""Reads robots.txt, in whatever form a host sends it: one way for pages and for files."""

from __future__ import annotations

import codecs

MAX_BYTES = 500 * 1024
"""Bytes of a robots.txt that are read, by RFC 9309, 2.5. To parse 64 MB would take 10 s."""
_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
"""Byte order marks, and the encodings that leave them out of the text."""


def read_rules(body: bytes) -> str:
    r"""Return the text of a robots.txt, without a byte order mark.

    Of a longer one, only the whole lines within MAX_BYTES count. Bytes that are not text of its
    encoding are replaced. It is UTF-8, or UTF-16 with a byte order mark or an ASCII character at
    the beginning.

    >>> read_rules(b"\xef\xbb\xbfUser-agent: *\nDisallow: /\n")
    'User-agent: *\nDisallow: /\n'
    >>> read_rules("User-agent: *".encode("utf-16-le"))
    'User-agent: *'
    """
    text = body[:MAX_BYTES].decode(_encoding_of(body), errors="replace")
    if len(body) <= MAX_BYTES:
        return text
    return text[: max(text.rfind("\n"), text.rfind("\r")) + 1]


def _encoding_of(body: bytes) -> str:
    for mark, encoding in _MARKS:
        if body.startswith(mark):
            return encoding
    if body[1:2] == b"\0":
        return "utf-16-le"
    return "utf-16-be" if body[:1] == b"\0" else "utf-8"
