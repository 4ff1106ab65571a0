"""What is removed from what a proxy sends back, in whatever form, and what is left as it is."""

import base64
import html
from urllib.parse import quote

import pytest
from scrapy.http import Response
from w3lib.http import basic_auth_header

from moviecrawler.proxies.redaction import redact

URL = "https://www.imdb.com/title/tt0111161/"
USER = "customer-7"
PASSWORD = "pa55/w&rd+of=mine"  # noqa: S105
SENT = basic_auth_header(USER, PASSWORD)
FORMS = {
    "plain": PASSWORD,
    "pair": f"{USER}:{PASSWORD}",
    "header": SENT.decode(),
    "header, percent-encoded": quote(SENT.decode()),
    "percent-encoded": quote(PASSWORD, safe=""),
    "percent-encoded but for slashes": quote(PASSWORD),
    "percent-encoded in lower case": "pa55%2fw%26rd%2bof%3dmine",
    "base64": base64.b64encode(PASSWORD.encode()).decode(),
    "in HTML": html.escape(PASSWORD),
    "user": USER,
}


def header(response: Response, name: str) -> str:
    return (response.headers[name] or b"").decode()


@pytest.mark.promise("Credentials of proxies are seen nowhere.")
@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_credentials_are_removed_in_each_form(form: str) -> None:
    headers = {"X-Echo": form, "Location": f"{URL}?via={form}"}
    sent_back = Response(URL, status=403, headers=headers, body=f"<p>{form}</p>".encode())
    shown = redact(sent_back, SENT)
    text = shown.body.decode() + header(shown, "X-Echo") + header(shown, "Location")
    assert form not in text
    assert not [
        part
        for part in ("customer", "mine", base64.b64encode(b"pa55/w")[:8].decode())
        if part in text
    ]
    assert shown.status == 403
    assert header(shown, "Location") == f"{URL}?via={header(shown, 'X-Echo')}"


@pytest.mark.parametrize(
    ("location", "followed"),
    [
        ("http://user:password@127.0.0.1:8000/title/", "http://127.0.0.1:8000/title/"),
        ("//token@www.imdb.com/title/", "//www.imdb.com/title/"),
        ("https://a:b@c:d@www.imdb.com/", "https://www.imdb.com/"),
        ("https://www.imdb.com/name/@me", "https://www.imdb.com/name/@me"),
        ("/title/tt1/?from=a@b", "/title/tt1/?from=a@b"),
    ],
)
@pytest.mark.parametrize("authorization", [SENT, None])
def test_redirect_leads_to_an_address_without_credentials(
    location: str, followed: str, authorization: bytes | None
) -> None:
    sent_back = Response(URL, status=302, headers={"Location": location})
    assert header(redact(sent_back, authorization), "Location") == followed


@pytest.mark.parametrize(
    ("user", "password", "left"),
    [
        ("movie", "casablanca", "a movie, casablanca, ***"),
        ("movie", "x1y2z", "a movie, x1y2z, ***"),
        ("movie", "x1y2z3", "a movie, ***, ***"),
        ("u", "p", "a u, p, u:p"),
    ],
)
def test_words_of_a_page_are_left_unless_they_stand_together(
    user: str, password: str, left: str
) -> None:
    sent = basic_auth_header(user, password)
    page = Response(URL, headers={"X-Cache": "movie"}, body=b"up, a movie: x1y2z or casablanca")
    assert redact(page, sent) is page
    body = f"a {user}, {password}, {user}:{password}".encode()
    echo = redact(Response(URL, headers={"X-Echo": sent}, body=body), sent)
    assert header(echo, "X-Echo").rstrip("=") == "Basic ***"
    assert echo.body.decode() == left


def test_body_that_is_still_encoded_is_dropped() -> None:
    packed = Response(URL, status=302, headers={"Content-Encoding": "gzip"}, body=b"\x1f\x8b")
    assert redact(packed, SENT).body == b""
