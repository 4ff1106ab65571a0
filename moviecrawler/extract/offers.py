"""Offers of where to watch a title, as all sites have them.

There is one of each, without what follows visitors.
"""

import re
from collections.abc import Iterable
from urllib.parse import unquote

from moviecrawler.extract.findings import first_of_each
from moviecrawler.items import Offer

_REDIRECT = re.compile(
    r"https?://(?:click\.justwatch\.com(?=[/?#]|$)[^?#]*|[^/?#]+/c/\d+/\d+/\d+)"
    r"(?:\?(?P<query>[^#]*))?",
    re.IGNORECASE,
)
"""An advertiser's redirect on the way to a provider, whose address is a parameter: JustWatch's `r`,
and `u` of Impact's hosts."""
_MOST_REDIRECTS = 3
"""In a row; links of JustWatch's pass two."""
_JUSTWATCH = re.compile(r"https?://click\.justwatch\.com(?:/|$)", re.IGNORECASE)
_ADDRESS = re.compile(
    r"(?P<plain>https?://[^\s/?#]+(?:/[^\s?#]*)?)(?:\?(?P<query>[^\s#]*))?(?:#\S*)?"
)
_TRACKING = re.compile(
    r"(?:utm|uct|wt|mc|gad|af|aff)_\w{1,40}|its[a-z]{2}|\w{0,20}cli(?:ck)?id|irgwc|linkcode|"
    r"ascsubtag|cx|cmp|cid|at|ct|tag|ref_?|refid|source|partner|subid\d?|clickref|"
    r"affiliate\w{0,20}|campaign\w{0,20}|cjevent|autoplay|action",
    re.IGNORECASE,
)
"""Parameters by which a provider knows who sent a visitor, or what to do first; none of them says
which title it is."""
_LONGEST = 2_000
"""Characters of an address; longer ones carry the state of a player."""


def plain_address(url: str | None) -> str | None:
    """Return where a link leads, without tracking.

    Returns None when it is not an address of the web, or longer than any title's.

    >>> target = "https%3A%2F%2Flamp.example%2Ft%2F7%3Futm_source%3Djw%26v%3D1"
    >>> plain_address(f"https://click.justwatch.com/a?cx=eyJ&r={target}")
    'https://lamp.example/t/7?v=1'
    """
    for _ in range(_MOST_REDIRECTS):
        redirect = _REDIRECT.match(url or "")
        pairs = (redirect["query"] or "").split("&") if redirect else []
        target = next((pair[2:] for pair in pairs if pair[:2] in {"r=", "u="}), None)
        if target is None:
            break
        url = unquote(target)
    match = _ADDRESS.fullmatch(url) if url is not None and len(url) <= _LONGEST else None
    if match is None or _JUSTWATCH.match(match["plain"]):
        return None
    pairs = (match["query"] or "").split("&")
    kept = [pair for pair in pairs if pair and not _TRACKING.fullmatch(pair.partition("=")[0])]
    return f"{match['plain']}?{'&'.join(kept)}" if kept else match["plain"]


def one_of_each_offer(offers: Iterable[Offer]) -> list[Offer]:
    """Return offers in order, the first of each key."""
    return first_of_each(offers, Offer.key)
