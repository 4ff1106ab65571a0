"""The form of requests in the queue: plain JSON, which is checked when it is read, and never code.

What Redis holds may be forged or damaged, so a request is accepted only with a callback of a fixed list, with that callback's
arguments, and for a host of its spider. Headers, cookies, bodies and other `meta` are left out, so no secret gets into the queue.
"""

from __future__ import annotations

from typing import Any, Literal
from urllib.parse import urlsplit

import msgspec
from scrapy import Request

from moviecrawler.errors import MovieCrawlerError
from moviecrawler.items import Entry  # noqa: TC001 - msgspec reads annotations

ERRBACKS = {"parse_title": "title_failed", "parse_list": "list_failed", "parse_sitemap": "list_failed"}
"""The errback of each callback that a queued request may have."""


class SerialisationError(MovieCrawlerError):
    """A request can't be queued, or the queue holds something else than a request of this spider."""


class _ListEntry(msgspec.Struct, frozen=True):
    """The entry of the list that led to a title."""

    list_name: str
    list_rank: int
    entry: Entry


class _TitleArguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The arguments of `parse_title`."""

    site_id: str
    found: _ListEntry | None


class _ListArguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The arguments of `parse_list` and `parse_sitemap`; each spider uses some of them."""

    name: str = ""
    offset: int = 0
    page: int = 0
    before: int = 0
    later: list[str] = []


class Envelope(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A request as it is queued, under its fingerprint as id."""

    callback: str
    url: str
    cb_kwargs: dict[str, Any]
    expects: Literal["page", "json", "other"]
    depth: int = 0


_decoder = msgspec.json.Decoder(Envelope)


def encode(request: Request) -> str:
    """Return a request as a line of JSON. Raises SerialisationError when it holds something that can't be queued."""
    callback, errback = (getattr(function, "__name__", "") for function in (request.callback, request.errback))
    meta, why = request.meta, ""
    if ERRBACKS.get(callback) != errback:
        why = f"callback {callback!r} or errback {errback!r} can't be queued"
    elif request.method != "GET" or request.body or request.cookies:
        why = "only a GET without cookies can be queued"
    elif "@" in urlsplit(request.url).netloc:
        why = "its URL holds credentials"
    try:
        if not why:
            envelope = Envelope(callback, request.url, request.cb_kwargs, meta["expects"], meta.get("depth", 0))
            return msgspec.json.encode(envelope).decode()
    except (TypeError, KeyError, OverflowError) as error:
        why = f"{type(error).__name__} {error}"
    # The URL is not shown, as it may hold a password.
    raise SerialisationError(f"a request for {urlsplit(request.url).hostname}: {why}")


def decode(payload: bytes, spider: Any) -> Request:
    """Return the request that `encode` wrote. Raises SerialisationError for anything else, and for another host."""
    try:
        envelope = _decoder.decode(payload)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise SerialisationError(f"damaged, or written by another program: {error}") from None
    if envelope.callback not in ERRBACKS:
        raise SerialisationError(f"callback {envelope.callback!r} is not allowed")
    try:
        parts = urlsplit(envelope.url)
        if parts.scheme not in {"http", "https"} or parts.hostname not in spider.allowed_domains:
            raise ValueError(f"{envelope.url!r} is not on a host of the spider")  # noqa: TRY301
        request = Request(
            envelope.url,
            callback=getattr(spider, envelope.callback),
            errback=getattr(spider, ERRBACKS[envelope.callback]),
            cb_kwargs=envelope.cb_kwargs,
            meta={"expects": envelope.expects, "site": spider.site, "depth": envelope.depth},
        )
        # Stores take only these types of what a callback yields.
        if envelope.callback == "parse_title":
            site_id = msgspec.convert(envelope.cb_kwargs, _TitleArguments).site_id
            if not site_id.isprintable() or request.url != spider.title_request(site_id, None).url:
                raise ValueError(f"{envelope.url!r} is not the page of {site_id!r}")  # noqa: TRY301
        else:
            msgspec.convert(envelope.cb_kwargs, _ListArguments)
    except (AttributeError, TypeError, ValueError, msgspec.ValidationError) as error:
        raise SerialisationError(f"no request of {spider.name}: {error}") from None
    return request
