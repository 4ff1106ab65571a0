"""Which answers close the gate of a site."""

from pathlib import Path
from typing import Any

import pytest
from scrapy import Request
from scrapy.exceptions import IgnoreRequest
from scrapy.http import Response

from moviecrawler.politeness.gate import Closed
from moviecrawler.politeness.meta import ROBOTS_OF
from tests.chain import PAGE, Chain, page

TINY = b"<html></html>"


class Site:
    """Answers pages of IMDb as it is told."""

    def __init__(self, folder: Path) -> None:
        self.status = 200
        self.body = PAGE
        self.headers: dict[str, str] = {}
        self.chain = Chain(folder, self._answer, RETRY_TIMES=1, ROBOTSTXT_OBEY=False)

    async def _answer(self, request: Request) -> Response:
        return page(request, self.status, self.body, self.headers)

    async def ask(
        self, path: str = "a", body: bytes = PAGE, status: int = 200, **meta: Any
    ) -> Response:
        """Send a request that is answered so, also when it is sent again."""
        self.status = status
        self.body = body
        return await self.chain.send(f"https://www.imdb.com/{path}", **meta)

    @property
    def is_open(self) -> bool:
        """Whether IMDb may be asked."""
        return self.chain.politeness.gate.closure is None


@pytest.fixture
def site(tmp_path: Path) -> Site:
    """Return a site that blocks."""
    return Site(tmp_path)


@pytest.mark.promise("A healthy page is never taken for a block.")
@pytest.mark.parametrize("status", [404, 410, 500, 503, 304])
async def test_answer_that_is_no_refusal_passes(site: Site, status: int) -> None:
    assert (await site.ask(body=b"", status=status)).status == status
    assert site.is_open


@pytest.mark.promise("A refusal ends the crawl of that site.")
@pytest.mark.parametrize(
    ("status", "retry_after"), [(202, ""), (403, ""), (429, "120"), (503, "120")]
)
async def test_refusal_closes_the_gate_of_the_site_and_no_other(
    site: Site, status: int, retry_after: str
) -> None:
    site.headers = {"Retry-After": retry_after} if retry_after else {}
    with pytest.raises(Closed, match="imdb is blocking us"):
        await site.ask(body=b"", status=status)
    with pytest.raises(Closed, match="imdb is blocking us"):
        await site.ask("b")
    assert (await site.ask("b", site="imdb-datasets")).status == 200
    assert len(site.chain.sent) == 2
    stats = site.chain.crawler.stats
    assert "imdb is blocking us" in stats.get_value("blocks/imdb/stopped")
    await site.chain.close()


async def test_three_unexpected_pages_in_a_row_close_the_gate(site: Site) -> None:
    async def fail(path: str) -> None:
        with pytest.raises(IgnoreRequest, match="unexpected page"):
            await site.ask(path, TINY)

    for path in "abcdef":
        await fail(path)
        assert (await site.ask(path)).body == PAGE  # this begins the count anew
    for path in "ab":
        await fail(path)
    robots = Request("https://www.imdb.com/robots.txt", meta={ROBOTS_OF: "imdb"})
    assert (await site.chain.download(robots)).body == TINY  # which shows no proper page
    assert (await site.ask(body=b"", status=404)).status == 404
    with pytest.raises(Closed):
        await site.ask("c", TINY)
    await site.chain.close()


async def test_a_request_that_names_no_site_is_for_that_of_its_host(site: Site) -> None:
    site.status = 403
    with pytest.raises(Closed, match="imdb is blocking us"):
        await site.chain.download(Request("https://www.imdb.com/a"))
    assert not site.is_open
    assert site.chain.politeness._site_of(Request("https://files.example/a")) == "files.example"
    await site.chain.close()


async def test_one_page_that_is_always_unexpected_fails_alone(site: Site) -> None:
    with pytest.raises(IgnoreRequest, match="unexpected page") as error:
        await site.ask(body=TINY)
    assert not isinstance(error.value, Closed)
    assert site.chain.sent == ["https://www.imdb.com/a"] * 2
    assert site.is_open
