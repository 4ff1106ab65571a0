"""Pages that make a process hang: the node knows which page is being read, and one that has hung a process is not fetched.

A process whose event loop stands still can send nothing any more, so each page is named in shared memory before it is read.
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from scrapy.exceptions import IgnoreRequest, NotConfigured

from moviecrawler.frontier.leases import META
from moviecrawler.node_memory import DESCRIPTOR, NodeMemory, Work

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Generator, Iterator
    from typing import Self

    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.http import Response


@cache
def node_memory() -> NodeMemory | None:
    """Return the memory that this process shares with its node; None when no node has started it."""
    descriptor = os.environ.get(DESCRIPTOR, "")
    return NodeMemory(int(descriptor)) if descriptor.isdigit() else None


@contextmanager
def reading(request: Request) -> Iterator[None]:
    """Name the page that is being read. Nothing within may wait for the event loop, which may go on with another page then."""
    memory = node_memory()
    if memory is None:
        yield
        return
    memory.begin(Work(request.url, request.meta.get(META, "")))
    try:
        yield
    finally:
        memory.end()


class ReadingMiddleware:
    """Spider middleware, the closest one to the spider: names the page that a callback reads."""

    @classmethod
    def from_crawler(cls, _: Crawler) -> Self:
        """Create it, in the process of a node."""
        if node_memory() is None:
            raise NotConfigured  # without a word, as it is so with every crawl that no node has started
        return cls()

    async def process_spider_output(self, response: Response, result: AsyncIterator[Any]) -> AsyncIterator[Any]:
        """Yield what the callback does."""
        assert response.request is not None  # noqa: S101 - each response here has one
        results = aiter(result)
        while True:
            try:
                found = await _Steps(anext(results), response.request)
            except StopAsyncIteration:
                return
            yield found


class _Steps:
    """Awaits something, and names the page in each step of it, but not between them, when other pages have their turn."""

    def __init__(self, awaited: Awaitable[Any], request: Request) -> None:
        self._awaited = awaited
        self._request = request

    def __await__(self) -> Generator[Any, Any, Any]:
        steps = self._awaited.__await__()
        step = partial(next, steps)
        while True:
            with reading(self._request):
                try:
                    waits_for = step()
                except StopIteration as end:
                    return end.value
            try:
                yield waits_for
            except BaseException as error:  # noqa: BLE001 - whatever is thrown in is the callback's
                step = partial(steps.throw, error)
            else:
                step = partial(next, steps)


class HungPagesMiddleware:
    """Downloader middleware: fetches no page that has made processes of this job hang. A shared frontier sets its own aside."""

    def __init__(self, hung: frozenset[str]) -> None:
        self._hung = hung

    @classmethod
    def from_crawler(cls, _: Crawler) -> Self:
        """Read what the node says."""
        memory = node_memory()
        if memory is None or not memory.hung:
            raise NotConfigured
        return cls(memory.hung)

    def process_request(self, request: Request) -> None:
        """Raise IgnoreRequest for such a page."""
        if request.url in self._hung:
            raise IgnoreRequest("set aside, as it has made processes hang")
