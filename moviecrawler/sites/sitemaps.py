"""Reads sitemaps, as https://www.sitemaps.org/protocol.html describes them.

They are read as a stream: no tree is built, and nothing is kept but addresses.
"""

import zlib
from gzip import GzipFile
from io import BytesIO
from typing import NamedTuple

from lxml import etree

from moviecrawler.extract.embedded import reader
from moviecrawler.extract.findings import ShapeError

LARGEST = 52_428_800
"""Bytes of XML: the protocol's own limit for one file."""
MOST_LOCATIONS = 50_000
"""Addresses in one file: the protocol's own limit, too."""
LONGEST_ADDRESS = 2048
"""Characters of one address, as the protocol has it."""
_BLOCK = 65_536
_DEPTH = 3
"""The depth of the addresses of entries; those of images are deeper."""
_DEEPEST = 20
_GZIP = b"\x1f\x8b"


class Sitemap(NamedTuple):
    """A sitemap file."""

    urls: list[str]
    """In the file's order, up to MOST_LOCATIONS; an entry without an address, or with something
    else in its place, is left out."""
    is_index: bool
    """Whether the URLs are further sitemaps, not pages."""
    is_cut: bool = False
    """Whether the file has more than MOST_LOCATIONS."""


@reader
def read_sitemap(body: bytes) -> Sitemap:
    """Read a sitemap or an index of sitemaps, plain or gzip.

    Raises ExtractionError when it is cut, larger than the protocol allows, something else, or
    declares a document type: sitemaps have none, and it is where entities, which are never resolved
    here, come from.
    """
    addresses = _Addresses()
    size = 0
    parser = etree.XMLParser(
        target=addresses, resolve_entities=False, no_network=True, remove_comments=True
    )
    try:
        # Templates leave line breaks before the XML declaration, where XML allows none.
        file = GzipFile(fileobj=BytesIO(body)) if body[:2] == _GZIP else BytesIO(body.lstrip())
        while block := file.read(_BLOCK):
            size += len(block)
            if size > LARGEST or (len(block) == _BLOCK and block.isspace()):
                raise ShapeError(
                    "sitemap", f"more than {LARGEST} bytes, or {_BLOCK} of white space"
                )
            parser.feed(block)
        parser.close()
    except (etree.XMLSyntaxError, OSError, EOFError, zlib.error) as error:
        raise ShapeError("sitemap", str(error)) from error
    urls = addresses.urls
    return Sitemap(
        urls[:MOST_LOCATIONS], is_index=addresses.is_index, is_cut=len(urls) > MOST_LOCATIONS
    )


class _Addresses:
    """The addresses of a sitemap's entries: `<urlset><url><loc>`, and nothing deeper.

    Its methods are those that lxml's parser calls.
    """

    def __init__(self) -> None:
        self.urls: list[str] = []
        self.is_index = False
        self._path: list[str] = []
        self._text = ""  # of the element that is being read

    def doctype(self, *_: object) -> None:
        raise ShapeError("sitemap", "it declares a document type, which sitemaps don't have")

    def start(self, tag: str, _: object) -> None:
        # By local names: some sites declare a namespace of their own making.
        self._path.append(tag.rpartition("}")[2])
        self._text = ""
        if len(self._path) > _DEEPEST:
            raise ShapeError("sitemap", f"more than {_DEEPEST} elements inside of each other")
        if len(self._path) == 1:
            self.is_index = self._path == ["sitemapindex"]
            if self._path not in (["urlset"], ["sitemapindex"]):
                raise ShapeError("sitemap", f"<{self._path[0]:.40}> is not a sitemap")

    def data(self, text: str) -> None:
        # An address may have white space around it.
        if self._is_address() and len(self._text) <= 2 * LONGEST_ADDRESS:
            self._text += text

    def end(self, _: str) -> None:
        if self._is_address() and len(self.urls) <= MOST_LOCATIONS:
            address = self._text.strip()
            if address.startswith(("https://", "http://")) and len(address) <= LONGEST_ADDRESS:
                self.urls.append(address)
        self._path.pop()

    def close(self) -> None:
        """Nothing is returned."""

    def _is_address(self) -> bool:
        return len(self._path) == _DEPTH and self._path[-1] == "loc"
