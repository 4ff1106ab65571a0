"""Sends requests through proxies, for the sites for which the operator has switched that on.

The middleware's place is where bodies are decompressed and redirects are not followed yet, so that it sees how each attempt
ended. It passes answers only to the middlewares on the engine's side, and never a refusal.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter, defaultdict
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

import redis.exceptions
from scrapy import signals
from scrapy.downloadermiddlewares.retry import get_retry_request
from scrapy.exceptions import CloseSpider, IgnoreRequest, NotConfigured
from scrapy.utils.httpobj import urlparse_cached

from moviecrawler.clock import utc_now
from moviecrawler.extract.blocks import THROTTLE_PAUSE
from moviecrawler.frontier.shared import shared_scheduler
from moviecrawler.meta import POOL_META, PROXY_META
from moviecrawler.middlewares.blocks import ROBOTS_OF, SiteBlockMiddleware, SiteStopped
from moviecrawler.middlewares.compression import DAMAGED
from moviecrawler.middlewares.refusal_samples import FOLDER, keep_sample
from moviecrawler.middlewares.retry import Backoff
from moviecrawler.proxies.health import Health
from moviecrawler.proxies.policy import UNKNOWN_REFUSAL, describe_failure, load_policy, tunnel_status
from moviecrawler.proxies.pools import ProxyPoolError
from moviecrawler.proxies.rotator import ProxyRotator, RoundRobin
from moviecrawler.proxies.shared_health import EXCHANGE_TIMEOUTS, SharedHealth
from moviecrawler.proxies.site_pools import SitePools
from moviecrawler.proxies.traffic import count_attempt
from moviecrawler.redis_client import connect, describe_error, redis_parameters
from moviecrawler.sites import SITES, page_hosts_of

if TYPE_CHECKING:
    from typing import Any, Self

    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.http import Response

    from moviecrawler.extract.blocks import Refusal
    from moviecrawler.items import Site
    from moviecrawler.proxies.pools import Proxy, ProxyPool, Route

logger = logging.getLogger(__name__)

_TRIED, _HISTORY = "exits_tried", "attempts"
"""Keys of a request's `meta`: the proxies of its earlier attempts, and how those ended."""
_ATTEMPT_META = ("proxy", "_auth_proxy", "_scheme_proxy", "download_slot", "cookiejar")
"""Keys of `meta` that are set only while an attempt is under way."""
_OK, _PROXY_AUTHENTICATION = 200, 407
_GATEWAY_TROUBLE = frozenset({502, 504})
"""Statuses of a proxy, or of a site behind one, for "no answer"."""
_MAX_RENEWALS = 2
"""Refusals in a row after which a proxy gets another address; the next one quarantines it."""
_FREE_CHECK_SECONDS = 1.0
"""Seconds between two checks for a free proxy, beside the notifications."""
_MIN_STOP_SECONDS = 60.0
"""Shortest time, in seconds, for which a site is not asked when all proxies are dead."""


class AttemptsFailedError(IgnoreRequest):
    """A request failed as often as it may be sent; the message says how each attempt ended."""


@dataclass(slots=True)
class _Attempt:
    request: Request
    proxy: Proxy
    pool: ProxyPool
    route: Route
    number: int
    sent_at: float


class _CookieJar(NamedTuple):
    """The name of a proxy's cookie jar. Shared cookies would show a site that two proxies belong together."""

    proxy: Proxy
    route: int
    """The hash of its route: no credentials are in `meta`."""


class ProxyMiddleware:
    """Sends each request of a rotating site through a proxy that the site does not refuse.

    A refusal quarantines (proxy, site), for all processes, and the request is sent through another proxy; when all proxies are
    quarantined, the site is stopped as it is without rotation. Requests of other sites pass untouched.
    """

    def __init__(self, crawler: Crawler, pools: SitePools, site: Site) -> None:
        self.crawler = crawler
        self.site = site
        self.options = pools.options
        self.pools = pools.pools
        self.order = pools.orders[site]
        self.policy = load_policy(crawler.settings)
        self.backoff = Backoff.from_settings(crawler.settings)
        self.samples = Path(crawler.settings["DATA_DIR"]) / FOLDER
        self.max_unexpected = crawler.settings.getint("BLOCK_AFTER_UNEXPECTED")
        self.error_statuses = {int(status) for status in crawler.settings.getlist("RETRY_HTTP_CODES")}
        self._slots = crawler.settings.getdict("DOWNLOAD_SLOTS")
        # Requests to these hosts are the site's, also when their `meta` does not say so, such as those for robots.txt.
        self._netlocs = {urlsplit(url).netloc.lower() for url in page_hosts_of(site, crawler.settings).values()}
        self.health = Health(self.options.quarantine, sum(len(pool.proxies) for pool in self.order))
        self.rotator = ProxyRotator(map(self._round_robin, self.order), self.health)
        self.shared: SharedHealth | None = None
        self._changed = asyncio.Event()  # set, and replaced, whenever a proxy may have become free
        self._last_refusal: Refusal | None = None  # since the site's last page as it should be
        self._renewals: Counter[str] = Counter()  # refusals in a row of proxies that got another address after each
        # Unexpected pages: URL → proxy since the site's last page as it should be, and proxy → URLs since the proxy's own.
        self._unexpected_pages: dict[str, str] = {}
        self._unexpected_by_proxy: defaultdict[str, set[str]] = defaultdict(set)
        self._ended: str | None = None  # why this worker asks the site nothing more, though others may
        self._attempts: dict[Request, _Attempt] = {}
        self._reactions: set[asyncio.Task[None]] = set()  # of pools that were exhausted, while they last

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
        return middleware

    def _round_robin(self, pool: ProxyPool) -> RoundRobin:
        usual = self.crawler.settings.getint("CONCURRENT_REQUESTS_PER_DOMAIN")
        hosts = [urlsplit(f"//{netloc}").hostname for netloc in self._netlocs]
        concurrency = min(int(self._slots.get(host, {}).get("concurrency", usual)) for host in hosts)
        run = self.options.run_residential if pool.kind == "residential" else self.options.run_datacenter
        return RoundRobin(pool, self.health, run=run, concurrency=concurrency)

    def _wake(self) -> None:
        """Wake all requests that wait for a proxy."""
        self._changed.set()
        self._changed = asyncio.Event()
        if self.shared is not None and self.health.is_urgent:
            self.shared.exchange_soon()

    # --- Start and end -------------------------------------------------------------------------------------------------

    async def spider_opened(self) -> None:
        """Check that the pools can be used, and read what other processes know. Raises CloseSpider."""
        blocks = self.crawler.get_downloader_middleware(SiteBlockMiddleware)
        assert blocks is not None  # noqa: S101 - settings.py has it
        self.blocks = blocks
        settings = self.crawler.settings
        home = settings[SITES[self.site].home_setting]
        try:
            for pool in self.order:
                await pool.open(home)
            if settings.get("REDIS_URL"):
                client = connect(settings["REDIS_URL"], **{**EXCHANGE_TIMEOUTS, **redis_parameters(settings)})
                probe_seconds = 2 * settings.getfloat("DOWNLOAD_TIMEOUT")
                self.shared = SharedHealth(client, self.site, self.health, probe_seconds, self._wake)
                await self.shared.start()
        except ProxyPoolError as error:
            self._log(logging.ERROR, "%s", error)
            raise CloseSpider("identity_unreachable") from None
        except redis.exceptions.RedisError as error:
            why = describe_error(error, "; start it, or remove REDIS_URL")
            self._log(logging.ERROR, "Redis at REDIS_URL can't be used: %s", why)
            raise CloseSpider("identity_unreachable") from None

    async def spider_closed(self) -> None:
        """Publish the rest to other processes."""
        if self._reactions:
            await asyncio.wait(self._reactions)
        if self.shared is not None:
            await self.shared.close()

    # --- Requests -----------------------------------------------------------------------------------------------------------

    async def process_request(self, request: Request) -> None:
        """Choose the proxy; wait while all usable ones are busy. Raises SiteStopped or AttemptsFailedError."""
        request.meta.pop(PROXY_META, None)
        request.meta.pop(POOL_META, None)
        site = request.meta.get("site") or request.meta.get(ROBOTS_OF)
        if site != self.site and (site or urlparse_cached(request).netloc.lower() not in self._netlocs):
            return
        proxy = await self._take(request)
        pool = self.pools[proxy.pool]
        route = pool.route(proxy)
        number = request.meta.get("retry_times", 0) + 1
        self._attempts[request] = _Attempt(request, proxy, pool, route, number, self.health.now())
        request.meta[PROXY_META] = proxy.name
        request.meta[POOL_META] = proxy.pool
        if route.url is not None:
            host = urlparse_cached(request).hostname or ""
            # Each proxy has the delay and the concurrency of the site's host to itself.
            slot = f"{host} via {proxy.name}"
            if host in self._slots:
                self.crawler.engine.downloader.per_slot_settings[slot] = self._slots[host]
            request.meta["download_slot"] = slot
            request.meta["proxy"] = route.url
            if route.authorization is not None:
                request.headers[b"Proxy-Authorization"] = route.authorization
        request.meta["cookiejar"] = _CookieJar(proxy, hash(route))

    async def _take(self, request: Request) -> Proxy:
        only = request.meta.get("proxy_pool")
        while True:
            stopped = self._ended or self.blocks.circuit.refusal(self.site)
            if stopped is not None:
                raise SiteStopped(stopped)
            found = self.rotator.take(request.url, self.health.now(), request.meta.get(_TRIED, ()), only)
            if found == "exhausted":
                raise SiteStopped(self._stop(request))
            if found == "none":
                raise AttemptsFailedError(
                    f"no pool of {self.site} takes {request.url}" + (f" via {only}" if only else "")
                )
            if found != "wait":
                return found
            if not self.crawler.engine.running:
                raise SiteStopped("the crawl is ending")
            changed = self._changed
            if self.shared is not None and self.health.wanted_probes:
                self.shared.exchange_soon()
            with suppress(TimeoutError):
                async with asyncio.timeout(_FREE_CHECK_SECONDS):
                    await changed.wait()

    # --- Responses ----------------------------------------------------------------------------------------------------------

    async def process_response(self, request: Request, response: Response) -> Request | Response:
        """Return an answer, or the request for another attempt. Raises SiteStopped or AttemptsFailedError."""
        attempt = self._attempts.pop(request, None)
        if attempt is None:
            return response
        proxied = attempt.route.url is not None
        if proxied and response.status == _PROXY_AUTHENTICATION:
            return await self._failed(attempt, response, "407 from the proxy", certain=True)
        if DAMAGED in response.flags:
            return await self._failed(attempt, response, f"{response.status} damaged")
        if self.policy.response_is_ban(request, response):
            refusal = self.policy.refusal(request, response) or UNKNOWN_REFUSAL
            if refusal.kind == "throttle":
                return await self._unexpected(attempt, response, refusal)
            return await self._refused(attempt, response, refusal)
        if proxied and response.status in _GATEWAY_TROUBLE:
            return await self._failed(attempt, response, f"{response.status}")
        if response.status in self.error_statuses:
            self._end(attempt, response, "error", f"{response.status}")
            return await self._retry(attempt, f"{response.status}", wait=True)
        self._answered(attempt, response)
        return response

    async def process_exception(self, request: Request, exception: Exception) -> Request | None:
        """Return the request for another attempt. Raises SiteStopped or AttemptsFailedError, so that a proxy's own words are never shown."""
        attempt = self._attempts.pop(request, None)
        if attempt is None:
            return None
        why = describe_failure(exception)
        if not self.policy.exception_is_ban(request, exception):
            self._end(attempt, None, "cancelled", why)
            return None
        certain = attempt.route.url is not None and (
            tunnel_status(exception) == _PROXY_AUTHENTICATION or why in {"connection refused", "host not found"}
        )
        return await self._failed(attempt, None, why, certain=certain)

    def _end(self, attempt: _Attempt, response: Response | None, outcome: str, why: str, reached: bool = True) -> None:
        """Count an attempt, and remove from the request what was set for it."""
        request = attempt.request
        self._log(
            logging.INFO,
            "attempt %d/%d %s %s via %s → %s",
            *(attempt.number, self._max_attempts(request), request.method, request.url, attempt.proxy.name, why),
        )
        stats, sent = self.crawler.stats, request if reached else None
        count_attempt(stats, self.site, attempt.proxy.pool, outcome, sent, response)
        for header in (b"Proxy-Authorization", b"Cookie"):
            request.headers.pop(header, None)
        for name in _ATTEMPT_META:
            request.meta.pop(name, None)
        self.rotator.release(attempt.proxy)
        self._wake()

    def _answered(self, attempt: _Attempt, response: Response) -> None:
        proxy = attempt.proxy
        # A site may send its robots.txt to a proxy that it refuses pages.
        if "site" in attempt.request.meta:
            self.health.succeeded(proxy.id, attempt.request.meta.get("download_latency", 0.0), attempt.sent_at)
            self._renewals.pop(proxy.id, None)
            # A missing page does not show that the site's pages are as expected.
            if response.status == _OK:
                self._last_refusal = None
                self._unexpected_pages.clear()
                self._unexpected_by_proxy.pop(proxy.id, None)
                self.blocks.circuit.answered(self.site)
        self._end(attempt, response, "answered", f"{response.status}")

    async def _refused(self, attempt: _Attempt, response: Response, refusal: Refusal) -> Request:
        proxy = attempt.proxy
        self.health.refused(proxy.id)
        self._last_refusal = refusal
        why = f"{response.status} {refusal.kind.replace('_', ' ')}"
        self._end(attempt, response, refusal.kind, why)
        if not self._renew(attempt):
            asked = refusal.kind == "rate_limit" and b"Retry-After" in response.headers
            self._quarantine(attempt, why, refusal.pause_seconds if asked else 0.0)
        await self._sample(attempt, response, refusal)
        self._stop_if_exhausted(attempt.request)
        return await self._retry(attempt, why)

    async def _unexpected(self, attempt: _Attempt, response: Response, refusal: Refusal) -> Request:
        proxy = attempt.proxy
        self.health.refused(proxy.id)
        self._unexpected_pages[attempt.request.url] = proxy.id
        self._unexpected_by_proxy[proxy.id].add(attempt.request.url)
        why = f"{response.status} unexpected: {refusal.reason}"
        self._end(attempt, response, refusal.kind, why)
        if len(self._unexpected_by_proxy[proxy.id]) >= self.max_unexpected:
            del self._unexpected_by_proxy[proxy.id]
            self._last_refusal = refusal
            self._quarantine(attempt, why, 0.0)
        await self._sample(attempt, response, refusal)
        proxies = len(set(self._unexpected_pages.values()))
        if proxies >= self.max_unexpected:
            # From that many proxies, the site is the cause.
            why = f"{refusal.reason} from {proxies} proxies in a row"
            raise SiteStopped(self.blocks.stop(self.site, attempt.request, why, THROTTLE_PAUSE))
        self._stop_if_exhausted(attempt.request)
        return await self._retry(attempt, why, wait=True)

    async def _failed(
        self, attempt: _Attempt, response: Response | None, why: str, *, certain: bool = False
    ) -> Request:
        proxy = attempt.proxy
        now = self.health.now()
        self._end(attempt, response, "failed", why, reached=not certain)
        sites_fault = not self.rotator.has_others(proxy, now)
        renewed = not certain and self._renew(attempt)
        if self.health.failed(proxy.id, why, now, sites_fault=sites_fault, certain=certain, renewed=renewed):
            self._quarantined(attempt)
        self._stop_if_exhausted(attempt.request)
        return await self._retry(attempt, why, wait=self.health.in_trouble)

    # --- What follows --------------------------------------------------------------------------------------------------

    def _renew(self, attempt: _Attempt) -> bool:
        """Give a proxy that got no answer another address, if it can have one; return whether it may be used at once."""
        if attempt.pool.route(attempt.proxy) != attempt.route:
            return True  # it got another one meanwhile
        if not attempt.pool.renew(attempt.proxy):
            return False
        self._delete_old_cookies()
        self._renewals[attempt.proxy.id] += 1
        return self._renewals[attempt.proxy.id] <= _MAX_RENEWALS

    def _delete_old_cookies(self) -> None:
        """Delete the cookie jars of routes that were left. Answers that were on their way fill them again, until the next time."""
        if self.crawler.settings.getbool("COOKIES_ENABLED"):
            from scrapy.downloadermiddlewares.cookies import CookiesMiddleware  # noqa: PLC0415 - most crawls do without

            cookies = self.crawler.get_downloader_middleware(CookiesMiddleware)
            jars = cookies.jars if cookies is not None else {}
            for jar in list(jars):
                if isinstance(jar, _CookieJar) and hash(self.pools[jar.proxy.pool].route(jar.proxy)) != jar.route:
                    del jars[jar]

    def _quarantine(self, attempt: _Attempt, reason: str, least: float) -> None:
        if self.health.quarantine(attempt.proxy.id, reason, self.health.now(), least):
            self._quarantined(attempt)

    def _quarantined(self, attempt: _Attempt) -> None:
        """Say that a proxy is in quarantine, and let its pool react when it was the last one."""
        proxy = attempt.proxy
        one, now = self.health.quarantines[proxy.id], self.health.now()
        self._log(
            logging.INFO,
            "%s is not used for %s for %.0f minutes (%s)",
            *(proxy.name, self.site, (one.until - now) / 60, one.reason),
        )
        self._wake()
        if self.rotator.is_exhausted(now, attempt.pool.name):
            # Not awaited: a control port that is silent would hold the request for seconds.
            reaction = asyncio.get_running_loop().create_task(attempt.pool.on_exhausted())
            self._reactions.add(reaction)
            reaction.add_done_callback(self._reactions.discard)  # asyncio logs what it raises

    def _stop_if_exhausted(self, request: Request) -> None:
        if self.rotator.is_exhausted(self.health.now()):
            raise SiteStopped(self._stop(request))

    def _stop(self, request: Request) -> str:
        """Stop the site, as no proxy is left; return why. Stop this worker only, where others may have proxies."""
        pools = ", ".join(pool.name for pool in self.order)
        pause = min((one.until for one in self.health.quarantines.values()), default=0.0) - self.health.now()
        why = f"no proxy is left of {pools}"
        if self._last_refusal is not None:
            why, pause = f"{self._last_refusal.reason}; {why}", self._last_refusal.pause_seconds
        if not self.options.worker_pool or shared_scheduler(self.crawler) is None:
            return self.blocks.stop(self.site, request, why, max(pause, _MIN_STOP_SECONDS))
        if self._ended is None:
            self._ended = f"{self.site} refused us ({why}); this worker has no other pool, and ends"
            self._log(logging.ERROR, "%s", self._ended)
            closing = self.crawler.engine.close_spider_async(reason="pool_exhausted")
            self._closing = asyncio.get_running_loop().create_task(closing)
        return self._ended

    async def _retry(self, attempt: _Attempt, why: str, *, wait: bool = False) -> Request:
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
            await self.backoff.wait(retry)
        return retry

    def _max_attempts(self, request: Request) -> int:
        """Return how many attempts a request may have."""
        own: int = request.meta.get("max_retry_times", self.options.attempts) + 1
        return min(self.options.attempts, own)

    async def _sample(self, attempt: _Attempt, response: Response, refusal: Refusal) -> None:
        site, via, secrets = self.site, attempt.proxy.name, attempt.route.secrets
        await asyncio.to_thread(keep_sample, self.samples, site, refusal.kind, via, response, utc_now(), secrets)

    def _log(self, level: int, sentence: str, *arguments: object) -> None:
        logger.log(level, sentence, *arguments, extra={"spider": self.crawler.spider})
