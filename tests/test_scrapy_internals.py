"""What is private of Scrapy and Scrapyd, and used, is as it was read."""

import asyncio
import inspect
from typing import Any
from unittest.mock import Mock

import pytest
from scrapy import Spider
from scrapy.core.downloader.handlers.http11 import TunnelError, _TunnelingTCP4ClientEndpoint
from scrapy.core.engine import ExecutionEngine, _Slot
from scrapy.crawler import AsyncCrawlerRunner, Crawler
from scrapy.downloadermiddlewares.httpcompression import HttpCompressionMiddleware
from scrapy.downloadermiddlewares.httpproxy import HttpProxyMiddleware
from scrapy.exceptions import IgnoreRequest
from scrapy.extensions.memusage import MemoryUsage
from scrapy.http import Request, Response
from scrapy.utils.test import get_crawler

from moviecrawler.scrapy_internals import (
    PROXY_META,
    DecodingMiddleware,
    end_crawl,
    measure_own_memory,
    too_large,
    tunnel_status,
)


def _parameters(function: Any) -> list[str]:
    return list(inspect.signature(function).parameters)


def test_engines_slot_has_what_the_scheduler_uses() -> None:
    source = inspect.getsource(ExecutionEngine)
    assert "self._slot = _Slot(" in source
    assert "self._slot.remove_request(request)" in source
    assert _parameters(_Slot.remove_request) == ["self", "request"]
    assert {"inprogress", "closing", "nextcall"} <= set(_Slot.__init__.__code__.co_names)
    assert _parameters(_Slot._maybe_fire_closing) == ["self"]


async def test_a_crawl_that_is_about_to_close_keeps_the_first_cause_of_its_end() -> None:
    crawler = get_crawler(Spider)
    assert crawler.stats is not None
    crawler.engine = Mock(spec=ExecutionEngine, spider=None)
    for cause in ("30 pages can't be read", "31 pages can't be read"):
        end_crawl(crawler, "pages_changed", cause)
    await asyncio.sleep(0)
    assert crawler.stats.get_value("crawl/cause") == "30 pages can't be read"
    crawler.engine.close_spider_async.assert_awaited_once_with(reason="pages_changed")


def test_scrapy_ends_a_crawl_by_the_crawlers_stop() -> None:
    assert inspect.iscoroutinefunction(Crawler.stop_async)
    assert "c.stop_async()" in inspect.getsource(AsyncCrawlerRunner.stop)


def test_memory_is_asked_for_by_the_replaced_method(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "self.get_virtual_size()" in inspect.getsource(MemoryUsage.update)
    monkeypatch.setattr(MemoryUsage, "get_virtual_size", MemoryUsage.get_virtual_size)
    measure_own_memory()
    usage = MemoryUsage.__new__(MemoryUsage)
    assert 1_000_000 < usage.get_virtual_size() < 100_000_000_000


class _Reversing(DecodingMiddleware):
    def decode(self, body: bytes, encoding: bytes, max_size: int) -> bytes:
        assert encoding == b"gzip"
        if len(body) > max_size > 0:
            raise too_large(len(body), max_size)
        return body[::-1]


def test_middleware_decodes_by_the_replaced_method() -> None:
    assert _parameters(HttpCompressionMiddleware._handle_encoding) == [
        "self",
        "body",
        "content_encoding",
        "max_size",
    ]
    middleware = _Reversing.from_crawler(get_crawler(Spider))
    url = "http://a.example/"
    responses = [Response(url, headers={"Content-Encoding": "gzip"}, body=b"abc") for _ in "12"]
    decoded = middleware.process_response(Request(url), responses[0])
    assert isinstance(decoded, Response)
    assert decoded.body == b"cba"
    with pytest.raises(IgnoreRequest):
        middleware.process_response(Request(url, meta={"download_maxsize": 2}), responses[1])


def test_keys_of_a_proxied_request_are_removed() -> None:
    request = Request("http://a.example/", meta={"proxy": "http://user:word@b.example:80"})
    HttpProxyMiddleware.from_crawler(get_crawler(Spider)).process_request(request)
    assert request.meta.keys() <= set(PROXY_META)


def test_status_of_a_refused_tunnel_is_in_its_message() -> None:
    source = inspect.getsource(_TunnelingTCP4ClientEndpoint.processProxyResponse)
    assert '"status": int(respm.group("status"))' in source
    error = TunnelError(f"Could not open CONNECT tunnel with proxy a:1 [{ {'status': 407}!r}]")
    assert tunnel_status(error) == "407"
    assert tunnel_status(ValueError("'status': 407")) == ""
