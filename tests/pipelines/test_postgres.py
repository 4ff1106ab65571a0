"""The Postgres store's own promises: what stands in its tables, and which records are one title."""

import random
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg2
import pytest

from moviecrawler.items import Credit, Movie, Score
from moviecrawler.pipelines.postgres import PostgresStore
from tests.pipelines.pages import ALL
from tests.runs import BEGIN, make_movie, running, title
from tests.services.postgres import execute, postgres_movies
from tests.stored import board_of, groups, write


@pytest.mark.promise("A title has one record a site, however often it is crawled.")
def test_writing_again_changes_nothing(database_url: str) -> None:
    tables = ("titles", "scores", "score_history", "credits", "people", "offers")
    statements = [f"SELECT ctid, * FROM {table} ORDER BY 2, 3" for table in tables]  # noqa: S608
    states = []
    for _ in range(2):
        write(database_url, *ALL, make_movie(1))
        states.append([execute(database_url, statement) for statement in statements])
    assert states[0] == states[1]


def test_people_are_one_row_each_with_their_newest_name(database_url: str) -> None:
    def named(name: str, age: int, number: int) -> Movie:
        credit = Credit(name=name, role="cast", position=1, person_id="nm0000009")
        return make_movie(
            number, age, credits=[credit, Credit(name="An Extra", role="cast", position=2)]
        )

    write(
        database_url, named("O. Farrow", 60, 1), named("Odile Farrow", 0, 2), named("Farrow", 90, 3)
    )
    assert execute(database_url, "SELECT person_id, name FROM people ORDER BY name") == [
        (None, "An Extra"),
        ("nm0000009", "Odile Farrow"),
    ]


@pytest.mark.promise("Postgres keeps each value that a score had.")
def test_the_history_keeps_each_value_that_a_score_had(database_url: str) -> None:
    def scored(days: int, *values: float, mean: float = 7.9) -> Movie:
        scores = [
            Score(kind="tomatometer", value=value, count=10, average=mean) for value in values
        ]
        return make_movie(1, scores=scores, scraped_at=BEGIN + timedelta(days=days))

    for movie in (
        scored(0, 7.5),
        scored(1, 7.5),
        scored(2, 7.6),
        scored(3),
        scored(4, 7.6),
        scored(5, 7.6, mean=8.1),
    ):
        write(database_url, movie)
    history = execute(database_url, "SELECT since, value::float FROM score_history ORDER BY since")
    assert history == [
        (BEGIN + timedelta(days=days), value)
        for days, value in ((0, 7.5), (2, 7.6), (3, None), (4, 7.6), (5, 7.6))
    ]


LONG = "".join(chr(0x4E00 + 7919 * n % 20_000) for n in range(10_000))
"""Too long for an index, however well it is compressed."""


BAD: list[dict[str, Any]] = [
    {"site_id": "tt\0"},
    {"popularity_rank": 10**30},
    {"year": 15},
    {"scores": [Score(kind="imdb", value=930)]},
    {"scores": [Score(kind="imdb", value=float("nan"))]},
    {"scores": [Score(kind="critics", value=7)]},
    {"scores": [Score(kind="imdb", value=7), Score(kind="imdb", value=8)]},
    {
        "credits": [
            Credit(name="A", role="cast", position=1),
            Credit(name="B", role="cast", position=1),
        ]
    },
    {"credits": [Credit(name=LONG, role="cast", position=1)]},
    {"scraped_at": None},
]


@pytest.mark.promise("An item that a store can't hold is rejected alone, with its reason.")
async def test_bad_values_are_rejected_alone(database_url: str, tmp_path: Path) -> None:
    """One in each batch of ten."""
    async with running(PostgresStore(database_url), tmp_path, batch_seconds=60) as run:
        for number in range(10 * len(BAD)):
            changes = BAD[number // 10] if number % 10 == 3 else {}
            await run.process(make_movie(number, **changes))
    good = {f"tt{number:07}" for number in range(10 * len(BAD)) if number % 10 != 3}
    assert {site_id for site_id, outcome in run.outcomes().items() if outcome == "durable"} == good
    assert len(run.rejected()) == len(run.outcomes()) - len(good) == len(BAD)
    assert {movie.site_id for movie in postgres_movies(database_url)} == good
    assert execute(database_url, "SELECT count(*) FROM titles") == [(len(good),)]


ID = "tt0000001"


@pytest.mark.parametrize("seed", range(3))
def test_titles_are_joined_in_whatever_order_they_come(database_url: str, seed: int) -> None:
    """The last but one of each row fits two titles equally well, and so none."""
    movies = [
        title("imdb", ID, imdb_id=ID, year=2001),
        title("rottentomatoes", "m/salt_harbour", year=2002),
        title("metacritic", "movie/salt-harbour", imdb_id=ID, year=2001),
        title("imdb", "tt0000002", title="The Lamp", year=1990),
        title("rottentomatoes", "m/the_lamp", title="The Lamp", year=1990),
        title("imdb", "tt0000003", title="Lamp", year=1990),
        title("imdb", "tt0000004", title="The Lighthouse Keeper", year=1980),
        title("metacritic", "movie/lighthouse-keeper", title="Lighthouse Keeper", year=1980),
    ]
    chance = random.Random(seed)  # noqa: S311 - repeatable
    chance.shuffle(movies)
    while movies:
        count = chance.randint(1, len(movies))
        write(database_url, *movies[:count])
        del movies[:count]
    assert groups(database_url) == {
        "m/salt_harbour movie/salt-harbour tt0000001",
        "tt0000002",
        "m/the_lamp",
        "tt0000003",
        "movie/lighthouse-keeper tt0000004",
    }
    assert execute(database_url, "SELECT count(*) FROM titles") == [(5,)]


def test_what_a_title_turns_out_to_be_changes_what_it_is_joined_to(database_url: str) -> None:
    write(database_url, title("imdb", ID, imdb_id=ID, year=2001))
    write(database_url, title("rottentomatoes", "m/salt_harbour", source="list"))
    assert len(groups(database_url)) == 2
    page = title(
        "rottentomatoes", "m/salt_harbour", year=2001, scraped_at=BEGIN + timedelta(seconds=1)
    )
    write(database_url, page, margin=3600)
    assert groups(database_url) == {"m/salt_harbour tt0000001"}
    corrected = replace(page, year=1950, scraped_at=BEGIN + timedelta(days=1))
    write(database_url, corrected)
    assert len(groups(database_url)) == 2
    assert execute(database_url, "SELECT count(*) FROM titles") == [(2,)]


def test_a_correction_stays_and_touches_no_fact(database_url: str) -> None:
    movies = [
        title("imdb", ID, imdb_id=ID, year=2001),
        title("imdb", "tt0000002", imdb_id="tt0000002", year=1950),
        title(
            "rottentomatoes",
            "m/salt_harbour",
            year=2001,
            scores=[Score(kind="tomatometer", value=80)],
        ),
    ]
    write(database_url, *movies)
    assert "m/salt_harbour tt0000001" in groups(database_url)
    facts = execute(database_url, "SELECT ctid, * FROM scores")
    target = "(SELECT title_id FROM records WHERE site_id = 'tt0000002')"
    execute(database_url, f"SELECT move_record('rottentomatoes', 'm/salt_harbour', {target})")
    assert execute(database_url, "SELECT ctid, * FROM scores") == facts

    # Not even another title that fits better comes between them.
    later = BEGIN + timedelta(days=1)
    write(
        database_url,
        *(replace(movie, original_title="Salthavn", scraped_at=later) for movie in movies),
    )
    write(database_url, title("rottentomatoes", "m/salt_harbour_1950", year=1950))
    assert groups(database_url) == {ID, "m/salt_harbour tt0000002", "m/salt_harbour_1950"}
    execute(database_url, "SELECT move_record('rottentomatoes', 'm/salt_harbour')")
    assert "m/salt_harbour" in groups(database_url)
    for arguments, refusal in (
        ("'rottentomatoes', 'm/none'", "no record"),
        (f"'imdb', '{ID}', {target}", "move that one first"),
    ):
        with pytest.raises(psycopg2.Error, match=refusal):
            execute(database_url, f"SELECT move_record({arguments})")


def test_a_database_without_tables_has_an_empty_scoreboard(empty_database_url: str) -> None:
    assert board_of(empty_database_url) == []


def test_the_scoreboard_view_holds_every_score_with_its_count_and_means(database_url: str) -> None:
    scores = [Score(kind="imdb", value=8.5, count=900), Score(kind="metascore", value=60)]
    write(database_url, title("imdb", ID, imdb_id=ID, year=2001, runtime_minutes=90, scores=scores))
    tomatoes = [Score(kind="tomatometer", value=90, count=30), Score(kind="popcornmeter", value=75)]
    write(
        database_url,
        title("rottentomatoes", "m/salt_harbour", year=2001, scores=tomatoes),
    )
    critics = [Score(kind="metascore", value=62)]  # IMDb's page shows an older one
    write(database_url, title("metacritic", "movie/salt-harbour", year=2001, scores=critics))
    write(
        database_url,
        title("metacritic", "movie/salt", title="Salt", scores=[Score(kind="metascore", value=50)]),
    )
    query = (
        "SELECT to_jsonb(s), ARRAY[critics_mean, users_mean, overall, scores_known]::float[]"
        " FROM scoreboard s ORDER BY imdb_id"
    )
    rows: Any = execute(database_url, query)
    (row, means), (other, of_critics) = rows
    told: dict[str, Any] = {
        "imdb_url": f"https://example.com/{ID}",
        "imdb_votes": 900,
        "imdb_rating_100": 85,
        "metacritic_user_score": None,
        "metascore_100": 62,
        "popcornmeter": 75,
        "rottentomatoes_id": "m/salt_harbour",
        "tomatometer_100": 90,
        "tomatometer_reviews": 30,
    }
    assert row.items() >= told.items()
    assert row.items() >= told.items()
    assert row["matched_by"] == [
        same := "same title, same year",
        f"{same}, but only 900 votes on IMDb",
    ]
    assert (means, of_critics) == ([76, 80, 78, 4], [50, None, None, 1])
    assert (other["title"], other["metacritic_id"]) == ("Salt", "movie/salt")
