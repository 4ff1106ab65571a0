"""Spiders in this process, and answers that are given to them by hand."""

import tempfile
from typing import Any

from scrapy import Request
from scrapy.http import Response
from scrapy.utils.test import get_crawler

import moviecrawler.settings
from moviecrawler.spiders.base import MovieSpider


def spider_of(
    kind: type[MovieSpider], settings: dict[str, str] | None = None, **arguments: Any
) -> Any:
    own = {name: value for name, value in vars(moviecrawler.settings).items() if name.isupper()}
    given = {"DATA_DIR": tempfile.gettempdir(), **(settings or {})}
    return kind.from_crawler(get_crawler(kind, {**own, **given}), **arguments)


def answer(request: Request, body: bytes) -> list[Any]:
    """Return what the answer to a request leads to."""
    assert request.callback is not None
    return list(
        request.callback(Response(request.url, body=body, request=request), **request.cb_kwargs)
    )


def missed(spider: Any) -> int:
    """Return how many pages of lists could not be read."""
    return int(spider.crawler.stats.get_value("lists/missed", 0))
