"""IMDb's title pages and charts as the site has served them since the autumn of 2025.

Their data is in `__NEXT_DATA__`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from moviecrawler.items import AmountKind, Credit, Movie, RelatedTitle
from moviecrawler.sites.replicas import Collection, Json, Markup, Refusal, Title

if TYPE_CHECKING:
    from collections.abc import Mapping


_POPULAR_SIZE = 100
_BOX_OFFICE_SIZE = 10
ROBOTS = """
User-agent: *
Disallow: /OnThisDay
Disallow: /ap/
Disallow: /mymovies/
Disallow: /registration/
Disallow: /search/name-text
Disallow: /search/title-text
Disallow: /tvschedule
"""
LIVE_ROBOTS = """
User-agent: *
Disallow: /
Allow: /datasets/
"""
"""It lets nobody in, but its datasets have a host of their own without one."""
CHALLENGE = Refusal(
    status=202,
    headers={"x-amzn-waf-action": "challenge"},
    head="<script>window.awsWafCookieDomainList = []; window.gokuProps = {};</script>",
)
MOVED = 308
CHARTS = ("top", "moviemeter", "boxoffice", "toptv", "tvmeter")


def title_page(_title: Title, movie: Movie) -> Markup:
    """Return the page of a film, a series or an episode."""
    data = {"aboveTheFoldData": _above_the_fold(movie), "mainColumnData": _main_column(movie)}
    name = f"{movie.title} ({movie.year}) - IMDb"
    return _page(name, str(movie.url), "/title/[tconst]", data)


def list_page(
    collection: Collection, path: str, _query: Mapping[str, str], _host: str
) -> Markup | None:
    """Return a chart of titles in their order, or a page of full credits; None for another path.

    The box office gives no ranks and years.
    """
    beginning, _, name = path.partition("/")
    if beginning == "title" and name.endswith("/fullcredits"):
        found = collection.find("imdb", name.removesuffix("/fullcredits"))
        return None if found is None else _full_credits(found[1])
    if beginning != "chart" or name not in CHARTS:
        return None
    titles = collection.series if "tv" in name else collection
    size = _BOX_OFFICE_SIZE if name == "boxoffice" else _POPULAR_SIZE
    indexes = titles.top_ranks if name.startswith("top") else range(min(titles.count, size))
    movies = [titles.title(index).movies["imdb"] for index in indexes]
    data: Json
    if name == "boxoffice":
        releases = [{"node": {"release": {"titles": [_rated(movie)]}}} for movie in movies]
        data = {"topGrossingReleases": {"edges": releases}}
    else:
        ranked = [
            {"currentRank": rank, "node": _row(movie)} for rank, movie in enumerate(movies, start=1)
        ]
        data = {"chartTitles": {"edges": ranked}}
    route = f"/chart/{name}"
    url = f"https://www.imdb.com{route}/"
    return _page(f"{name} - IMDb", url, route, {"pageData": data})


def full_cast(movie: Movie) -> list[Credit]:
    """Return the cast of a title on its page of full credits, which begins as on its own page."""
    shown = movie.people("cast")
    number = int(str(movie.site_id)[2:])
    more = [
        Credit(
            name=f"Extra {place}",
            role="cast",
            position=place,
            person_id=f"nm{8_000_000 + number % 10_000 * 100 + place}",
            character=f"Passer-by {place}",
        )
        for place in range(len(shown) + 1, 31)
    ]
    return [*shown, *more]


def _full_credits(movie: Movie) -> Markup:
    """Return the page of full credits. Notes stand behind characters."""
    lists: dict[str, list[Credit]] = {
        "director": movie.people("director"),
        "writer": movie.people("writer"),
        "cast": full_cast(movie),
    }
    categories = [
        {"id": role, "section": {"items": [*map(_listed, people)], "total": len(people)}}
        for role, people in lists.items()
        if people
    ]
    data = {"contentData": {"entityMetadata": _rated(movie), "categories": categories}}
    url = f"{movie.url}fullcredits/"
    return _page(f"{movie.title} - Full cast", url, "/title/[tconst]/fullcredits", data)


def _listed(credit: Credit) -> Json:
    names = credit.character.split(" / ") if credit.character else []
    return {
        "id": credit.person_id,
        "rowTitle": credit.name,
        "characters": [f"{name} (uncredited)" for name in names],
        "isCast": credit.role == "cast",
    }


def _page(title: str, url: str, route: str, data: Json) -> Markup:
    return Markup(
        template="replica.html",
        variables={"title": title, "url": url, "route": route, "data": data},
    )


def _stated(**values: Any) -> Json | None:
    """Return an object of a payload; None when it has no value."""
    return values if any(value is not None for value in values.values()) else None


def _named(title: Movie | RelatedTitle) -> Json:
    return {"id": title.site_id, "titleText": {"text": title.title}}


def _rated(movie: Movie) -> Json:
    """Return what rows of all charts have."""
    score = movie.score("imdb")
    return {
        **_named(movie),
        "titleType": {"id": movie.title_type},
        "ratingsSummary": {
            "aggregateRating": score.value if score else None,
            "voteCount": score.count if score else 0,
        },
    }


def _row(movie: Movie) -> Json:
    """Return what a row of a chart has, but for the box office."""
    year, month, *day = map(int, str(movie.release_date).split("-"))
    return {
        **_rated(movie),
        "releaseYear": {"year": movie.year, "endYear": movie.end_year},
        "releaseDate": {"year": year, "month": month, "day": day[0] if day else None},
    }


def _above_the_fold(movie: Movie) -> Json:
    """Return what the head of a page has."""
    metascore = movie.score("metascore")
    minutes = movie.runtime_minutes
    keywords = [{"node": {"text": keyword}} for keyword in movie.keywords]
    interests = [{"node": {"primaryText": {"text": interest}}} for interest in movie.interests]
    return {
        **_row(movie),
        "originalTitleText": {"text": movie.original_title or movie.title},
        "certificate": _stated(rating=movie.certificate),
        "plot": _stated(plotText=_stated(plainText=movie.plot)),
        "primaryImage": _stated(
            url=movie.poster_url, width=movie.poster_width, height=movie.poster_height
        ),
        "runtime": _stated(seconds=minutes and minutes * 60),
        "meterRanking": _stated(currentRank=movie.popularity_rank),
        "criticReviewsTotal": {"total": movie.critic_review_count or 0},
        "genres": {"genres": [{"text": genre} for genre in movie.genres]},
        "metacritic": _stated(metascore=_stated(score=metascore and metascore.value)),
        "keywords": {"edges": keywords},
        "interests": {"edges": interests},
        "series": _stated(
            episodeNumber=_stated(episodeNumber=movie.episode, seasonNumber=movie.season),
            series=_stated(id=movie.series_id, titleText=_stated(text=movie.series_title)),
        ),
    }


def _main_column(movie: Movie) -> Json:
    """Return what stands below the head of a page."""
    rating = movie.score("imdb")
    cast = [{"node": _cast_member(credit)} for credit in movie.people("cast")]
    rank = movie.imdb_top250_rank or movie.imdb_top250_tv_rank
    bars = enumerate(rating.histogram, start=1) if rating else ()
    seasons = movie.season_count
    awards = [
        {"wins": one.wins, "nominations": one.nominations, "award": {"text": one.event}}
        for one in movie.awards
    ]
    # All of them together are the first; the page names the most telling one.
    together = awards[0] if awards else {"wins": 0, "nominations": 0}
    return {
        "ratingsSummary": {"topRanking": _stated(rank=rank)},
        "cast": {"edges": cast},
        "creators": _department(movie.people("creator")),
        "directors": _department(movie.people("director")),
        "writers": _department(movie.people("writer")),
        "spokenLanguages": {"spokenLanguages": [{"text": name} for name in movie.languages]},
        "countriesDetails": {"countries": [{"text": name} for name in movie.countries]},
        "productionBudget": _stated(budget=_money(movie, "budget")),
        "openingWeekendGross": _stated(gross=_stated(total=_money(movie, "opening_weekend"))),
        "lifetimeGross": _stated(total=_money(movie, "domestic")),
        "worldwideGross": _stated(total=_money(movie, "worldwide")),
        "wins": {"total": together["wins"]},
        "nominationsExcludeWins": {"total": together["nominations"]},
        "prestigiousAwardSummary": awards[1] if awards else None,
        "moreLikeThisTitles": {
            "edges": [{"node": _named(one)} for one in movie.related if one.relation == "similar"]
        },
        "connections": {
            "edges": [
                {"node": {"associatedTitle": _named(one), "category": {"text": one.connection}}}
                for one in movie.related
                if one.relation == "connection"
            ]
        },
        "aggregateRatingsBreakdown": {
            "histogram": {
                "histogramValues": [{"rating": bar, "voteCount": votes} for bar, votes in bars]
            }
        },
        "reviews": {"total": rating.reviews if rating else 0},
        "episodes": _stated(
            episodes=_stated(total=movie.episode_count),
            seasons=seasons and [{"number": number} for number in range(1, seasons + 1)],
        ),
    }


def _person(credit: Credit) -> Json:
    return {"id": credit.person_id, "nameText": {"text": credit.name}}


def _cast_member(credit: Credit) -> Json:
    names = credit.character.split(" / ") if credit.character else None
    return {
        "name": _person(credit),
        "characters": names and [{"name": name} for name in names],
    }


def _department(people: list[Credit]) -> list[Json]:
    """Return the credits of one role, which are one group if there are any."""
    return [{"credits": [{"name": _person(credit)} for credit in people]}] if people else []


def _money(movie: Movie, kind: AmountKind) -> Json | None:
    amounts = [amount.value for amount in movie.amounts if amount.kind == kind]
    return {"amount": amounts[0], "currency": "USD"} if amounts else None
