"""Recognises refusals by the status, the headers and a little of the body of a response.

As little of the body as possible is searched, as this runs on every response, and a healthy page is
up to 2 MB: a body is searched only where it is small, or in its first bytes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping

HOUR = 3600
SHORTEST_PAUSE = HOUR
LONGEST_PAUSE = 7 * 24 * HOUR
"""Seconds. The Retry-After of a 429 or 503 is raised or lowered to these bounds."""
USUAL_PAUSE = 24 * HOUR
"""Seconds of pause after any other refusal, and after a 429 without a valid Retry-After."""
THROTTLE_PAUSE = 6 * HOUR
"""Seconds of pause after several unexpected pages in a row."""

SMALLEST_PAGE = 2048
"""Bytes; no page of the sites is smaller."""
_LARGEST_CHALLENGE = 16 * 1024
"""Bytes; a challenge is a script of a few KB."""
_CLOUDFLARE_TITLE = re.compile(rb"<title[^<>]*>\s*Just a moment\.\.\.\s*</title", re.IGNORECASE)
_HEAD = 4096
"""The first bytes, which have the <title> of a Cloudflare challenge."""
_CHALLENGES = {
    # Not `aws-waf-token`: healthy pages of IMDb have it, in headers that they echo.
    b"gokuProps": "the script of an AWS challenge",
    b"awsWafCookieDomainList": "the script of an AWS challenge",
    b"window._cf_chl_opt": "the script of a Cloudflare challenge",
    b"captcha-delivery.com/": "the script of a DataDome challenge",
    b"px-captcha": "the script of a PerimeterX challenge",
    b"_Incapsula_Resource?SWUDNSAI": "the frame of an Imperva challenge",
    b"sec-if-cpt-container": "the script of an Akamai challenge",
    b"/_sec/verify?provider=interstitial": "the script of an Akamai challenge",
    b"/149e9513-01fa-4fb0-aad4-566afd725d1b/": "the script of a Kasada challenge",
}
"""Markers of small bodies that are sent in place of a page, and what they are. The scripts that
these vendors add to healthy pages don't have them."""
_IMPERVA_REFUSAL = b"Incapsula incident ID"
_REFUSAL_TITLE = re.compile(
    rb"<title[^<>]*>\s*(Access Denied|Access to this page has been denied\.?"
    rb"|Attention Required! \| Cloudflare|Access denied \|[^<]*Cloudflare[^<]*"
    rb"|403 Forbidden|Human Verification|Pardon Our Interruption|Request Rejected"
    rb"|You have been blocked|Robot Check|Vercel Security Checkpoint)\s*</title",
    re.IGNORECASE,
)
"""The whole <title> is matched: in the title of a film's page, the name of the site follows."""

_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\s]+")
_LONGEST_SHOWN = 100
_OK = 200
_ACCEPTED = 202
_FORBIDDEN = 403
_TOO_MANY = 429
_UNAVAILABLE = 503


@dataclass(slots=True, frozen=True)
class Refusal:
    """A response by which a site refuses a request."""

    kind: Literal["challenge", "refusal", "rate_limit", "throttle"]
    """`challenge`: a test for browsers. `refusal`: plainly no. `rate_limit`: too many requests.
    `throttle`: something too small or of the wrong kind under status 200, which is a refusal only
    when it happens several times in a row."""
    reason: str
    """The marker by which it was recognised, for a log line."""
    pause_seconds: int = USUAL_PAUSE
    """The pause of the site when this refusal stops its crawl."""


def classify(
    status: int,
    headers: Mapping[str, str],
    body: bytes,
    *,
    expects: Literal["page", "json", "other"],
    now: float,
) -> Refusal | None:
    """Return the refusal that a response is; None for any other response.

    A 404, a redirect or the response of a broken server is a refusal only if its body or its
    headers have a sign of one.

    `headers` have lower-case names. `expects` is what was requested; `other`, such as a sitemap,
    can be of any size. `now` is the time in seconds since 1970, from which a Retry-After that is a
    date is counted.
    """
    retry_after = headers.get("retry-after")
    if status == _TOO_MANY or (status == _UNAVAILABLE and retry_after):
        return Refusal("rate_limit", f"status {status}", _pause(retry_after, now))
    if "x-amzn-waf-action" in headers:
        return Refusal("challenge", f"x-amzn-waf-action: {_shown(headers['x-amzn-waf-action'])}")
    if headers.get("cf-mitigated") == "challenge":
        return Refusal("challenge", "cf-mitigated: challenge")
    if status == _ACCEPTED and len(body) <= _LARGEST_CHALLENGE:
        return Refusal("challenge", f"status 202 with {len(body)} bytes")
    if sign := block_sign(body):
        return sign
    if status == _FORBIDDEN:
        return Refusal("refusal", "status 403")
    if status == _OK and expects == "page" and len(body) < SMALLEST_PAGE:
        return Refusal("throttle", f"a page of {len(body)} bytes", THROTTLE_PAUSE)
    if status == _OK and expects == "json" and not body.lstrip().startswith((b"{", b"[")):
        return Refusal("throttle", "something else where JSON was expected", THROTTLE_PAUSE)
    return None


def block_sign(body: bytes) -> Refusal | None:
    """Return the refusal whose marker a body has; else None.

    The status and the headers are not used.
    """
    if _CLOUDFLARE_TITLE.search(body, 0, _HEAD):
        return Refusal("challenge", 'a page titled "Just a moment..."')
    if len(body) > _LARGEST_CHALLENGE:
        return None
    for marker, reason in _CHALLENGES.items():
        if marker in body:
            return Refusal("challenge", reason)
    if _IMPERVA_REFUSAL in body:
        return Refusal("refusal", "the words of an Imperva refusal")
    if titled := _REFUSAL_TITLE.search(body, 0, _HEAD):
        title = _shown(titled[1].decode(errors="replace"))
        return Refusal("refusal", f'a page titled "{title}"')
    return None


def _shown(text: str) -> str:
    """Return a site's text for a log: one short line, without control characters."""
    return _UNPRINTABLE.sub(" ", text)[:_LONGEST_SHOWN]


def _pause(retry_after: str | None, now: float) -> int:
    """Return a Retry-After in seconds, no less than an hour and no more than a week.

    It is a number of seconds or an HTTP date. A date without a zone is UTC. Without a valid one,
    return the usual pause.
    """
    text = (retry_after or "").strip()
    if text.isascii() and text.isdigit():
        seconds = float(text)
    else:
        try:
            date = parsedate_to_datetime(text)
            seconds = (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp() - now
        except (ValueError, OverflowError):
            return USUAL_PAUSE
    return int(min(max(seconds, SHORTEST_PAUSE), LONGEST_PAUSE))
