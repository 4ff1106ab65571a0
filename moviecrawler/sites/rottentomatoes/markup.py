"""Reads the markup of Rotten Tomatoes' title pages.

That is details, cast, seasons, offers, similar titles and the critics' consensus.
"""

import re
from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

from parsel import Selector

from moviecrawler.basics.texts import fold
from moviecrawler.basics.values import parse_date, parse_year
from moviecrawler.extract.dig import JsonObject, as_list, get_text
from moviecrawler.extract.findings import (
    ABSENT,
    NoValue,
    ShapeError,
    attempt,
    one_of_each_title,
    scores_of,
)
from moviecrawler.extract.offers import one_of_each_offer, plain_address
from moviecrawler.extract.people import Person, without_notes
from moviecrawler.extract.trees import text_of
from moviecrawler.items import Movie, Offer, OfferKind, RelatedTitle
from moviecrawler.sites.ids import id_in_url
from moviecrawler.sites.rottentomatoes.values import score, slot
from moviecrawler.sites.titles import listed_seasons, new_title


class Piece(NamedTuple):
    """A part of a row of the list of details."""

    text: str
    link: str | None


Rows = dict[str, list[Piece]]
"""The rows of the list of details, by the names that they have here."""

_LABELS: dict[str, str] = {
    "rating": "certificate",
    "genre": "genres",
    "director": "director",
    "writer": "writer",
    "screenwriter": "writer",
    "creator": "creator",
    "release date (theaters)": "release_date",
    "premiere date": "release_date",
    "release date": "release_date",
    "runtime": "runtime",
    "original language": "language",
    "box office (gross usa)": "domestic",
}
"""The rows of the list of details that are read, by their labels in lower case."""
_JOB = re.compile(
    r"^(?:(?:executive|co|associate|line|assistant|original|film|art|set|costume|production|music"
    r"|sound)[\s-]*)*"
    r"(?:director(?: of photography)?|writer|screenwriter|screenplay|story|novel|book|author"
    r"|creator|producer|showrunner|cinematograph(?:er|y)|edit(?:or|ing)|composer|music"
    r"|design(?:er)?|decorat(?:or|ion)|direction|casting)$",
    re.IGNORECASE,
)
"""Matches the job of a member of the crew, which is at the position of a character."""
_NO_CONSENSUS = re.compile(r"no consensus yet\b|not enough reviews", re.IGNORECASE)
_LONGEST_CONSENSUS = 2_000
_LICENCES: tuple[tuple[str, tuple[OfferKind, ...]], ...] = (
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
"""The beginnings of licences, and their kinds of offers; a price may follow."""
_SHOWTIMES = "showtimes"
_COUNTRY = "US"
"""The site has offers of the United States only."""
_LONGEST_AIRED = 100
"""Characters of a season's air date."""


def details_of(tree: Selector) -> Rows:
    """Return the rows of the list of details."""
    rows: Rows = {}
    name = None
    # Until spring 2024 they were called `movie-info-item-label` and `movie-info-item-value`.
    for element in tree.css('[data-qa$="item-label"], [data-qa$="item-value"]'):
        kind = element.attrib["data-qa"]
        if kind.endswith("label"):
            name = _LABELS.get(text_of(element).rstrip(":").lower())
        elif name and text_of(element):
            is_whole = kind == "item-value"
            pieces = [_linked_piece(element)] if is_whole else _pieces(element)
            rows.setdefault(name, []).extend(pieces)
    return rows


def _pieces(value: Selector) -> Iterator[Piece]:
    """Yield the parts of a value with commas between them; links may have commas inside."""
    for piece in value.xpath("descendant::a | descendant::text()[not(ancestor::a)]"):
        if isinstance(piece.root, str):
            yield from (Piece(fold(part), None) for part in piece.root.split(",") if fold(part))
        else:
            yield _linked_piece(piece)


def _linked_piece(element: Selector) -> Piece:
    return Piece(text_of(element), element.attrib.get("href"))


def plot_of(tree: Selector) -> str | None:
    """Return the plot that a page shows."""
    return (
        text_of(
            tree.css(
                '[data-qa="synopsis-value"], [data-qa$="-info-synopsis"], '
                '[data-qa$="-info-description"]'
            )
        )
        or None
    )


def posters_of(tree: Selector) -> list[str]:
    """Return the addresses of the posters in the part of the page above all else."""
    posters = tree.css("media-hero, media-scorecard").css('[slot*="oster"], [class*="oster"]')
    return posters.xpath("descendant-or-self::*/@src").getall()


def cast_of(tree: Selector) -> list[Person]:
    """Return the cast without the crew, which is in the same list.

    Raises ShapeError when a tile can't be read.
    """
    tiles = tree.css('[data-qa="person-item"], [data-qa="cast-crew-item"]')
    roles = [tile.css('[data-qa="person-role"], .p--small') for tile in tiles]
    people = []
    for tile, role in zip(tiles, roles, strict=True):
        name = text_of(tile.css('[data-qa="person-name"], .metadata a, .metadata p:not(.p--small)'))
        if not name or (not any(roles) and text_of(tile) != name):
            raise ShapeError(
                "cast", "a tile without a name, or with more than the name in an unknown form"
            )
        # A note can be a line of its own, and lines can end in commas.
        lines = [
            line for line in map(fold, role.css("::text").getall()) if line and line != "Actor"
        ]
        characters = [line for line in lines if not _JOB.match(line)]
        if characters or not lines:
            played = " / ".join(filter(None, map(without_notes, characters)))
            link = tile.css("[href]").xpath("@href").get()
            people.append(Person(name, link, played or None))
    return people


def consensus_of(tree: Selector) -> str | NoValue:
    """Return the critics' consensus; a page with few reviews leaves it out."""
    text = text_of(tree.css('#critics-consensus p, [data-qa="critics-consensus"]'))
    if len(text) > _LONGEST_CONSENSUS:
        raise ShapeError("consensus", f"{len(text):,} characters")
    return ABSENT if _NO_CONSENSUS.match(text) else text or None


def offers_of(tree: Selector) -> list[Offer] | NoValue:
    """Return where the title can be watched; the section is left out where that is nowhere."""
    section = tree.css('#where-to-watch, [data-qa="section:where-to-watch"]')[:1]
    if not section:
        return None
    offers = [offer for item in section.css("where-to-watch-meta") for offer in _offers(item)]
    if not offers and section.css("[href]"):
        raise ShapeError("offers", "links that are not offers")
    return one_of_each_offer(offers) or ABSENT


def _offers(item: Selector) -> Iterator[Offer]:
    provider = item.attrib.get("affiliate")
    licence = slot(item, "license").lower()
    kinds = next((kinds for begin, kinds in _LICENCES if licence.startswith(begin)), None)
    if provider == _SHOWTIMES:
        kinds = ("cinema",)
    if not provider or kinds is None:
        raise ShapeError("offers", f"{licence!r} of {provider!r} is not a known licence")
    for kind in kinds:
        yield Offer(
            provider=provider,
            kind=kind,
            country=_COUNTRY,
            url=plain_address(item.attrib.get("href")),
        )


def similar_of(tree: Selector) -> list[RelatedTitle] | NoValue:
    """Return the titles that the site recommends to whoever likes this one."""
    section = tree.css('#more-like-this, [data-qa="section:more-like-this"], #recommendations')[:1]
    if not section:
        return None
    links = section.css("a[href], rt-link[href]")
    similar = []
    for link in links:
        site_id = id_in_url("rottentomatoes", link.attrib["href"])
        name = text_of(
            link if link.attrib.get("slot") == "title" else link.css('[slot="title"], .p--small')
        )
        if site_id and name:
            similar.append(RelatedTitle(relation="similar", site_id=site_id, title=name))
    if links and not similar:
        raise ShapeError("related", "links without titles")
    return one_of_each_title(similar) or ABSENT


def seasons_of(series: Movie, tree: Selector, linked: JsonObject) -> list[Movie]:
    """Return the seasons that a series' page lists, with what it says of each.

    A tile that can't be read is passed by: JSON-LD names its season, too.
    """
    named: dict[str, str | None] = {}
    for season in as_list(linked, "containsSeason"):
        site_id = id_in_url("rottentomatoes", attempt(get_text, season, "url"))
        if site_id:
            named[site_id] = attempt(get_text, season, "name")
    rows = [_season(series, tile, named) for tile in tree.css("tile-season")]
    rows += [_named_season(series, site_id, name) for site_id, name in named.items()]
    return listed_seasons(series, rows)


def _season(series: Movie, tile: Selector, names: dict[str, str | None]) -> Movie | None:
    site_id = id_in_url("rottentomatoes", tile.attrib.get("href"))
    if site_id is None:
        return None
    season = _named_season(series, site_id, slot(tile, "title") or names.get(site_id))
    season.scores = scores_of(
        partial(score, "tomatometer", slot(tile, "critics-score")),
        partial(score, "popcornmeter", slot(tile, "audience-score")),
    )
    aired = slot(tile, "air-date")
    if len(aired) <= _LONGEST_AIRED:
        season.year = attempt(parse_year, aired)
        season.release_date = attempt(parse_date, aired)
    return season


def _named_season(series: Movie, site_id: str, title: str | None) -> Movie:
    return new_title("rottentomatoes", site_id, title or series.title)
