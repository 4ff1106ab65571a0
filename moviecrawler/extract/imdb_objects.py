"""Movies and rows of lists from the objects of IMDb's GraphQL API, which its pages and its answers are made of.

Each fact has stood in several places over the years; here they are side by side, the one that is preferred first.
"""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING, Any, get_args

from moviecrawler.extract import dig
from moviecrawler.extract import imdb_traits as traits
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
from moviecrawler.extract.series import new_title
from moviecrawler.extract.values import check_runtime, check_year, iso_date, parse_date
from moviecrawler.items import Amount, AmountKind, Entry, Role, Score

if TYPE_CHECKING:
    from moviecrawler.items import TitleKind

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
_FEWEST_VOTES = 5
"""Votes that a title needs to have a rating."""


# --- Values ---------------------------------------------------------------------------------------------------------


def _year_of(value: Any) -> int | None:
    year = dig.integer(value)
    return None if year is None else check_year(year)


def read_rank(value: Any) -> int | None:
    """Return a rank, 1 and up."""
    number = dig.integer(value)
    if number is not None and number < 1:
        raise ShapeError("rank", f"{number} is not a rank")
    return number


def _positive(total: Any) -> int | NoValue:
    return dig.size(total) or ABSENT


def _top_place(ranking: Any) -> int | NoValue:
    """Return a place in the Top 250. The ranking goes on below the list's end: 1046 is a rank, but no place in it."""
    place = dig.read(read_rank, ranking, "rank")
    return ABSENT if isinstance(place, int) and place > _TOP_PLACES else place


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


# --- Titles ---------------------------------------------------------------------------------------------------------


_Fact = tuple[Any, ...]
"""The name of a field, what reads it, and its paths, the best one first."""
_FACTS: tuple[_Fact, ...] = (
    ("year", _year_of, "releaseYear.year"),
    ("release_date", _date, "releaseDate"),
    ("runtime_minutes", _minutes, "runtime.seconds"),
    ("genres", dig.texts("text"), "genres.genres"),
    # countriesOfOrigin has ids only where both are there.
    ("countries", dig.texts("text"), "countriesDetails.countries", "countriesOfOrigin.countries"),
    ("languages", dig.texts("text"), "spokenLanguages.spokenLanguages"),
    ("certificate", dig.text, "certificate.rating"),
    ("plot", dig.text, "plot.plotText.plainText"),
    ("poster_url", traits.web_address, "primaryImage.url"),
    ("poster_width", dig.pixels, "primaryImage.width"),
    ("poster_height", dig.pixels, "primaryImage.height"),
    ("scores.imdb", _imdb_score, "ratingsSummary"),
    ("scores.imdb.reviews", dig.size, "reviews.total"),
    ("scores.imdb.histogram", traits.histogram, "aggregateRatingsBreakdown.histogram.histogramValues"),
    ("scores.metascore", _metascore, "metacritic.metascore"),
    ("amounts.budget", partial(_amount, "budget"), "productionBudget.budget"),
    ("amounts.opening_weekend", partial(_amount, "opening_weekend"), "openingWeekendGross.gross.total"),
    ("amounts.domestic", partial(_amount, "domestic"), "lifetimeGross.total"),
    ("amounts.worldwide", partial(_amount, "worldwide"), "worldwideGross.total"),
    ("popularity_rank", read_rank, "meterRanking.currentRank"),
    ("critic_review_count", _positive, "criticReviewsTotal.total"),
    ("keywords", traits.TEXTS, "keywords.edges", "storylineKeywords.edges"),
    ("interests", dig.texts("node", "primaryText", "text"), "interests.edges"),
    ("taglines", traits.TEXTS, "taglines.edges"),
    ("related.similar", traits.similar, "moreLikeThisTitles.edges"),
    ("related.connection", traits.connections, "connections.edges"),
    ("offers", traits.offers, "watchOptionsByCategory.categorizedWatchOptionsList"),
)
"""Where the objects of a page have each fact, and what reads it there."""
_FACTS_OF: dict[TitleKind, tuple[_Fact, ...]] = {
    "movie": (("imdb_top250_rank", _top_place, "ratingsSummary.topRanking"),),
    "series": (
        ("end_year", _year_of, "releaseYear.endYear"),
        ("imdb_top250_tv_rank", _top_place, "ratingsSummary.topRanking"),
        ("season_count", partial(traits.seasons_numbered, "number"), "episodes.seasons"),
        ("season_count", traits.seasons_displayed, "episodes.displayableSeasons"),
        ("episode_count", _positive, "episodes.totalEpisodes.total", "episodes.episodes.total"),
    ),
    "episode": (
        ("imdb_top250_rank", _top_place, "ratingsSummary.topRanking"),
        ("series_id", traits.title_id, "series.series.id"),
        ("series_title", dig.text, "series.series.titleText.text"),
        (
            "season",
            traits.number_in_series,
            "series.episodeNumber.seasonNumber",
            "series.displayableEpisodeNumber.displayableSeason.season",
            "series.displayableEpisodeNumber.displayableSeason.text",
        ),
        (
            "episode",
            traits.number_in_series,
            "series.episodeNumber.episodeNumber",
            "series.displayableEpisodeNumber.episodeNumber.episodeNumber",
            "series.displayableEpisodeNumber.episodeNumber.text",
        ),
    ),
}
"""What only titles of a kind have; every other kind has what a movie has."""


def read_known_movie(sources: list[dict[str, Any]]) -> Findings:
    """Return the title of a page, which always says which one it is and of what type; an answer of the API need not.

    Raises ShapeError as `read_movie` does, and when the page says neither.
    """
    found = read_movie(sources)
    if found.movie.site_id is None:
        raise ShapeError("site_id", "the page has no id")
    if found.movie.title_type is None:
        raise ShapeError("title_type", "the page has no titleType")
    return found


def read_movie(sources: list[dict[str, Any]]) -> Findings:
    """Return what one or more objects say of a title; each fact is taken from the first that has it.

    Raises ShapeError when they name no title, or several.
    """
    ids = dict.fromkeys(site_id for source in sources if (site_id := traits.title_id(source, "id")))
    if len(ids) > 1:
        raise ShapeError("site_id", f"the page names {' and '.join(ids)}")

    def stated(*path: str) -> str | None:
        found = first(*(partial(dig.read, dig.text, source, *path) for source in sources))
        return None if found is ABSENT else found

    name = stated("titleText", "text")
    if name is None:
        raise ShapeError("title", "the page has no titleText")
    title_type = stated("titleType", "id")
    found = Findings(new_title("imdb", next(iter(ids), None), name, TITLE_KINDS.get(title_type or "", "other")))
    found.take("title_type", title_type)
    found.look(
        "original_title", lambda: other_than(name, first(*dig.places(dig.text, sources, "originalTitleText.text")))
    )
    for field, read, *paths in (*_FACTS, *_FACTS_OF.get(found.movie.kind, _FACTS_OF["movie"])):
        found.look(field, *dig.places(read, sources, *paths))
    found.look("awards", *(partial(traits.awards, source) for source in sources))
    for role in get_args(Role):
        found.look(f"credits.{role}", *credit_places(sources, role))
    return found


def brief_genres(sources: list[dict[str, Any]]) -> list[str] | NoValue:
    """Return the genres of the list that is sometimes cut."""
    return first(*dig.places(dig.texts("genre", "text"), sources, "titleGenres.genres"))


# --- Rows of lists --------------------------------------------------------------------------------------------------


def read_entry(row: Any, rating: Any, rank: int | None = None) -> Entry:
    """Return a row of a list: an object about a title, or the flattened form of searches, with texts in place of objects.

    `rating` is the row's ratingsSummary, None for lists without ratings; `rank` the place that the list gives it.
    What else can't be read of it is left out. Raises ShapeError when it has no id or title.
    """
    site_id = traits.title_id(row, "id") or traits.title_id(row, "titleId")
    name = dig.text(_value(row, "titleText", "text"))
    if site_id is None or name is None:
        raise ShapeError("entries", f"a row with the id {site_id!r} and the title {name!r}")
    title_type = attempt(lambda: dig.text(_value(row, "titleType", "id")) or dig.text(row, "type"))
    date = attempt(lambda: dig.read(_date, row, "releaseDate"))
    return Entry(
        site_id=site_id,
        title=name,
        season=traits.number_in_row(row, "season"),
        episode=traits.number_in_row(row, "episode"),
        year=attempt(lambda: _year_of(_value(row, "releaseYear", "year"))),
        kind=TITLE_KINDS.get(title_type, "other") if title_type else None,
        rank=rank,
        release_date=date if isinstance(date, str) else None,
        scores=scores_of(
            lambda: _imdb_score(rating) if rating is not None else None,
            lambda: _metascore({"score": row["metascore"]}) if "metascore" in row else None,
        ),
    )


def _value(row: Any, key: str, inner: str) -> Any:
    value = dig.at(row, key)
    return dig.at(value, inner) if isinstance(value, dict) else value
