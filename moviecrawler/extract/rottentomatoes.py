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
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar, cast
from urllib.parse import urlsplit

from moviecrawler.extract.embedded import (
    ShapeError,
    check_whole,
    decode_json,
    decode_text,
    dig,
    dig_text,
    fold,
    json_ld,
    reader,
    script,
    scripts,
    starts_with,
    stated_addresses,
)
from moviecrawler.extract.rottentomatoes_lists import browse, browse_json, chart, search
from moviecrawler.extract.rottentomatoes_markup import (
    Detail,
    Person,
    cast_tiles,
    details_of,
    older_cast,
    older_details,
    synopsis,
)
from moviecrawler.extract.rottentomatoes_parts import score, text_of, title_kind
from moviecrawler.extract.trees import tree_of
from moviecrawler.extract.values import check_year, parse_count, parse_date, parse_runtime, parse_year
from moviecrawler.items import Amount, Credit, Movie, Page, Role, Score, ScoreKind
from moviecrawler.urls import id_in_url, site_of, title_url

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from parsel import Selector, SelectorList

__all__ = ["READERS", "browse", "browse_json", "chart", "kind_of", "movie", "movie_trimmed", "reviews", "search", "tv"]

_T = TypeVar("_T")

_TITLE_PATH = re.compile(r"^/(?P<section>m|tv)/[^/]+/?$")
_REVIEWS_PATH = re.compile(r"^/(?:m|tv)/[^/]+(?:/s\d+)?/reviews(?:/|$)")
_SERIES_PART = re.compile(r"^/tv/[^/]+/s\d+(?:/|$)")
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
_PIECES = (*_SCOREBOARDS, *_DETAILS, b'id="media-hero-json"', b'"Tomatometer"')
"""What tells a piece that the owner of a collection has cut out of a title page, without any URL in it."""
_SMALLEST_PAGE = 100_000
"""Bytes; the smallest title page that is known has 230,000."""

_LD_TYPES = {"Movie", "TVSeries", "TVSeason", "TVEpisode"}
_YEAR_BEHIND_TITLE = re.compile(r"^(?P<title>.+?)(?<!\s)\s*\((?P<year>(?:18[7-9]|19\d|20\d)\d)\)$", re.ASCII)
_YEARS = re.compile(r"^(?P<first>\d{4})(?:\s*[-–—]\s*(?P<last>\d{4})?)?$")  # noqa: RUF001 - the site's dashes
_DATED = re.compile(r"^(?:Released|Opened|Opens|Premiered|In Theaters)\s+(?P<date>.+)$", re.IGNORECASE)
_CERTIFICATE = re.compile(r"^(?:G|PG|PG-?13|R|NC-?17|X|NR|Not Rated|Unrated|TV-?[A-Z0-9-]+)$", re.IGNORECASE)
_DURATION = re.compile(r"^\d+\s*(?:h|m|hr|min)\b", re.IGNORECASE)
_A_YEAR = re.compile(r"\b\d{4}\b", re.ASCII)
_NO_DATE = re.compile(
    r"^(?:(?:TB[AD]|Spring|Summer|Fall|Autumn|Winter|Q[1-4])\b.*|\d{4}|\D+)$", re.ASCII | re.IGNORECASE
)
_COUNTED = re.compile(
    r"(?:Count|Counted|Ratings):\s*(?P<behind>\d[\d,]*\+?)"
    r"|(?<!than )(?<![\d,./])(?P<before>\d[\d,]*\+?)\s+(?:Reviews?|(?:Verified )?Ratings?)\b"
)
_NO_METER = re.compile(r"no (?:score|consensus|reviews)|not (?:yet )?available|not enough|coming soon", re.IGNORECASE)
_FEWEST_REVIEWS = 5
"""Reviews that a title needs to have a Tomatometer."""
_SITE_NAME = re.compile(r"(?<!\s)\s*[-|]\s*Rotten Tomatoes$")
_BOILERPLATE = "Discover reviews, ratings"
_PERSON = re.compile(r"/(celebrity/[^/?#\s]+)")
_NO_POSTER = re.compile(r"poster[-_]?default|default[-_]?poster|TwitterCard", re.IGNORECASE)


@dataclass(slots=True)
class _Shown:
    """What the part of a page above its details list shows."""

    scores: list[Score]
    title: str | None = None
    year: int | None = None
    end_year: int | None = None
    runtime: int | None = None
    certificate: str | None = None
    genres: list[str] = field(default_factory=list)
    plot: str | None = None
    poster: str | None = None


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
def movie(body: bytes, url: str | None = None) -> Page:
    """Read a movie's page. `url`: where it came from; the page's own canonical URL wins. Raises ExtractionError."""
    return _title_page(body, url, "movie")


@reader
def tv(body: bytes, url: str | None = None) -> Page:
    """Read a series' page: its scores are the means of its seasons'. Raises ExtractionError, also for one season."""
    return _title_page(body, url, "tv")


@reader
def movie_trimmed(body: bytes, url: str | None = None) -> Page:
    """Read a piece of a title page, such as its JSON-LD or its scorecard alone. Raises ExtractionError."""
    return _title_page(body, url, "movie-trimmed")


@reader
def reviews(body: bytes, url: str | None = None) -> Page:
    """Read what a page of reviews since 2026 says of its title. Raises ExtractionError."""
    check_whole(body)
    props = next(scripts(body, b'data-json="props"'), None)
    media = dig(decode_json(props), "media") if props else None
    title = dig_text(media, "title")
    if title is None:
        raise ShapeError("title", "no script of props with a media.title")
    site_id = _site_id(body, url, {})
    runtime, certificate = dig_text(media, "runTime"), dig_text(media, "rating")
    item = Movie(
        site="rottentomatoes",
        site_id=site_id,
        url=title_url("rottentomatoes", site_id) if site_id else None,
        title=title,
        kind=title_kind(site_id) if site_id else "movie",
        year=_release_year(_text(dig(media, "releaseYear"))),
        release_date=_release_date(dig_text(media, "theaterReleaseDate")),
        runtime_minutes=_read("runtime_minutes", parse_runtime, runtime),
        genres=_texts(media, "genres"),
        certificate=certificate.partition(" (")[0] if certificate else None,
        credits=_credits("director", ((name, None, None) for name in _texts(media, "directors"))),
        scores=score("tomatometer", dig(media, "tomatometerScore", "value")),
    )
    return Page(site="rottentomatoes", kind="reviews", movie=item)


READERS: dict[str, Callable[[bytes, str | None], Page]] = {
    "movie": movie,
    "tv": tv,
    "movie-trimmed": movie_trimmed,
    "reviews": reviews,
    "browse": browse,
    "browse-json": browse_json,
    "chart": chart,
    "search": search,
}


def _kind_of_path(path: str) -> str | None:
    if _REVIEWS_PATH.match(path):
        return "reviews"
    title = _TITLE_PATH.match(path)
    if title or _SERIES_PART.match(path):
        return "movie" if title and title["section"] == "m" else "tv"
    return next((kind for prefix, kind in _SECTIONS if path.startswith(prefix)), None)


def _has(body: bytes, signs: tuple[bytes, ...]) -> bool:
    return any(sign in body for sign in signs)


def _canonical(body: bytes) -> str | None:
    """Return the URL on the live site that the page gives as its own."""
    return next((address for address in stated_addresses(body) if site_of(address) == "rottentomatoes"), None)


def _site_id(body: bytes, url: str | None, *data: Any) -> str | None:
    """Return the title's id: by the page's canonical URL, by its data, or by where it came from."""
    addresses = [_canonical(body)]
    for item in data:
        addresses += [dig_text(item, "url"), dig_text(item, "criticsScore", "reviewsPageUrl")]
    addresses.append(url if url and site_of(url) == "rottentomatoes" else None)
    for address in addresses:
        if address and _SERIES_PART.match(urlsplit(address).path):
            raise ShapeError("site_id", f"{address} is a part of a series, which would be stored as the whole of it")
        site_id = id_in_url("rottentomatoes", address) if address else None
        if site_id:
            return site_id
    return None


def _title_page(body: bytes, url: str | None, kind: str) -> Page:
    check_whole(body)
    ld = next((item for item in json_ld(body) if _ld_type(item) in _LD_TYPES), {})
    if _ld_type(ld) in {"TVSeason", "TVEpisode"}:
        raise ShapeError("site_id", "a part of a series, which would be stored as the whole of it")
    scorecard = _json_script(body, "media-scorecard-json")
    details = details_of(body)
    # A whole parse costs more than all else together; a page of today is read without one.
    tree = None if details and scorecard else tree_of(body)
    if details is None and tree is not None:
        details = older_details(tree)
    if details is None and kind != "movie-trimmed":
        raise ShapeError("details", "no list of details in a form that is known")
    if scorecard is None and b'id="media-hero-json"' in body and kind != "movie-trimmed":
        raise ShapeError("scores", "a page of today without a scorecard")
    shown = _shown(body, scorecard, tree)
    if shown is None:
        if kind != "movie-trimmed" or not (ld or details):
            raise ShapeError("scores", "no scoreboard in a form that is known")
        shown = _Shown([])
    if kind == "movie-trimmed" and not shown.scores:
        rating = dig(ld, "aggregateRating")
        shown.scores = score("tomatometer", dig(rating, "ratingValue"), dig(rating, "reviewCount"))
    site_id = _site_id(body, url, ld, scorecard)
    if site_id is None and kind != "movie-trimmed":
        raise ShapeError("site_id", "neither the page nor its URL names a title")
    return Page(
        site="rottentomatoes", kind=kind, movie=_movie(body, site_id, ld=ld, details=details, shown=shown, tree=tree)
    )


def _movie(
    body: bytes,
    site_id: str | None,
    *,
    ld: dict[str, Any],
    details: dict[str, Detail] | None,
    shown: _Shown,
    tree: Selector | None,
) -> Movie:
    """Put together what the scoreboard, the list of details and JSON-LD say, in this order of trust.

    JSON-LD has genres, writers and certificates that the page does not show: it only serves where no details are.
    """

    def detail(name: str) -> str | None:
        return details[name].text if details and name in details else None

    def people(name: str) -> list[Person]:
        return [(*part, None) for part in details[name].parts] if details and name in details else []

    title, year = _title_and_year(shown, ld, _title_tag(body))
    release_date = _release_date(detail("release_date"))
    if year is None:
        # Not from JSON-LD's dateCreated, which can be that of a re-release, nor from the date of its streaming.
        year = _release_year(detail("release_date")) or _release_year(
            _text(dig(_json_script(body, "where-to-watch-json"), "releaseYear"))
        )
    certificate = (detail("certificate") or shown.certificate) if details else dig_text(ld, "contentRating")
    # JSON-LD's own duration, not that of its video, which is a trailer's.
    runtime = detail("runtime") if details else dig_text(ld, "duration")
    plot = shown.plot or synopsis(body)
    if plot is None and details is None:
        about = dig_text(ld, "description")
        plot = None if about and about.startswith(_BOILERPLATE) else about
    language = detail("language")
    gross = _read("domestic", _dollars, detail("domestic"))
    genres = [genre for genre in re.split(r"\s*,\s*", detail("genres") or "") if genre] or shown.genres
    return Movie(
        site="rottentomatoes",
        site_id=site_id,
        url=title_url("rottentomatoes", site_id) if site_id else None,
        title=title,
        kind=title_kind(site_id) if site_id else "series" if _ld_type(ld) == "TVSeries" else "movie",
        year=year,
        end_year=shown.end_year,
        release_date=release_date,
        runtime_minutes=_read("runtime_minutes", parse_runtime, runtime) or shown.runtime,
        genres=genres if details else genres or _texts(ld, "genre"),
        languages=[language] if language else [],
        certificate=certificate.partition(" (")[0] if certificate else None,
        plot=plot,
        poster_url=_poster(shown, tree, None if details else dig_text(ld, "image")),
        credits=[
            *_credits("director", people("director") or _ld_people(ld, "director")),
            *_credits("writer", people("writer") if details else _ld_people(ld, "author")),
            *_credits("creator", people("creator") if details else _ld_people(ld, "creator")),
            *_credits("cast", cast_tiles(body) or (older_cast(tree) if tree else []) or _ld_cast(ld)),
        ],
        scores=shown.scores,
        amounts=[Amount(kind="domestic", value=gross, currency="USD")] if gross else [],
    )


# --- What each generation shows above its details -------------------------------------------------------------------


def _shown(body: bytes, scorecard: Any, tree: Selector | None) -> _Shown | None:
    hero = _json_script(body, "media-hero-json")
    if scorecard is not None or hero is not None:
        return _scorecard(scorecard, dig(hero, "content"))
    old = _json_script(body, "score-details-json") or _json_script(body, "scoreDetails")
    if old is not None:
        return _scoreboard(dig(old, "scoreboard"), dig_text(old, "primaryImageUrl"))
    if tree is None:
        return None
    if board := tree.css("score-board, score-board-deprecated"):
        return _score_board(board)
    if halves := tree.css(".mop-ratings-wrap__half"):
        return _mop_ratings(halves)
    return _score_panel(tree) if tree.css("#all-critics-numbers") else None


def _scorecard(scorecard: Any, hero: Any) -> _Shown:
    """Read the two scripts of pages since 2024, of which a piece of a page may have one only.

    A side without a `score` is a title without that score.
    """
    critics, audience = dig(scorecard, "criticsScore"), dig(scorecard, "audienceScore")
    if scorecard is not None and critics is None and audience is None:
        raise ShapeError("scores", "a scorecard without criticsScore and audienceScore")
    shown = _Shown(
        score("tomatometer", _share(critics), dig(critics, "reviewCount") or dig(critics, "ratingCount"))
        # Its audience is counted in bands only ("250,000+ Ratings"); reviewCount is of those who wrote a review.
        + score("popcornmeter", _share(audience)),
        title=dig_text(hero, "title"),
        genres=_texts(hero, "metadataGenres"),
        plot=dig_text(scorecard, "description"),
        poster=dig_text(scorecard, "primaryImageUrl") or dig_text(hero, "posterSrc"),
    )
    for prop in _texts(hero, "metadataProps"):
        # Without labels, in any order and number: "PG-13", "2021" or "Released Oct 22, 2021", "2h 35m".
        years, dated = _YEARS.match(prop), _DATED.match(prop)
        if years:
            shown.year = check_year(int(years["first"]))
            shown.end_year = check_year(int(years["last"])) if years["last"] else None
        elif dated and _A_YEAR.search(dated["date"]):
            shown.year = parse_year(dated["date"])
        elif _CERTIFICATE.match(prop):
            shown.certificate = prop
        elif _DURATION.match(prop):
            shown.runtime = parse_runtime(prop)
    return shown


def _share(side: Any) -> Any:
    # Beside each other on most pages; an empty `score` is a title without one.
    return dig(side, "score" if isinstance(side, dict) and "score" in side else "scorePercent")


def _scoreboard(board: Any, poster: str | None) -> _Shown:
    """Read the script of pages of 2021 to 2024: first flat ("tomatometerScore": "90"), later objects with a value."""
    if not isinstance(board, dict):
        raise ShapeError("scores", "a script of scores without a scoreboard")
    scores = []
    for kind, key in (("tomatometer", "tomatometer"), ("popcornmeter", "audience")):
        value, count = board.get(f"{key}Score"), board.get(f"{key}Count")
        if isinstance(value, dict):
            count = value.get("ratingCount") if kind == "popcornmeter" else value.get("reviewCount")
            value = value.get("value")
        scores += score(cast("ScoreKind", kind), value, count)
    shown = _info(dig_text(board, "info"), scores)
    shown.title, shown.certificate, shown.poster = dig_text(board, "title"), dig_text(board, "rating"), poster
    return shown


def _score_board(board: SelectorList[Selector]) -> _Shown:
    """Read the element of pages of 2021 to 2024 that lack the script."""
    scores = score(
        "tomatometer", board.attrib.get("tomatometerscore"), _counted(text_of(board.css('[slot="critics-count"]')))
    )
    scores += score(
        "popcornmeter", board.attrib.get("audiencescore"), _counted(text_of(board.css('[slot="audience-count"]')))
    )
    shown = _info(text_of(board.css('[slot="info"]')), scores)
    shown.title, shown.certificate = text_of(board.css("h1")) or None, board.attrib.get("rating") or None
    return shown


def _info(info: str | None, scores: list[Score]) -> _Shown:
    """Read a line such as "2006, Crime/Drama, 2h 32m", of which any part can be missing."""
    shown = _Shown(scores)
    for part in (info or "").split(", "):
        if years := _YEARS.match(part):
            shown.year = check_year(int(years["first"]))
            shown.end_year = check_year(int(years["last"])) if years["last"] else None
        elif _DURATION.match(part):
            shown.runtime = parse_runtime(part)
    return shown


def _mop_ratings(halves: SelectorList[Selector]) -> _Shown:
    """Read the two halves of the score panel of 2019 and 2020."""
    scores: list[Score] = []
    for half in halves:
        text = text_of(half)
        of_audience = "audience-score" in half.attrib.get("class", "") or "Audience Score" in text
        kind: ScoreKind = "popcornmeter" if of_audience else "tomatometer"
        share, counted = text_of(half.css(".mop-ratings-wrap__percentage")), _counted(text)
        if "want to see" not in text.lower():
            _require_share(kind, share, counted, text)
            scores += score(kind, share, counted)
    if len({found.kind for found in scores}) < len(scores):
        raise ShapeError("scores", "two halves of the same kind")
    return _Shown(scores)


def _require_share(kind: ScoreKind, share: str, counted: str | None, text: str) -> None:
    """Raise ShapeError when critics have reviewed a title and their score isn't where it is looked for."""
    if share or kind != "tomatometer" or not counted or _NO_METER.search(text):
        return
    if parse_count(counted)[0] >= _FEWEST_REVIEWS:
        raise ShapeError(kind, f"{counted} reviews and no score in a form that is known")


def _score_panel(tree: Selector) -> _Shown:
    """Read the score panel of 2014 to 2018."""
    critics, audience = tree.css("#all-critics-numbers"), tree.css(".audience-score")
    share, counted = text_of(critics.css(".meter-value")), _counted(text_of(critics))
    _require_share("tomatometer", share, counted, text_of(critics))
    scores = score("tomatometer", share, counted)
    # Before a release the same place shows how many "want to see" it: no score.
    if "want to see" not in text_of(audience).lower():
        counts = text_of(tree.css("div.audience-info"))
        scores += score("popcornmeter", text_of(audience.css(".meter-value")), _counted(counts))
    heading = tree.css("h1.movie_title [itemprop=name], h1#movie-title")
    year = _read("year", parse_year, text_of(heading.css(".h3, .year")))
    return _Shown(scores, title=fold(" ".join(heading[:1].xpath("text()").getall())) or None, year=year)


# --- People ---------------------------------------------------------------------------------------------------------


def _credits(role: Role, people: Iterable[Person]) -> list[Credit]:
    """Return (name, link, character) triples as credits, each person once."""
    found: dict[str, Credit] = {}
    for name, link, character in people:
        linked = _PERSON.search(link or "")
        key = linked[1] if linked else name
        if name and key not in found:
            found[key] = Credit(
                name=name,
                role=role,
                position=len(found) + 1,
                person_id=linked[1] if linked else None,
                character=character,
            )
    return list(found.values())


def _ld_cast(ld: dict[str, Any]) -> list[Person]:
    """Return the cast of JSON-LD; until 2022 their characters stood beside them, in a list of the same length."""
    people = _ld_people(ld, "actor") or _ld_people(ld, "actors")
    characters = _listed(dig(ld, "character"))
    if len(characters) != len(people):
        return people
    return [(name, link, dig_text(characters, place)) for place, (name, link, _) in enumerate(people)]


def _ld_people(ld: dict[str, Any], key: str) -> list[Person]:
    return [(_name(person), dig_text(person, "sameAs"), None) for person in _listed(dig(ld, key)) if _name(person)]


# --- Single values --------------------------------------------------------------------------------------------------


def _title_and_year(shown: _Shown, ld: dict[str, Any], title_tag: str | None) -> tuple[str, int | None]:
    """Return the title without a year behind it ("Dune (2021)", as JSON-LD can write it), and the year."""
    tagged = _YEAR_BEHIND_TITLE.match(title_tag or "")
    title = shown.title or dig_text(ld, "name") or title_tag
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


def _poster(shown: _Shown, tree: Selector | None, ld_image: str | None) -> str | None:
    """Return the first address of a real poster; saved pages can name local files, and most have a placeholder."""
    pictures = [shown.poster, ld_image]
    if tree is not None:
        posters = tree.css("img.posterImage, #topSection img[itemprop=image]")
        pictures += [posters.attrib.get("data-src"), posters.attrib.get("src")]
        pictures += tree.css('meta[property="og:image"]::attr(content)').getall()
    return next((p for p in pictures if p and p.startswith(("https://", "http://")) and not _NO_POSTER.search(p)), None)


def _release_date(text: str | None) -> str | None:
    """Return the date of "Oct 22, 2021, Wide"; a bare year or a word ("TBA") is none."""
    return _read("release_date", parse_date, text if text and not _NO_DATE.match(text) else None)


def _release_year(text: str | None) -> int | None:
    return _read("year", parse_year, text if text and _A_YEAR.search(text) else None)


def _dollars(text: str) -> int:
    return parse_count(text.removeprefix("$"))[0]


def _counted(text: str) -> str | None:
    """Return the count in "Reviews Counted: 49", "User Ratings: 885,688" or "250,000+ Ratings"."""
    found = _COUNTED.search(text)
    return (found["before"] or found["behind"]) if found else None


def _json_script(body: bytes, script_id: str) -> Any:
    raw = script(body, script_id)
    return decode_json(raw) if raw else None


def _ld_type(ld: dict[str, Any]) -> str | None:
    declared = ld.get("@type")
    return declared if isinstance(declared, str) else None


def _listed(value: Any) -> list[Any]:
    """Return a value of JSON-LD as a list: one object or text stands there without one."""
    return value if isinstance(value, list) else [] if value is None else [value]


def _texts(data: Any, key: str) -> list[str]:
    return [text for text in (_name(item) for item in _listed(dig(data, key))) if text]


def _text(value: Any) -> str | None:
    return None if value is None else str(value)


def _name(item: Any) -> str:
    return (dig_text([item], 0) if isinstance(item, str) else dig_text(item, "name")) or ""


def _read(field: str, parse: Callable[[str], _T], text: str | None) -> _T | None:
    """Return a value parsed, or None when there is no text; a text that isn't one is a ShapeError that names `field`."""
    if not text:
        return None
    try:
        return parse(text)
    except ValueError as error:
        raise ShapeError(field, str(error)) from error
