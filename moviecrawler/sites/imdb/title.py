"""Reads a title from two objects of IMDb's GraphQL API, by the tables of paths below.

IMDb's pages have had these objects since 2022. A field that has moved gets one more path.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final, get_args

from moviecrawler.extract import dig
from moviecrawler.extract.findings import ABSENT, Findings, ShapeError, attempt, first
from moviecrawler.items import Role
from moviecrawler.sites.imdb import values
from moviecrawler.sites.imdb.credits import CREDIT_KEYS, credit_readers, of_full_credits
from moviecrawler.sites.titles import new_title

if TYPE_CHECKING:
    from moviecrawler.extract.dig import Fact
    from moviecrawler.items import TitleKind

_NODE_TEXTS: Final = dig.texts("node", "text")
_FACTS: Final = (
    ("year", values.read_year, "releaseYear.year"),
    ("release_date", values.read_date, "releaseDate"),
    ("runtime_minutes", values.read_minutes, "runtime.seconds"),
    ("genres", dig.texts("text"), "genres.genres"),
    # countriesOfOrigin has ids only where both are there.
    ("countries", dig.texts("text"), "countriesDetails.countries", "countriesOfOrigin.countries"),
    ("languages", dig.texts("text"), "spokenLanguages.spokenLanguages"),
    ("certificate", dig.text, "certificate.rating"),
    ("plot", dig.text, "plot.plotText.plainText"),
    ("poster_url", values.read_address, "primaryImage.url"),
    ("poster_width", dig.positive, "primaryImage.width"),
    ("poster_height", dig.positive, "primaryImage.height"),
    ("scores.imdb", values.read_rating, "ratingsSummary"),
    ("scores.imdb.reviews", dig.size, "reviews.total"),
    (
        "scores.imdb.histogram",
        values.read_histogram,
        "aggregateRatingsBreakdown.histogram.histogramValues",
    ),
    ("scores.metascore", values.read_metascore, "metacritic.metascore"),
    ("amounts.budget", partial(values.read_amount, "budget"), "productionBudget.budget"),
    (
        "amounts.opening_weekend",
        partial(values.read_amount, "opening_weekend"),
        "openingWeekendGross.gross.total",
    ),
    ("amounts.domestic", partial(values.read_amount, "domestic"), "lifetimeGross.total"),
    ("amounts.worldwide", partial(values.read_amount, "worldwide"), "worldwideGross.total"),
    ("popularity_rank", values.read_rank, "meterRanking.currentRank"),
    ("critic_review_count", values.read_total, "criticReviewsTotal.total"),
    ("keywords", _NODE_TEXTS, "keywords.edges", "storylineKeywords.edges"),
    ("interests", dig.texts("node", "primaryText", "text"), "interests.edges"),
    ("taglines", _NODE_TEXTS, "taglines.edges"),
    ("related.similar", values.read_similar, "moreLikeThisTitles.edges"),
    ("related.connection", values.read_connections, "connections.edges"),
)
"""What titles of all kinds have."""
_OF_MOVIES: Final = (("imdb_top250_rank", values.read_top_rank, "ratingsSummary.topRanking"),)
_OF_SERIES: Final = (
    ("end_year", values.read_year, "releaseYear.endYear"),
    ("imdb_top250_tv_rank", values.read_top_rank, "ratingsSummary.topRanking"),
    ("season_count", values.count_seasons, "episodes.seasons"),
    ("season_count", values.count_displayed_seasons, "episodes.displayableSeasons"),
    ("episode_count", values.read_total, "episodes.totalEpisodes.total", "episodes.episodes.total"),
)
_OF_EPISODES: Final = (
    ("series_id", values.read_id, "series.series.id"),
    ("series_title", dig.text, "series.series.titleText.text"),
    (
        "season",
        values.read_number,
        "series.episodeNumber.seasonNumber",
        "series.displayableEpisodeNumber.displayableSeason.season",
    ),
    (
        "episode",
        values.read_number,
        "series.episodeNumber.episodeNumber",
        "series.displayableEpisodeNumber.episodeNumber.episodeNumber",
    ),
)
_FACTS_OF: Final[dict[TitleKind, tuple[Fact, ...]]] = {
    "series": _OF_SERIES,
    "episode": (*_OF_MOVIES, *_OF_EPISODES),
}
"""The facts of one kind of titles only; other kinds have those of a movie."""
KEYS: Final = (
    "id",
    "titleText",
    "originalTitleText",
    "titleType",
    *dict.fromkeys(
        path.partition(".")[0]
        for _, _, *paths in (*_FACTS, *_OF_MOVIES, *_OF_SERIES, *_OF_EPISODES)
        for path in paths
    ),
    *values.AWARD_KEYS,
    *CREDIT_KEYS,
)
"""All keys of such an object under which something is read. The others aren't even decoded."""


def read_movie(sources: list[dict[str, Any]]) -> Findings:
    """Return the title of a page's objects; each fact is that of the first object that has it.

    Raises ShapeError as `_identified` does.
    """
    found = _identified(sources)
    name = found.movie.title
    kind = found.movie.kind
    found.look("title_type", lambda: _stated(sources, "titleType.id"))
    original = dig.readers(dig.text, sources, "originalTitleText.text")
    found.look("original_title", lambda: ABSENT if (stated := first(*original)) == name else stated)
    dig.look(found, (*_FACTS, *_FACTS_OF.get(kind, _OF_MOVIES)), sources)
    found.look("awards", *(partial(values.read_awards, source) for source in sources))
    for role in get_args(Role):
        found.look(f"credits.{role}", *credit_readers(sources, role))
    return found


def read_full_credits(content: Any) -> Findings:
    """Return the title of a page of full credits, with its people alone.

    Raises ShapeError as `_identified` does, and when the page has no people.
    """
    found = _identified([dig.at(content, "entityMetadata")])
    for role in get_args(Role):
        found.look(f"credits.{role}", partial(of_full_credits, content["categories"], role))
    if not found.movie.credits:
        raise ShapeError("credits", "the page has no list of people that is known")
    return found


def _identified(sources: list[Any]) -> Findings:
    """Return a title with its id, name and kind.

    Raises ShapeError when the objects name no title, or several, or don't say of what type it is.
    """
    stated_ids = [attempt(partial(values.read_id, source, "id")) for source in sources]
    ids = dict.fromkeys(filter(None, stated_ids))
    if len(ids) != 1:
        raise ShapeError("site_id", f"the page names {len(ids)} titles: {' and '.join(ids)}")
    name = _stated(sources, "titleText.text")
    title_type = _stated(sources, "titleType.id")
    if name is None:
        raise ShapeError("title", "the page has no titleText")
    if title_type is None:
        raise ShapeError("title_type", "the page has no titleType")
    kind = values.TITLE_KINDS.get(title_type, "other")
    return Findings(new_title("imdb", next(iter(ids)), name, kind))


def _stated(sources: list[Any], path: str) -> str | None:
    found = first(*dig.readers(dig.text, sources, path))
    return None if found is ABSENT else found
