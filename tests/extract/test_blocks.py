import time
from collections.abc import Iterator
from datetime import UTC, datetime
from email.utils import format_datetime
from typing import Literal

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


Headers = dict[str, str] | None


def refused(
    status: int = 200, headers: Headers = None, body: bytes = PAGE, expects: Expected = "page"
) -> Refusal | None:
    return classify(status, headers or {}, body, expects=expects, now=NOW)


def kind(
    status: int = 200, headers: Headers = None, body: bytes = PAGE, expects: Expected = "page"
) -> str | None:
    refusal = refused(status, headers, body, expects)
    return refusal.kind if refusal else None


MOMENT = b"<html><head><title>Just a moment...</title>" + b" " * 30_000
LATER = (
    b"<html><head><title>Just a moment... | Rotten Tomatoes</title></head><body>Just a moment..."
    + b" " * 3000
)
AWS = {"x-amzn-waf-action": "challenge"}
CLOUDFLARE = {"cf-mitigated": "challenge"}


@pytest.mark.parametrize(
    ("statuses", "headers", "body", "expects", "expected"),
    [
        ([200], {}, PAGE, "page", None),
        ([301, 304, 308, 400, 404, 410, 500, 502, 503, 504], {}, b"", "page", None),
        ([202], {}, b"", "page", "challenge"),
        ([202], {}, b"x" * 16_384, "page", "challenge"),
        ([202], {}, b"x" * 16_385, "page", None),  # as large as a page
        ([200, 202, 403, 405], AWS, PAGE, "page", "challenge"),
        ([200, 202], {}, CHALLENGE, "page", "challenge"),
        ([200], {}, CHALLENGE, "json", "challenge"),
        ([200], {}, CHALLENGE, "other", "challenge"),
        ([200], {}, PAGE * 10 + CHALLENGE, "page", None),
        ([200], {}, PAGE + b'{"cookie": "aws-waf-token=0"}', "page", None),
        ([403], CLOUDFLARE, PAGE, "page", "challenge"),
        ([200, 403, 503], {}, MOMENT, "page", "challenge"),
        ([200], {}, LATER, "page", None),
        ([403], {}, PAGE, "page", "refusal"),
        ([503], {"retry-after": "7200"}, PAGE, "page", "rate_limit"),
        ([200], {}, b"x" * (SMALLEST_PAGE - 1), "page", "throttle"),
        ([200], {}, b"x" * SMALLEST_PAGE, "page", None),
        ([200], {}, b"x", "other", None),
        *(([200], {}, body, "json", "throttle") for body in (b"", PAGE, b"  <html>")),
        *(([200], {}, body, "json", None) for body in (b"{}", b'\n  {"data": {}}', b"[]")),
    ],
)
def test_answers_are_told_from_refusals(
    statuses: list[int],
    headers: dict[str, str],
    body: bytes,
    expects: Expected,
    expected: str | None,
) -> None:
    assert [kind(status, headers, body, expects) for status in statuses] == [expected] * len(
        statuses
    )


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


@pytest.mark.parametrize("status", [404, 500, 502, 503])
def test_broken_server_behind_a_vendor_is_no_refusal(status: int) -> None:
    assert kind(status, body=small("<title>502 Bad Gateway</title>", "cloudflare")) is None
    assert (
        kind(
            status,
            body=small("<title>Service Unavailable</title>", "https://errors.edgesuite.net/11.2"),
        )
        is None
    )


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
