"""What the objects of IMDb's GraphQL API say of a title beside its facts: what it is like and related to, where to watch it, its seasons.

IMDb has no page of a season, and no season 0.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from moviecrawler.extract import dig
from moviecrawler.extract.findings import ABSENT, NoValue, ShapeError, attempt, one_of_each_title
from moviecrawler.extract.offers import one_of_each_offer, plain_address
from moviecrawler.items import HISTOGRAM_BARS, Award, Offer, RelatedTitle
from moviecrawler.urls import IMDB_ID

if TYPE_CHECKING:
    from collections.abc import Iterable

    from moviecrawler.items import OfferKind, Relation

_OFFERS: Final[tuple[tuple[re.Pattern[str], OfferKind], ...]] = (
    (re.compile("with ads|free with", re.IGNORECASE), "ads"),
    (re.compile("free", re.IGNORECASE), "free"),
    (re.compile("rent", re.IGNORECASE), "rent"),
    (re.compile("buy|purchase", re.IGNORECASE), "buy"),
    (re.compile("theater|cinema|showtime", re.IGNORECASE), "cinema"),
    (re.compile("stream|subscri", re.IGNORECASE), "subscription"),
)
"""What the names of IMDb's categories of watch options say; "RENT/BUY" is both."""
_NOMINATIONS: Final = ("nominationsExcludeWins", "nominations")
_LONGEST_NUMBER: Final = 9
"""Digits of a season or an episode."""
_UNKNOWN: Final = "Unknown"
"""The season of episodes of which IMDb doesn't know the season."""


TEXTS: Final = dig.texts("node", "text")


def web_address(value: Any) -> str | None:
    """Return an address of the web."""
    address = dig.text(value)
    return address if address and address.startswith(("https://", "http://")) else None


def histogram(bars: Any) -> list[int] | NoValue:
    """Return the votes for 1, 2, … 10 of a histogram, whose bars stand in any order; a rating that nobody gave has none."""
    votes = [0] * HISTOGRAM_BARS
    for bar in dig.items(bars):
        rating, number = dig.integer(bar, "rating"), dig.size(bar, "voteCount")
        if rating is None or number is None or not 1 <= rating <= HISTOGRAM_BARS:
            raise ShapeError("histogram", f"{number} votes for {rating}")
        votes[rating - 1] = number
    return votes if any(votes) else ABSENT


def awards(source: Any) -> list[Award] | NoValue:
    """Return all awards together, and those that IMDb names first, such as Oscars. Until 2024 the nominations were called otherwise."""
    wins = dig.read(dig.size, source, "wins", "total")
    others = next((dig.read(dig.size, source, key, "total") for key in _NOMINATIONS if key in source), None)
    if not isinstance(wins, int) or not isinstance(others, int):
        return None
    named = dig.read(_prestigious, source, "prestigiousAwardSummary")
    counted = [Award(event=None, wins=wins, nominations=others)] if wins or others else []
    return [*counted, *([named] if isinstance(named, Award) else [])] or ABSENT


def _prestigious(summary: Any) -> Award | None:
    event, wins, others = (
        dig.text(summary, "award", "text"),
        dig.size(summary, "wins"),
        dig.size(summary, "nominations"),
    )
    return (
        None if event is None or wins is None or others is None else Award(event=event, wins=wins, nominations=others)
    )


def similar(edges: Any) -> list[RelatedTitle]:
    """Return the site's recommendations."""
    return one_of_each_title(_related("similar", dig.at(edge, "node")) for edge in dig.items(edges))


def connections(edges: Any) -> list[RelatedTitle]:
    """Return the titles that follow this one, refer to it, and so on."""
    nodes = (dig.at(edge, "node") for edge in dig.items(edges))
    return one_of_each_title(
        _related("connection", dig.at(node, "associatedTitle"), dig.text(node, "category", "text")) for node in nodes
    )


def _related(relation: Relation, title: Any, connection: str | None = None) -> RelatedTitle:
    site_id, name = title_id(title, "id"), dig.text(title, "titleText", "text")
    if site_id is None or name is None:
        raise ShapeError("related", f"a title with the id {site_id!r} and the name {name!r}")
    return RelatedTitle(relation=relation, site_id=site_id, title=name, connection=connection)


def title_id(value: Any, *path: str) -> str | None:
    """Return the id of a title or of a series."""
    text = dig.text(value, *path)
    if text is not None and not IMDB_ID.fullmatch(text):
        raise ShapeError("site_id", f"{text!r} is not an id of a title")
    return text


def offers(categories: Any) -> list[Offer]:
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


# --- Series ---------------------------------------------------------------------------------------------------------


def number_in_series(number: Any) -> int | NoValue:
    """Return the number of an episode or of its season: a number, or since 2023 a text to be displayed."""
    if isinstance(number, str):
        is_number = number.isascii() and number.isdecimal() and len(number) <= _LONGEST_NUMBER
        return int(number) if is_number else ABSENT if number == _UNKNOWN else None
    value = dig.integer(number)
    if value is not None and value < 0:
        raise ShapeError("episode", f"{value} is not a number of a season or an episode")
    return value


def number_in_row(row: Any, key: str) -> int | None:
    """Return the season or the episode of a row of a list; None where it doesn't tell."""
    number = attempt(lambda: number_in_series(dig.at(row, key)))
    return number if isinstance(number, int) else None


def seasons_numbered(key: str, seasons: Any) -> int | NoValue:
    """Return how many seasons a list has, by the key of their numbers."""
    return _count(dig.at(season, key) for season in dig.items(seasons))


def seasons_displayed(seasons: Any) -> int | NoValue:
    """Return the number of seasons, if all of them stand there: one can be that of no number."""
    edges = dig.items(seasons, "edges")
    is_whole = len(edges) == dig.size(seasons, "total")
    return _count(dig.text(edge, "node", "season") for edge in edges) if is_whole else None


def _count(numbers: Iterable[Any]) -> int | NoValue:
    """Return how many seasons have a number. Raises ShapeError when one says neither that nor that it is unknown."""
    read = [number_in_series(number) for number in numbers]
    if None in read:
        raise ShapeError("season_count", "a season without a number")
    return len({number for number in read if isinstance(number, int)}) or ABSENT
