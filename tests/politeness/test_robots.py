"""robots.txt in all its shapes."""

from pathlib import Path
from typing import Any

import pytest
from protego import Protego
from scrapy import Request
from scrapy.exceptions import IgnoreRequest
from scrapy.http import Response

from moviecrawler.spiders.metacritic import MetacriticSpider
from tests.chain import Chain, page
from tests.crawling import Finished, scrapy
from tests.processes import FAST
from tests.scripted_site import Site, Told

NOTHING = b"User-agent: *\nDisallow: /\n"
URL = "https://www.metacritic.com/movie/dune/"
CUT = NOTHING + b"\nAllow: /nothing/else\n".rjust(500 * 1024 + 13 - len(NOTHING), b"#")
"""It has half a line at the end of what is read."""


async def is_allowed(folder: Path, status: int, body: bytes) -> bool:
    """Return whether a page is asked for when that is the host's robots.txt."""

    async def answer(request: Request) -> Response:
        if request.url.endswith("/robots.txt"):
            return page(request, status, body)
        return page(request)

    contact = "moviecrawler/1.0 (+https://example.org/crawler)"
    named: dict[str, Any] = {
        "USER_AGENT": contact,
        "SITE_BUDGETS": '{"metacritic": {"per_second": 1000}}',
    }
    chain = Chain(folder, answer, MetacriticSpider, RETRY_TIMES=0, **named)
    try:
        await chain.send(URL)
    except IgnoreRequest:
        return False
    finally:
        await chain.close()
    return True


@pytest.mark.promise(
    "robots.txt is obeyed, and a host that has given none for 7 days is asked for nothing."
)
@pytest.mark.parametrize(
    ("status", "body", "open_to_us"),
    [
        (200, b"", True),
        (200, NOTHING, False),
        (400, NOTHING, True),
        (401, NOTHING, True),
        (410, NOTHING, True),
        (500, b"", False),
        (502, b"", False),
        (200, b"\xef\xbb\xbf" + NOTHING, False),
        (200, NOTHING.decode().encode("utf-16"), False),
        (200, NOTHING.decode().encode("utf-16-be"), False),
        (200, NOTHING.replace(b"\n", b"\r").rstrip(), False),
        (200, b"User-agent: MovieCrawler\nDisallow: /\n\nUser-agent: *\nAllow: /\n", False),
        (200, b"User-agent: MovieCrawler\nAllow: /\n\n" + NOTHING, True),
        # A word of CONTACT, which is no name of ours.
        (200, b"User-agent: Example\nAllow: /\n\n" + NOTHING, False),
        (200, NOTHING + b"# too much\n" * 1_000_000 + b"Allow: /\n", False),
        (200, CUT, False),
        (200, NOTHING.strip().rjust(500 * 1024, b"\n"), False),
    ],
)
async def test_what_it_says_holds(
    status: int, body: bytes, open_to_us: bool, tmp_path: Path
) -> None:
    assert await is_allowed(tmp_path, status, body) == open_to_us


@pytest.mark.parametrize(
    ("line", "seconds"),
    [("Crawl-delay: 7.5", 7.5), ("Crawl-delay: soon", 0), ("Disallow: /a", 0)],
)
def test_the_delay_that_it_asks_for_is_a_number_of_seconds(line: str, seconds: float) -> None:
    rules = Protego.parse(f"User-agent: *\n{line}\n")
    assert (rules.crawl_delay("moviecrawler") or 0) == seconds


@pytest.mark.parametrize(
    ("told", "end"),
    [
        (Told(404, NOTHING), "finished"),
        (Told(200, b"cut off", {"Content-Length": "999"}), "site_unreachable"),
        (Told(301, headers={"Location": "/robots.txt"}), "site_unreachable"),
        (Told(503), "site_unreachable"),
        (Told(202, headers={"x-amzn-waf-action": "challenge"}), "site_stopped"),
    ],
)
def test_a_crawl_ends_as(told: Told, end: str, tmp_path: Path) -> None:
    with Site() as site:
        site.answers["/robots.txt"] = told
        finished = crawl_of(tmp_path, "metacritic", "ids=movie/0,movie/1", METACRITIC_URL=site.url)
        assert f"({end})" in finished.log
        assert finished.code == (0 if end == "finished" else 1)
        absent = {"movie/0": "absent", "movie/1": "absent"}
        assert finished.misses == (absent if end == "finished" else {})
        assert sorted(site.pages) == (["/movie/0/", "/movie/1/"] if end == "finished" else [])
        waiting = "2 titles asked for: 2 waiting in the queue"
        assert (waiting in finished.log) == (end != "finished")


def test_a_bucket_that_refuses_the_robots_txt_that_it_does_not_have_gives_its_datasets(
    tmp_path: Path,
) -> None:
    with Site() as site:
        site.answers["/robots.txt"] = Told(403, b"<Error><Code>AccessDenied</Code></Error>")
        crawl_of(tmp_path, "imdb", "ids=tt0111161", "via=datasets", IMDB_DATASETS_URL=site.url)
        assert site.pages == ["/title.basics.tsv.gz"]


def crawl_of(data: Path, spider: str, *arguments: str, **settings: Any) -> Finished:
    """Run a crawl that is soon at the end of its patience."""
    given = {**FAST, "DOWNLOAD_TIMEOUT": "3", "RETRY_TIMES": "1", "FRONTIER_PATIENCE": "1"}
    options = [part for name, value in given.items() for part in ("-s", f"{name}={value}")]
    named = [part for argument in arguments for part in ("-a", argument)]
    return scrapy("crawl", spider, *named, *options, data=data, **settings)
