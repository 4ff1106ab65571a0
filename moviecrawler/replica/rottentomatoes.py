"""Rotten Tomatoes' pages as the site has served them since 2024: scripts of JSON, a list of details, JSON-LD; and its browse lists.

A series' page has a tile for each season with its Tomatometer and Popcornmeter, without what they count. A special that was shown
inside a season has a tile, too, which is no season's.
"""

from __future__ import annotations

import base64
import html
from datetime import date
from typing import TYPE_CHECKING, Any, Final

from moviecrawler.replica.bodies import Body, Bulk, encode, json_script, rating_json_ld

if TYPE_CHECKING:
    from collections.abc import Iterable

    from moviecrawler.items import Movie, OfferKind, Score, ScoreKind
    from moviecrawler.replica.collection import Collection
    from moviecrawler.replica.items import Title

IN_THEATERS: Final = 56
"""How many of the most popular films are in theaters."""
BROWSE_ROWS: Final = 28
_SPLIT_SEASON: Final = 5
"""The season that was shown in two parts, each with a tile."""
_MILLION: Final = 1_000_000
_TYPES: Final = {"movie": "Movie", "series": "TvSeries", "season": "TvSeason", "episode": "TvEpisode"}
_LICENCES: Final[dict[OfferKind, str]] = {
    "free": "Free",
    "ads": "Free with ads",
    "subscription": "Subscription",
    "rent": "Rent/buy",
}


def title_page(title: Title, movie: Movie) -> Body:
    """Return the page of a title, or of a season or an episode of it."""
    name, head = html.escape(movie.title), f'<link rel="canonical" href="{movie.url}">'
    head += f'<meta property="og:url" content="{movie.url}"><meta property="og:title" content="{name}">'
    sections = []
    if movie.consensus:
        text = html.escape(movie.consensus)
        sections.append(f'<div id="critics-consensus" class="consensus"><rt-text>Critics</rt-text><p>{text}</p></div>')
    if movie.offers:
        shown = "".join(_offer(offer.provider, offer.kind, offer.url) for offer in movie.offers if offer.kind != "buy")
        sections.append(f'<section id="where-to-watch" data-qa="section:where-to-watch">{shown}</section>')
    if movie.related:
        tiles = "".join(_card(one.site_id, one.title) for one in movie.related)
        sections.append(f'<section id="more-like-this" data-qa="section:more-like-this">{tiles}</section>')
    if movie.kind == "series":
        tiles = "".join(_season_tile(season) for season in title.listed["rottentomatoes"])
        sections.append(f'<section id="seasons"><carousel-slider>{tiles}</carousel-slider></section>')
    return _page(
        f"{name} | Rotten Tomatoes",
        head.encode() + json_script('type="application/ld+json"', _json_ld(movie)),
        _scripts(movie) + "".join(sections).encode() + _cast(movie).encode(),
        _details(movie).encode(),
    )


def _page(title: str, head: bytes, first: bytes, last: bytes) -> Body:
    start = f'<!DOCTYPE html><html lang="en"><head><meta charset="UTF-8"><title>{title}</title>'.encode()
    return Body(
        *(start + head + b"<script>", Bulk("script", 95_000), b"</script></head><body>", Bulk("markup", 190_000)),
        *(first, Bulk("markup", 95_000), last + b"</body></html>"),
    )


# --- A title's page ---------------------------------------------------------------------------------------------------


def _scripts(movie: Movie) -> bytes:
    kind = _TYPES[movie.kind]
    by_kind = {score.kind: score for score in movie.scores}
    critics, top = (_critics(movie, by_kind.get(kind)) for kind in ("tomatometer", "tomatometer_top"))
    verified, everybody = (
        _audience(movie, by_kind.get(f"popcornmeter_{who.lower()}"), who)  # type: ignore[call-overload]
        for who in ("VERIFIED", "ALL")
    )
    content = {
        "mediaType": kind,
        "title": movie.title,
        "metadataProps": [*([movie.certificate] if movie.certificate else []), *_below_the_name(movie)],
    }
    scorecard = {
        "audienceScore": verified if "popcornmeter_verified" in by_kind else everybody,
        "criticsScore": critics,
        "description": movie.plot,
        "overlay": {
            "audienceAll": everybody,
            "audienceVerified": verified,
            "criticsAll": critics,
            "criticsTop": top,
            "mediaType": kind,
        },
        "primaryImageUrl": movie.poster_url,
    }
    ids = movie.external_ids
    curation = {"emsId": ids["ems"], "rtId": ids["rottentomatoes"], "type": kind[0].lower() + kind[1:]}
    return (
        json_script('id="media-hero-json" data-json="mediaHero" type="application/json"', {"content": content})
        + json_script('id="media-scorecard-json" data-json="mediaScorecard" type="application/json"', scorecard)
        + json_script('id="curation-json" type="application/json"', curation)
    )


def _below_the_name(movie: Movie) -> list[str]:
    """Return when a title was released, and how long a film is; the years that a series ran."""
    if movie.kind == "movie":
        return [f"Released {_worded(movie)}", *([_hours(movie.runtime_minutes)] if movie.runtime_minutes else [])]
    return [f"{movie.year}-{movie.end_year or ''}" if movie.kind == "series" else str(movie.year)]


def _critics(movie: Movie, score: Score | None) -> dict[str, Any]:
    """Return the critics' score; before there are reviews, it has no `score` at all."""
    shown: dict[str, Any] = {"reviewsPageUrl": f"/{movie.site_id}/reviews", "title": "Tomatometer"}
    if score is None:
        return {"certified": False, **shown}
    counts = {"averageRating": f"{score.average:.2f}", "ratingCount": score.count, "reviewCount": score.count}
    return {**_score(score), **counts, **shown}


def _audience(movie: Movie, score: Score | None, score_type: str) -> dict[str, Any]:
    """Return an audience's score, which is counted in bands only."""
    address = f"/{movie.site_id}/reviews/all-audience"
    shown: dict[str, Any] = {"reviewsPageUrl": address, "scoreType": score_type, "title": "Popcornmeter"}
    if score is None:
        return {"certified": False, **shown}
    band = f"{(score.count or 0) // 50 * 50:,}+ Ratings"
    counts = {"averageRating": f"{score.average:.1f}", "bandedRatingCount": band, "reviewCount": score.reviews}
    return {**_score(score), **counts, **shown}


def _score(score: Score) -> dict[str, Any]:
    return {
        "certified": score.certified,
        "likedCount": score.liked,
        "notLikedCount": score.disliked,
        "score": f"{score.value:.0f}",
        "scorePercent": f"{score.value:.0f}%",
        "sentiment": score.sentiment,
    }


def _offer(affiliate: str, kind: OfferKind, url: str | None) -> str:
    """Return an offer; what can be rented and bought has one for both."""
    link = "" if url is None else f' href="{url}?cmp=rt_where_to_watch&amp;tag=replica-20"'
    licence = f'<span slot="license">{_LICENCES[kind]}</span>'
    return f'<where-to-watch-meta affiliate="{affiliate}"{link}>{licence}</where-to-watch-meta>'


def _card(site_id: str, title: str) -> str:
    link, name = f'href="/{site_id}"', html.escape(title)
    return (
        f'<tile-poster-card slot="tile"><rt-link slot="primaryImage" {link}><sr-text>{name}</sr-text></rt-link>'
        f'<rt-link slot="title" {link}>{name}</rt-link></tile-poster-card>'
    )


def _season_tile(season: Movie) -> str:
    aired = f"{date.fromisoformat(f'{season.release_date}-01'):%b %Y}"
    critics, audience = _percent(season, "tomatometer"), _percent(season, "popcornmeter")
    tile = (
        '<tile-season slot="tile" href="/{}" skeleton="panel"><rt-text size="1" context="label" slot="title">{}</rt-text>'
        '<rt-text slot="critics-score" size="0.75">{}</rt-text><rt-text slot="audience-score" size="0.75">{}</rt-text>'
        '<rt-text size="0.875" slot="air-date">{}</rt-text></tile-season>'
    )
    shown = tile.format(season.site_id, html.escape(season.title), critics, audience, aired)
    if season.season == _SPLIT_SEASON:  # the second part of a season is no season
        shown = tile.format(f"{season.site_id}.2", f"{html.escape(season.title)}, Part 2", "", "", aired) + shown
    return shown


def _cast(movie: Movie) -> str:
    """Return the tiles of the cast, which begin with the director."""
    people = [*((one, "Director") for one in movie.people("director"))]
    people += [(one, one.character or "Actor") for one in movie.people("cast")]
    return "".join(
        f'<a href="/{person.person_id}" data-qa="person-item"><tile-dynamic><div slot="insetText">'
        f'<p class="name" data-qa="person-name">{html.escape(person.name or "")}</p>'
        f'<p class="role" data-qa="person-role">{html.escape(part)}</p></div></tile-dynamic></a>'
        for person, part in people
    )


def _details(movie: Movie) -> str:
    """Return the list of details; what the site does not know has no row."""
    is_film, is_streaming = movie.kind == "movie", movie.release_date is None
    dated = f"Release Date ({'Streaming' if is_streaming else 'Theaters'})" if is_film else "Premiere Date"
    people = {
        role: [(one.name or "", f"/{one.person_id}") for one in movie.people(role)]
        for role in ("creator", "director", "writer")
    }
    rows: list[tuple[str, list[tuple[str, str]]]] = [
        ("Creator", people["creator"]),
        ("Director", people["director"]),
        ("Screenwriter", people["writer"]),
        ("Genre", [(genre, f"/browse/movies_at_home/genres:{genre.lower()}") for genre in movie.genres]),
        ("Original Language", [(language, "") for language in movie.languages]),
        (dated, [(_worded(movie) + (", Wide" if is_film and not is_streaming else ""), "")]),
        ("Rating", [(f"{movie.certificate} (Some Language|Mild Peril)", "")] if movie.certificate else []),
        ("Box Office (Gross USA)", [(_abbreviated(amount.value), "") for amount in movie.amounts]),
        ("Runtime", [(_hours(movie.runtime_minutes), "")] if movie.runtime_minutes else []),
    ]
    return "<dl>" + "".join(_detail(label, values) for label, values in rows if values) + "</dl>"


def _detail(label: str, values: list[tuple[str, str]]) -> str:
    shown = '<rt-text class="delimiter">, </rt-text>'.join(
        f'<rt-link href="{link}" data-qa="item-value">{html.escape(text)}</rt-link>'
        if link
        else f'<rt-text data-qa="item-value">{html.escape(text)}</rt-text>'
        for text, link in values
    )
    return (
        f'<div class="category-wrap" data-qa="item"><dt class="key"><rt-text class="key" data-qa="item-label">{label}'
        f'</rt-text></dt><dd data-qa="item-value-group">{shown}</dd></div>'
    )


def _json_ld(movie: Movie) -> dict[str, Any]:
    found: dict[str, Any] = {"@context": "http://schema.org", "@type": _TYPES[movie.kind].replace("Tv", "TV")}
    # Where two films share a title, the site tells them apart here.
    is_dated = movie.kind == "movie" and str(movie.site_id).endswith(f"_{movie.year}")
    found |= {"name": f"{movie.title} ({movie.year})" if is_dated else movie.title, "url": movie.url}
    if movie.kind == "series":
        found["numberOfSeasons"] = movie.season_count
    elif movie.series_id:
        address = f"https://www.rottentomatoes.com/{movie.series_id}"
        found["partOfSeries"] = {"@type": "TVSeries", "name": movie.series_title, "url": address}
    if movie.episode_count:
        found["numberOfEpisodes"] = movie.episode_count
    if (score := movie.score("tomatometer")) is not None:
        counts = {"ratingCount": score.count, "reviewCount": score.count}
        found["aggregateRating"] = rating_json_ld("0", "100", f"{score.value:.0f}", name="Tomatometer", **counts)
    return found


def _percent(movie: Movie, kind: ScoreKind) -> str:
    score = movie.score(kind)
    return "" if score is None else f"{score.value:.0f}%"


def _worded(movie: Movie) -> str:
    """Return a title's release as the site writes it: "Nov 01, 2026"."""
    return f"{date.fromisoformat(movie.release_date or f'{movie.year}-01-01'):%b %d, %Y}"


def _abbreviated(dollars: int) -> str:
    return f"${dollars / _MILLION:.1f}M" if dollars >= _MILLION else f"${dollars / 1000:.1f}K"


def _hours(minutes: int) -> str:
    hours, rest = divmod(minutes, 60)
    return f"{hours}h {rest}m" if hours else f"{rest}m"


# --- Browse lists -----------------------------------------------------------------------------------------------------


def browse(collection: Collection, name: str) -> Body:
    """Return the first page of a list: movies_in_theaters, tv_series_browse, or all films by popularity."""
    movies, info = _browsed(collection, name, 0)
    script = json_script('id="pageInfo" type="application/json"', info)
    if not movies:
        script += json_script('id="noResults" type="application/json"', data=True)
    canonical = f'<link rel="canonical" href="https://www.rottentomatoes.com/browse/{name}">'
    tiles = f'<div data-qa="discovery-media-list">{"".join(map(_tile, movies))}</div>'
    return _page(name, canonical.encode(), tiles.encode(), script)


def browse_json(collection: Collection, name: str, after: str) -> Body:
    """Return what follows a cursor in a list. Raises ValueError for a cursor that is none."""
    movies, info = _browsed(collection, name, int(base64.b64decode(after, validate=True)) + 1)
    rows = [
        {
            "title": movie.title,
            "mediaUrl": f"/{movie.site_id}",
            "type": _TYPES[movie.kind],
            "releaseDateText": _opening(movie),
            "criticsScore": {"scorePercent": _percent(movie, "tomatometer")},
            "audienceScore": {"scorePercent": _percent(movie, "popcornmeter")},
        }
        for movie in movies
    ]
    return Body(encode({"grid": {"id": name, "list": rows}, "pageInfo": info}))


def _browsed(collection: Collection, name: str, first: int) -> tuple[list[Movie], dict[str, Any]]:
    """Return the items that a page of a list shows, and its pageInfo."""
    is_series = name.startswith("tv_")
    places = list((collection.series if is_series else collection).site_ids("rottentomatoes"))
    if name.startswith("movies_in_theaters"):
        places = places[:IN_THEATERS]
    shown: Iterable[int] = places[first : first + BROWSE_ROWS]
    titles = [(collection.series.title if is_series else collection.film)(place) for place in shown]
    last = first + len(titles) - 1 if titles else max(len(places) - 1, 0)
    info = {
        "endCursor": base64.b64encode(str(last).encode()).decode(),
        "hasNextPage": last + 1 < len(places),
    }
    return [title.movies["rottentomatoes"] for title in titles], info


def _tile(movie: Movie) -> str:
    critics, audience = _percent(movie, "tomatometer"), _percent(movie, "popcornmeter")
    scores = "".join(
        f'<rt-text context="label" size="1" slot="{slot}"> {percent} </rt-text>'
        for slot, percent in (("criticsScore", critics), ("audienceScore", audience))
    )
    return (
        f'<div class="js-tile-link" data-qa="discovery-media-list-item"><tile-dynamic>'
        f'<a data-qa="discovery-media-list-item-caption" href="/{movie.site_id}" slot="caption"><score-pairs-deprecated>'
        f'{scores}</score-pairs-deprecated><span class="p--small" data-qa="discovery-media-list-item-title"> '
        f'{html.escape(movie.title)} </span><span class="smaller" data-qa="discovery-media-list-item-start-date"> '
        f"{_opening(movie)} </span></a></tile-dynamic></div>"
    )


def _opening(movie: Movie) -> str:
    return f"{'Opened' if movie.release_date else 'Streaming'} {_worded(movie)}"
