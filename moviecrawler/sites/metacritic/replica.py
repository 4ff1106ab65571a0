"""Metacritic's pages as the site has served them since the spring of 2026, and its JSON host.

Each page has its data in a payload of Nuxt 3: an array whose entries refer to one another by index.
The `product` of a season's page is the series. The season's scores link to the series' URL with
`?season=season-2`. The JSON-LD of an episode's page has the episode's own fields. The payload of a
real episode's page is unknown, and the replica uses that of its season.
"""

import functools
import json
from collections.abc import Mapping
from dataclasses import replace

from moviecrawler.items import Award, Movie, Score
from moviecrawler.sites.metacritic.values import IMAGES
from moviecrawler.sites.replicas import (
    LINKED_TYPES,
    Collection,
    FilmDraft,
    Markup,
    Name,
    Refusal,
    SeededRandom,
    SeriesDraft,
    SeriesPages,
    Title,
    new_item,
    new_part,
    new_score,
    slugify,
    with_facts_of,
)

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
_SENTIMENTS = ("Generally favorable", "Mixed or average")


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
    movie = _new_item(draft)
    movie.release_date = draft.dice.day_in(draft.year)
    movie.scores = _scores_of(draft.critics, draft.users, draft.dice, _MOST_CRITICS)
    movie.related = draft.similar
    _add_own(movie, draft)
    return movie


def series(draft: SeriesDraft) -> SeriesPages:
    """Return the items of the pages of a series.

    A season's page has what it says of the series, and the season's own scores.
    """
    movie = _new_item(draft)
    movie.release_date = draft.facts.release_date
    movie.season_count = len(draft.seasons)
    movie.scores = _scores_of_series(draft)
    _add_own(movie, draft)
    pages = SeriesPages(movie)
    for number, episodes in draft.seasons.items():
        slug = f"season-{number}" if number else "specials"
        site_id = f"{draft.site_id}/{slug}"
        row = new_part(movie, site_id, movie.title, str(episodes[0].release_date))
        season = with_facts_of(movie, row)
        season.episode_count = len(episodes)
        season.external_ids = {}
        season.credits = [credit for credit in movie.credits if credit.role != "creator"]
        season.scores = _scores_of_series(draft, number)
        row.episode_count = len(episodes)
        row.scores = [score for score in season.scores if score.kind == "metascore"]
        row.source = "list"
        pages.listed.append(row)
        pages.parts.append(season)
        pages.parts += [_episode(draft, season, episode) for episode in episodes if number]
    return pages


def _new_item(draft: FilmDraft | SeriesDraft) -> Movie:
    return new_item("metacritic", draft, lambda name: f"person/{slugify(name, '-')}", _MOST_CAST)


def _add_own(movie: Movie, draft: FilmDraft | SeriesDraft) -> None:
    """Add what the pages of films and series both have on this site."""
    facts = draft.facts
    dice = draft.dice
    movie.offers = [
        replace(
            offer,
            country="US",
            url=f"https://{slugify(offer.provider, '-')}.example/title/{facts.site_id}",
            source="JustWatch",
        )
        for offer in dice.offers()
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


def _episode(draft: SeriesDraft, season: Movie, facts: Movie) -> Movie:
    """Return the item of an episode's page, of which only this is known. Users rate episodes."""
    dice = draft.dice_for("metacritic", facts.site_id)
    score = draft.score_of_episode(dice, facts)
    slug = f"episode-{facts.episode}-{slugify(facts.title, '-')}"
    count = 4 + dice.below(200)
    page = new_part(season, f"{season.site_id}/{slug}", facts.title, str(facts.release_date))
    if score:
        page.scores = [Score(kind="metacritic_user", value=score / 10, count=count)]
    return page


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
    scores = []
    if critics is not None:
        scores.append(new_score("metascore", critics, reviews, *_SENTIMENTS))
    if users is not None:
        scores.append(new_score("metacritic_user", users / 10, ratings, *_SENTIMENTS))
    return scores


def title_page(title: Title, movie: Movie) -> Markup:
    """Return the page of a title, or of a season or an episode of it.

    A season's page has the components of its series, with its own scores; an episode's page has
    those of its season.
    """
    section, *slugs = str(movie.site_id).split("/")
    route = ":".join(["movies" if section == "movie" else "shows", *slugs])
    scored = movie
    if movie.kind == "episode":
        season_id = str(movie.site_id).rpartition("/")[0]
        scored = next(part for part in title.parts["metacritic"] if part.site_id == season_id)
    return Markup(
        template="replica.html",
        variables={
            "title": f"{movie.title} Reviews - Metacritic",
            "url": movie.url,
            "linked_type": LINKED_TYPES[movie.kind],
            "movie": movie,
            "key": f"loadPage:{route}:",
            "whole": title.movies["metacritic"],
            "scored": scored,
            "seasons": title.listed.get("metacritic", []),
            "flattened": _flattened,
        },
    )


def list_page(
    collection: Collection, path: str, query: Mapping[str, str], host: str
) -> Markup | None:
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
    return Markup(
        template="replica_finder.json",
        variables={
            "total": len(ordered),
            "movies": [titles.title(index).movies["metacritic"] for _, index in shown],
            "next": f"{address}{end}" if end < len(ordered) else None,
        },
    )


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


def _flattened(state: str) -> list[object]:
    """Return the value of some JSON as devalue writes it.

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

    add(json.loads(state))
    return flat
