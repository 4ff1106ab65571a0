"""Metacritic's lists since 2026: answers of the JSON host's finder and search, and browse and search pages with a payload.

Pages without such a payload are read by `legacy.metacritic_lists`.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from moviecrawler.extract import dig
from moviecrawler.extract.embedded import decode_json, reader, script
from moviecrawler.extract.findings import ShapeError, attempt, scores_of
from moviecrawler.extract.legacy import metacritic_lists as legacy
from moviecrawler.extract.metacritic_payload import list_in_payload, refuse_errors
from moviecrawler.extract.metacritic_title import product_id, read_year
from moviecrawler.extract.metacritic_values import KINDS, PREFIXES, read_day, read_score
from moviecrawler.items import Entry, Listing, Page

if TYPE_CHECKING:
    from collections.abc import Callable


@reader
def finder(body: bytes, url: str | None = None) -> Listing:  # noqa: ARG001 - `reader` names it in errors
    """Return a list of the JSON host; `next` is the address of the page after it.

    Where scores tie, the host repeats rows on the next page: whoever follows `next` has to expect them.
    Raises ExtractionError.
    """
    return read_list(decode_json(body))


def _list_page(kind: str, older: Callable[[bytes, str | None], Listing]) -> Callable[[bytes, str | None], Page]:
    """Return what reads a page that is a list; `older` reads those without a payload."""

    @reader
    def read(body: bytes, url: str | None = None) -> Page:
        payload = script(body, "__NUXT_DATA__")
        found = None if payload is None else list_in_payload(payload)
        return Page(site="metacritic", kind=kind, listing=older(body, url) if found is None else read_list(found))

    return read


browse = _list_page("browse", legacy.browse)
search = _list_page("search", legacy.search)


def read_list(answer: Any) -> Listing:
    """Return the list of an answer, or of a component. Raises ShapeError when it has no items."""
    refuse_errors(answer, "page")
    items = dig.at(answer, "data", "items")
    if items is None:
        raise ShapeError("entries", "no items")
    return Listing(
        site="metacritic",
        entries=[_entry(item) for item in dig.items(items)],
        total=dig.integer(answer, "data", "totalResults"),
        next=dig.text(answer, "links", "next", "href"),
    )


def _entry(item: Any) -> Entry:
    title = dig.text(item, "title") or dig.text(item, "name")
    if title is None:
        raise ShapeError("entries", "an item without a title")
    site_id, item_type, slug = attempt(lambda: product_id(item, {})), dig.text(item, "type"), dig.text(item, "slug")
    if site_id is None:
        # A search finds people, companies, articles and videos, too.
        if not (item_type and slug) or item_type in PREFIXES:
            raise ShapeError("entries", f"{item_type!r} {slug!r} is no title")
        return Entry(site_id=f"{item_type}/{slug}", title=title, kind="other")
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
