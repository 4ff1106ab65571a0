"""Keeping a few of the answers by which sites refused us, so that one can look at what they were."""

from __future__ import annotations

import logging
import re
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Collection
    from datetime import datetime
    from pathlib import Path

    from scrapy.http import Response

logger = logging.getLogger(__name__)

FOLDER = "blocked"
"""In DATA_DIR."""
MOST = 10
"""Samples kept of each site and kind; the oldest make room."""
LARGEST = 16 * 1024
"""Bytes of a body that are kept."""
_PRIVATE = frozenset({"set-cookie", "proxy-authenticate", "authentication-info"})
_MOST_HEADERS = 60
_LONGEST_HEADER = 500
_KINDS = re.compile(r"[^a-z0-9_-]+")


def keep_sample(
    folder: Path, site: str, kind: str, via: str, response: Response, now: datetime, secrets: Collection[bytes] = ()
) -> None:
    """Write `<site>-<kind>-<time>.txt` to a folder: a line of JSON on the answer, then the beginning of its body.

    It writes to disk, so call it in a thread. That a sample can't be kept is told and does no harm. `secrets` are blotted
    out: some proxies answer with what they were sent.
    """
    label = _KINDS.sub("-", f"{site}-{kind}".lower())
    # Before anything is cut, as half of a secret would not be found.
    headers = {
        name.decode("latin-1"): _blotted(values[0], secrets).decode("latin-1")[:_LONGEST_HEADER]
        for name, values in list(response.headers.items())[:_MOST_HEADERS]
        if values and name.decode("latin-1").lower() not in _PRIVATE
    }
    about = {
        "url": response.url,
        "status": response.status,
        "via": via,
        "at": now,
        "headers": headers,
        "body_bytes": len(response.body),
    }
    body = response.body[: LARGEST + max(map(len, secrets), default=0)]
    sample = _blotted(msgspec.json.encode(about), secrets) + b"\n\n" + _blotted(body, secrets)[:LARGEST]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{label}-{now:%Y%m%dT%H%M%S}{now.microsecond // 1000:03}.txt"
        path.write_bytes(sample)
        for old in sorted(folder.glob(f"{label}-????????T*.txt"))[:-MOST]:
            old.unlink(missing_ok=True)
    except OSError as error:
        logger.warning("A sample of a refusal can't be kept in %s: %s", folder, error)


def _blotted(text: bytes, secrets: Collection[bytes]) -> bytes:
    for secret in secrets:
        text = text.replace(secret, b"[removed]")
    return text
