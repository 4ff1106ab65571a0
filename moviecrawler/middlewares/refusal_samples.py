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
MAX_SAMPLES = 10
"""Of each site and kind; the oldest are removed."""
MAX_BODY_BYTES = 16 * 1024
_PRIVATE = frozenset({"set-cookie", "proxy-authenticate", "authentication-info"})
_MAX_HEADERS = 60
_MAX_HEADER_CHARS = 500
_KINDS = re.compile(r"[^a-z0-9_-]+")


def keep_sample(
    folder: Path, site: str, kind: str, via: str, response: Response, now: datetime, secrets: Collection[bytes] = ()
) -> None:
    """Write `<site>-<kind>-<time>.txt` to a folder: a line of JSON on the answer, then the beginning of its body.

    It writes to disk, so call it in a thread. A sample that can't be kept is a warning in the log. `secrets` are removed:
    some proxies answer with what they were sent.
    """
    label = _KINDS.sub("-", f"{site}-{kind}".lower())
    # Before anything is cut, as half of a secret would not be found.
    headers = {
        name.decode("latin-1"): _without(values[0], secrets).decode("latin-1")[:_MAX_HEADER_CHARS]
        for name, values in list(response.headers.items())[:_MAX_HEADERS]
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
    body = response.body[: MAX_BODY_BYTES + max(map(len, secrets), default=0)]
    sample = _without(msgspec.json.encode(about), secrets) + b"\n\n" + _without(body, secrets)[:MAX_BODY_BYTES]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{label}-{now:%Y%m%dT%H%M%S}{now.microsecond // 1000:03}.txt"
        path.write_bytes(sample)
        for old in sorted(folder.glob(f"{label}-????????T*.txt"))[:-MAX_SAMPLES]:
            old.unlink(missing_ok=True)
    except OSError as error:
        logger.warning("A sample of a refusal can't be kept in %s: %s", folder, error)


def _without(text: bytes, secrets: Collection[bytes]) -> bytes:
    for secret in secrets:
        text = text.replace(secret, b"[removed]")
    return text
