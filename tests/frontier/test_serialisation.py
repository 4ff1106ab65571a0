from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moviecrawler.frontier.serialisation import Envelope, SerialisationError, decode, encode
from moviecrawler.spiders.imdb import ImdbSpider


def envelope(**changes: object) -> bytes:
    fields = {
        "callback": "parse_title",
        "url": "https://www.imdb.com/title/tt0000001/",
        "cb_kwargs": {"site_id": "tt0000001", "found": None},
        "expects": "page",
        "depth": 0,
    } | changes
    return msgspec.json.encode([fields[name] for name in Envelope.__struct_fields__])


def test_request_comes_back_as_it_was(spider: ImdbSpider) -> None:
    found = {"list_name": "top", "list_rank": 3, "entry": {"site_id": "tt0000001", "title": "É ☃"}}
    request = spider.title_request("tt0000001", found)
    request.meta["depth"] = 3
    back = decode(encode(request).encode(), spider)
    assert back.to_dict(spider=spider) == request.to_dict(spider=spider)


@pytest.mark.promise("What is queued is checked JSON without secrets, and never code.")
@pytest.mark.promise("No secret is in a log, a queue or a command line.")
@pytest.mark.parametrize(
    "change",
    [
        {"method": "POST"},
        {"body": b"x"},
        {"cookies": {"session": "secret"}},
        {"url": "https://user:secret@www.imdb.com/"},
        {"url": "https://secret@www.imdb.com/"},
        {"callback": None},
        {"errback": None},
        {"cb_kwargs": {"site_id": object()}},
    ],
)
def test_request_that_would_lose_or_tell_something_is_not_queued(
    spider: ImdbSpider, change: dict[str, Any]
) -> None:
    with pytest.raises(SerialisationError) as caught:
        encode(spider.title_request("tt0000001", None).replace(**change))
    assert "secret" not in str(caught.value)


@pytest.mark.promise("What is queued is checked JSON without secrets, and never code.")
def test_headers_and_unknown_meta_do_not_travel(spider: ImdbSpider) -> None:
    headers = dict.fromkeys(("Authorization", "Proxy-Authorization", "Cookie"), "secret")
    request = spider.title_request("tt0000001", None).replace(headers=headers)
    request.meta.update(
        proxy="http://user:secret@proxy.example:8080", _auth_proxy="secret", cookiejar="secret"
    )
    assert "secret" not in encode(request)
    assert not decode(encode(request).encode(), spider).headers


@pytest.mark.promise("What is queued is checked JSON without secrets, and never code.")
@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"\x80\x04\x95",
        b"[1]",
        envelope(callback="__init__"),
        envelope(callback="title_failed"),
        envelope(url="https://example.com/"),
        envelope(url="file:///etc/passwd"),
        envelope(url="https://[/"),
        envelope(url="https://www.imdb.com.example.com/"),
        envelope(cb_kwargs=[]),
        envelope(expects="magic"),
        envelope(cb_kwargs={}),
        envelope(cb_kwargs={"site_id": ["tt0000001"], "found": None}),
        envelope(cb_kwargs={"site_id": "tt0000001\x00", "found": None}),
        envelope(cb_kwargs={"site_id": "tt0000002", "found": None}),
        envelope(cb_kwargs={"site_id": "tt0000001", "found": 5}),
        envelope(
            cb_kwargs={
                "site_id": "tt0000001",
                "found": {"list_name": [], "list_rank": 1, "entry": {}},
            }
        ),
        envelope(cb_kwargs={"site_id": "tt0000001", "found": None, "self": None}),
        envelope(cb_kwargs={"site_id": "tt0000001", "found": None, "due": []}),
        envelope(callback="parse_list"),
        envelope(callback="parse_list", cb_kwargs={"name": {}}),
        envelope(callback="parse_list", url="https://example.com/", cb_kwargs={"name": "top"}),
    ],
)
def test_forged_request_is_refused(spider: ImdbSpider, payload: bytes) -> None:
    with pytest.raises(SerialisationError):
        decode(payload, spider)


@given(payload=st.binary(max_size=300))
@settings(max_examples=200, deadline=None)
def test_rubbish_is_refused(spider: ImdbSpider, payload: bytes) -> None:
    with pytest.raises(SerialisationError):
        decode(payload, spider)
