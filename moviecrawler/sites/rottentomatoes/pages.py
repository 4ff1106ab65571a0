"""Reads Rotten Tomatoes' pages since 2024: titles, browse lists and their JSON continuation.

A title's page has its scores in `#media-scorecard-json`, until spring 2024 in `#scoreDetails`, and
its head in `#media-hero-json`. `rottentomatoes_title` has the position of each field; pages without
these scripts are read from JSON-LD.
"""

import re
from collections.abc import Iterable
from functools import partial

from parsel import Selector

from moviecrawler.basics.values import parse_date
from moviecrawler.extract import linked_data
from moviecrawler.extract.dig import JsonObject, get_items, get_path, get_text
from moviecrawler.extract.embedded import check_whole, decode_json, stated_addresses
from moviecrawler.extract.findings import NoValue, ShapeError, attempt, scores_of
from moviecrawler.extract.trees import text_of, tree_of
from moviecrawler.items import Entry, Listing, Page, Score, ScoreKind
from moviecrawler.sites.ids import id_in_url, part_of_series
from moviecrawler.sites.rottentomatoes import markup, values
from moviecrawler.sites.rottentomatoes.title import read_title
from moviecrawler.sites.scores import linked_score
from moviecrawler.sites.titles import finished, new_entry

_OPENING = re.compile(r"^Open(?:ed|s)\s+(.+)$")


def title(body: bytes) -> Page:
    """Read the page of a film, a series, a season or an episode.

    A series' scores are the averages of its seasons', which the page lists. Raises ExtractionError.
    """
    check_whole(body)
    tree = tree_of(body)
    linked = linked_data.title_of(body)
    scorecard = values.json_of(tree, "media-scorecard-json") or None
    hero = values.json_of(tree, "media-hero-json") or None
    if scorecard is None and hero is None:
        scorecard = values.json_of(tree, "scoreDetails") or None
    if scorecard is None and hero is None and not linked:
        raise ShapeError(
            "page",
            "neither the scripts nor the JSON-LD of a title is there in a form that is known",
        )
    addresses = (*stated_addresses(body), attempt(get_text, linked, "url"))
    site_id = _site_id(attempt(get_text, linked, "@type"), addresses)
    content = attempt(get_path, hero, "content")
    movie = finished(read_title(site_id, tree, scorecard, content, linked))
    seasons = markup.seasons_of(movie, tree, linked) if movie.kind == "series" else []
    return Page(
        site="rottentomatoes",
        kind="movie" if movie.kind == "movie" else "tv",
        movie=movie,
        seasons=seasons,
    )


def _site_id(declared: str | None, addresses: Iterable[str | None]) -> str:
    """Return the id of the title that a page is about.

    It is that of the first of the page's own `addresses` that names what the page is `declared` to
    be by JSON-LD: a season's page can have its series' canonical link. Raises ShapeError when none
    does.
    """
    ids = [id_in_url("rottentomatoes", address) for address in addresses]
    site_id = next((own_id for own_id in ids if own_id and _is_declared(own_id, declared)), None)
    if site_id is None:
        raise ShapeError("site_id", f"the page has no address of a {declared or 'title'}")
    return site_id


def _is_declared(site_id: str, declared: str | None) -> bool:
    part = part_of_series("rottentomatoes", site_id)
    kind = linked_data.KINDS.get(declared or "")
    if kind in {"season", "episode"}:
        return part is not None and part.kind in {kind, "other"}
    return kind is None or part is None


# --- Browse lists ---------------------------------------------------------------------------------


def browse(body: bytes) -> Page:
    """Read the first page of a browse list: `/browse/{list}/{filters}`, HTML.

    `next` is the cursor that continues it, None on a list of one page. Raises ExtractionError.
    """
    check_whole(body)
    tree = tree_of(body)
    tiles = tree.css('[data-qa="discovery-media-list-item"]')
    entries = attempt(lambda: [_tile(tile) for tile in tiles])
    if not entries:
        entries = [_linked_row(data) for data in linked_data.listed_titles(body)]
    if not entries and values.json_of(tree, "noResults") is not True:
        raise ShapeError(
            "entries", "a browse page without entries, and none that says that it has no results"
        )
    return _list_page("browse", entries, values.json_of(tree, "pageInfo"))


def browse_json(body: bytes) -> Page:
    """Read a continuation of a browse list: `/cnapi/browse/{list}/{filters}?after={cursor}`, JSON.

    Raises ExtractionError.
    """
    data = decode_json(body)
    if get_path(data, "grid", "list") is None:
        raise ShapeError("entries", "browse JSON without grid.list")
    return _list_page(
        "browse-json",
        [_row(item) for item in get_items(data, "grid", "list")],
        get_path(data, "pageInfo"),
    )


def _list_page(kind: str, entries: list[Entry], info: object) -> Page:
    # The last page has an endCursor, too; `hasNextPage` says whether another page follows.
    following = None if get_path(info, "hasNextPage") is False else get_text(info, "endCursor")
    listing = Listing(site="rottentomatoes", entries=entries, next=following)
    return Page(site="rottentomatoes", kind=kind, listing=listing)


def _tile(tile: Selector) -> Entry:
    link = tile if tile.root.tag == "a" else tile.css("a[href]")
    scores: list[Score] = []
    kinds: dict[ScoreKind, str] = {"tomatometer": "critics", "popcornmeter": "audience"}
    for kind, group in kinds.items():
        # Tiles of 2024 have the scores as attributes: <score-pairs criticsscore="81"
        # audiencescore="78">.
        shown = values.slot(tile, f"{group}Score") or tile.xpath(f".//@{group}score").get()
        scores += scores_of(partial(values.score, kind, shown))
    date = text_of(tile.css('[data-qa="discovery-media-list-item-start-date"]'))
    title = text_of(tile.css('[data-qa="discovery-media-list-item-title"]'))
    return _entry(link.attrib.get("href"), title, scores, date)


def _linked_row(data: JsonObject) -> Entry:
    scores = scores_of(partial(linked_score, "tomatometer", data.get("aggregateRating")))
    return _entry(get_text(data, "url"), get_text(data, "name"), scores, None)


def _row(item: object) -> Entry:
    def share(kind: ScoreKind, key: str) -> Score | NoValue:
        return values.score(kind, get_path(item, key, "scorePercent"))

    scores = scores_of(
        partial(share, "tomatometer", "criticsScore"),
        partial(share, "popcornmeter", "audienceScore"),
    )
    return _entry(
        get_text(item, "mediaUrl"),
        get_text(item, "title"),
        scores,
        get_text(item, "releaseDateText"),
    )


def _entry(path: str | None, title: str | None, scores: list[Score], opening: str | None) -> Entry:
    """Return a row of a list.

    `opening` is such as "Opened Feb 07, 2025", while "Re-released …" and "Streaming …" are no
    release.

    Raises ShapeError when it has no title or no link to one.
    """
    entry = new_entry("rottentomatoes", id_in_url("rottentomatoes", path), title)
    dated = _OPENING.match(opening or "")
    entry.release_date = attempt(parse_date, dated[1]) if dated else None
    entry.scores = scores
    return entry
