"""Rotten Tomatoes' pages as the site has served them since 2024, and its browse lists.

Pages have scripts of JSON, a list of details, and JSON-LD.
"""

import base64
from collections.abc import Mapping
from datetime import date
from uuid import UUID

from moviecrawler.items import Movie, Offer, Score, ScoreKind
from moviecrawler.sites import SCOREBOARD_KINDS
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
Disallow: /m/*/pictures
Disallow: /tv/*/pictures
Disallow: /search
Disallow: /critics/self-submission/
Disallow: /user/account/*
"""
LIVE_ROBOTS = ROBOTS
CHALLENGE = Refusal(status=403, head="<title>Access Denied</title>")
MOVED = 301
IN_THEATERS = 56
"""How many of the most popular films are in theaters."""
BROWSE_ROWS = 28
_MOST_CAST = 8
_MOST_CRITICS = 300
_MOST_CRITICS_OF_SERIES = 90
_MOST_CRITICS_OF_EPISODE = 30
_ENOUGH_REVIEWS = 20
"""Reviews from which on there is a consensus, and a score of top critics."""
_MILLION = 1_000_000


def title_id(name: Name, dice: SeededRandom) -> str | None:
    """Return the id of a film or a series, of which some are lacking.

    Slugs are as irregular as the site's own.
    """
    slug = slugify(name.english, "_")
    if name.kind == "series":
        if name.index % 10 == 8:  # noqa: PLR2004 - one of ten
            return None
        return f"tv/{slug}_{name.year}" if name.is_repeated else f"tv/{slug}"
    if name.index % 8 == 3:  # noqa: PLR2004 - one of eight
        return None
    if name.is_repeated or dice.chance(0.2):
        slug += f"_{name.year}"
    elif dice.chance(0.12):
        slug = slug.removeprefix("the_")
    elif dice.chance(0.06):
        slug = f"1{name.index:06}-{slug}"
    elif dice.chance(0.1):
        slug = slug.replace("_", "-")
    return f"m/{slug}"


def film(draft: FilmDraft) -> Movie:
    """Return the item of a film's page."""
    dice = draft.dice
    movie = _new_item(draft)
    # The site states no day in theaters of what only streams.
    movie.release_date = None if dice.chance(0.05) else dice.day_in(draft.year)
    movie.scores = _scores_of(draft.critics, draft.users, dice, _MOST_CRITICS)
    movie.related = draft.similar
    _add_facts(movie, draft)
    return movie


def series(draft: SeriesDraft) -> SeriesPages:
    """Return the items of the pages of a series; its page lists the latest season first."""
    facts = draft.facts
    movie = _new_item(draft)
    # "2012" means 2012 to 2012.
    movie.end_year = None if facts.end_year == facts.year else facts.end_year
    movie.release_date = facts.release_date
    movie.season_count = facts.season_count
    movie.scores = _scores_of_series(draft)
    _add_facts(movie, draft)
    pages = SeriesPages(movie)
    for number, episodes in draft.seasons.items():
        release = str(episodes[0].release_date)
        title = f"Season {number}" if number else "Specials"
        row = new_part(movie, f"{draft.site_id}/s{number:02}", title, release)
        season = with_facts_of(movie, row)
        season.episode_count = len(episodes)
        season.scores = _scores_of_series(draft, number)
        _add_own(season, draft.dice_for("own", season.site_id))
        row.release_date = release[:7]
        row.scores = [
            Score(kind=score.kind, value=score.value)
            for score in season.scores
            if score.kind in SCOREBOARD_KINDS
        ]
        row.source = "list"
        pages.listed.insert(0, row)
        pages.parts.append(season)
        pages.parts += [_episode(draft, season, episode) for episode in episodes if number]
    return pages


def _new_item(draft: FilmDraft | SeriesDraft) -> Movie:
    return new_item(
        "rottentomatoes", draft, lambda name: f"celebrity/{slugify(name, '_')}", _MOST_CAST
    )


def _add_facts(movie: Movie, draft: FilmDraft | SeriesDraft) -> None:
    """Add what the pages of films and series both have on this site."""
    facts = draft.facts
    for offer in draft.dice.offers():
        provider = slugify(offer.provider, "-")
        url = f"https://{provider}.example/title/{facts.site_id}"
        movie.offers.append(Offer(provider=provider, kind=offer.kind, country="US", url=url))
    movie.languages = facts.languages
    if facts.poster_url:
        movie.poster_url = f"https://resizing.flixster.com/206x305/v2/{facts.site_id}.jpg"
    movie.amounts = [amount for amount in facts.amounts if amount.kind == "domestic"]
    _add_own(movie, draft.dice)


def _add_own(movie: Movie, dice: SeededRandom) -> None:
    """Add the site's ids of a title, and what critics agree upon where enough have written."""
    number = str(2_000_000_000 + dice.below(100_000_000))
    ems = str(UUID(int=dice.getrandbits(128)))
    movie.external_ids = {"ems": ems, "rottentomatoes": number}
    text = f"A {dice.word('adjectives').lower()} tale {dice.word('troubles')}"
    movie.consensus = text if movie.score("tomatometer_top") else None


def _episode(draft: SeriesDraft, season: Movie, facts: Movie) -> Movie:
    """Return the item of an episode's page. Critics rate episodes."""
    dice = draft.dice_for("rottentomatoes", facts.site_id)
    score = draft.score_of_episode(dice, facts)
    site_id = f"{season.site_id}/e{facts.episode:02}"
    part = new_part(season, site_id, facts.title, str(facts.release_date))
    page = with_facts_of(season, part)
    page.plot = facts.plot
    page.scores = _scores_of(score, None, dice, _MOST_CRITICS_OF_EPISODE)
    _add_own(page, draft.dice_for("own", page.site_id))
    return page


def _scores_of_series(draft: SeriesDraft, season: int | None = None) -> list[Score]:
    """Return the scores of a series, or of a season.

    Specials have none, nor has every fourth series.
    """
    dice = draft.dice_for("rottentomatoes scores", draft.index, season)
    is_scored = draft.index % 4 != 1 if season is None else season != 0
    critics = draft.score(dice, 0.75, is_scored=is_scored)
    users = draft.score(dice, 0.85, is_scored=is_scored)
    return _scores_of(critics, users, dice, _MOST_CRITICS_OF_SERIES)


def _scores_of(
    critics: int | None, users: int | None, dice: SeededRandom, most: int
) -> list[Score]:
    """Return the scores of a page, by at most so many critics."""
    reviews = 5 + dice.below(most)
    ratings = 50 + dice.below(100_000)
    top = critics if reviews >= _ENOUGH_REVIEWS else None
    # Where those who bought a ticket have a score, that is the one shown.
    verified = None
    everybody = users
    count = ratings
    if users is not None and reviews % 3 == 0:
        verified = users
        everybody = max(users - 4, 0)
        count = ratings // 2
    shown: list[tuple[ScoreKind, int | None, int]] = [
        ("tomatometer", critics, reviews),
        ("popcornmeter", users, count),
        ("tomatometer_top", top and max(top - 7, 0), reviews // 4),
        ("popcornmeter_all", everybody, ratings),
        ("popcornmeter_verified", verified, count),
    ]
    return [new_score(kind, value, number) for kind, value, number in shown if value is not None]


def title_page(title: Title, movie: Movie) -> Markup:
    """Return the page of a title, or of a season or an episode of it."""
    released = f"{_day_of(movie):%b %d, %Y}"
    release_label = "Premiere Date"
    release = released
    below_title = str(movie.year)
    if movie.kind == "series":
        below_title = f"{movie.year}-{movie.end_year or ''}"
    if movie.kind == "movie":
        release_label = f"Release Date ({'Theaters' if movie.release_date else 'Streaming'})"
        release += ", Wide" if movie.release_date else ""
        below_title = f"Released {released}"
    # The site tells films apart that share a title.
    shares_title = str(movie.site_id).endswith(f"_{movie.year}")
    return Markup(
        template="replica.html",
        variables={
            "title": f"{movie.title} | Rotten Tomatoes",
            "url": movie.url,
            "linked_type": LINKED_TYPES[movie.kind],
            "linked_name": f"{movie.title} ({movie.year})" if shares_title else movie.title,
            "below_title": [text for text in (movie.certificate, below_title) if text],
            "movie": movie,
            "seasons": title.listed["rottentomatoes"] if movie.kind == "series" else [],
            "day_of": _day_of,
            "release_label": release_label,
            "release": release,
            "box_office": [_dollars(amount.value) for amount in movie.amounts],
            "runtime": _runtime(movie.runtime_minutes),
        },
    )


def list_page(
    collection: Collection, path: str, query: Mapping[str, str], _host: str
) -> Markup | None:
    """Return the first page of a browse list, or as JSON what follows a cursor; otherwise None.

    Lists are movies_in_theaters, tv_series_browse, or all films by popularity. Raises ValueError
    for a cursor that is none.
    """
    beginning, _, name = path.partition("browse/")
    after = query.get("after")
    if beginning == "cnapi/" and after is not None:
        first = int(base64.b64decode(after, validate=True)) + 1
        return _list_page("replica_list.json", collection, name, first)
    if beginning or not name:
        return None
    return _list_page("replica_list.html", collection, name, 0)


def _list_page(template: str, collection: Collection, name: str, first: int) -> Markup:
    titles = collection.series if name.startswith("tv_") else collection
    indexes = list(titles.ids["rottentomatoes"])
    if name.startswith("movies_in_theaters"):
        indexes = indexes[:IN_THEATERS]
    shown = indexes[first : first + BROWSE_ROWS]
    last = first + len(shown) - 1 if shown else max(len(indexes) - 1, 0)
    return Markup(
        template=template,
        variables={
            "title": f"{name} | Rotten Tomatoes",
            "url": f"https://www.rottentomatoes.com/browse/{name}",
            "movies": [titles.title(index).movies["rottentomatoes"] for index in shown],
            "day_of": _day_of,
            "info": {
                "endCursor": base64.b64encode(str(last).encode()).decode(),
                "hasNextPage": last + 1 < len(indexes),
            },
        },
    )


def _day_of(movie: Movie) -> date:
    """Return a title's release, the first of the month or the year where that is all."""
    text = movie.release_date or f"{movie.year}-01"
    return date.fromisoformat(f"{text}-01"[:10])


def _dollars(amount: int) -> str:
    return f"${amount / _MILLION:.1f}M" if amount >= _MILLION else f"${amount / 1000:.1f}K"


def _runtime(minutes: int | None) -> list[str]:
    return [f"{minutes // 60}h {minutes % 60}m".removeprefix("0h ")] if minutes else []
