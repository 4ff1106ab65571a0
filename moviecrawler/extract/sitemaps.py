"""Sitemaps, in which a site lists its pages, as https://www.sitemaps.org/protocol.html describes them.

They are read as a stream: no tree is built, and nothing is kept but addresses.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING
from xml.parsers import expat

from moviecrawler.extract.embedded import reader
from moviecrawler.extract.findings import ShapeError

if TYPE_CHECKING:
    from collections.abc import Iterator

LARGEST = 52_428_800
"""Bytes of XML: the protocol's own limit for one file."""
MOST_LOCATIONS = 50_000
"""Addresses in one file: the protocol's own limit, too."""
LONGEST_ADDRESS = 2048
"""Characters of one address, as the protocol has it."""
_BLOCK = 65_536
_LONGEST_TAG = 4 * _BLOCK
"""Bytes of a tag or a comment, which stand in memory as a whole."""
_MOST_ELEMENTS = 1_000_000
"""Also comments; 20 for each entry. Only the images of pages could be more."""
_DEEPEST = 20
_GZIP = b"\x1f\x8b"
_GZIP_WINDOW = 31
"""What zlib calls a gzip stream."""


@dataclass(slots=True, frozen=True)
class Sitemap:
    """A sitemap file."""

    urls: list[str]
    """In the file's order, up to MOST_LOCATIONS."""
    is_index: bool
    """Whether the URLs are further sitemaps, not pages."""
    is_cut: bool = False
    """Whether the file goes on after that."""


@reader
def read_sitemap(body: bytes, url: str | None = None) -> Sitemap:
    """Read a sitemap or an index of sitemaps, plain or gzip.

    Raises ExtractionError when it is cut, larger than the protocol allows, something else, or declares a document type:
    sitemaps have none, and it is where entities, which are never resolved here, come from.
    """
    del url
    reading = _Reading()
    size = 0
    try:
        # Templates leave line breaks before the XML declaration, where XML allows none.
        for block in _unpacked(body) if body.startswith(_GZIP) else _plain(body.lstrip()):
            size += len(block)
            if size > LARGEST:
                raise ShapeError("sitemap", f"more than {LARGEST} bytes")
            reading.feed(block)
        reading.feed(b"", is_last=True)
    except expat.ExpatError as error:
        raise ShapeError("sitemap", str(error)) from error
    except _EnoughError:
        return Sitemap(reading.urls, is_index=reading.is_index, is_cut=True)
    return Sitemap(reading.urls, is_index=reading.is_index)


class _EnoughError(Exception):
    """As many locations are read as a file may have."""


class _Reading:
    """What was read of a sitemap so far."""

    def __init__(self) -> None:
        self.urls: list[str] = []
        self.is_index = False
        self._depth = 0
        self._url = ""  # of the entry that is being read
        self._text: str | None = None  # of its element `loc`
        self._elements = 0
        self._unhandled = 0  # bytes since something was last told
        self._parser = expat.ParserCreate()
        self._parser.buffer_text = True
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.CharacterDataHandler = self._characters
        self._parser.CommentHandler = self._parser.ProcessingInstructionHandler = self._passed_by
        self._parser.StartDoctypeDeclHandler = self._doctype

    def feed(self, block: bytes, *, is_last: bool = False) -> None:
        """Read on. Raises ShapeError, ExpatError and _EnoughError."""
        self._unhandled += len(block)
        self._parser.Parse(block, is_last)
        if self._unhandled > _LONGEST_TAG:
            raise ShapeError("sitemap", f"more than {_LONGEST_TAG} bytes that are no element")

    # By local names: some sites declare a namespace of their own making. Children of children are images and videos.

    def _start(self, name: str, _: dict[str, str]) -> None:
        self._passed_by()
        self._depth += 1
        name = _local(name)
        if self._depth == 1:
            self.is_index = name == "sitemapindex"
            if not self.is_index and name != "urlset":
                raise ShapeError("sitemap", f"<{name:.40}> is no sitemap")
        elif self._depth == _ENTRY:
            if len(self.urls) == MOST_LOCATIONS:
                raise _EnoughError
            self._url = ""
        elif self._depth > _DEEPEST:
            raise ShapeError("sitemap", f"more than {_DEEPEST} elements inside of each other")
        self._text = "" if self._depth == _ENTRY + 1 and name == "loc" else None

    def _end(self, _: str) -> None:
        self._unhandled = 0
        if self._text is not None:
            self._url = self._text.strip()
            self._text = None
        elif self._depth == _ENTRY:
            self.urls.append(_checked(self._url))
        self._depth -= 1

    def _characters(self, text: str) -> None:
        self._unhandled = 0
        if self._text is not None:
            self._text += text
            if len(self._text) > 2 * LONGEST_ADDRESS:  # with white space around it
                raise ShapeError("loc", f"{self._text[:100]!r}… has more than {LONGEST_ADDRESS:,} characters")

    def _passed_by(self, *_: str) -> None:
        self._unhandled = 0
        self._elements += 1
        if self._elements > _MOST_ELEMENTS:
            raise ShapeError("sitemap", f"more than {_MOST_ELEMENTS:,} elements")

    def _doctype(self, *_: object) -> None:
        raise ShapeError("sitemap", "it declares a document type, which sitemaps don't have")


_ENTRY = 2
"""How deep the entries stand."""


def _checked(address: str) -> str:
    if not address.startswith(("https://", "http://")):
        raise ShapeError("loc", f"{address!r} is not a URL")
    if len(address) > LONGEST_ADDRESS:
        raise ShapeError("loc", f"{address[:100]!r}… has more than {LONGEST_ADDRESS:,} characters")
    return address


def _local(name: str) -> str:
    return name.rpartition(":")[2]


def _plain(body: bytes) -> Iterator[bytes]:
    for at in range(0, len(body), _BLOCK):
        yield body[at : at + _BLOCK]


def _unpacked(body: bytes) -> Iterator[bytes]:
    unpacking = zlib.decompressobj(wbits=_GZIP_WINDOW)
    try:
        for packed in _plain(body):
            yield unpacking.decompress(packed, _BLOCK)
            while unpacking.unconsumed_tail:
                yield unpacking.decompress(unpacking.unconsumed_tail, _BLOCK)
            if unpacking.eof:
                return
    except zlib.error as error:
        raise ShapeError("sitemap", str(error)) from error
    raise ShapeError("sitemap", "the compressed file was cut")
