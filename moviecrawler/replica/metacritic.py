"""Metacritic's pages as the site has served them since the spring of 2026, and its JSON host.

A page carries its data as Nuxt 3 does, in an array of values that refer to one another by index. A
season's page has the series as its product; the season's own scores stand at the series' address
with `?season=season-2`. What is an episode's own stands in its page's JSON-LD; what the payload
holds there is not known, and is its season's here.
"""

from __future__ import annotations

import functools
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from moviecrawler.replica.payloads import Templates, page

if TYPE_CHECKING:
    from collections.abc import Mapping

    from moviecrawler.items import Credit, Movie, Offer
    from moviecrawler.replica.collection import Collection
    from moviecrawler.replica.titles import Title, Titles

MOST_FINDER_ROWS: Final = 100
_IMAGES: Final = "https://www.metacritic.com/a/img/catalog"


def _crew(movie: Movie) -> list[Credit]:
    """Return the directors and the writers, of whom creators have a word for it."""
    creators = {credit.name for credit in movie.people("creator")}
    words = {False: "screenplay", True: "created by"}
    writers = [
        replace(one, character=words[one.name in creators]) for one in movie.people("writer")
    ]
    return movie.people("director") + writers


def _address(reviews: str, movie: Movie) -> str:
    """Return the address of scores; those of a season have its series'."""
    season = f"?season={str(movie.site_id).rpartition('/')[2]}" if movie.series_id else ""
    return f"/{movie.series_id or movie.site_id}/{reviews}/{season}"


def _link(offer: Offer) -> str:
    """Return an offer's link, which leads to a counter first."""
    target = quote(f"{offer.url}?utm_source=replica", safe="")
    return f"https://click.justwatch.com/a?cx=eyJzY2hlbWEi&r={target}&uct_country=us"


_render: Final = Templates(
    "metacritic",
    {
        "product_type": {"movie": "movie", "series": "show"}.get,
        "schema": {
            "movie": "Movie",
            "series": "TVSeries",
            "season": "TVSeason",
            "episode": "TVEpisode",
        }.get,
        "slug": lambda site_id: site_id.partition("/")[2],
        "last": lambda site_id: site_id.rpartition("/")[2],
        "critics_address": partial(_address, "critic-reviews"),
        "users_address": partial(_address, "user-reviews"),
        "bucket_path": lambda url: url.removeprefix(_IMAGES),
        "published": lambda movie: movie.release_date or str(movie.year),
        "first": lambda texts: next(iter(texts), None),
        "crew": _crew,
        "group": {"cast": "Cast", "director": "Directed By", "writer": "Written By"}.get,
        "parts": lambda credit: credit.character.split(" / ") if credit.character else [],
        "any": bool,
        "link": _link,
        "alone": lambda offer: [offer],
    },
)


def title_page(title: Title, movie: Movie, *, light: bool) -> bytes:
    """Return the page of a title, or of a season or an episode of it."""
    section, slug = str(movie.site_id).split("/", 1)
    key = f"loadPage:{'movies' if section == 'movie' else 'shows'}:{slug.replace('/', ':')}:"
    state = {"data": {key: {"components": _components(title, movie)}}, "path": f"/{movie.site_id}/"}
    of_episode = _render("of_episode", movie) if movie.kind == "episode" else {}
    linked = {**_render("json_ld", movie), **of_episode}
    name = f"{movie.title} Reviews - Metacritic"
    return page(
        "metacritic.html",
        light=light,
        title=name,
        url=movie.url,
        linked=linked,
        values=_flattened(state),
    )


def finder(collection: Collection, query: Mapping[str, str], host: str) -> dict[str, Any] | None:
    """Return rows of the finder; None for a kind of title that it doesn't have.

    Raises ValueError for a number that is none.

    Where the last row ties with the one after it, that one is there too, as rows that tie come up
    on both pages.
    """
    kind = query.get("mcoTypeId")
    order = query.get("sortBy", "-metaScore")
    limit = int(query.get("limit", 24))
    offset = max(int(query.get("offset", 0)), 0)
    if kind not in {"1", "2"}:
        return None
    titles = collection if kind == "2" else collection.series
    ordered = _ordered(titles, order)
    end = min(offset + min(max(limit, 1), MOST_FINDER_ROWS), len(ordered))
    shown = ordered[offset:end]
    if shown and order == "-metaScore" and end < len(ordered) and ordered[end][0] == shown[-1][0]:
        shown.append(ordered[end])
    address = f"{host}/finder/metacritic/web?mcoTypeId={kind}&sortBy={order}&limit={limit}&offset="
    links = {"next": {"href": f"{address}{end}"}} if end < len(ordered) else {}
    movies = [titles.title(index).movies["metacritic"] for _, index in shown]
    items = [{**_render("listed", movie), **_render("scores_of_row", movie)} for movie in movies]
    return {"data": {"totalResults": len(ordered), "items": items}, "links": links}


@functools.lru_cache(maxsize=16)
def _ordered(titles: Titles, order: str) -> list[tuple[int, int]]:
    """Return the indexes of all titles with what they are ordered by, the first one first."""
    return sorted((titles.order(order, index), index) for index in titles.ids["metacritic"])


def _flattened(value: Any) -> list[Any]:
    """Return a value as devalue writes it.

    All that it consists of is in one list, its parts name one another by index, and equal texts are
    in it once.
    """
    flat: list[Any] = [["ShallowReactive", 1]]
    numbers: dict[str, int] = {}

    def add(part: Any) -> int:
        number = numbers.setdefault(part, len(flat)) if isinstance(part, str) else len(flat)
        if number < len(flat):
            return number
        flat.append(part)
        if isinstance(part, dict):
            flat[number] = {key: add(inner) for key, inner in part.items()}
        elif isinstance(part, list):
            flat[number] = [add(inner) for inner in part]
        return number

    add(value)
    return flat


def _components(title: Title, movie: Movie) -> list[dict[str, Any]]:
    """Return the parts of a page.

    Those of a season are its series' but for the scores, those of an episode its season's.
    """
    whole = title.movies["metacritic"]
    if movie.kind == "episode":
        season = str(movie.site_id).rpartition("/")[0]
        movie = next(part for part in title.parts["metacritic"] if part.site_id == season)
    data: dict[str, dict[str, Any]] = {
        "product": {"item": {**_render("listed", whole), **_render("more", whole)}},
        "where-to-watch": {"item": _render("where-to-watch", whole)},
        "critic-score-summary": {"item": _render("critics", movie)},
        "user-score-summary": {"item": _render("users", movie)},
    }
    if whole.kind == "series":
        data["seasons"] = {
            "items": [_render("season", season) for season in title.listed["metacritic"]]
        }
    else:  # the site recommends the title itself, too
        data["related-carousel"] = {
            "items": [_render("related", one) for one in [*whole.related, whole]]
        }
    return [
        {"data": part, "links": {}, "meta": {"componentName": name}} for name, part in data.items()
    ]
