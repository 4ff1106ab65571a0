"""Reading a page of unknown kind: which site and page it is, then what it says."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from moviecrawler.basics.errors import ExtractionError
from moviecrawler.extract import dig
from moviecrawler.extract.embedded import decode_json, reader, stated_addresses
from moviecrawler.sites import SITES
from moviecrawler.sites.ids import site_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from moviecrawler.items import Page


@reader
def read_page(body: bytes, url: str | None = None) -> Page:
    """Return what a page of any of the sites says.

    It is read by its URL when given, else by what the page itself shows.

    Raises ExtractionError when it is none of theirs, or not in a shape that is known.
    """
    for address in [url] if url else _stated_addresses(body):
        profile = SITES.get(site_of(address) or "")
        path = urlsplit(address).path
        for form in profile.pages if profile else ():
            if profile and re.fullmatch(form.path, path):
                return profile.reader(form.reader)(body, url)
    raise ExtractionError("page", url, "not a page of a title or a list that is known here")


def _stated_addresses(body: bytes) -> Iterator[str]:
    """Yield the addresses that a page names as its own, and that of a list in JSON."""
    is_json = body[:200].lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{")
    if is_json and (address := dig.text(decode_json(body), "links", "self", "href")):
        yield address
    yield from stated_addresses(body)
