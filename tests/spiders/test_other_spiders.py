"""Scrapy's own commands, and spiders that are not ours, run on Scrapy's own parts, politely."""

import json
from pathlib import Path

import pytest

from moviecrawler.replica.process import ReplicaProcess
from tests.crawling import change, counts, scrapy
from tests.services.replica import IDS, SPIDERS

OWN = """
import json
import scrapy

class Printing:
    def process_item(self, item):
        print(json.dumps(item))
        return item

class Own(scrapy.Spider):
    name = "own"
    site = "a place of its own"  # as ours have one
    custom_settings = {"ITEM_PIPELINES": {Printing: 5}}

    async def start(self):
        for _ in range(3):
            yield scrapy.Request(self.url)

    def parse(self, response):
        yield {"status": response.status, "agent": response.request.headers["User-Agent"].decode()}
"""
AT_ONCE = ("-s", "DOWNLOAD_DELAY=0", "-s", "AUTOTHROTTLE_ENABLED=0")
AWAY = {
    "REDIS_URL": "redis://127.0.0.1:1/0",
    "DATABASE_URL": "postgresql://127.0.0.1:1/movies",
    "S3_BUCKET": "lamps",
}
"""Services that can't be reached."""


@pytest.fixture
def page(replica: ReplicaProcess) -> str:
    """Return the address of a title's page."""
    return f"{replica.urls['imdb']}/title/{IDS[0]}/"


def databases(data: Path) -> list[str]:
    return [path.name for path in data.rglob("*.sqlite3*")]


@pytest.mark.parametrize(
    ("command", "printed"),
    [
        ("shell PAGE -c response.status", "200\n"),
        ("shell ./lamp.html -c response.css('h1::text').get()", "A lamp\n"),
        ("shell --spider=imdb PAGE -c response.status", "200\n"),
        ("shell --spider=imdb -c spider", "None\n"),
        ("fetch PAGE", "<html"),
        ("fetch --spider=imdb PAGE", "<html"),
        ("view PAGE", "shown file://"),
        ("parse --nocolour --spider=imdb PAGE", f"'site_id': '{IDS[0]}'"),
        ("parse --nocolour --spider=imdb --pipelines PAGE", "'site': 'imdb'"),
        ("list", "\n".join([*SPIDERS, ""])),
        ("check", ""),
        ("bench -s CLOSESPIDER_TIMEOUT=1", ""),
    ],
)
def test_commands_of_scrapy_do_what_they_do_and_leave_nothing(
    command: str, printed: str, page: str, replica: ReplicaProcess, tmp_path: Path
) -> None:
    (tmp_path / "lamp.html").write_text("<h1>A lamp</h1>")
    arguments = command.replace("PAGE", page).split()
    ended = scrapy(*arguments, *AT_ONCE, data=tmp_path, replica=replica, BROWSER="echo shown %s")
    assert ended.code == 0, ended.log
    assert printed in ended.output
    # Nobody listens where `bench` asks, if its server can't start.
    assert "Traceback" not in ended.log or "bench" in command
    assert databases(tmp_path) == []
    requested = counts(replica)["paths"].get(f"/title/{IDS[0]}/", 0)
    assert requested == ("PAGE" in command)


@pytest.mark.parametrize("command", ["shell PAGE -c response.status", "fetch PAGE", "parse PAGE"])
def test_a_page_of_a_site_is_fetched_while_queue_and_stores_are_away(
    command: str, page: str, replica: ReplicaProcess, tmp_path: Path
) -> None:
    arguments = command.replace("PAGE", page).split()
    ended = scrapy(*arguments, "--spider=imdb", data=tmp_path, replica=replica, **AWAY)
    assert ended.code == 0, ended.log
    assert "200" in ended.output or IDS[0] in ended.output
    assert "No store is opened, as this is not a crawl" in ended.log
    assert "ERROR" not in ended.log


def test_a_spider_is_found_by_the_address_of_its_site(tmp_path: Path) -> None:
    url = f"https://www.imdb.com/title/{IDS[0]}/"
    # Nothing is asked: the proxy is a closed port.
    ended = scrapy(
        *("parse", url, "-s", "RETRY_TIMES=0", *AT_ONCE),
        data=tmp_path,
        https_proxy="http://127.0.0.1:1",
    )
    assert "moviecrawler.politeness.middleware.PolitenessMiddleware" in ended.log
    assert "Unable to find spider" not in ended.log


@pytest.mark.parametrize("command", [["runspider", "own.py"], ["crawl", "own"]], ids=" ".join)
def test_somebody_elses_spider_has_its_own_pipelines_and_scrapys_dupefilter(
    command: list[str], page: str, replica: ReplicaProcess, tmp_path: Path
) -> None:
    (tmp_path / "own.py").write_text(OWN)
    modules = "moviecrawler.spiders,own" if command == ["crawl", "own"] else "moviecrawler.spiders"
    ended = scrapy(
        *(*command, "-a", f"url={page}", "-s", f"SPIDER_MODULES={modules}", *AT_ONCE),
        data=tmp_path,
        replica=replica,
        **AWAY,
    )
    assert ended.code == 0, ended.log
    (item,) = map(json.loads, ended.output.splitlines())
    assert item["status"] == 200
    assert item["agent"].startswith("moviecrawler/")
    assert ended.stat("dupefilter/filtered") == 2
    assert counts(replica)["robots"] == 1
    assert databases(tmp_path) == []


def test_somebody_elses_spider_is_as_polite_as_ours(
    page: str, replica: ReplicaProcess, tmp_path: Path
) -> None:
    (tmp_path / "own.py").write_text(OWN)
    hidden = page.replace("/title/", "/search/title/")
    change(replica, robots="live")
    ended = scrapy("runspider", "own.py", "-a", f"url={hidden}", data=tmp_path, replica=replica)
    assert ended.output == ""
    assert ended.stat("robotstxt/forbidden") == 1
    for setting in (
        "'AUTOTHROTTLE_ENABLED': True",
        "'CONCURRENT_REQUESTS_PER_DOMAIN': 2",
        "'COOKIES_ENABLED': False",
        "'DOWNLOAD_DELAY': 2.0",
        "'DOWNLOAD_VERIFY_CERTIFICATES': True",
        "'REMOTE_CONTROL_ENABLED': False",
        "'ROBOTSTXT_OBEY': True",
        "'TELNETCONSOLE_ENABLED': False",
    ):
        assert setting in ended.log
