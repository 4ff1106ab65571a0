"""The form of requests in the queue: plain JSON, which is checked when it is read, and never code.

What the queue holds may be forged or damaged. So a request is accepted only with a callback of a
fixed list, with that callback's arguments, and with the URL that its spider makes of them; for
lists and sitemaps, whose URLs the site chooses, with a host of its spider. A request with a body or
cookies is refused, and headers and other `meta` are left out, so that the queue holds no secret.
"""

from __future__ import annotations

import re
from base64 import b64encode
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlsplit

import msgspec
from scrapy.utils.request import fingerprint

from moviecrawler.basics.clock import utc_now
from moviecrawler.basics.credentials import has_userinfo
from moviecrawler.basics.errors import MovieCrawlerError
from moviecrawler.items import Fetched, ListRow, Site
from moviecrawler.matching.facts import IdSource, TitleFacts  # noqa: TC001 - msgspec reads them

if TYPE_CHECKING:
    from datetime import datetime

    from scrapy import Request

ERRBACKS = {
    "parse_list": "list_failed",
    "parse_sitemap": "list_failed",
    "parse_title": "title_failed",
    "read_datasets": "datasets_failed",
    "read_file": "",
}
"""The errback of each callback that a queued request may have; empty where it has none."""
DUE = "due-"
"""The prefix of the ids of requests for titles that are due."""
_DIGEST_BYTES = 10
"""The chance that two of 10 million pages share an id is 1 in 10¹⁰. Redis needs the same memory for
14 characters as for 9."""


class SerialisationError(MovieCrawlerError):
    """A request can't be queued, or an entry of the queue is not a request of this spider."""


class DueTitle(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A title of the catalogue that is to be fetched from a site."""

    title_id: int
    boosted: bool
    ids: list[str]
    """Its id there, or its candidate ids, the likeliest first; in a request, those that are tried
    next."""
    evidence: IdSource | None
    """Where the ids come from; None for one that needs no check."""
    expected: TitleFacts | None = msgspec.field(name="wanted")
    """Facts that the page is compared with before it is accepted; None exactly when `evidence`
    is."""


def outcome_of_title(site: Site, requested_id: str, due: DueTitle | None, at: datetime) -> Fetched:
    """Return the outcome of a title's request, as it is until more is known."""
    outcome = Fetched(site=site, at=at, requested_id=requested_id)
    if due is not None:
        outcome.title_id = due.title_id
        outcome.evidence = due.evidence
    return outcome


class _TitleArguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The arguments of `parse_title`."""

    site_id: str
    found: ListRow | None
    due: DueTitle | None = None

    def __post_init__(self) -> None:
        if not self.site_id.isprintable():
            raise ValueError("its id can't be printed")


class _ListArguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The arguments of `parse_list` and `parse_sitemap`; each spider uses some of them."""

    name: str = ""
    """Name of the list, such as "metascore"."""
    pass_at: str = ""
    """When the pass over the list began (ISO 8601); empty in requests of earlier versions."""
    offset: int = 0
    """What earlier versions wrote for `before`."""
    page: int = 0
    """Number of earlier pages."""
    before: int = 0
    """Rows on earlier pages."""
    later: list[str] = []
    """Parts of a sitemap that are requested next if this one has too few titles."""


class _DatasetArguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The arguments of `read_datasets`."""

    titles: list[str] | None
    """Ids of the titles to read; None for what the spider's arguments name."""


class _FileArguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The arguments of `read_file`."""

    key: str
    """Of a file of the archive."""


class Envelope(msgspec.Struct, frozen=True, array_like=True):
    """A request as it is queued under the id that `request_id` gives it.

    An earlier version wrote one more value, which nothing reads.
    """

    callback: str
    url: str
    cb_kwargs: dict[str, object]
    expects: Literal["page", "json", "other"]


_decoder = msgspec.json.Decoder(Envelope)


def request_id(request: Request) -> str:
    """Return the id under which a request is queued; equal requests have equal ids.

    It has 14 letters, digits, dots and underscores, of the request's fingerprint. The id of a
    request for a due title is "due-", the title's id, "-" and the number of its ids left to try.
    """
    if due := request.cb_kwargs.get("due"):
        return f"{DUE}{due.title_id}-{len(due.ids)}"
    digest = fingerprint(request)
    if titles := request.cb_kwargs.get("titles"):
        # Passes over the datasets have one address, whatever titles they are for.
        digest = blake2b(digest + ",".join(titles).encode()).digest()
    return b64encode(digest[:_DIGEST_BYTES], b"._").decode().rstrip("=")


def due_title_of(id_: str) -> int | None:
    """Return the title of the catalogue for which a request is; None for another request.

    >>> due_title_of("due-27-0"), due_title_of("seed-27-0")
    (27, None)
    """
    found = re.fullmatch(rf"{DUE}([0-9]{{1,18}})-[0-9]+", id_, re.ASCII)
    return None if found is None else int(found[1])


def encode(request: Request) -> str:
    """Return a request as a line of JSON.

    Raises SerialisationError when it holds something that can't be queued.
    """
    callback = getattr(request.callback, "__name__", "")
    errback = getattr(request.errback, "__name__", "")
    is_plain_get = request.method in {"GET", "HEAD"} and not (request.body or request.cookies)
    if ERRBACKS.get(callback) != errback:
        why = f"callback {callback!r} or errback {errback!r} can't be queued"
    elif not is_plain_get:
        why = "only a GET or HEAD without a body and cookies can be queued"
    elif has_userinfo(request.url):
        why = "its URL holds credentials"
    else:
        try:
            envelope = Envelope(callback, request.url, request.cb_kwargs, request.meta["expects"])
            return msgspec.json.encode(envelope).decode()
        except (TypeError, KeyError, OverflowError) as error:
            why = f"{type(error).__name__} {error}"
    # The URL is not shown, as it may hold a password.
    raise SerialisationError(f"a request for {urlsplit(request.url).hostname}: {why}")


def decode(payload: bytes, spider: Any) -> Request:
    """Return the request that `encode` wrote.

    Raises SerialisationError for anything else, and for a URL that the spider does not request.
    """
    try:
        envelope = _decoder.decode(payload)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        why = f"damaged, or written by another program: {error}"
        raise SerialisationError(why) from None
    if envelope.callback not in ERRBACKS:
        raise SerialisationError(f"callback {envelope.callback!r} is not allowed")
    try:
        request = _request_of(envelope, spider)
        parts = urlsplit(request.url)
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        raise SerialisationError(f"no request of {spider.name}: {error}") from None
    if ERRBACKS[envelope.callback] == "list_failed":
        # The site's pages give the URLs of its lists and sitemaps, so only the host is checked.
        is_allowed = parts.scheme in {"http", "https"} and parts.hostname in spider.allowed_domains
    else:
        is_allowed = request.url == envelope.url
    if not is_allowed:
        raise SerialisationError(f"{envelope.url!r} is not a page that {spider.name} requests")
    return request


def _request_of(envelope: Envelope, spider: Any) -> Request:
    """Return the spider's own request, whose arguments have the types that stores rely on."""
    if envelope.callback == "parse_title":
        title = msgspec.convert(envelope.cb_kwargs, _TitleArguments)
        request: Request = spider.title_request(title.site_id, title.found, title.due)
    elif envelope.callback == "read_datasets":
        titles = msgspec.convert(envelope.cb_kwargs, _DatasetArguments).titles
        request = spider.datasets_request(titles)
    elif envelope.callback == "read_file":
        request = spider.file_request(msgspec.convert(envelope.cb_kwargs, _FileArguments).key)
    else:
        msgspec.convert(envelope.cb_kwargs, _ListArguments)  # only a check of their types
        arguments = envelope.cb_kwargs
        if envelope.callback == "parse_list":
            # Earlier versions wrote no time of a pass, and `offset` for `before`.
            arguments = {"pass_at": utc_now().isoformat(), **arguments}
            if "offset" in arguments:
                arguments["before"] = arguments.pop("offset")
        callback = getattr(spider, envelope.callback)
        request = spider.list_page(envelope.url, callback, envelope.expects, **arguments)
    return request
