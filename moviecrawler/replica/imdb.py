"""IMDb's title pages and charts as the site has served them since the autumn of 2025: data in `__NEXT_DATA__`."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING, Any, Final

from moviecrawler.replica.bodies import Body, Bulk, encode

if TYPE_CHECKING:
    from moviecrawler.items import Credit, Movie, Role
    from moviecrawler.replica.collection import Collection

_POPULAR_SIZE, _BOX_OFFICE_SIZE = 100, 10
CHARTS: Final = ("top", "moviemeter", "boxoffice", "toptv", "tvmeter")
_TYPES: Final = {
    "movie": "Movie",
    "tvMovie": "TV Movie",
    "tvSeries": "TV Series",
    "tvEpisode": "TV Episode",
}
"""What pages call each type of title."""
_AMOUNTS: Final = {"budget": "productionBudget", "worldwide": "worldwideGross", "domestic": "lifetimeGross"}


def title_page(movie: Movie) -> Body:
    """Return the page of a film, a series or an episode."""
    address = (
        f'<title>{html.escape(movie.title)} ({movie.year}) - IMDb</title><link rel="canonical" href="{movie.url}"/>'
    )
    props = {
        "tconst": movie.site_id,
        "aboveTheFoldData": {**_above_the_fold(movie), "series": _series(movie)},
        "mainColumnData": _main_column(movie),
    }
    return _page("/title/[tconst]", address, props)


def chart(collection: Collection, name: str) -> Body:
    """Return a chart of titles in their order."""
    top, count, title = collection.top, collection.titles, collection.film
    if "tv" in name:
        top, count, title = collection.series.top, collection.series.count, collection.series.title
    size = _BOX_OFFICE_SIZE if name == "boxoffice" else _POPULAR_SIZE
    rows = [title(index).movies["imdb"] for index in (top if name.startswith("top") else range(min(count, size)))]
    page: dict[str, Any] = {
        "chartTitles": {"edges": [{"currentRank": rank, "node": _row(row)} for rank, row in enumerate(rows, start=1)]}
    }
    if name == "boxoffice":  # which gives no ranks, years or running times
        left_out = {"releaseYear", "runtime", "certificate", "titleGenres", "releaseDate"}
        named = [{key: value for key, value in _row(row).items() if key not in left_out} for row in rows]
        page = {"topGrossingReleases": {"edges": [{"node": {"release": {"titles": [row]}}} for row in named]}}
    canonical = f'<link rel="canonical" href="https://www.imdb.com/chart/{name}/"/>'
    return _page(f"/chart/{name}", canonical, {"pageData": page})


def _page(route: str, head: str, props: dict[str, Any]) -> Body:
    return Body(
        f'<!DOCTYPE html><html lang="en-US"><head><meta charSet="utf-8"/>{head}</head><body>'.encode(),
        Bulk("markup", 790_000 if "title" in route else 770_000),
        b'<script id="__NEXT_DATA__" type="application/json">{"props":{"pageProps":{',
        encode(props)[1:-1],
        # Healthy pages too hold the firewall's words, as they repeat the headers of the request.
        b',"requestContext":{"sidecarHeaders":{"x-amzn-waf-frontier-bot-control":"aws-waf-token"}},'
        b'"translationContext":{"i18n":{"locale":"en-US"',
        Bulk("json", 530_000 if "title" in route else 370_000),
        b'}},"urqlState":null},"__N_SSP":true},"page":'
        + encode(route)
        + b',"query":{},"locale":"en-US"}</script></body></html>',
    )


def _row(movie: Movie) -> dict[str, Any]:
    """Return what rows of charts say of a title, and the head of its page."""
    rating, date = movie.score("imdb"), [int(part) for part in (movie.release_date or "").split("-")]
    poster = {"url": movie.poster_url, "width": movie.poster_width, "height": movie.poster_height}
    return {
        "id": movie.site_id,
        "titleText": {"text": movie.title},
        "titleType": {"id": movie.title_type, "text": _TYPES[str(movie.title_type)]},
        "originalTitleText": {"text": movie.original_title or movie.title},
        "primaryImage": poster if movie.poster_url else None,
        "releaseYear": {"year": movie.year, "endYear": movie.end_year},
        "releaseDate": dict(zip(("year", "month", "day"), [*date, None], strict=False)),
        "ratingsSummary": {
            "aggregateRating": rating.value if rating else None,
            "voteCount": rating.count if rating else 0,
        },
        "runtime": _wrapped("seconds", None if movie.runtime_minutes is None else movie.runtime_minutes * 60),
        "certificate": _wrapped("rating", movie.certificate),
        "titleGenres": {"genres": [{"genre": {"text": genre}} for genre in movie.genres]},
        "plot": _wrapped("plotText", _wrapped("plainText", movie.plot)),
    }


def _above_the_fold(movie: Movie) -> dict[str, Any]:
    metascore = movie.score("metascore")
    return {
        **_row(movie),
        "meterRanking": _wrapped("currentRank", movie.popularity_rank),
        "criticReviewsTotal": {"total": movie.critic_review_count or 0},
        "genres": {"genres": [{"text": genre, "id": genre} for genre in movie.genres]},
        "metacritic": _wrapped("metascore", _wrapped("score", metascore.value if metascore else None)),
        "keywords": {
            "total": len(movie.keywords),
            "edges": [{"node": {"text": keyword}} for keyword in movie.keywords],
        },
        "interests": {"edges": [{"node": {"primaryText": {"text": interest}}} for interest in movie.interests]},
    }


def _main_column(movie: Movie) -> dict[str, Any]:
    row, rating, amounts = _row(movie), movie.score("imdb"), {one.kind: one.value for one in movie.amounts}
    every, named = (movie.awards[0], movie.awards[1]) if movie.awards else (None, None)
    # The rank goes on beyond the chart: 1046 is no place in the Top 250.
    rank = movie.imdb_top250_rank or movie.imdb_top250_tv_rank
    if rank is None and rating is not None and movie.popularity_rank is not None:
        rank = 250 + movie.popularity_rank
    related = {
        relation: [one for one in movie.related if one.relation == relation] for relation in ("similar", "connection")
    }
    return {
        **{key: row[key] for key in ("id", "titleText", "originalTitleText", "titleType", "releaseDate", "runtime")},
        "ratingsSummary": {"topRanking": _wrapped("rank", rank), **row["ratingsSummary"]},
        "cast": {"total": len(movie.people("cast")), "edges": [_cast_edge(credit) for credit in movie.people("cast")]},
        **{f"{role}s": _department(movie, role) for role in ("creator", "director", "writer")},
        "spokenLanguages": {"spokenLanguages": [{"text": language} for language in movie.languages]},
        "countriesDetails": {"countries": [{"text": country} for country in movie.countries]},
        "productionBudget": _wrapped("budget", _money(amounts.get("budget"))),
        "worldwideGross": _wrapped("total", _money(amounts.get("worldwide"))),
        "lifetimeGross": _wrapped("total", _money(amounts.get("domestic"))),
        "openingWeekendGross": _wrapped("gross", _wrapped("total", _money(amounts.get("opening_weekend")))),
        "wins": {"total": every.wins if every else 0},
        "nominationsExcludeWins": {"total": every.nominations if every else 0},
        "prestigiousAwardSummary": named
        and {"wins": named.wins, "nominations": named.nominations, "award": {"text": named.event}},
        "moreLikeThisTitles": {"edges": [{"node": _named(one.site_id, one.title)} for one in related["similar"]]},
        "connections": {
            "edges": [
                {"node": {"associatedTitle": _named(one.site_id, one.title), "category": {"text": one.connection}}}
                for one in related["connection"]
            ]
        },
        "aggregateRatingsBreakdown": {
            "histogram": {
                "histogramValues": [
                    {"rating": bar, "voteCount": votes}
                    for bar, votes in enumerate(rating.histogram if rating else [], start=1)
                ]
            }
        },
        "reviews": {"total": rating.reviews if rating else 0},
        "episodes": {
            "episodes": {"total": movie.episode_count},
            "seasons": [{"number": number + 1} for number in range(movie.season_count or 0)],
        }
        if movie.kind == "series"
        else None,
    }


def _series(movie: Movie) -> dict[str, Any] | None:
    """Return where an episode stands in its series; a special has no number."""
    if movie.kind != "episode":
        return None
    numbers = {"episodeNumber": movie.episode, "seasonNumber": movie.season}
    series = {**_named(str(movie.series_id), str(movie.series_title)), "titleType": {"id": "tvSeries"}}
    return {"episodeNumber": numbers if movie.season is not None else None, "series": series}


def _named(site_id: str, title: str) -> dict[str, Any]:
    return {"id": site_id, "titleText": {"text": title}, "originalTitleText": {"text": title}}


def _department(movie: Movie, role: Role) -> list[dict[str, Any]]:
    found = [_credit(credit) for credit in movie.people(role)]
    return [{"totalCredits": len(found), "credits": found}] if found else []


def _credit(credit: Credit) -> dict[str, Any]:
    return {"name": {"id": credit.person_id, "nameText": {"text": credit.name}}}


def _cast_edge(credit: Credit) -> dict[str, Any]:
    played = [{"name": name} for name in credit.character.split(" / ")] if credit.character else None
    return {"node": {**_credit(credit), "category": {"id": "actor", "text": "Actor"}, "characters": played}}


def _wrapped(key: str, value: Any) -> dict[str, Any] | None:
    return None if value is None else {key: value}


def _money(amount: int | None) -> dict[str, Any] | None:
    return None if amount is None else {"amount": amount, "currency": "USD"}
