"""Series, seasons and episodes on IMDb's pages without JSON."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from moviecrawler.extract.legacy.imdb_document import all_text, attribute, first_text, of_class
from moviecrawler.extract.values import parse_integer
from moviecrawler.urls import id_in_url

if TYPE_CHECKING:
    from parsel import Selector

    from moviecrawler.extract.findings import Findings

_NUMBERED: Final = (
    ".bp_heading, .tv_header, .info-content, [data-testid=hero-subnav-bar-season-episode-numbers-section]"
)
_NUMBERS: Final = re.compile(r"\bS(?:eason )?(\d{1,9})\W+E(?:p(?:isode )?)?(\d{1,9})\b", re.ASCII)
_FIRST_NUMBER: Final = re.compile(r"\d[\d,.]{0,12}", re.ASCII)
_SEASON: Final = re.compile(r"[?&]season=(\d{1,9})(?:&|$)", re.ASCII)
_MORE_SEASONS: Final = "ref_=tt_eps_sn_mr"


def look_for_series(found: Findings, root: Selector) -> None:
    """Find how many seasons and episodes a series has; of an episode its series, season and number: Season 3 | Episode 10, (Season 3, Episode 10)."""
    if found.movie.kind == "series":
        found.look("season_count", lambda: season_count(root))
        found.look("episode_count", lambda: _episode_count(root))
    if found.movie.kind != "episode":
        return
    links = root.xpath(
        f"//*[{of_class('titleParent')}]/a | //*[{of_class('tv_header')}]/a | //a[@data-testid='hero-title-block__series-link']"
        f" | //*[@id='tn15main']//*[{of_class('info')}][h5[starts-with(., 'TV Series')]]//a[contains(@href, '/title/tt')]"
    )[-1:]
    found.look("series_id", lambda: id_in_url("imdb", attribute(links, "href")))
    found.look("series_title", lambda: all_text(links))
    season, episode = next(
        filter(any, (numbers_in(all_text(element)) for element in root.css(_NUMBERED))), (None, None)
    )
    found.look("season", lambda: season)
    found.look("episode", lambda: episode)


def numbers_in(text: str | None) -> tuple[int | None, int | None]:
    """Return season and episode of "Season 3 | Episode 10" or "S3, Ep10"; None for both in another text."""
    numbers = _NUMBERS.search(text or "")
    return (int(numbers[1]), int(numbers[2])) if numbers else (None, None)


def season_count(root: Selector) -> int | None:
    """Return how many seasons a page offers to choose from; None where it has no choice, or not room for all."""
    chosen = [attribute(option, "value").strip() for option in root.css("select#bySeason option")]
    chosen += [attribute(box, "season_number").strip() for box in root.css(".season_box [season_number]")]
    for link in root.css(".seasons-and-year-nav a"):
        address = attribute(link, "href")
        if _MORE_SEASONS in address:
            return None
        chosen += _SEASON.findall(address)
    return len({number for number in chosen if number.isascii() and number.isdecimal()}) or None


def season_shown(root: Selector) -> int | None:
    """Return the number of the season whose episodes a page for telephones shows."""
    number = attribute(root.css(".season_box.active [season_number]"), "season_number").strip()
    return int(number) if _FIRST_NUMBER.fullmatch(number) and number.isdecimal() else None


def _episode_count(root: Selector) -> int | None:
    number = _FIRST_NUMBER.match(first_text(root, ".np_episode_guide .bp_sub_heading") or "")
    return parse_integer(number[0].rstrip(".,")) or None if number else None
