from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scrapy.http import Response
from scrapy.utils.test import get_crawler

from moviecrawler.frontier.serialisation import Envelope, SerialisationError, decode, encode
from moviecrawler.spiders.imdb import ImdbSpider
from moviecrawler.spiders.metacritic import MetacriticSpider


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


def test_sitemap_that_a_former_version_has_queued_is_read(spider: ImdbSpider) -> None:
    """It is asked for without the name of its list."""
    metacritic = MetacriticSpider.from_crawler(get_crawler(MetacriticSpider, dict(spider.settings)), list="sitemap")
    asked = {"url": "https://www.metacritic.com/movies/1.xml", "site": "metacritic", "callback": "parse_sitemap"}
    queued = envelope(**asked, errback="list_failed", expects="other", cb_kwargs={"later": [], "before": 0})
    request = decode(queued, metacritic)
    body = b"<urlset><url><loc>https://www.metacritic.com/movie/dune/</loc></url></urlset>"
    assert request.callback is not None
    [title] = request.callback(Response(request.url, body=body, request=request), **request.cb_kwargs)
    assert title.cb_kwargs["site_id"] == "movie/dune"


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


def test_headers_and_unknown_meta_do_not_travel(spider: ImdbSpider) -> None:
    headers = dict.fromkeys(("Authorization", "Proxy-Authorization", "Cookie"), "secret")
    request = spider.title_request("tt0000001", None).replace(headers=headers)
    request.meta.update(proxy="http://user:secret@proxy.example:8080", _auth_proxy="secret", cookiejar="secret")
    assert "secret" not in encode(request, 0.0)
    assert not decode(encode(request, 0.0).encode(), spider).headers


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"\x80\x04\x95",
        b"[1]",
        envelope(version=2),
        envelope(callback="__init__"),
        envelope(callback="title_failed"),
        envelope(errback="close"),
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
        envelope(callback="parse_list", errback="list_failed"),
        envelope(callback="parse_list", errback="list_failed", cb_kwargs={"name": {}}),
        envelope(callback="parse_list", errback="list_failed", url="https://example.com/", cb_kwargs={"name": "top"}),
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
