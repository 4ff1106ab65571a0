"""The sections of Rotten Tomatoes' title pages beside the facts: critics' consensus; since 2021 where to watch, titles alike, ids.

Each is cut out of the page by what its markup begins with, so that no tree of the page is built.
"""

from __future__ import annotations

import html
import re
from functools import partial
from typing import TYPE_CHECKING, Final

from moviecrawler.extract import dig
from moviecrawler.extract.embedded import decode_text
from moviecrawler.extract.findings import ABSENT, NoValue, ShapeError, attempt, one_of_each_title
from moviecrawler.extract.offers import one_of_each_offer, plain_address
from moviecrawler.extract.rottentomatoes_parts import json_script
from moviecrawler.extract.trees import text_of, tree_of
from moviecrawler.items import Offer, RelatedTitle
from moviecrawler.texts import fold
from moviecrawler.urls import id_in_url

if TYPE_CHECKING:
    from collections.abc import Iterator

    from parsel import Selector

    from moviecrawler.items import OfferKind

_CONSENSUS: Final = re.compile(
    rb"""<(?P<tag>span)\s[^<>]{0,500}data-qa="critics-consensus"[^<>]{0,500}>"""
    rb"""|<div\s[^<>]{0,500}id="critics-consensus"[^<>]{0,500}>"""
    rb"""|<(?P<older>p)\s[^<>]{0,500}class="[^"<>]{0,500}(?:critic_consensus|--concensus)[^"<>]{0,500}"[^<>]{0,500}>"""
)
"""Its attributes have bounds, as a tag that is never closed would take quadratic time."""
_HEADING: Final = re.compile(r"Critics? Consensus:\s*")
_LONGEST_CONSENSUS: Final = 2_000
_PARAGRAPH: Final = re.compile(rb"<p(?:\s[^<>]*)?>")
_TAG: Final = re.compile(r"<[^<>]*>")
_NO_CONSENSUS: Final = re.compile(r"no consensus yet\b|not enough reviews", re.IGNORECASE)
_SIMILAR: Final = (
    b'id="more-like-this"',
    b'data-qa="section:more-like-this"',
    b'id="recommendations"',
    b'id="you-might-like"',
)
"""What the section of titles alike has been called: since 2024, in 2024, and in 2021."""
_OFFERS: Final = (b'id="where-to-watch"', b'data-qa="section:where-to-watch"', b"<where-to-watch-meta")
_LICENCES: Final[tuple[tuple[str, tuple[OfferKind, ...]], ...]] = (
    ("rent/buy", ("rent", "buy")),
    ("rent", ("rent",)),
    ("buy", ("buy",)),
    ("subscription", ("subscription",)),
    ("free with ads", ("ads",)),
    ("free", ("free",)),
    ("in theaters", ("cinema",)),
    ("in cinemas", ("cinema",)),
    ("showtimes", ("cinema",)),
)
"""What licences begin with, and what they are here; a price may stand behind them."""
_SHOWTIMES: Final = "showtimes"
_COUNTRY: Final = "US"
"""The site tells offers of the United States only."""
_EMS: Final = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}")
_DIGITS: Final = re.compile(r"[0-9]{1,20}")
_NUMBER: Final = re.compile(rb'"field\[rtid\]":"(\d{1,20})"')


def read_consensus(body: bytes) -> str | NoValue:
    """Return what the site says that its critics agree on, without markup; a page of few reviews has no place for it."""
    opened = _CONSENSUS.search(body)
    if opened is None:
        return None
    start, end_tag = opened.end(), b"</span" if opened["tag"] else b"</p"
    if not opened["tag"] and not opened["older"]:
        paragraph = _PARAGRAPH.search(body, start, max(start, body.find(b"</div", start)))
        if paragraph is None:
            raise ShapeError("consensus", "no paragraph in its section")
        start = paragraph.end()
    end = body.find(end_tag, start)
    if end == -1:
        raise ShapeError("consensus", "the page ends inside of it")
    text = _HEADING.sub("", fold(html.unescape(_TAG.sub("", decode_text(body[start:end])))), count=1)
    if len(text) > _LONGEST_CONSENSUS:
        raise ShapeError("consensus", f"{len(text):,} characters")
    return ABSENT if _NO_CONSENSUS.match(text) else text or None


def read_offers(body: bytes) -> list[Offer] | NoValue:
    """Return where the title can be watched; the section is left out where that is nowhere."""
    section = _section(body, _OFFERS)
    if section is None:
        return None
    offers = [offer for item in section.css("where-to-watch-meta, a[data-affiliate]") for offer in _offers_of(item)]
    if not offers and section.css("[href]"):
        raise ShapeError("offers", "links that are no offers")
    return one_of_each_offer(offers) or ABSENT


def _offers_of(item: Selector) -> Iterator[Offer]:
    provider = item.attrib.get("affiliate") or item.attrib.get("data-affiliate")
    licence = text_of(item.css('[slot="license"], .no-price')).lower()
    kinds = next((kinds for begin, kinds in _LICENCES if licence.startswith(begin)), None)
    if provider == _SHOWTIMES:
        kinds = ("cinema",)
    if not provider or kinds is None:
        raise ShapeError("offers", f"{licence!r} of {provider!r} is no licence that is known")
    for kind in kinds:
        yield Offer(provider=provider, kind=kind, country=_COUNTRY, url=plain_address(item.attrib.get("href")))


def read_similar(body: bytes) -> list[RelatedTitle] | NoValue:
    """Return the titles that the site recommends to whoever likes this one."""
    section = _section(body, _SIMILAR)
    if section is None:
        return None
    found = []
    for link in section.css("a[href], rt-link[href]"):
        site_id = id_in_url("rottentomatoes", link.attrib["href"])
        name = text_of(link if link.attrib.get("slot") == "title" else link.css('[slot="title"], .p--small'))
        if site_id and name:
            found.append(RelatedTitle(relation="similar", site_id=site_id, title=name))
    if not found and section.css("a[href], rt-link[href]"):
        raise ShapeError("related", "links without titles")
    return one_of_each_title(found) or ABSENT


def read_ids(body: bytes) -> dict[str, str] | None:
    """Return the title's id in the site's database, and the number that stands for it there."""
    curation, scorecard = json_script(body, "curation-json"), json_script(body, "media-scorecard-json")
    stated, elsewhere = str(attempt(lambda: dig.at(curation, "rtId"))), _NUMBER.search(body)
    number = stated if _DIGITS.fullmatch(stated) else elsewhere[1].decode() if elsewhere else None
    texts = (
        attempt(partial(dig.text, data, key)) for data, key in ((curation, "emsId"), (scorecard, "criticReviewHref"))
    )
    ems = next((found[0] for text in texts if (found := _EMS.search(text or ""))), None)
    return {namer: text for namer, text in (("ems", ems), ("rottentomatoes", number)) if text} or None


def _section(body: bytes, signs: tuple[bytes, ...]) -> Selector | None:
    """Return the tree of the section that has one of these signs."""
    at = next((at for sign in signs if (at := body.find(sign)) != -1), -1)
    if at == -1:
        return None
    end = body.find(b"</section", at)
    if end == -1:
        raise ShapeError("page", "the page ends inside a section")
    return tree_of(body[body.rfind(b"<", 0, at + 1) : end])
