"""Sends requests through proxies. It sees how each attempt ended, before redirects are followed."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from scrapy import signals
from scrapy.downloadermiddlewares.retry import get_retry_request
from scrapy.downloadermiddlewares.stats import get_header_size, get_status_size
from scrapy.exceptions import CloseSpider, IgnoreRequest, NotConfigured
from scrapy.utils.httpobj import urlparse_cached
from scrapy.utils.request import request_httprepr

from moviecrawler.basics.errors import FrontierError
from moviecrawler.politeness.backoff import wait_before
from moviecrawler.politeness.blocks import USUAL_PAUSE, Refusal
from moviecrawler.politeness.gate import Closed
from moviecrawler.politeness.meta import DAMAGED, POOL_META, PROBE_META, PROXY_META, ROBOTS_OF
from moviecrawler.politeness.middleware import (
    PolitenessMiddleware,
    base_of,
    giving_back,
    politeness_of,
    refusal_of,
)
from moviecrawler.proxies.policy import SiteBanPolicy, describe_failure, is_proxys_own
from moviecrawler.proxies.pools import ProxyPoolError
from moviecrawler.proxies.quarantines import Quarantines
from moviecrawler.proxies.redaction import redact
from moviecrawler.proxies.site_pools import SitePools
from moviecrawler.scrapy_internals import PROXY_META as SCRAPYS_PROXY_META
from moviecrawler.scrapy_internals import is_closing
from moviecrawler.sites import SITES

if TYPE_CHECKING:
    from collections.abc import Collection
    from typing import Self

    from rotating_proxies.policy import BanDetectionPolicy
    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.http import Response

    from moviecrawler.politeness.ledger import Ledger
    from moviecrawler.proxies.pools import Proxy, ProxyPool
    from moviecrawler.sites import Site

logger = logging.getLogger(__name__)

_TRIED = "proxies_tried"
_HISTORY = "attempts"
"""Keys of a request's `meta`: the proxies of its earlier attempts, and how those ended."""
_PASSED = "pools_passed"
"""Key of `meta`: the names of pools through which the request has failed as often as it may."""
_REACHING = "reaching_proxy"
"""Key of `meta`: the proxy for the last attempt, which has reached the site a moment ago."""
_OK = 200
_PROXY_AUTHENTICATION = 407
_GATEWAY_ERRORS = frozenset({502, 504})
"""Statuses by which a proxy, or a site behind one, reports that it got no response."""
_MAX_POSSIBLE_FAILURES = 2
"""Failures in a row, each perhaps the proxy's fault, after which it is banned."""
_MAX_RENEWALS = 2
"""Bans in a row that renew a session; the next one quarantines it."""
_MAX_FAILING_PROXIES = 3
"""Proxies that fail in a row, after which the site is to blame, unless another pool is left."""
_BUSY_CHECK_SECONDS = 0.05


class AttemptsFailedError(IgnoreRequest):
    """A request failed as often as it may be sent; the message says how each attempt ended."""


class ProxyMiddleware:
    """Send each request of a site through a proxy that the site does not refuse.

    The site is stopped when none is left. A subclass may have another `policy`.
    """

    policy: BanDetectionPolicy = SiteBanPolicy()
    politeness: PolitenessMiddleware

    def __init__(self, crawler: Crawler, pools: SitePools, site: Site) -> None:
        self.crawler = crawler
        self.site = site
        self.order = pools.orders[site]
        self.attempts = pools.options.attempts
        self.error_statuses = {
            int(status) for status in crawler.settings.getlist("RETRY_HTTP_CODES")
        }
        ledger: Ledger = crawler.spider.backend  # type: ignore[union-attr]
        self.quarantines = Quarantines(site, self.order, ledger)
        self._log = logging.LoggerAdapter(logger, {"spider": crawler.spider})
        self._attempts: dict[Request, tuple[ProxyPool, Proxy]] = {}
        self._last_refusal: Refusal | None = None  # since the site's last proper page
        # The proxies that failed since the site's last page, and why each failed last.
        self._failing: dict[str, str] = {}
        self._reaching = ""  # the proxy through which the site answered last

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Read the settings of `SitePools`.

        Raises NotConfigured when requests to the spider's site are sent directly.
        """
        pools = SitePools.from_settings(crawler.settings)
        site: str | None = getattr(crawler.spider, "site", None)
        if site is None or site not in pools.orders:
            raise NotConfigured  # without a reason, which Scrapy would log as a warning
        middleware = cls(crawler, pools, site)
        crawler.signals.connect(middleware.spider_opened, signals.spider_opened)
        crawler.signals.connect(middleware.quarantines.close, signals.spider_closed)
        crawler.signals.connect(middleware.response_downloaded, signals.response_downloaded)
        return middleware

    async def spider_opened(self) -> None:
        """Check that the pools can be used, and read the quarantines that nodes share.

        Raises CloseSpider.
        """
        self.politeness = politeness_of(self.crawler)
        self.politeness.has_proxies = True
        try:
            for pool in self.order:
                await pool.open(self.crawler.settings[SITES[self.site].home_setting])
            await self.quarantines.start()
        except (ProxyPoolError, FrontierError) as error:
            why = f"proxies can't be used: {error}"
            self._log.error("%s", why)
            self.crawler.stats.set_value("crawl/cause", why)
            raise CloseSpider("proxies_unreachable") from None

    # --- Requests ---------------------------------------------------------------------------------

    async def process_request(self, request: Request) -> None:
        """Choose a proxy; wait while all usable ones are busy.

        Raises Closed or AttemptsFailedError.
        """
        request.meta.pop(PROXY_META, None)
        request.meta.pop(POOL_META, None)
        if (request.meta.get("site") or request.meta.get(ROBOTS_OF) or self.site) != self.site:
            return
        pool, proxy = await self._take(request)
        try:
            if ROBOTS_OF not in request.meta:
                with giving_back(request):
                    request.meta[PROBE_META] = await self.politeness.gate.take_turn(
                        base_of(request), proxy.name, is_probe=request.meta.get(PROBE_META, False)
                    )
        except Closed:
            proxy.is_busy = False
            raise
        self._attempts[request] = pool, proxy
        request.meta[PROXY_META] = proxy.name
        request.meta[POOL_META] = pool.name
        if proxy.url is not None:
            host = urlparse_cached(request).hostname or ""
            # A slot of its own, so that one proxy's queue does not delay another's.
            request.meta["download_slot"] = f"{host} via {proxy.name}"
            request.meta["proxy"] = proxy.url
            if proxy.authorization is not None:
                request.headers[b"Proxy-Authorization"] = proxy.authorization

    async def _take(self, request: Request) -> tuple[ProxyPool, Proxy]:
        """Return a proxy of the first usable pool.

        The proxies of earlier attempts are used only when there is no other.
        """
        while True:
            self._check_open(request)
            self._stop_if_exhausted(request)
            pool, avoided = self._choose_pool(request)
            if (proxy := pool.take(avoided)) is not None:
                return pool, proxy
            await asyncio.sleep(_BUSY_CHECK_SECONDS)

    def _choose_pool(self, request: Request) -> tuple[ProxyPool, Collection[str]]:
        """Return a pool with a usable proxy, and the names of the proxies that are not to be used.

        Raises AttemptsFailedError.
        """
        pools = self._pools_of(request)
        tried = request.meta.get(_TRIED, ())
        passed = request.meta.get(_PASSED, ())
        later = {*tried, *self._failing}
        reaching = request.meta.get(_REACHING, "")
        if ROBOTS_OF in request.meta and self._reaching not in later:
            reaching = self._reaching
        choices: list[tuple[ProxyPool, Collection[str]]] = [
            *((pool, pool.members.keys() - {reaching}) for pool in pools if reaching),
            *((pool, later) for pool in pools if pool.name not in passed),
            *((pool, tried) for pool in pools if pool.name not in passed),
            *((pool, tried) for pool in pools),
            *((pool, ()) for pool in pools),
        ]
        for pool, avoided in choices:
            if pool.is_usable(avoided):
                return pool, avoided
        only = request.meta.get("proxy_pool") or "any pool"
        raise AttemptsFailedError(f"no proxy of {only} may be used for {request.url}")

    def _pools_of(self, request: Request) -> list[ProxyPool]:
        only = request.meta.get("proxy_pool")
        return [
            pool for pool in self.order if pool.accepts(request.url) and only in {None, pool.name}
        ]

    def _check_open(self, request: Request) -> None:
        if ROBOTS_OF not in request.meta:
            with giving_back(request):
                self.politeness.gate.check_open()
        elif is_closing(self.crawler.engine):
            raise Closed("the crawl ends")

    # --- Answers ----------------------------------------------------------------------------------

    def response_downloaded(self, response: Response, request: Request) -> None:
        """Count the bytes as they were sent, while bodies are still compressed."""
        if request in self._attempts:
            name = f"proxy/{self.site}/{request.meta[POOL_META]}/"
            head = get_status_size(response.status) + get_header_size(response.headers) + 4
            self.crawler.stats.inc_value(f"{name}bytes_in", head + len(response.body))
            self.crawler.stats.inc_value(f"{name}bytes_out", len(request_httprepr(request)))

    async def process_response(self, request: Request, response: Response) -> Request | Response:
        """Return the response without the proxy's credentials, or the request for another attempt.

        Raises Closed or AttemptsFailedError.
        """
        if request not in self._attempts:
            return response
        _, proxy = self._attempts[request]
        response = redact(response, proxy.authorization)
        status = response.status
        is_proxied = "proxy" in request.meta
        if is_proxied and status == _PROXY_AUTHENTICATION:
            return await self._failed(request, f"{status} from the proxy", certain=True)
        if DAMAGED in response.flags:
            return await self._failed(request, f"{status} {DAMAGED}")
        if self.policy.response_is_ban(request, response):
            unknown = Refusal("refusal", "the ban policy says so", USUAL_PAUSE)
            return await self._refused(request, response, refusal_of(request, response) or unknown)
        if is_proxied and status in _GATEWAY_ERRORS:
            return await self._failed(request, f"{status}")
        if status in self.error_statuses:
            self._end(request, "error", f"{status}")
            return await self._retry(request, f"{status}", wait=True)
        pool, proxy = self._end(request, "answered", f"{status}")
        self._reaching = proxy.name
        if ROBOTS_OF in request.meta and proxy.name not in self._failing:
            self._blame_proxies()
        # Only a page shows that the proxy is good: a site may refuse pages and still send its
        # robots.txt.
        if "site" in request.meta:
            proxy.possible_failures = 0
            proxy.renewals = 0
            self._failing.clear()
            self.quarantines.report_success(pool, proxy)
            # A 404 does not show that the site sends proper pages again.
            if status == _OK:
                self._last_refusal = None
                self.politeness.report_success(self.site, request)
        return response

    async def process_exception(self, request: Request, exception: Exception) -> Request | None:
        """Return the request for another attempt.

        Raises Closed or AttemptsFailedError, which never show a proxy's message.
        """
        if request not in self._attempts:
            return None
        why = describe_failure(exception)
        certain = "proxy" in request.meta and is_proxys_own(exception)
        if self.policy.exception_is_ban(request, exception):
            return await self._failed(request, why, certain=certain)
        self._end(request, "cancelled", why)
        return None

    def _end(self, request: Request, outcome: str, why: str) -> tuple[ProxyPool, Proxy]:
        """Log and count an attempt, and return its pool and proxy.

        What was set on the request for the attempt is removed.
        """
        pool, proxy = self._attempts.pop(request)
        number = f"{request.meta.get('retry_times', 0) + 1}/{self._max_attempts(request)}"
        self._log.info(
            "attempt %s %s %s via %s → %s", number, request.method, request.url, proxy.name, why
        )
        self.crawler.stats.inc_value(f"proxy/{self.site}/{pool.name}/{outcome}")
        request.headers.pop(b"Proxy-Authorization", None)
        for name in SCRAPYS_PROXY_META:
            request.meta.pop(name, None)
        if outcome != "answered":
            request.meta[_TRIED] = [*request.meta.get(_TRIED, ()), proxy.name]
            request.meta[_HISTORY] = [*request.meta.get(_HISTORY, ()), f"{proxy.name} → {why}"]
        proxy.is_busy = False
        return pool, proxy

    async def _refused(self, request: Request, response: Response, refusal: Refusal) -> Request:
        """Ban the proxy, and return the request for another one.

        A refusal does not count as an attempt, as the proxy is not used again. Nor does an
        unexpected page, unless the proxy has brought a page before, so that the request may be at
        fault.
        """
        is_unexpected = refusal.kind == "throttle"
        sign = f"unexpected: {refusal.reason}" if is_unexpected else refusal.kind.replace("_", " ")
        why = f"{response.status} {sign}"
        pool, proxy = self._end(request, refusal.kind, why)
        may_be_requests_fault = is_unexpected and proxy.name in pool.good
        has_period = refusal.kind == "rate_limit" and b"Retry-After" in response.headers
        bans = request.meta[_TRIED].count(proxy.name)
        self._ban(pool, proxy, why, refusal.pause_seconds if has_period else 0.0, bans=bans)
        await self.politeness.keep_page(self.site, refusal, proxy.name, response)
        self._last_refusal = refusal
        self._stop_if_exhausted(request)
        if may_be_requests_fault:
            return await self._retry(request, why, wait=True)
        return _sent_again(request)

    async def _failed(self, request: Request, why: str, *, certain: bool = False) -> Request:
        """Count a failed attempt.

        When it is `certain` that the proxy is to blame, it is banned, else after two in a row.
        """
        pool, proxy = self._end(request, "failed", why)
        self._failing[proxy.name] = why
        proxy.possible_failures += 1
        has_others = any(one.is_usable() for one in self.order if one is not pool)
        proxies = sum(len(one.members) for one in self.order)
        is_sites_fault = len(self._failing) >= min(_MAX_FAILING_PROXIES, proxies) and not has_others
        if certain or (proxy.possible_failures >= _MAX_POSSIBLE_FAILURES and not is_sites_fault):
            self._ban(pool, proxy, why, bans=request.meta[_TRIED].count(proxy.name))
        self._stop_if_exhausted(request)
        if certain:
            return _sent_again(request)  # no attempt of the request: the proxy is not used again
        try:
            return await self._retry(request, why, wait=is_sites_fault)
        except AttemptsFailedError as error:
            return await self._after_last_attempt(request, proxy, error)

    async def _after_last_attempt(
        self, request: Request, proxy: Proxy, error: AttemptsFailedError
    ) -> Request:
        """Find out what was at fault: the request, the network, or the proxies it was sent through.

        Returns:
            The request for one more attempt, through a proxy that reaches the site.

        Raises:
            Closed: The site can't be reached through any pool.
            AttemptsFailedError: The request fails through a proxy that reaches the site.
        """
        if ROBOTS_OF in request.meta:
            raise error
        await self.politeness.confirm_reachable(request, str(error))
        is_proven = request.meta.get(_REACHING) == proxy.name
        if is_proven or self._reaching in {"", *request.meta[_TRIED]}:
            raise error
        again = _sent_again(request)
        again.meta[_REACHING] = self._reaching
        return again

    def _blame_proxies(self) -> None:
        """Ban the proxies that have failed twice, as a robots.txt came through another one."""
        for pool in self.order:
            for name in self._failing.keys() & pool.members.keys():
                proxy = pool.members[name]
                if proxy.possible_failures >= _MAX_POSSIBLE_FAILURES:
                    self._ban(pool, proxy, self._failing[name])

    def _ban(
        self,
        pool: ProxyPool,
        proxy: Proxy,
        why: str,
        min_seconds: float = 0.0,
        *,
        bans: int = 0,
    ) -> None:
        """Renew a session, or quarantine the proxy for at least `min_seconds`.

        A request gives a session that many `bans`, which count although others get pages through
        it: so a request is not sent for ever.
        """
        proxy.possible_failures = 0
        if pool.renew(proxy):
            proxy.renewals += 1
            if max(proxy.renewals, bans) <= _MAX_RENEWALS:
                return
        seconds = self.quarantines.ban(pool, proxy, why, min_seconds)
        if seconds is not None:
            message = "%s is not used for %s for %.0f minutes (%s)"
            self._log.info(message, proxy.name, self.site, seconds / 60, why)

    def _stop_if_exhausted(self, request: Request) -> None:
        """Close the site's gate when every proxy is in quarantine.

        It is closed as refused when the site has refused a proxy since its last page, otherwise as
        unreachable from this worker.

        Raises:
            Closed: No proxy is left.
            AttemptsFailedError: No proxy is left for a robots.txt, by which the gate finds out
                whether the site can be reached again.
        """
        if any(pool.is_usable() for pool in self.order):
            return
        why = f"no proxy is left of {', '.join(pool.name for pool in self.order)}"
        refusal = self._last_refusal
        if refusal is not None:
            why = f"{refusal.reason}; {why}"
            raise self.politeness.stop(self.site, request, why, refusal.pause_seconds)
        if ROBOTS_OF in request.meta:
            raise AttemptsFailedError(why)
        with giving_back(request):
            self.politeness.gate.close_as_unreachable(base_of(request), why)

    async def _retry(self, request: Request, why: str, *, wait: bool) -> Request:
        """Return the request for another attempt, after a pause if `wait`.

        After the last attempt through a pool, it continues with the next one.

        Raises AttemptsFailedError.
        """
        assert self.crawler.spider is not None  # noqa: S101 - set before the first request
        retry = get_retry_request(
            request,
            spider=self.crawler.spider,
            # It names a stat, and what follows the colon differs from page to page.
            reason=why.partition(":")[0],
            max_retry_times=self._max_attempts(request) - 1,
            give_up_log_level=logging.DEBUG,
        )
        if retry is None:
            return self._through_next_pool(request)
        if wait:
            await wait_before(retry, self.crawler.settings)
        return retry

    def _through_next_pool(self, request: Request) -> Request:
        """Return the request for an attempt through a pool that it was not sent through as often.

        Raises AttemptsFailedError when there is none, or it has failed by its last attempt.
        """
        tried = request.meta[_TRIED]
        attempts = {
            pool.name: sum(name in pool.members for name in tried)
            for pool in self._pools_of(request)
            if pool.is_usable(tried)
        }
        left = [name for name, number in attempts.items() if number < self._max_attempts(request)]
        if not left or _REACHING in request.meta:
            raise AttemptsFailedError("; ".join(request.meta[_HISTORY]))
        again = _sent_again(request)
        again.meta[_PASSED] = [pool.name for pool in self.order if pool.name not in left]
        again.meta["retry_times"] = attempts[left[0]]
        return again

    def _max_attempts(self, request: Request) -> int:
        return min(self.attempts, int(request.meta.get("max_retry_times", self.attempts)) + 1)


def _sent_again(request: Request) -> Request:
    """Return a copy of a request that does not count as another attempt."""
    return request.replace(dont_filter=True)
