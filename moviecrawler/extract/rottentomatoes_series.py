"""Series on Rotten Tomatoes: the seasons that a series' page lists, and which series, season or episode a page is about.

| generation | seasons |
| --- | --- |
| to 2019 | JSON-LD `containsSeason`: their names and addresses |
| 2020-2024 | `season-list-item`; JSON-LD |
| since 2024 | `tile-season`; JSON-LD |
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

from moviecrawler.extract import dig
from moviecrawler.extract.findings import ShapeError, attempt, scores_of
from moviecrawler.extract.rottentomatoes_values import score, slot
from moviecrawler.extract.series import check_asked, listed_season, one_of_each_season
from moviecrawler.extract.trees import tree_of
from moviecrawler.extract.values import parse_date, parse_year
from moviecrawler.urls import id_in_url, part_of_series, site_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from parsel import Selector

    from moviecrawler.items import Movie, TitleKind

KINDS: Final[dict[str, TitleKind]] = {
    "Movie": "movie",
    "TVSeries": "series",
    "TVSeason": "season",
    "TVEpisode": "episode",
}
"""What JSON-LD calls a title."""
_LONGEST_AIRED: Final = 100
"""Characters of what a row says of when its season was shown."""
_EPISODES: Final = re.compile(r"(?<!\d)([1-9]\d{0,4}) episodes?\b", re.IGNORECASE | re.ASCII)


def site_id_of(url: str | None, declared: str | None, addresses: Iterable[str | None]) -> str | None:
    """Return the id of the title that a page is about: the first of its own `addresses` that names what it is `declared` to be by JSON-LD.

    `url` is what was asked for, which names the page when it does not name itself. None when nothing does. Raises ShapeError when
    one part of a series was asked for and the page is about another, or about the whole: a season's page can have its series' canonical link.
    """
    asked = id_in_url("rottentomatoes", url) if url and site_of(url) == "rottentomatoes" else None
    stated = [site_id for address in addresses if address and (site_id := id_in_url("rottentomatoes", address))]
    fitting = [site_id for site_id in [*stated, asked] if site_id and _is_declared(site_id, declared)]
    if not fitting and (stated or asked):
        raise ShapeError("site_id", f"{[*stated, asked][0]} is no {declared}, which the page says that it is about")
    site_id = fitting[0] if fitting else None
    check_asked("rottentomatoes", site_id, asked)
    return site_id


def _is_declared(site_id: str, declared: str | None) -> bool:
    part = part_of_series("rottentomatoes", site_id)
    kind = KINDS.get(declared or "")
    if kind in {"season", "episode"}:
        return part is not None and part.kind in {kind, "other"}
    return kind is None or part is None


@dataclass(slots=True)
class _Row:
    """A season as a page lists it. None and "" are what it doesn't tell."""

    address: str | None
    title: str | None
    critics: str | None = None
    audience: str | None = None
    aired: str = ""
    """Such as "Jul 2012" or "2021, HBO, 9 episodes"."""

    @property
    def id(self) -> str | None:
        """The season's site_id."""
        return id_in_url("rottentomatoes", self.address) if self.address else None


def seasons_of(series: Movie, body: bytes, tree: Selector | None, ld: dict[str, Any]) -> list[Movie]:
    """Return the seasons that a series' page lists, with what it says of each. A row that can't be read is passed by: JSON-LD names its season, too."""
    linked = attempt(lambda: list(_linked(ld))) or []
    rows = chain(
        attempt(lambda: _tiles(body)) or [],
        [] if tree is None else attempt(lambda: _older_rows(tree)) or [],
        linked,
    )
    names = {row.id: row.title for row in linked}
    return one_of_each_season(_season(series, row, row.title or names.get(row.id)) for row in rows)


def _season(series: Movie, row: _Row, title: str | None) -> Movie | None:
    aired = row.aired if len(row.aired) <= _LONGEST_AIRED else ""
    episodes = _EPISODES.search(aired)
    return listed_season(
        series,
        row.id,
        title,
        scores_of(partial(score, "tomatometer", row.critics), partial(score, "popcornmeter", row.audience)),
        year=attempt(lambda: parse_year(aired)),
        release_date=attempt(lambda: parse_date(aired)),
        episode_count=int(episodes[1]) if episodes else None,
    )


def _tiles(body: bytes) -> list[_Row]:
    first, last = body.find(b"<tile-season"), body.rfind(b"</tile-season")
    if first == -1:
        return []
    if last < first:
        raise ShapeError("seasons", "the page ends inside its tiles")
    return [
        _Row(
            tile.attrib.get("href"),
            slot(tile, "title"),
            slot(tile, "critics-score"),
            slot(tile, "audience-score"),
            slot(tile, "air-date"),
        )
        for tile in tree_of(body[first:last]).css("tile-season")
    ]


def _older_rows(tree: Selector) -> list[_Row]:
    return [
        _Row(
            item.xpath("ancestor-or-self::*[@href][1]/@href").get(),
            item.attrib.get("seasontitle"),
            item.attrib.get("tomatometerscore"),
            aired=item.attrib.get("info", ""),
        )
        for item in tree.css("season-list-item")
    ]


def _linked(ld: dict[str, Any]) -> Iterator[_Row]:
    for season in dig.listed(ld, "containsSeason"):
        yield _Row(attempt(partial(dig.text, season, "url")), attempt(partial(dig.text, season, "name")))
