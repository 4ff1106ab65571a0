"""Requests as they stand in the queue: plain data, checked when it comes back, never code.

What is read from Redis may have been forged or damaged, so a request comes back only with a callback from a fixed list, with
arguments that this one takes, to a host of its spider. Headers, cookies, bodies and unknown `meta` don't travel: nothing secret
can get into the queue.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlsplit

import msgspec
from scrapy import Request

from moviecrawler.errors import MovieCrawlerError
from moviecrawler.items import Entry  # noqa: TC001 - msgspec reads annotations

if TYPE_CHECKING:
    from moviecrawler.frontier.spider import SharedSpider

ERRBACKS = {"parse_title": "title_failed", "parse_list": "list_failed", "parse_sitemap": "list_failed"}
"""That of each callback that the queue knows."""


class SerialisationError(MovieCrawlerError):
    """A request can't be queued, or what was queued is no request of this spider."""


class _Found(msgspec.Struct, frozen=True):
    """What the list that led to a title says of it."""

    list_name: str
    list_rank: int
    entry: Entry


class _OfTitle(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What `parse_title` takes."""

    site_id: str
    found: _Found | None


class _OfList(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What `parse_list` and `parse_sitemap` take; each spider's some of it."""

    name: str = ""
    offset: int = 0
    page: int = 0
    before: int = 0
    later: list[str] = []


class Envelope(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A request as it is queued; its id is its fingerprint, which stands beside it in Redis."""

    callback: str
    url: str
    cb_kwargs: dict[str, Any]
    expects: Literal["page", "json", "other"]
    depth: int = 0


_decoder = msgspec.json.Decoder(Envelope)


def encode(request: Request) -> str:
    """Return a request as a line of JSON. Raises SerialisationError when it holds what may not, or can't, travel."""
    callback, errback = (getattr(function, "__name__", "") for function in (request.callback, request.errback))
    trouble = _trouble(request, callback, errback)
    if trouble is not None:
        # Not its URL, which may hold a password.
        raise SerialisationError(f"a request for {urlsplit(request.url).hostname}: {trouble}")
    meta = request.meta
    try:
        envelope = Envelope(callback, request.url, request.cb_kwargs, meta["expects"], meta.get("depth", 0))
        return msgspec.json.encode(envelope).decode()
    except (TypeError, KeyError, OverflowError) as error:
        raise SerialisationError(f"{request}: {type(error).__name__} {error}") from None


def _trouble(request: Request, callback: str, errback: str) -> str | None:
    if ERRBACKS.get(callback) != errback:
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
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise SerialisationError(f"damaged, or written by another program: {error}") from None
    if envelope.callback not in ERRBACKS:
        raise SerialisationError(f"callback {envelope.callback!r} is not allowed")
    try:
        parts = urlsplit(envelope.url)
        host = parts.hostname
    except ValueError:
        host = None
    if host is None or parts.scheme not in {"http", "https"} or host not in spider.allowed_domains:
        raise SerialisationError(f"{envelope.url!r} is not on a host of {spider.name}")
    try:
        request = Request(
            envelope.url,
            callback=getattr(spider, envelope.callback),
            errback=getattr(spider, ERRBACKS[envelope.callback]),
            cb_kwargs=envelope.cb_kwargs,
            meta={"expects": envelope.expects, "site": spider.site, "depth": envelope.depth},
        )
        _check_arguments(request, envelope, spider)
    except (AttributeError, TypeError, ValueError, msgspec.ValidationError) as error:
        raise SerialisationError(f"no request of {spider.name}: {error}") from None
    return request


def _check_arguments(request: Request, envelope: Envelope, spider: SharedSpider) -> None:
    """Raise ValueError for arguments that the callback does not take: what it yields goes into stores that take no other types."""
    if envelope.callback != "parse_title":
        msgspec.convert(envelope.cb_kwargs, _OfList)
        return
    site_id = msgspec.convert(envelope.cb_kwargs, _OfTitle).site_id
    if not site_id.isprintable() or request.url != spider.title_request(site_id, None).url:
        raise ValueError(f"{envelope.url!r} is not the page of {site_id!r}")
