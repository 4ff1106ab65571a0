"""The sections of Rotten Tomatoes' title pages: details, plot, cast, consensus; since 2021 where to watch, titles alike, ids.

Each is cut out of the page by what its markup begins with: pages of today are not parsed as a whole.
"""

from __future__ import annotations

import html
import re
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from moviecrawler.extract import dig
from moviecrawler.extract.embedded import decode_text
from moviecrawler.extract.findings import ABSENT, NoValue, Person, ShapeError, attempt, one_of_each_title
from moviecrawler.extract.offers import one_of_each_offer, plain_address
from moviecrawler.extract.rottentomatoes_values import json_script
from moviecrawler.extract.trees import text_of, tree_of
from moviecrawler.extract.values import check_year
from moviecrawler.items import Offer, RelatedTitle
from moviecrawler.texts import fold
from moviecrawler.urls import id_in_url

if TYPE_CHECKING:
    from collections.abc import Iterator

    from parsel import Selector

    from moviecrawler.items import OfferKind

_NOTE = re.compile(
    r"(?<!\s)\s*\((?:[^()]{0,200}\b(?:voice|uncredited|archive footage|cameo)\b[^()]{0,200}|as [^()]*)\)", re.IGNORECASE
)
_SYNOPSIS = re.compile(
    rb"""\s(?:id=["']?(?:movieSynopsis|movie_synopsis_all)|data-qa=["']?(?:(?:movie|series|season)-info-(?:synopsis|description)|synopsis-value))(?=[\s"'>])"""
)
_BEHIND_PARAGRAPH = re.compile(rb"<(?:p|div|dl|ul|table|section)\b", re.IGNORECASE)
_CLOSED_BY_HEADING = re.compile(rb"(?<!\s)\s*</p>\s*(?=<h2)", re.IGNORECASE)
_TAG = re.compile(r"<(/?[a-zA-Z][a-zA-Z0-9-]*)[^<>]*>|<!--.*?(?:-->|$)", re.DOTALL)
_NO_PROSE = frozenset({"script", "h2", "button"})
"""Elements whose text is none of the plot's."""
_JOB = re.compile(
    r"^(?:(?:executive|co|associate|line|assistant|original|film|art|set|costume|production|music|sound)[\s-]*)*"
    r"(?:director(?: of photography)?|writer|screenwriter|screenplay|story|novel|book|author|creator|producer|showrunner|"
    r"cinematograph(?:er|y)|edit(?:or|ing)|composer|music|design(?:er)?|decorat(?:or|ion)|direction|casting)$",
    re.IGNORECASE,
)
"""What stands in the place of a character at somebody of the crew."""

_LABELS: dict[str, str] = {
    "rating": "certificate",
    "rated": "certificate",
    "genre": "genres",
    "directed by": "director",
    "director": "director",
    "directors": "director",
    "written by": "writer",
    "writer": "writer",
    "writers": "writer",
    "screenwriter": "writer",
    "screenwriters": "writer",
    "creator": "creator",
    "creators": "creator",
    "created by": "creator",
    "starring": "cast",
    "in theaters": "release_date",
    "theatrical release": "release_date",
    "release date (theaters)": "release_date",
    "premiere date": "release_date",
    "release date": "release_date",
    "runtime": "runtime",
    "original language": "language",
    "us box office": "domestic",
    "box office": "domestic",
    "box office (gross usa)": "domestic",
}
"""The rows of the details list that are read, by their labels of all generations in lower case."""


@dataclass(slots=True)
class Detail:
    """One row of the details list: its whole text, and its parts with the links that they have."""

    text: str
    parts: list[tuple[str, str | None]]


def details_of(body: bytes) -> dict[str, Detail] | None:
    """Return the list of details of pages since 2024, parsed from that slice of the page alone; None without one."""
    labelled, last = body.find(b'data-qa="item-label"'), body.rfind(b'data-qa="item-value"')
    if labelled == -1:
        return None
    end = body.find(b"</", last)
    if last < labelled or end == -1:
        raise ShapeError("details", "the page ends inside its list of details")
    rows: list[tuple[str, list[tuple[str, str | None]]]] = []
    slice_ = tree_of(body[body.rfind(b"<", 0, labelled) : end])
    for element in slice_.css('[data-qa="item-label"], [data-qa="item-value"]'):
        if element.attrib["data-qa"] == "item-label":
            rows.append((text_of(element), []))
        elif rows and text_of(element):
            rows[-1][1].append((text_of(element), element.attrib.get("href")))
    return known_details(
        {label: Detail(", ".join(text for text, _ in parts), parts) for label, parts in reversed(rows)}
    )


def known_details(rows: dict[str, Detail]) -> dict[str, Detail] | None:
    """Return the rows that are read, by the names that they have here; None without any: the labels are others then."""
    named = {_LABELS.get(label.strip().rstrip(":").lower(), ""): detail for label, detail in rows.items()}
    return {name: detail for name, detail in named.items() if name and detail.text} or None


def synopsis(body: bytes) -> str | None:
    """Return the plot from the markup of any generation.

    In 2014 a heading stood inside of its paragraph (`<p id="movieSynopsis"><h2>`), and every parser of HTML ends the
    paragraph there: so it is cut out of the page by its end tag.
    """
    opened = _SYNOPSIS.search(body)
    if not opened:
        return None
    tag = re.match(rb"<([a-zA-Z-]+)", body[body.rfind(b"<", 0, opened.start()) :])
    start = body.find(b">", opened.end()) + 1
    if not start:
        raise ShapeError("plot", "the page ends inside of it")
    if closed := _CLOSED_BY_HEADING.match(body, start):
        # A browser has saved it: the text goes on behind the paragraph, up to the next element that is none of it.
        start = closed.end()
        found = _BEHIND_PARAGRAPH.search(body, start)
        end = found.start() if found else -1
    else:
        end = body.find(b"</" + tag[1] + b">", start) if tag else -1
    if end == -1:
        raise ShapeError("plot", "the page ends inside of it")
    return fold(html.unescape(_prose(decode_text(body[start:end])))) or None


def _prose(markup: str) -> str:
    """Return a text without its tags, headings, scripts and buttons; one that is not closed is left out to the end."""
    kept: list[str] = []
    at, closing = 0, ""
    for tag in _TAG.finditer(markup):
        name = (tag[1] or "").lower()
        if not closing:
            kept.append(markup[at : tag.start()])
            if name in _NO_PROSE or (name == "a" and "showMoreSynopsis" in tag[0]):
                closing = f"/{name}"
        elif name == closing:
            closing = ""
        at = tag.end()
    return " ".join(kept if closing else [*kept, markup[at:]])


def cast_tiles(body: bytes) -> list[Person]:
    """Return the cast of pages since 2024, parsed from that slice of the page alone."""
    first, last = body.find(b'data-qa="person-item"'), body.rfind(b'data-qa="person-')
    if first == -1:
        return []
    end = body.find(b"</", last)
    if end == -1:
        raise ShapeError("cast", "the page ends inside of it")
    people = []
    tiles = tree_of(body[body.rfind(b"<", 0, first) : end]).css('[data-qa="person-item"]')
    have_roles = bool(tiles.css('[data-qa="person-role"]'))
    for tile in tiles:
        name = text_of(tile.css('[data-qa="person-name"]'))
        if not name or (not have_roles and text_of(tile) != name):
            raise ShapeError("cast", "a tile without a name, or with more than the name in an unknown form")
        part = part_of([text_of(tile.css('[data-qa="person-role"]'))])
        if part is not None:
            people.append((name, tile.attrib.get("href"), part or None))
    return people


def part_of(lines: list[str]) -> str | None:
    """Return whom somebody plays, "" when the page doesn't say, or None for crew, who stand among the cast since 2021.

    Until 2020 the lines began with "as "; then a character can be called "Director".
    """
    texts = [text for text in map(fold, lines) if text and text not in {"as", "Actor"}]
    characters = [text.removeprefix("as ") for text in texts if text.startswith("as ") or not _JOB.match(text)]
    if texts and not characters:
        return None
    # A note can be a line of its own, and lines can end in commas.
    return " / ".join(filter(None, (_NOTE.sub("", character).rstrip(", ") for character in characters)))


# --- Consensus, offers, titles alike, ids ---------------------------------------------------------------------------

_CONSENSUS: Final = re.compile(
    rb"""<(?P<tag>span)\s[^<>]{0,500}data-qa="critics-consensus"[^<>]{0,500}>"""
    rb"""|<div\s[^<>]{0,500}id="critics-consensus"[^<>]{0,500}>"""
    rb"""|<(?P<older>p)\s[^<>]{0,500}class="[^"<>]{0,500}(?:critic_consensus|--concensus)[^"<>]{0,500}"[^<>]{0,500}>"""
)
"""Its attributes have bounds, as a tag that is never closed would take quadratic time."""
_HEADING: Final = re.compile(r"Critics? Consensus:\s*")
_LONGEST_CONSENSUS: Final = 2_000
_PARAGRAPH: Final = re.compile(rb"<p(?:\s[^<>]*)?>")
_ANY_TAG: Final = re.compile(r"<[^<>]*>")
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
_YEAR_FOR_ADVERTISERS: Final = re.compile(rb'"cag\[release\]"\]?\s{0,9}[:=]\s{0,9}"(\d{4})"')
_NUMBER: Final = re.compile(rb'"field\[rtid\]":"(\d{1,20})"')


def year_for_advertisers(body: bytes) -> int | None:
    """Return the year that pages since 2017 tell their advertisers."""
    told = _YEAR_FOR_ADVERTISERS.search(body)
    return check_year(int(told[1])) if told else None


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
    text = _HEADING.sub("", fold(html.unescape(_ANY_TAG.sub("", decode_text(body[start:end])))), count=1)
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
