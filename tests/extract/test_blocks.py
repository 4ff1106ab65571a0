from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Literal

import pytest

from moviecrawler.errors import ExtractionError
from moviecrawler.extract.blocks import (
    HOUR,
    LONGEST_PAUSE,
    SHORTEST_PAUSE,
    SMALLEST_PAGE,
    THROTTLE_PAUSE,
    USUAL_PAUSE,
    Refusal,
    classify,
)
from moviecrawler.extract.pages import read_page

NOW = 1_790_000_000.0
PAGE = (
    b"<!doctype html><html><head><title>The Paper Lighthouse</title></head><body>" + b"text " * 1000 + b"</body></html>"
)
CHALLENGE = b"""<!DOCTYPE html><html><head><title></title><script>window.awsWafCookieDomainList = [];
window.gokuProps = {"key": "k"};</script></head><body><div id="challenge-container"></div></body></html>"""
Expected = Literal["page", "json", "other"]


def told(
    status: int = 200, headers: dict[str, str] | None = None, body: bytes = PAGE, expects: Expected = "page"
) -> Refusal | None:
    return classify(status, headers or {}, body, expects=expects, now=NOW)


def kind(
    status: int = 200, headers: dict[str, str] | None = None, body: bytes = PAGE, expects: Expected = "page"
) -> str | None:
    refusal = told(status, headers, body, expects)
    return refusal.kind if refusal else None


def test_page_is_an_answer() -> None:
    assert kind() is None


@pytest.mark.parametrize("status", [301, 304, 308, 400, 404, 410, 500, 502, 503, 504])
def test_missing_page_redirect_and_broken_server_are_no_refusals(status: int) -> None:
    assert kind(status, body=b"") is None


@pytest.mark.parametrize("body", [b"", CHALLENGE, b"x" * 16_384])
def test_202_of_a_few_kilobytes_is_a_challenge(body: bytes) -> None:
    assert kind(202, body=body) == "challenge"


def test_202_with_a_page_is_an_answer() -> None:
    assert kind(202, body=b"x" * 16_385) is None


@pytest.mark.parametrize("status", [200, 202, 403, 405])
def test_aws_header_is_a_challenge_under_any_status(status: int) -> None:
    assert kind(status, {"x-amzn-waf-action": "challenge"}) == "challenge"


def test_aws_script_is_a_challenge_where_json_or_anything_is_expected_too() -> None:
    expected: tuple[Expected, ...] = ("page", "json", "other")
    assert [kind(body=CHALLENGE, expects=expects) for expects in expected] == ["challenge"] * 3


def test_aws_script_inside_a_large_page_is_not() -> None:
    assert kind(body=PAGE * 10 + CHALLENGE) is None


def test_aws_token_in_a_small_page_is_not() -> None:
    assert kind(body=PAGE + b'{"cookie": "aws-waf-token=0"}') is None


def test_cloudflare_header_is_a_challenge() -> None:
    assert kind(403, {"cf-mitigated": "challenge"}) == "challenge"


@pytest.mark.parametrize("status", [200, 403, 503])
def test_cloudflare_title_is_a_challenge(status: int) -> None:
    assert kind(status, body=b"<html><head><title>Just a moment...</title>" + b" " * 30_000) == "challenge"


def test_cloudflare_words_elsewhere_are_not() -> None:
    body = b"<html><head><title>Just a moment... | Rotten Tomatoes</title></head><body>Just a moment..." + b" " * 3000
    assert kind(body=body) is None


def test_403_is_a_refusal() -> None:
    assert told(403) == Refusal("refusal", "status 403", USUAL_PAUSE)


@pytest.mark.parametrize(
    ("retry_after", "pause"),
    [
        (None, USUAL_PAUSE),
        ("", USUAL_PAUSE),
        ("soon", USUAL_PAUSE),
        ("-5", USUAL_PAUSE),
        ("0", SHORTEST_PAUSE),
        (str(HOUR - 1), SHORTEST_PAUSE),
        (str(HOUR), HOUR),
        (str(HOUR + 1), HOUR + 1),
        (str(LONGEST_PAUSE - 1), LONGEST_PAUSE - 1),
        (str(LONGEST_PAUSE), LONGEST_PAUSE),
        (str(LONGEST_PAUSE + 1), LONGEST_PAUSE),
        ("9" * 400, LONGEST_PAUSE),
    ],
)
def test_429_pauses_for_retry_after_between_an_hour_and_a_week(retry_after: str | None, pause: int) -> None:
    headers = {} if retry_after is None else {"retry-after": retry_after}
    assert told(429, headers) == Refusal("rate_limit", "status 429", pause)


@pytest.mark.parametrize(
    ("hours", "pause"), [(-3, SHORTEST_PAUSE), (0.5, SHORTEST_PAUSE), (5, 5 * HOUR), (24 * 8, LONGEST_PAUSE)]
)
def test_retry_after_can_be_a_date(hours: float, pause: int) -> None:
    date = format_datetime(datetime.fromtimestamp(NOW, UTC) + timedelta(hours=hours), usegmt=True)
    refusal = told(429, {"retry-after": date})
    assert refusal is not None
    assert refusal.pause_seconds == pause


@pytest.mark.parametrize("date", ["Fri, 99 Nov 2026 99:99:99 GMT", "Fri, 20 Nov 99999 10:00:00 GMT", "1/1"])
def test_retry_after_that_is_no_date_is_a_day(date: str) -> None:
    refusal = told(429, {"retry-after": date})
    assert refusal is not None
    assert refusal.pause_seconds == USUAL_PAUSE


def test_503_is_a_rate_limit_only_with_retry_after() -> None:
    assert kind(503, {"retry-after": "7200"}) == "rate_limit"
    assert kind(503) is None


def test_page_below_2_kb_is_a_throttle() -> None:
    assert told(body=b"x" * (SMALLEST_PAGE - 1)) == Refusal("throttle", "a page of 2047 bytes", THROTTLE_PAUSE)
    assert kind(body=b"x" * SMALLEST_PAGE) is None
    assert kind(body=b"x", expects="other") is None


@pytest.mark.parametrize("body", [b"", PAGE, b"  <html>"])
def test_anything_but_json_where_json_is_expected_is_a_throttle(body: bytes) -> None:
    assert kind(body=body, expects="json") == "throttle"


@pytest.mark.parametrize("body", [b"{}", b'\n  {"data": {}}', b"[]"])
def test_json_of_any_size_is_an_answer_where_it_is_expected(body: bytes) -> None:
    assert kind(body=body, expects="json") is None


def test_large_page_costs_microseconds() -> None:
    body = PAGE * 350
    rounds = 200
    start = time.process_time()
    for _ in range(rounds):
        told(body=body)
    assert (time.process_time() - start) / rounds < 100e-6


def small(head: str, body: str = "") -> bytes:
    return f"<!DOCTYPE html><html><head>{head}</head><body>{body}{'text ' * 600}</body></html>".encode()


@pytest.mark.parametrize(
    ("body", "stop"),
    [
        (small("<script>window._cf_chl_opt={cvId:'3'}</script>"), "challenge"),
        (small("<title>Attention Required! | Cloudflare</title>"), "refusal"),
        (small("<title>Access denied | films.example used Cloudflare to restrict access</title>"), "refusal"),
        (small("", '<script src="https://ct.captcha-delivery.com/c.js"></script>'), "challenge"),
        (small("<title>Access to this page has been denied.</title>"), "refusal"),
        (small("", "<div id='px-captcha'></div>"), "challenge"),
        (small("", '<iframe src="/_Incapsula_Resource?SWUDNSAI=31&xinfo=1"></iframe>'), "challenge"),
        (small("", "Request unsuccessful. Incapsula incident ID: 1-2"), "refusal"),
        (small("", '<div id="sec-if-cpt-container"></div>'), "challenge"),
        (small("<meta http-equiv=refresh content=\"5; URL='/_sec/verify?provider=interstitial'\">"), "challenge"),
        (small("<TITLE>\nAccess Denied\n</TITLE>", "https://errors.edgesuite.net/18.1"), "refusal"),
        (small("", '<script src="/149e9513-01fa-4fb0-aad4-566afd725d1b/2d206a39/ips.js"></script>'), "challenge"),
        (small("<title>Human Verification</title>"), "refusal"),
        (small("<title>403 Forbidden</title>"), "refusal"),
    ],
)
def test_stops_of_other_vendors_are_known_by_their_bodies(body: bytes, stop: str) -> None:
    assert [kind(status, body=body) for status in (200, 403)] == [stop] * 2
    with pytest.raises(ExtractionError) as raised:
        read_page(body, "https://www.imdb.com/title/tt9100001/")
    assert raised.value.field == "block"


@pytest.mark.parametrize(
    "body",
    [
        small("", '<script src="/cdn-cgi/challenge-platform/scripts/jsd/main.js"></script>'),
        small("<script>window._pxAppId = 'PX1'</script>"),
        small("", '<script src="https://js.datadome.example/tags.js"></script>'),
        small("", '<script src="/_Incapsula_Resource?SWJIYLWA=719d34d31c8e"></script>'),
        small("<title>Access Denied (2012) - IMDb</title>"),
        small("<title>403 Forbidden | Rotten Tomatoes</title>"),
        small("", '<div id="sec-if-cpt-container"></div>') + b" " * 16_384,
    ],
)
def test_what_vendors_add_to_healthy_pages_is_no_stop(body: bytes) -> None:
    assert kind(body=body) is None


@pytest.mark.parametrize("status", [404, 500, 502, 503])
def test_broken_server_behind_a_vendor_is_no_refusal(status: int) -> None:
    assert kind(status, body=small("<title>502 Bad Gateway</title>", "cloudflare")) is None
    assert kind(status, body=small("<title>Service Unavailable</title>", "https://errors.edgesuite.net/11.2")) is None


@pytest.mark.parametrize(
    "site", ["www.imdb.com/title/tt9100001/", "www.metacritic.com/movie/salt/", "www.rottentomatoes.com/m/salt"]
)
@pytest.mark.parametrize(
    "title",
    ["404 Error - IMDb", "Page Not Found", "404 Page Not Found - Metacritic", "Rotten Tomatoes", "Privacy choices"],
)
def test_page_of_an_error_or_of_consent_is_no_title(site: str, title: str) -> None:
    body = small(
        f"<title>{title}</title>", "<h1>404</h1><h2>The page was not found.</h2><form><button>Agree</button></form>"
    )
    for url in (None, f"https://{site}"):
        with pytest.raises(ExtractionError):
            read_page(body, url)


def test_what_a_site_says_forges_no_log_lines() -> None:
    title = (
        b"<title>Access denied | \x1b[2J\n2026-11-21 ERROR: forged\xe2\x80\xa8 Cloudflare " + b"y" * 3000 + b"</title>"
    )
    for found in (
        classify(200, {}, title, expects="other", now=NOW),
        classify(202, {"x-amzn-waf-action": "\x1b[2J\x9b" + "z" * 9000}, b"", expects="other", now=NOW),
    ):
        assert found is not None
        assert found.reason.isprintable()
        assert len(found.reason) < 200
