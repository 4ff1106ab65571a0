"""Movies and rows of lists from the objects of IMDb's GraphQL API, which its pages and its answers are made of.

Each fact has stood in several places over the years; here they are side by side, the one that is preferred first.
"""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeVar, get_args

from moviecrawler.extract import dig
from moviecrawler.extract.findings import (
    ABSENT,
    Findings,
    NoValue,
    ShapeError,
    attempt,
    first,
    new_score,
    other_than,
    scores_of,
)
from moviecrawler.extract.imdb_credits import credit_places
from moviecrawler.extract.imdb_series import numbers_of_row, series_places
from moviecrawler.extract.imdb_traits import dig_address, read_histogram, texts_at, trait_places
from moviecrawler.extract.values import check_runtime, check_year, iso_date, parse_date
from moviecrawler.items import Amount, Entry, Movie, Role, Score
from moviecrawler.urls import IMDB_ID, title_url

if TYPE_CHECKING:
    from collections.abc import Callable

    from moviecrawler.extract.imdb_props import TitleData
    from moviecrawler.items import TitleKind

_T = TypeVar("_T")

# --- Titles ---------------------------------------------------------------------------------------------------------

TITLE_KINDS: dict[str, TitleKind] = {
    "movie": "movie",
    "tvMovie": "movie",
    "tvSeries": "series",
    "tvMiniSeries": "series",
    "tvEpisode": "episode",
    "videoGame": "game",
    "short": "short",
    "tvShort": "short",
    "video": "video",
    "musicVideo": "music",
}
"""What IMDb's title types are here; the others (tvSpecial, podcastSeries…) are `other`."""

_CURRENCY = re.compile(r"[A-Z]{3}")
_TOP_PLACES = 250
_MINUTE = 60
AmountKind = Literal["budget", "opening_weekend", "domestic", "worldwide"]
_AMOUNTS: tuple[tuple[AmountKind, tuple[str, ...]], ...] = (
    ("budget", ("productionBudget", "budget")),
    ("opening_weekend", ("openingWeekendGross", "gross", "total")),
    ("domestic", ("lifetimeGross", "total")),
    ("worldwide", ("worldwideGross", "total")),
)


def read_known_movie(sources: list[TitleData]) -> Findings:
    """Return the title of a page, which always says which one it is and of what type; an answer of the API need not.

    Raises ShapeError as `read_movie` does, and when the page says neither.
    """
    found = read_movie(sources)
    if found.movie.site_id is None:
        raise ShapeError("site_id", "the page has no id")
    if found.movie.title_type is None:
        raise ShapeError("title_type", "the page has no titleType")
    return found


def read_movie(sources: list[TitleData]) -> Findings:
    """Return what one or more objects say of a title; each fact is taken from the first that has it.

    Raises ShapeError when they name no title, or several.
    """
    ids = dict.fromkeys(_id(site_id) for source in sources if (site_id := dig.text(source, "id")))
    if len(ids) > 1:
        raise ShapeError("site_id", f"the page names {' and '.join(map(str, ids))}")
    site_id = next(iter(ids), None)

    def at(read: Callable[[Any], _T | NoValue], *path: str) -> _T | NoValue:
        return first(*(partial(dig.read, read, source, *path) for source in sources))

    def value(read: Callable[[Any], _T | None], *path: str) -> _T | None:
        found_ = at(read, *path)
        return None if found_ is ABSENT else found_

    name = value(dig.text, "titleText", "text")
    if name is None:
        raise ShapeError("title", "the page has no titleText")
    title_type = value(dig.text, "titleType", "id")
    kind = TITLE_KINDS.get(title_type or "", "other")
    found = Findings(
        Movie(
            site="imdb",
            site_id=site_id,
            imdb_id=site_id,
            url=None if site_id is None else title_url("imdb", site_id),
            title=name,
            kind=kind,
        )
    )
    found.look("title_type", lambda: title_type)
    found.look("original_title", lambda: other_than(name, at(dig.text, "originalTitleText", "text")))
    found.look("year", lambda: at(_year_of, "releaseYear", "year"))
    if kind == "series":
        found.look("end_year", lambda: at(_year_of, "releaseYear", "endYear"))
    found.look("release_date", lambda: at(_date, "releaseDate"))
    found.look("runtime_minutes", lambda: at(_minutes, "runtime", "seconds"))
    found.look("genres", lambda: at(texts_at("text"), "genres", "genres"))
    # countriesOfOrigin has ids only where both are there.
    for key in ("countriesDetails", "countriesOfOrigin"):
        found.look("countries", partial(at, texts_at("text"), key, "countries"))
    found.look("languages", lambda: at(texts_at("text"), "spokenLanguages", "spokenLanguages"))
    found.look("certificate", lambda: at(dig.text, "certificate", "rating"))
    found.look("plot", lambda: at(dig.text, "plot", "plotText", "plainText"))
    found.look("poster_url", lambda: at(dig_address, "primaryImage", "url"))
    found.look("poster_width", lambda: at(dig.pixels, "primaryImage", "width"))
    found.look("poster_height", lambda: at(dig.pixels, "primaryImage", "height"))
    found.look("scores.imdb", lambda: at(_imdb_score, "ratingsSummary"))
    facts = {
        "reviews": lambda: at(dig.size, "reviews", "total"),
        "histogram": lambda: at(read_histogram, "aggregateRatingsBreakdown", "histogram", "histogramValues"),
    }
    found.look_beside("imdb", facts)
    found.look("scores.metascore", lambda: at(_metascore, "metacritic", "metascore"))
    for kind_, path in _AMOUNTS:
        found.look(f"amounts.{kind_}", partial(at, partial(_amount, kind_), *path))
    rank_field = "imdb_top250_tv_rank" if kind == "series" else "imdb_top250_rank"
    found.look(rank_field, lambda: at(_top_place, "ratingsSummary", "topRanking"))
    found.look("popularity_rank", lambda: at(_rank, "meterRanking", "currentRank"))
    found.look(
        "critic_review_count", lambda: at(lambda total: dig.size(total) or ABSENT, "criticReviewsTotal", "total")
    )
    for role in get_args(Role):
        found.look(f"credits.{role}", *credit_places(sources, role))
    for field, places in [*series_places(sources, kind).items(), *trait_places(sources).items()]:
        found.look(field, *places)
    return found


def brief_genres(sources: list[TitleData]) -> list[str] | NoValue:
    """Return the genres of the list that is sometimes cut."""
    return first(*(partial(dig.read, texts_at("genre", "text"), source, "titleGenres", "genres") for source in sources))


def _year_of(value: Any) -> int | None:
    year = dig.integer(value)
    return None if year is None else check_year(year)


def _rank(value: Any) -> int | None:
    return check_rank(dig.integer(value))


def _top_place(ranking: Any) -> int | NoValue:
    """Return a place in the Top 250. The ranking goes on below the list's end: 1046 is a rank, but no place in it."""
    rank = dig.read(_rank, ranking, "rank")
    return ABSENT if isinstance(rank, int) and rank > _TOP_PLACES else rank


_FEWEST_VOTES = 5
"""Votes that a title needs to have a rating."""


def _imdb_score(summary: Any) -> Score | NoValue:
    """Return the rating of a ratingsSummary. null, or in lists 0 from 0 votes, is a title that is unrated.

    Some titles have a second summary with nothing but the rank in it.
    """
    value, votes = (
        dig.read(dig.number, summary, "aggregateRating"),
        attempt(lambda: dig.read(dig.integer, summary, "voteCount")),
    )
    if value is None:
        return None
    if value is ABSENT or (value == 0 and votes == 0):
        # Votes without a rating are a rating that stands elsewhere.
        return None if isinstance(votes, int) and votes >= _FEWEST_VOTES else ABSENT
    return new_score("imdb", value, votes)


def _metascore(metascore: Any) -> Score | NoValue:
    value, reviews = (
        dig.read(dig.integer, metascore, "score"),
        attempt(lambda: dig.read(dig.integer, metascore, "reviewCount")),
    )
    return new_score("metascore", value, reviews) if isinstance(value, int) else value


def _amount(kind: AmountKind, sum_: Any) -> Amount | NoValue:
    amount, currency = dig.read(dig.integer, sum_, "amount"), dig.read(dig.text, sum_, "currency")
    # 0 is what a release has earned that nobody has reported on.
    if amount is ABSENT or amount == 0:
        return ABSENT
    if amount is None or amount < 1 or not isinstance(currency, str) or not _CURRENCY.fullmatch(currency):
        raise ShapeError(kind, f"an amount of {amount} {currency}")
    return Amount(kind=kind, value=amount, currency=currency)


# --- Rows of lists --------------------------------------------------------------------------------------------------


def read_entry(row: Any, rating: Any, rank: int | None = None) -> Entry:
    """Return a row of a list: an object about a title, or the flattened form of searches, with texts in place of objects.

    `rating` is the row's ratingsSummary, None for lists without ratings; `rank` the place that the list gives it.
    What else can't be read of it is left out. Raises ShapeError when it has no id or title.
    """
    site_id = _id(dig.text(row, "id") or dig.text(row, "titleId"))
    name = dig.text(_value(row, "titleText", "text"))
    if site_id is None or name is None:
        raise ShapeError("entries", f"a row with the id {site_id!r} and the title {name!r}")
    title_type = attempt(lambda: dig.text(_value(row, "titleType", "id")) or dig.text(row, "type"))
    season, episode = numbers_of_row(row)
    return Entry(
        site_id=site_id,
        title=name,
        season=season,
        episode=episode,
        year=attempt(lambda: _year_of(_value(row, "releaseYear", "year"))),
        kind=TITLE_KINDS.get(title_type, "other") if title_type else None,
        rank=rank,
        release_date=_stated_date(row),
        scores=_scores_of_row(row, rating),
    )


def _scores_of_row(row: Any, rating: Any) -> list[Score]:
    """Return a row's scores."""
    metascore = {"score": row["metascore"]} if isinstance(row, dict) and "metascore" in row else None
    return scores_of(
        lambda: _imdb_score(rating) if rating is not None else None,
        lambda: _metascore(metascore) if metascore is not None else None,
    )


def _value(row: Any, key: str, inner: str) -> Any:
    value = dig.at(row, key)
    return dig.at(value, inner) if isinstance(value, dict) else value


# --- Values ---------------------------------------------------------------------------------------------------------


def _id(text: str | None) -> str | None:
    if text is not None and not IMDB_ID.fullmatch(text):
        raise ShapeError("site_id", f"{text!r} is not an id of a title")
    return text


def check_rank(rank: int | None) -> int | None:
    """Return a rank, 1 and up, or None. Raises ShapeError."""
    if rank is not None and rank < 1:
        raise ShapeError("rank", f"{rank} is not a rank")
    return rank


def _minutes(value: Any) -> int | None:
    """Return a runtime in minutes; 1 for the few titles of some seconds, as in IMDb's own datasets."""
    seconds = dig.integer(value)
    if seconds is None:
        return None
    return check_runtime(1 if 0 < seconds < _MINUTE else seconds // _MINUTE)


def _date(value: Any) -> str | NoValue:
    """Return an object of year, month and day, or a text such as "Thu, 12 Oct 2023 00:00:00 GMT", as an ISO date.

    ABSENT when only the year is known.
    """
    if isinstance(value, str):
        return parse_date(re.sub(r"^[A-Z][a-z]{2}, ", "", value))
    year, month, day = (dig.read(dig.integer, value, part) for part in ("year", "month", "day"))
    if isinstance(year, int) and month is ABSENT:
        return ABSENT
    if not isinstance(year, int) or not isinstance(month, int) or day is None:
        return None
    return iso_date(year, month, None if day is ABSENT else day)


def _stated_date(row: Any) -> str | None:
    date = attempt(lambda: dig.read(_date, row, "releaseDate"))
    return date if isinstance(date, str) else None
