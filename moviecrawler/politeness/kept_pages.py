"""Keeps a few refusals and unreadable pages, so that somebody can look at them."""

from __future__ import annotations

import logging
import re
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from scrapy.http import Response

logger = logging.getLogger(__name__)

FOLDER = "kept"
"""Name of the folder in DATA_DIR."""
MAX_PAGES = 20
"""Pages of each site and kind that are kept; the oldest are removed."""
MAX_BODY_BYTES = 4 * 1024 * 1024
_PRIVATE_HEADERS = frozenset({b"set-cookie", b"proxy-authenticate", b"authentication-info"})
_NOT_IN_NAMES = re.compile(r"[^a-z0-9_-]+")


def folder_of(settings: Mapping[str, object]) -> Path:
    """Return the folder of kept pages."""
    return Path(str(settings["DATA_DIR"])) / FOLDER


def keep_page(
    folder: Path,
    site: str,
    kind: str,
    response: Response,
    now: datetime,
    *,
    why: str = "",
    via: str = "",
) -> None:
    """Write `<site>-<kind>-<time>.html` and a `.json` with URL, status and headers.

    `scrapy extract` reads the page. Call this in a thread, as it blocks. An OSError is logged.
    """
    label = _NOT_IN_NAMES.sub("-", f"{site}-{kind}".lower())
    headers = {
        name.decode("latin-1"): values[0].decode("latin-1")
        for name, values in response.headers.items()
        if values and name.lower() not in _PRIVATE_HEADERS
    }
    about = {
        "url": response.url,
        "why": why,
        "status": response.status,
        "via": via,
        "at": now,
        "headers": headers,
    }
    path = folder / f"{label}-{now:%Y%m%dT%H%M%S}{now.microsecond // 1000:03}.html"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        path.write_bytes(response.body[:MAX_BODY_BYTES])
        path.with_suffix(".json").write_bytes(msgspec.json.encode(about))
        for old in sorted(folder.glob(f"{label}-????????T*.html"))[:-MAX_PAGES]:
            old.with_suffix(".json").unlink(missing_ok=True)
            old.unlink(missing_ok=True)
    except OSError as error:
        logger.warning("A page can't be kept in %s: %s", folder, error)
