"""Rotten Tomatoes' title pages of 2009 to 2024, their scores, details and cast, and later ones that were saved without their scripts.

| generation | scores | details |
| --- | --- | --- |
| 2009-2010 | `#tomatometer_score` | `.label`, `.content` |
| 2011-2014 | `#all-critics-meter`, `.fan_side` | the same |
| 2014 | `#all-critics-numbers`, `.audience-score` with itemprops | `dl` |
| 2015-2018 | the same markup; JSON-LD | `li.meta-row` |
| 2019-2020 | `.mop-ratings-wrap__half` | `li.meta-row` |
| 2015-2019, series | `#super_series_header` has the years | `#detail_panel`, `.movie_info` |
| 2020-2024, series | as of movies | `#detail_panel`, `section:series-info` |
| 2021-2024 | `#score-details-json`, then `#scoreDetails`: `scoreboard` | `[data-qa=movie-info-item]` |
| since 2024 | `media-scorecard` | as with scripts |
"""

from __future__ import annotations

import re
from functools import partial
from itertools import takewhile
from typing import TYPE_CHECKING, Any, Final

from parsel import Selector, SelectorList

from moviecrawler.extract import dig
from moviecrawler.extract.findings import ABSENT, NoValue, ShapeError, attempt
from moviecrawler.extract.rottentomatoes_sections import Detail, known_details, part_of
from moviecrawler.extract.rottentomatoes_title import Head, read_props, read_years_and_runtime
from moviecrawler.extract.rottentomatoes_values import finer_scores, json_script, read_side, score, slot
from moviecrawler.extract.trees import text_of
from moviecrawler.items import Score
from moviecrawler.texts import fold

if TYPE_CHECKING:
    from moviecrawler.extract.findings import Person
    from moviecrawler.items import ScoreKind

_COUNTED = re.compile(
    r"(?:Count|Counted|Ratings):\s*(?P<behind>\d[\d,]*\+?)"
    r"|(?<!than )(?<![\d,./])(?P<before>\d[\d,]*\+?)\s+(?:Reviews?|(?:Verified )?Ratings?)\b"
)
_NO_METER = re.compile(r"no (?:score|consensus|reviews)|not (?:yet )?available|not enough|coming soon", re.IGNORECASE)
_HEADINGS: Final = "h1.movie_title [itemprop=name], h1#movie-title, #super_series_header h1, .seriesHeader h1"
_DETAILS_OF_SERIES: Final = '#detail_panel, [data-qa$="series-info"], [data-qa$="season-info"]'
_PAIRS = ".//*[not(*)][substring-before(concat(normalize-space(), '|'), ':|')][following-sibling::*[1]]"
"""Whatever ends in a colon and has something beside it: tables and rows of other years."""

_FINER: Final[dict[ScoreKind, str]] = {
    "tomatometer_top": "tomatometerScoreTop",
    "popcornmeter_all": "audienceScoreAll",
    "popcornmeter_verified": "audienceScoreVerified",
}


def older_head(body: bytes, tree: Selector | None) -> Head:
    """Return what the first known form of a page's head shows."""
    scripts = (json_script(body, name) for name in ("score-details-json", "scoreDetails"))
    old = next((data for data in scripts if data), None)
    board = attempt(lambda: dig.at(old, "scoreboard"))
    if isinstance(board, dict):
        modal = attempt(lambda: dig.at(old, "modal"))
        return _read_scoreboard(board, modal, attempt(lambda: dig.text(old, "primaryImageUrl")))
    if tree is None:
        return Head()
    if element := tree.css("score-board, score-board-deprecated"):
        return _read_score_board(element)
    if card := tree.css("media-scorecard"):
        return _read_media_scorecard(card, tree.css("media-hero"))
    if halves := tree.css(".mop-ratings-wrap__half"):
        return _read_mop_ratings(halves)
    return _read_score_panel(tree)


# --- Since 2021 ---------------------------------------------------------------------------------------------------------


def _read_scoreboard(board: dict[str, Any], modal: Any, poster: str | None) -> Head:
    """Read the script of pages of 2021 to 2024: first flat ("tomatometerScore": "90"), later objects with a value.

    `modal` has the sides of the scores.
    """
    finer = {kind: attempt(partial(dig.at, modal, key)) for kind, key in _FINER.items()}
    shown_score = attempt(lambda: _scored(board, "popcornmeter", "audience", "ratingCount"))
    audience = [side for side in (finer["popcornmeter_verified"], finer["popcornmeter_all"]) if _has(side, shown_score)]
    head = Head(
        {
            "tomatometer": lambda: _scored(board, "tomatometer", "tomatometer", "reviewCount"),
            "popcornmeter": lambda: _scored(board, "popcornmeter", "audience", "ratingCount"),
            **finer_scores(finer),
        },
        sides={
            "tomatometer": [attempt(partial(dig.at, modal, "tomatometerScoreAll")), _object(board, "tomatometerScore")],
            "popcornmeter": [*audience[:1], _object(board, "audienceScore")],
            **{kind: [side] for kind, side in finer.items()},
        },
        title=attempt(lambda: dig.text(board, "title")),
        certificate=attempt(lambda: dig.text(board, "rating")),
        poster=poster,
    )
    _read_info(head, attempt(lambda: dig.text(board, "info")))
    return head


def _has(side: Any, shown: Score | NoValue) -> bool:
    """Return whether the score of a part of the audience is the one that is shown."""
    found = attempt(lambda: read_side("popcornmeter", side))
    return isinstance(found, Score) and isinstance(shown, Score) and found.value == shown.value


def _object(board: dict[str, Any], key: str) -> Any:
    return found if isinstance(found := board.get(key), dict) else None


def _scored(board: dict[str, Any], kind: ScoreKind, key: str, count_key: str) -> Score | NoValue:
    value, count = dig.read(dig.at, board, f"{key}Score"), board.get(f"{key}Count")
    if isinstance(value, dict):
        count, value = value.get(count_key), dig.read(dig.at, value, "value")
    if value is ABSENT:
        return None if isinstance(count, int) and count > 0 and kind == "tomatometer" else ABSENT
    return None if value is None else score(kind, value, count)


def _read_score_board(board: SelectorList[Selector]) -> Head:
    """Read the element of pages of 2021 to 2024 that lack the script."""
    critics, audience = slot(board, "critics-count"), slot(board, "audience-count")
    head = Head(
        {
            "tomatometer": lambda: score("tomatometer", board.attrib.get("tomatometerscore"), _counted(critics)),
            "popcornmeter": lambda: score("popcornmeter", board.attrib.get("audiencescore"), _counted(audience)),
        },
        title=text_of(board.css("h1")) or None,
        certificate=board.attrib.get("rating") or None,
    )
    _read_info(head, slot(board, "info"))
    return head


def _read_media_scorecard(card: SelectorList[Selector], hero: SelectorList[Selector]) -> Head:
    """Read the elements of pages since 2024 that lack the scripts."""

    def shown(kind: ScoreKind, side: str) -> Score | NoValue:
        return score(kind, slot(card, f"{side}Score") or None, _counted(slot(card, f"{side}Reviews")))

    genres, props = (
        [text_of(part).strip(" /,") for part in hero.css(f'[slot="{name}"]')]
        for name in ("metadataGenre", "metadataProp")
    )
    head = Head(
        {
            "tomatometer": partial(shown, "tomatometer", "critics"),
            "popcornmeter": partial(shown, "popcornmeter", "audience"),
        },
        title=slot(hero, "title") or None,
        genres=list(filter(None, genres)),
        plot=slot(card.css("drawer-more"), "content") or None,
        poster=card.css('[slot="posterImage"]').attrib.get("src"),
    )
    read_props(head, props)
    return head


def _read_info(head: Head, info: str | None) -> None:
    """Read a line such as "2006, Crime/Drama, 2h 32m", of which any part can be missing."""
    for part in (info or "").split(", "):
        read_years_and_runtime(head, part)


# --- To 2020 --------------------------------------------------------------------------------------------------------


def _read_mop_ratings(halves: SelectorList[Selector]) -> Head:
    """Read the two halves of the score panel of 2019 and 2020. Two of one kind are no such panel."""
    found: dict[ScoreKind, list[Selector]] = {"tomatometer": [], "popcornmeter": []}
    for half in halves:
        of_audience = "audience-score" in half.attrib.get("class", "") or "Audience Score" in text_of(half)
        found["popcornmeter" if of_audience else "tomatometer"].append(half)
    if any(len(halves_) > 1 for halves_ in found.values()):
        return Head()
    return Head({kind: partial(_half, kind, halves_[0]) for kind, halves_ in found.items() if halves_})


def _half(kind: ScoreKind, half: Selector) -> Score | NoValue:
    text = text_of(half)
    return _worded(kind, text_of(half.css(".mop-ratings-wrap__percentage")), _counted(text), text)


def _worded(kind: ScoreKind, share: str, counted: str | None, around: str) -> Score | NoValue:
    """Return a score of its text. Before a release the place of the audience's shows how many "want to see" a title: no score."""
    if kind == "popcornmeter" and "want to see" in around.lower():
        return ABSENT
    if not share:
        return ABSENT if _NO_METER.search(around) else None
    return score(kind, share.removesuffix("liked it"), counted)


def _read_score_panel(tree: Selector) -> Head:
    """Read the score panel of 2009 to 2018."""
    critics, audience = tree.css("#all-critics-numbers"), tree.css(".audience-score") or tree.css(".fan_side")
    counts = text_of(tree.css("div.audience-info") or audience.css(".critic_stats"))
    meters = critics.css(".meter-value, #all-critics-meter")
    if not critics:
        critics, meters = tree.css("#tomatometer_data"), tree.css("#tomatometer_score .percent")
    heading = tree.css(_HEADINGS) or tree.css("h1.movie_title")

    liked = audience.css(".meter-value, .meter.numeric")
    head = Head(
        {
            "tomatometer": lambda: _worded(
                "tomatometer", text_of(meters), _counted(text_of(critics)), text_of(critics)
            ),
            # The same figure can be of those who "want to see" it.
            "popcornmeter": lambda: (
                _worded("popcornmeter", text_of(liked), _counted(counts), text_of(audience))
                if re.search("liked? it|want to see", text_of(audience), re.IGNORECASE)
                else None
            ),
        },
        title=fold(" ".join(heading[:1].xpath("text()").getall())) or None,
    )
    for part in heading[:1].xpath(".//span"):
        read_years_and_runtime(head, text_of(part).strip("() "))
    return head


def _counted(text: str) -> str | None:
    """Return the count in "Reviews Counted: 49", "User Ratings: 885,688" or "250,000+ Ratings"."""
    found = _COUNTED.search(text)
    return (found["before"] or found["behind"]) if found else None


# --- Details and cast -----------------------------------------------------------------------------------------------


def older_details(tree: Selector) -> dict[str, Detail] | None:
    """Return the list of details of pages of 2009 to 2024; None without one."""
    rows = {}
    listed = tree.css('li.meta-row, [data-qa="movie-info-item"], .movie_info dt') or tree.css(
        f".movie_info, #movie_stats, table.info, {_DETAILS_OF_SERIES}"
    ).xpath(_PAIRS)
    # Backwards, so that the first of two rows with the same label is the one that stays.
    for row in reversed(listed):
        label = row.css('.meta-label, [data-qa="movie-info-item-label"]')
        value = row.css('.meta-value, [data-qa="movie-info-item-value"]')
        if not row.xpath("*") or row.root.tag == "dt":
            label, value = SelectorList([row]), SelectorList(map(_selector, _beside(row.root)))
        parts: list[tuple[str, str | None]] = []
        for piece in value.xpath("descendant-or-self::a | .//text()[not(ancestor::a)]"):
            if isinstance(piece.root, str):
                parts += [(fold(part), None) for part in piece.root.split(",") if fold(part)]
            else:
                parts.append((text_of(piece), piece.attrib.get("href")))
        rows[text_of(label)] = Detail(", ".join(map(text_of, value)), parts)
    return known_details(rows)


def _beside(label: Any) -> list[Any]:
    """Return the elements that a label is about: all links that follow it, or the next element, unless that is a label too."""
    following = label.itersiblings("*")
    first = next(following, None)
    if first is None or first.tag == "dt":
        return []
    # A label that is a link takes one alone: a page of thousands of such would be walked for each of them.
    are_links = first.tag == "a" != label.tag
    return [first, *takewhile(lambda part: part.tag == "a", following)] if are_links else [first]


def _selector(element: Any) -> Selector:
    return Selector(root=element, type="html")


def older_cast(tree: Selector) -> list[Person]:
    """Return the cast of pages of 2012 to 2024."""
    people = []
    tiles = tree.css(".cast-item, .cast-and-crew-item, #cast-info li")
    parts = tiles.css(".characters, .p--small")
    if parts and not any(map(text_of, parts)):
        raise ShapeError("cast", "no tile says whom anybody plays, and each has a place for it")
    for tile in tiles:
        link = tile.css(".media-body a, .metadata a, .media_block_content a")
        name = text_of(link) or text_of(tile.css(".media-body [title]:not(.characters), .metadata p:not(.p--small)"))
        if not name or (not parts and text_of(tile) != name):
            raise ShapeError("cast", "a tile without a name, or with more than the name in an unknown form")
        part = part_of(tile.css(".characters ::text, .p--small ::text").getall())
        if part is not None:
            people.append((name, link.attrib.get("href"), part or None))
    return people
