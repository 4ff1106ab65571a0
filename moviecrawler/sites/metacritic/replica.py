"""Metacritic's pages as the site has served them since the spring of 2026, and its JSON host.

Each page has its data in a payload of Nuxt 3: an array whose entries refer to one another by index.
The `product` of a season's page is the series. The season's scores link to the series' URL with
`?season=season-2`. The JSON-LD of an episode's page has the episode's own fields. The payload of a
real episode's page is unknown, and the replica uses that of its season.
"""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from moviecrawler.items import Award, Credit, Movie, Offer, RelatedTitle, Score, ScoreKind
from moviecrawler.sites import SCORES
from moviecrawler.sites.metacritic.values import IMAGES, OFFER_KINDS
from moviecrawler.sites.replicas import (
    LINKED_TYPES,
    WORDS,
    Collection,
    FilmDraft,
    Json,
    Markup,
    Name,
    Refusal,
    SeededRandom,
    SeriesDraft,
    SeriesPages,
    Title,
    episode_facts,
    new_item,
    new_score,
    season_facts,
    slugify,
)

if TYPE_CHECKING:
    from collections.abc import Mapping


ROBOTS = """
User-agent: *
Disallow: /search
Disallow: /signup
Disallow: /login
Disallow: /user
"""
LIVE_ROBOTS = ROBOTS
CHALLENGE = Refusal(
    status=403,
    headers={"cf-mitigated": "challenge"},
    head="<title>Just a moment...</title>",
)
MOVED = 301
MOST_FINDER_ROWS = 100
_MOST_CAST = 15
_MOST_CRITICS = 300
_MOST_CRITICS_OF_SERIES = 90
_GROUPS = {"cast": "Cast", "director": "Directed By", "writer": "Written By"}


def title_id(name: Name, dice: SeededRandom) -> str | None:
    """Return the id of a film or a series; one of ten is lacking."""
    is_film = name.kind == "movie"
    if name.index % 10 == (5 if is_film else 9):
        return None
    slug = slugify(name.english, "-")
    if name.is_repeated or (is_film and dice.chance(0.15)):
        slug += f"-{name.year}"
    return f"movie/{slug}" if is_film else f"tv/{slug}"


def film(draft: FilmDraft) -> Movie:
    """Return the item of a film's page."""
    return _item(
        draft,
        release_date=draft.dice.day_in(draft.year),
        scores=_scores_of(draft.critics, draft.users, draft.dice, _MOST_CRITICS),
        related=draft.similar,
    )


def series(draft: SeriesDraft) -> SeriesPages:
    """Return the items of the pages of a series.

    A season's page has what it says of the series, and the season's own scores.
    """
    movie = _item(
        draft,
        release_date=draft.facts.release_date,
        season_count=len(draft.seasons),
        scores=_scores_of_series(draft),
    )
    pages = SeriesPages(movie)
    for number, episodes in draft.seasons.items():
        slug = f"season-{number}" if number else "specials"
        facts = season_facts(movie, f"{draft.site_id}/{slug}", number, episodes)
        facts["release_date"] = str(episodes[0].release_date)
        facts["episode_count"] = len(episodes)
        season = replace(
            movie,
            **facts,
            imdb_id=None,
            season_count=None,
            external_ids={},
            credits=[credit for credit in movie.credits if credit.role != "creator"],
            scores=_scores_of_series(draft, number),
        )
        row = Movie(**facts, source="list")
        row.scores = [score for score in season.scores if score.kind == "metascore"]
        pages.listed.append(row)
        pages.parts.append(season)
        pages.parts += [_episode(draft, season, episode) for episode in episodes if number]
    return pages


def _item(draft: FilmDraft | SeriesDraft, **own: Any) -> Movie:
    """Return what the pages of films and series both have."""
    facts = draft.facts
    dice = draft.dice
    movie = new_item(
        "metacritic", draft, lambda name: f"person/{slugify(name, '-')}", _MOST_CAST, **own
    )
    movie.offers = [
        Offer(
            **offer,
            country="US",
            url=f"https://{slugify(offer['provider'], '-')}.example/title/{facts.site_id}",
            source="JustWatch",
        )
        for offer in WORDS["offers"][dice.pick((0, 1, 2, 3, 5)) :]
    ]
    section = "movie" if facts.kind == "movie" else "tv-show"
    movie.external_ids = {
        "metacritic": str(2_000_000_000 + dice.below(100_000_000)),
        "justwatch": f"/us/{section}/{slugify(facts.title, '-') or facts.site_id}",
    }
    movie.imdb_id = facts.imdb_id if dice.chance(0.92) else None
    if facts.poster_url:
        movie.poster_url = f"{IMAGES}/provider/2/13/2-{facts.site_id}.jpg"
        movie.poster_width = 1280
        movie.poster_height = 1920
    movie.keywords = [keyword.replace(" ", "-") for keyword in facts.keywords]
    movie.taglines = [f"{dice.word('heroes')} has one night left."]
    movie.awards = [Award(event="Silver Reel", wins=dice.below(5), nominations=6)]
    return movie


def _episode(draft: SeriesDraft, season: Movie, facts: Movie) -> Movie:
    """Return the item of an episode's page, of which only this is known. Users rate episodes."""
    dice = draft.dice_for("metacritic", facts.site_id)
    score = draft.score_of_episode(dice, facts)
    slug = f"episode-{facts.episode}-{slugify(facts.title, '-')}"
    count = 4 + dice.below(200)
    return Movie(
        **episode_facts(season, slug, facts),
        scores=[Score(kind="metacritic_user", value=score / 10, count=count)] if score else [],
    )


def _scores_of_series(draft: SeriesDraft, season: int | None = None) -> list[Score]:
    """Return the scores of a series, or of a season; specials have none."""
    dice = draft.dice_for("metacritic scores", draft.index, season)
    critics = draft.score(dice, 0.75, is_scored=season != 0)
    users = draft.score(dice, 0.85, is_scored=season != 0)
    return _scores_of(critics, users, dice, _MOST_CRITICS_OF_SERIES)


def _scores_of(
    critics: int | None, users: int | None, dice: SeededRandom, most: int
) -> list[Score]:
    """Return the scores of a page, by at most so many critics."""
    reviews = 5 + dice.below(most)
    ratings = 50 + dice.below(100_000)
    shown: list[tuple[ScoreKind, float | None, int]] = [
        ("metascore", critics, reviews),
        ("metacritic_user", users and users / 10, ratings),
    ]
    return [
        new_score(kind, value, count, ("Generally favorable", "Mixed or average"))
        for kind, value, count in shown
        if value is not None
    ]


def title_page(title: Title, movie: Movie) -> Markup:
    """Return the page of a title, or of a season or an episode of it."""
    section, slug = str(movie.site_id).split("/", 1)
    key = f"loadPage:{'movies' if section == 'movie' else 'shows'}:{slug.replace('/', ':')}:"
    state = {"data": {key: {"components": _components(title, movie)}}}
    name = f"{movie.title} Reviews - Metacritic"
    return Markup(
        template="replica.html",
        variables={
            "title": name,
            "url": movie.url,
            "linked": _linked(movie),
            "values": _flattened(state),
        },
    )


def list_page(
    collection: Collection, path: str, query: Mapping[str, str], host: str
) -> Json | None:
    """Return a page of the finder's list; None for another path or an unknown kind of title.

    If the next row has the same Metascore as the last one, it is on this page too, and begins the
    next page, because the site repeats such rows.

    Raises ValueError when `limit` or `offset` is not an integer.
    """
    if path != "finder/metacritic/web":
        return None
    kind = query.get("mcoTypeId")
    order = query.get("sortBy", "-metaScore")
    limit = int(query.get("limit", 24))
    offset = max(int(query.get("offset", 0)), 0)
    if kind not in {"1", "2"}:
        return None
    titles = collection if kind == "2" else collection.series
    ordered = _ordered(collection, kind, order)
    end = min(offset + min(max(limit, 1), MOST_FINDER_ROWS), len(ordered))
    shown = ordered[offset:end]
    if shown and order == "-metaScore" and end < len(ordered) and ordered[end][0] == shown[-1][0]:
        shown.append(ordered[end])
    address = f"{host}/finder/metacritic/web?mcoTypeId={kind}&sortBy={order}&limit={limit}&offset="
    links = {"next": {"href": f"{address}{end}"}} if end < len(ordered) else {}
    movies = [titles.title(index).movies["metacritic"] for _, index in shown]
    items = [_row(movie) for movie in movies]
    return {"data": {"totalResults": len(ordered), "items": items}, "links": links}


@functools.lru_cache(maxsize=16)
def _ordered(collection: Collection, kind: str, order: str) -> list[tuple[int, int]]:
    """Return the indexes of all titles with what they are ordered by, the first one first.

    Series are in the order of popularity, whatever the order is.
    """
    if kind == "1":
        return [(index, index) for index in collection.series.ids["metacritic"]]

    def key(index: int) -> int:
        if order == "-metaScore":
            return -(collection.critics("metacritic", index) or 0)
        return -collection.year("metacritic", index) if order == "-releaseDate" else index

    return sorted((key(index), index) for index in collection.ids["metacritic"])


def _flattened(value: object) -> list[object]:
    """Return a value as devalue writes it.

    The list is flat: its dicts and lists refer to other entries by index. Equal texts are in it
    once.
    """
    flat: list[object] = [["ShallowReactive", 1]]
    numbers: dict[str, int] = {}

    def add(part: object) -> int:
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


def _components(title: Title, movie: Movie) -> list[Json]:
    """Return the components of a page.

    A season's page has those of its series, with its own scores; an episode's page has those of
    its season.
    """
    whole = title.movies["metacritic"]
    if movie.kind == "episode":
        season = str(movie.site_id).rpartition("/")[0]
        movie = next(part for part in title.parts["metacritic"] if part.site_id == season)
    data: dict[str, Json] = {
        "product": {"item": _product(whole)},
        "where-to-watch": {"item": _where_to_watch(whole)},
        "critic-score-summary": {"item": _critics(movie)},
        "user-score-summary": {"item": _summary(movie, "metacritic_user", "user-reviews")},
    }
    if whole.kind == "series":
        data["seasons"] = {"items": [_season(season) for season in title.listed["metacritic"]]}
    else:  # the site recommends the title itself, too
        related = [_related(one) for one in whole.related]
        data["related-carousel"] = {"items": [*related, _related(whole)]}
    return [{"data": part, "meta": {"componentName": name}} for name, part in data.items()]


def _related(title: Movie | RelatedTitle) -> Json:
    return {"type": "movie", "slug": _slug(title.site_id), "title": title.title}


def _listed(movie: Movie) -> Json:
    """Return what rows of the finder and pages both say of a title."""
    return {
        "type": "movie" if movie.kind == "movie" else "show",
        "title": movie.title,
        "slug": _slug(movie.site_id),
        "premiereYear": movie.year,
        "releaseDate": movie.release_date,
    }


def _row(movie: Movie) -> Json:
    """Return a row of the finder."""
    critics = _critics(movie)
    users = movie.score("metacritic_user")
    return {
        **_listed(movie),
        "criticScoreSummary": {**critics, "score": critics["score"] or 0},
        "userScore": {"score": users.value if users else 0},
    }


def _product(movie: Movie) -> Json:
    """Return what a page says of a title, its people and awards, with the critics' score."""
    image = {
        "bucketPath": str(movie.poster_url).removeprefix(IMAGES),
        "width": movie.poster_width,
        "height": movie.poster_height,
    }
    # Of the writers, creators have a word for it.
    creators = {one.name for one in movie.people("creator")}
    writers = [
        _person(one, "created by" if one.name in creators else "screenplay")
        for one in movie.people("writer")
    ]
    return {
        **_listed(movie),
        "id": int(movie.external_ids["metacritic"]),
        "rating": movie.certificate,
        "image": image if movie.poster_url else None,
        "genres": [{"name": genre} for genre in movie.genres],
        "description": movie.plot,
        "duration": movie.runtime_minutes,
        "criticScoreSummary": _critics(movie),
        "imdbId": movie.imdb_id,
        "tags": movie.keywords,
        "tagline": next(iter(movie.taglines), None),
        "awards": [
            {"awardEvent": one.event, "wins": one.wins, "nominations": one.nominations}
            for one in movie.awards
        ],
        "seasonCount": movie.season_count,
        "production": {
            "cast": [_person(one, one.character) for one in movie.people("cast")],
            "crew": [*map(_person, movie.people("director")), *writers],
        },
    }


def _person(credit: Credit, roles: str | None = None) -> Json:
    return {
        "name": credit.name,
        "roles": roles.split(" / ") if roles else [],
        "roleTypeGroupName": _GROUPS[credit.role],
        "entertainmentProduct": {"url": f"/{credit.person_id}/"},
    }


def _where_to_watch(movie: Movie) -> Json:
    path = movie.external_ids.get("justwatch")
    return {
        **{
            name: [_offer(offer) for offer in movie.offers if offer.kind == kind]
            for name, kind in OFFER_KINDS.items()
        },
        "meta": {"fullPath": path, "locale": "en_US"},
    }


def _offer(offer: Offer) -> Json:
    """Return an offer, whose link leads to a counter first."""
    target = quote(f"{offer.url}?utm_source=replica", safe="")
    option = {
        "qualityType": offer.quality,
        "optionPrice": offer.price,
        "optionCurrencyCode": "USD",
        "offerType": (offer.scope or "default").upper(),
    }
    return {
        "providerName": offer.provider,
        "link": f"https://click.justwatch.com/a?cx=eyJzY2hlbWEi&r={target}&uct_country=us",
        "options": [option],
    }


def _critics(movie: Movie) -> Json:
    score = movie.score("metascore")
    return {
        **_summary(movie, "metascore", "critic-reviews"),
        "normalizedScore": score and score.average,
    }


def _summary(movie: Movie, kind: ScoreKind, reviews: str) -> Json:
    """Return a score with its opinions, and its address; that of a season is at its series'."""
    score = movie.score(kind)
    season = f"?season={_last(movie.site_id)}" if movie.series_id else ""
    return {
        "max": SCORES[kind].scale,
        "score": score and score.value,
        "reviewCount": score.count if score else 0,
        "positiveCount": score.liked if score else 0,
        "neutralCount": score.neutral if score else 0,
        "negativeCount": score.disliked if score else 0,
        "sentiment": score and score.sentiment,
        "url": f"/{movie.series_id or movie.site_id}/{reviews}/{season}",
    }


def _season(season: Movie) -> Json:
    """Return a row of a series' page."""
    return {
        "title": season.series_title,
        "releaseYear": season.year,
        "premiereDate": season.release_date,
        "totalEpisodes": season.episode_count,
        "criticScoreSummary": _critics(season),
        "url": f"/{season.site_id}/",
    }


def _linked(movie: Movie) -> Json:
    """Return a page's JSON-LD. That of an episode has the users' score."""
    is_episode = movie.kind == "episode"
    score = movie.score("metacritic_user") if is_episode else None
    rating = score and {
        "name": "Metacritic User Score",
        "bestRating": SCORES[score.kind].scale,
        "ratingValue": score.value,
        "ratingCount": score.count,
    }
    return {
        "@context": "https://schema.org",
        "@type": LINKED_TYPES[movie.kind],
        "name": movie.title,
        "datePublished": movie.release_date or str(movie.year),
        "description": movie.plot or "",
        "url": movie.url,
        "aggregateRating": rating,
        "partOfSeries": {"name": movie.series_title} if is_episode else None,
    }


def _slug(site_id: str | None) -> str:
    return str(site_id).partition("/")[2]


def _last(site_id: str | None) -> str:
    return str(site_id).rpartition("/")[2]
