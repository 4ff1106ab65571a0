"""How often `similar_titles` finds what a site recommends beside a title, when it isn't told.

usage: python -m tests.benchmarks.similar_titles [TITLES] [ASKED]

An invented world: each title is about two of 300 subjects. Its five keywords, its interests, its director and half of its cast are drawn from
those of its subjects, the rest from what all titles share; a few are popular, most are not. Its site recommends the twelve titles
that most of its users liked too: those with the same subjects, and the popular ones before others. Nothing that is stored
names a subject. A title's own recommendations are left out of the ranking (`own_recommendations`: false), and looked for among its first 50.
Other titles' recommendations count.
"""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime

import psycopg2

from moviecrawler.items import Credit, Movie, RelatedTitle
from moviecrawler.pipelines.postgres import PostgresStore
from tests.benchmarks.harness import numbers, write_movies
from tests.pipelines.stored import opened
from tests.services.postgres import PostgresServer, execute, new_database

SUBJECTS = 300
RECOMMENDED = 12
FIRST = 50
RANKING = """
SELECT t.imdb_id FROM similar_titles((SELECT title_id FROM titles WHERE imdb_id = %s), %s, false) s JOIN titles t USING (title_id)
"""
NOW = datetime(2026, 3, 1, tzinfo=UTC)


def world(titles: int, luck: random.Random) -> Iterator[Movie]:
    """Yield the titles, the most popular first."""
    subjects = [luck.sample(range(SUBJECTS), 2) for _ in range(titles)]
    of_subject: list[list[int]] = [[] for _ in range(SUBJECTS)]
    for number, about in enumerate(subjects):
        for subject in about:
            of_subject[subject].append(number)

    def common(count: int) -> int:
        """Return a number below `count`, the low ones far more often."""
        return int(count * luck.random() ** 3)

    def keyword(about: list[int]) -> str:
        return f"word {luck.choice(about)}-{common(30)}" if luck.random() < 0.6 else f"common {common(400)}"

    def person(about: list[int], chance: float) -> str:
        return f"s{luck.choice(about)}x{common(40)}" if luck.random() < chance else f"a{common(20_000)}"

    for number in range(titles):
        about = subjects[number]
        rivals = [n for n in {n for subject in about for n in of_subject[subject]} if n != number]
        # Users like what is alike, what is popular, and what they like.
        rivals += [common(titles) for _ in range(20)]
        liked = {
            n: len({*subjects[n]} & {*about}) + (1 - n / titles) + luck.gauss(0, 0.5) for n in rivals if n != number
        }
        people = {person(about, 0.5): None for _ in range(8)}
        yield Movie(
            site="imdb",
            site_id=f"tt{number:07}",
            imdb_id=f"tt{number:07}",
            url=f"https://www.imdb.com/title/tt{number:07}/",
            title=f"Title {number}",
            kind="movie",
            scraped_at=NOW,
            keywords=list(dict.fromkeys(keyword(about) for _ in range(5))),
            interests=list(
                dict.fromkeys(
                    f"interest {(luck.choice(about) if luck.random() < 0.7 else common(SUBJECTS)) % 60}"
                    for _ in range(3)
                )
            ),
            credits=[
                Credit(name=(name := person(about, 0.7)), role="director", position=1, person_id=f"nm{name}"),
                *(
                    Credit(name=name, role="cast", position=n, person_id=f"nm{name}")
                    for n, name in enumerate(people, 1)
                ),
            ],
            related=[
                RelatedTitle(relation="similar", site_id=f"tt{n:07}", title=f"Title {n}")
                for n in sorted(liked, key=lambda n: -liked[n])[:RECOMMENDED]
            ],
        )


def main() -> None:
    titles, asked = numbers(20_000, 200, least=(200, 1))
    asked = min(asked, titles)
    luck = random.Random(1)  # noqa: S311 - repeatable
    movies = list(world(titles, luck))
    with PostgresServer() as server:
        url = new_database(server.url)
        with opened(PostgresStore(url)) as store:
            write_movies(store, movies)
        execute(url, "VACUUM ANALYZE")
        ours, alone, popularity = (
            "similar_titles",
            "the same, without other titles' recommendations",
            "popularity alone",
        )
        shares: dict[str, list[float]] = {ours: [], alone: [], popularity: []}
        taken = []
        popular = {movie.site_id for movie in movies[: FIRST + 1]}
        with closing(psycopg2.connect(url)) as connection, connection.cursor() as cursor:

            def ask(way: str) -> None:
                for movie in luck.sample(movies, asked):
                    wanted = {other.site_id for other in movie.related}
                    began = time.perf_counter()
                    cursor.execute(RANKING, (movie.site_id, FIRST))
                    found = {imdb_id for (imdb_id,) in cursor.fetchall()}
                    shares[way].append(len(found & wanted) / len(wanted))
                    if way == ours:
                        taken.append(time.perf_counter() - began)
                        shares[popularity].append(len(popular - {movie.site_id} & wanted) / len(wanted))

            ask(ours)
            cursor.execute("UPDATE records SET related = '[]'")
            ask(alone)
    print(f"{titles:,} titles; of the {RECOMMENDED} recommendations of {asked} of them, among the first {FIRST}:")
    for label, share in shares.items():
        print(f"  {label:50} {statistics.mean(share):7.1%}")
    print(f"a ranking takes {1000 * statistics.median(taken):.0f} ms, {1000 * max(taken):.0f} ms at most")


if __name__ == "__main__":
    main()
