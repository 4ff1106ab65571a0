"""Metacritic's pages since 2026, whose facts are JSON: the payload of Nuxt 3, and the answers of its JSON host.

A page is composed of components, the same in a page's `__NUXT_DATA__` and in the answer of
`backend.metacritic.com/composer/…`. Pages without such a payload are left to `legacy.metacritic_titles`.
"""

from __future__ import annotations

import re
from contextlib import suppress
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from moviecrawler.extract import dig
from moviecrawler.extract.devalue import Devalue
from moviecrawler.extract.embedded import decode_json, reader, script, starts_with, stated_addresses
from moviecrawler.extract.findings import ShapeError, attempt, scores_of
from moviecrawler.extract.legacy import metacritic_lists, metacritic_titles
from moviecrawler.extract.metacritic_product import (
    NOT_FOUND,
    SEASONS,
    component_name,
    from_components,
    product_id,
    read_year,
    refuse_errors,
    seasons_of,
)
from moviecrawler.extract.metacritic_traits import OFFERS, RELATED, SUMMARIES
from moviecrawler.extract.metacritic_values import KINDS, id_in, read_day, read_score
from moviecrawler.extract.series import check_asked
from moviecrawler.items import Entry, Listing, Page
from moviecrawler.urls import part_of_series, site_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from moviecrawler.extract.findings import Findings

_JSON_LD_ADDRESS: Final = re.compile(rb'"url"\s*:\s*"(?P<url>https?://(?:www\.)?metacritic\.com/[^"]*)"')

_ASKED_AT_HOST: Final = re.compile(r"/pages/(?P<kind>movies|shows)/(?P<slug>[^/?]+)/web")
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


_OTHER_TYPES: Final = frozenset({"person", "company", "article", "video"})
"""What a search finds besides titles."""


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
    is_bare = metacritic_titles.is_bare(body)
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
        failed = [answer, *(part for part in dig.items(answer, "components") if component_name(part) == "product")]
        return any(dig.integer(error, "code") == NOT_FOUND for part in failed for error in dig.items(part, "errors"))
    except ShapeError:
        return False


@reader
def movie(body: bytes, url: str | None = None) -> Page:
    """Return the title of an HTML page of any generation: movie, series, season, game or album.

    Raises ExtractionError.
    """
    kind = kind_of(body, url) or "movie"
    payload = script(body, "__NUXT_DATA__")
    stated = next(filter(None, map(id_in, stated_addresses(body))), None)
    part = part_of_series("metacritic", stated or "")
    # What an episode's payload holds is not known.
    is_read = payload is not None and not (part and part.kind == "episode")
    read = attempt(lambda: _from_payload(payload or b"", stated)) if is_read else None
    if read is None:
        older = metacritic_titles.title(body, url, details=kind.endswith("-details"))
        check_asked("metacritic", older.site_id, id_in(url))
        return Page(site="metacritic", kind=kind, movie=older)
    found, components = read
    check_asked("metacritic", found.movie.site_id, id_in(url))
    # The markup of a season's page may show its series'.
    if found.movie.season is None and any(map(found.is_open, _ON_EVERY_PAGE)):
        metacritic_titles.look_beside_payload(found, body)
    return _page(kind, found, components)


@reader
def nuxt_data(body: bytes, url: str | None = None) -> Page:  # noqa: ARG001 - `reader` names it in errors
    """Return the title of a `__NUXT_DATA__` payload that was saved without its page. Raises ExtractionError."""
    return _page("nuxt-data", *_from_payload(script(body, "__NUXT_DATA__") or body))


@reader
def detail(body: bytes, url: str | None = None) -> Page:
    """Return the title of a composer answer: a title's own page or one of its reviews. Raises ExtractionError.

    An answer that there is no such title is one of them; `is_absent` tells it from the others.
    """
    answer = decode_json(body)
    refuse_errors(answer, "page")
    components = {attempt(partial(component_name, part)): part for part in dig.items(answer, "components")}
    found, asked = from_components(components), _ASKED_AT_HOST.search(url or "")
    if asked:
        prefix = "tv" if asked["kind"] == "shows" else "movie"
        check_asked("metacritic", found.movie.site_id, f"{prefix}/{asked['slug']}")
    return _page("backend", found, components)


def _page(kind: str, found: Findings, components: dict[str | None, Any]) -> Page:
    movie = found.done()
    seasons = seasons_of(movie, components) if movie.kind == "series" else []
    return Page(site="metacritic", kind=kind, movie=movie, seasons=seasons)


@reader
def finder(body: bytes, url: str | None = None) -> Listing:  # noqa: ARG001 - `reader` names it in errors
    """Return a list of the JSON host; `next` is the address of the page after it.

    Where scores tie, the host repeats rows on the next page: whoever follows `next` has to expect them.
    Raises ExtractionError.
    """
    return _finder(decode_json(body))


def _list_page(kind: str, older: Callable[[bytes, str | None], Listing]) -> Callable[[bytes, str | None], Page]:
    """Return what reads a page that is a list; `older` reads those without a payload."""

    @reader
    def read(body: bytes, url: str | None = None) -> Page:
        payload = script(body, "__NUXT_DATA__")
        listing = None if payload is None else _list_in_payload(payload)
        return Page(site="metacritic", kind=kind, listing=listing or older(body, url))

    return read


@reader
def _backend(body: bytes, url: str | None = None) -> Page:
    answer = decode_json(body)
    components = dig.items(answer, "components")
    found = next((part for part in components if component_name(part) == "search"), None)
    if found is not None:
        return Page(site="metacritic", kind="backend", listing=_finder(found))
    if components or dig.at(answer, "errors") is not None:
        return detail(body, url)
    return Page(site="metacritic", kind="backend", listing=_finder(answer))


READERS: Final[dict[str, Callable[[bytes, str | None], Page]]] = {
    **{f"{kind}{part}": movie for kind in KINDS for part in ("", "-details", "-trimmed")},
    "reviews": movie,
    "nuxt-data": nuxt_data,
    "backend": _backend,
    "browse": _list_page("browse", metacritic_lists.browse),
    "search": _list_page("search", metacritic_lists.search),
}
"""What reads each kind of page; each raises ExtractionError."""


# --- A title --------------------------------------------------------------------------------------------------------


_ON_EVERY_PAGE: Final = (
    *("year", "release_date", "runtime_minutes", "genres", "certificate", "plot", "poster_url"),
    *("credits.director", "scores.metascore", "scores.metacritic_user"),
)
"""What every payload of a title's page says, if only that there is none."""


def _from_payload(raw: bytes, stated: str | None = None) -> tuple[Findings, dict[str | None, Any]]:
    payload = Devalue.decode(raw)
    for page in _composed_pages(payload):
        path = ("data", page, "components")
        named = {
            attempt(partial(payload.at, *path, n, "meta", "componentName")): n for n in range(payload.count(*path))
        }
        wanted = {name: named[name] for name in ("product", OFFERS, SEASONS, *SUMMARIES.values()) if name in named}
        if "product" in wanted:
            components: dict[str | None, Any] = {name: _component(payload, *path, n) for name, n in wanted.items()}
            if RELATED in named:
                components[RELATED] = attempt(partial(_related, payload, *path, named[RELATED], "data"))
            return from_components(components, stated), components
    raise ShapeError("page", "no page of a title in the payload")


def _related(payload: Devalue, *path: str | int) -> dict[str, Any]:
    """Return the component of titles alike, as far as it is read: whole products stand there."""
    if "items" not in payload.keys(*path):
        return {"data": {}}
    places = [(*path, "items", n) for n in range(payload.count(*path, "items"))]
    return {
        "data": {"items": [{key: payload.at(*place, key) for key in ("type", "slug", "title")} for place in places]}
    }


def _component(payload: Devalue, *path: str | int) -> dict[str, Any]:
    """Return what is there of a component's parts."""
    found: dict[str, Any] = {}
    for part in ("data", "errors"):
        with suppress(ShapeError):
            if part in payload.keys(*path):
                found[part] = payload.at(*path, part)
    return found


def _composed_pages(payload: Devalue) -> Iterator[str]:
    """Yield the keys of what a payload has to show, such as `loadPage:movies:<slug>:`; `skeleton` is the frame."""
    for key in payload.keys("data"):
        if key.startswith("loadPage:") and not key.startswith("loadPage:skeleton:"):
            yield key


# --- Lists ----------------------------------------------------------------------------------------------------------


def _finder(answer: Any) -> Listing:
    refuse_errors(answer, "page")
    items = dig.at(answer, "data", "items")
    if items is None:
        raise ShapeError("entries", "no items")
    return Listing(
        site="metacritic",
        entries=[_row(item) for item in dig.items(items)],
        total=dig.integer(answer, "data", "totalResults"),
        next=dig.text(answer, "links", "next", "href"),
    )


def _row(item: Any) -> Entry:
    title = dig.text(item, "title") or dig.text(item, "name")
    if title is None:
        raise ShapeError("entries", "an item without a title")
    item_type, slug = dig.text(item, "type"), dig.text(item, "slug")
    if item_type in _OTHER_TYPES and slug:
        return Entry(site_id=f"{item_type}/{slug}", title=title, kind="other")
    site_id = product_id(item, {})
    day, year = attempt(lambda: dig.read(read_day, item, "releaseDate")), attempt(lambda: read_year(item))
    scores = scores_of(
        lambda: dig.read(partial(read_score, "metascore"), item, "criticScoreSummary"),
        lambda: dig.read(partial(read_score, "metacritic_user"), item, "userScore"),
    )
    return Entry(
        site_id=site_id,
        title=title,
        year=year if isinstance(year, int) else None,
        kind=KINDS[site_id.partition("/")[0]],
        release_date=day if isinstance(day, str) else None,
        scores=scores,
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
