from __future__ import annotations

import gc
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scrapy import FormRequest, Request

from moviecrawler.frontier.serialisation import Envelope, SerialisationError, decode, encode
from moviecrawler.spiders.imdb import ImdbSpider


def envelope(**changes: object) -> bytes:
    fields = {
        "version": 1,
        "url": "https://www.imdb.com/title/tt0000001/",
        "site": "imdb",
        "callback": "parse_title",
        "errback": "title_failed",
        "cb_kwargs": {"site_id": "tt0000001", "found": None},
        "expects": "page",
        "priority": 0,
        "depth": 0,
        "created_at": 0.0,
        "retries": 0,
        "max_retries": None,
        "proxy_pool": None,
    } | changes
    return msgspec.json.encode([fields[name] for name in Envelope.__struct_fields__])


def test_request_comes_back_as_it_was(spider: ImdbSpider) -> None:
    found = {"list_name": "top", "list_rank": 3, "entry": {"site_id": "tt0000001", "title": "É ☃"}}
    request = spider.title_request("tt0000001", found).replace(priority=7)
    request.meta.update(depth=2, retry_times=1, max_retry_times=5, proxy_pool="tor", is_start_request=True)
    back = decode(encode(request, 1.5).encode(), spider)
    del request.meta["is_start_request"]
    assert back.to_dict(spider=spider) == request.to_dict(spider=spider)


@pytest.mark.parametrize(
    "change",
    [
        {"method": "POST"},
        {"body": b"x"},
        {"cookies": {"session": "secret"}},
        {"url": "https://user:secret@www.imdb.com/"},
        {"callback": None},
        {"errback": None},
        {"cb_kwargs": {"site_id": object()}},
    ],
)
def test_request_that_would_lose_or_tell_something_is_not_queued(spider: ImdbSpider, change: dict[str, Any]) -> None:
    with pytest.raises(SerialisationError) as caught:
        encode(spider.title_request("tt0000001", None).replace(**change), 0.0)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("header", ["Authorization", "Proxy-Authorization", "Cookie"])
def test_headers_do_not_travel(spider: ImdbSpider, header: str) -> None:
    request = spider.title_request("tt0000001", None).replace(headers={header: "secret"})
    assert "secret" not in encode(request, 0.0)
    assert not decode(encode(request, 0.0).encode(), spider).headers


def test_unknown_meta_does_not_travel(spider: ImdbSpider) -> None:
    request = spider.title_request("tt0000001", None)
    request.meta.update(proxy="http://user:secret@proxy.example:8080", _auth_proxy="secret", cookiejar="secret")
    assert "secret" not in encode(request, 0.0)


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"{}",
        b"\x80\x04\x95",
        b"[1]",
        envelope(version=2),
        envelope(callback="__init__"),
        envelope(callback="title_failed"),
        envelope(errback="close"),
        envelope(site="example"),
        envelope(site="metacritic"),
        envelope(url="https://example.com/"),
        envelope(url="file:///etc/passwd"),
        envelope(url="https://[/"),
        envelope(url="https://www.imdb.com.example.com/"),
        envelope(cb_kwargs=[]),
        envelope(priority="high"),
        envelope(cb_kwargs={}),
        envelope(cb_kwargs={"site_id": ["tt0000001"], "found": None}),
        envelope(cb_kwargs={"site_id": "tt0000001\x00", "found": None}),
        envelope(cb_kwargs={"site_id": "tt0000002", "found": None}),
        envelope(cb_kwargs={"site_id": "tt0000001", "found": 5}),
        envelope(cb_kwargs={"site_id": "tt0000001", "found": {"list_name": [], "list_rank": 1, "entry": {}}}),
        envelope(cb_kwargs={"site_id": "tt0000001", "found": None, "self": None}),
        envelope(cb_kwargs={"site_id": "tt0000001", "found": None, "due": []}),
        envelope(callback="parse_list"),
        envelope(callback="parse_list", errback="list_failed"),
        envelope(callback="parse_list", errback="list_failed", cb_kwargs={"name": {}}),
    ],
)
def test_forged_request_is_refused(spider: ImdbSpider, payload: bytes) -> None:
    with pytest.raises(SerialisationError):
        decode(payload, spider)


def test_deeply_nested_request_is_refused(spider: ImdbSpider) -> None:
    payload = envelope(cb_kwargs={"deep": 1}).replace(b"1}", b"[" * 5000 + b"]" * 5000 + b"}")
    gc.collect()  # what other tests left can't be finalised at that depth
    with pytest.raises(SerialisationError):
        decode(payload, spider)


@given(payload=st.binary(max_size=300))
@settings(max_examples=200, deadline=None)
def test_rubbish_is_refused(spider: ImdbSpider, payload: bytes) -> None:
    with pytest.raises(SerialisationError):
        decode(payload, spider)


def test_form_is_not_queued() -> None:
    with pytest.raises(SerialisationError):
        encode(FormRequest("https://www.imdb.com/", formdata={"a": "b"}), 0.0)
    with pytest.raises(SerialisationError):
        encode(Request("https://www.imdb.com/"), 0.0)
