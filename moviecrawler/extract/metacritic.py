"""Metacritic's pages since 2026, whose facts are JSON: the payload of Nuxt 3, and the answers of its JSON host.

A page is composed of components, the same in a page's `__NUXT_DATA__` and in the answer of
`backend.metacritic.com/composer/…`. Pages without such a payload are left to `metacritic_markup`.
"""

from __future__ import annotations

import re
from itertools import islice
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from moviecrawler.extract import metacritic_markup
from moviecrawler.extract.devalue import Devalue
from moviecrawler.extract.embedded import (
    ShapeError,
    decode_json,
    dig,
    dig_integer,
    dig_list,
    dig_number,
    dig_text,
    reader,
    script,
    starts_with,
    stated_addresses,
)
from moviecrawler.extract.metacritic_values import (
    KINDS,
    id_in,
    new_credits,
    new_movie,
    new_score,
    read_date,
    read_poster,
)
from moviecrawler.extract.values import check_runtime, check_year
from moviecrawler.items import SCORE_SCALES, Credit, Entry, Listing, Movie, Page
from moviecrawler.urls import HOMES, site_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from moviecrawler.items import Role, Score, ScoreKind

_JSON_LD_ADDRESS: Final = re.compile(rb'"url"\s*:\s*"(?P<url>https?://(?:www\.)?metacritic\.com/[^"]*)"')

_MOST_ADDRESSES: Final = 100
"""Addresses in bare JSON-LD, of pictures and people too, among which the title's is looked for."""
_SITE_IN_TITLE: Final = re.compile(rb"\bMetacritic\s*</title", re.IGNORECASE)
_LAYOUTS: Final = tuple(
    (re.compile(rb"""\sclass=["']?(?:[^"'<>=]*\s)?%b[\s"'>]""" % name), kind)
    for name, kind in (
        (b"query_results", "search"),
        (b"clamp-summary-wrap", "browse"),
        (b"list_products", "browse"),
        (b"c-finderProductCard", "browse"),
    )
)
"""What only lists have in their markup; their heads have not always named their address."""

_PREFIXES: Final = {"movie": "movie", "show": "tv", "tv": "tv", "tv-show": "tv", "game-title": "game", "album": "music"}
"""The first part of a site_id, by a product's own type."""

_IMDB_ID: Final = re.compile(r"tt\d{7,10}")
_IMAGES: Final = HOMES["metacritic"] + "/a/img/catalog"
_ABSENT: Final = 404
_OTHER_TYPES: Final = frozenset({"person", "company", "article", "video"})
"""What a search finds besides titles."""
_SUMMARIES: Final[dict[ScoreKind, str]] = {
    "metascore": "critic-score-summary",
    "metacritic_user": "user-score-summary",
}


def kind_of(body: bytes, url: str | None) -> str | None:
    """Return which of Metacritic's pages this is, by its content and its URL, or None when it is not one of them.

    One of the keys of `READERS`: movie, tv, game or music, each also with `-details` and `-trimmed` (to its JSON-LD, by
    whoever saved it), reviews, nuxt-data (a payload without its page), backend (the JSON host), browse, search.
    """
    if starts_with(body, b"["):
        return "nuxt-data" if b'"loadPage:' in body and b"metacritic" in body else None
    if starts_with(body, b"{"):
        is_theirs = url is not None or b"backend.metacritic.com/" in body or b'-score-summary"' in body
        return "backend" if is_theirs else None
    addresses = [address for address in stated_addresses(body) if site_of(address) == "metacritic"]
    is_bare = metacritic_markup.is_bare(body)
    if not addresses and is_bare:
        # A picture has a "url", too.
        stated = (found["url"].decode(errors="replace") for found in _JSON_LD_ADDRESS.finditer(body))
        addresses = list(islice(filter(_kind_of_path, islice(stated, _MOST_ADDRESSES)), 1))
    if not addresses and url is None:
        if b'id="__NUXT_DATA__"' in body and b'"loadPage:' in body:
            return "nuxt-data"
        if not _SITE_IN_TITLE.search(body):
            return None
        return next((kind for sign, kind in _LAYOUTS if sign.search(body)), None)
    kinds = [kind for kind in map(_kind_of_path, addresses or [url or ""]) if kind]
    if is_bare and kinds and kinds[0] in KINDS:
        return f"{kinds[0]}-trimmed"
    # The canonical link of a details page says so, and its og:url does not: the longer kind is the page's.
    return max(kinds, key=len, default=None)


def _kind_of_path(url: str) -> str | None:
    try:
        parts = urlsplit(url).path.strip("/").split("/")
    except ValueError:
        return None
    if parts[0] in {"browse", "search"}:
        return parts[0]
    if parts[0] in {"composer", "finder"}:
        return "backend"
    if parts[0] not in KINDS or len(parts) == 1:
        return None
    if parts[-1] in {"critic-reviews", "user-reviews"}:
        return "reviews"
    return f"{parts[0]}-details" if parts[-1] == "details" else parts[0]


def is_absent(body: bytes) -> bool:
    """Return whether the JSON host says that there is no such title, `{"errors": [{"code": 404}]}`.

    False for everything else, also for what is no JSON: that is a failure, not an answer.
    """
    if not starts_with(body, b"{"):
        return False
    try:
        answer = decode_json(body)
        failed = [answer, *(part for part in dig_list(answer, "components") if _component_name(part) == "product")]
        return any(dig_integer(error, "code") == _ABSENT for part in failed for error in dig_list(part, "errors"))
    except ShapeError:
        return False


@reader
def movie(body: bytes, url: str | None = None) -> Page:
    """Return the title of an HTML page of any generation: movie, series, season, game or album.

    Raises ExtractionError.
    """
    kind = kind_of(body, url) or "movie"
    payload = script(body, "__NUXT_DATA__")
    if payload is not None:
        return Page(site="metacritic", kind=kind, movie=_from_payload(payload))
    is_details = kind.endswith("-details")
    return Page(site="metacritic", kind=kind, movie=metacritic_markup.title(body, url, details=is_details))


@reader
def nuxt_data(body: bytes, url: str | None = None) -> Page:  # noqa: ARG001 - `reader` names it in errors
    """Return the title of a `__NUXT_DATA__` payload that was saved without its page. Raises ExtractionError."""
    return Page(site="metacritic", kind="nuxt-data", movie=_from_payload(script(body, "__NUXT_DATA__") or body))


@reader
def detail(body: bytes, url: str | None = None) -> Page:  # noqa: ARG001 - `reader` names it in errors
    """Return the title of a composer answer: a title's own page or one of its reviews. Raises ExtractionError.

    An answer that there is no such title is one of them; `is_absent` tells it from the others.
    """
    answer = decode_json(body)
    _refuse_errors(answer, "page")
    components = {_component_name(part): part for part in dig_list(answer, "components")}
    page_type = dig_text(answer, "meta", "pageType")
    return Page(site="metacritic", kind="backend", movie=_from_components(components, page_type))


@reader
def finder(body: bytes, url: str | None = None) -> Listing:  # noqa: ARG001 - `reader` names it in errors
    """Return a list of the JSON host; `next` is the address of the page after it.

    Where scores tie, the host repeats rows on the next page: whoever follows `next` has to expect them.
    Raises ExtractionError.
    """
    return _finder(decode_json(body))


@reader
def browse(body: bytes, url: str | None = None) -> Listing:
    """Return a browse page of any generation. Raises ExtractionError."""
    payload = script(body, "__NUXT_DATA__")
    listing = None if payload is None else _list_in_payload(payload)
    return listing or metacritic_markup.browse(body, url)


@reader
def search(body: bytes, url: str | None = None) -> Listing:
    """Return a search page of any generation, which lists people and articles too. Raises ExtractionError."""
    payload = script(body, "__NUXT_DATA__")
    listing = None if payload is None else _list_in_payload(payload)
    return listing or metacritic_markup.search(body, url)


@reader
def _backend(body: bytes, url: str | None = None) -> Page:
    answer = decode_json(body)
    components = dig_list(answer, "components")
    found = next((part for part in components if _component_name(part) == "search"), None)
    if found is not None:
        return Page(site="metacritic", kind="backend", listing=_finder(found))
    if components or dig(answer, "errors") is not None:
        return detail(body, url)
    return Page(site="metacritic", kind="backend", listing=_finder(answer))


def _browse_page(body: bytes, url: str | None) -> Page:
    return Page(site="metacritic", kind="browse", listing=browse(body, url))


def _search_page(body: bytes, url: str | None) -> Page:
    return Page(site="metacritic", kind="search", listing=search(body, url))


READERS: Final[dict[str, Callable[[bytes, str | None], Page]]] = {
    **{f"{kind}{part}": movie for kind in KINDS for part in ("", "-details", "-trimmed")},
    "reviews": movie,
    "nuxt-data": nuxt_data,
    "backend": _backend,
    "browse": _browse_page,
    "search": _search_page,
}
"""What reads each kind of page; each raises ExtractionError."""


# --- A title --------------------------------------------------------------------------------------------------------


def _from_payload(raw: bytes) -> Movie:
    payload = Devalue.decode(raw)
    for page in _composed_pages(payload):
        path = ("data", page, "components")
        named = {dig_text(payload.at(*path, n, "meta", "componentName")): n for n in range(payload.count(*path))}
        wanted = {name: named[name] for name in ("product", *_SUMMARIES.values()) if name in named}
        if wanted:
            components: dict[str | None, Any] = {
                name: {part: payload.at(*path, n, part) for part in ("data", "errors")} for name, n in wanted.items()
            }
            return _from_components(components, dig_text(payload.at("data", page, "meta", "pageType")))
    raise ShapeError("page", "no page of a title in the payload")


def _composed_pages(payload: Devalue) -> Iterator[str]:
    """Yield the keys of what a payload has to show, such as `loadPage:movies:<slug>:`; `skeleton` is the frame."""
    for key in payload.keys("data"):
        if key.startswith("loadPage:") and not key.startswith("loadPage:skeleton:"):
            yield key


def _component_name(component: Any) -> str | None:
    return dig_text(component, "meta", "componentName")


def _refuse_errors(part: Any, field: str) -> None:
    """Raise ShapeError when the site says that it could not get a part of the page."""
    errors = dig_list(part, "errors")
    if errors:
        codes = ", ".join(str(dig(error, "code")) for error in errors)
        raise ShapeError(field, f"the site answers error {codes}")


def _from_components(components: dict[str | None, Any], page_type: str | None) -> Movie:
    """Return the title of a page's components. A page of reviews has the summary of its own score only."""
    product_component = components.get("product")
    _refuse_errors(product_component, "page")
    product = dig(product_component, "data", "item")
    if product is None:
        raise ShapeError("page", "no product among the components")
    title = dig_text(product, "title")
    if title is None:
        raise ShapeError("title", "a product without one")
    summaries = {kind: _summary(components, product, kind, page_type) for kind in _SUMMARIES}
    movie_ = new_movie(_product_id(product, summaries.values()), title)
    movie_.imdb_id = _imdb_id(product)
    # A film that is shown again has the year of its first release and the date of the last.
    movie_.release_date, year = read_date(dig_text(product, "releaseDate"))
    premiere = dig_integer(product, "premiereYear")
    movie_.year = check_year(premiere) if premiere else year
    duration = dig_integer(product, "duration")
    movie_.runtime_minutes = check_runtime(duration) if duration else None
    movie_.genres = [name for genre in dig_list(product, "genres") if (name := dig_text(genre, "name"))]
    movie_.certificate = dig_text(product, "rating")
    movie_.plot = dig_text(product, "description")
    movie_.poster_url = _poster(product)
    movie_.credits = _credits(product, is_series=movie_.kind == "series")
    movie_.scores = [score for kind, summary in summaries.items() if (score := _score(kind, summary))]
    return movie_


def _summary(components: dict[str | None, Any], product: Any, kind: ScoreKind, page_type: str | None) -> Any:
    """Return what a page says of one score, None where a page of this type says nothing of it."""
    name = _SUMMARIES[kind]
    component = components.get(name)
    if component is None:
        if kind == "metascore" and dig(product, "criticScoreSummary") is not None:
            return dig(product, "criticScoreSummary")
        if page_type not in {None, "product"}:
            return None
        raise ShapeError("scores", f"no {name} among the components")
    if any(dig_integer(error, "code") == _ABSENT for error in dig_list(component, "errors")):
        return None
    _refuse_errors(component, "scores")
    if "item" not in (dig(component, "data") or {}):
        raise ShapeError("scores", f"nothing in {name}")
    return dig(component, "data", "item")


def _score(kind: ScoreKind, summary: Any) -> Score | None:
    if summary and "score" not in summary:
        raise ShapeError("scores", f"a summary of {kind} without a score")
    value = dig_number(summary, "score")
    # Lists have 0 where details have null, and so have titles with too few ratings: nobody has a word for that 0.
    if value is None or (value == 0 and dig_text(summary, "sentiment") is None):
        return None
    scale = dig_integer(summary, "max")
    if scale not in {None, SCORE_SCALES[kind]}:
        raise ShapeError("scores", f"{kind} out of {scale}")
    return new_score(kind, value, dig_integer(summary, "reviewCount"))


def _product_id(product: Any, summaries: Iterable[Any]) -> str:
    """Return the site_id. The pages of reviews tell a season's, as a product's slug is that of its series."""
    for summary in (dig(product, "criticScoreSummary"), *summaries):
        site_id = id_in(dig_text(summary, "url"))
        if site_id is not None:
            return site_id
    kind, slug = dig_text(product, "type"), dig_text(product, "slug")
    site_id = id_in(f"/{_PREFIXES.get(kind or '')}/{slug}")
    if slug is None or site_id is None:
        raise ShapeError("site_id", f"{kind!r} {slug!r} is no title")
    return site_id


def _imdb_id(product: Any) -> str | None:
    # It is the site's own word, and sometimes that of a series' pilot or of a film's dub: joining checks the year.
    imdb_id = dig_text(product, "imdbId")
    if imdb_id is not None and not _IMDB_ID.fullmatch(imdb_id):
        raise ShapeError("imdb_id", f"{imdb_id!r} is no id of IMDb")
    return imdb_id


def _poster(product: Any) -> str | None:
    for image in (dig(product, "image"), *dig_list(product, "images")):
        path = dig_text(image, "bucketPath")
        if path is not None:
            return read_poster(_IMAGES + path)
    return None


def _credits(product: Any, *, is_series: bool) -> list[Credit]:
    crew = dig_list(product, "production", "crew")
    writers = [person for person in crew if dig(person, "roleTypeGroupName") == "Written By"]
    return [
        *_people("director", (person for person in crew if dig(person, "roleTypeGroupName") == "Directed By")),
        *_people("writer", writers),
        # A series' creators stand among the writers, as "created by".
        *_people("creator", (person for person in writers if is_series and "created by" in dig_list(person, "roles"))),
        *_people("cast", dig_list(product, "production", "cast")),
    ]


def _people(role: Role, people: Iterable[Any]) -> list[Credit]:
    return new_credits(role, (_person(role, person) for person in people))


def _person(role: Role, person: Any) -> tuple[str, str | None, str | None]:
    name = dig_text(person, "name")
    if name is None:
        raise ShapeError("credits", f"a {role} without a name")
    # Of a member of the cast these are the parts played, of all others what they did.
    parts = map(dig_text, dig_list(person, "roles")) if role == "cast" else ()
    return name, dig_text(person, "entertainmentProduct", "url"), " / ".join(part for part in parts if part)


# --- Lists ----------------------------------------------------------------------------------------------------------


def _finder(answer: Any) -> Listing:
    _refuse_errors(answer, "page")
    items = dig(answer, "data", "items")
    if items is None:
        raise ShapeError("entries", "no items")
    return Listing(
        site="metacritic",
        entries=[_row(item) for item in dig_list(items)],
        total=dig_integer(answer, "data", "totalResults"),
        next=dig_text(answer, "links", "next", "href"),
    )


def _row(item: Any) -> Entry:
    title = dig_text(item, "title") or dig_text(item, "name")
    if title is None:
        raise ShapeError("entries", "an item without a title")
    item_type, slug = dig_text(item, "type"), dig_text(item, "slug")
    if item_type in _OTHER_TYPES and slug:
        return Entry(site_id=f"{item_type}/{slug}", title=title, kind="other")
    site_id = _product_id(item, ())
    day, year = read_date(dig_text(item, "releaseDate"))
    premiere = dig_integer(item, "premiereYear")
    scores = {"metascore": dig(item, "criticScoreSummary"), "metacritic_user": dig(item, "userScore")}
    return Entry(
        site_id=site_id,
        title=title,
        year=check_year(premiere) if premiere else year,
        kind=KINDS[site_id.partition("/")[0]],
        release_date=day,
        scores=[score for kind in _SUMMARIES if (score := _score(kind, scores[kind]))],
    )


def _list_in_payload(raw: bytes) -> Listing | None:
    """Return the list of a browse page's payload: the component that has items and says how many there are."""
    payload = Devalue.decode(raw)
    for page in _composed_pages(payload):
        path = ("data", page, "components")
        for n in range(payload.count(*path)):
            if payload.at(*path, n, "data", "totalResults") is not None and payload.count(*path, n, "data", "items"):
                return _finder({part: payload.at(*path, n, part) for part in ("data", "links", "errors")})
    return None
