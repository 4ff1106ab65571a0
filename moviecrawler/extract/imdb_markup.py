"""Reads the markup of IMDb's title pages of 2022 whose data has no main column."""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING, Final

from moviecrawler.extract.findings import Findings, ShapeError, attempt, new_credits
from moviecrawler.extract.imdb_values import TOP_PLACES
from moviecrawler.extract.trees import text_of, tree_of

if TYPE_CHECKING:
    from parsel import Selector

    from moviecrawler.items import Credit

_DETAILS: Final = (("countries", "title-details-origin"), ("languages", "title-details-languages"))
_LAST_NUMBER: Final = re.compile(r"(\d{1,3})\D{0,20}$")


def look(found: Findings, body: bytes) -> None:
    """Read fields that have no value yet from the markup."""
    tree = attempt(lambda: tree_of(body))
    if tree is None:
        return
    for field, testid in _DETAILS:
        found.look(field, partial(_texts, tree, f'[data-testid="{testid}"] li a'))
    found.look("credits.cast", lambda: _cast(tree))
    rank = "imdb_top250_tv_rank" if found.movie.kind == "series" else "imdb_top250_rank"
    found.look(rank, lambda: _top_place(text_of(tree.css('[data-testid="award_top-rated"]'))))


def _texts(tree: Selector, css: str) -> list[str]:
    return [text for part in tree.css(css) if (text := text_of(part))]


def _top_place(text: str) -> int | None:
    """Return the place in "Top rated movie #39", whose words are translated."""
    number = _LAST_NUMBER.search(text)
    return int(number[1]) if number and 1 <= int(number[1]) <= TOP_PLACES else None


def _cast(tree: Selector) -> list[Credit]:
    people = []
    for tile in tree.css('[data-testid="title-cast-item"]'):
        actor = tile.css('[data-testid="title-cast-item__actor"]')
        played = _texts(tile, '[data-testid="cast-item-characters-link"]')
        people.append((text_of(actor), actor.attrib.get("href"), " / ".join(played) or None))
    if any(not name for name, _, _ in people):
        raise ShapeError("credits", "a member of the cast without a name")
    return new_credits("cast", people)
