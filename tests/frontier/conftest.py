"""A client of Redis for tests that are coroutines, and a spider without a crawl."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from scrapy.utils.test import get_crawler

from moviecrawler import settings
from moviecrawler.frontier.redis_client import connect
from moviecrawler.spiders.imdb import ImdbSpider


@pytest.fixture
async def client(redis_url: str) -> AsyncIterator[Any]:
    """Return a client of an empty Redis."""
    client = connect(redis_url)
    yield client
    await client.aclose()


@pytest.fixture(scope="session")
def spider() -> ImdbSpider:
    """Return IMDb's spider with the project's settings."""
    values = {name: value for name, value in vars(settings).items() if name.isupper()}
    return ImdbSpider.from_crawler(get_crawler(ImdbSpider, values), ids="tt0000001")
