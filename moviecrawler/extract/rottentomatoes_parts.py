"""What the readers of Rotten Tomatoes' title and list pages share: scores, rows of lists, and the sides of a title's scores.

A side is what critics, top critics, the audience, or its verified part make of a title; the scripts in a page's head have them since 2021.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from moviecrawler.extract import dig
from moviecrawler.extract.embedded import decode_json, script
from moviecrawler.extract.findings import ABSENT, NoValue, ShapeError, attempt, check_average, first, new_score
from moviecrawler.extract.values import check_year, parse_count, parse_decimal, parse_runtime, parse_year
from moviecrawler.items import Entry, Listing, Page, Score, ScoreKind, TitleKind
from moviecrawler.urls import id_in_url, part_of_series

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_UNSCORED = re.compile(r"^[\s–-]*%?$|^N/A%?$", re.IGNORECASE)  # noqa: RUF001 - the site's dashes
_PERCENT = re.compile(r"^(\d{1,3})\s*%?$", re.ASCII)

_YEARS = re.compile(r"^(?P<first>\d{4})(?:\s*[-–—]\s*(?P<last>\d{4})?)?$")  # noqa: RUF001 - the site's dashes
_DURATION = re.compile(r"^\d+\s*(?:h|m|hr|min)\b", re.IGNORECASE)

ENOUGH_REVIEWS = 5
"""Reviews that a title needs to have a Tomatometer."""


def score(kind: ScoreKind, value: Any, count: Any = None) -> Score | NoValue:
    """Return one score; ABSENT when the site shows that there is none; None when it shows nothing.

    `value` is a share such as 94, "94" or "94%"; "", dashes and "N/A" are no score. `count` is a number or its text, of which a
    band ("250,000+") is no count. Raises ShapeError for anything else.
    """
    if value is None:
        return None
    number = attempt(lambda: count_of(count))
    if isinstance(value, str) and _UNSCORED.match(value):
        # Reviews enough for a score are a score that stands elsewhere.
        return None if number and number >= ENOUGH_REVIEWS else ABSENT
    found = _PERCENT.match(str(value).strip())
    if not found:
        raise ShapeError(kind, f"{value!r} is not a share of 0 to 100 %")
    if number == 0 and int(found[1]) == 0:
        # A scoreboard of zeros is a title that nobody has reviewed; a real 0 % has reviews.
        return ABSENT
    return new_score(kind, float(found[1]), number)


def count_of(count: Any) -> int | None:
    """Return how many a page says exactly. Raises ShapeError or ValueError when that is no count."""
    if count is None or count == "":
        return None
    if isinstance(count, str):
        number, exact = parse_count(count)
        return number if exact else None
    if type(count) is not int or count < 0:
        raise ShapeError("count", f"{count!r} is not a number of reviews")
    return count


def listed(value: Any) -> list[Any]:
    """Return a value of JSON-LD as a list: one object or text stands there without one."""
    return value if isinstance(value, list) else [] if value is None else [value]


def name_of(item: Any) -> str:
    """Return the name of a person or genre: a text, or an object with a name; "" without one."""
    return (dig.text([item], 0) if isinstance(item, str) else dig.text(item, "name")) or ""


def texts(data: Any, key: str) -> list[str]:
    """Return the names of what stands at a key. Raises ShapeError where one has none."""
    names = [name_of(item) for item in listed(dig.at(data, key))]
    if "" in names:
        raise ShapeError(key, "an item without a name")
    return names


def title_kind(site_id: str) -> TitleKind:
    """Return what a title is by its id: `tv/…` are series and their seasons and episodes, `m/…` are movies."""
    part = part_of_series("rottentomatoes", site_id)
    return part.kind if part else "series" if site_id.startswith("tv/") else "movie"


def json_script(body: bytes, script_id: str) -> Any:
    """Return the data in a script; None when there is none or it is no JSON. Raises ShapeError when the page ends inside it."""
    raw = script(body, script_id)
    return attempt(lambda: decode_json(raw)) if raw else None


@dataclass(slots=True)
class Shown:
    """What the part of a page above its details list shows; None is what it doesn't tell."""

    scores: dict[ScoreKind, Callable[[], Score | NoValue]] = field(default_factory=dict)
    """Where each score is."""
    sides: dict[ScoreKind, list[Any]] = field(default_factory=dict)
    """The objects that have what stands beside each score, the best first; None among them is none."""
    title: str | None = None
    year: int | None = None
    end_year: int | None = None
    is_running: bool = False
    """Whether a series has a first year and, where its last would stand, none."""
    runtime: int | None = None
    certificate: str | None = None
    genres: list[str] = field(default_factory=list)
    plot: str | None = None
    poster: str | None = None


def read_years_and_runtime(shown: Shown, part: str) -> None:
    """Read a part of a line such as "2006, Crime/Drama, 2h 32m"."""
    if years := _YEARS.match(part):
        shown.year = attempt(lambda: check_year(int(years["first"])))
        shown.end_year = attempt(lambda: check_year(int(years["last"])))
        shown.is_running = years["last"] is None and years["first"] != part
    elif _DURATION.match(part):
        shown.runtime = attempt(lambda: parse_runtime(part))


def new_entry(
    path: str | None,
    title: str | None,
    scores: list[Score],
    *,
    year: int | None = None,
    rank: int | None = None,
    release_date: str | None = None,
) -> Entry:
    """Return a row of a list. Raises ShapeError when it has no title or no link to one."""
    site_id = id_in_url("rottentomatoes", path) if path else None
    if site_id is None or not title:
        raise ShapeError("entries", f"a row without a title or a link to one: {title!r}, {path!r}")
    part = part_of_series("rottentomatoes", site_id)
    return Entry(
        site_id=site_id,
        title=title,
        season=part.season if part else None,
        episode=part.episode if part else None,
        kind=title_kind(site_id),
        year=year,
        rank=rank,
        release_date=release_date,
        scores=scores,
    )


def list_page(kind: str, entries: list[Entry], following: str | None) -> Page:
    """Return a page that is a list."""
    return Page(
        site="rottentomatoes", kind=kind, listing=Listing(site="rottentomatoes", entries=entries, next=following)
    )


# --- The sides of a title's scores ----------------------------------------------------------------------------------

_DATED = re.compile(r"^(?:Released|Opened|Opens|Premiered|In Theaters)\s+(?P<date>.+)$", re.IGNORECASE)
_CERTIFICATE = re.compile(r"^(?:G|PG|PG-?13|R|NC-?17|X|NR|Not Rated|Unrated|TV-?[A-Z0-9-]+)$", re.IGNORECASE)
_A_YEAR = re.compile(r"\b\d{4}\b", re.ASCII)
FINER: Final[dict[ScoreKind, str]] = {
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
    finer = {kind: attempt(partial(dig.at, overlay, key)) for kind, key in FINER.items()}
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
