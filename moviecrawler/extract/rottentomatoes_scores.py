"""What Rotten Tomatoes' title pages show above their list of details, by generation: scores, and some facts beside them."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from moviecrawler.extract.embedded import decode_json, dig, dig_text, fold, script, told
from moviecrawler.extract.findings import ABSENT, NotTold, first, looked
from moviecrawler.extract.rottentomatoes_parts import ENOUGH_REVIEWS, count_of, score, text_of, texts
from moviecrawler.extract.values import check_year, parse_count, parse_runtime, parse_year

if TYPE_CHECKING:
    from collections.abc import Callable

    from parsel import Selector, SelectorList

    from moviecrawler.items import Score, ScoreKind

_YEARS = re.compile(r"^(?P<first>\d{4})(?:\s*[-–—]\s*(?P<last>\d{4})?)?$")  # noqa: RUF001 - the site's dashes
_DATED = re.compile(r"^(?:Released|Opened|Opens|Premiered|In Theaters)\s+(?P<date>.+)$", re.IGNORECASE)
_CERTIFICATE = re.compile(r"^(?:G|PG|PG-?13|R|NC-?17|X|NR|Not Rated|Unrated|TV-?[A-Z0-9-]+)$", re.IGNORECASE)
_DURATION = re.compile(r"^\d+\s*(?:h|m|hr|min)\b", re.IGNORECASE)
_A_YEAR = re.compile(r"\b\d{4}\b", re.ASCII)
_COUNTED = re.compile(
    r"(?:Count|Counted|Ratings):\s*(?P<behind>\d[\d,]*\+?)"
    r"|(?<!than )(?<![\d,./])(?P<before>\d[\d,]*\+?)\s+(?:Reviews?|(?:Verified )?Ratings?)\b"
)
_NO_METER = re.compile(
    r"no (?:score|consensus|reviews)|not (?:yet )?available|not enough|coming soon|want to see", re.IGNORECASE
)
_SIDES: Final[dict[ScoreKind, tuple[str, str, str]]] = {
    "tomatometer": ("criticsScore", "criticsAll", "reviewsPageUrl"),
    "popcornmeter": ("audienceScore", "audienceAll", "reviewsPageUrl"),
}
_KNOWN_KEYS: Final = {"title", "reviewsPageUrl", "scoreType", "certified", "sentiment"}
"""What a side has, scored or not."""


@dataclass(slots=True)
class Shown:
    """What the part of a page above its details list shows; None is what it doesn't tell."""

    scores: dict[ScoreKind, Callable[[], Score | NotTold]] = field(default_factory=dict)
    """Where each score is."""
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
    bands_its_audience: bool = False
    """Whether it says of the audience about how many they are, and not more: "250,000+ Ratings"."""


def shown_on(body: bytes, tree: Selector | None) -> Shown:
    """Return what the first known form of a page's head shows."""
    scorecard, hero = json_script(body, "media-scorecard-json"), json_script(body, "media-hero-json")
    if scorecard is not None or hero is not None:
        return _scorecard(scorecard, looked(lambda: dig(hero, "content")))
    old = json_script(body, "score-details-json") or json_script(body, "scoreDetails")
    board = looked(lambda: dig(old, "scoreboard"))
    if isinstance(board, dict):
        return _scoreboard(board, looked(lambda: dig_text(old, "primaryImageUrl")))
    if tree is None:
        return Shown()
    if element := tree.css("score-board, score-board-deprecated"):
        return _score_board(element)
    if halves := tree.css(".mop-ratings-wrap__half"):
        return _mop_ratings(halves)
    return _score_panel(tree)


def json_script(body: bytes, script_id: str) -> Any:
    """Return the data in a script; None when there is none or it is no JSON. Raises ShapeError when the page ends inside it."""
    raw = script(body, script_id)
    return looked(lambda: decode_json(raw)) if raw else None


# --- Since 2024 -----------------------------------------------------------------------------------------------------


def _scorecard(scorecard: Any, hero: Any) -> Shown:
    """Read the two scripts of pages since 2024, of which a piece of a page may have one only."""
    critics = partial(told, partial(_side, "tomatometer"), scorecard)
    audience = partial(told, partial(_side, "popcornmeter"), scorecard)
    shown = Shown(
        {
            "tomatometer": lambda: first(partial(critics, "criticsScore"), partial(critics, "overlay", "criticsAll")),
            "popcornmeter": lambda: first(
                partial(audience, "audienceScore"), lambda: _all_of_audience(dig(scorecard, "overlay"))
            ),
        },
        title=looked(lambda: dig_text(hero, "title")),
        genres=looked(lambda: texts(hero, "metadataGenres")) or [],
        plot=looked(lambda: dig_text(scorecard, "description")),
        poster=looked(lambda: dig_text(scorecard, "primaryImageUrl")) or looked(lambda: dig_text(hero, "posterSrc")),
        bands_its_audience=bool(looked(lambda: dig_text(scorecard, "audienceScore", "bandedRatingCount"))),
    )
    for prop in looked(lambda: texts(hero, "metadataProps")) or []:
        # Without labels, in any order and number: "PG-13", "2021" or "Released Oct 22, 2021", "2h 35m".
        dated = _DATED.match(prop)
        if dated and _A_YEAR.search(dated["date"]):
            shown.year = looked(partial(parse_year, dated["date"]))
        elif _CERTIFICATE.match(prop):
            shown.certificate = prop
        else:
            _read_years_and_runtime(shown, prop)
    return shown


def _side(kind: ScoreKind, side: Any) -> Score | NotTold:
    """Return the score of one side. A side without a score is a title without one, unless it has counts: then its key is another."""
    value = first(partial(told, dig, side, "score"), partial(told, dig, side, "scorePercent"))
    # An audience is counted in bands only ("250,000+ Ratings"); its reviewCount is of those who wrote a review.
    counts = ("reviewCount", "ratingCount") if kind == "tomatometer" else ()
    count = next((found for key in counts if (found := looked(partial(dig, side, key)))), None)
    if value is None or value is ABSENT or value == "":
        counted = [count_of(dig(side, key)) or 0 for key in ("likedCount", "notLikedCount", *counts)]
        is_scored = any(dig(side, key) for key in ("averageRating", "sentiment"))
        counted.append(looked(lambda: parse_count(dig_text(side, "bandedRatingCount") or "")[0]) or 0)
        if is_scored or max(counted) >= ENOUGH_REVIEWS or not _KNOWN_KEYS & set(side):
            return None
        return ABSENT
    return score(kind, value, count)


def _all_of_audience(overlay: Any) -> Score | NotTold:
    """Return the score of the whole audience, where it is the one shown: no verified part of it has one."""
    if "score" in (dig(overlay, "audienceVerified") or {"score": None}):
        return None
    return told(partial(_side, "popcornmeter"), overlay, "audienceAll")


# --- 2021 to 2024 ---------------------------------------------------------------------------------------------------


def _scoreboard(board: dict[str, Any], poster: str | None) -> Shown:
    """Read the script of pages of 2021 to 2024: first flat ("tomatometerScore": "90"), later objects with a value."""
    shown = Shown(
        {
            "tomatometer": lambda: _scored(board, "tomatometer", "tomatometer", "reviewCount"),
            "popcornmeter": lambda: _scored(board, "popcornmeter", "audience", "ratingCount"),
        },
        title=looked(lambda: dig_text(board, "title")),
        certificate=looked(lambda: dig_text(board, "rating")),
        poster=poster,
    )
    _read_info(shown, looked(lambda: dig_text(board, "info")))
    return shown


def _scored(board: dict[str, Any], kind: ScoreKind, key: str, count_key: str) -> Score | NotTold:
    value, count = told(dig, board, f"{key}Score"), board.get(f"{key}Count")
    if isinstance(value, dict):
        count, value = value.get(count_key), told(dig, value, "value")
    if value is ABSENT:
        return None if isinstance(count, int) and count > 0 and kind == "tomatometer" else ABSENT
    return None if value is None else score(kind, value, count)


def _score_board(board: SelectorList[Selector]) -> Shown:
    """Read the element of pages of 2021 to 2024 that lack the script."""
    critics, audience = (text_of(board.css(f'[slot="{slot}"]')) for slot in ("critics-count", "audience-count"))
    shown = Shown(
        {
            "tomatometer": lambda: score("tomatometer", board.attrib.get("tomatometerscore"), _counted(critics)),
            "popcornmeter": lambda: score("popcornmeter", board.attrib.get("audiencescore"), _counted(audience)),
        },
        title=text_of(board.css("h1")) or None,
        certificate=board.attrib.get("rating") or None,
    )
    _read_info(shown, text_of(board.css('[slot="info"]')))
    return shown


def _read_info(shown: Shown, info: str | None) -> None:
    """Read a line such as "2006, Crime/Drama, 2h 32m", of which any part can be missing."""
    for part in (info or "").split(", "):
        _read_years_and_runtime(shown, part)


def _read_years_and_runtime(shown: Shown, part: str) -> None:
    if years := _YEARS.match(part):
        shown.year = looked(lambda: check_year(int(years["first"])))
        shown.end_year = looked(lambda: check_year(int(years["last"])))
        shown.is_running = years["last"] is None and years["first"] != part
    elif _DURATION.match(part):
        shown.runtime = looked(lambda: parse_runtime(part))


# --- To 2020 --------------------------------------------------------------------------------------------------------


def _mop_ratings(halves: SelectorList[Selector]) -> Shown:
    """Read the two halves of the score panel of 2019 and 2020. Two of one kind are no such panel."""
    found: dict[ScoreKind, list[Selector]] = {"tomatometer": [], "popcornmeter": []}
    for half in halves:
        of_audience = "audience-score" in half.attrib.get("class", "") or "Audience Score" in text_of(half)
        found["popcornmeter" if of_audience else "tomatometer"].append(half)
    if any(len(halves_) > 1 for halves_ in found.values()):
        return Shown()
    return Shown({kind: partial(_half, kind, halves_[0]) for kind, halves_ in found.items() if halves_})


def _half(kind: ScoreKind, half: Selector) -> Score | NotTold:
    text = text_of(half)
    return _worded(kind, text_of(half.css(".mop-ratings-wrap__percentage")), _counted(text), text)


def _worded(kind: ScoreKind, share: str, counted: str | None, around: str) -> Score | NotTold:
    """Return a score of its text. Before a release the same place shows how many "want to see" a title: no score."""
    if _NO_METER.search(around) and ("want to see" in around.lower() or not share):
        return ABSENT
    return score(kind, share or None, counted)


def _score_panel(tree: Selector) -> Shown:
    """Read the score panel of 2014 to 2018."""
    critics, audience = tree.css("#all-critics-numbers"), tree.css(".audience-score")
    counts = text_of(tree.css("div.audience-info"))
    heading = tree.css("h1.movie_title [itemprop=name], h1#movie-title")

    def meter(kind: ScoreKind, panel: SelectorList[Selector], counted: str) -> Score | NotTold:
        return _worded(kind, text_of(panel.css(".meter-value")), _counted(counted), text_of(panel))

    return Shown(
        {
            "tomatometer": lambda: meter("tomatometer", critics, text_of(critics)),
            # The same figure can be of those who "want to see" it.
            "popcornmeter": lambda: (
                meter("popcornmeter", audience, counts)
                if re.search("liked? it|want to see", text_of(audience), re.IGNORECASE)
                else None
            ),
        },
        title=fold(" ".join(heading[:1].xpath("text()").getall())) or None,
        year=looked(lambda: parse_year(text_of(heading.css(".h3, .year")))),
    )


def _counted(text: str) -> str | None:
    """Return the count in "Reviews Counted: 49", "User Ratings: 885,688" or "250,000+ Ratings"."""
    found = _COUNTED.search(text)
    return (found["before"] or found["behind"]) if found else None
