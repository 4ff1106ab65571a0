"""What IMDb says of one title. Each other site makes its items of that, in its module `replica`."""

from collections.abc import Callable, Iterable
from typing import NamedTuple

from moviecrawler.items import Credit, Movie, Role, Score
from moviecrawler.sites import ID_SITE, SCORE_SITES, SITES
from moviecrawler.sites.replicas import WORDS, SeededRandom, Title, person_name

_FIRST_PERSON = 1_000_000


class Rating(NamedTuple):
    """IMDb's rating of a title."""

    mean: float
    """1.0 to 9.9."""
    votes: int
    """5 and up."""


def add_facts(movie: Movie, index: int, dice: SeededRandom, *, is_upcoming: bool) -> None:
    """Add what IMDb's items of films and series have alike."""
    place = dice.word("places")
    genres = dice.sample(WORDS["genres"], 1 + dice.below(3))
    keywords = [word.lower() for word in dice.sample(WORDS["nouns"], 2 + dice.below(3))]
    certificate = dice.word("certificates" if movie.kind == "movie" else "tv_certificates")
    movie.genres = genres
    movie.certificate = None if is_upcoming or dice.chance(0.1) else certificate
    movie.plot = f"{dice.word('heroes')} {dice.word('deeds')} {place} {dice.word('troubles')}"
    movie.keywords = [*keywords, f"set in {place}".lower()]
    movie.interests = [f"{dice.word('adjectives')} {genres[0]}", *genres]
    movie.popularity_rank = index + 1
    if dice.chance(0.95):
        movie.poster_url = f"https://m.media-amazon.com/images/M/MV5B{movie.site_id}._V1_.jpg"
        movie.poster_width = 1000
        movie.poster_height = 1500


def people(
    role: Role, numbers: Iterable[int], play: Callable[[], str | None] = lambda: None
) -> list[Credit]:
    """Return the credits of some people in one role.

    Each has what `play` returns as a character.
    """
    return [
        Credit(
            name=person_name(one),
            role=role,
            position=place,
            person_id=f"nm{_FIRST_PERSON + one}",
            character=play(),
        )
        for place, one in enumerate(numbers, start=1)
    ]


def character(dice: SeededRandom) -> str | None:
    """Return whom somebody plays: one or two characters, or a part without a name."""
    name = f"{dice.word('honorifics')}{dice.word('characters')} {dice.word('last_names')}"
    return dice.pick((None, f"{name} / {dice.word('characters')}", *[name] * 18))


def imdb_scores(rating: Rating | None) -> list[Score]:
    """Return IMDb's rating."""
    if rating is None:
        return []
    bars = [rating.votes // 10] * 10
    bars[round(rating.mean) - 1] += rating.votes % 10
    return [
        Score(
            kind="imdb",
            value=rating.mean,
            count=rating.votes,
            reviews=rating.votes // 150,
            histogram=bars,
        )
    ]


def rate(title: Title, rating: Rating | None) -> Title:
    """Give a title IMDb's rating, and the scores of other sites that IMDb's page shows."""
    shown = [
        Score(kind=kind, value=score.value)
        for kind, site in SCORE_SITES.items()
        if site in title.movies and f"scores.{kind}" in SITES[ID_SITE].published
        if (score := title.movies[site].score(kind))
    ]
    title.movies[ID_SITE].scores = imdb_scores(rating) + shown
    return title
