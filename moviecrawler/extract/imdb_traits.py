"""What the objects of IMDb's GraphQL API say of a title beside its facts: what it is like, what it is related to, where to watch it."""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from moviecrawler.extract import dig
from moviecrawler.extract.findings import ABSENT, NoValue, ShapeError, one_of_each_title
from moviecrawler.extract.offers import one_of_each_offer, plain_address
from moviecrawler.items import HISTOGRAM_BARS, Award, Offer, RelatedTitle
from moviecrawler.urls import IMDB_ID

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from moviecrawler.items import OfferKind

_OFFERS: Final[tuple[tuple[re.Pattern[str], OfferKind], ...]] = (
    (re.compile("with ads|free with", re.IGNORECASE), "ads"),
    (re.compile("free", re.IGNORECASE), "free"),
    (re.compile("rent", re.IGNORECASE), "rent"),
    (re.compile("buy|purchase", re.IGNORECASE), "buy"),
    (re.compile("theater|cinema|showtime", re.IGNORECASE), "cinema"),
    (re.compile("stream|subscri", re.IGNORECASE), "subscription"),
)
"""What the names of IMDb's categories of watch options say; "RENT/BUY" is both."""


def trait_places(sources: list[Any]) -> dict[str, list[Callable[[], Any]]]:
    """Return where each of these fields stands in the objects of a page."""

    def at(read: Callable[[Any], Any], *path: str) -> list[Callable[[], Any]]:
        return [partial(dig.read, read, source, *path) for source in sources if path[0] in source]

    return {
        "keywords": at(_TEXTS, "keywords", "edges") + at(_TEXTS, "storylineKeywords", "edges"),
        "interests": at(texts_at("node", "primaryText", "text"), "interests", "edges"),
        "taglines": at(_TEXTS, "taglines", "edges"),
        "awards": [partial(_awards, source) for source in sources if "wins" in source],
        "related.similar": at(_similar, "moreLikeThisTitles", "edges"),
        "related.connection": at(_connections, "connections", "edges"),
        "offers": at(_offers, "watchOptionsByCategory", "categorizedWatchOptionsList"),
    }


def texts_at(*leaf: str) -> Callable[[Any], list[str] | None]:
    """Return what reads the texts at `leaf` of the items of a list; None where an item has none: then it isn't that list."""

    def read(items: Any) -> list[str] | None:
        texts = [dig.text(item, *leaf) for item in dig.items(items)]
        return None if None in texts else [text for text in texts if text]

    return read


_TEXTS: Final = texts_at("node", "text")


def dig_address(value: Any, *path: str) -> str | None:
    """Return the address of the web at `path`."""
    address = dig.text(value, *path)
    return address if address and address.startswith(("https://", "http://")) else None


def read_histogram(bars: Any) -> list[int] | NoValue:
    """Return the votes for 1, 2, … 10 of a histogram, whose bars stand in any order; a rating that nobody gave has none."""
    votes = [0] * HISTOGRAM_BARS
    for bar in dig.items(bars):
        rating, number = dig.integer(bar, "rating"), dig.size(bar, "voteCount")
        if rating is None or number is None or not 1 <= rating <= HISTOGRAM_BARS:
            raise ShapeError("histogram", f"{number} votes for {rating}")
        votes[rating - 1] = number
    return votes if any(votes) else ABSENT


def _awards(source: Any) -> list[Award] | NoValue:
    """Return all awards together, and those that IMDb names first, such as Oscars. Until 2024 the nominations were called otherwise."""
    wins = dig.read(dig.size, source, "wins", "total")
    others = [
        dig.read(dig.size, source, key, "total") for key in ("nominationsExcludeWins", "nominations") if key in source
    ]
    if not isinstance(wins, int) or not others or not isinstance(others[0], int):
        return None
    named = dig.read(_prestigious, source, "prestigiousAwardSummary")
    counted = [Award(event=None, wins=wins, nominations=others[0])] if wins or others[0] else []
    return [*counted, *([named] if isinstance(named, Award) else [])] or ABSENT


def _prestigious(summary: Any) -> Award | None:
    event, wins, nominations = (
        dig.text(summary, "award", "text"),
        dig.size(summary, "wins"),
        dig.size(summary, "nominations"),
    )
    return (
        None
        if event is None or wins is None or nominations is None
        else Award(event=event, wins=wins, nominations=nominations)
    )


def _similar(edges: Any) -> list[RelatedTitle]:
    return one_of_each_title(
        RelatedTitle(relation="similar", site_id=_id(node), title=_title(node)) for node in _nodes(edges)
    )


def _connections(edges: Any) -> list[RelatedTitle]:
    return one_of_each_title(
        RelatedTitle(
            relation="connection",
            site_id=_id(other),
            title=_title(other),
            connection=dig.text(node, "category", "text"),
        )
        for node in _nodes(edges)
        for other in [dig.at(node, "associatedTitle")]
    )


def _nodes(edges: Any) -> Iterator[Any]:
    return (dig.at(edge, "node") for edge in dig.items(edges))


def _id(title: Any) -> str:
    site_id = dig.text(title, "id")
    if site_id is None or not IMDB_ID.fullmatch(site_id):
        raise ShapeError("related", f"{site_id!r} is no id of a title")
    return site_id


def _title(title: Any) -> str:
    name = dig.text(title, "titleText", "text")
    if name is None:
        raise ShapeError("related", "a title without its name")
    return name


def _offers(categories: Any) -> list[Offer]:
    """Return the watch options of each category. An answer of the API has them; pages fetch them later."""
    return one_of_each_offer(
        Offer(provider=provider, kind=kind, url=plain_address(dig.text(option, "link")))
        for category in dig.items(categories)
        for option in dig.items(category, "watchOptions")
        for provider in [dig.text(option, "provider", "name", "value")]
        for kind in _kinds_of(dig.text(category, "categoryName", "value") or "")
        if provider
    )


def _kinds_of(category: str) -> list[OfferKind]:
    found = [kind for pattern, kind in _OFFERS if pattern.search(category)]
    return found if set(found) == {"rent", "buy"} else found[:1]
