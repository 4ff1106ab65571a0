"""The form of requests in the queue: plain JSON, which is checked when it is read, and never code.

What Redis holds may be forged or damaged, so a request is accepted only with a callback of a fixed
list, with that callback's arguments, and for a host of its spider. Headers, cookies, bodies and
other `meta` are left out, so no secret gets into the queue.
"""

from __future__ import annotations

from base64 import b64encode
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlsplit

import msgspec
from scrapy.utils.request import fingerprint

from moviecrawler.errors import MovieCrawlerError
from moviecrawler.items import Entry  # noqa: TC001 - msgspec reads annotations

if TYPE_CHECKING:
    from scrapy import Request

ERRBACKS = {
    "parse_title": "title_failed",
    "parse_list": "list_failed",
    "parse_sitemap": "list_failed",
}
"""The errback of each callback that a queued request may have."""
_DIGEST_BYTES = 10
"""The chance that two of 10 million pages share an id is 1 in 10¹⁰. Redis needs the same memory for
14 characters as for 9."""


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
    depth: int
    """By which DEPTH_LIMIT goes."""


_decoder = msgspec.json.Decoder(Envelope)


def request_id(request: Request) -> str:
    """Return an id that is the same for all requests for a page: 14 letters, digits, dots and underscores."""
    return b64encode(fingerprint(request)[:_DIGEST_BYTES], b"._").decode().rstrip("=")


def encode(request: Request) -> str:
    """Return a request as a line of JSON.

    Raises SerialisationError when it holds something that can't be queued.
    """
    callback, errback = (
        getattr(function, "__name__", "") for function in (request.callback, request.errback)
    )
    why = ""
    if ERRBACKS.get(callback) != errback:
        why = f"callback {callback!r} or errback {errback!r} can't be queued"
    elif request.method != "GET" or request.body or request.cookies:
        why = "only a GET without cookies can be queued"
    elif "@" in urlsplit(request.url).netloc:
        why = "its URL holds credentials"
    try:
        if not why:
            meta = request.meta
            envelope = Envelope(
                callback, request.url, request.cb_kwargs, meta["expects"], meta.get("depth", 0)
            )
            return msgspec.json.encode(envelope).decode()
    except (TypeError, KeyError, OverflowError) as error:
        why = f"{type(error).__name__} {error}"
    # The URL is not shown, as it may hold a password.
    raise SerialisationError(f"a request for {urlsplit(request.url).hostname}: {why}")


def decode(payload: bytes, spider: Any) -> Request:
    """Return the request that `encode` wrote.

    Raises SerialisationError for anything else, and for another host.
    """
    try:
        envelope = _decoder.decode(payload)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise SerialisationError(f"damaged, or written by another program: {error}") from None
    if envelope.callback not in ERRBACKS:
        raise SerialisationError(f"callback {envelope.callback!r} is not allowed")
    try:
        # Stores take only these types of what a callback yields.
        if envelope.callback == "parse_title":
            title = msgspec.convert(envelope.cb_kwargs, _TitleArguments)
            request: Request = spider.title_request(title.site_id, envelope.cb_kwargs["found"])
            is_known = title.site_id.isprintable() and request.url == envelope.url
        else:
            msgspec.convert(envelope.cb_kwargs, _ListArguments)
            callback = getattr(spider, envelope.callback)
            request = spider.list_page(
                envelope.url, callback, envelope.expects, **envelope.cb_kwargs
            )
            parts = urlsplit(request.url)
            is_known = (
                parts.scheme in {"http", "https"} and parts.hostname in spider.allowed_domains
            )
    except (AttributeError, TypeError, ValueError, msgspec.ValidationError) as error:
        raise SerialisationError(f"no request of {spider.name}: {error}") from None
    if not is_known:
        raise SerialisationError(f"{envelope.url!r} is no page that {spider.name} asks for")
    request.meta["depth"] = envelope.depth
    return request
