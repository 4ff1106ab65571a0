"""Pages put together from parts that were compressed beforehand and parts that are compressed on the way out.

Compressing a page of 1.4 MB anew costs 30 ms; nearly all of it is the same for every movie. So the fixed parts of a
kind of page are compressed once, each ending on a byte boundary, and a page is their deflate blocks with those of the
movie's own parts between them: one ordinary gzip member.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

import brotli

if TYPE_CHECKING:
    from collections.abc import Sequence

_HEADER = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"
_LAST_BLOCK = b"\x03\x00"
_POLYNOMIAL = 0xEDB88320
_ONE = 0x80000000
_X = 0x40000000
_RAW_DEFLATE = -15
_FIXED_LEVEL, _QUICK_LEVEL = 6, 1
_BROTLI_QUALITY = 4
_SMALL = 64 * 1024
"""Up to this many bytes Brotli is quick enough to compress every answer."""


class Template:
    """A kind of page: fixed parts, between every two of which a page has one part of its own."""

    def __init__(self, *fixed: bytes) -> None:
        self._fixed = [_FixedPart.of(part) for part in fixed]

    def fill(self, *own: bytes) -> Body:
        """Return the page with these parts, one fewer than the fixed ones."""
        if len(own) != len(self._fixed) - 1:
            raise ValueError(f"{len(own)} parts for {len(self._fixed) - 1} places")
        return Body(self._fixed, own)


class Body:
    """The body of an answer, encoded as the client asks for it."""

    def __init__(self, fixed: Sequence[_FixedPart], own: Sequence[bytes]) -> None:
        self._fixed = fixed
        self._own = own

    @classmethod
    def plain(cls, content: bytes) -> Body:
        """Return a body without any prepared part."""
        return cls([_EMPTY, _EMPTY], [content])

    def identity(self) -> bytes:
        """Return the body uncompressed."""
        parts = [self._fixed[0].content]
        for own, fixed in zip(self._own, self._fixed[1:], strict=True):
            parts += own, fixed.content
        return b"".join(parts)

    def gzip(self) -> bytes:
        """Return the body as one gzip member."""
        first = self._fixed[0]
        parts, crc, size = [_HEADER, first.deflated], first.crc, len(first.content)
        for own, fixed in zip(self._own, self._fixed[1:], strict=True):
            parts += _deflate(own, _QUICK_LEVEL), fixed.deflated
            crc = _multiply(fixed.shift, zlib.crc32(own, crc)) ^ fixed.crc
            size += len(own) + len(fixed.content)
        parts += _LAST_BLOCK, crc.to_bytes(4, "little"), (size & 0xFFFFFFFF).to_bytes(4, "little")
        return b"".join(parts)

    def encode(self, accept_encoding: str) -> tuple[bytes, str | None]:
        """Return the bytes to send, and their Content-Encoding if any.

        Brotli is preferred for small bodies; a big one is sent as gzip unless the client takes Brotli alone, as its
        streams can't be put together from parts.
        """
        accepted = _accepted(accept_encoding)
        size = sum(len(part.content) for part in self._fixed) + sum(map(len, self._own))
        if "br" in accepted and ("gzip" not in accepted or size <= _SMALL):
            return brotli.compress(self.identity(), quality=_BROTLI_QUALITY if size <= _SMALL else 1), "br"
        if "gzip" in accepted:
            return self.gzip(), "gzip"
        return self.identity(), None


@dataclass(slots=True, frozen=True)
class _FixedPart:
    content: bytes
    deflated: bytes
    crc: int
    shift: int
    """What a checksum is multiplied by when this part follows: x^(8 · length) modulo CRC-32's polynomial."""

    @classmethod
    def of(cls, content: bytes) -> _FixedPart:
        return cls(content, _deflate(content, _FIXED_LEVEL), zlib.crc32(content), _power_of_x(8 * len(content)))


def _deflate(content: bytes, level: int) -> bytes:
    if not content:
        return b""
    # A full flush ends on a byte, and what follows refers to nothing before it, so that any parts can be joined.
    compressor = zlib.compressobj(level, zlib.DEFLATED, _RAW_DEFLATE)
    return compressor.compress(content) + compressor.flush(zlib.Z_FULL_FLUSH)


def _multiply(a: int, b: int) -> int:
    """Return the product of two polynomials over GF(2) modulo CRC-32's, lowest power in the highest bit."""
    product = 0
    for bit in range(31, -1, -1):
        if a >> bit & 1:
            product ^= b
        b = b >> 1 ^ (_POLYNOMIAL if b & 1 else 0)
    return product


def _power_of_x(exponent: int) -> int:
    result, square = _ONE, _X
    while exponent:
        if exponent & 1:
            result = _multiply(result, square)
        square = _multiply(square, square)
        exponent >>= 1
    return result


def _accepted(accept_encoding: str) -> set[str]:
    """Return the codings that an Accept-Encoding header allows."""
    accepted = set()
    for item in accept_encoding.lower().split(","):
        coding, _, parameters = item.partition(";")
        if parameters.replace(" ", "") not in {"q=0", "q=0.0", "q=0.00", "q=0.000"}:
            accepted.add(coding.strip())
    return accepted


_EMPTY = _FixedPart.of(b"")
