"""The downloader middleware by which each attempt passes its site's gate."""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections import defaultdict
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

from scrapy import Request, signals
from scrapy.downloadermiddlewares.retry import get_retry_request
from scrapy.exceptions import IgnoreRequest
from scrapy.http.request import NO_CALLBACK
from scrapy.utils.httpobj import urlparse_cached
from scrapy.utils.misc import load_object

from moviecrawler.basics.clock import utc_now
from moviecrawler.politeness.backoff import wait_before
from moviecrawler.politeness.blocks import block_sign, classify
from moviecrawler.politeness.budgets import UNLIMITED, is_live, site_budget
from moviecrawler.politeness.gate import Closed, Gate, Terms, UnreachableError
from moviecrawler.politeness.kept_pages import folder_of, keep_page
from moviecrawler.politeness.meta import (
    CLOSED_META,
    DIRECT,
    PROBE_META,
    PROXY_META,
    ROBOTS_OF,
)
from moviecrawler.politeness.robots import read_rules
from moviecrawler.scrapy_internals import describe_error
from moviecrawler.sites import SITES
from moviecrawler.sites.hosts import page_hosts_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Self

    from scrapy.crawler import Crawler
    from scrapy.http import Response

    from moviecrawler.politeness.blocks import Refusal
    from moviecrawler.politeness.ledger import Ledger

logger = logging.getLogger(__name__)

_OK = 200
_FORBIDDEN = 403
_CLIENT_ERROR = 400
_SERVER_ERROR = 500
_MAX_UNEXPECTED = 3
"""Unexpected pages in a row that stop a site."""


class PolitenessMiddleware:
    """Has each attempt enter the gate of its site, and recognises refusals.

    It stands after Offsite, and inside Retry and Redirect. A request has `meta["site"]`, by default
    the site of its host, and `meta["expects"]` ("page", "json" or "other"). Requests that go
    through proxies enter here, and take their turn once they have a proxy.

    A page that is too small or of the wrong kind is unexpected, and is fetched again a little
    later; three such pages in a row are a refusal.
    """

    def __init__(self, crawler: Crawler) -> None:
        assert crawler.stats is not None  # noqa: S101 - Scrapy sets it before it creates components
        self.crawler = crawler
        self._stats = crawler.stats
        self.clock: Callable[[], float] = time.time
        self.kept_pages = folder_of(crawler.settings)
        self.has_joined = False
        """Whether the crawl has joined a run. `scrapy fetch` and the like join none."""
        self.has_proxies = False
        """Whether the requests of the spider's site go through proxies."""
        self.gates: dict[str, Gate] = {}
        """By site, those of this crawl."""
        self._site: str = crawler.spidercls.site  # type: ignore[attr-defined]
        errors = crawler.settings.getlist("RETRY_EXCEPTIONS")
        self._network_errors = tuple(
            load_object(error) if isinstance(error, str) else error for error in errors
        )
        # By site, the URLs of unexpected pages since the last proper page.
        self._unexpected: defaultdict[str, set[str]] = defaultdict(set)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Read DATA_DIR and the settings of `Terms`."""
        middleware = cls(crawler)
        crawler.signals.connect(middleware.engine_stopped, signals.engine_stopped)
        return middleware

    # --- Gates ------------------------------------------------------------------------------------

    @property
    def gate(self) -> Gate:
        """The gate of the spider's site."""
        return self.gate_of(self._site)

    def gate_of(self, site: str) -> Gate:
        """Return the gate of a site, or of a host that is none of a site's."""
        gate = self.gates.get(site)
        if gate is None:
            ledger: Ledger = self.crawler.spider.backend  # type: ignore[union-attr]
            fetch = partial(self._fetch_robots, site)
            gate = Gate(self.crawler, site, self._terms_of(site), ledger, fetch, self.clock)
            self.gates[site] = gate
        return gate

    def _terms_of(self, site: str) -> Terms:
        settings = self.crawler.settings
        # Only the product's name: groups with any word of the header, such as those of CONTACT,
        # would match otherwise.
        agent = settings.get("ROBOTSTXT_USER_AGENT") or settings["USER_AGENT"].partition(" ")[0]
        # A host that is none of a site's, such as that of IMDb's datasets, has no budget.
        budget = site_budget(settings, site) if site in SITES else UNLIMITED
        is_asked_live = site in SITES and is_live(settings, site)
        least_gap = (settings["LEAST_GAP"] or 0.0) if site in SITES else 0.0
        gap = 1 / (budget.per_second or math.inf)
        if is_asked_live and settings["LEAST_GAP"] is not None and least_gap < gap:
            logger.warning(
                "DOWNLOAD_DELAY is %g s, which has no effect: %s is asked once in %g s at most, by"
                " SITE_BUDGETS",
                least_gap,
                site,
                gap,
                extra={"spider": self.crawler.spider},
            )
        return Terms(
            budget=budget,
            is_shared=self.has_joined or budget != UNLIMITED,
            least_gap_seconds=least_gap,
            is_paced=is_asked_live or budget != UNLIMITED,
            user_agent=agent,
            obeys_robots=settings.getbool("ROBOTSTXT_OBEY"),
            patience_seconds=settings.getfloat("FRONTIER_PATIENCE"),
        )

    def _site_of(self, request: Request) -> str:
        """Return the site of a request; of one from `scrapy fetch` or a shell by its host."""
        site: str | None = request.meta.get("site") or request.meta.get(ROBOTS_OF)
        if site is not None:
            return site
        own = self._site
        hosts = page_hosts_of(own, self.crawler.settings) if own in SITES else {}
        is_ours = base_of(request) in hosts.values()
        return own if is_ours else urlparse_cached(request).netloc

    async def _fetch_robots(self, site: str, base: str) -> str:
        """Return the robots.txt of a host; empty where there is none, which allows all.

        Raises UnreachableError; Closed when the response is a refusal.
        """
        meta = {"dont_obey_robotstxt": True, ROBOTS_OF: site}
        request = Request(f"{base}/robots.txt", priority=1000, meta=meta, callback=NO_CALLBACK)
        assert self.crawler.engine is not None  # noqa: S101 - it sends the requests that come here
        self._stats.inc_value("robotstxt/request_count")
        try:
            response = await self.crawler.engine.download_async(request)
        except Closed:
            raise
        except Exception as error:  # after any error the file counts as not fetched
            raise UnreachableError(
                f"robots.txt can't be fetched: {describe_error(error)}"
            ) from error
        self._stats.inc_value(f"robotstxt/response_status_count/{response.status}")
        if response.status >= _SERVER_ERROR:
            raise UnreachableError(f"robots.txt can't be fetched: HTTP status {response.status}")
        return "" if response.status >= _CLIENT_ERROR else read_rules(response.body)

    # --- Attempts ---------------------------------------------------------------------------------

    async def process_request(self, request: Request) -> None:
        """Wait at the gate. Raises Closed or Disallowed."""
        site = self._site_of(request)
        gate = self.gate_of(site)
        if ROBOTS_OF in request.meta:
            gate.check_not_refused()
            return
        base = base_of(request)
        with giving_back(request):
            await gate.enter(request.url, base)
            if not (self.has_proxies and site == self._site):
                is_probe = request.meta.get(PROBE_META, False)
                request.meta[PROBE_META] = await gate.take_turn(base, is_probe=is_probe)

    async def process_response(self, request: Request, response: Response) -> Request | Response:
        """Return the response, or the request again after an unexpected page.

        On sites with proxies ProxyMiddleware has done this already. Raises Closed for a refusal.
        """
        site = self._site_of(request)
        gate = self.gate_of(site)
        if "download_latency" in request.meta:
            proxy = request.meta.get(PROXY_META, "")
            gate.note_latency(proxy, request.meta["download_latency"])
        if PROXY_META in request.meta:
            return response
        refusal = refusal_of(request, response)
        if refusal is None or _is_missing_robots_txt(request, response):
            # A 404 or a robots.txt does not show that the site sends proper pages.
            if response.status == _OK and ROBOTS_OF not in request.meta:
                self.report_success(site, request)
            return response
        self._stats.inc_value(f"blocks/{site}/{refusal.kind}")
        if refusal.kind == "throttle" and not self.is_unexpected_again(site, response.url):
            await self.keep_page(site, refusal, DIRECT, response)
            return await self._retry(request, refusal)
        closed = self.stop(site, request, refusal.reason, refusal.pause_seconds)
        await self.keep_page(site, refusal, DIRECT, response)
        raise closed

    async def process_exception(self, request: Request, exception: Exception) -> None:
        """After the last attempt, find out whether the request or the network was at fault.

        Raises Closed when it was the network.
        """
        if self._is_last_attempt(request) and isinstance(exception, self._network_errors):
            await self.confirm_reachable(request, describe_error(exception))

    async def confirm_reachable(self, request: Request, why: str) -> None:
        """Raise Closed when the site can't be reached: its request was not at fault."""
        if ROBOTS_OF not in request.meta:
            gate = self.gate_of(self._site_of(request))
            with giving_back(request):
                await gate.confirm_reachable(base_of(request), why)

    def _is_last_attempt(self, request: Request) -> bool:
        """Return whether no other attempt follows; ProxyMiddleware makes those through proxies."""
        if PROXY_META in request.meta:
            return False
        settings = self.crawler.settings
        retries = request.meta.get("max_retry_times", settings.getint("RETRY_TIMES"))
        if not settings.getbool("RETRY_ENABLED"):
            retries = 0
        return bool(request.meta.get("retry_times", 0) >= retries)

    # --- Refusals ---------------------------------------------------------------------------------

    async def keep_page(self, site: str, refusal: Refusal, via: str, response: Response) -> None:
        """Write a refusal to disk, so that somebody can look at it."""
        keep = partial(keep_page, why=refusal.reason, via=via)
        await asyncio.to_thread(keep, self.kept_pages, site, refusal.kind, response, utc_now())

    def report_success(self, site: str, request: Request) -> None:
        """Note a proper page, which ends the count of unexpected ones.

        A response to a request that was sent before a refusal does not show that it has ended.
        """
        self._unexpected.pop(site, None)
        if request.meta.get(PROBE_META):
            self.gate_of(site).report_success()

    def is_unexpected_again(self, site: str, url: str) -> bool:
        """Count an unexpected page; return whether so many in a row are a refusal."""
        self._unexpected[site].add(url)
        return len(self._unexpected[site]) >= _MAX_UNEXPECTED

    async def _retry(self, request: Request, refusal: Refusal) -> Request:
        assert self.crawler.spider is not None  # noqa: S101 - set before the first request
        # The reason names a stat, so it has to be the same for all pages.
        retry = get_retry_request(request, spider=self.crawler.spider, reason="unexpected page")
        if retry is None:
            raise IgnoreRequest(f"unexpected page: {refusal.reason}")
        await wait_before(retry, self.crawler.settings)
        return retry

    def stop(self, site: str, request: Request, why: str, pause: float) -> Closed:
        """Close a site's gate for `pause` seconds; return what its request ends with."""
        gate = self.gate_of(site)
        reason = f"{site} is blocking us ({why})"
        gate.report_refusal(reason, pause)
        self._stats.set_value(f"blocks/{site}/stopped", reason)
        closed = Closed(reason)
        request.meta[CLOSED_META] = closed
        return closed

    async def engine_stopped(self) -> None:
        """Finish what gates have to report, and close what all workers know of the sites."""
        for gate in self.gates.values():
            await gate.close()
        for gate in self.gates.values():
            await gate.ledger.close()


def politeness_of(crawler: Crawler) -> PolitenessMiddleware:
    """Return the middleware of a crawl, which has its gates."""
    middleware = crawler.get_downloader_middleware(PolitenessMiddleware)
    assert middleware is not None  # noqa: S101 - every movie spider has it
    return middleware


def refusal_of(request: Request, response: Response) -> Refusal | None:
    """Return the kind of a refusal and how long to pause; None for a proper response."""
    headers = {
        name.decode("latin-1").lower(): values[0].decode("latin-1")
        for name, values in dict.items(response.headers)  # as Scrapy's `items` copies each
        if values
    }
    expects = request.meta.get("expects", "other")
    return classify(response.status, headers, response.body, expects=expects, now=time.time())


@contextmanager
def giving_back(request: Request) -> Iterator[None]:
    """Have the queue get a request back when Closed is raised for it."""
    try:
        yield
    except Closed as closed:
        request.meta[CLOSED_META] = closed
        raise


def base_of(request: Request) -> str:
    """Return the scheme and host of a request."""
    url = urlparse_cached(request)
    return f"{url.scheme}://{url.netloc}"


def _is_missing_robots_txt(request: Request, response: Response) -> bool:
    """Return whether the host of IMDb's datasets has no robots.txt.

    A bucket answers 403 for a missing file.
    """
    is_forbidden = request.meta.get(ROBOTS_OF) == "imdb-datasets" and response.status == _FORBIDDEN
    return is_forbidden and block_sign(response.body) is None
