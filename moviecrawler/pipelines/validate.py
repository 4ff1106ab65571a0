"""Keeping out what no title can have, before any store sees it."""

from __future__ import annotations

import asyncio
import re
from datetime import datetime
from typing import TYPE_CHECKING, Any, get_args, get_type_hints

from scrapy.exceptions import DropItem

from moviecrawler.errors import ConfigurationError, InvalidItemError
from moviecrawler.extract.findings import attempt
from moviecrawler.extract.values import parse_date
from moviecrawler.fields import NUMBERS, ONLY_IN_DATASETS, TEXT_LISTS, present_in, score_facts_told, told_by
from moviecrawler.items import (
    HISTOGRAM_BARS,
    Amount,
    AmountKind,
    Award,
    Credit,
    Miss,
    Movie,
    Offer,
    OfferKind,
    OtherTitle,
    RelatedTitle,
    Relation,
    Role,
    Score,
    Source,
    TitleKind,
)
from moviecrawler.pipelines.files import append_rejected, check_data_dir
from moviecrawler.pipelines.value_checks import (
    LONGEST,
    PLAIN_TEXTS,
    check_choice,
    check_given,
    check_integer,
    check_list,
    check_number,
    check_text,
    check_unique,
    clean_texts,
)
from moviecrawler.signals import item_rejected
from moviecrawler.sites import SCORES, SITES
from moviecrawler.texts import on_one_line, shortened
from moviecrawler.urls import id_in_url, parse_title_id, part_of_series, site_of

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Self

    from scrapy.crawler import Crawler
    from scrapy.signalmanager import SignalManager
    from scrapy.statscollectors import StatsCollector

    from moviecrawler.items import Site

_MOST = 10**9
"""More than anyone has ever counted of people, votes or places in a list."""
_MOST_MONEY = 10**15
_CURRENCY = re.compile("[A-Z]{3}")  # ISO 4217
_LONGEST_OF_OFFER = 200
"""Characters of an offer's provider, country and so on. Three of them are a key in Postgres, whose indexes take 2,700 bytes."""
_LONGEST_NAME = 500
"""Characters of a person's name or id, which are a key there too."""
_LONGEST_REASON = 500
"""Characters; longer ones are cut in the middle."""

_RANGES = {
    **dict.fromkeys(NUMBERS, (1, _MOST)),
    **dict.fromkeys(("year", "end_year"), (1870, 2100)),
    "runtime_minutes": (1, 100_000),
    **dict.fromkeys(("imdb_top250_rank", "imdb_top250_tv_rank"), (1, 250)),
    **dict.fromkeys(("poster_width", "poster_height"), (1, 100_000)),
    **dict.fromkeys(("season", "episode"), (0, _MOST)),
}
"""The least and the most of each number; most are counts or ranks."""
_PAID: tuple[OfferKind, ...] = ("rent", "buy")
_LEAST_PRICE = 0.001
"""Of an offer, in its currency: what costs nothing is free."""
_NAMER = re.compile("[a-z_]{1,30}")
_MOST_IDS = 100
"""External ids of a title."""
_OUTCOMES = get_args(get_type_hints(Miss)["outcome"])
_KINDS, _SOURCES, _ROLES = get_args(TitleKind), get_args(Source), get_args(Role)
_OFFER_KINDS, _RELATIONS, _AMOUNT_KINDS = get_args(OfferKind), get_args(Relation), get_args(AmountKind)


class ValidatePipeline:
    """Drops every Movie and Miss that is refused by `check_movie` or `check_miss`.

    Control characters are taken out of all texts first, so that every store is offered the same.

    What is dropped stands in `rejected.jsonl` with the reason, is sent with the signal `item_rejected`, and is counted in
    `items/rejected` and `items/rejected/<field>`.
    """

    def __init__(self, data_dir: Path, stats: StatsCollector, signals: SignalManager) -> None:
        self._data_dir = data_dir
        self._stats = stats
        self._signals = signals

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Read DATA_DIR."""
        assert crawler.stats is not None  # noqa: S101 - Scrapy sets it before it creates components
        return cls(check_data_dir(crawler.settings.get("DATA_DIR", "data")), crawler.stats, crawler.signals)

    async def process_item(self, item: Any) -> Any:
        """Return the item; raise DropItem for a Movie or Miss that can't be right."""
        try:
            _check(item)
        except InvalidItemError as error:
            raise DropItem(await self._reject(item, error)) from None
        return item

    async def _reject(self, item: Any, error: InvalidItemError) -> str:
        """Set an item aside, and return why."""
        reason = shortened(on_one_line(str(error)), _LONGEST_REASON)
        self._stats.inc_value("items/rejected")
        self._stats.inc_value(f"items/rejected/{error.field}")
        # It waits for the disk.
        if not await asyncio.to_thread(append_rejected, self._data_dir, "validate", reason, item):
            self._stats.inc_value("items/unrecorded")
        self._signals.send_catch_log(item_rejected, store="validate", reason=reason, item=item)
        return reason


def _check(item: Any) -> None:
    """Clean the texts of a Movie or Miss, and raise InvalidItemError when it can't be right."""
    if isinstance(item, Movie):
        clean_texts(item)
        check_movie(item)
        if item.scraped_at is None:
            raise InvalidItemError("scraped_at", "is missing, so that no store could tell newer from older")
    elif isinstance(item, Miss):
        item.reason = shortened(on_one_line(item.reason), _LONGEST_REASON) or item.outcome
        check_miss(item)


def check_miss(miss: Miss) -> None:
    """Raise InvalidItemError for the first field that no miss can have."""
    check_choice("site", miss.site, SITES)
    check_choice("outcome", miss.outcome, _OUTCOMES)
    for name in ("site_id", "url", "reason"):
        check_text(name, getattr(miss, name))
    _check_time("checked_at", miss.checked_at)


def check_movie(movie: Movie) -> None:
    """Raise InvalidItemError for the first field that no title can have: its name, the value, and what would be right."""
    _check_identity(movie)
    check_choice("kind", movie.kind, _KINDS)
    check_choice("source", movie.source, _SOURCES)
    check_text("title", movie.title)
    for name in PLAIN_TEXTS:
        check_given(name, getattr(movie, name))
    _check_series(movie)
    for name in TEXT_LISTS:
        for text in check_list(name, getattr(movie, name), str):
            check_text(name, text)
    for name, (least, most) in _RANGES.items():
        if getattr(movie, name) is not None:
            check_integer(name, getattr(movie, name), least, most)
    if movie.year is not None and movie.end_year is not None and movie.end_year < movie.year:
        raise InvalidItemError("end_year", f"{movie.end_year} is before the year {movie.year}")
    _check_dates(movie)
    if not isinstance(movie.list_computed, bool):
        raise InvalidItemError("list_computed", f"{movie.list_computed!r} is not a boolean")
    _check_credits(check_list("credits", movie.credits, Credit))
    for other in check_list("other_titles", movie.other_titles, OtherTitle):
        check_text("other_titles", other.title)
        check_given("other_titles", other.country, other.language, other.kind)
    _check_scores(check_list("scores", movie.scores, Score))
    _check_amounts(check_list("amounts", movie.amounts, Amount))
    _check_offers(check_list("offers", movie.offers, Offer))
    _check_awards(check_list("awards", movie.awards, Award))
    _check_related(check_list("related", movie.related, RelatedTitle), movie.site)
    _check_external_ids(movie.external_ids)
    _check_silent(movie)
    if movie.fetch is not None:
        check_text("fetch", movie.fetch.url)


def _check_identity(movie: Movie) -> None:
    check_choice("site", movie.site, SITES)
    if movie.site_id is None:
        raise InvalidItemError("site_id", "is missing")
    check_text("site_id", movie.site_id)
    if not _is_id(movie.site, movie.site_id):
        raise InvalidItemError("site_id", f"{movie.site_id!r} is not an id of {movie.site}")
    check_text("url", movie.url)
    if site_of(movie.url or "") != movie.site or id_in_url(movie.site, movie.url or "") != movie.site_id:
        raise InvalidItemError("url", f"{movie.url!r} is not the address of {movie.site_id} on {movie.site}")
    if movie.imdb_id is not None:
        check_text("imdb_id", movie.imdb_id)
        if not _is_id("imdb", movie.imdb_id) or (movie.site == "imdb" and movie.imdb_id != movie.site_id):
            raise InvalidItemError("imdb_id", f"{movie.imdb_id!r} is not the IMDb id of {movie.site_id}")


def _check_series(movie: Movie) -> None:
    if movie.series_id is not None and (not _is_id(movie.site, movie.series_id) or movie.series_id == movie.site_id):
        raise InvalidItemError("series_id", f"{movie.series_id!r} is not the series of {movie.site_id} on {movie.site}")
    part = part_of_series(movie.site, movie.site_id or "")
    if movie.kind != part.kind if part else movie.kind == "season":
        raise InvalidItemError("kind", f"{movie.site_id} is no {movie.kind} on {movie.site}, by its id")
    if part and (movie.series_id, movie.season) != (part.series_id, part.season):
        raise InvalidItemError("season", f"{movie.site_id} is not of season {movie.season} of {movie.series_id}")


def _is_id(site: Site, text: str) -> bool:
    try:
        return parse_title_id(site, text) == text
    except ConfigurationError:
        return False


def _check_dates(movie: Movie) -> None:
    date = movie.release_date
    if date is not None:
        check_text("release_date", date)
        if attempt(lambda: parse_date(date)) != date:
            raise InvalidItemError("release_date", f"{date!r} is not a date such as 1999-03-31 or 1999-03")
    if movie.scraped_at is not None:
        _check_time("scraped_at", movie.scraped_at)


def _check_time(field: str, when: object) -> None:
    if not isinstance(when, datetime) or when.utcoffset() is None:
        raise InvalidItemError(field, f"{when!r} is not a time with its zone")


def _check_credits(credits_: list[Credit]) -> None:
    taken: set[tuple[Role, int]] = set()
    for credit in credits_:
        check_choice("credits", credit.role, _ROLES)
        if credit.name is not None or credit.person_id is None:
            check_text("credits", credit.name, _LONGEST_NAME)
        check_integer("credits", credit.position, 1, _MOST)
        check_given("credits", credit.person_id, most=_LONGEST_NAME)
        check_given("credits", credit.character)
        if (credit.role, credit.position) in taken:
            raise InvalidItemError("credits", f"{credit.role} {credit.position} stands there twice")
        taken.add((credit.role, credit.position))


def _check_scores(scores: list[Score]) -> None:
    for score in scores:
        check_choice("scores", score.kind, SCORES)
        check_number("scores", score.value, SCORES[score.kind].lowest, SCORES[score.kind].scale)
        _check_score_facts(score)
    check_unique("scores", [score.kind for score in scores])


def _check_score_facts(score: Score) -> None:
    if score.count is not None:
        check_integer("scores", score.count, 1, _MOST)
    for number in (score.reviews, score.liked, score.neutral, score.disliked):
        if number is not None:
            check_integer("scores", number, 0, _MOST)
    if score.average is not None:
        if (highest := SCORES[score.kind].average_scale) is None:
            raise InvalidItemError("scores", f"{score.kind} is an average itself, and has one of {score.average!r}")
        check_number("scores", score.average, 0, highest)
    if score.certified is not None and not isinstance(score.certified, bool):
        raise InvalidItemError("scores", f"certified is {score.certified!r}, which is not a boolean")
    check_given("scores", score.sentiment)
    if check_list("scores", score.histogram, int) and len(score.histogram) != HISTOGRAM_BARS:
        raise InvalidItemError("scores", f"a histogram of {len(score.histogram)} values, not {HISTOGRAM_BARS}")
    for votes in score.histogram:
        check_integer("scores", votes, 0, _MOST)


def _check_offers(offers: list[Offer]) -> None:
    for offer in offers:
        check_choice("offers", offer.kind, _OFFER_KINDS)
        check_text("offers", offer.provider, _LONGEST_OF_OFFER)
        texts = (offer.country, offer.currency, offer.quality, offer.source)
        check_given("offers", *texts, most=_LONGEST_OF_OFFER)
        check_given("offers", offer.url, most=LONGEST["url"])
        if offer.seen_at is not None:
            _check_time("offers", offer.seen_at)
        if (offer.price is None) != (offer.currency is None) or (offer.price is not None and offer.kind not in _PAID):
            raise InvalidItemError("offers", f"{offer.kind} for {offer.price!r} {offer.currency}")
        if offer.price is not None:
            check_number("offers", offer.price, _LEAST_PRICE, _MOST_MONEY)
        if offer.url is not None and not offer.url.startswith(("https://", "http://")):
            raise InvalidItemError("offers", f"{offer.url!r} is not an address of the web")
    check_unique("offers", [(offer.provider, offer.kind, offer.country, offer.quality) for offer in offers])


def _check_awards(awards: list[Award]) -> None:
    for award in awards:
        check_given("awards", award.event)
        for number in (award.wins, award.nominations):
            check_integer("awards", number, 0, _MOST)
    check_unique("awards", [award.event for award in awards])


def _check_related(titles: list[RelatedTitle], site: Site) -> None:
    for title in titles:
        check_choice("related", title.relation, _RELATIONS)
        for text in (title.site_id, title.title):
            check_text("related", text)
        if not _is_id(site, title.site_id):
            raise InvalidItemError("related", f"{title.site_id!r} is not an id of {site}")
        check_given("related", title.connection)
    check_unique("related", [(title.relation, title.site_id) for title in titles])


def _check_external_ids(ids: object) -> None:
    if not isinstance(ids, dict):
        raise InvalidItemError("external_ids", f"{ids!r} is not a dict")
    if len(ids) > _MOST_IDS:
        raise InvalidItemError("external_ids", f"has {len(ids):,} members; {_MOST_IDS} are the most")
    for namer, text in ids.items():
        if not isinstance(namer, str) or not _NAMER.fullmatch(namer):
            raise InvalidItemError("external_ids", f"{namer!r} is not a name such as ems")
        check_text("external_ids", text)


def _check_amounts(amounts: list[Amount]) -> None:
    for amount in amounts:
        check_choice("amounts", amount.kind, _AMOUNT_KINDS)
        check_integer("amounts", amount.value, 1, _MOST_MONEY)
        check_text("amounts", amount.currency)
        if not _CURRENCY.fullmatch(amount.currency):
            raise InvalidItemError("amounts", f"{amount.currency!r} is not a currency such as USD")
    check_unique("amounts", [amount.kind for amount in amounts])


def _check_silent(movie: Movie) -> None:
    names = check_list("unknown_fields", movie.unknown_fields, str)
    if names != sorted(set(names)):
        raise InvalidItemError("unknown_fields", f"{names!r} is not sorted, or names a field twice")
    told = told_by(movie.site, movie.kind) | score_facts_told(movie)
    unknown = set(names) - told - (ONLY_IN_DATASETS if movie.site == "imdb" else set())
    if unknown:
        raise InvalidItemError(
            "unknown_fields", f"{min(unknown)!r} is nothing that {movie.site} tells of a {movie.kind}"
        )
    present = present_in(movie).intersection(names)
    if present:
        raise InvalidItemError("unknown_fields", f"{min(present)!r} is named there, and has a value")
