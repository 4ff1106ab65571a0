"""Sends requests through proxies, for the sites for which the operator has switched that on.

Its place is where bodies are decompressed and redirects are not followed yet, so that it sees how each attempt ended. It passes
answers only to the middlewares on the engine's side, and never a refusal.
"""

from __future__ import annotations

import asyncio
import logging
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import redis.exceptions
from scrapy import signals
from scrapy.downloadermiddlewares.retry import get_retry_request
from scrapy.downloadermiddlewares.stats import get_header_size, get_status_size
from scrapy.exceptions import CloseSpider, IgnoreRequest, NotConfigured
from scrapy.utils.httpobj import urlparse_cached
from scrapy.utils.request import request_httprepr

from moviecrawler.extract.blocks import THROTTLE_PAUSE, USUAL_PAUSE, Refusal
from moviecrawler.middlewares.blocks import (
    POOL_META,
    PROXY_META,
    ROBOTS_OF,
    SiteBlockMiddleware,
    SiteStopped,
    refusal_of,
)
from moviecrawler.middlewares.compression import DAMAGED
from moviecrawler.middlewares.retry import wait_before
from moviecrawler.proxies.policy import describe_failure, is_proxys_own, load_policy
from moviecrawler.proxies.pools import ProxyPoolError, credentials_in
from moviecrawler.proxies.quarantines import TIMEOUTS, Quarantines
from moviecrawler.proxies.site_pools import SitePools
from moviecrawler.redis_client import connect, describe_error
from moviecrawler.sites import SITES, page_hosts_of

if TYPE_CHECKING:
    from typing import Self

    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.http import Response

    from moviecrawler.items import Site
    from moviecrawler.proxies.pools import Proxy, ProxyPool

logger = logging.getLogger(__name__)

_TRIED, _HISTORY = "proxies_tried", "attempts"
"""Keys of a request's `meta`: the proxies of its earlier attempts, and how those ended."""
_ATTEMPT_META = ("proxy", "_auth_proxy", "_scheme_proxy", "download_slot")
"""Keys of `meta` that are set only while an attempt is under way."""
_OK, _PROXY_AUTHENTICATION = 200, 407
_GATEWAY_ERRORS = frozenset({502, 504})
"""Statuses of a proxy, or of a site behind one, for "no answer"."""
_MAX_DOUBTS = 2
"""Attempts in a row that a proxy may fail, perhaps by its fault, before it is banned."""
_MAX_RENEWALS = 2
"""Bans in a row after which a session is replaced by another one; the next ban quarantines it."""
_SITES_FAULT = 3
"""Proxies that fail in a row from which on the site is to blame, unless another pool is left."""
_FREE_CHECK_SECONDS = 1.0
_MIN_STOP_SECONDS = 60.0


class AttemptsFailedError(IgnoreRequest):
    """A request failed as often as it may be sent; the message says how each attempt ended."""


@dataclass(slots=True)
class _Attempt:
    request: Request
    pool: ProxyPool
    proxy: Proxy
    authorization: bytes | None
    """That of the proxy when the request was sent: a session may be replaced meanwhile."""
    number: int
    sent_at: float


class ProxyMiddleware:
    """Sends each request of a site through a proxy that the site does not refuse.

    A ban quarantines (proxy, site), for all nodes, and the request is sent through another proxy; when all proxies are in
    quarantine, the site is stopped as it is without proxies.
    """

    blocks: SiteBlockMiddleware

    def __init__(self, crawler: Crawler, pools: SitePools, site: Site) -> None:
        self.crawler = crawler
        self.site = site
        self.order = pools.orders[site]
        self.attempts = pools.options.attempts
        self.policy = load_policy(crawler.settings)
        self.error_statuses = {int(status) for status in crawler.settings.getlist("RETRY_HTTP_CODES")}
        self._slots = crawler.settings.getdict("DOWNLOAD_SLOTS")
        usual = crawler.settings.getint("CONCURRENT_REQUESTS_PER_DOMAIN")
        hosts = [urlsplit(url).hostname for url in page_hosts_of(site, crawler.settings).values()]
        self._concurrency = min(int(self._slots.get(host, {}).get("concurrency", usual)) for host in hosts)
        self.quarantines = Quarantines(site, self.order, self._connect(), self._wake)
        self._freed = asyncio.Event()  # set for a moment whenever a proxy may have become free
        self._attempts: dict[Request, _Attempt] = {}
        self._last_refusal: Refusal | None = None  # since the site's last page as it should be
        self._failing: set[str] = set()  # proxies that failed since the site's last answer through any
        self._tasks: set[asyncio.Task[None]] = set()  # of pools that react to being exhausted

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Read what `SitePools` reads. Raises NotConfigured where the spider's site is asked directly."""
        pools = SitePools.from_settings(crawler.settings)
        site: Any = getattr(crawler.spider, "site", None)
        if site not in pools.orders:
            raise NotConfigured  # without a reason, which Scrapy would log as a warning
        middleware = cls(crawler, pools, site)
        crawler.signals.connect(middleware.spider_opened, signals.spider_opened)
        crawler.signals.connect(middleware.spider_closed, signals.spider_closed)
        crawler.signals.connect(middleware.response_downloaded, signals.response_downloaded)
        return middleware

    def _connect(self) -> Any:
        url = self.crawler.settings.get("REDIS_URL")
        return connect(url, **TIMEOUTS) if url else None

    def _wake(self) -> None:
        """Let all requests that wait for a proxy look again."""
        self._freed.set()
        self._freed.clear()

    async def spider_opened(self) -> None:
        """Check that the pools can be used, and read what other nodes know. Raises CloseSpider."""
        blocks = self.crawler.get_downloader_middleware(SiteBlockMiddleware)
        assert blocks is not None  # noqa: S101 - settings.py has it
        self.blocks = blocks
        try:
            for pool in self.order:
                await pool.open(self.crawler.settings[SITES[self.site].home_setting])
            await self.quarantines.start()
        except ProxyPoolError as error:
            self._log(logging.ERROR, "%s", error)
            raise CloseSpider("proxies_unreachable") from None
        except redis.exceptions.RedisError as error:
            why = describe_error(error, "; start it, or remove REDIS_URL")
            self._log(logging.ERROR, "Redis at REDIS_URL can't be used: %s", why)
            raise CloseSpider("proxies_unreachable") from None

    async def spider_closed(self) -> None:
        """Tell other nodes the rest."""
        if self._tasks:
            await asyncio.wait(self._tasks)
        await self.quarantines.close()

    # --- Requests ------------------------------------------------------------------------------------------------------

    async def process_request(self, request: Request) -> None:
        """Choose the proxy; wait while all usable ones are busy. Raises SiteStopped or AttemptsFailedError."""
        request.meta.pop(PROXY_META, None)
        request.meta.pop(POOL_META, None)
        if (request.meta.get("site") or request.meta.get(ROBOTS_OF) or self.site) != self.site:
            return
        pool, proxy = await self._take(request)
        number = request.meta.get("retry_times", 0) + 1
        self._attempts[request] = _Attempt(request, pool, proxy, proxy.authorization, number, time.time())
        request.meta[PROXY_META] = proxy.name
        request.meta[POOL_META] = pool.name
        if proxy.url is not None:
            host = urlparse_cached(request).hostname or ""
            # Each proxy has the delay and the concurrency of the site's host to itself.
            slot = f"{host} via {proxy.name}"
            if host in self._slots:
                self.crawler.engine.downloader.per_slot_settings[slot] = self._slots[host]
            request.meta["download_slot"] = slot
            request.meta["proxy"] = proxy.url
            if proxy.authorization is not None:
                request.headers[b"Proxy-Authorization"] = proxy.authorization

    async def _take(self, request: Request) -> tuple[ProxyPool, Proxy]:
        only = request.meta.get("proxy_pool")
        pools = [pool for pool in self.order if pool.accepts(request.url) and only in {None, pool.name}]
        if not pools:
            raise AttemptsFailedError(f"no pool of {self.site} takes {request.url}" + (f" via {only}" if only else ""))
        while True:
            stopped = self.blocks.circuit.refusal(self.site)
            if stopped is not None:
                raise SiteStopped(stopped)
            self._stop_if_exhausted(request)
            if not any(pool.is_usable() for pool in pools):
                raise AttemptsFailedError(f"every proxy of {', '.join(pool.name for pool in pools)} is in quarantine")
            found = self._choose(pools, request.meta.get(_TRIED, ()))
            if found is not None:
                return found
            if not self.crawler.engine.running:
                raise SiteStopped("the crawl is ending")
            with suppress(TimeoutError):
                async with asyncio.timeout(_FREE_CHECK_SECONDS):
                    await self._freed.wait()

    def _choose(self, pools: list[ProxyPool], tried: list[str]) -> tuple[ProxyPool, Proxy] | None:
        """Return a proxy of the first pool that has one, not one of the earlier attempts while there are others; None while it is busy."""
        for avoided in (tried, ()):
            for pool in pools:
                if pool.is_usable(avoided):
                    proxy = pool.take(avoided, self._concurrency)
                    return None if proxy is None else (pool, proxy)
        return None

    # --- Answers -------------------------------------------------------------------------------------------------------

    def response_downloaded(self, response: Response, request: Request) -> None:
        """Count the bytes of HTTP as they crossed the wire, where bodies are still compressed."""
        if request in self._attempts:
            name = f"proxy/{self.site}/{request.meta[POOL_META]}/"
            size = get_status_size(response.status) + get_header_size(response.headers) + 4 + len(response.body)
            self.crawler.stats.inc_value(f"{name}bytes_in", size)
            self.crawler.stats.inc_value(f"{name}bytes_out", len(request_httprepr(request)))

    async def process_response(self, request: Request, response: Response) -> Request | Response:
        """Return the answer, or the request for another attempt. Raises SiteStopped or AttemptsFailedError."""
        attempt = self._attempts.pop(request, None)
        if attempt is None:
            return response
        status, is_proxied = response.status, attempt.proxy.url is not None
        if is_proxied and status == _PROXY_AUTHENTICATION:
            return await self._failed(attempt, f"{status} from the proxy", certain=True)
        if DAMAGED in response.flags:
            return await self._failed(attempt, f"{status} {DAMAGED}")
        if self.policy.response_is_ban(request, response):
            unknown = Refusal("refusal", "the ban policy says so", USUAL_PAUSE)
            return await self._refused(attempt, response, refusal_of(request, response) or unknown)
        if is_proxied and status in _GATEWAY_ERRORS:
            return await self._failed(attempt, f"{status}")
        if status in self.error_statuses:
            self._end(attempt, "error", f"{status}")
            return await self._retry(attempt, f"{status}", wait=True)
        self._answered(attempt, status)
        return response

    async def process_exception(self, request: Request, exception: Exception) -> Request | None:
        """Return the request for another attempt. Raises SiteStopped or AttemptsFailedError, so that a proxy's own words are never shown."""
        attempt = self._attempts.pop(request, None)
        if attempt is None:
            return None
        why = describe_failure(exception)
        if not self.policy.exception_is_ban(request, exception):
            self._end(attempt, "cancelled", why)
            return None
        return await self._failed(attempt, why, certain=attempt.proxy.url is not None and is_proxys_own(exception))

    def _end(self, attempt: _Attempt, outcome: str, why: str) -> None:
        """Log and count an attempt, and remove from the request what was set for it."""
        request, proxy = attempt.request, attempt.proxy
        number, most = attempt.number, self._max_attempts(request)
        self._log(
            logging.INFO, "attempt %d/%d %s %s via %s → %s", number, most, request.method, request.url, proxy.name, why
        )
        self.crawler.stats.inc_value(f"proxy/{self.site}/{attempt.pool.name}/{outcome}")
        request.headers.pop(b"Proxy-Authorization", None)
        for name in _ATTEMPT_META:
            request.meta.pop(name, None)
        proxy.in_flight -= 1
        self._wake()

    def _answered(self, attempt: _Attempt, status: int) -> None:
        self._end(attempt, "answered", f"{status}")
        # A site may send its robots.txt to a proxy that it refuses pages.
        if "site" in attempt.request.meta:
            attempt.proxy.doubts = attempt.proxy.renewals = 0
            self._failing.clear()
            self.quarantines.answered(attempt.pool, attempt.proxy, attempt.sent_at)
            # A missing page does not show that the site's pages are as expected.
            if status == _OK:
                self._last_refusal = None
                self.blocks.answered(self.site)

    async def _refused(self, attempt: _Attempt, response: Response, refusal: Refusal) -> Request:
        """Take a refusal. An unexpected page casts doubt on the proxy, and on the site when there are several."""
        request, is_unexpected = attempt.request, refusal.kind == "throttle"
        why = f"{response.status} " + (
            f"unexpected: {refusal.reason}" if is_unexpected else refusal.kind.replace("_", " ")
        )
        self._end(attempt, refusal.kind, why)
        if is_unexpected:
            self._doubt(attempt, why)
        else:
            self._last_refusal = refusal
            asked = refusal.kind == "rate_limit" and b"Retry-After" in response.headers
            self._ban(attempt, why, refusal.pause_seconds if asked else 0.0)
        secrets = credentials_in(attempt.authorization)
        await self.blocks.keep_page(self.site, refusal, attempt.proxy.name, response, secrets)
        if is_unexpected and self.blocks.is_unexpected_again(self.site, request.url):
            raise SiteStopped(self.blocks.stop(self.site, request, refusal.reason, THROTTLE_PAUSE))
        self._stop_if_exhausted(request)
        return await self._retry(attempt, why, wait=is_unexpected)

    async def _failed(self, attempt: _Attempt, why: str, *, certain: bool = False) -> Request:
        """Take a failure. `certain`: it is certainly that of the proxy."""
        self._end(attempt, "failed", why)
        self._failing.add(attempt.proxy.name)
        if certain:
            self._ban(attempt, why)
        else:
            self._doubt(attempt, why)
        self._stop_if_exhausted(attempt.request)
        return await self._retry(attempt, why, wait=self._is_sites_fault(attempt.pool))

    # --- What follows --------------------------------------------------------------------------------------------------

    def _is_sites_fault(self, pool: ProxyPool) -> bool:
        proxies = sum(len(one.members) for one in self.order)
        has_others = any(one.is_usable() for one in self.order if one is not pool)
        return len(self._failing) >= min(_SITES_FAULT, proxies) and not has_others

    def _doubt(self, attempt: _Attempt, why: str) -> None:
        attempt.proxy.doubts += 1
        if attempt.proxy.doubts >= _MAX_DOUBTS and not self._is_sites_fault(attempt.pool):
            self._ban(attempt, why)

    def _ban(self, attempt: _Attempt, why: str, least: float = 0.0) -> None:
        """Replace a session that is refused, or quarantine the proxy, and let its pool react when it was the last one."""
        pool, proxy = attempt.pool, attempt.proxy
        if proxy.authorization != attempt.authorization:
            return  # the session has been replaced meanwhile
        proxy.doubts = 0
        if pool.renew(proxy):
            proxy.renewals += 1
            if proxy.renewals <= _MAX_RENEWALS:
                return
        seconds = self.quarantines.ban(pool, proxy, why, least)
        if seconds is None:
            return
        self._log(logging.INFO, "%s is not used for %s for %.0f minutes (%s)", proxy.name, self.site, seconds / 60, why)
        if not pool.is_usable():
            # Not awaited: a control port that is silent would hold the request for seconds.
            task = asyncio.get_running_loop().create_task(pool.on_exhausted())
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    def _stop_if_exhausted(self, request: Request) -> None:
        """Stop the site when every proxy is in quarantine. Raises SiteStopped."""
        if any(pool.is_usable() for pool in self.order):
            return
        why = f"no proxy is left of {', '.join(pool.name for pool in self.order)}"
        if self._last_refusal is not None:
            why, pause = f"{self._last_refusal.reason}; {why}", self._last_refusal.pause_seconds
        else:
            ends = min(pool.proxies[name].next_check for pool in self.order for name in pool.dead)
            pause = max(ends - time.time(), _MIN_STOP_SECONDS)
        raise SiteStopped(self.blocks.stop(self.site, request, why, pause))

    async def _retry(self, attempt: _Attempt, why: str, *, wait: bool) -> Request:
        """Return the request for another attempt, after a pause if `wait`. Raises AttemptsFailedError."""
        assert self.crawler.spider is not None  # noqa: S101 - set before the first request
        request = attempt.request
        history = [*request.meta.get(_HISTORY, ()), f"{attempt.proxy.name} → {why}"]
        retry = get_retry_request(
            request,
            spider=self.crawler.spider,
            reason=why.partition(":")[0],  # it names a stat, so without the number of bytes of an unexpected page
            max_retry_times=self._max_attempts(request) - 1,
            give_up_log_level=logging.DEBUG,
        )
        if retry is None:
            raise AttemptsFailedError("; ".join(history))
        tried = [*request.meta.get(_TRIED, ()), attempt.proxy.name]
        retry.meta.update({_TRIED: tried, _HISTORY: history})
        if wait:
            await wait_before(retry, self.crawler.settings)
        return retry

    def _max_attempts(self, request: Request) -> int:
        own: int = request.meta.get("max_retry_times", self.attempts) + 1
        return min(self.attempts, own)

    def _log(self, level: int, sentence: str, *arguments: object) -> None:
        logger.log(level, sentence, *arguments, extra={"spider": self.crawler.spider})
