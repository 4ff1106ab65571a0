from types import SimpleNamespace

import pytest
from scrapy import Request, Spider
from scrapy.core.downloader import Slot
from scrapy.http import Response
from scrapy.utils.test import get_crawler

from moviecrawler.extensions.throttle import SiteThrottle

SETTINGS = {
    "AUTOTHROTTLE_ENABLED": True,
    "AUTOTHROTTLE_MAX_DELAY": 60,
    "DOWNLOAD_DELAY": 2.0,
    "DOWNLOAD_SLOTS": {
        "slow.example": {"delay": 5.0},
        "quick.example": {"delay": 0.5},
        "127.0.0.1": {"delay": 0.0},
    },
}


@pytest.mark.parametrize(
    ("host", "before", "latency", "after"),
    [
        ("other.example", 2.0, 8.0, 8.0),
        ("other.example", 30.0, 0.1, 15.05),
        ("slow.example", 5.0, 9.0, 9.0),
        ("quick.example", 0.5, 0.1, 0.5),
        ("127.0.0.1", 0.0, 3.0, 0.0),
        ("other.example", 2.0, 1000.0, 60.0),
    ],
)
def test_delay_after_an_answer(host: str, before: float, latency: float, after: float) -> None:
    crawler = get_crawler(Spider, SETTINGS)
    throttle = SiteThrottle(crawler)
    slot = Slot(concurrency=1, delay=before, jitter=0.0)
    downloader = SimpleNamespace(slots={host: slot})
    crawler.engine = SimpleNamespace(downloader=downloader)  # type: ignore[assignment]
    throttle._spider_opened(Spider("test"))
    request = Request(f"http://{host}/", meta={"download_slot": host, "download_latency": latency})
    throttle._response_downloaded(Response(request.url), request, Spider("test"))
    assert slot.delay == pytest.approx(after)
