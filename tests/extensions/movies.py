"""Movies to count: whole ones, and ones that lack a field."""

from datetime import UTC, datetime, timedelta
from typing import Any

from moviecrawler.items import Amount, Credit, Movie, Score

START = datetime(2026, 11, 1, tzinfo=UTC)


def movie(number: int = 1, day: float = 0, lacking: str = "", **fields: Any) -> Movie:
    """Return a movie as a page of Metacritic tells it.

    It is read so many days after the first of November; `lacking` is None in it.
    """
    given: dict[str, Any] = {
        "site": "metacritic",
        "site_id": f"movie/film-{number}",
        "url": f"https://www.metacritic.com/movie/film-{number}/",
        "title": f"Film {number}",
        "kind": "movie",
        "year": 1999,
        "runtime_minutes": 90 + number % 60,
        "genres": ["Drama"],
        "plot": f"What happens in film {number}.",
        "poster_url": f"https://posters.example/{number}.jpg",
        "credits": [
            Credit(name="Ann Lee", role="director", position=1),
            Credit(name="Bo Ash", role="cast", position=1, character="Self"),
        ],
        "scores": [
            Score(kind="metascore", value=70, count=20),
            Score(kind="metacritic_user", value=7.1, count=100),
        ],
        "amounts": [Amount(kind="budget", value=1_000_000, currency="USD")],
        "scraped_at": START + timedelta(days=day),
    }
    return Movie(**{**given, **fields, **({lacking: None} if lacking else {})})
