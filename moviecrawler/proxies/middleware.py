"""From where each request goes out, on the sites for which the operator has switched that on.

This stands where bodies are decompressed and redirects are not yet followed, so that it is told how every attempt ended. What
it hands on to the middlewares on the engine's side is an answer; a refusal never gets that far.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter, defaultdict
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING
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
from moviecrawler.middlewares.hangs import reading
from moviecrawler.middlewares.refusal_samples import FOLDER, keep_sample
from moviecrawler.middlewares.retry import Backoff
from moviecrawler.proxies.health import Health
from moviecrawler.proxies.options import HOME_SETTINGS, ProxyOptions
from moviecrawler.proxies.policy import UNKNOWN_REFUSAL, load_policy, trouble, tunnel_status
from moviecrawler.proxies.pools import ProxyPoolError
from moviecrawler.proxies.rotator import ProxyRotator, RoundRobin
from moviecrawler.proxies.shared_health import EXCHANGE_TIMEOUTS, SharedHealth
from moviecrawler.proxies.traffic import Traffic
from moviecrawler.redis_client import connect, describe_error, redis_parameters

if TYPE_CHECKING:
    from collections.abc import Coroutine
    from typing import Any, Self

    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.http import Response

    from moviecrawler.extract.blocks import Refusal
    from moviecrawler.items import Site
    from moviecrawler.proxies.options import Identity
    from moviecrawler.proxies.pools import Proxy, ProxyPool, Route

logger = logging.getLogger(__name__)

_TRIED, _HISTORY = "exits_tried", "attempts"
"""In a request's `meta`: the exits of its earlier attempts by name, and how those ended."""
_OF_AN_ATTEMPT = ("proxy", "_auth_proxy", "_scheme_proxy", "download_slot", "cookiejar")
"""What stands in `meta` only while an attempt is on its way."""
_OK, _PROXY_AUTHENTICATION = 200, 407
_GATEWAY_TROUBLE = frozenset({502, 504})
"""Statuses by which a proxy, or a site behind one, says that nothing came back."""
_FRESH_CIRCUITS = 2
"""Refusals in a row after which another address is tried at once; then the exit rests."""
_LOOK_AGAIN = 1.0
"""Seconds between two looks whether an exit has become free, when nothing says so."""
_LAST_WORK = 15.0
"""Seconds at the end for what a pool has still to do."""
_SHORTEST_STOP = 60.0
"""Seconds that a site is left alone when all exits are dead."""


class AttemptsFailedError(IgnoreRequest):
    """A request was sent from as many exits as it may be, in vain; the message says how each attempt ended."""


@dataclass(slots=True)
class _Desk:
    """What there is to decide by, for one site."""

    site: Site
    health: Health
    rotation: ProxyRotator
    shared: SharedHealth | None = None
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    """Set, and replaced, whenever an exit may have become free."""
    last_refusal: Refusal | None = None
    """Since the site's last page as it should be."""
    renewed: Counter[str] = field(default_factory=Counter)
    """Refusals in a row of exits that could take another address each time."""
    unexpected: dict[str, str] = field(default_factory=dict)
    """URL → exit, of the unexpected pages since the site's last page as it should be."""
    unexpected_of: defaultdict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    """Proxy → URLs, of those since the exit's own last one."""
    ended: str | None = None
    """Why this worker asks the site nothing more, though others may."""

    def tell(self) -> None:
        """Wake all requests that wait for an exit."""
        self.changed.set()
        self.changed = asyncio.Event()
        if self.shared is not None and (self.health.urgent or self.health.wanted):
            self.shared.hurry()


@dataclass(slots=True)
class _Attempt:
    desk: _Desk
    exit: Proxy
    pool: ProxyPool
    route: Route
    number: int
    sent_at: float
    identity: Identity | None


class ProxyMiddleware:
    """Sends each request of a rotating site from an exit of its pools, and takes exits out that the site refuses.

    A refusal quarantines (exit, site), for all processes, and the request is sent from another exit; when all exits of all
    pools are quarantined, the site is stopped as it is without rotation. Requests of other sites pass untouched.
    """

    def __init__(self, crawler: Crawler, options: ProxyOptions) -> None:
        self.crawler = crawler
        self.options = options
        self.policy = load_policy(crawler.settings)
        self.backoff = Backoff.from_settings(crawler.settings)
        self.traffic = Traffic(crawler.stats)
        self.samples = Path(crawler.settings["DATA_DIR"]) / FOLDER
        self.most_unexpected = crawler.settings.getint("BLOCK_AFTER_UNEXPECTED")
        self.error_statuses = {int(status) for status in crawler.settings.getlist("RETRY_HTTP_CODES")}
        self._slots = crawler.settings.getdict("DOWNLOAD_SLOTS")
        # Also of requests that don't say so, as those for robots.txt.
        self._sites: dict[str, Site] = {
            urlsplit(crawler.settings[name]).netloc.lower(): site
            for name, site in HOME_SETTINGS.items()
            if site in options.orders
        }
        self._desks: dict[str, _Desk] = {site: self._desk(site) for site in options.orders}
        self._attempts: dict[Request, _Attempt] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Read what `ProxyOptions` reads. Raises NotConfigured where the spider's site is asked directly."""
        options = ProxyOptions.from_settings(crawler.settings)
        if getattr(crawler.spider, "site", None) not in options.orders:
            raise NotConfigured  # without a reason, which Scrapy would warn of: not to rotate is no mistake
        middleware = cls(crawler, options)
        crawler.signals.connect(middleware.spider_opened, signals.spider_opened)
        crawler.signals.connect(middleware.spider_closed, signals.spider_closed)
        return middleware

    def _desk(self, site: Site) -> _Desk:
        settings = self.crawler.settings
        hosts = [urlsplit(f"//{netloc}").hostname for netloc, one in self._sites.items() if one == site]
        usual = settings.getint("CONCURRENT_REQUESTS_PER_DOMAIN")
        room = min(int(self._slots.get(host, {}).get("concurrency", usual)) for host in hosts)
        pools = self.options.orders[site]
        health = Health(self.options.quarantine, sum(len(pool.exits) for pool in pools))
        rings = []
        for pool in pools:
            run = self.options.run_residential if pool.kind == "residential" else self.options.run_datacenter
            rings.append(RoundRobin(pool, health, run=run, room=room))
        return _Desk(site, health, ProxyRotator(rings))

    # --- Start and end -------------------------------------------------------------------------------------------------

    async def spider_opened(self) -> None:
        """Make sure that the pools can be used, and learn what other processes know. Raises CloseSpider."""
        blocks = self.crawler.get_downloader_middleware(SiteBlockMiddleware)
        assert blocks is not None  # noqa: S101 - settings.py has it
        self.blocks = blocks
        settings = self.crawler.settings
        site = self.crawler.spider.site  # type: ignore[union-attr]
        desk = self._desks[site]
        home = next(settings[name] for name, one in HOME_SETTINGS.items() if one == site)
        try:
            for pool in self.options.orders[site]:
                await pool.open(home)
            if settings.get("REDIS_URL"):
                client = connect(settings["REDIS_URL"], **{**EXCHANGE_TIMEOUTS, **redis_parameters(settings)})
                desk.shared = SharedHealth(
                    client, site, desk.health, 2 * settings.getfloat("DOWNLOAD_TIMEOUT"), desk.tell
                )
                await desk.shared.start()
        except ProxyPoolError as error:
            self._log(logging.ERROR, "%s", error)
            raise CloseSpider("identity_unreachable") from None
        except redis.exceptions.RedisError as error:
            why = describe_error(error, "; start it, or remove REDIS_URL")
            self._log(logging.ERROR, "Redis at REDIS_URL can't be used: %s", why)
            raise CloseSpider("identity_unreachable") from None

    async def spider_closed(self) -> None:
        """Tell other processes the rest, and log the totals."""
        for desk in self._desks.values():
            if desk.shared is not None:
                await desk.shared.close()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=_LAST_WORK)
        for line in self.traffic.totals():
            self._log(logging.INFO, "%s", line)

    # --- Out -----------------------------------------------------------------------------------------------------------

    async def process_request(self, request: Request) -> None:
        """Choose the exit, waiting while all that may be used are busy. Raises SiteStopped or AttemptsFailedError."""
        request.meta.pop(PROXY_META, None)
        request.meta.pop(POOL_META, None)
        named = request.meta.get("site") or request.meta.get(ROBOTS_OF)
        site = named or self._sites.get(urlparse_cached(request).netloc.lower())
        desk = self._desks.get(site) if site else None
        if desk is None:
            return
        exit_ = await self._take(desk, request)
        pool = self.options.pools[exit_.pool]
        route = pool.route(exit_)
        number = request.meta.get("retry_times", 0) + 1
        identity = self._identity(exit_, route)
        self._attempts[request] = _Attempt(desk, exit_, pool, route, number, desk.health.now(), identity)
        request.meta[PROXY_META] = exit_.name
        request.meta[POOL_META] = exit_.pool
        if route.proxy is not None:
            host = urlparse_cached(request).hostname or ""
            # The delay and the concurrency of the site's host, for each exit.
            slot = f"{host} via {exit_.name}"
            if host in self._slots:
                self.crawler.engine.downloader.per_slot_settings[slot] = self._slots[host]
            request.meta["download_slot"] = slot
            request.meta["proxy"] = route.proxy
            if route.authorization is not None:
                request.headers[b"Proxy-Authorization"] = route.authorization
        # Cookies would tell a site that two exits are one. A circuit's are thrown away with it.
        request.meta["cookiejar"] = f"{exit_.id} {hash(route)}"
        if identity is not None:
            request.headers[b"User-Agent"] = identity.user_agent
            request.headers[b"Accept-Language"] = identity.accept_language

    def _identity(self, exit_: Proxy, route: Route) -> Identity | None:
        """Return what an exit says of itself, where the operator has said; this machine's own address says what it is.

        It is the same until the exit gets another address, whatever becomes of this process.
        """
        identities = self.options.identities
        if not identities or exit_.kind == "direct":
            return None
        life = blake2b(f"{exit_.id} {route.authorization!r}".encode(), digest_size=8).digest()
        return identities[int.from_bytes(life, "big") % len(identities)]

    async def _take(self, desk: _Desk, request: Request) -> Proxy:
        only = request.meta.get("proxy_pool")
        while True:
            stopped = desk.ended or self.blocks.circuit.refusal(desk.site)
            if stopped is not None:
                raise SiteStopped(stopped)
            found = desk.rotation.take(request.url, desk.health.now(), request.meta.get(_TRIED, ()), only)
            if found == "exhausted":
                raise SiteStopped(self._stop(desk, request))
            if found == "none":
                raise AttemptsFailedError(
                    f"no pool of {desk.site} takes {request.url}" + (f" via {only}" if only else "")
                )
            if found != "wait":
                return found
            if not self.crawler.engine.running:
                raise SiteStopped("the crawl is ending")
            changed = desk.changed
            if desk.shared is not None and desk.health.wanted:
                desk.shared.hurry()
            with suppress(TimeoutError):
                async with asyncio.timeout(_LOOK_AGAIN):
                    await changed.wait()

    # --- Back ----------------------------------------------------------------------------------------------------------

    async def process_response(self, request: Request, response: Response) -> Request | Response:
        """Return an answer, or the request for another attempt. Raises SiteStopped or AttemptsFailedError."""
        attempt = self._attempts.pop(request, None)
        if attempt is None:
            return response
        proxied = attempt.route.proxy is not None
        if proxied and response.status == _PROXY_AUTHENTICATION:
            return await self._failed(attempt, request, response, "407 from the proxy", certain=True)
        if DAMAGED in response.flags:
            return await self._failed(attempt, request, response, f"{response.status} damaged")
        with reading(request):
            is_ban = self.policy.response_is_ban(request, response)
        if is_ban:
            refusal = self.policy.refusal(request, response) or UNKNOWN_REFUSAL
            if refusal.kind == "throttle":
                return await self._unexpected(attempt, request, response, refusal)
            return await self._refused(attempt, request, response, refusal)
        if proxied and response.status in _GATEWAY_TROUBLE:
            return await self._failed(attempt, request, response, f"{response.status}")
        if response.status in self.error_statuses:
            self._end(attempt, request, response, "error", f"{response.status}")
            return await self._again(attempt, request, f"{response.status}", wait=True)
        self._answered(attempt, request, response)
        return response

    async def process_exception(self, request: Request, exception: Exception) -> Request | None:
        """Return the request for another attempt. Raises SiteStopped or AttemptsFailedError in place of what a proxy said."""
        attempt = self._attempts.pop(request, None)
        if attempt is None:
            return None
        told = trouble(exception)
        if not self.policy.exception_is_ban(request, exception):
            self._end(attempt, request, None, "cancelled", told)
            return None
        certain = attempt.route.proxy is not None and (
            tunnel_status(exception) == _PROXY_AUTHENTICATION or told in {"connection refused", "host not found"}
        )
        return await self._failed(attempt, request, None, told, certain=certain)

    def _end(
        self,
        attempt: _Attempt,
        request: Request,
        response: Response | None,
        outcome: str,
        told: str,
        reached: bool = True,
    ) -> None:
        """Account for an attempt, and take everything off the request that was there for it."""
        desk = attempt.desk
        self._log(
            logging.INFO,
            "attempt %d/%d %s %s via %s → %s",
            *(attempt.number, self._most(request), request.method, request.url, attempt.exit.name, told),
        )
        self.traffic.count(desk.site, attempt.exit.pool, outcome, request if reached else None, response)
        for header in (b"Proxy-Authorization", b"Cookie"):
            request.headers.pop(header, None)
        if attempt.identity is not None:
            request.headers.pop(b"User-Agent", None)
            request.headers.pop(b"Accept-Language", None)
        for name in _OF_AN_ATTEMPT:
            request.meta.pop(name, None)
        desk.rotation.release(attempt.exit)
        desk.tell()

    def _answered(self, attempt: _Attempt, request: Request, response: Response) -> None:
        desk, exit_ = attempt.desk, attempt.exit
        # Whom a site refuses its pages, it may well give its robots.txt.
        if "site" in request.meta:
            desk.health.succeeded(exit_.id, request.meta.get("download_latency", 0.0), attempt.sent_at)
            desk.renewed.pop(exit_.id, None)
            # A missing page says nothing of whether the site's pages are as they should be.
            if response.status == _OK:
                desk.last_refusal = None
                desk.unexpected.clear()
                desk.unexpected_of.pop(exit_.id, None)
                self.blocks.circuit.answered(desk.site)
        self._end(attempt, request, response, "answered", f"{response.status}")

    async def _refused(self, attempt: _Attempt, request: Request, response: Response, refusal: Refusal) -> Request:
        desk, exit_ = attempt.desk, attempt.exit
        desk.health.refused(exit_.id)
        desk.last_refusal = refusal
        told = f"{response.status} {refusal.kind.replace('_', ' ')}"
        self._end(attempt, request, response, refusal.kind, told)
        if not self._renew(attempt):
            asked = refusal.kind == "rate_limit" and b"Retry-After" in response.headers
            self._quarantine(attempt, told, refusal.pause_seconds if asked else 0.0)
        await self._sample(attempt, response, refusal)
        self._stop_if_exhausted(desk, request)
        return await self._again(attempt, request, told)

    async def _unexpected(self, attempt: _Attempt, request: Request, response: Response, refusal: Refusal) -> Request:
        desk, exit_ = attempt.desk, attempt.exit
        desk.health.refused(exit_.id)
        desk.unexpected[request.url] = exit_.id
        desk.unexpected_of[exit_.id].add(request.url)
        told = f"{response.status} unexpected: {refusal.reason}"
        self._end(attempt, request, response, refusal.kind, told)
        if len(desk.unexpected_of[exit_.id]) >= self.most_unexpected:
            del desk.unexpected_of[exit_.id]
            desk.last_refusal = refusal
            self._quarantine(attempt, told, 0.0)
        await self._sample(attempt, response, refusal)
        if min(len(desk.unexpected), len(set(desk.unexpected.values()))) >= self.most_unexpected:
            # From as many places: it is not theirs.
            why = f"{refusal.reason} from {len(set(desk.unexpected.values()))} exits in a row"
            raise SiteStopped(self.blocks.stop(desk.site, request, why, THROTTLE_PAUSE))
        self._stop_if_exhausted(desk, request)
        return await self._again(attempt, request, told, wait=True)

    async def _failed(
        self, attempt: _Attempt, request: Request, response: Response | None, told: str, *, certain: bool = False
    ) -> Request:
        desk, exit_ = attempt.desk, attempt.exit
        now = desk.health.now()
        self._end(attempt, request, response, "failed", told, reached=not certain)
        sites_fault = not desk.rotation.others(exit_, now, desk.health)
        renewed = not certain and self._renew(attempt)
        if desk.health.failed(exit_.id, told, now, sites_fault=sites_fault, certain=certain, renewed=renewed):
            self._tell_quarantine(attempt)
        self._stop_if_exhausted(desk, request)
        return await self._again(attempt, request, told, wait=desk.health.in_trouble)

    # --- What follows --------------------------------------------------------------------------------------------------

    def _renew(self, attempt: _Attempt) -> bool:
        """Give an exit that did not get an answer another address, if it has any; return whether it may go on at once."""
        if attempt.pool.route(attempt.exit) != attempt.route:
            return True  # it has another one since
        if not attempt.pool.renew(attempt.exit):
            return False
        renewed = attempt.desk.renewed
        renewed[attempt.exit.id] += 1
        return renewed[attempt.exit.id] <= _FRESH_CIRCUITS

    def _quarantine(self, attempt: _Attempt, reason: str, least: float) -> None:
        health = attempt.desk.health
        if health.quarantine(attempt.exit.id, reason, health.now(), least):
            self._tell_quarantine(attempt)

    def _tell_quarantine(self, attempt: _Attempt) -> None:
        desk, exit_ = attempt.desk, attempt.exit
        one, now = desk.health.quarantines[exit_.id], desk.health.now()
        self._log(
            logging.INFO,
            "%s is not used for %s for %.0f minutes (%s)",
            *(exit_.name, desk.site, (one.until - now) / 60, one.reason),
        )
        desk.tell()
        if desk.rotation.exhausted(now, desk.health, attempt.pool.name):
            self._in_background(attempt.pool.exhausted())

    def _stop_if_exhausted(self, desk: _Desk, request: Request) -> None:
        if desk.rotation.exhausted(desk.health.now(), desk.health):
            raise SiteStopped(self._stop(desk, request))

    def _stop(self, desk: _Desk, request: Request) -> str:
        """Stop the site, which no exit is left for; return why. Where others may have exits, stop only this worker."""
        pools = ", ".join(pool.name for pool in self.options.orders[desk.site])
        pause = min((one.until for one in desk.health.quarantines.values()), default=0.0) - desk.health.now()
        why = f"no exit is left of {pools}"
        if desk.last_refusal is not None:
            why, pause = f"{desk.last_refusal.reason}; {why}", desk.last_refusal.pause_seconds
        if not self.options.tied or shared_scheduler(self.crawler) is None:
            return self.blocks.stop(desk.site, request, why, max(pause, _SHORTEST_STOP))
        if desk.ended is None:
            desk.ended = f"{desk.site} refused us ({why}); this worker has no other pool, and ends"
            self._log(logging.ERROR, "%s", desk.ended)
            closing = self.crawler.engine.close_spider_async(reason="pool_exhausted")
            self._closing = asyncio.get_running_loop().create_task(closing)
        return desk.ended

    async def _again(self, attempt: _Attempt, request: Request, told: str, *, wait: bool = False) -> Request:
        """Return the request for another attempt, after a wait where the site is in trouble. Raises AttemptsFailedError."""
        assert self.crawler.spider is not None  # noqa: S101 - set before the first request
        history = [*request.meta.get(_HISTORY, ()), f"{attempt.exit.name} → {told}"]
        retry = get_retry_request(
            request,
            spider=self.crawler.spider,
            reason=told.partition(":")[0],  # the name of a stat: without how many bytes an unexpected page had
            max_retry_times=self._most(request) - 1,
            give_up_log_level=logging.DEBUG,
        )
        if retry is None:
            raise AttemptsFailedError("; ".join(history))
        tried = [*request.meta.get(_TRIED, ()), attempt.exit.name]
        retry.meta.update({_TRIED: tried, _HISTORY: history})
        if wait:
            await self.backoff.wait(retry)
        return retry

    def _most(self, request: Request) -> int:
        """Return how many attempts a request has."""
        own: int = request.meta.get("max_retry_times", self.options.attempts) + 1
        return min(self.options.attempts, own)

    async def _sample(self, attempt: _Attempt, response: Response, refusal: Refusal) -> None:
        site, via, secrets = attempt.desk.site, attempt.exit.name, attempt.route.secrets
        await asyncio.to_thread(keep_sample, self.samples, site, refusal.kind, via, response, utc_now(), secrets)

    def _in_background(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _log(self, level: int, sentence: str, *arguments: object) -> None:
        logger.log(level, sentence, *arguments, extra={"spider": self.crawler.spider})
