"""The contract by which `scrapy check` compares what spiders read with this project's own pages.

The pages are in `tests/pages/` of a clone, each beside what it says. No site is asked.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
from scrapy.contracts import Contract
from scrapy.exceptions import ContractFail
from scrapy.http import HtmlResponse, Request

import moviecrawler
from moviecrawler.items import Movie
from moviecrawler.sites.ids import title_url

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


class GoldenContract(Contract):
    """`@golden`: the callback reads all pages of titles as it is written beside them."""

    name = "golden"

    def __init__(self, method: Any, *args: Any) -> None:
        super().__init__(method, *args)
        self._method = method

    def adjust_request_args(self, args: dict[str, Any]) -> dict[str, Any]:
        """Request the first page. Raises ContractFail where there is none."""
        url, body, _ = self._cases()[0]
        return {**args, "url": url, "meta": {_BODY: body}}

    def pre_process(self, _: Any) -> None:
        """Read all pages. Raises ContractFail for the first that is read otherwise."""
        for url, body, expected in self._cases():
            response = HtmlResponse(url, body=body, request=Request(url))
            item = next(iter(self._method(response)))
            if not isinstance(item, Movie):
                raise ContractFail(f"{url} can't be read: {getattr(item, 'reason', item)}")
            read = msgspec.to_builtins(item)
            for field, value in expected.items():
                if _stated(read[field]) != _stated(value):
                    raise ContractFail(f"{url}: {field} is {read[field]!r}, not {value!r}")

    def _cases(self) -> list[tuple[str, bytes, dict[str, Any]]]:
        """Return address, body and item of the site's pages of titles."""
        site = self._method.__self__.site
        cases = []
        for path in sorted(_PAGES.glob(f"{site}/*/meta.json")):
            meta = json.loads(path.read_text("utf-8"))
            if meta["kind"] in _KINDS:
                item = json.loads(path.with_name("expected.json").read_text("utf-8"))["item"]
                (page,) = path.parent.glob("page.*")
                url = title_url(site, item["site_id"]) if "site_id" in item else meta["url"]
                cases.append((url, page.read_bytes(), item))
        if not cases:
            raise ContractFail(f"there are no pages of {site} in {_PAGES}: check in a clone")
        return cases


def _stated(value: Any) -> Any:
    """Return a value without what is unknown."""
    if isinstance(value, dict):
        return {n: kept for n, v in value.items() if (kept := _stated(v)) is not None} or None
    if isinstance(value, list):
        return [_stated(member) for member in value] or None
    return value
