"""The contract by which `scrapy check` compares what spiders read with this project's own pages.

The pages are in `tests/pages/` of a clone, each beside what it says. No site is asked.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, cast

import msgspec
from scrapy.contracts import Contract
from scrapy.exceptions import ContractFail
from scrapy.http import HtmlResponse, Request

import moviecrawler
from moviecrawler.items import Movie
from moviecrawler.sites.ids import title_url

if TYPE_CHECKING:
    from types import MethodType

    from moviecrawler.spiders.base import MovieSpider

_PAGES = Path(moviecrawler.__file__).parents[1] / "tests" / "pages"
_KINDS = ("title", "movie", "tv")
"""What pages of titles are called in `meta.json`."""
_BODY = "golden_page"
"""Key of `meta` for the body of a page, which only this process can have set, as it is bytes."""


class GoldenPageMiddleware:
    """Scrapy downloader middleware that answers a contract's request with its page."""

    def process_request(self, request: Request) -> HtmlResponse | None:
        """Return the page of a contract; None for any other request."""
        body = request.meta.get(_BODY)
        return HtmlResponse(request.url, body=body) if isinstance(body, bytes) else None


class _Case(NamedTuple):
    """A page of a title."""

    url: str
    body: bytes
    item: dict[str, object]
    """What is to be read, or the part of it that matters."""


class GoldenContract(Contract):
    """`@golden`: the callback reads all pages of titles as it is written beside them."""

    name = "golden"

    def __init__(self, method: MethodType, *args: object) -> None:
        super().__init__(method, *args)
        self._method = method

    def adjust_request_args(self, args: dict[str, object]) -> dict[str, object]:
        """Request the first page. Raises ContractFail where there is none."""
        case = self._cases()[0]
        return {**args, "url": case.url, "meta": {_BODY: case.body}}

    def pre_process(self, _: object) -> None:
        """Read all pages. Raises ContractFail for the first that is read otherwise."""
        for case in self._cases():
            response = HtmlResponse(case.url, body=case.body, request=Request(case.url))
            item = next(iter(self._method(response)))
            if not isinstance(item, Movie):
                raise ContractFail(f"{case.url} can't be read: {getattr(item, 'reason', item)}")
            read = msgspec.to_builtins(item)
            for field, value in case.item.items():
                if _stated(read[field]) != _stated(value):
                    raise ContractFail(f"{case.url}: {field} is {read[field]!r}, not {value!r}")

    def _cases(self) -> list[_Case]:
        """Return the site's pages of titles."""
        spider = cast("MovieSpider", self._method.__self__)
        cases = []
        for path in sorted(_PAGES.glob(f"{spider.site}/*/meta.json")):
            meta = json.loads(path.read_text("utf-8"))
            if meta["kind"] in _KINDS:
                item = json.loads(path.with_name("expected.json").read_text("utf-8"))["item"]
                (page,) = path.parent.glob("page.*")
                url = title_url(spider.site, item["site_id"]) if "site_id" in item else meta["url"]
                cases.append(_Case(url=url, body=page.read_bytes(), item=item))
        if not cases:
            raise ContractFail(f"there are no pages of {spider.site} in {_PAGES}: check in a clone")
        return cases


def _stated(value: object) -> object:
    """Return a value without what is unknown."""
    if isinstance(value, dict):
        return {n: kept for n, v in value.items() if (kept := _stated(v)) is not None} or None
    if isinstance(value, list):
        return [_stated(member) for member in value] or None
    return value
