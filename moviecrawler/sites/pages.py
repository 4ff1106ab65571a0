"""Reading a page of unknown kind: which site and page it is, then what it says."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from moviecrawler.errors import ExtractionError
from moviecrawler.extract import dig
from moviecrawler.extract.embedded import decode_json, reader, stated_addresses
from moviecrawler.politeness.blocks import block_sign
from moviecrawler.sites.ids import site_of
from moviecrawler.sites.imdb import pages as imdb
from moviecrawler.sites.metacritic import pages as metacritic
from moviecrawler.sites.rottentomatoes import pages as rottentomatoes

if TYPE_CHECKING:
    from collections.abc import Callable

    from moviecrawler.items import Page, Site

_PART = r"(?:/season-\d[^/]*|/specials)(?:/episode-[^/]+)?"
READERS: Final[tuple[tuple[Site, str, Callable[[bytes, str | None], Page]], ...]] = (
    ("imdb", r"(?:/[a-z]{2}(?:-[a-z]{2})?)?/title/tt\d+/?", imdb.title),
    ("imdb", r"(?:/[a-z]{2}(?:-[a-z]{2})?)?/chart/[\w-]+/?", imdb.chart),
    ("metacritic", rf"/(?:movie/[^/]+|tv/[^/]+(?:{_PART})?)/?", metacritic.movie),
    ("metacritic", r"/finder/metacritic/web/?", metacritic.finder),
    (
        "rottentomatoes",
        r"/(?:m/[^/]+|tv/[^/]+(?:/s\d[\d.]*(?:/e\d[\d.]*)?)?)/?",
        rottentomatoes.movie,
    ),
    ("rottentomatoes", r"/browse/.*", rottentomatoes.browse),
    ("rottentomatoes", r"/cnapi/browse/.*", rottentomatoes.browse_json),
)
"""What reads each page that the spiders ask for, by its site and path."""


@reader
def read_page(body: bytes, url: str | None = None) -> Page:
    """Return what a page of any of the sites says.

    It is read by its URL when given, else by what the page itself shows.

    Raises ExtractionError when it is none of theirs, or not in a shape that is known; its field is
    `block` for a block page.
    """
    sign = block_sign(body)
    if sign is not None:
        raise ExtractionError("block", url, f"no page, but a {sign[0]}: {sign[1]}")
    # A page without its address shows a list of its site's JSON, or names itself.
    addresses = [url] if url else [*_addresses_in_json(body), *stated_addresses(body)]
    for address in addresses:
        site = site_of(address)
        for name, path, read in READERS:
            if name == site and re.fullmatch(path, urlsplit(address).path):
                return read(body, url)
    raise ExtractionError("page", url, "not a page of a title or a list that is known here")


def _addresses_in_json(body: bytes) -> list[str]:
    """Return the address of a page's kind, where it is a list in JSON."""
    if not body[:200].lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{"):
        return []
    answer = decode_json(body)
    if isinstance(dig.at(answer, "grid"), dict):
        return ["https://www.rottentomatoes.com/cnapi/browse/"]
    return [address] if (address := dig.text(answer, "links", "self", "href")) else []
