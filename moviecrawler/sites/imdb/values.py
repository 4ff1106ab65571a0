"""Converts values of IMDb's JSON.

Each function takes the value at a path and returns that of a field, ABSENT or None.
"""

import re
from collections.abc import Iterable

from moviecrawler.basics.values import check_runtime, check_year, iso_date
from moviecrawler.extract.dig import (
    JsonObject,
    get_integer,
    get_items,
    get_number,
    get_path,
    get_size,
    get_text,
    parse_at,
)
from moviecrawler.extract.findings import (
    ABSENT,
    NoValue,
    ShapeError,
    attempt,
    one_of_each_title,
)
from moviecrawler.items import (
    HISTOGRAM_BARS,
    Amount,
    AmountKind,
    Award,
    RelatedTitle,
    Relation,
    Score,
    TitleKind,
)
from moviecrawler.sites.scores import new_score
from moviecrawler.sites.titles import parse_imdb_id

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
"""The kind of each of IMDb's title types; those that are missing (tvSpecial, podcastSeries…) are
`other`."""

_CURRENCY = re.compile(r"[A-Z]{3}")
_TOP_LENGTH = 250
_MINUTE = 60
_FEWEST_VOTES = 5
"""Votes that a title needs to have a rating."""
_NOMINATIONS = ("nominationsExcludeWins", "nominations")
"""The key of the number of nominations, and the one until 2024."""
AWARD_KEYS = (*_NOMINATIONS, "wins", "prestigiousAwardSummary")
_LONGEST_NUMBER = 9
"""Digits of a season or an episode."""
_UNKNOWN = "Unknown"
"""The season of episodes of which IMDb doesn't know the season."""


# --- Numbers, scores, sums, dates -----------------------------------------------------------------


def parse_year(value: object) -> int:
    """Return a year of release."""
    return check_year(get_integer(value) or 0)


def parse_rank(value: object) -> int | None:
    """Return a rank, 1 and up."""
    number = get_integer(value)
    if number is not None and number < 1:
        raise ShapeError("rank", f"{number} is not a rank")
    return number


def parse_total(total: object) -> int | NoValue:
    """Return how many of something there are; 0 is none."""
    return get_size(total) or ABSENT


def parse_top_rank(ranking: object) -> int | NoValue:
    """Return a rank in the Top 250.

    The ranking goes on below the list's end: 1046 is a rank, but not in the list.
    """
    rank = parse_at(parse_rank, ranking, "rank")
    return ABSENT if isinstance(rank, int) and rank > _TOP_LENGTH else rank


def parse_rating(summary: object) -> Score | NoValue:
    """Return the rating of a ratingsSummary.

    A value of null, or in lists one of 0 from 0 votes, is that of an unrated title. Some titles
    have a second summary with nothing but the rank in it.
    """
    value = parse_at(get_number, summary, "aggregateRating")
    votes = attempt(get_integer, summary, "voteCount")
    if value is None:
        return None
    if value is ABSENT or (value == 0 and votes == 0):
        # A title with that many votes has a rating; it is at another position.
        return None if isinstance(votes, int) and votes >= _FEWEST_VOTES else ABSENT
    return new_score("imdb", value, votes)


def parse_metascore(metascore: object) -> Score | NoValue:
    """Return the score of a metascore."""
    value = parse_at(get_integer, metascore, "score")
    return new_score("metascore", value) if isinstance(value, int) else value


def parse_amount(kind: AmountKind, sum_: object) -> Amount | NoValue:
    """Return a sum of money."""
    amount = parse_at(get_integer, sum_, "amount")
    currency = parse_at(get_text, sum_, "currency")
    # A release whose box office nobody has reported has 0.
    if amount is ABSENT or amount == 0:
        return ABSENT
    if (
        amount is None
        or amount < 1
        or not isinstance(currency, str)
        or not _CURRENCY.fullmatch(currency)
    ):
        raise ShapeError(kind, f"an amount of {amount} {currency}")
    return Amount(kind=kind, value=amount, currency=currency)


def parse_minutes(value: object) -> int:
    """Convert a runtime from seconds to minutes.

    It is 1 for the few titles of some seconds, as in IMDb's own datasets.
    """
    seconds = get_integer(value) or 0
    return check_runtime(1 if 0 < seconds < _MINUTE else seconds // _MINUTE)


def parse_date(value: object) -> str | NoValue:
    """Return an object of year, month and day as an ISO date.

    Returns ABSENT when only the year is known.
    """
    year = parse_at(get_integer, value, "year")
    month = parse_at(get_integer, value, "month")
    day = parse_at(get_integer, value, "day")
    if isinstance(year, int) and month is ABSENT:
        return ABSENT
    if not isinstance(year, int) or not isinstance(month, int) or day is None:
        return None
    return iso_date(year, month, None if day is ABSENT else day)


# --- Texts, awards, similar titles, offers --------------------------------------------------------


def parse_address(value: object) -> str | None:
    """Return an address of the web."""
    address = get_text(value)
    return address if address and address.startswith(("https://", "http://")) else None


def parse_histogram(bars: object) -> list[int] | NoValue:
    """Return the votes for 1, 2, … 10 of a histogram.

    Its bars are in any order; a rating that nobody gave has none.
    """
    votes = [0] * HISTOGRAM_BARS
    for bar in get_items(bars):
        rating = get_integer(bar, "rating")
        number = get_size(bar, "voteCount")
        if rating is None or number is None or not 1 <= rating <= HISTOGRAM_BARS:
            raise ShapeError("histogram", f"{number} votes for {rating}")
        votes[rating - 1] = number
    return votes if any(votes) else ABSENT


def parse_awards(source: JsonObject) -> list[Award] | NoValue:
    """Return all awards of an object together, and those that IMDb names first, such as Oscars."""
    wins = parse_at(get_size, source, "wins", "total")
    others = next(
        (parse_at(get_size, source, key, "total") for key in _NOMINATIONS if key in source), None
    )
    if not isinstance(wins, int) or not isinstance(others, int):
        return None
    named = parse_at(_prestigious, source, "prestigiousAwardSummary")
    counted = [Award(event=None, wins=wins, nominations=others)] if wins or others else []
    return [*counted, *([named] if isinstance(named, Award) else [])] or ABSENT


def _prestigious(summary: object) -> Award | None:
    event = get_text(summary, "award", "text")
    wins = get_size(summary, "wins")
    others = get_size(summary, "nominations")
    return (
        None
        if event is None or wins is None or others is None
        else Award(event=event, wins=wins, nominations=others)
    )


def parse_similar(edges: object) -> list[RelatedTitle]:
    """Return the site's recommendations."""
    return one_of_each_title(
        _related("similar", get_path(edge, "node")) for edge in get_items(edges)
    )


def parse_connections(edges: object) -> list[RelatedTitle]:
    """Return the titles that follow this one, refer to it, and so on."""
    nodes = (get_path(edge, "node") for edge in get_items(edges))
    return one_of_each_title(
        _related(
            "connection", get_path(node, "associatedTitle"), get_text(node, "category", "text")
        )
        for node in nodes
    )


def _related(relation: Relation, title: object, connection: str | None = None) -> RelatedTitle:
    site_id = parse_imdb_id(title, "id")
    name = get_text(title, "titleText", "text")
    if site_id is None or name is None:
        raise ShapeError("related", f"a title with the id {site_id!r} and the name {name!r}")
    return RelatedTitle(relation=relation, site_id=site_id, title=name, connection=connection)


# --- Series ---------------------------------------------------------------------------------------


def parse_number(number: object) -> int | NoValue:
    """Return the number of an episode or of its season.

    It is a number, or since 2023 a text to be displayed.
    """
    if isinstance(number, str):
        is_number = number.isascii() and number.isdecimal() and len(number) <= _LONGEST_NUMBER
        if is_number:
            return int(number)
        return ABSENT if number == _UNKNOWN else None
    return get_size(number)


def count_seasons(seasons: object) -> int | NoValue:
    """Return how many seasons a list has."""
    return _count(get_path(season, "number") for season in get_items(seasons))


def count_displayed_seasons(seasons: object) -> int | NoValue:
    """Return the number of seasons, or None when the list is cut off.

    A season may have no number.
    """
    edges = get_items(seasons, "edges")
    is_whole = len(edges) == get_size(seasons, "total")
    return _count(get_text(edge, "node", "season") for edge in edges) if is_whole else None


def _count(numbers: Iterable[object]) -> int | NoValue:
    """Return how many seasons have a number.

    Raises ShapeError when one says neither that nor that it is unknown.
    """
    read = [parse_number(number) for number in numbers]
    if None in read:
        raise ShapeError("season_count", "a season without a number")
    return len({number for number in read if isinstance(number, int)}) or ABSENT
