"""Converts Rotten Tomatoes' values.

Each function takes the value at a path and returns that of a field, ABSENT or None.
"""

import re
from functools import partial

from parsel import Selector, SelectorList

from moviecrawler.basics.values import parse_count, parse_date, parse_decimal, parse_year
from moviecrawler.extract.dig import FieldPath, get_path, get_size, get_text, parse_at
from moviecrawler.extract.embedded import decode_json
from moviecrawler.extract.findings import (
    ABSENT,
    NoValue,
    ShapeError,
    attempt,
    first,
)
from moviecrawler.extract.trees import text_of
from moviecrawler.items import Amount, Score, ScoreKind
from moviecrawler.sites.scores import check_average, new_score

_UNSCORED = re.compile(r"^[\s–-]*%?$|^N/A%?$", re.IGNORECASE)  # noqa: RUF001 - the site's dashes
_PERCENT = re.compile(r"^(\d{1,3})\s*%?$", re.ASCII)
_A_YEAR = re.compile(r"\b\d{4}\b", re.ASCII)
_NO_DATE = re.compile(
    r"^(?:(?:TB[AD]|Spring|Summer|Fall|Autumn|Winter|Q[1-4])\b.*|\d{4}|\D+)$",
    re.ASCII | re.IGNORECASE,
)
_BEHIND_CERTIFICATE = re.compile(r" (?:[(\[]|for )")
YEAR_BEHIND_TITLE = re.compile(
    r"^(?P<title>.*\S)\s*\((?P<year>(?:18[7-9]|19\d|20\d)\d)\)$", re.ASCII
)

_EMS = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}")
_DIGITS = re.compile(r"[1-9][0-9]{0,19}")
ENOUGH_REVIEWS = 5
"""Reviews that a title needs to have a Tomatometer."""


def score(kind: ScoreKind, value: object, number: int | None = None) -> Score | NoValue:
    """Return one score; ABSENT when the site shows that there is none; None when it shows nothing.

    `value` is a share such as 94, "94" or "94%"; "", dashes and "N/A" are not scores. `number` is
    how many have rated. Raises ShapeError for anything else.
    """
    if value is None:
        return None
    if isinstance(value, str) and _UNSCORED.match(value):
        # A title with that many reviews has a score; it is at another position.
        return None if number and number >= ENOUGH_REVIEWS else ABSENT
    match = _PERCENT.match(str(value).strip())
    if not match:
        raise ShapeError(kind, f"{value!r} is not a share of 0 to 100 %")
    if number == 0 and int(match[1]) == 0:
        # A scoreboard of zeros is a title that nobody has reviewed; a real 0 % has reviews.
        return ABSENT
    return new_score(kind, float(match[1]), number)


def slot(part: Selector | SelectorList[Selector], name: str) -> str:
    """Return the text in a slot of one of the site's own elements; "" without one."""
    return text_of(part.css(f'[slot="{name}"]'))


def parse_release_date(value: object) -> str | NoValue:
    """Return the date of "Oct 22, 2021, Wide"; a bare year or a word ("TBA") is none."""
    text = get_text(value)
    if text is None:
        return None
    return ABSENT if _NO_DATE.match(text) else parse_date(text)


def parse_shown_year(value: object) -> int | None:
    """Return the year in a text, or of a number; None where none is named."""
    text = "" if value is None else str(value)
    return parse_year(text) if _A_YEAR.search(text) else None


def short_certificate(certificate: str | None) -> str | None:
    """Return R of "R (Some Violence|Language)", or of "R [See Full Rating] for some violence"."""
    return _BEHIND_CERTIFICATE.split(certificate)[0] if certificate else None


def split(text: str) -> list[str]:
    """Return the parts of a text between its commas."""
    return [part for part in re.split(r"\s*,\s*", text) if part]


def parse_dollars(text: str) -> Amount:
    """Return the box office of "$108.3M"."""
    return Amount(kind="domestic", value=parse_count(text.removeprefix("$")), currency="USD")


def parse_ids(tree: Selector, scorecard: object) -> dict[str, str] | None:
    """Return the title's id in the site's database, and its number there."""
    curation = attempt(json_of, tree, "curation-json")
    number = str(attempt(get_path, curation, "rtId"))
    texts = (
        attempt(get_text, data, key)
        for data, key in ((curation, "emsId"), (scorecard, "criticReviewHref"))
    )
    ems = next((match[0] for text in texts if (match := _EMS.search(text or ""))), None)
    ids = {"ems": ems, "rottentomatoes": number if _DIGITS.fullmatch(number) else None}
    return {namer: text for namer, text in ids.items() if text} or None


def json_of(tree: Selector, script_id: str) -> object:
    """Return the data in a script; None when there is none or it is no JSON."""
    raw = tree.xpath("//script[@id=$id]/text()", id=script_id).get()
    return attempt(decode_json, raw.encode()) if raw else None


# --- Objects with a score and its facts -----------------------------------------------------------

_CRITICS_COUNTS = ("reviewCount", "ratingCount")
_STATES: dict[str, bool | None] = {
    "certified-fresh": True,
    "": None,
    **dict.fromkeys(("fresh", "rotten", "upright", "spilled"), False),
}
"""Until spring 2024, the state of the tomato or the popcorn: whether it is certified."""
_KNOWN_KEYS = {"title", "reviewsPageUrl", "scoreType", "certified", "sentiment"}
"""Keys that such an object has with and without a score."""


def parse_score(kind: ScoreKind, summary: object) -> Score | NoValue:
    """Return the score of an object; ABSENT without one.

    Returns None when its counts show that its score is under an unknown key.
    """
    value = first(
        *(partial(parse_at, get_path, summary, key) for key in ("score", "scorePercent", "value"))
    )
    of_critics = kind.startswith("tomatometer")
    if value is None or value is ABSENT or value == "":
        keys = ("likedCount", "notLikedCount", *(_CRITICS_COUNTS if of_critics else ()))
        counted = [get_size(summary, key) or 0 for key in keys]
        is_known = isinstance(summary, dict) and bool(_KNOWN_KEYS & summary.keys())
        if max(counted) >= ENOUGH_REVIEWS or not is_known:
            return None
        return ABSENT
    return score(kind, value, _critics_count(summary) if of_critics else _audience_count(summary))


def _critics_count(summary: object) -> int | None:
    """Return how many critics have reviewed; None where no key has a number.

    It is 0 where no key says more.
    """
    counts = [
        count for key in _CRITICS_COUNTS if (count := attempt(get_size, summary, key)) is not None
    ]
    return next(filter(None, counts), min(counts, default=None))


def _audience_count(summary: object) -> int | None:
    """Return how many have rated.

    Since 2024 pages show a band of that only ("250,000+ Ratings"), and who liked it and who didn't.
    Before, with a band such as "250,000+", these were some of the ratings.
    """
    band = attempt(get_text, summary, "bandedRatingCount") or "Ratings"
    if get_path(summary, "ratingCount") or not band.endswith("Ratings"):
        return attempt(get_size, summary, "ratingCount")
    liked = attempt(get_size, summary, "likedCount")
    disliked = attempt(get_size, summary, "notLikedCount")
    return None if liked is None or disliked is None else liked + disliked


def score_details(kind: ScoreKind) -> list[FieldPath]:
    """Return the keys of what an object has beside a score of that kind."""
    details = [
        FieldPath("average", partial(_average, kind), "averageRating"),
        FieldPath("liked", get_size, "likedCount"),
        FieldPath("disliked", get_size, "notLikedCount"),
        FieldPath("certified", _certified, "certified"),
        FieldPath("certified", _is_certified_state, "state"),
        FieldPath("sentiment", get_text, "sentiment"),
    ]
    if not kind.startswith("tomatometer"):
        details.append(FieldPath("reviews", get_size, "reviewCount"))
    return details


def _average(kind: ScoreKind, average: str) -> float | None:
    return check_average(kind, parse_decimal(average)) if average != "" else None


def _certified(mark: object) -> bool:
    if not isinstance(mark, bool):
        raise ShapeError("certified", f"{mark!r} is neither yes nor no")
    return mark


def _is_certified_state(state: str) -> bool | None:
    """Return whether the tomato or the popcorn had the mark, until spring 2024."""
    if state not in _STATES:
        raise ShapeError("certified", f"{state!r} is not a known state")
    return _STATES[state]
