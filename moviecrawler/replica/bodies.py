"""Bodies of answers, whose large fixed parts are compressed once.

Compressing a page of 1.4 MB anew costs several milliseconds; nearly all of it is the same for every movie. So the parts of a page are deflate
blocks that end on a byte boundary and refer to nothing before them, which can be joined to one ordinary gzip member.
"""

from __future__ import annotations

import re
import zlib
from dataclasses import dataclass

from isal import isal_zlib

_HEADER = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"
_LAST_BLOCK = b"\x03\x00"
_RAW_DEFLATE = -15
_FIXED_LEVEL, _QUICK_LEVEL = 6, 1
_TAKES_GZIP = re.compile(r"\bgzip\b(?!\s*;\s*q=0(?:\.0*)?\s*(?:,|$))", re.IGNORECASE)


@dataclass(slots=True, frozen=True)
class _Part:
    content: bytes
    deflated: bytes
    crc: int


def _deflated(content: bytes, level: int) -> _Part:
    compressor = zlib.compressobj(level, zlib.DEFLATED, _RAW_DEFLATE)
    deflated = compressor.compress(content) + compressor.flush(zlib.Z_FULL_FLUSH) if content else b""
    return _Part(content, deflated, zlib.crc32(content))


class Body:
    """The body of an answer, encoded as the client asks for it."""

    def __init__(self, *parts: bytes | _Part) -> None:
        self._parts = parts

    def identity(self) -> bytes:
        """Return the body uncompressed."""
        return b"".join(part if isinstance(part, bytes) else part.content for part in self._parts)

    def gzip(self) -> bytes:
        """Return the body as one gzip member."""
        pieces, crc, size = [_HEADER], 0, 0
        for part in self._parts:
            own = _deflated(part, _QUICK_LEVEL) if isinstance(part, bytes) else part
            pieces.append(own.deflated)
            crc = isal_zlib.crc32_combine(crc, own.crc, len(own.content))
            size += len(own.content)
        return b"".join([*pieces, _LAST_BLOCK, crc.to_bytes(4, "little"), (size & 0xFFFFFFFF).to_bytes(4, "little")])

    def encode(self, accept_encoding: str) -> tuple[bytes, str | None]:
        """Return the bytes to send, and their Content-Encoding: gzip where the client takes it."""
        return (self.gzip(), "gzip") if _TAKES_GZIP.search(accept_encoding) else (self.identity(), None)


class Template:
    """A kind of page: fixed parts, between every two of which a page has one part of its own."""

    def __init__(self, *fixed: bytes) -> None:
        self._fixed = [_deflated(part, _FIXED_LEVEL) for part in fixed]

    def fill(self, *own: bytes) -> Body:
        """Return the page with these parts, one fewer than the fixed ones. Raises ValueError for another number."""
        first, *fixed = self._fixed
        return Body(first, *(part for pair in zip(own, fixed, strict=True) for part in pair))
