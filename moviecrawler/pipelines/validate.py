"""Keeps from the stores what breaks a bound of `items.py` or a rule between fields.

A value that can't be stored makes its field unknown. An item is dropped only where what identifies
it is wrong.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections import Counter
from dataclasses import MISSING, fields, is_dataclass
from functools import lru_cache
from itertools import filterfalse
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import msgspec
from scrapy import signals
from scrapy.exceptions import DropItem

from moviecrawler.basics.errors import InvalidItemError
from moviecrawler.basics.texts import on_one_line, shortened, without_controls
from moviecrawler.basics.values import parse_date
from moviecrawler.items import HISTOGRAM_BARS, Batch, ListPage, Miss, Movie, Offer
from moviecrawler.pipelines.files import append_rejected, check_data_dir
from moviecrawler.signals import item_rejected
from moviecrawler.sites import ID_SITE, SCORES
from moviecrawler.sites.fields import (
    ONLY_IN_DATASETS,
    SUBFIELDS,
    column_of,
    columns_of,
    fields_published_by,
    known_fields,
    score_details_published,
    without_depending,
)
from moviecrawler.sites.ids import (
    check_site,
    find_title_id,
    id_in_url,
    part_of_series,
    site_of,
    title_url,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path
    from typing import Self

    from scrapy.crawler import Crawler
    from scrapy.signalmanager import SignalManager
    from scrapy.statscollectors import StatsCollector

    from moviecrawler.items import Score, Site, TitleKind

logger = logging.getLogger(__name__)

_MAX_REASON_CHARS = 500
"""Longer reasons are cut in the middle."""
_PATH_STEP = re.compile(r"\.(\w+)|\[(\d+)\]")
"""A step of the path in a message of msgspec, such as `$.credits[0].position`."""
_MAY_BE_UNCLEAN = re.compile(r'\\[^"\\]|[:,\[]" ')
"""JSON escapes some control characters, and the others are not printable. A text of spaces alone
begins with one."""
_PAID = frozenset({"rent", "buy"})
_DECODERS = {kind: msgspec.json.Decoder(kind) for kind in (Movie, Miss, ListPage)}


_IDENTITY = frozenset(
    {"site", "site_id", "url", "title", "kind", "source", "scraped_at", "fetch", "unknown_fields"}
)
"""Fields without which there is no item."""
_MAX_FAULTS = 3
"""Wrong values of one field, after which all of the field is unknown: each costs a check."""


class ValidatePipeline:
    """Removes wrong values from every Movie, and drops the items that `check` refuses.

    A removed value is logged, and counted in `items/values_removed/<field>`. A dropped item is
    written to `rejected.jsonl` with the reason, sent with the signal `item_rejected`, and counted
    in `items/rejected` and `items/rejected/<field>`.
    """

    def __init__(self, data_dir: Path, stats: StatsCollector, signals: SignalManager) -> None:
        self._data_dir = data_dir
        self._stats = stats
        self._signals = signals

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Read DATA_DIR."""
        assert crawler.stats is not None  # noqa: S101 - Scrapy sets it before it creates components
        return cls(
            check_data_dir(crawler.settings.get("DATA_DIR", "data")), crawler.stats, crawler.signals
        )

    async def process_item(self, item: Any) -> Any:
        """Return the item; raise DropItem for one that `check` refuses."""
        if isinstance(item, Batch):
            await self._check_each(item)
            return item
        try:
            if isinstance(item, Movie):
                self._check_movie(item)
            elif isinstance(item, Miss | ListPage):
                check(item, is_read=True)
        except InvalidItemError as error:
            raise DropItem(await self._reject(item, error)) from None
        return item

    def _check_movie(self, movie: Movie) -> bytes:
        """Remove a movie's wrong values, and return it in JSON."""
        try:
            return check(movie, is_read=True)
        except InvalidItemError:
            for fault in remove_wrong_values(movie, is_read=True):
                self._stats.inc_value(f"items/values_removed/{fault.field}")
                message = "A value of %s %s is not stored: %s"
                logger.warning(message, movie.site, movie.site_id, on_one_line(str(fault)))
        return msgspec.json.encode(movie)

    async def _check_each(self, batch: Batch) -> None:
        """Drop each movie of a batch that `check` refuses, as Scrapy would."""
        for given in batch.unchecked:
            encoded = given.encoded
            right = right_movie(encoded)
            movie = right or given.movie()
            movie.note = batch.note_of(movie, given.site_id)
            try:
                if right is None:
                    encoded = self._check_movie(movie)
                batch.encoded.append(encoded)
                batch.movies.append(movie)
            except InvalidItemError as error:
                dropped = {"item": movie, "exception": DropItem(await self._reject(movie, error))}
                self._signals.send_catch_log(
                    signals.item_dropped, response=batch.response, spider=None, **dropped
                )
        # Scrapy counts a batch as one item.
        self._stats.inc_value("item_scraped_count", len(batch.movies) - 1)

    async def _reject(self, item: Any, error: InvalidItemError) -> str:
        """Record a rejected item, and return the reason."""
        reason = shortened(on_one_line(str(error)), _MAX_REASON_CHARS)
        self._stats.inc_value("items/rejected")
        self._stats.inc_value(f"items/rejected/{error.field}")
        if not await asyncio.to_thread(append_rejected, self._data_dir, "validate", reason, item):
            self._stats.inc_value("items/unrecorded")
        self._signals.send_catch_log(item_rejected, store="validate", reason=reason, item=item)
        return reason


def remove_wrong_values(movie: Movie, *, is_read: bool = False) -> list[InvalidItemError]:
    """Make each field unknown whose value no title can have; return what was wrong.

    Raises InvalidItemError where that is what identifies the title. `is_read` is as in `check`.
    """
    faults: list[InvalidItemError] = []
    of_field: Counter[str] = Counter()
    while True:
        try:
            check(movie, is_read=is_read)
        except InvalidItemError as fault:
            of_field[fault.field] += 1
            if fault.field in _IDENTITY or of_field[fault.field] > _MAX_FAULTS:
                raise
            faults.append(fault)
            path = fault.path if of_field[fault.field] < _MAX_FAULTS else (fault.field,)
            _remove(movie, path)
        else:
            return faults


def _remove(movie: Movie, path: tuple[str | int, ...]) -> None:
    """Remove the value at a path: what is optional in a part, all parts of its kind, or a field."""
    name, *steps = path
    field = str(name)
    attribute, kinds = SUBFIELDS.get(field, ("", ()))
    part = getattr(movie, field)[steps[0]] if steps and attribute else None
    kind = getattr(part, attribute, None)
    if kind not in kinds:
        setattr(movie, field, _default_of(movie, field))
        unknown = {field, *(f"{field}.{kind}" for kind in kinds)}
    elif len(steps) > 1 and (default := _default_of(part, str(steps[1]))) is not MISSING:
        setattr(part, str(steps[1]), default)
        unknown = {f"{field}.{kind}.{steps[1]}"}
    else:
        kept = [one for one in getattr(movie, field) if getattr(one, attribute, None) != kind]
        setattr(movie, field, kept)
        unknown = {f"{field}.{kind}"}
    names = without_depending(movie.site, movie.unknown_fields).union(map(column_of, unknown))
    known = _may_be_unknown(movie.site, movie.kind) | score_details_published(movie)
    names &= known - known_fields(movie)
    movie.unknown_fields = columns_of(movie.site, names)


def _default_of(owner: Any, name: str) -> Any:
    """Return the value of a field that is not there; MISSING where there is none."""
    (field,) = (field for field in fields(owner) if field.name == name)
    return field.default if field.default_factory is MISSING else field.default_factory()


def _may_be_unknown(site: Site, kind: TitleKind) -> frozenset[str]:
    """Return the names of the fields that may be unknown of a title, but for those of scores."""
    published = fields_published_by(site, kind)
    return published | ONLY_IN_DATASETS if site == ID_SITE else published


def check(item: Movie | Miss | ListPage, *, is_read: bool = False) -> bytes:
    """Remove control characters from an item's texts, and check its values.

    Return the item in JSON. Raises InvalidItemError for a value that the item can't have.

    `is_read`: the item comes from a crawl, so that it must have `scraped_at`.
    """
    if isinstance(item, Miss):
        item.reason = shortened(item.reason, _MAX_REASON_CHARS) or item.outcome
    encoded = _encoded(item)
    if _may_be_unclean(encoded):
        _clean(item)
        encoded = _encoded(item)
    try:
        _DECODERS[type(item)].decode(encoded)
    except msgspec.ValidationError as error:
        message, _, path = str(error).rpartition(" - at ")
        value: Any = item
        for step in _steps(path):
            value = getattr(value, step) if isinstance(step, str) else value[step]
        text = f"{value!r} is refused: {message[:1].lower()}{message[1:]}"
        raise _fault(path, shortened(text, _MAX_REASON_CHARS)) from None
    try:
        check_site(item.site)
    except ValueError as error:
        raise InvalidItemError("site", str(error)) from None
    for path, sentence in _faults(item, is_read=is_read) if isinstance(item, Movie) else ():
        raise _fault(f"$.{path}", sentence)
    return encoded


def right_movie(encoded: bytes) -> Movie | None:
    """Return a movie from its JSON; None for one that `check` may clean or refuse."""
    if _may_be_unclean(encoded):
        return None
    try:
        movie = _DECODERS[Movie].decode(encoded)
    except msgspec.ValidationError:
        return None
    assert isinstance(movie, Movie)  # noqa: S101 - by its decoder
    has_fault = any(True for _ in _faults(movie, is_read=True))
    return None if has_fault else movie


def _may_be_unclean(encoded: bytes) -> bool:
    """Return whether texts in JSON may have control characters, or be of spaces alone."""
    text = encoded.decode()
    may_be = "\\" in text or '" ' in text  # which takes a tenth of the time of the pattern
    if may_be and _MAY_BE_UNCLEAN.search(text):
        return True
    # In ASCII, what JSON does not escape is printable but for one.
    return "\x7f" in text if text.isascii() else not text.isprintable()


def _steps(path: str) -> tuple[str | int, ...]:
    """Return the names and indexes of a path.

    >>> _steps("$.credits[3].character")
    ('credits', 3, 'character')
    """
    return tuple(name or int(number) for name, number in _PATH_STEP.findall(path))


def _fault(path: str, reason: str) -> InvalidItemError:
    steps = _steps(path)
    return InvalidItemError(str(steps[0]), reason, steps)


def _encoded(item: Movie | Miss | ListPage) -> bytes:
    """Return an item as JSON. Raises InvalidItemError for the field that can't be encoded."""
    try:
        return msgspec.json.encode(item)
    except (TypeError, ValueError, OverflowError):
        for field in fields(item):
            try:
                msgspec.json.encode(getattr(item, field.name))
            except (TypeError, ValueError, OverflowError) as error:
                raise InvalidItemError(
                    field.name, f"{getattr(item, field.name)!r} is refused: {error}"
                ) from None
        raise


def _clean(value: Any, name: str = "") -> Any:
    """Return a value without control characters in its texts.

    A text is put on one line, but for a plot; one of spaces alone becomes empty.
    """
    if isinstance(value, str):
        text = without_controls(value) if name == "plot" else on_one_line(value)
        return text if text.strip() else ""
    if isinstance(value, list):
        value[:] = [_clean(part) for part in value]
    elif isinstance(value, dict):
        value.update({key: _clean(part) for key, part in value.items()})
    elif is_dataclass(value):
        for field in fields(value):
            setattr(value, field.name, _clean(getattr(value, field.name), field.name))
    return value


_Fault = tuple[str, str]
"""A field or a part of one (`scores[0]`) that is wrong, and a sentence that explains it."""


def _faults(movie: Movie, *, is_read: bool) -> Iterator[_Fault]:
    """Yield what breaks the rules between the fields of a movie, each of which is in its bounds."""
    site = movie.site
    site_id = movie.site_id or ""
    url = movie.url or ""
    imdb_id = movie.imdb_id
    if not _is_id(site, site_id):
        yield "site_id", f"{site_id!r} is not an id of {site}"
    if url != title_url(site, site_id) and (
        site_of(url) != site or id_in_url(site, url) != site_id
    ):
        yield "url", f"{url!r} is not the address of {site_id} on {site}"
    is_other = imdb_id is not None and imdb_id != site_id and site == ID_SITE
    if is_other or not (imdb_id in {None, site_id} or _is_id(ID_SITE, str(imdb_id))):
        yield "imdb_id", f"{imdb_id!r} is not the IMDb id of {site_id}"
    series_id = movie.series_id
    if series_id is not None and (series_id == site_id or not _is_id(site, series_id)):
        yield "series_id", f"{series_id!r} is not the series of {site_id} on {site}"
    part = part_of_series(site, site_id)
    if movie.kind != part.kind if part else movie.kind == "season":
        yield "kind", f"{site_id} is no {movie.kind} on {site}, by its id"
    if part is not None and (series_id, movie.season) != (part.series_id, part.season):
        yield "season", f"{site_id} is not of season {movie.season} of {series_id}"
    if movie.year is not None and movie.end_year is not None and movie.end_year < movie.year:
        yield "end_year", f"{movie.end_year} is before the year {movie.year}"
    date = movie.release_date
    if date is not None and not _is_date(date):
        yield "release_date", f"{date!r} is not a date such as 1999-03-31 or 1999-03"
    yield from _faults_of_parts(movie)
    yield from _faults_of_unknown_fields(movie)
    if is_read and movie.scraped_at is None:
        yield "scraped_at", "is missing, so that no store could tell newer from older"


def _faults_of_parts(movie: Movie) -> Iterator[_Fault]:
    for field, key_of in _KEYS_OF_PARTS.items():
        found = getattr(movie, field)
        if len(set(map(key_of, found))) < len(found):
            yield field, "two of them have the same kind or the same position"
    for number, credit in enumerate(movie.credits):
        if credit.name is None and credit.person_id is None:
            yield f"credits[{number}]", "a person has neither a name nor an id"
    for number, score in enumerate(movie.scores):
        if not _fits_its_kind(score):
            sentence = f"{score!r} is beyond what a score of that kind can be"
            yield f"scores[{number}]", sentence
    for offer in filterfalse(_has_right_price, movie.offers):
        yield "offers", f"{offer.kind} for {offer.price!r} {offer.currency}"
    for number, title in enumerate(movie.related):
        if not _is_id(movie.site, title.site_id):
            sentence = f"{title.site_id!r} is not an id of {movie.site}"
            yield f"related[{number}]", sentence


_KEYS_OF_PARTS: dict[str, Callable[[Any], Any]] = {
    "credits": attrgetter("role", "position"),
    "scores": attrgetter("kind"),
    "amounts": attrgetter("kind"),
    "offers": Offer.key,
    "awards": attrgetter("event"),
    "related": attrgetter("relation", "site_id"),
}
"""What no two parts of a movie have in common."""


def _faults_of_unknown_fields(movie: Movie) -> Iterator[_Fault]:
    names = movie.unknown_fields
    facts = frozenset(score_details_published(movie))
    for sentence in _faults_of_names(movie.site, movie.kind, tuple(names), facts):
        yield "unknown_fields", sentence
    if present := known_fields(movie).intersection(names):
        yield "unknown_fields", f"{sorted(present)} is named there, and has a value"


@lru_cache(1_000)
def _faults_of_names(
    site: Site, kind: TitleKind, names: tuple[str, ...], facts: frozenset[str]
) -> list[str]:
    """Return what is wrong with names of unknown fields; most titles of a source have the same."""
    sentences = []
    if list(names) != sorted(set(names)):
        sentences.append(f"{list(names)!r} is not sorted, or names a field twice")
    if foreign := without_depending(site, names) - _may_be_unknown(site, kind) - facts:
        sentences.append(f"{sorted(foreign)} is no field that {site} has of a {kind}")
    return sentences


def _fits_its_kind(score: Score) -> bool:
    form = SCORES.get(score.kind)
    return (
        form is not None
        and form.lowest <= score.value <= form.scale
        and (
            score.average is None
            or (form.average_scale is not None and score.average <= form.average_scale)
        )
        and len(score.histogram) in {0, HISTOGRAM_BARS}
    )


def _has_right_price(offer: Offer) -> bool:
    return (offer.price is None) == (offer.currency is None) and (
        offer.price is None or offer.kind in _PAID
    )


def _is_date(text: str) -> bool:
    try:
        return parse_date(text) == text
    except ValueError:
        return False


def _is_id(site: Site, text: str) -> bool:
    return find_title_id(site, text) == text
