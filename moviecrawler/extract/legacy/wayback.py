"""Pages out of the Wayback Machine: as the site served them, without what the archive has put in."""

from __future__ import annotations

import re

_ADDRESS = r"(?:(?:https?:)?(?:\\?/){2}(?:web|wwwb[\w-]*)\.archive\.org)?\\?/web\\?/\d{4,14}(?:[a-z]{2}_)?\\?/(?=https?:|mailto:)"
# As an address is written in an attribute, in a script with escaped slashes, or in a stylesheet.
_WRITTEN = re.compile(rb"(?<![^\s\"'=(])" + _ADDRESS.encode())
_ALONE = re.compile(_ADDRESS)
_TOOLBAR_BEGIN = re.compile(rb"<!--\s*BEGIN WAYBACK TOOLBAR INSERT\s*-->")
_TOOLBAR_END = re.compile(rb"<!--\s*END WAYBACK TOOLBAR INSERT\s*-->")


def original(body: bytes) -> bytes:
    """Return a page with the addresses that it had before an archive rewrote them; every other page as it is."""
    if b"archive.org" not in body:
        return body
    return _WRITTEN.sub(b"", _without_toolbar(body))


def _without_toolbar(body: bytes) -> bytes:
    begin = _TOOLBAR_BEGIN.search(body)
    end = _TOOLBAR_END.search(body, begin.end()) if begin else None
    return body[: begin.start()] + body[end.end() :] if begin and end else body


def original_url(url: str) -> str:
    """Return the address that a page had before it was archived.

    >>> original_url("https://web.archive.org/web/20150612010203id_/http://www.imdb.com/title/tt9100001/")
    'http://www.imdb.com/title/tt9100001/'
    >>> original_url("https://www.imdb.com/title/tt9100001/")
    'https://www.imdb.com/title/tt9100001/'
    """
    found = _ALONE.match(url)
    return url[found.end() :] if found else url
