"""Bodies of answers, and the bulk with which generated pages are as large as the sites' own.

Nearly all of a page of 1.3 MB is the same for every title, and compressing it anew would cost several milliseconds. So the bulk
is compressed once, to deflate blocks that end on a byte boundary and refer to nothing before them, which can be joined to one
ordinary gzip member.
"""

from __future__ import annotations

import functools
import re
import zlib
from typing import Any, Final, Literal, NamedTuple

import msgspec
from isal import isal_zlib

from moviecrawler.replica.words import WORDS, Dice

encode = msgspec.json.Encoder().encode
"""Returns JSON."""

_HEADER, _LAST_BLOCK = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff", b"\x03\x00"
_RAW_DEFLATE = -15
_TAKES_GZIP = re.compile(r"\bgzip\b(?!\s*;\s*q=0(?:\.0*)?\s*(?:,|$))", re.IGNORECASE)

# The fields: four words, a hash, a number and a sentence.
_FORMS: Final = {
    "markup": '<div class="sc-{hash} ipc-{0}__{1}" data-testid="{1}-{2}"><a href="/{3}/{0}/?ref_={1}_{number}"><span>{text}</span></a>'
    '<svg width="24" height="24"><path d="M{number}.5 12.{number} z"></path></svg></div>\n',
    "script": 'window.{0}=window.{1}||function({2}){{return"{3}{hash}"}};',
    "json": ',"common_{0}_{1}_{hash}":"{text}"',
    "texts": ',"{text}"',
}
_LIGHT: Final = {"markup": 2_100, "script": 100, "json": 300, "texts": 300}
"""Bytes of the bulk on light pages: below 2 kB a page would pass for a throttle, also a list without titles."""


class Bulk(NamedTuple):
    """A part of a page that says nothing of titles."""

    form: Literal["markup", "script", "json", "texts"]
    size: int
    """In bytes, about."""


class _Part(NamedTuple):
    content: bytes
    deflated: bytes
    crc: int


class Body:
    """The body of an answer, encoded as the client asks for it."""

    def __init__(self, *parts: bytes | Bulk) -> None:
        self._parts = parts

    def identity(self, *, light: bool = False) -> bytes:
        """Return the body uncompressed."""
        return b"".join(_part_of(part, light).content if isinstance(part, Bulk) else part for part in self._parts)

    def encode(self, accept_encoding: str, *, light: bool) -> tuple[bytes, str | None]:
        """Return the bytes to send, and their Content-Encoding: gzip where the client takes it."""
        if not _TAKES_GZIP.search(accept_encoding):
            return self.identity(light=light), None
        pieces, crc, size = [_HEADER], 0, 0
        for part in self._parts:
            one = _part_of(part, light) if isinstance(part, Bulk) else _deflated(part, 1)
            pieces.append(one.deflated)
            crc, size = isal_zlib.crc32_combine(crc, one.crc, len(one.content)), size + len(one.content)
        ending = [_LAST_BLOCK, crc.to_bytes(4, "little"), (size & 0xFFFFFFFF).to_bytes(4, "little")]
        return b"".join([*pieces, *ending]), "gzip"


def _deflated(content: bytes, level: int) -> _Part:
    compressor = zlib.compressobj(level, zlib.DEFLATED, _RAW_DEFLATE)
    return _Part(content, compressor.compress(content) + compressor.flush(zlib.Z_FULL_FLUSH), zlib.crc32(content))


@functools.cache
def _part_of(bulk: Bulk, light: bool) -> _Part:
    wanted = _LIGHT[bulk.form] if light else bulk.size
    dice, pieces, size = Dice(bulk), list[str](), 0
    while size < wanted:
        words = dice.choices(WORDS["filler"], k=12)
        fields = {"hash": f"{dice.getrandbits(32):08x}", "number": dice.below(24), "text": " ".join(words[4:])}
        pieces.append(_FORMS[bulk.form].format(*words, **fields))
        size += len(pieces[-1])
    return _deflated("".join(pieces).encode(), 6)


# --- What pages are made of -------------------------------------------------------------------------------------------


def json_script(attributes: str, data: Any) -> bytes:
    """Return a `<script>` that holds JSON."""
    return f"<script {attributes}>".encode() + encode(data) + b"</script>"


def rating_json_ld(worst: float | str, best: float | str, value: float | str, **others: Any) -> dict[str, Any]:
    """Return what JSON-LD says of a score, in the way of schema.org."""
    return {"@type": "AggregateRating", "bestRating": best, "worstRating": worst, "ratingValue": value, **others}
