"""What all generations of Metacritic's pages share: ids, dates, certificates, posters and the ranges of scores."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from moviecrawler.extract import dig
from moviecrawler.extract.findings import ABSENT, NoValue, ShapeError, attempt, new_credits, new_score
from moviecrawler.extract.series import new_title
from moviecrawler.extract.values import parse_date, parse_year
from moviecrawler.items import SCORE_SCALES, Score
from moviecrawler.urls import part_of_series

if TYPE_CHECKING:
    from collections.abc import Iterable

    from moviecrawler.extract.findings import Person
    from moviecrawler.items import Credit, Movie, Role, ScoreKind, TitleKind

KINDS: Final[dict[str, TitleKind]] = {"movie": "movie", "tv": "series", "game": "game", "music": "music"}
"""What the first part of a site_id says of a title."""

# Games had their platform in the path until 2023 (`/game/pc/slug`), albums have their artist (`/music/slug/artist`).
_ID: Final = re.compile(
    r"^/(?P<id>movie/[^/]+|tv/[^/]+(?:/(?:season-[a-z0-9-]+|specials)(?:/episode-[^/]+)?)?"
    r"|(?:game|music)/[^/]+(?:/(?!critic-reviews|user-reviews|details|trailers|credits)[^/]+)?)(?=/|$)"
)
_NO_DAY: Final = re.compile(
    r"(?:TB[AD]\b.*|Coming Soon.*|(?:(?:[A-Za-z]{3,9}\.?|Q[1-4]) )?\d{4}|[A-Za-z]{3,9}\.? +\d{1,2})$", re.IGNORECASE
)
"""What stands in the place of a date that isn't known to the day."""
_SERIES: Final = re.compile(r"tv/[^/]+")
_SEASON_IN_QUERY: Final = re.compile(r"(?:^|&)season=(season-[a-z0-9-]{1,60}|specials)(?:&|$)")
_SEASON_IN_TITLE: Final = re.compile(r"[:-]\s*(?:Season (?P<number>\d{1,4})|Specials)$")
_ENOUGH_REVIEWS: Final = 4
"""Reviews or ratings from which on a title has a score."""
_YEAR: Final = re.compile(r"(?<!\d)\d{4}(?!\d)")
_RATED: Final = re.compile(r"^Rated (?P<certificate>[A-Z0-9][A-Za-z0-9-]*)\b")
_PLACEHOLDER: Final = re.compile(r"/images/products/\w+/\d+[hw]?-\w+\.\w+$|/images/icons/")
_NOTE: Final = re.compile(r"(?<!\s)\s*\((?:voice|uncredited|archive|segment|as |credit)[^()]*\)", re.IGNORECASE)


def id_in(url: str | None) -> str | None:
    """Return the site_id of the title that a URL or a path names, or None when it names none.

    A season has a path of its own, or stands in the query of its series' (since 2026).

    >>> id_in("https://www.metacritic.com/tv/the-lighthouse/season-2/critic-reviews/")
    'tv/the-lighthouse/season-2'
    >>> id_in("/tv/the-lighthouse/critic-reviews/?season=season-2")
    'tv/the-lighthouse/season-2'
    """
    parts = urlsplit(url) if url else None
    found = _ID.match(parts.path) if parts else None
    if parts is None or found is None:
        return None
    season = _SEASON_IN_QUERY.search(parts.query)
    return f"{found['id']}/{season[1]}" if season and _SERIES.fullmatch(found["id"]) else found["id"]


def new_movie(site_id: str, title: str) -> Movie:
    """Return a title with what its id says of it. A season has the title of its series."""
    part, title = part_of_series("metacritic", site_id), without_season(site_id, title)
    series_title = title if part and part.kind == "season" else None
    return new_title("metacritic", site_id, title, KINDS[site_id.partition("/")[0]], series_title)


def without_season(site_id: str, title: str) -> str:
    """Return a season's title without its number, as most generations of pages have it.

    >>> without_season("tv/the-lighthouse/season-2", "The Lighthouse: Season 2")
    'The Lighthouse'
    """
    part, found = part_of_series("metacritic", site_id), _SEASON_IN_TITLE.search(title)
    return title[: found.start()].rstrip() if found and part and part.season == int(found["number"] or 0) else title


def credits_of(role: Role, people: Iterable[Person]) -> list[Credit]:
    """Return the credits of one role, nobody twice. A person's id is the path of their page."""
    played = ((name, link, (_NOTE.sub("", part) or None) if part else None) for name, link, part in people)
    return new_credits(role, played, _person_id)


def _person_id(link: str) -> str | None:
    path = urlsplit(link).path.strip("/")
    return path if path.startswith("person/") else None


def read_date(text: str | None) -> tuple[str | None, int | None]:
    """Return a release date and its year as far as a page names them: it may name neither, or no day ("Dec 22").

    >>> read_date("Mar 8, 2024"), read_date("Dec 22"), read_date("Fall 2024"), read_date("TBA")
    (('2024-03-08', 2024), (None, None), (None, 2024), (None, None))
    """
    if text is None or re.fullmatch(r"[A-Za-z]{3,9}\.? +\d{1,2}", text):
        return None, None
    try:
        day = parse_date(text)
    except ValueError:
        if re.search(r"\d", _YEAR.sub("", text)):
            raise
        return None, parse_year(text) if _YEAR.search(text) else None
    return day, int(day[:4])


def read_day(value: Any) -> str | NoValue:
    """Return a date of release; ABSENT when no day is known yet."""
    text = dig.text(value)
    day, _ = read_date(text)
    return day or (ABSENT if text and _NO_DAY.match(text) else None)


def read_certificate(text: str | None) -> str | None:
    """Return the short form of a certificate: details pages say "Rated R for language".

    >>> read_certificate("Rated PG-13 for some violence"), read_certificate("Not Rated")
    ('PG-13', 'Not Rated')
    """
    rated = _RATED.match(text) if text else None
    return rated["certificate"] if rated else text


def read_score(kind: ScoreKind, summary: Any) -> Score | NoValue:
    """Return the score in a summary, of a page or of a row of a list."""
    value, reviews = (
        dig.read(dig.number, summary, "score"),
        attempt(lambda: dig.read(dig.integer, summary, "reviewCount")),
    )
    count = reviews if isinstance(reviews, int) else 0
    if value is ABSENT or value is None:
        # Reviews enough for a score are a score that stands elsewhere.
        return None if value is None or count >= _ENOUGH_REVIEWS else ABSENT
    # Lists have 0 where details have null, and so have titles with too few ratings: nobody has a word for that 0.
    if value == 0 and dig.text(summary, "sentiment") is None:
        return ABSENT if count < _ENOUGH_REVIEWS else None
    scale = attempt(lambda: dig.integer(summary, "max"))
    if scale not in {None, SCORE_SCALES[kind]}:
        raise ShapeError("scores", f"{kind} out of {scale}")
    return new_score(kind, value, count or None)


def read_poster(url: str | None) -> str | None:
    """Return the address of a real poster: `…/products/movies/250h-movie.jpg` and the site's icons are none."""
    return None if url is None or _PLACEHOLDER.search(url) else url
