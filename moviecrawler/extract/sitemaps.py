"""Sitemaps, in which a site lists its pages, as https://www.sitemaps.org/protocol.html describes them."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from io import BytesIO

from lxml import etree

from moviecrawler.extract.embedded import ShapeError, reader

LARGEST = 52_428_800
"""Bytes of XML: the protocol's own limit for one file, of at most 50,000 URLs."""
_GZIP = b"\x1f\x8b"
_GZIP_WINDOW = 31
"""What zlib calls a gzip stream."""


@dataclass(slots=True, frozen=True)
class Location:
    """One entry of a sitemap."""

    url: str
    lastmod: str | None
    """When it changed, as the site writes it (W3C date); None when it doesn't. Not to be relied upon."""


@dataclass(slots=True, frozen=True)
class Sitemap:
    """A sitemap file."""

    locations: list[Location]
    """In the file's order."""
    is_index: bool
    """Whether the locations are further sitemaps, not pages."""


@reader
def read_sitemap(body: bytes, url: str | None = None) -> Sitemap:
    """Read a sitemap or an index of sitemaps, plain or gzip.

    Raises ExtractionError when it is cut, larger than the protocol allows, something else, or declares a document type:
    sitemaps have none, and it is where entities, which are never resolved here, come from.
    """
    del url
    xml = _unpacked(body) if body.startswith(_GZIP) else body
    if len(xml) > LARGEST:
        raise ShapeError("sitemap", f"more than {LARGEST} bytes")
    parsing = etree.iterparse(
        BytesIO(xml), events=("start", "end"), resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False
    )
    locations: list[Location] = []
    root = None
    try:
        for event, element in parsing:
            if root is None:
                root = element
                if _name(root) not in {"urlset", "sitemapindex"} or root.getroottree().docinfo.doctype:
                    raise ShapeError("sitemap", f"<{_name(root)}> is no sitemap")
            elif event == "end" and element.getparent() is root:
                locations.append(_location(element))
                # Without this the tree of the whole file stays in memory.
                root.remove(element)
    except etree.XMLSyntaxError as error:
        raise ShapeError("sitemap", str(error)) from error
    return Sitemap(locations, is_index=_name(root) == "sitemapindex")


def _location(element: etree._Element) -> Location:
    # By local names: some sites declare a namespace of their own making. Children of children are images and videos.
    values = {_name(child): (child.text or "").strip() for child in element}
    address = values.get("loc", "")
    if not address.startswith(("https://", "http://")):
        raise ShapeError("loc", f"{address!r} is not a URL")
    return Location(address, values.get("lastmod") or None)


def _name(element: etree._Element) -> str:
    # The tag of a comment is not a text.
    return element.tag.rpartition("}")[2] if isinstance(element.tag, str) else ""


def _unpacked(body: bytes) -> bytes:
    unpacking = zlib.decompressobj(wbits=_GZIP_WINDOW)
    try:
        xml = unpacking.decompress(body, LARGEST + 1)
    except zlib.error as error:
        raise ShapeError("sitemap", str(error)) from error
    if len(xml) <= LARGEST and not unpacking.eof:
        raise ShapeError("sitemap", "the compressed file was cut")
    return xml
