"""Movies and rows of lists from the objects of IMDb's GraphQL API, which its pages and its answers are made of.

Each fact has stood in several places over the years; here they are side by side, the one that is preferred first.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Literal, TypedDict, TypeVar

from moviecrawler.extract.embedded import (
    ShapeError,
    decode_json,
    dig,
    dig_integer,
    dig_list,
    dig_number,
    dig_text,
    script,
    starts_with,
)
from moviecrawler.extract.values import check_runtime, check_year, iso_date, parse_date
from moviecrawler.items import SCORE_SCALES, Amount, Credit, Entry, Movie, Score
from moviecrawler.urls import title_url

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from moviecrawler.items import Role, TitleKind

_T = TypeVar("_T")

# --- What is decoded ------------------------------------------------------------------------------------------------
# Most of the script are translations, tracking and further reading. Only what is named here is built.


class Category(TypedDict, total=False):
    """A department of a page of credits, with its people."""

    id: Any
    section: Any


class TitleData(TypedDict, total=False):
    """What is read of an object about one title."""

    id: Any
    titleText: Any
    originalTitleText: Any
    titleType: Any
    releaseYear: Any
    releaseDate: Any
    runtime: Any
    series: Any
    genres: Any
    titleGenres: Any
    countriesDetails: Any
    countriesOfOrigin: Any
    spokenLanguages: Any
    certificate: Any
    plot: Any
    primaryImage: Any
    ratingsSummary: Any
    metacritic: Any
    meterRanking: Any
    productionBudget: Any
    openingWeekendGross: Any
    lifetimeGross: Any
    worldwideGross: Any
    directors: Any
    writers: Any
    creators: Any
    principalCast: Any
    cast: Any
    castV2: Any
    crewV2: Any
    principalCredits: Any
    principalCreditsV2: Any
    directorsPageTitle: Any
    creatorsPageTitle: Any
    categories: list[Category | None] | None


class _ContentData(TypedDict, total=False):
    entityMetadata: TitleData | None
    section: Any
    categories: Any


class PageProps(TypedDict, total=False):
    """What is read of a page's script."""

    aboveTheFoldData: TitleData | None
    mainColumnData: TitleData | None
    contentData: _ContentData | None
    pageData: Any
    searchResults: Any
    titleResults: Any
    groups: Any


class _Props(TypedDict, total=False):
    pageProps: PageProps


class _NextData(_Props, total=False):
    props: _Props


def page_props(body: bytes) -> PageProps | None:
    """Return what a page's script holds, or the bare JSON of one; None when the page has no such script.

    Raises ShapeError when that isn't what it was, or the page ends inside it.
    """
    raw = body if is_json(body) else script(body, "__NEXT_DATA__")
    if raw is None:
        return None
    data: _NextData = decode_json(raw, _NextData)
    # The site's own scripts fetch the next page as `pageProps` alone.
    props = data.get("props", data).get("pageProps")
    if props is None:
        raise ShapeError("page", "the script has no pageProps")
    return props


def is_json(body: bytes) -> bool:
    """Return whether a body is a JSON object, not a page of markup."""
    return starts_with(body, b"{")


# --- Titles ---------------------------------------------------------------------------------------------------------

TITLE_KINDS: dict[str, TitleKind] = {
    "movie": "movie",
    "tvMovie": "movie",
    "tvSeries": "series",
    "tvMiniSeries": "series",
    "tvEpisode": "episode",
    "videoGame": "game",
    "short": "short",
    "tvShort": "short",
    "video": "video",
    "musicVideo": "music",
}
"""What IMDb's title types are here; the others (tvSpecial, podcastSeries…) are `other`."""

TITLE_ID = re.compile(r"tt\d{7,10}")
PERSON_ID = re.compile(r"nm\d{7,10}")
_CURRENCY = re.compile(r"[A-Z]{3}")
_TOP_PLACES = 250
_MINUTE = 60
_AMOUNTS: tuple[tuple[Literal["budget", "opening_weekend", "domestic", "worldwide"], tuple[str, ...]], ...] = (
    ("budget", ("productionBudget", "budget")),
    ("opening_weekend", ("openingWeekendGross", "gross", "total")),
    ("domestic", ("lifetimeGross", "total")),
    ("worldwide", ("worldwideGross", "total")),
)
_SEASON_NUMBER = (
    ("episodeNumber", "seasonNumber"),
    ("displayableEpisodeNumber", "displayableSeason", "season"),
    ("displayableEpisodeNumber", "displayableSeason", "text"),
)
_EPISODE_NUMBER = (
    ("episodeNumber", "episodeNumber"),
    ("displayableEpisodeNumber", "episodeNumber", "episodeNumber"),
    ("displayableEpisodeNumber", "episodeNumber", "text"),
)

# Labels are translated and come in singular and plural ("Director", "Directors"); ids stay what they are.
_CATEGORY = "amzn1.imdb.concept.name_credit_category."
_GROUP = "amzn1.imdb.concept.name_credit_group."
_ROLES: dict[str | None, Role] = {
    "director": "director",
    _CATEGORY + "ace5cb4c-8708-4238-9542-04641e7c8171": "director",
    "writer": "writer",
    _CATEGORY + "c84ecaff-add5-4f2e-81db-102a41881fe3": "writer",
    "creator": "creator",
    _GROUP + "85198717-6c2d-481e-93a5-47858774bcce": "creator",
    "cast": "cast",
    _GROUP + "7caf7d16-5db9-4f4f-8864-d4c6e711c686": "cast",
}


def read_known_movie(sources: list[TitleData]) -> Movie:
    """Return the title of a page, which always says which one it is and of what type; an answer of the API need not.

    Raises ShapeError as `read_movie` does, and when the page says neither.
    """
    movie = read_movie(sources)
    if movie.site_id is None:
        raise ShapeError("site_id", "the page has no id")
    if movie.title_type is None:
        raise ShapeError("title_type", "the page has no titleType")
    return movie


def read_movie(sources: list[TitleData]) -> Movie:
    """Return a title from one or more objects about it; each fact is taken from the first that has it.

    Raises ShapeError when it has no title, or a fact is not of the type or in the range that it must be.
    """
    site_id = _id(_first(dig_text, sources, "id"))
    name = _first(dig_text, sources, "titleText", "text")
    if name is None:
        raise ShapeError("title", "the page has no titleText")
    original = _first(dig_text, sources, "originalTitleText", "text")
    title_type = _first(dig_text, sources, "titleType", "id")
    kind = TITLE_KINDS.get(title_type or "", "other")
    rank = check_rank(_first(dig_integer, sources, "ratingsSummary", "topRanking", "rank"))
    # The ranking goes on below the lists' ends: 1046 is a rank, but not a place in the Top 250.
    top_rank = rank if rank is not None and rank <= _TOP_PLACES else None
    return Movie(
        site="imdb",
        site_id=site_id,
        imdb_id=site_id,
        url=None if site_id is None else title_url("imdb", site_id),
        title=name,
        original_title=original if original != name else None,
        kind=kind,
        title_type=title_type,
        year=_year(_first(dig_integer, sources, "releaseYear", "year")),
        end_year=_year(_first(dig_integer, sources, "releaseYear", "endYear")),
        release_date=next((date for source in sources if (date := _date(source.get("releaseDate")))), None),
        runtime_minutes=_minutes(_first(dig_integer, sources, "runtime", "seconds")),
        # titleGenres is sometimes cut where both are there.
        genres=_texts(sources, ("genres", "genres"), "text")
        or _texts(sources, ("titleGenres", "genres"), "genre", "text"),
        # countriesOfOrigin has ids only where both are there.
        countries=_texts(sources, ("countriesDetails", "countries"), "text")
        or _texts(sources, ("countriesOfOrigin", "countries"), "text"),
        languages=_texts(sources, ("spokenLanguages", "spokenLanguages"), "text"),
        certificate=_first(dig_text, sources, "certificate", "rating"),
        plot=_first(dig_text, sources, "plot", "plotText", "plainText"),
        poster_url=_first(dig_text, sources, "primaryImage", "url"),
        credits=_credits(sources),
        scores=_scores(sources),
        amounts=list(_amounts(sources)),
        imdb_top250_rank=None if kind == "series" else top_rank,
        imdb_top250_tv_rank=top_rank if kind == "series" else None,
        popularity_rank=check_rank(_first(dig_integer, sources, "meterRanking", "currentRank")),
        series_id=_id(_first(dig_text, sources, "series", "series", "id")),
        series_title=_first(dig_text, sources, "series", "series", "titleText", "text"),
        season=_number_in_series(sources, *_SEASON_NUMBER),
        episode=_number_in_series(sources, *_EPISODE_NUMBER),
    )


def _first(read: Callable[..., _T | None], sources: Iterable[Any], *path: str | int) -> _T | None:
    """Return what `read` finds at `path` in the first of `sources` that has something there."""
    return next((value for source in sources if (value := read(source, *path)) is not None), None)


def _texts(sources: Iterable[Any], path: tuple[str, ...], *leaf: str) -> list[str]:
    """Return the texts at `leaf` of the items of the list at `path`, from the first of `sources` that has any."""
    for source in sources:
        texts = [text for item in dig_list(source, *path) if (text := dig_text(item, *leaf))]
        if texts:
            return texts
    return []


def _number_in_series(sources: Iterable[Any], *paths: tuple[str, ...]) -> int | None:
    """Return the number of an episode or of its season: a number, or since 2026 a text to be displayed."""
    number = next((value for path in paths if (value := _first(dig, sources, "series", *path)) is not None), None)
    if isinstance(number, str):
        # A season can be "Unknown".
        return int(number) if number.isdecimal() else None
    number = dig_integer(number)
    if number is not None and number < 0:
        raise ShapeError("episode", f"{number} is not a number of a season or an episode")
    return number


def _scores(sources: Iterable[Any]) -> list[Score]:
    # Some have a second ratingsSummary with nothing but the rank in it.
    rated = next((s for s in sources if dig(s, "ratingsSummary", "aggregateRating") is not None), None)
    scores = _imdb_score(dig(rated, "ratingsSummary"))
    metascore = _first(dig, sources, "metacritic", "metascore")
    return scores + _metascore(dig_integer(metascore, "score"), dig_integer(metascore, "reviewCount"))


def _imdb_score(summary: Any) -> list[Score]:
    """Return the rating of a ratingsSummary; none where it is null, or 0 from 0 votes, as lists have it."""
    value, votes = dig_number(summary, "aggregateRating"), dig_integer(summary, "voteCount")
    if value is None or votes == 0:
        return []
    if not 1 <= value <= SCORE_SCALES["imdb"] or (votes is not None and votes < 0):
        raise ShapeError("scores", f"a rating of {value} from {votes} votes")
    return [Score(kind="imdb", value=value, count=votes)]


def _metascore(value: int | None, reviews: int | None) -> list[Score]:
    if value is None:
        return []
    if not 0 <= value <= SCORE_SCALES["metascore"] or (reviews is not None and reviews < 1):
        raise ShapeError("scores", f"a metascore of {value} from {reviews} reviews")
    return [Score(kind="metascore", value=value, count=reviews)]


def _amounts(sources: Iterable[Any]) -> Iterator[Amount]:
    for kind, path in _AMOUNTS:
        sum_ = _first(dig, sources, *path)
        amount, currency = dig_integer(sum_, "amount"), dig_text(sum_, "currency")
        # 0 is what a release has earned that nobody has reported on.
        if amount:
            if amount < 1 or currency is None or not _CURRENCY.fullmatch(currency):
                raise ShapeError(kind, f"an amount of {amount} {currency}")
            yield Amount(kind=kind, value=amount, currency=currency)


def _credits(sources: list[TitleData]) -> list[Credit]:
    """Return the credits, each role from the fullest list of it, and nobody twice in a role."""
    by_role: dict[Role, list[Credit]] = {"director": [], "writer": [], "creator": [], "cast": []}
    for role, listed in _credit_lists(sources):
        if role is not None and listed and not by_role[role]:
            known: set[str] = set()
            for raw in listed:
                credit = _credit(raw, role, len(known) + 1)
                who = credit.person_id or credit.name
                if who not in known:
                    known.add(who)
                    by_role[role].append(credit)
    return [credit for credits_ in by_role.values() for credit in credits_]


def _credit_lists(sources: list[TitleData]) -> Iterator[tuple[Role | None, list[Any]]]:
    """Yield every list of credits with its role (None: one that is not read), fuller lists before shorter ones."""
    for source in sources:
        for category in dig_list(source, "categories"):
            yield _ROLES.get(dig_text(category, "id")), dig_list(category, "section", "items")
        yield "director", _of_groups(dig_list(source, "directors"))
        yield "writer", _of_groups(dig_list(source, "writers"))
        yield "creator", _of_groups(dig_list(source, "creators"))
        # Until 2022-03 the first four of the cast stood in principalCast alone.
        first_four = _of_groups(dig_list(source, "principalCast"))
        yield "cast", first_four + [dig(edge, "node") for edge in dig_list(source, "cast", "edges")]
    # Those of the head of a page name the first three or four.
    for source in reversed(sources):
        yield "cast", _of_groups(dig_list(source, "castV2"))
        for group in dig_list(source, "crewV2") + dig_list(source, "principalCreditsV2"):
            yield _ROLES.get(dig_text(group, "grouping", "groupingId")), dig_list(group, "credits")
        for group in dig_list(source, "principalCredits"):
            yield _ROLES.get(dig_text(group, "category", "id")), dig_list(group, "credits")
        yield "director", _of_groups(dig_list(source, "directorsPageTitle"))
        yield "creator", _of_groups(dig_list(source, "creatorsPageTitle"))


def _of_groups(groups: list[Any]) -> list[Any]:
    return [credit for group in groups for credit in dig_list(group, "credits")]


def _credit(raw: Any, role: Role, position: int) -> Credit:
    """Return one credit: an object of the API, in one of its two versions, or a row of a page of credits."""
    row_title = dig_text(raw, "rowTitle")
    person = {"id": dig(raw, "id"), "nameText": {"text": row_title}} if row_title else dig(raw, "name")
    name, person_id = dig_text(person, "nameText", "text"), dig_text(person, "id")
    if name is None or (person_id is not None and not PERSON_ID.fullmatch(person_id)):
        raise ShapeError("credits", f"a {role} with the name {name!r} and the id {person_id!r}")
    characters = dig_list(raw, "characters")
    for edge in dig_list(raw, "creditedRoles", "edges"):
        characters += [dig(character, "node") for character in dig_list(edge, "node", "characters", "edges")]
    played = (
        dig_text(character) if isinstance(character, str) else dig_text(character, "name") for character in characters
    )
    return Credit(
        name=name,
        role=role,
        position=position,
        person_id=person_id,
        character=" / ".join(dict.fromkeys(filter(None, played))) or None,
    )


# --- Rows of lists --------------------------------------------------------------------------------------------------


def read_entry(row: Any, rating: Any, rank: int | None = None) -> Entry:
    """Return a row of a list: an object about a title, or the flattened form of searches, with texts in place of objects.

    `rating` is the row's ratingsSummary, None for lists without ratings; `rank` the place that the list gives it.
    Raises ShapeError when it has no id or title, or a fact is not of the type or in the range that it must be.
    """
    site_id = _id(dig_text(row, "id") or dig_text(row, "titleId"))
    name = dig_text(_value(row, "titleText", "text"))
    if site_id is None or name is None:
        raise ShapeError("entries", f"a row with the id {site_id!r} and the title {name!r}")
    title_type = dig_text(_value(row, "titleType", "id")) or dig_text(row, "type")
    return Entry(
        site_id=site_id,
        title=name,
        year=_year(dig_integer(_value(row, "releaseYear", "year"))),
        kind=TITLE_KINDS.get(title_type, "other") if title_type else None,
        rank=rank,
        release_date=_date(dig(row, "releaseDate")),
        scores=_imdb_score(rating) + _metascore(dig_integer(row, "metascore"), None),
    )


def _value(row: Any, key: str, inner: str) -> Any:
    value = dig(row, key)
    return dig(value, inner) if isinstance(value, dict) else value


# --- Values ---------------------------------------------------------------------------------------------------------


def _id(text: str | None) -> str | None:
    if text is not None and not TITLE_ID.fullmatch(text):
        raise ShapeError("site_id", f"{text!r} is not an id of a title")
    return text


def _year(year: int | None) -> int | None:
    return None if year is None else check_year(year)


def check_rank(rank: int | None) -> int | None:
    """Return a rank, 1 and up, or None. Raises ShapeError."""
    if rank is not None and rank < 1:
        raise ShapeError("rank", f"{rank} is not a rank")
    return rank


def _minutes(seconds: int | None) -> int | None:
    """Return a runtime in minutes; 1 for the few titles of some seconds, as in IMDb's own datasets."""
    if seconds is None:
        return None
    return check_runtime(1 if 0 < seconds < _MINUTE else seconds // _MINUTE)


def _date(value: Any) -> str | None:
    """Return an object of year, month and day, or a text such as "Thu, 12 Oct 2023 00:00:00 GMT", as an ISO date."""
    if value is None:
        return None
    if isinstance(value, str):
        return parse_date(re.sub(r"^[A-Z][a-z]{2}, ", "", value))
    year = dig_integer(value, "year")
    return None if year is None else iso_date(year, dig_integer(value, "month"), dig_integer(value, "day"))
