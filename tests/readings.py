"""Readings of one invented series, and what they say.

Of each field they have a value, a stated absence or nothing.
"""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

from moviecrawler.items import Amount, Award, Credit, Movie, Offer, RelatedTitle, Score
from moviecrawler.sites import SITES
from moviecrawler.sites.fields import column_of, columns_of
from tests.tables import NUMBERS, TEXT_LISTS

_IMDB = SITES["imdb"]
TOLD = sorted(_IMDB.published.union(_IMDB.published_of_kind["series"], ["credits.creator"]))
"""Fields and parts of fields, as the site's profile names them."""
START = datetime(2026, 11, 1, tzinfo=UTC)
_TEXTS = ("one", "two", "three")


def reading(luck: Random, number: int = 1, day: float = 0) -> Movie:
    """Return a reading of the series of a number, made so many days after the start."""
    site_id = f"tt9{number:06}"
    movie = Movie(
        site="imdb",
        site_id=site_id,
        imdb_id=site_id,
        url=f"https://www.imdb.com/title/{site_id}/",
        title=f"Harbour {number}",
        kind="series",
        source=luck.choice(["page", "page", "list"]),
        scraped_at=START + timedelta(days=day),
    )
    for name in TOLD:
        state = luck.choice(["value", "absent", "silent"])
        if state == "silent":
            movie.unknown_fields.append(column_of(name))
        elif state == "value":
            _give(movie, name, luck)
    movie.unknown_fields = columns_of("imdb", movie.unknown_fields)
    return movie


def _give(movie: Movie, name: str, luck: Random) -> None:
    part, _, kind = name.partition(".")
    known: Any = kind
    number = luck.randint(1, 9)
    text = luck.choice(_TEXTS)
    if part == "scores":
        _give_score(movie, known, luck)
    elif part == "amounts":
        movie.amounts.append(Amount(kind=known, value=number, currency="USD"))
    elif part == "credits":
        movie.credits += [
            Credit(name=name, role=known, position=n)
            for n, name in enumerate(_TEXTS[: number % 3 + 1], 1)
        ]
    elif part == "related":
        movie.related.append(RelatedTitle(relation=known, site_id=f"tt8{number:06}", title=text))
    elif name == "offers":
        movie.offers = [Offer(provider=text, kind="ads")]
    elif name == "awards":
        movie.awards = [Award(event=None, wins=number, nominations=0)]
    elif name in TEXT_LISTS:
        setattr(movie, name, list(_TEXTS[: number % 3 + 1]))
    elif name in NUMBERS:
        setattr(movie, name, 1990 + number if name in {"year", "end_year"} else number)
    else:
        setattr(movie, name, f"201{number}-01-01" if name == "release_date" else text)


def _give_score(movie: Movie, kind: Any, luck: Random) -> None:
    count = luck.choice([None, 1, 1_000])
    reviews = luck.choice([None, 1, 1_000])
    score = Score(kind=kind, value=luck.randint(1, 10), count=count)
    movie.scores.append(score)
    if kind == "imdb":
        score.reviews = reviews
        score.histogram = luck.choice([[], list(range(10))])
        unsaid = [fact for fact in ("count", "reviews", "histogram") if not getattr(score, fact)]
        movie.unknown_fields += [
            column_of(f"scores.imdb.{fact}") for fact in unsaid if luck.random() < 1 / 2
        ]


def said(movie: Movie, name: str) -> str | None:
    """Return what a movie says of a field, None for nothing.

    The number of votes is a field of its own, and when it was said is none.
    """
    if column_of(name) in movie.unknown_fields:
        return None
    if name == "offers":
        return f"{[replace(offer, seen_at=None) for offer in movie.offers]}"
    part, _, kind = name.partition(".")
    if part == "scores":
        kind, _, fact = kind.partition(".")
        score = next((score for score in movie.scores if score.kind == kind), None)
        if fact:
            return None if score is None else f"{fact} {getattr(score, fact)}"
        return f"score {score.value if score else None}"
    found = getattr(movie, part)
    if not kind:
        return f"{found}"
    kinds = ("role", "kind", "relation")
    return f"{[each for each in found if kind in [getattr(each, of, '') for of in kinds]]}"
