"""Offers of where to watch a title, as all sites have them: one of each, without what follows visitors."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qsl, urlencode, urlsplit

if TYPE_CHECKING:
    from collections.abc import Iterable
    from urllib.parse import SplitResult

    from moviecrawler.items import Offer

_REDIRECTS: Final = {"click.justwatch.com": "r"}
"""Hosts whose links lead to a provider by way of a counter, and the parameter that has the address."""
_MOST_REDIRECTS: Final = 3
_TRACKING: Final = re.compile(
    r"(?:utm|uct|wt|mc|gad|af|aff)_\w+|its[a-z]{2}|\w*clid|cx|cmp|cid|at|ct|tag|ref_?|refid|source|partner|subid\d?|clickref|"
    r"affiliate\w*|campaign\w*|cjevent|autoplay|action",
    re.IGNORECASE,
)
"""Parameters by which a provider knows who sent a visitor, or what to do first; none of them says which title it is."""
_LONGEST: Final = 2_000
"""Characters of an address; longer ones carry the state of a player."""


def plain_address(url: str | None) -> str | None:
    """Return where a link leads, without tracking; None when it is no address of the web, or longer than any title's.

    >>> plain_address("https://click.justwatch.com/a?cx=eyJ&r=https%3A%2F%2Flamp.example%2Ft%2F7%3Futm_source%3Djw%26v%3D1")
    'https://lamp.example/t/7?v=1'
    """
    for _ in range(_MOST_REDIRECTS):
        parts = _split(url)
        if parts is None:
            return None
        query = parse_qsl(parts.query, max_num_fields=100) if "=" in parts.query else []
        parameter = _REDIRECTS.get(parts.hostname or "")
        if parameter is None:
            kept = [(name, value) for name, value in query if not _TRACKING.fullmatch(name)]
            plain = parts._replace(query=urlencode(kept), fragment="").geturl()
            return plain if len(plain) <= _LONGEST else None
        url = dict(query).get(parameter)
    return None


def _split(url: str | None) -> SplitResult | None:
    try:
        parts = urlsplit(url or "")
    except ValueError:
        return None
    return parts if parts.scheme in {"http", "https"} and parts.hostname else None


def one_of_each_offer(offers: Iterable[Offer]) -> list[Offer]:
    """Return offers in order, the first of each provider, kind, country and quality."""
    known: dict[tuple[str | None, ...], Offer] = {}
    for offer in offers:
        known.setdefault((offer.provider, offer.kind, offer.country, offer.quality), offer)
    return list(known.values())
