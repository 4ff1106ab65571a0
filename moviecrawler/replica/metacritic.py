"""Metacritic's pages as the site has served them since the spring of 2026, and its JSON host.

A page carries its data as Nuxt 3 does, in an array of values that refer to one another by index. A season's page has the series as
its product; the season's own scores stand at the series' address with `?season=season-2`. What is an episode's own stands in its
page's JSON-LD; what the payload holds there is not known, and is its season's here.
"""

from __future__ import annotations

import functools
import html
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from moviecrawler.replica.bodies import Body, Bulk, encode, json_script, rating_json_ld

if TYPE_CHECKING:
    from collections.abc import Mapping

    from moviecrawler.items import Credit, Movie, ScoreKind
    from moviecrawler.replica.collection import Collection
    from moviecrawler.replica.items import Title

MOST_FINDER_ROWS: Final = 100
_IMAGES: Final = "https://www.metacritic.com/a/img/catalog"
_JSON_LD: Final = {"movie": "Movie", "series": "TVSeries", "season": "TVSeason", "episode": "TVEpisode"}


def title_page(title: Title, movie: Movie) -> Body:
    """Return the page of a title, or of a season or an episode of it."""
    name = html.escape(movie.title)
    head = (
        f'<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>{name} Reviews - Metacritic</title>'
        f'<link rel="canonical" href="{movie.url}"><meta property="og:url" content="{movie.url}">'
        f'<meta property="og:title" content="{name}">'
    )
    section, slug = str(movie.site_id).split("/", 1)
    key = f"loadPage:{'movies' if section == 'movie' else 'shows'}:{slug.replace('/', ':')}:"
    state = {"data": {key: {"components": _components(title, movie)}}, "path": f"/{movie.site_id}/"}
    return Body(
        head.encode() + json_script('type="application/ld+json"', _json_ld(movie)) + b"</head><body>",
        Bulk("markup", 340_000),
        b'<script type="application/json" data-nuxt-data="nuxt-app" data-ssr="true" id="__NUXT_DATA__">',
        encode(_flattened(state))[:-1],
        Bulk("texts", 120_000),
        b"]</script></body></html>",
    )


def finder(collection: Collection, query: Mapping[str, str], host: str) -> Body | None:
    """Return rows of the finder; None for a kind of title that it doesn't have. Raises ValueError for a number that is none.

    Where the last row ties with the one after it, that one is there too, as rows that tie come up on both pages.
    """
    kind, order = query.get("mcoTypeId"), query.get("sortBy", "-metaScore")
    limit, offset = int(query.get("limit", 24)), max(int(query.get("offset", 0)), 0)
    if kind not in {"1", "2"}:
        return None
    is_film = kind == "2"
    ordered = _ordered(collection, order, is_film=is_film)
    end = min(offset + min(max(limit, 1), MOST_FINDER_ROWS), len(ordered))
    shown = ordered[offset:end]
    if shown and order == "-metaScore" and end < len(ordered) and ordered[end][0] == shown[-1][0]:
        shown.append(ordered[end])
    titles = [(collection.film if is_film else collection.series.title)(place) for _, place in shown]
    address = f"{host}/finder/metacritic/web?mcoTypeId={kind}&sortBy={order}&limit={limit}&offset="
    links = {"next": {"href": f"{address}{end}"}} if end < len(ordered) else {}
    rows = [_row(title.movies["metacritic"]) for title in titles]
    return Body(encode({"data": {"totalResults": len(ordered), "items": rows}, "links": links}))


@functools.lru_cache(maxsize=16)
def _ordered(collection: Collection, order: str, *, is_film: bool) -> list[tuple[int, int]]:
    """Return the places of the titles of a kind, the first in an order first, with what they are ordered by."""
    places = (collection if is_film else collection.series).site_ids("metacritic")
    if not is_film or order not in {"-metaScore", "-releaseDate"}:
        return [(place, place) for place in places]
    if order == "-releaseDate":
        return sorted((-collection.year("metacritic", place), place) for place in places)
    return sorted((-(collection.critics_score("metacritic", place) or 0), place) for place in places)


def _flattened(value: Any) -> list[Any]:
    """Return a value as devalue writes it: all that it consists of in one list, naming one another by index; equal texts once."""
    flat: list[Any] = [["ShallowReactive", 1]]
    texts: dict[str, int] = {}

    def place(part: Any) -> int:
        if isinstance(part, str) and part in texts:
            return texts[part]
        number = len(flat)
        flat.append(part)
        if isinstance(part, str):
            texts[part] = number
        elif isinstance(part, dict):
            flat[number] = {key: place(inner) for key, inner in part.items()}
        elif isinstance(part, list):
            flat[number] = [place(inner) for inner in part]
        return number

    place(value)
    return flat


# --- The data ---------------------------------------------------------------------------------------------------------


def _components(title: Title, movie: Movie) -> list[dict[str, Any]]:
    """Return the parts of a page; those of a season are its series' but for the scores."""
    whole, seasons = title.movies["metacritic"], title.listed.get("metacritic", [])
    if movie.kind == "episode":
        parent = str(movie.site_id).rpartition("/")[0]
        movie = next(part for part in title.parts["metacritic"] if part.site_id == parent)
    query = f"?season={str(movie.site_id).rpartition('/')[2]}" if movie is not whole else ""
    creators = {credit.name for credit in whole.people("creator")}
    crew = [_person(one, "Directed By", []) for one in whole.people("director")]
    crew += [
        _person(one, "Written By", ["created by" if one.name in creators else "screenplay"])
        for one in whole.people("writer")
    ]
    cast = [_person(one, "Cast", one.character.split(" / ") if one.character else []) for one in whole.people("cast")]
    product = {
        **_listed(whole),
        "production": {"cast": cast, "crew": crew},
        "imdbId": whole.imdb_id,
        "tags": whole.keywords,
        "tagline": whole.taglines[0] if whole.taglines else None,
        "awards": [{"awardEvent": one.event, "wins": one.wins, "nominations": one.nominations} for one in whole.awards],
    }
    parts = [
        _component("product", item=product),
        _component("where-to-watch", item=_where_to_watch(whole)),
        _component("critic-score-summary", item=_summary(whole, movie, "metascore", query)),
        _component("user-score-summary", item=_summary(whole, movie, "metacritic_user", query)),
    ]
    if whole.kind == "series":
        product["seasonCount"] = whole.season_count
        rows = [_season(whole, season) for season in seasons]
        return [*parts, _component("seasons", totalResults=len(rows), items=rows)]
    # The site recommends the title itself, too.
    alike = [*((one.site_id, one.title) for one in whole.related), (str(whole.site_id), whole.title)]
    related = [{"type": "movie", "slug": site_id.partition("/")[2], "title": name} for site_id, name in alike]
    return [*parts, _component("related-carousel", totalResults=len(related), items=related)]


def _component(name: str, **data: Any) -> dict[str, Any]:
    return {"data": data, "links": {}, "meta": {"componentName": name}}


def _person(credit: Credit, group: str, roles: list[str]) -> dict[str, Any]:
    entry = {"name": credit.name, "url": f"/{credit.person_id}/"}
    return {"name": credit.name, "roles": roles, "roleTypeGroupName": group, "entertainmentProduct": entry}


def _listed(movie: Movie) -> dict[str, Any]:
    """Return what a row of the finder and the title's own page both say."""
    image = None
    if movie.poster_url:
        image = {
            "bucketType": "catalog",
            "bucketPath": movie.poster_url.removeprefix(_IMAGES),
            "width": movie.poster_width,
            "height": movie.poster_height,
        }
    return {
        "id": int(movie.external_ids["metacritic"]),
        "type": "movie" if movie.kind == "movie" else "show",
        "title": movie.title,
        "slug": str(movie.site_id).partition("/")[2],
        "premiereYear": movie.year,
        "releaseDate": movie.release_date,
        "rating": movie.certificate,
        "image": image,
        "criticScoreSummary": _summary(movie, movie, "metascore"),
        "genres": [{"id": None, "name": genre} for genre in movie.genres],
        "description": movie.plot,
        "duration": movie.runtime_minutes,
    }


def _row(movie: Movie) -> dict[str, Any]:
    """Return a row of the finder, where what has no score has 0, and where details have null."""
    listed, user = _listed(movie), movie.score("metacritic_user")
    listed["criticScoreSummary"]["score"] = listed["criticScoreSummary"]["score"] or 0
    return {**listed, "userScore": {"score": user.value if user else 0}}


def _summary(whole: Movie, movie: Movie, kind: ScoreKind, query: str = "") -> dict[str, Any]:
    """Return one score of a title, or of a season, at its address."""
    score, is_critics = movie.score(kind), kind == "metascore"
    return {
        "max": 100 if is_critics else 10,
        "score": score.value if score else None,
        "normalizedScore": score.average if score else None,
        "reviewCount": score.count if score else 0,
        "positiveCount": score.liked if score else 0,
        "neutralCount": score.neutral if score else 0,
        "negativeCount": score.disliked if score else 0,
        "sentiment": score.sentiment if score else None,
        "url": f"/{whole.site_id}/{'critic' if is_critics else 'user'}-reviews/{query}",
    }


def _season(series: Movie, season: Movie) -> dict[str, Any]:
    slug = str(season.site_id).rpartition("/")[2]
    return {
        "title": series.title,
        "seasonNumber": season.season,
        "releaseYear": season.year,
        "criticScoreSummary": _summary(series, season, "metascore", f"?season={slug}"),
        "url": f"/{season.site_id}/",
        "seasonSlug": slug,
    }


def _where_to_watch(movie: Movie) -> dict[str, Any]:
    """Return JustWatch's offers, whose links lead to a counter first."""
    offers: dict[str, list[dict[str, Any]]] = {name: [] for name in ("free", "rent", "buy", "flatrate", "ads")}
    for offer in movie.offers:
        option: dict[str, Any] = {"qualityType": offer.quality, "optionCurrencyCode": "USD"}
        if offer.price is not None:
            option["optionPrice"] = offer.price
        target = quote(f"{offer.url}?utm_source=replica", safe="")
        link = f"https://click.justwatch.com/a?cx=eyJzY2hlbWEi&r={target}&uct_country=us"
        name = "flatrate" if offer.kind == "subscription" else offer.kind
        offers[name].append({"providerName": offer.provider, "link": link, "options": [option], "monetization": name})
    path = {"fullPath": movie.external_ids["justwatch"], "locale": "en_US"}
    return {"hasOffers": bool(movie.offers), **offers, "meta": path}


def _json_ld(movie: Movie) -> dict[str, Any]:
    found: dict[str, Any] = {
        "@context": "https://schema.org",
        "@type": _JSON_LD[movie.kind],
        "name": movie.title,
        "datePublished": movie.release_date or str(movie.year),
        "description": movie.plot or "",
        "url": movie.url,
    }
    if movie.kind == "episode":
        found["partOfSeries"] = {"@type": "TVSeries", "name": movie.series_title}
        score, name, counted = movie.score("metacritic_user"), "Metacritic User Score", "ratingCount"
    else:
        score, name, counted = movie.score("metascore"), "Metascore", "reviewCount"
    if score is not None:
        scale = 10 if movie.kind == "episode" else 100
        found["aggregateRating"] = rating_json_ld(0, scale, score.value, name=name, **{counted: score.count})
    return found
