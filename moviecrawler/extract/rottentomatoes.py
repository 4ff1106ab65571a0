"""Rotten Tomatoes' title pages of every generation since 2014, and which kind of page a page is.

| generation | scores | details |
| --- | --- | --- |
| 2014 | `#all-critics-numbers`, `.audience-score` with itemprops | `dl` |
| 2015-2018 | the same markup; JSON-LD | `li.meta-row` |
| 2019-2020 | `.mop-ratings-wrap__half` | `li.meta-row` |
| 2021-2024 | `#score-details-json`, then `#scoreDetails`: `scoreboard` | `[data-qa=movie-info-item]` |
| since 2024 | `#media-scorecard-json`, `#media-hero-json` | `[data-qa=item]` |

`RottenTomatoes.context.*` is never read: it holds what other requests left in the same server process.
"""

from __future__ import annotations

import html
import re
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from moviecrawler.extract import dig
from moviecrawler.extract import rottentomatoes_sections as sections
from moviecrawler.extract.embedded import (
    check_whole,
    decode_json,
    decode_text,
    json_ld,
    reader,
    scripts,
    starts_with,
    stated_addresses,
)
from moviecrawler.extract.findings import ABSENT, Findings, NoValue, Person, ShapeError, attempt, new_credits
from moviecrawler.extract.legacy import rottentomatoes_titles as legacy
from moviecrawler.extract.rottentomatoes_lists import browse, browse_json, search
from moviecrawler.extract.rottentomatoes_parts import (
    FINER,
    Shown,
    facts_beside,
    json_script,
    listed,
    name_of,
    read_scorecard,
    score,
    texts,
    title_kind,
)
from moviecrawler.extract.rottentomatoes_series import KINDS, seasons_of, site_id_of
from moviecrawler.extract.series import new_title
from moviecrawler.extract.trees import tree_of
from moviecrawler.extract.values import parse_count, parse_date, parse_runtime, parse_year
from moviecrawler.items import Amount, Credit, Movie, Page, Role, Score, ScoreKind
from moviecrawler.texts import fold
from moviecrawler.urls import site_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from parsel import Selector

_ROLES: tuple[Role, ...] = ("director", "writer", "creator")
"""Those that the list of details names."""

_SCORES: tuple[ScoreKind, ...] = ("tomatometer", "popcornmeter", *FINER)

_PART = r"/s\d+(?:\.\d+)?(?:/e\d+(?:\.\d+)?)?"
_TITLE_PATH = re.compile(rf"^/(?:(?P<movie>m)/[^/]+|tv/[^/]+(?:{_PART})?)/?$")
_REVIEWS_PATH = re.compile(rf"^/(?:m|tv)/[^/]+(?:{_PART})?/reviews(?:/|$)")
_SECTIONS = (("/browse/", "browse"), ("/cnapi/browse/", "browse-json"), ("/top/", "chart"), ("/search", "search"))
_SCOREBOARDS = (
    b'id="media-scorecard-json"',
    b'id="score-details-json"',
    b'id="scoreDetails"',
    b"<score-board",
    b"mop-ratings-wrap__half",
    b'id="all-critics-numbers"',
)
_DETAILS = (b'data-qa="item-label"', b'data-qa="movie-info-item"', b'class="meta-row', b'class="movie_info')
_CAST_SECTIONS = (b"cast-and-crew", b"person-item", b"cast-item", b"castSection")
_PIECES = (*_SCOREBOARDS, *_DETAILS, b'id="media-hero-json"', b'"Tomatometer"')
"""What tells a piece that the owner of a collection has cut out of a title page, without any URL in it."""
_SMALLEST_PAGE = 100_000
"""Bytes; the smallest title page that is known has 230,000."""

_YEAR_BEHIND_TITLE = re.compile(r"^(?P<title>.*\S)\s*\((?P<year>(?:18[7-9]|19\d|20\d)\d)\)$", re.ASCII)
_A_YEAR = re.compile(r"\b\d{4}\b", re.ASCII)
_NO_DATE = re.compile(
    r"^(?:(?:TB[AD]|Spring|Summer|Fall|Autumn|Winter|Q[1-4])\b.*|\d{4}|\D+)$", re.ASCII | re.IGNORECASE
)
_SITE_NAME = re.compile(r"(?<!\s)\s*[-|]\s*Rotten Tomatoes$")
_BOILERPLATE = "Discover reviews, ratings"
_PERSON = re.compile(r"/(celebrity/[^/?#\s]+)")
_NO_POSTER = re.compile(r"poster[-_]?default|default[-_]?poster|TwitterCard", re.IGNORECASE)


def kind_of(body: bytes, url: str | None = None) -> str | None:
    """Return which kind of page this is, by what it says itself, else by `url`; None when it is none of the site's.

    movie, tv, movie-trimmed (a piece of a title page), reviews, browse, browse-json, chart or search.
    """
    if starts_with(body, b"{"):
        return "browse-json" if b'"grid"' in body and (b'"pageInfo"' in body or b'"mediaUrl"' in body) else None
    address = _canonical(body) or (url if url and site_of(url) == "rottentomatoes" else "")
    kind = _kind_of_path(urlsplit(address).path)
    if kind is None:
        if b"<search-page-media-row" in body:
            return "search"
        if b'data-qa="discovery-media-list"' in body:
            return "browse"
        if b'data-json="props"' in body:
            return "reviews"
        return "movie-trimmed" if _has(body, _PIECES) else None
    if kind in {"movie", "tv"} and len(body) < _SMALLEST_PAGE and _has(body, _PIECES):
        return kind if _has(body, _SCOREBOARDS) and _has(body, _DETAILS) else "movie-trimmed"
    return kind


@reader
def reviews(body: bytes, url: str | None = None) -> Page:
    """Read what a page of reviews since 2026 says of its title. Raises ExtractionError."""
    check_whole(body)
    props = next(scripts(body, b'data-json="props"'), None)
    media = dig.at(decode_json(props), "media") if props else None
    title = dig.text(media, "title")
    if title is None:
        raise ShapeError("title", "no script of props with a media.title")
    found = Findings(_new_movie(site_id_of(url, None, [_canonical(body)]), title, {}))
    found.look("year", lambda: _year_in(_text(dig.at(media, "releaseYear"))))
    found.look("release_date", lambda: dig.read(_release_date, media, "theaterReleaseDate"))
    found.look("runtime_minutes", lambda: parse_runtime(dig.text(media, "runTime") or ""))
    found.look("genres", lambda: texts(media, "genres"))
    found.look("certificate", lambda: _short(dig.text(media, "rating")))
    found.look("credits.director", lambda: _credits("director", ((n, None, None) for n in texts(media, "directors"))))
    found.look("scores.tomatometer", lambda: score("tomatometer", dig.at(media, "tomatometerScore", "value") or None))
    return Page(site="rottentomatoes", kind="reviews", movie=found.done())


def _kind_of_path(path: str) -> str | None:
    if _REVIEWS_PATH.match(path):
        return "reviews"
    if title := _TITLE_PATH.match(path):
        return "movie" if title["movie"] else "tv"
    return next((kind for prefix, kind in _SECTIONS if path.startswith(prefix)), None)


def _has(body: bytes, signs: tuple[bytes, ...]) -> bool:
    return any(sign in body for sign in signs)


def _canonical(body: bytes) -> str | None:
    """Return the URL on the live site that the page gives as its own."""
    return next((address for address in stated_addresses(body) if site_of(address) == "rottentomatoes"), None)


def shown_on(body: bytes, tree: Selector | None) -> Shown:
    """Return what the first known form of a page's head shows."""
    scorecard, hero = json_script(body, "media-scorecard-json"), json_script(body, "media-hero-json")
    if scorecard is not None or hero is not None:
        return read_scorecard(scorecard, attempt(lambda: dig.at(hero, "content")))
    old = json_script(body, "score-details-json") or json_script(body, "scoreDetails")
    board = attempt(lambda: dig.at(old, "scoreboard"))
    if isinstance(board, dict):
        modal = attempt(lambda: dig.at(old, "modal"))
        return legacy.read_scoreboard(board, modal, attempt(lambda: dig.text(old, "primaryImageUrl")))
    if tree is None:
        return Shown()
    if element := tree.css("score-board, score-board-deprecated"):
        return legacy.read_score_board(element)
    if halves := tree.css(".mop-ratings-wrap__half"):
        return legacy.read_mop_ratings(halves)
    return legacy.read_score_panel(tree)


@reader
def movie(body: bytes, url: str | None = None, kind: str = "movie") -> Page:
    """Read the page of a movie or a series, or a piece of one, such as its scorecard alone (`kind`: movie, tv or movie-trimmed).

    `url` is where it came from; the page's own canonical URL wins. A series' scores are the means of its seasons', which the page lists.
    Raises ExtractionError, also when a season was asked for and the page is about its series, or the other way round.
    """
    check_whole(body)
    ld = next((item for item in json_ld(body) if _ld_type(item) in KINDS), {})
    scorecard = json_script(body, "media-scorecard-json")
    details = attempt(lambda: sections.details_of(body))
    # A whole parse costs more than all else together; a page of today is read without one.
    tree = None if details and b'id="media-scorecard-json"' in body else tree_of(body)
    if details is None and tree is not None:
        details = attempt(lambda: legacy.older_details(tree))
    shown = shown_on(body, tree)
    addresses = (dig.text(ld, "url"), attempt(lambda: dig.text(scorecard, "criticsScore", "reviewsPageUrl")))
    site_id = site_id_of(url, _ld_type(ld), [_canonical(body), *addresses])
    if site_id is None and kind != "movie-trimmed":
        raise ShapeError("site_id", "neither the page nor its URL names a title")
    # A page of an error or of consent has a title tag, too.
    is_title_page = bool(ld or details or _has(body, _PIECES))
    tag = _title_tag(body) if is_title_page else None
    title, year = _title_and_year(shown, ld, tag)
    found = Findings(_new_movie(site_id, title, ld))
    if found.movie.series_id:
        found.look("series_title", lambda: dig.text(ld, "partOfSeries", "name"), lambda: _series_in(tag, title))
    found.take("year", year)
    found.look("end_year", lambda: shown.end_year or (ABSENT if shown.is_running else None))
    for score_kind in _SCORES:
        places = [shown.scores.get(score_kind), partial(_ld_score, ld) if score_kind == "tomatometer" else None]
        found.look(f"scores.{score_kind}", *filter(None, places))
        for fact, place in facts_beside(score_kind, shown.sides.get(score_kind, [])).items():
            found.look(f"scores.{score_kind}.{fact}", place)
    _look_at_details(found, body, details or {}, shown)
    found.look("credits.director", lambda: _credits("director", _ld_people(ld, "director")))
    if tree is not None:
        found.look("credits.cast", lambda: _credits("cast", legacy.older_cast(tree)))
    if not details:
        _look_in_json_ld(found, ld)
    # JSON-LD names the first five: they are all that a page without any section of the cast names.
    if not details or not _has(body, _CAST_SECTIONS):
        found.look("credits.cast", lambda: _credits("cast", _ld_cast(ld)))
    found.look("consensus", lambda: sections.read_consensus(body))
    found.look("offers", lambda: sections.read_offers(body))
    found.look("related.similar", lambda: sections.read_similar(body))
    found.look("external_ids", lambda: sections.read_ids(body))
    found.look("poster_url", lambda: _poster(shown, tree, None if details else dig.text(ld, "image")))
    if found.movie.kind == "series":
        found.look("season_count", lambda: dig.size(ld, "numberOfSeasons") or None)
    if found.movie.kind == "season":
        found.look("episode_count", lambda: dig.size(ld, "numberOfEpisodes") or None)
    read = found.done()
    seasons = seasons_of(read, body, tree, ld) if read.kind == "series" else []
    return Page(site="rottentomatoes", kind=kind, movie=read, seasons=seasons)


def _new_movie(site_id: str | None, title: str, ld: dict[str, Any]) -> Movie:
    kind = title_kind(site_id) if site_id else KINDS.get(_ld_type(ld) or "", "movie")
    return new_title("rottentomatoes", site_id, title, kind)


def _series_in(tag: str | None, title: str) -> str | None:
    """Return the series of a season by the title of its page, "The Lamp: Season 2"."""
    series, colon, part = (tag or "").rpartition(":")
    return series.strip() if colon and part.strip() == title else None


def _look_at_details(found: Findings, body: bytes, details: dict[str, sections.Detail], shown: Shown) -> None:
    """Find what the list of details says, and what the head of the page says beside it. A row that is not there says nothing."""

    def text(name: str) -> str:
        return details[name].text

    found.look("release_date", lambda: _release_date(text("release_date")))
    # Not from JSON-LD's dateCreated, which can be that of a re-release, nor from the date of its streaming.
    found.look(
        "year",
        lambda: _year_in(text("release_date")),
        lambda: _year_in(_text(dig.at(json_script(body, "where-to-watch-json"), "releaseYear"))),
    )
    found.look("certificate", lambda: _short(text("certificate")), lambda: _short(shown.certificate))
    found.look("runtime_minutes", lambda: parse_runtime(text("runtime")), lambda: shown.runtime)
    genres = lambda: [genre for genre in re.split(r"\s*,\s*", text("genres")) if genre]  # noqa: E731 - one of the places
    found.look("genres", genres, lambda: None if details else shown.genres)
    found.look("languages", lambda: [text("language")])
    found.look("amounts.domestic", lambda: Amount(kind="domestic", value=_dollars(text("domestic")), currency="USD"))
    found.look("plot", lambda: shown.plot, lambda: sections.synopsis(body))
    for role in _ROLES:
        if role != "creator" or found.movie.kind == "series" or role in details:
            found.look(f"credits.{role}", partial(_people_of, details, role))
    found.look("credits.cast", lambda: _credits("cast", sections.cast_tiles(body)))


def _people_of(details: dict[str, sections.Detail], role: Role) -> list[Credit]:
    return _credits(role, [(*part, None) for part in details[role].parts])


def _look_in_json_ld(found: Findings, ld: dict[str, Any]) -> None:
    """Find what JSON-LD says of a page without details. Beside them it has genres, writers and certificates that the page doesn't show."""
    found.look("certificate", lambda: _short(dig.text(ld, "contentRating")))
    # JSON-LD's own duration, not that of its video, which is a trailer's.
    found.look("runtime_minutes", lambda: parse_runtime(dig.text(ld, "duration") or ""))
    found.look("genres", lambda: texts(ld, "genre"))
    found.look("plot", lambda: _ld_plot(ld))
    found.look("credits.writer", lambda: _credits("writer", _ld_people(ld, "author")))
    if found.movie.kind == "series":
        found.look("credits.creator", lambda: _credits("creator", _ld_people(ld, "creator")))


def _ld_plot(ld: dict[str, Any]) -> str | None:
    about = dig.text(ld, "description")
    return None if about and about.startswith(_BOILERPLATE) else about


def _ld_score(ld: dict[str, Any]) -> Score | NoValue:
    rating = dig.at(ld, "aggregateRating")
    named = dig.text(rating, "name")
    if named not in {None, "Tomatometer"}:
        return None
    return score("tomatometer", dig.at(rating, "ratingValue") or None, dig.at(rating, "reviewCount"))


# --- People ---------------------------------------------------------------------------------------------------------


def _credits(role: Role, people: Iterable[Person]) -> list[Credit]:
    return new_credits(role, people, _person_id)


def _person_id(link: str) -> str | None:
    linked = _PERSON.search(link)
    return linked[1] if linked else None


def _ld_cast(ld: dict[str, Any]) -> list[Person]:
    """Return the cast of JSON-LD; until 2022 their characters stood beside them, in a list of the same length."""
    people = _ld_people(ld, "actor") or _ld_people(ld, "actors")
    characters = listed(dig.at(ld, "character"))
    if len(characters) != len(people):
        return people
    return [(name, link, dig.text(characters, place)) for place, (name, link, _) in enumerate(people)]


def _ld_people(ld: dict[str, Any], key: str) -> list[Person]:
    people: list[Person] = [(name_of(person), dig.text(person, "sameAs"), None) for person in listed(dig.at(ld, key))]
    if any(not name for name, _, _ in people):
        raise ShapeError(key, "a person without a name")
    return people


# --- Single values --------------------------------------------------------------------------------------------------


def _title_and_year(shown: Shown, ld: dict[str, Any], title_tag: str | None) -> tuple[str, int | None]:
    """Return the title without a year behind it ("Dune (2021)", as JSON-LD can write it), and the year."""
    tagged = _YEAR_BEHIND_TITLE.match(title_tag or "")
    title = shown.title or dig.text(ld, "name") or title_tag
    if title is None:
        raise ShapeError("title", "none in a place that is known")
    year = shown.year or (int(tagged["year"]) if tagged else None)
    named = _YEAR_BEHIND_TITLE.match(title)
    if named and year in {None, int(named["year"])}:
        return named["title"], int(named["year"])
    return title, year


def _title_tag(body: bytes) -> str | None:
    start = body.find(b"<title")
    end = body.find(b"</title", start)
    if start == -1 or end == -1:
        return None
    text = fold(html.unescape(decode_text(body[body.find(b">", start) + 1 : end])))
    return _SITE_NAME.sub("", text) or None


def _poster(shown: Shown, tree: Selector | None, ld_image: str | None) -> str | None:
    """Return the first address of a real poster; saved pages can name local files, and most have a placeholder."""
    pictures = [shown.poster, ld_image]
    if tree is not None:
        posters = tree.css("img.posterImage, #topSection img[itemprop=image]")
        pictures += [posters.attrib.get("data-src"), posters.attrib.get("src")]
        pictures += tree.css('meta[property="og:image"]::attr(content)').getall()
    return next((p for p in pictures if p and p.startswith(("https://", "http://")) and not _NO_POSTER.search(p)), None)


def _release_date(value: Any) -> str | NoValue:
    """Return the date of "Oct 22, 2021, Wide"; a bare year or a word ("TBA") is none."""
    text = dig.text(value)
    if text is None:
        return None
    return ABSENT if _NO_DATE.match(text) else parse_date(text)


def _year_in(text: str | None) -> int | None:
    return parse_year(text) if text and _A_YEAR.search(text) else None


def _short(certificate: str | None) -> str | None:
    """Return R of "R (Some Violence|Language)"."""
    return certificate.partition(" (")[0] if certificate else None


def _dollars(text: str) -> int:
    return parse_count(text.removeprefix("$"))[0]


def _ld_type(ld: dict[str, Any]) -> str | None:
    declared = ld.get("@type")
    return declared if isinstance(declared, str) else None


def _text(value: Any) -> str | None:
    return None if value is None else str(value)


tv = partial(movie, kind="tv")
movie_trimmed = partial(movie, kind="movie-trimmed")

READERS: dict[str, Callable[[bytes, str | None], Page]] = {
    "movie": movie,
    "tv": tv,
    "movie-trimmed": movie_trimmed,
    "reviews": reviews,
    "browse": browse,
    "browse-json": browse_json,
    "chart": legacy.chart,
    "search": search,
}
"""What reads each kind of page, by the names that `kind_of` returns."""
