"""Reads Metacritic's pages of titles, and the finder's JSON.

Pages have components in their `__NUXT_DATA__` since 2026; `metacritic_title` has the position of
each field. Pages without components, and episodes, are read from JSON-LD.
"""

import re
from functools import partial

from moviecrawler.basics.values import check_runtime, parse_date, parse_runtime
from moviecrawler.extract import linked_data
from moviecrawler.extract.devalue import unflatten
from moviecrawler.extract.dig import (
    FieldPath,
    get_integer,
    get_items,
    get_path,
    get_text,
    parse_at,
)
from moviecrawler.extract.embedded import check_whole, decode_json, script, stated_addresses
from moviecrawler.extract.findings import Findings, ShapeError, attempt, scores_of
from moviecrawler.items import Entry, Listing, Page
from moviecrawler.sites.ids import part_of_series
from moviecrawler.sites.metacritic import values
from moviecrawler.sites.metacritic.title import (
    PRODUCT,
    Components,
    parse_year,
    read_title,
    seasons_of,
)
from moviecrawler.sites.scores import linked_score
from moviecrawler.sites.titles import finished, new_entry, title_in

_SHIFTED_DURATION = re.compile(r"PT(?:(?P<hours>\d{1,2})M)?(?P<minutes>[1-5]?\d)S")
"""Metacritic writes `PT2M17S` for 2 h 17 min."""
_AMBIGUOUS_DURATION = re.compile(r"PT\dM|PT[0HMS]*")
"""`PT2M` is two hours on Metacritic's pages, and two minutes on its older ones."""


def title(body: bytes) -> Page:
    """Return the title of a page: a film, a series, a season or an episode.

    Raises ExtractionError.
    """
    stated = next(filter(None, map(values.id_in, stated_addresses(body))), None)
    part = part_of_series("metacritic", stated or "")
    # What an episode's payload holds is not known.
    components = (
        {} if part and part.kind == "episode" else _components(script(body, "__NUXT_DATA__"))
    )
    linked = attempt(_linked, body)
    try:
        findings = read_title(components, stated, linked.movie if linked else None)
    except ShapeError:
        if PRODUCT in components and linked is None:
            raise
        findings = linked or _linked(body)
    about = linked_data.title_of(body)
    # Beside a season's components, JSON-LD may be that of the series.
    named = values.id_in(attempt(get_text, about, "url"))
    if findings is linked or named == findings.movie.site_id:
        linked_data.extract_fields(findings, about, _LINKED)
    movie = finished(findings)
    seasons = seasons_of(movie, components) if movie.kind == "series" else []
    return Page(
        site="metacritic",
        kind="movie" if movie.kind == "movie" else "tv",
        movie=movie,
        seasons=seasons,
    )


def _components(payload: bytes | None) -> Components:
    """Return the components of a page by their names.

    There are none where there is no payload, or none of a title.
    """
    data = None if payload is None else attempt(lambda: get_path(unflatten(payload), "data"))
    for key in data if isinstance(data, dict) else ():
        if key.startswith("loadPage:"):
            listed = attempt(get_items, data, key, "components") or []
            named = {attempt(get_text, part, "meta", "componentName"): part for part in listed}
            if PRODUCT in named:
                return named
    return {}


def _linked(body: bytes) -> Findings:
    check_whole(body)
    title = title_in("metacritic", body)
    return Findings(values.new_movie(title.site_id, title.name))


def _shifted_runtime(text: str) -> int | None:
    if shifted := _SHIFTED_DURATION.fullmatch(text):
        return check_runtime(int(shifted["hours"] or 0) * 60 + int(shifted["minutes"]))
    return None if _AMBIGUOUS_DURATION.fullmatch(text) else parse_runtime(text)


_LINKED = (
    *linked_data.paths_of(
        "plot",
        "genres",
        "certificate",
        "poster_url",
        "series_title",
        "credits.director",
        "credits.cast",
    ),
    FieldPath("runtime_minutes", partial(linked_data.parsed, _shifted_runtime), "duration"),
    FieldPath("scores.metascore", partial(linked_score, "metascore"), "aggregateRating"),
    # Episodes have the score of the users under the critics' key.
    FieldPath(
        "scores.metacritic_user",
        partial(linked_score, "metacritic_user", of_users=True),
        "aggregateRating",
    ),
    FieldPath(
        "year", partial(linked_data.parsed, lambda text: int(parse_date(text)[:4])), "datePublished"
    ),
    FieldPath("release_date", partial(linked_data.parsed, parse_date), "datePublished"),
)
"""The fields on which the site's JSON-LD is right."""


# --- The finder -----------------------------------------------------------------------------------


def finder(body: bytes) -> Page:
    """Return a list of the JSON host; `next` is the address of the page after it.

    Where scores tie, the host repeats rows on the next page. Raises ExtractionError.
    """
    answer = decode_json(body)
    values.refuse_errors(answer, "page")
    items = get_path(answer, "data", "items")
    if items is None:
        raise ShapeError("entries", "no items")
    listing = Listing(
        site="metacritic",
        entries=[_entry(item) for item in get_items(items)],
        total=get_integer(answer, "data", "totalResults"),
        next=get_text(answer, "links", "next", "href"),
    )
    return Page(site="metacritic", kind="finder", listing=listing)


def _entry(item: object) -> Entry:
    entry = new_entry("metacritic", values.id_of_product(item), get_text(item, "title"))
    day = attempt(parse_at, values.parse_day, item, "releaseDate")
    year = attempt(parse_year, item)
    entry.year = year if isinstance(year, int) else None
    entry.release_date = day if isinstance(day, str) else None
    entry.scores = scores_of(
        lambda: parse_at(partial(values.parse_score, "metascore"), item, "criticScoreSummary"),
        lambda: parse_at(partial(values.parse_score, "metacritic_user"), item, "userScore"),
    )
    return entry
