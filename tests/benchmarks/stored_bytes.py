"""Bytes a title and site in each store: without and with what a page says beside its facts.

usage: python -m tests.benchmarks.stored_bytes [TITLES]

Invented movies of typical size, a third from each site: the facts of a title with its credits, plot and scores; and, in the second run, the
same with facets of scores, offers, keywords, awards, related titles and the like. Postgres is measured with its indexes, after VACUUM FULL;
CSV with `movies.sqlite3`, as both are kept; MongoDB by the size of its documents; S3 as it is compressed.
"""

from __future__ import annotations

import random
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import bson
from isal import isal_zlib

from moviecrawler.catalogue.stored import document_of_movie, encode_movie
from moviecrawler.items import Award, Credit, Movie, Offer, RelatedTitle, Score, Site
from moviecrawler.pipelines.csv import CsvStore
from moviecrawler.pipelines.postgres import PostgresStore
from tests.benchmarks.harness import numbers, table, write_movies
from tests.pipelines.stored import opened
from tests.services.postgres import PostgresServer, execute, new_database

NOW = datetime(2026, 3, 1, tzinfo=UTC)
PROVIDERS = ("Netflix", "Prime Video", "Apple TV", "Vudu", "Fandango at Home", "Max", "Hulu", "Plex", "Tubi", "Kanopy")


def movies(titles: int, luck: random.Random) -> Iterator[tuple[Movie, dict[str, Any]]]:
    """Yield movies without what is new, and the values of what is."""
    words = ["".join(luck.choices("aeilnorst", k=luck.randint(4, 9))) for _ in range(4_000)]

    def text(count: int) -> str:
        return " ".join(luck.choices(words, k=count))

    def similar(count: int, form: str) -> list[RelatedTitle]:
        named = ((form.format(luck.randrange(titles)), text(3)) for _ in range(count))
        return [RelatedTitle(relation="similar", site_id=site_id, title=title) for site_id, title in named]

    ids: dict[Site, str] = {"imdb": "tt{:07}", "metacritic": "movie/title-{}", "rottentomatoes": "m/title_{}"}
    for number in range(titles):
        site: Site = luck.choice(tuple(ids))
        site_id = ids[site].format(number)
        cast = [
            Credit(
                name=text(2).title(),
                role="cast",
                position=n,
                person_id=f"nm{luck.randrange(10**7):07}",
                character=text(1),
            )
            for n in range(1, 19)
        ]
        crew = [Credit(name=text(2).title(), role="director", position=1, person_id=f"nm{luck.randrange(10**7):07}")]
        movie = Movie(
            site=site, site_id=site_id, url=f"https://{site}.example/{site_id}", title=text(3).title(), kind="movie", year=2001,
            runtime_minutes=100, genres=["Drama", "Mystery"], countries=["United States"], languages=["English"], certificate="R",
            plot=text(40), poster_url=f"https://posters.example/{number}/{text(1)}.jpg", credits=crew + cast, scraped_at=NOW,
        )  # fmt: skip
        more: dict[str, Any]
        if site == "imdb":
            movie.scores = [
                Score(kind="imdb", value=7.1, count=luck.randrange(10**5) + 1),
                Score(kind="metascore", value=70),
            ]
            more = {
                "scores": [
                    replace(movie.scores[0], histogram=[luck.randrange(10**4) for _ in range(10)], reviews=50),
                    movie.scores[1],
                ],
                "keywords": [text(2) for _ in range(5)],
                "interests": ["Psychological Drama", "Drama", "Mystery"],
                "taglines": [text(6)],
                "awards": [Award(event="Oscar", wins=1, nominations=2), Award(event=None, wins=3, nominations=9)],
                "related": similar(12, ids[site]),
                "poster_width": 1000,
                "poster_height": 1500,
            }
        else:
            kinds: Any = ("metascore", "metacritic_user") if site == "metacritic" else ("tomatometer", "popcornmeter")
            movie.scores = [Score(kind=kind, value=7, count=luck.randrange(300) + 1) for kind in kinds]
            facets = [
                replace(score, liked=luck.randrange(200), disliked=luck.randrange(200), sentiment="POSITIVE")
                for score in movie.scores
            ]
            offers = [Offer(provider=name, kind="rent", country="US", price=3.99, currency="USD", quality="HD",
                            url=f"https://{name[:4].lower()}.example/{number}", source="JustWatch") for name in luck.sample(PROVIDERS, 6)]  # fmt: skip
            more = {
                "scores": facets,
                "offers": offers,
                "related": similar(6, ids[site]),
                "external_ids": {"ems": text(2)},
            }
            if site == "rottentomatoes":
                finer: Any = ("tomatometer_top", "popcornmeter_all", "popcornmeter_verified")
                facets += [Score(kind=kind, value=80, count=41, average=7.5, liked=36, disliked=5) for kind in finer]
                more |= {"consensus": text(25)}
        yield movie, more


def sizes(made: list[Movie], server: PostgresServer) -> dict[str, float]:
    """Return bytes a title by store."""
    found: dict[str, float] = {}
    url = new_database(server.url)
    with opened(PostgresStore(url)) as store:
        empty: Any = execute(url, "SELECT pg_database_size(current_database())")
        write_movies(store, made)
    execute(url, "VACUUM FULL")
    full: Any = execute(url, "SELECT pg_database_size(current_database())")
    found["Postgres"] = full[0][0] - empty[0][0]
    with tempfile.TemporaryDirectory() as name:
        with opened(CsvStore(Path(name))) as csv:
            write_movies(csv, made)
        with closing(sqlite3.connect(Path(name) / "movies.sqlite3")) as connection:
            connection.execute("VACUUM")
        found["CSV"] = sum(path.stat().st_size for path in Path(name).iterdir())
    found["MongoDB"] = sum(len(bson.encode(document_of_movie(movie))) for movie in made)
    found["S3"] = len(isal_zlib.compress(b"".join(encode_movie(movie) + b"\n" for movie in made)))
    return {store: size / len(made) for store, size in found.items()}


def main() -> None:
    (titles,) = numbers(3_000, least=(100,))
    made = list(movies(titles, random.Random(1)))  # noqa: S311 - repeatable
    with PostgresServer() as server:
        without = sizes([movie for movie, _ in made], server)
        with_all = sizes([replace(movie, **more) for movie, more in made], server)
    print(f"{titles:,} titles, bytes a title")
    rows = [
        (store, f"{size:,.0f}", f"{with_all[store]:,.0f}", f"{with_all[store] / size:.2f}")
        for store, size in without.items()
    ]
    table(("", "facts", "with all", "ratio"), rows)


if __name__ == "__main__":
    main()
