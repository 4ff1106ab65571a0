import time
from collections.abc import Iterator
from datetime import UTC, datetime
from email.utils import format_datetime
from typing import Any, Literal

import pytest

from moviecrawler.basics.errors import ExtractionError
from moviecrawler.politeness.blocks import (
    HOUR,
    LONGEST_PAUSE,
    SHORTEST_PAUSE,
    SMALLEST_PAGE,
    THROTTLE_PAUSE,
    USUAL_PAUSE,
    Refusal,
    block_sign,
    classify,
)
from moviecrawler.sites.pages import read_page
from tests import written

NOW = 1_790_000_000.0
PAGE = (
    b"<!doctype html><html><head><title>The Paper Lighthouse</title></head><body>"
    + b"text " * 1000
    + b"</body></html>"
)
CHALLENGE = (
    b"<!DOCTYPE html><html><head><title></title><script>window.awsWafCookieDomainList = [];\n"
    b'window.gokuProps = {"key": "k"};</script></head>'
    b'<body><div id="challenge-container"></div></body></html>'
)
Expected = Literal["page", "json", "other"]


def refused(
    status: int = 200,
    headers: dict[str, str] | None = None,
    body: bytes = PAGE,
    expects: Expected = "page",
) -> Refusal | None:
    return classify(status, headers or {}, body, expects=expects, now=NOW)


def kind(*given: Any, **named: Any) -> str | None:
    refusal = refused(*given, **named)
    return refusal.kind if refusal else None


MOMENT = b"<html><head><title>Just a moment...</title>" + b" " * 30_000
LATER = (
    b"<html><head><title>Just a moment... | Rotten Tomatoes</title></head><body>Just a moment..."
    + b" " * 3000
)


def test_pages_and_errors_of_servers_are_no_refusals() -> None:
    for status in (301, 304, 308, 400, 404, 410, 500, 502, 503, 504):
        assert kind(status, body=b"") is None
    smallest = b"x" * SMALLEST_PAGE
    for body in (PAGE, smallest, LATER, PAGE * 10 + CHALLENGE, PAGE + b'"aws-waf-token=0"'):
        assert kind(body=body) is None
    assert kind(202, body=b"x" * 16_385) is None  # as large as a page
    assert kind(body=b"x", expects="other") is None
    for body in (b"{}", b'\n  {"data": {}}', b"[]"):
        assert kind(body=body, expects="json") is None


def test_a_challenge_is_known_by_its_status_its_headers_or_its_body() -> None:
    for body in (b"", b"x" * 16_384):
        assert kind(202, body=body) == "challenge"
    for status in (200, 202, 403, 405):
        assert kind(status, {"x-amzn-waf-action": "challenge"}) == "challenge"
    assert kind(403, {"cf-mitigated": "challenge"}) == "challenge"
    for status in (200, 202):
        assert kind(status, body=CHALLENGE) == "challenge"
    assert kind(body=CHALLENGE.ljust(16_384)) == "challenge"
    assert kind(body=CHALLENGE.ljust(16_385)) is None  # as large as a page
    for expects in ("json", "other"):
        assert kind(body=CHALLENGE, expects=expects) == "challenge"
    for status in (200, 403, 503):
        assert kind(status, body=MOMENT) == "challenge"


def test_other_refusals_are_known_by_status_and_size() -> None:
    assert kind(403) == "refusal"
    assert kind(503, {"retry-after": "7200"}) == "rate_limit"
    assert kind(body=b"x" * (SMALLEST_PAGE - 1)) == "throttle"
    for body in (b"", PAGE, b"  <html>"):
        assert kind(body=body, expects="json") == "throttle"


def test_a_refusal_says_why_and_for_how_long() -> None:
    assert refused(403) == Refusal("refusal", "status 403", USUAL_PAUSE)
    assert refused(body=b"x" * (SMALLEST_PAGE - 1)) == Refusal(
        "throttle", "a page of 2047 bytes", THROTTLE_PAUSE
    )


DATES = {-3.0: SHORTEST_PAUSE, 0.5: SHORTEST_PAUSE, 5.0: 5 * HOUR, 24 * 8.0: LONGEST_PAUSE}
"""Pauses by the hours after which Retry-After dates end."""
WRONG = ("", "soon", "-5", "Fri, 99 Nov 2026 99:99:99 GMT", "Fri, 20 Nov 99999 10:00:00 GMT", "1/1")
PAUSES: dict[str | None, int] = {
    None: USUAL_PAUSE,
    **dict.fromkeys(WRONG, USUAL_PAUSE),
    **dict.fromkeys(("0", str(HOUR - 1)), SHORTEST_PAUSE),
    **{str(seconds): seconds for seconds in (HOUR, HOUR + 1, LONGEST_PAUSE - 1, LONGEST_PAUSE)},
    **dict.fromkeys((str(LONGEST_PAUSE + 1), "9" * 400), LONGEST_PAUSE),
    **{
        format_datetime(datetime.fromtimestamp(NOW + hours * HOUR, UTC), usegmt=True): pause
        for hours, pause in DATES.items()
    },
    # Without a zone it is UTC, wherever this machine is.
    format_datetime(datetime.fromtimestamp(NOW + 5 * HOUR, UTC)).removesuffix(" +0000"): 5 * HOUR,
}


@pytest.fixture
def _far_away(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Have this machine be in another time zone."""
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "Pacific/Auckland")
        time.tzset()
        yield
    time.tzset()


@pytest.mark.usefixtures("_far_away")
@pytest.mark.parametrize(("retry_after", "pause"), PAUSES.items())
def test_429_pauses_for_retry_after_between_an_hour_and_a_week(
    retry_after: str | None, pause: int
) -> None:
    headers = {} if retry_after is None else {"retry-after": retry_after}
    assert refused(429, headers) == Refusal("rate_limit", "status 429", pause)


def small(head: str | None, body: str | None = None) -> bytes:
    text = (body or "") + "text " * 600
    return f"<!DOCTYPE html><html><head>{head or ''}</head><body>{text}</body></html>".encode()


@pytest.mark.promise("A healthy page is never taken for a block.")
@pytest.mark.parametrize(("stop", "head", "body"), written.rows(__file__, "stops.txt"))
def test_stops_of_other_vendors_are_known_and_what_they_add_to_healthy_pages_is_none(
    stop: str | None, head: str | None, body: str | None
) -> None:
    page = small(head, body)
    assert kind(body=page) == stop
    if stop is not None:
        assert kind(403, body=page) == stop
        sign = block_sign(page)
        assert sign is not None
        assert sign.kind == stop
        assert kind(body=page + b" " * 16_384) is None  # as large as a page


def test_broken_server_behind_a_vendor_is_no_refusal() -> None:
    bad_gateway = small("<title>502 Bad Gateway</title>", "cloudflare")
    away = small("<title>Service Unavailable</title>", "https://errors.edgesuite.net/11.2")
    for status in (404, 500, 502, 503):
        assert kind(status, body=bad_gateway) is kind(status, body=away) is None


@pytest.mark.promise("A block page is never stored as data.")
@pytest.mark.parametrize(
    "site",
    [
        "www.imdb.com/title/tt9100001/",
        "www.metacritic.com/movie/salt/",
        "www.rottentomatoes.com/m/salt",
    ],
)
@pytest.mark.parametrize(
    "title",
    [
        "404 Error - IMDb",
        "Page Not Found",
        "404 Page Not Found - Metacritic",
        "Rotten Tomatoes",
        "Privacy choices",
    ],
)
def test_page_of_an_error_or_of_consent_is_no_title(site: str, title: str) -> None:
    body = small(
        f"<title>{title}</title>",
        "<h1>404</h1><h2>The page was not found.</h2><form><button>Agree</button></form>",
    )
    for url in (None, f"https://{site}"):
        with pytest.raises(ExtractionError):
            read_page(body, url)


def test_what_a_site_says_forges_no_log_lines() -> None:
    title = (
        b"<title>Access denied | \x1b[2J\n2026-11-21 ERROR: forged\xe2\x80\xa8 Cloudflare "
        + b"y" * 3000
        + b"</title>"
    )
    for found in (
        classify(200, {}, title, expects="other", now=NOW),
        classify(
            202, {"x-amzn-waf-action": "\x1b[2J\x9b" + "z" * 9000}, b"", expects="other", now=NOW
        ),
    ):
        assert found is not None
        assert found.reason.isprintable()
        assert len(found.reason) < 200
