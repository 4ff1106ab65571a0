"""What Metacritic's pages since 2026 have beside a title's facts: how sure its scores are, where to watch it, titles alike."""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from moviecrawler.extract import dig
from moviecrawler.extract.findings import (
    ABSENT,
    Findings,
    NoValue,
    ShapeError,
    attempt,
    check_average,
    first_of_each,
    one_of_each_title,
)
from moviecrawler.extract.metacritic_values import KINDS, id_in
from moviecrawler.extract.offers import one_of_each_offer, plain_address
from moviecrawler.items import Award, Offer, RelatedTitle
from moviecrawler.urls import id_in_url, part_of_series

if TYPE_CHECKING:
    from collections.abc import Iterator

    from moviecrawler.items import OfferKind, Score, ScoreKind, TitleKind

SUMMARIES: Final[dict[ScoreKind, str]] = {"metascore": "critic-score-summary", "metacritic_user": "user-score-summary"}
OFFERS: Final = "where-to-watch"
RELATED: Final = "related-carousel"
_PREFIXES: Final = {"movie": "movie", "show": "tv", "tv": "tv", "tv-show": "tv", "game-title": "game", "album": "music"}
"""The first part of a site_id, by a product's own type."""
_COUNTS: Final = {"liked": "positiveCount", "neutral": "neutralCount", "disliked": "negativeCount"}
_MARKS: Final = ("mustSee", "mustWatch", "mustPlay")
_OFFER_KINDS: Final[dict[str, OfferKind]] = {
    "free": "free",
    "ads": "ads",
    "flatrate": "subscription",
    "rent": "rent",
    "buy": "buy",
}
"""JustWatch's kinds of offers, in the order of the page."""
_MOST_EXPENSIVE: Final = 1_000_000
"""In any currency; Indonesia's films cost some 100,000 rupiah."""
_LONGEST_SENTIMENT: Final = 100
"""Characters; "Overwhelming dislike" has 20."""
_WATCHED: Final = frozenset({"movie", "series"})
_JUSTWATCH: Final = "JustWatch"
_LOCALE: Final = re.compile(r"[a-z]{2}_([A-Z]{2})")
_JUSTWATCH_PATH: Final = re.compile(r"/[\w/.-]{1,300}")


def id_of_product(product: Any) -> str:
    """Return the site_id that a product's type and slug make. Raises ShapeError for what is no title."""
    kind, slug = dig.text(product, "type"), dig.text(product, "slug")
    site_id = id_in(f"/{_PREFIXES.get(kind or '')}/{slug}")
    if slug is None or site_id is None:
        raise ShapeError("site_id", f"{kind!r} {slug!r} is no title")
    return site_id


def own_summary(site_id: str, components: dict[str | None, Any]) -> Any:
    """Return the Metascore that a product has beside its facts; None where that is the series', and the page its season's."""
    own = dig.at(components.get("product"), "data", "item", "criticScoreSummary")
    return own if part_of_series("metacritic", site_id) is None or id_in(dig.text(own, "url")) == site_id else None


def is_own(site_id: str, summary: Any) -> bool:
    """Return whether a summary of scores is of that season, as far as it says of what it is; of a whole title all are."""
    named = attempt(lambda: id_in(dig.text(summary, "url")))
    return named in {None, site_id} or part_of_series("metacritic", site_id) is None


def add_facts(score: Score, summary: Any) -> None:
    """Add what a row's summary says beside its score."""
    score.liked, score.neutral, score.disliked = (attempt(partial(dig.size, summary, key)) for key in _COUNTS.values())
    score.sentiment = attempt(lambda: _sentiment(dig.at(summary, "sentiment")))
    if score.kind == "metascore":
        average = attempt(lambda: dig.read(_average, summary, "normalizedScore"))
        score.average = average if isinstance(average, float) else None


def look_beside_scores(found: Findings, components: dict[str | None, Any]) -> None:
    """Find how many like a title and how many don't, and the rest of what stands beside its scores."""
    product, site_id = dig.at(components.get("product"), "data", "item"), found.movie.site_id or ""
    own = attempt(lambda: own_summary(site_id, components))
    for kind, name in SUMMARIES.items():
        of_page = attempt(partial(dig.at, components.get(name), "data", "item"))
        summaries = [of_page if is_own(site_id, of_page) else None, *([own] if kind == "metascore" else [])]
        for fact, key in _COUNTS.items():
            found.look(f"scores.{kind}.{fact}", partial(dig.first, dig.size, summaries, key))
        found.look(f"scores.{kind}.sentiment", partial(dig.first, _sentiment, summaries, "sentiment"))
    found.look("scores.metascore.average", *dig.places(_average, [own], "normalizedScore"))
    if found.movie.season is None:  # the product beside a season's scores is its series
        found.look("scores.metascore.certified", lambda: _must(product))


def _sentiment(text: Any) -> str | None:
    sentiment = dig.text(text)
    if sentiment and len(sentiment) > _LONGEST_SENTIMENT:
        raise ShapeError("scores", f"a sentiment of {len(sentiment)} characters")
    return sentiment


def _average(score: Any) -> float | None:
    average = dig.number(score)
    return None if average is None else check_average("metascore", average)


def _must(product: Any) -> bool | None:
    """Return whether a title is a must-see; a product has the mark of its own kind, or those of all kinds."""
    marks = [mark for name in _MARKS if isinstance(mark := product.get(name), bool)]
    return any(marks) if marks else None


def look_for_traits(found: Findings, components: dict[str | None, Any]) -> None:
    """Find what a title is like, the titles that the page recommends, its offers and ids."""
    product = dig.at(components.get("product"), "data", "item")
    watch = attempt(partial(dig.at, components.get(OFFERS), "data", "item"))
    found.look("keywords", lambda: dig.read(_texts, product, "tags"))
    found.look("taglines", lambda: dig.read(_tagline, product, "tagline"))
    found.look("awards", lambda: dig.read(_awards, product, "awards"))
    found.look(
        "related.similar",
        lambda: dig.read(partial(_similar, found.movie.kind), components.get(RELATED), "data", "items"),
    )
    found.look("offers", lambda: _offers(watch))
    if found.movie.season is None:  # a season's page names the ids of its series
        found.look("external_ids", lambda: _external_ids(product, watch))


def _texts(tags: Any) -> list[str]:
    return [text for tag in dig.items(tags) if (text := dig.text(tag))]


def _tagline(text: Any) -> list[str] | NoValue:
    return [tagline] if (tagline := dig.text(text)) else ABSENT


def _awards(awards: Any) -> list[Award]:
    return first_of_each(map(_award, dig.items(awards)), lambda award: award.event)


def _award(award: Any) -> Award:
    event, wins, nominations = (
        dig.text(award, "awardEvent"),
        dig.size(award, "wins"),
        dig.size(award, "nominations"),
    )
    if event is None or wins is None or nominations is None:
        raise ShapeError("awards", f"{wins} wins and {nominations} nominations of {event!r}")
    return Award(event=event, wins=wins, nominations=nominations)


def _similar(kind: TitleKind, items: Any) -> list[RelatedTitle]:
    """Return the titles that the page recommends; beside a film or series no game, which no store takes as its relation."""
    is_watched = kind in _WATCHED
    titles = [(id_of_product(item), dig.text(item, "title")) for item in dig.items(items)]
    return one_of_each_title(
        RelatedTitle(relation="similar", site_id=site_id, title=title)
        for site_id, title in titles
        if title
        and id_in_url("metacritic", f"/{site_id}") == site_id
        and not (is_watched and KINDS[site_id.partition("/")[0]] not in _WATCHED)
    )


def _offers(watch: Any) -> list[Offer] | NoValue:
    """Return JustWatch's offers for the page's country; each has an option for every quality."""
    if watch is None or not any(kind in watch for kind in _OFFER_KINDS):
        return None
    locale = _LOCALE.fullmatch(dig.text(watch, "meta", "locale") or "")
    country = locale[1] if locale else None
    found = [
        offer
        for name, kind in _OFFER_KINDS.items()
        for listed in dig.items(watch, name)
        for offer in _options(listed, kind, country)
    ]
    if not found and dig.at(watch, "hasOffers"):
        raise ShapeError("offers", "there are some, but not where they were")
    return one_of_each_offer(found) or ABSENT


def _options(listed: Any, kind: OfferKind, country: str | None) -> Iterator[Offer]:
    provider = dig.text(listed, "providerName")
    if provider is None:
        raise ShapeError("offers", "an offer of nobody")
    url = plain_address(dig.text(listed, "link"))
    for option in dig.items(listed, "options") or [{}]:
        price, currency = dig.number(option, "optionPrice"), dig.text(option, "optionCurrencyCode")
        is_priced = kind in {"rent", "buy"} and price is not None and price > 0 and currency is not None
        if is_priced and price is not None and price > _MOST_EXPENSIVE:
            raise ShapeError("offers", f"a price of {price}")
        yield Offer(
            provider=provider,
            kind=kind,
            country=country,
            price=price if is_priced else None,
            currency=currency if is_priced else None,
            quality=dig.text(option, "qualityType"),
            url=url,
            source=_JUSTWATCH,
        )


def _external_ids(product: Any, watch: Any) -> dict[str, str] | None:
    number = attempt(lambda: dig.integer(product, "id"))
    path = attempt(lambda: dig.text(watch, "meta", "fullPath"))
    ids = {} if number is None else {"metacritic": str(number)}
    if path and _JUSTWATCH_PATH.fullmatch(path):
        ids["justwatch"] = path
    return ids or None
