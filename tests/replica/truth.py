"""What a right reader gets from the replica's title pages, as the project's own items."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from moviecrawler.extract.values import parse_count
from moviecrawler.items import Amount, Credit, Movie, Score
from moviecrawler.replica import imdb, metacritic, rottentomatoes
from moviecrawler.urls import title_url
from tests.replica.more_truth import say_more

if TYPE_CHECKING:
    from collections.abc import Iterable

    from moviecrawler.items import Role, ScoreKind, Site
    from moviecrawler.replica.facts import MetacriticFacts, Person, ReplicaMovie, RottenTomatoesFacts
    from moviecrawler.replica.movies import Catalogue


def truth(catalogue: Catalogue, site: Site, index: int) -> Movie | None:
    """Return what a site's page says of a movie, without `scraped_at` and lists; None when it has no such page."""
    movie = catalogue.movie(index)
    if site == "imdb":
        found = imdb_truth(movie, catalogue.top_ranks.get(index))
    elif site == "metacritic":
        if movie.metacritic is None:
            return None
        found = metacritic_truth(movie, movie.metacritic, metacritic.MOVIE)
    else:
        if movie.rottentomatoes is None:
            return None
        found = rottentomatoes_truth(movie, movie.rottentomatoes, f"m/{movie.rottentomatoes.slug}")
    say_more(found, catalogue, movie)
    return found


def imdb_truth(movie: ReplicaMovie, rank: int | None) -> Movie:
    """Return the facts of any title's page on IMDb."""
    basics = movie.basics
    amounts: list[tuple[Literal["budget", "opening_weekend", "domestic", "worldwide"], int | None]] = [
        ("budget", movie.budget),
        ("opening_weekend", movie.opening_weekend),
        ("domestic", movie.domestic_gross),
        ("worldwide", movie.worldwide_gross),
    ]
    rating, votes = movie.rating or (None, None)
    return Movie(
        site="imdb",
        site_id=movie.imdb_id,
        imdb_id=movie.imdb_id,
        url=title_url("imdb", movie.imdb_id),
        title=basics.title,
        original_title=basics.original_title,
        kind="movie",
        title_type=basics.title_type,
        year=basics.year,
        release_date=movie.release.iso,
        runtime_minutes=basics.runtime_minutes,
        genres=list(basics.genres),
        countries=[basics.country.name],
        languages=[basics.country.language],
        certificate=movie.certificate,
        plot=movie.plot,
        poster_url=imdb.poster_url(movie),
        credits=_credits(movie, "{0.imdb_id}", imdb.CAST_ON_TITLE_PAGE),
        poster_width=imdb.POSTER_SIZE[0] if movie.has_poster else None,
        poster_height=imdb.POSTER_SIZE[1] if movie.has_poster else None,
        scores=[*_score("imdb", rating, votes), *_score("metascore", movie.metascore, None)],
        amounts=[Amount(kind=kind, value=value, currency="USD") for kind, value in amounts if value is not None],
        imdb_top250_rank=rank,
        popularity_rank=movie.index + 1,
        critic_review_count=imdb.critic_review_count(movie) or None,
    )


def metacritic_truth(movie: ReplicaMovie, facts: MetacriticFacts, kind: metacritic.Kind) -> Movie:
    """Return the facts of any title's page on Metacritic."""
    basics, site_id = movie.basics, f"{kind.path}/{facts.slug}"
    return Movie(
        site="metacritic",
        site_id=site_id,
        imdb_id=movie.imdb_id if facts.names_imdb_id else None,
        url=title_url("metacritic", site_id),
        title=basics.title,
        kind="movie",
        year=facts.year,
        release_date=facts.release.iso,
        runtime_minutes=basics.runtime_minutes,
        genres=list(basics.genres),
        certificate=movie.certificate,
        plot=movie.plot,
        poster_url=metacritic.poster_url(movie),
        credits=_credits(movie, "person/{0.slug}", metacritic.CAST_SHOWN, creators_write=True),
        poster_width=metacritic.POSTER_SIZE[0] if movie.has_poster else None,
        poster_height=metacritic.POSTER_SIZE[1] if movie.has_poster else None,
        scores=[
            *_score("metascore", facts.metascore, facts.critic_reviews),
            *_score("metacritic_user", facts.user_score, facts.user_ratings),
        ],
    )


def rottentomatoes_truth(movie: ReplicaMovie, facts: RottenTomatoesFacts, site_id: str) -> Movie:
    """Return the facts of any title's page on Rotten Tomatoes."""
    basics = movie.basics
    gross = rottentomatoes.box_office(movie)
    return Movie(
        site="rottentomatoes",
        site_id=site_id,
        url=title_url("rottentomatoes", site_id),
        title=basics.title,
        kind="movie",
        year=facts.release.year,
        release_date=None if facts.streaming_only else facts.release.iso,
        runtime_minutes=basics.runtime_minutes,
        genres=list(basics.genres),
        languages=[basics.country.language],
        certificate=movie.certificate,
        plot=movie.plot,
        poster_url=rottentomatoes.poster_url(movie),
        credits=_credits(movie, "{0.celebrity}", rottentomatoes.CAST_SHOWN),
        amounts=[Amount(kind="domestic", value=parse_count(gross[1:])[0], currency="USD")] if gross else [],
    )


def _credits(movie: ReplicaMovie, person_id: str, cast_shown: int, *, creators_write: bool = False) -> list[Credit]:
    """Return the credits that a page shows; `person_id` is the form of the site's ids. Metacritic has creators among the writers, too."""

    def listed(role: Role, people: Iterable[tuple[Person, str | None]]) -> list[Credit]:
        return [
            Credit(
                name=person.name,
                role=role,
                position=position,
                person_id=person_id.format(person),
                character=character,
            )
            for position, (person, character) in enumerate(people, start=1)
        ]

    creators = movie.credits.creators
    writers = (*(creators if creators_write else ()), *movie.credits.writers)
    return [
        *listed("director", ((person, None) for person in movie.credits.directors)),
        *listed("writer", ((person, None) for person in writers)),
        *listed("creator", ((person, None) for person in creators)),
        *listed("cast", movie.credits.cast[:cast_shown]),
    ]


def _score(kind: ScoreKind, value: float | None, count: int | None) -> list[Score]:
    return [] if value is None else [Score(kind=kind, value=float(value), count=count)]
