"""Aliases are followed before a request is sent, and read once for many requests."""

from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from scrapy import Request

from moviecrawler.items import ListRow
from moviecrawler.middlewares import aliases
from moviecrawler.middlewares.aliases import AliasMiddleware
from moviecrawler.sites.identity import ALIAS
from moviecrawler.spiders.rottentomatoes import RottenTomatoesSpider
from tests.answers import spider_of

HOME = "https://www.rottentomatoes.com"


def middleware_of(settings: dict[str, str]) -> tuple[Any, AliasMiddleware]:
    """Return a spider and its middleware."""
    spider = spider_of(RottenTomatoesSpider, settings)
    spider.crawler.spider = spider
    return spider, AliasMiddleware.from_crawler(spider.crawler)


async def test_a_title_is_requested_by_its_current_id_unless_a_list_names_the_old_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    read = []

    def valid_aliases(_: Any, site: str, now: datetime) -> dict[str, str]:
        read.append((site, now.tzinfo is not None))
        return {"m/a": "m/b", "m/b": "m/c", "m/x": "m/y", "m/y": "m/x"}

    monkeypatch.setattr(aliases, "valid_aliases", valid_aliases)
    spider, middleware = middleware_of({})
    request = spider.title_request("m/a", None)
    led = await middleware.process_request(request)
    assert isinstance(led, Request)
    assert (led.url, led.cb_kwargs, led.dont_filter) == (f"{HOME}/m/c", request.cb_kwargs, True)
    assert led.meta["redirect_urls"] == [f"{HOME}/m/a"]
    assert led.meta["redirect_reasons"] == [ALIAS]
    assert await middleware.process_request(led) is None  # it is not led on
    found = ListRow(list_name="x", list_rank=1)
    others = [spider.title_request(site_id, None) for site_id in ("m/c", "m/x", "m/other") * 100]
    for other in (*others, spider.title_request("m/a", found), Request(f"{HOME}/robots.txt")):
        assert await middleware.process_request(other) is None
    assert read == [("rottentomatoes", True)]


async def test_without_the_aliases_titles_are_requested_as_they_are(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "movies.sqlite3").write_text("This is not a database." * 100)
    spider, middleware = middleware_of({"DATA_DIR": str(tmp_path)})
    for _ in range(2):
        assert await middleware.process_request(spider.title_request("m/a", None)) is None
    assert caplog.text.count("Aliases can't be read") == 1
