"""What the scripts in the head of Rotten Tomatoes' title pages say: since 2021 the sides of its scores, since 2024 some facts beside them.

A side is what critics, top critics, the audience, or its verified part make of a title.
"""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from moviecrawler.extract import dig
from moviecrawler.extract.findings import ABSENT, NoValue, ShapeError, attempt, check_average, first
from moviecrawler.extract.rottentomatoes_parts import (
    ENOUGH_REVIEWS,
    Shown,
    count_of,
    read_years_and_runtime,
    score,
    texts,
)
from moviecrawler.extract.values import parse_count, parse_decimal, parse_year
from moviecrawler.items import Score

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from moviecrawler.items import ScoreKind

_DATED = re.compile(r"^(?:Released|Opened|Opens|Premiered|In Theaters)\s+(?P<date>.+)$", re.IGNORECASE)
_CERTIFICATE = re.compile(r"^(?:G|PG|PG-?13|R|NC-?17|X|NR|Not Rated|Unrated|TV-?[A-Z0-9-]+)$", re.IGNORECASE)
_A_YEAR = re.compile(r"\b\d{4}\b", re.ASCII)
_FINER: Final[dict[ScoreKind, str]] = {
    "tomatometer_top": "criticsTop",
    "popcornmeter_all": "audienceAll",
    "popcornmeter_verified": "audienceVerified",
}
_CRITICS_COUNTS: Final = ("reviewCount", "ratingCount")
_KNOWN_KEYS: Final = {"title", "reviewsPageUrl", "scoreType", "certified", "sentiment"}
"""What a side has, scored or not."""


def read_scorecard(scorecard: Any, hero: Any) -> Shown:
    """Read the two scripts of pages since 2024, of which a piece of a page may have one only."""
    critics = partial(dig.read, partial(read_side, "tomatometer"), scorecard)
    audience = partial(dig.read, partial(read_side, "popcornmeter"), scorecard)
    overlay = attempt(lambda: dig.at(scorecard, "overlay"))
    finer = {kind: attempt(partial(dig.at, overlay, key)) for kind, key in _FINER.items()}
    side = attempt(partial(dig.at, scorecard, "audienceScore"))
    is_scored = isinstance(attempt(partial(read_side, "popcornmeter", side)), Score)
    shown = Shown(
        {
            "tomatometer": lambda: first(partial(critics, "criticsScore"), partial(critics, "overlay", "criticsAll")),
            "popcornmeter": lambda: first(partial(audience, "audienceScore"), lambda: _all_of_audience(overlay)),
            **finer_scores(finer),
        },
        sides={
            "tomatometer": [
                attempt(partial(dig.at, scorecard, "criticsScore")),
                attempt(partial(dig.at, overlay, "criticsAll")),
            ],
            "popcornmeter": [side if is_scored else finer["popcornmeter_all"]],
            **{kind: [side] for kind, side in finer.items()},
        },
        title=attempt(lambda: dig.text(hero, "title")),
        genres=attempt(lambda: texts(hero, "metadataGenres")) or [],
        plot=attempt(lambda: dig.text(scorecard, "description")),
        poster=attempt(lambda: dig.text(scorecard, "primaryImageUrl")) or attempt(lambda: dig.text(hero, "posterSrc")),
    )
    for prop in attempt(lambda: texts(hero, "metadataProps")) or []:
        # Without labels, in any order and number: "PG-13", "2021" or "Released Oct 22, 2021", "2h 35m".
        dated = _DATED.match(prop)
        if dated and _A_YEAR.search(dated["date"]):
            shown.year = attempt(partial(parse_year, dated["date"]))
        elif _CERTIFICATE.match(prop):
            shown.certificate = prop
        else:
            read_years_and_runtime(shown, prop)
    return shown


def finer_scores(sides: Mapping[ScoreKind, Any]) -> dict[ScoreKind, Callable[[], Score | NoValue]]:
    """Return where the scores stand that a page has beside those that it shows."""
    return {kind: partial(dig.read, partial(read_side, kind), side) for kind, side in sides.items() if side is not None}


def read_side(kind: ScoreKind, side: Any) -> Score | NoValue:
    """Return the score of one side. A side without a score is a title without one, unless it has counts: then its key is another."""
    value = first(*(partial(dig.read, dig.at, side, key) for key in ("score", "scorePercent", "value")))
    of_critics = kind.startswith("tomatometer")
    if value is None or value is ABSENT or value == "":
        keys = ("likedCount", "notLikedCount", *(_CRITICS_COUNTS if of_critics else ()))
        counted = [count_of(dig.at(side, key)) or 0 for key in keys]
        is_scored = any(dig.at(side, key) for key in ("averageRating", "sentiment"))
        counted.append(attempt(lambda: parse_count(dig.text(side, "bandedRatingCount") or "")[0]) or 0)
        if is_scored or max(counted) >= ENOUGH_REVIEWS or not _KNOWN_KEYS & set(side):
            return None
        return ABSENT
    return score(kind, value, _critics_count(side) if of_critics else _audience_count(side))


def _critics_count(side: Any) -> Any:
    return next((found for key in _CRITICS_COUNTS if (found := attempt(partial(dig.at, side, key)))), None)


def _audience_count(side: Any) -> int | None:
    """Return how many have rated. Since 2024 pages show a band of that only ("250,000+ Ratings"), and who liked it and who didn't."""
    rated = attempt(partial(dig.size, side, "ratingCount"))
    liked, disliked = (attempt(partial(dig.size, side, key)) for key in ("likedCount", "notLikedCount"))
    return rated or (None if liked is None or disliked is None else liked + disliked)


def facts_beside(kind: ScoreKind, sides: list[Any]) -> dict[str, Callable[[], Any]]:
    """Return where each of the facts stands that a score of that kind has beside its value. `sides`: the best one first."""

    def at(read: Callable[[Any], Any], *keys: str) -> Callable[[], Any]:
        return partial(dig.first, read, sides, *keys)

    places = {
        "average": at(partial(_average, kind), "averageRating"),
        "liked": at(dig.size, "likedCount"),
        "disliked": at(dig.size, "notLikedCount"),
        "certified": at(_certified, "certified", "state", "tomatometerState"),
        "sentiment": at(dig.text, "sentiment", "scoreSentiment"),
    }
    return places if kind.startswith("tomatometer") else {**places, "reviews": at(dig.size, "reviewCount")}


def _average(kind: ScoreKind, average: Any) -> float | None:
    return check_average(kind, parse_decimal(average)) if average != "" else None


def _certified(mark: Any) -> bool | None:
    """Return whether a title is marked: yes or no since 2024 and in 2021, between them the state of the tomato."""
    if isinstance(mark, str):
        return mark.replace("_", "-") == "certified-fresh" if mark else None
    if not isinstance(mark, bool):
        raise ShapeError("certified", f"{mark!r} is neither yes nor no")
    return mark


def _all_of_audience(overlay: Any) -> Score | NoValue:
    """Return the score of the whole audience, where it is the one shown: no verified part of it has one."""
    if "score" in (dig.at(overlay, "audienceVerified") or {"score": None}):
        return None
    return dig.read(partial(read_side, "popcornmeter"), overlay, "audienceAll")
