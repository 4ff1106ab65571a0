"""Metacritic's pages: which one a page is, and reading those about a title.

Since 2026 their facts are JSON: a page is composed of components, the same in its `__NUXT_DATA__` and in the answer of
`backend.metacritic.com/composer/…`. Where they have each field is told by `metacritic_title`; pages without such a payload
are read by `legacy.metacritic_titles`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from moviecrawler.extract import dig
from moviecrawler.extract.embedded import decode_json, reader, script, starts_with, stated_addresses
from moviecrawler.extract.findings import attempt
from moviecrawler.extract.legacy import metacritic_titles as legacy
from moviecrawler.extract.metacritic_lists import browse, read_list, search
from moviecrawler.extract.metacritic_payload import (
    PRODUCT,
    component_name,
    components_of,
    list_in_payload,
    refuse_errors,
    title_in_payload,
)
from moviecrawler.extract.metacritic_title import read_title, seasons_of
from moviecrawler.extract.metacritic_values import KINDS, id_in
from moviecrawler.extract.series import check_asked
from moviecrawler.items import Page
from moviecrawler.urls import part_of_series, site_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from moviecrawler.extract.findings import Findings
    from moviecrawler.extract.metacritic_payload import Components

_ASKED_AT_HOST: Final = re.compile(r"/pages/(?P<kind>movies|shows)/(?P<slug>[^/?]+)/web")
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
    if not addresses:
        address = attempt(lambda: dig.text(legacy.title_in_json_ld(body), "url")) or ""
        addresses = [address] if site_of(address) == "metacritic" else []
    if not addresses and url is None:
        if b'id="__NUXT_DATA__"' in body and b'"loadPage:' in body:
            return "nuxt-data"
        if not _SITE_IN_TITLE.search(body):
            return None
        return next((kind for sign, kind in _LAYOUTS if sign.search(body)), None)
    kinds = [kind for kind in map(_kind_of_path, addresses or [url or ""]) if kind]
    if kinds and kinds[0] in KINDS and legacy.is_bare(body):
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
    components = attempt(lambda: title_in_payload(payload or b"")) if is_read else None
    found = None if components is None else attempt(lambda: read_title(components, stated))
    if found is None or components is None:
        older = legacy.title(body, url, details=kind.endswith("-details"))
        check_asked("metacritic", older.site_id, id_in(url))
        return Page(site="metacritic", kind=kind, movie=older)
    check_asked("metacritic", found.movie.site_id, id_in(url))
    # The markup of a season's page may show its series'.
    if found.movie.season is None and any(map(found.is_open, _ON_EVERY_PAGE)):
        legacy.look_beside_payload(found, body)
    return _page(kind, found, components)


@reader
def nuxt_data(body: bytes, url: str | None = None) -> Page:  # noqa: ARG001 - `reader` names it in errors
    """Return the title or the list of a `__NUXT_DATA__` payload that was saved without its page. Raises ExtractionError."""
    payload = script(body, "__NUXT_DATA__") or body
    if (found := list_in_payload(payload)) is not None:
        return Page(site="metacritic", kind="nuxt-data", listing=read_list(found))
    components = title_in_payload(payload)
    return _page("nuxt-data", read_title(components), components)


@reader
def detail(body: bytes, url: str | None = None) -> Page:
    """Return the title of a composer answer: a title's own page or one of its reviews. Raises ExtractionError."""
    answer = decode_json(body)
    refuse_errors(answer, "page")
    components = components_of(answer)
    found, asked = read_title(components), _ASKED_AT_HOST.search(url or "")
    if asked:
        prefix = "tv" if asked["kind"] == "shows" else "movie"
        check_asked("metacritic", found.movie.site_id, f"{prefix}/{asked['slug']}")
    return _page("backend", found, components)


def _page(kind: str, found: Findings, components: Components) -> Page:
    movie = found.done()
    seasons = seasons_of(movie, components) if movie.kind == "series" else []
    return Page(site="metacritic", kind=kind, movie=movie, seasons=seasons)


@reader
def _backend(body: bytes, url: str | None = None) -> Page:
    answer = decode_json(body)
    components = dig.items(answer, "components")
    found = next((part for part in components if component_name(part) == "search"), None)
    if found is not None:
        return Page(site="metacritic", kind="backend", listing=read_list(found))
    if components or PRODUCT in components_of(answer) or dig.at(answer, "errors") is not None:
        return detail(body, url)
    return Page(site="metacritic", kind="backend", listing=read_list(answer))


READERS: Final[dict[str, Callable[[bytes, str | None], Page]]] = {
    **{f"{kind}{part}": movie for kind in KINDS for part in ("", "-details", "-trimmed")},
    "reviews": movie,
    "nuxt-data": nuxt_data,
    "backend": _backend,
    "browse": browse,
    "search": search,
}
"""What reads each kind of page; each raises ExtractionError."""


# --- A title --------------------------------------------------------------------------------------------------------


_ON_EVERY_PAGE: Final = (
    *("year", "release_date", "runtime_minutes", "genres", "certificate", "plot", "poster_url"),
    *("credits.director", "scores.metascore", "scores.metacritic_user"),
)
"""What every payload of a title's page says, if only that there is none."""
