"""The scores, ranks and numbers of seasons and episodes on IMDb's pages without JSON."""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from moviecrawler.extract.findings import ABSENT, NoValue, ShapeError
from moviecrawler.extract.legacy.imdb_document import (
    Document,
    all_text,
    attribute,
    first_match,
    first_text,
    imdb_score,
    linked_score,
    metascore,
    of_class,
    own_text,
    unquoted,
)
from moviecrawler.extract.values import parse_integer
from moviecrawler.urls import id_in_url

if TYPE_CHECKING:
    from parsel import Selector

    from moviecrawler.extract.findings import Findings
    from moviecrawler.items import Score

_TOP_PLACES = 250
_OUT_OF_TEN = re.compile(r"(?<!\d)(\d+(?:[.,]\d)?)\s*/\s*10\b")
_NUMBER = re.compile(r"\d[\d.,\s]*")
_WORDS = re.compile(r"(?<!\s)\s*[^\W\d_]{4,}")
_MOST_LINKS = 10
"""Links to ratings around which the rating is looked for; on pages it is around one of the first four."""
_NUMBERED = (
    ".bp_heading, .tv_header, #tn15main .info, .titlereference-overview-season-episode-section,"
    " [data-testid=hero-subnav-bar-season-episode-numbers-section]"
)
_NUMBERS = re.compile(r"\bS(?:eason )?(\d{1,9})\W+E(?:p(?:isode )?)?(\d{1,9})\b", re.ASCII)
_FIRST_NUMBER = re.compile(r"\d[\d,.]{0,12}", re.ASCII)
_SEASON = re.compile(r"[?&]season=(\d{1,9})(?:&|$)", re.ASCII)
_MORE_SEASONS = "ref_=tt_eps_sn_mr"
_UNRATED = re.compile(r"\bawaiting \d+ votes|\bneeds \d+ ratings", re.IGNORECASE)


def look_for_scores(found: Findings, document: Document) -> None:
    """Find the scores, the places in the Top 250 and the popularity."""
    root = document.root
    found.look(
        "scores.imdb",
        partial(_rating, root),
        partial(_old_rating, root),
        partial(linked_score, document.title_data),
        partial(_hero_rating, root),
        partial(_rating_beside_votes, root),
    )
    found.look(
        "scores.metascore", *(partial(read, root) for read in (_metascore_block, _metascore_box, _metascore_text))
    )
    chart, field = ("toptv", "imdb_top250_tv_rank") if found.movie.kind == "series" else ("top", "imdb_top250_rank")
    found.look(field, partial(_top_place, root, f"chart/{chart}"))
    found.look("popularity_rank", partial(_popularity, root))


def _rating(root: Selector) -> Score | None:
    blocks = root.css(".imdbRating, .star-box-details, .titlereference-header")
    value = first_text(blocks, "[itemprop=ratingValue], .ipl-rating-star__rating")
    votes = first_text(blocks, "[itemprop=ratingCount], .ipl-rating-star__total-votes")
    return imdb_score(value, votes.strip("()") if votes else None) if value else None


def _old_rating(root: Selector) -> Score | None:
    """Read 7.9/10 and, in a link beside it, 428,329 votes."""
    shown = _OUT_OF_TEN.match(first_text(root, "#tn15rating b, .starbar-meta b, .star-box .rating-rating") or "")
    links = root.css("#tn15rating a[href*=ratings], .starbar-meta a, .star-box a[href*=ratings]")
    number = first_match(_NUMBER, ((all_text(link) or "").strip("(") for link in links))
    return imdb_score(shown[1], number[0].strip() if number else None) if shown else None


def _hero_rating(root: Selector) -> Score | None:
    # Beside it stands only about how many voted, 2.8M.
    shown = _OUT_OF_TEN.match(first_text(root, "[data-testid=hero-rating-bar__aggregate-rating__score]") or "")
    return imdb_score(shown[1], None) if shown else None


def _rating_beside_votes(root: Selector) -> Score | NoValue:
    """Return the rating beside the link to its details, which is the number of votes in every layout: 7.4/10 47,104.

    The link of an unrated title says "(awaiting 5 votes)".
    """
    absent: NoValue = None
    for link in root.xpath("//a[contains(@href, 'ratings')]")[:_MOST_LINKS]:
        # 33,314 users; not: (awaiting 5 votes)
        text = (all_text(link) or "").strip("() ")
        if urlsplit(attribute(link, "href")).path.rstrip("/").rpartition("/")[2] != "ratings":
            continue
        if _UNRATED.search(text):
            absent = ABSENT
        elif text[:1].isdigit():
            votes = _WORDS.sub("", text)
            around = (
                " ".join(element.xpath(".//text()").getall()) for element in link.xpath("ancestor::*[position() <= 4]")
            )
            if rated := next((rated for text in around if (rated := _OUT_OF_TEN.search(text))), None):
                return imdb_score(rated[1], votes)
    return absent


def _metascore_block(root: Selector) -> Score | None:
    critics = first_text(root, ".metascore_block [itemprop=ratingValue]")
    return metascore(critics, first_text(root, ".metascore_block [itemprop=ratingCount]")) if critics else None


def _metascore_box(root: Selector) -> Score | None:
    critics = first_text(root, ".metacriticScore, .score-meta, .metacritic-score-box")
    return metascore(critics) if critics else None


def _metascore_text(root: Selector) -> Score | None:
    """Read the text of 2011 to 2015: Metascore: 79/100."""
    texts = [all_text(link) or "" for link in root.css(".star-box-details a[href*=criticreviews]")]
    return next((metascore(text.removesuffix("/100")) for text in texts if text.endswith("/100")), None)


def _top_place(root: Selector, chart: str) -> int | None:
    """Return the place in a Top 250: Top Rated Movies #26, Top 250: #9."""
    for link in root.css(
        "#titleAwardsRanks a, #tn15rating a, .starbar-special a, .titlereference-header a, a[data-testid=award_top-rated]"
    ):
        place = re.search(r"[#º°] ?([\d,]+)$", all_text(link) or "")
        if place and urlsplit(attribute(link, "href")).path.strip("/") == chart:
            number = parse_integer(place[1])
            if not 1 <= number <= _TOP_PLACES:
                raise ShapeError("imdb_top250_rank", f"{number} is not a place in a Top 250")
            return number
    return None


def _popularity(root: Selector) -> int | NoValue:
    """Return the moviemeter rank; ABSENT for the band that the page could give instead to 2015, "Top 5000"."""
    text = first_text(root, "#meterRank, [data-testid=hero-rating-bar__popularity__score]")
    for item in root.xpath("//*[contains(@class, 'titleReviewBarItem')][.//*[contains(@class, 'popularity')]]"):
        text = next((own for sub in item.css(".subText") if (own := own_text(sub))), text)
    found = re.match(r"\d[\d,.\s]*", text or "")
    if found:
        return parse_integer(found[0].strip()) or None
    return ABSENT if text and re.match(r"Top [\d,]+", text) else None


# --- Series ---------------------------------------------------------------------------------------------------------


def look_for_series(found: Findings, root: Selector) -> None:
    """Find how many seasons and episodes a series has; of an episode its series, season and number: Season 3 | Episode 10, (Season 3, Episode 10)."""
    if found.movie.kind == "series":
        found.look("season_count", lambda: season_count(root))
        found.look("episode_count", lambda: _episode_count(root))
    if found.movie.kind != "episode":
        return
    links = root.xpath(
        f"//*[{of_class('titleParent')}]/a | //*[{of_class('tv_header')}]/a | //a[@data-testid='hero-title-block__series-link']"
        f" | //*[{of_class('titlereference-header')}]//h4[@itemprop='name']/a"
        f" | //*[@id='tn15main']//*[{of_class('info')}][h5[starts-with(., 'TV Series')]]//a[contains(@href, '/title/tt')]"
    )[-1:]
    found.look("series_id", lambda: id_in_url("imdb", attribute(links, "href")))
    found.look("series_title", lambda: unquoted(all_text(links) or "") or None)
    season, episode = next(
        filter(any, (numbers_in(all_text(element)) for element in root.css(_NUMBERED))), (None, None)
    )
    found.take("season", season)
    found.take("episode", episode)


def numbers_in(text: str | None) -> tuple[int | None, int | None]:
    """Return season and episode of "Season 3 | Episode 10" or "S3, Ep10"; None for both in another text."""
    numbers = _NUMBERS.search(text or "")
    return (int(numbers[1]), int(numbers[2])) if numbers else (None, None)


def season_count(root: Selector) -> int | None:
    """Return how many seasons a page offers to choose from; None where it has no choice, or not room for all."""
    chosen = [attribute(option, "value").strip() for option in root.css("select#bySeason option")]
    chosen += [attribute(box, "season_number").strip() for box in root.css(".season_box [season_number]")]
    for link in root.css(".seasons-and-year-nav a, a[data-testid=tab-season-entry]"):
        address = attribute(link, "href")
        if _MORE_SEASONS in address:
            return None
        chosen += _SEASON.findall(address)
    listed = root.css(".titlereference-section-overview > div > a::attr(href)").re(_SEASON)
    if "1" in listed:  # The latest stand first.
        chosen += listed
    return len({number for number in chosen if number.isascii() and number.isdecimal()}) or None


def season_shown(root: Selector) -> int | None:
    """Return the number of the season whose episodes a page for telephones shows."""
    number = attribute(root.css(".season_box.active [season_number]"), "season_number").strip()
    return int(number) if _FIRST_NUMBER.fullmatch(number) and number.isdecimal() else None


def _episode_count(root: Selector) -> int | None:
    number = _FIRST_NUMBER.match(first_text(root, ".np_episode_guide .bp_sub_heading") or "")
    return parse_integer(number[0].rstrip(".,")) or None if number else None
