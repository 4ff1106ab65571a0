"""Requests as they stand in the queue: plain data, checked when it comes back, never code.

What is read from Redis may have been forged or damaged, so a request comes back only with a callback from a fixed list, to a
host of its spider. Headers, cookies, bodies and unknown `meta` don't travel: nothing secret can get into the queue.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlsplit

import msgspec
from scrapy import Request

from moviecrawler.errors import MovieCrawlerError

if TYPE_CHECKING:
    from moviecrawler.frontier.spider import SharedSpider

CALLBACKS = frozenset({"parse_title", "parse_list", "parse_sitemap"})
ERRBACKS = frozenset({"title_failed", "list_failed"})


class SerialisationError(MovieCrawlerError):
    """A request can't be queued, or what was queued is no request of this spider."""


class Envelope(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A request and what has happened to it. Its id is its fingerprint, which stands before it in the queue."""

    version: Literal[1]
    url: str
    site: Literal["imdb", "metacritic", "rottentomatoes"]
    callback: str
    errback: str
    cb_kwargs: dict[str, Any]
    expects: Literal["page", "json", "other"]
    priority: int
    depth: int
    created_at: float
    """Seconds since 1970, UTC, by the clock of the node that made it: for people only, nothing is decided by it."""
    retries: int
    max_retries: int | None
    """None for RETRY_TIMES."""
    proxy_pool: str | None
    """None for the node's own choice."""


_decoder = msgspec.json.Decoder(Envelope)


def encode(request: Request, now: float) -> str:
    """Return a request as a line of JSON. Raises SerialisationError when it holds what may not, or can't, travel."""
    callback, errback = (getattr(function, "__name__", "") for function in (request.callback, request.errback))
    trouble = _trouble(request, callback, errback)
    if trouble is not None:
        # Not its URL, which may hold a password.
        raise SerialisationError(f"a request for {urlsplit(request.url).hostname}: {trouble}")
    meta = request.meta
    try:
        return msgspec.json.encode(
            Envelope(
                version=1,
                url=request.url,
                site=meta["site"],
                callback=callback,
                errback=errback,
                cb_kwargs=request.cb_kwargs,
                expects=meta["expects"],
                priority=request.priority,
                depth=meta.get("depth", 0),
                created_at=now,
                retries=meta.get("retry_times", 0),
                max_retries=meta.get("max_retry_times"),
                proxy_pool=meta.get("proxy_pool"),
            )
        ).decode()
    except (TypeError, KeyError, OverflowError) as error:
        raise SerialisationError(f"{request}: {type(error).__name__} {error}") from None


def _trouble(request: Request, callback: str, errback: str) -> str | None:
    if callback not in CALLBACKS or errback not in ERRBACKS:
        return f"callback {callback!r} or errback {errback!r} is none that the queue knows"
    if request.method != "GET" or request.body or request.cookies:
        return "only a GET without cookies can be queued"
    if "@" in urlsplit(request.url).netloc:
        return "its URL holds credentials"
    return None


def decode(payload: bytes, spider: SharedSpider) -> Request:
    """Return the request that `encode` wrote. Raises SerialisationError for anything else, and for a host not the spider's."""
    try:
        envelope = _decoder.decode(payload)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise SerialisationError(f"damaged, or written by another version: {error}") from None
    if envelope.callback not in CALLBACKS or envelope.errback not in ERRBACKS:
        raise SerialisationError(f"callback {envelope.callback!r} or errback {envelope.errback!r} is not allowed")
    try:
        parts = urlsplit(envelope.url)
        host = parts.hostname
    except ValueError:
        host = None
    if host is None or parts.scheme not in {"http", "https"} or host not in spider.allowed_domains:
        raise SerialisationError(f"{envelope.url!r} is not on a host of {spider.name}")
    optional = {
        "retry_times": envelope.retries or None,
        "max_retry_times": envelope.max_retries,
        "proxy_pool": envelope.proxy_pool,
    }
    meta = {
        "expects": envelope.expects,
        "site": envelope.site,
        "depth": envelope.depth,
        **{name: value for name, value in optional.items() if value is not None},
    }
    try:
        return Request(
            envelope.url,
            callback=getattr(spider, envelope.callback),
            errback=getattr(spider, envelope.errback),
            cb_kwargs=envelope.cb_kwargs,
            meta=meta,
            priority=envelope.priority,
        )
    except (AttributeError, TypeError, ValueError) as error:
        raise SerialisationError(f"no request of {spider.name}: {error}") from None
