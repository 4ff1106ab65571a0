"""Reads a title from two objects of IMDb's GraphQL API, by the tables of paths below.

IMDb's pages have had these objects since 2022. A field that has moved gets one more path.
"""

from collections.abc import Sequence
from functools import partial
from typing import get_args

from moviecrawler.extract.dig import (
    FieldPath,
    JsonObject,
    extract_fields,
    get_path,
    get_positive,
    get_size,
    get_text,
    parse_texts,
    readers,
)
from moviecrawler.extract.findings import ABSENT, Findings, ShapeError, attempt, first
from moviecrawler.items import AmountKind, Role, TitleKind
from moviecrawler.sites.imdb import values
from moviecrawler.sites.imdb.credits import CREDIT_KEYS, credit_readers, of_full_credits
from moviecrawler.sites.titles import new_title, parse_imdb_id, stated_title

_NAMES = ("id", "titleText", "originalTitleText", "titleType")
_NODE_TEXTS = parse_texts("node", "text")
_AMOUNTS: dict[AmountKind, str] = {
    "budget": "productionBudget.budget",
    "opening_weekend": "openingWeekendGross.gross.total",
    "domestic": "lifetimeGross.total",
    "worldwide": "worldwideGross.total",
}
_FIELDS = (
    FieldPath("year", values.parse_year, "releaseYear.year"),
    FieldPath("release_date", values.parse_date, "releaseDate"),
    FieldPath("runtime_minutes", values.parse_minutes, "runtime.seconds"),
    FieldPath("genres", parse_texts("text"), "genres.genres"),
    # countriesOfOrigin has ids only where both are there.
    FieldPath(
        "countries",
        parse_texts("text"),
        "countriesDetails.countries",
        "countriesOfOrigin.countries",
    ),
    FieldPath("languages", parse_texts("text"), "spokenLanguages.spokenLanguages"),
    FieldPath("certificate", get_text, "certificate.rating"),
    FieldPath("plot", get_text, "plot.plotText.plainText"),
    FieldPath("poster_url", values.parse_address, "primaryImage.url"),
    FieldPath("poster_width", get_positive, "primaryImage.width"),
    FieldPath("poster_height", get_positive, "primaryImage.height"),
    FieldPath("scores.imdb", values.parse_rating, "ratingsSummary"),
    FieldPath("scores.imdb.reviews", get_size, "reviews.total"),
    FieldPath(
        "scores.imdb.histogram",
        values.parse_histogram,
        "aggregateRatingsBreakdown.histogram.histogramValues",
    ),
    FieldPath("scores.metascore", values.parse_metascore, "metacritic.metascore"),
    *(
        FieldPath(f"amounts.{kind}", partial(values.parse_amount, kind), path)
        for kind, path in _AMOUNTS.items()
    ),
    FieldPath("popularity_rank", values.parse_rank, "meterRanking.currentRank"),
    FieldPath("critic_review_count", values.parse_total, "criticReviewsTotal.total"),
    FieldPath("keywords", _NODE_TEXTS, "keywords.edges", "storylineKeywords.edges"),
    FieldPath("interests", parse_texts("node", "primaryText", "text"), "interests.edges"),
    FieldPath("taglines", _NODE_TEXTS, "taglines.edges"),
    FieldPath("related.similar", values.parse_similar, "moreLikeThisTitles.edges"),
    FieldPath("related.connection", values.parse_connections, "connections.edges"),
)
"""What titles of all kinds have."""
_OF_MOVIES = (FieldPath("imdb_top250_rank", values.parse_top_rank, "ratingsSummary.topRanking"),)
_OF_SERIES = (
    FieldPath("end_year", values.parse_year, "releaseYear.endYear"),
    FieldPath("imdb_top250_tv_rank", values.parse_top_rank, "ratingsSummary.topRanking"),
    FieldPath("season_count", values.count_seasons, "episodes.seasons"),
    FieldPath("season_count", values.count_displayed_seasons, "episodes.displayableSeasons"),
    FieldPath(
        "episode_count",
        values.parse_total,
        "episodes.totalEpisodes.total",
        "episodes.episodes.total",
    ),
)
_OF_EPISODES = (
    FieldPath("series_id", parse_imdb_id, "series.series.id"),
    FieldPath("series_title", get_text, "series.series.titleText.text"),
    FieldPath(
        "season",
        values.parse_number,
        "series.episodeNumber.seasonNumber",
        "series.displayableEpisodeNumber.displayableSeason.season",
    ),
    FieldPath(
        "episode",
        values.parse_number,
        "series.episodeNumber.episodeNumber",
        "series.displayableEpisodeNumber.episodeNumber.episodeNumber",
    ),
)
_FIELDS_OF: dict[TitleKind, tuple[FieldPath, ...]] = {
    "series": _OF_SERIES,
    "episode": (*_OF_MOVIES, *_OF_EPISODES),
}
"""The facts of one kind of titles only; other kinds have those of a movie."""


KEYS = frozenset(
    path.partition(".")[0]
    for each in (*_FIELDS, *_OF_MOVIES, *_OF_SERIES, *_OF_EPISODES)
    for path in each.paths
).union(_NAMES, values.AWARD_KEYS, CREDIT_KEYS)
"""All keys of such an object under which something is read. The others aren't even decoded."""


def extract_title(findings: Findings, sources: list[JsonObject]) -> None:
    """Set the fields of a title; each fact is that of the first object that has it."""
    name = findings.movie.title
    kind = findings.movie.kind
    findings.set_first("title_type", lambda: _stated(sources, "titleType.id"))
    original = readers(get_text, sources, "originalTitleText.text")
    findings.set_first(
        "original_title", lambda: ABSENT if (stated := first(*original)) == name else stated
    )
    extract_fields(findings, (*_FIELDS, *_FIELDS_OF.get(kind, _OF_MOVIES)), sources)
    findings.set_first("awards", *(partial(values.parse_awards, source) for source in sources))
    for role in get_args(Role):
        findings.set_first(f"credits.{role}", *credit_readers(sources, role))


def read_full_credits(content: object) -> Findings:
    """Return the title of a page of full credits, with its people alone.

    Raises ShapeError as `identify` does, and when the page has no people.
    """
    findings = identify([get_path(content, "entityMetadata")])
    categories = get_path(content, "categories")
    for role in get_args(Role):
        findings.set_first(f"credits.{role}", partial(of_full_credits, categories, role))
    if not findings.movie.credits:
        raise ShapeError("credits", "the page has no list of people that is known")
    return findings


def identify(sources: Sequence[object]) -> Findings:
    """Return a title with its id, name and kind.

    Raises ShapeError when the objects name no title, or several, or don't say of what type it is.
    """
    site_id = stated_id(sources)
    name = first(*readers(stated_title, sources, "titleText.text"))
    title_type = _stated(sources, "titleType.id")
    if not isinstance(name, str):
        raise ShapeError("title", "the page has no titleText")
    if title_type is None:
        raise ShapeError("title_type", "the page has no titleType")
    kind = values.TITLE_KINDS.get(title_type, "other")
    return Findings(new_title("imdb", site_id, name, kind))


def stated_id(sources: Sequence[object]) -> str:
    """Return the id that the objects name. Raises ShapeError when they name none, or several."""
    stated_ids = [attempt(parse_imdb_id, source, "id") for source in sources]
    ids = dict.fromkeys(filter(None, stated_ids))
    if len(ids) != 1:
        raise ShapeError("site_id", f"the page names {len(ids)} titles: {' and '.join(ids)}")
    return next(iter(ids))


def _stated(sources: Sequence[object], path: str) -> str | None:
    value = first(*readers(get_text, sources, path))
    return value if isinstance(value, str) else None
