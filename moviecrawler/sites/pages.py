"""Reading a page of unknown kind: which site and page it is, then what it says."""

from moviecrawler.basics.errors import ExtractionError
from moviecrawler.extract.dig import get_text
from moviecrawler.extract.embedded import decode_json, reader, stated_addresses
from moviecrawler.items import Page
from moviecrawler.sites import SITES
from moviecrawler.sites.ids import site_of


def read_page(body: bytes, url: str | None = None) -> Page:
    """Return what a page of any of the sites says.

    It is read by its URL when given, else by what the page itself shows.

    Raises ExtractionError when it is none of theirs, or not in a shape that is known.
    """
    for address in [url] if url else _stated_addresses(body, url):
        site = site_of(address)
        form = SITES[site].form_of(address) if site else None
        if site and form:
            return SITES[site].reader(form.reader)(body, url)
    raise ExtractionError("page", url, "not a page of a title or a list that is known here")


@reader
def _stated_addresses(body: bytes) -> list[str]:
    """Return the addresses that a page names as its own, or that of a list in JSON."""
    if body[:200].lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{"):
        address = get_text(decode_json(body), "links", "self", "href")
        return [address] if address else []
    return list(stated_addresses(body))
