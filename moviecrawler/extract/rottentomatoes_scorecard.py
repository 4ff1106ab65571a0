"""What the scripts in the head of Rotten Tomatoes' title pages since 2024 say: scores, and some facts beside them."""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from moviecrawler.extract.embedded import dig, dig_text, read_at
from moviecrawler.extract.findings import ABSENT, NoValue, attempt, first
from moviecrawler.extract.rottentomatoes_parts import (
    ENOUGH_REVIEWS,
    Shown,
    count_of,
    read_years_and_runtime,
    score,
    texts,
)
from moviecrawler.extract.values import parse_count, parse_year

if TYPE_CHECKING:
    from moviecrawler.items import Score, ScoreKind

_DATED = re.compile(r"^(?:Released|Opened|Opens|Premiered|In Theaters)\s+(?P<date>.+)$", re.IGNORECASE)
_CERTIFICATE = re.compile(r"^(?:G|PG|PG-?13|R|NC-?17|X|NR|Not Rated|Unrated|TV-?[A-Z0-9-]+)$", re.IGNORECASE)
_A_YEAR = re.compile(r"\b\d{4}\b", re.ASCII)
_KNOWN_KEYS: Final = {"title", "reviewsPageUrl", "scoreType", "certified", "sentiment"}
"""What a side has, scored or not."""


def read_scorecard(scorecard: Any, hero: Any) -> Shown:
    """Read the two scripts of pages since 2024, of which a piece of a page may have one only."""
    critics = partial(read_at, partial(_side, "tomatometer"), scorecard)
    audience = partial(read_at, partial(_side, "popcornmeter"), scorecard)
    shown = Shown(
        {
            "tomatometer": lambda: first(partial(critics, "criticsScore"), partial(critics, "overlay", "criticsAll")),
            "popcornmeter": lambda: first(
                partial(audience, "audienceScore"), lambda: _all_of_audience(dig(scorecard, "overlay"))
            ),
        },
        title=attempt(lambda: dig_text(hero, "title")),
        genres=attempt(lambda: texts(hero, "metadataGenres")) or [],
        plot=attempt(lambda: dig_text(scorecard, "description")),
        poster=attempt(lambda: dig_text(scorecard, "primaryImageUrl")) or attempt(lambda: dig_text(hero, "posterSrc")),
        bands_its_audience=bool(attempt(lambda: dig_text(scorecard, "audienceScore", "bandedRatingCount"))),
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


def _side(kind: ScoreKind, side: Any) -> Score | NoValue:
    """Return the score of one side. A side without a score is a title without one, unless it has counts: then its key is another."""
    value = first(partial(read_at, dig, side, "score"), partial(read_at, dig, side, "scorePercent"))
    # An audience is counted in bands only ("250,000+ Ratings"); its reviewCount is of those who wrote a review.
    counts = ("reviewCount", "ratingCount") if kind == "tomatometer" else ()
    count = next((found for key in counts if (found := attempt(partial(dig, side, key)))), None)
    if value is None or value is ABSENT or value == "":
        counted = [count_of(dig(side, key)) or 0 for key in ("likedCount", "notLikedCount", *counts)]
        is_scored = any(dig(side, key) for key in ("averageRating", "sentiment"))
        counted.append(attempt(lambda: parse_count(dig_text(side, "bandedRatingCount") or "")[0]) or 0)
        if is_scored or max(counted) >= ENOUGH_REVIEWS or not _KNOWN_KEYS & set(side):
            return None
        return ABSENT
    return score(kind, value, count)


def _all_of_audience(overlay: Any) -> Score | NoValue:
    """Return the score of the whole audience, where it is the one shown: no verified part of it has one."""
    if "score" in (dig(overlay, "audienceVerified") or {"score": None}):
        return None
    return read_at(partial(_side, "popcornmeter"), overlay, "audienceAll")
