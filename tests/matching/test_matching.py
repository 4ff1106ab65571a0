"""Which titles of different sites are one, and which only look so."""

import tomllib
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moviecrawler.items import Credit, Movie, OtherTitle, Score, Site
from moviecrawler.matching.comparing import SAME_ID, Match, compare
from moviecrawler.matching.normalise import normalise
from moviecrawler.matching.titles import match_titles, title_of
from tests import written

IDS: dict[Site, str] = {"imdb": "tt{:07}", "metacritic": "movie/t-{}", "rottentomatoes": "m/t_{}"}
LEVIN = "Mara Levin"
QUARRIE = "Ines Quarrie"


def title(
    site: Site,
    name: str = "Salt Harbour",
    year: int | None = 2001,
    director: str | None = None,
    runtime: int | None = None,
    *,
    number: int = 1,
    votes: int | None = None,
    other: str = "",
    **more: Any,
) -> Movie:
    """Return an invented title of a site."""
    movie = Movie(
        site=site,
        site_id=IDS[site].format(number),
        url="",
        title=name,
        year=year or None,
        **{"kind": "movie", **more},
    )
    movie.runtime_minutes = runtime
    movie.credits = [Credit(name=director, role="director", position=1)] if director else []
    movie.scores = [Score(kind="imdb", value=6.0, count=votes)] if votes else []
    movie.other_titles = [OtherTitle(title=other)] if other else []
    return movie


def match(a: Movie, b: Movie) -> Match:
    return compare(title_of(a), title_of(b))


ours = partial(title, "imdb")
theirs = partial(title, "metacritic")
tomatoes = partial(title, "rottentomatoes")
CASES = tomllib.loads(Path(__file__).with_name("titles.toml").read_text("utf-8"))


@pytest.mark.promise(
    "Records of one title become one title, and two titles are told apart, each with reasons."
)
@pytest.mark.parametrize("case", [name for name in CASES if len(CASES[name]["movies"]) == 2])
def test_one_title_is_recognised_and_two_are_told_apart(case: str) -> None:
    a, b = (title(**fields) for fields in CASES[case]["movies"])
    titles = len(CASES[case]["sites"])
    found = match(a, b)
    backwards = match(b, a)
    assert found.accepted == backwards.accepted == (titles == 1), found.reasons
    assert titles == 2 or (found.reasons and found.score == backwards.score)
    assert len(match_titles([a, b])) == len(match_titles([b, a])) == titles


@pytest.mark.promise(
    "Records of one title become one title, and two titles are told apart, each with reasons."
)
def test_a_match_gives_its_score_and_reasons() -> None:
    found = match(ours(director=LEVIN), theirs(year=2002, director=LEVIN, imdb_id="tt0000001"))
    assert found.score == 4 + 1 + 0.75 + 1.5
    assert found.reasons == ["same IMDb id", "same title", "years 2001 and 2002", "same director"]


def test_three_sites_become_one_row_with_the_surest_match_first() -> None:
    imdb = ours(director=LEVIN)
    one = tomatoes()
    other = theirs("Havn av salt", imdb_id="tt0000001")
    (row,) = match_titles([one, other, imdb])
    assert row.movies == {"imdb": imdb, "rottentomatoes": one, "metacritic": other}
    assert [found.score >= SAME_ID for found in row.matches] == [True, False]


@pytest.mark.parametrize("case", CASES)
def test_a_page_is_joined_only_with_a_film_that_is_ahead_of_its_rivals(case: str) -> None:
    movies = [title(**fields) for fields in CASES[case]["movies"]]
    assert [len(row.movies) for row in match_titles(movies)] == CASES[case]["sites"]


def test_a_key_that_too_many_share_is_left_out_and_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("moviecrawler.matching.titles.LARGEST_BLOCK", 1)
    films = [ours("Brewick: The Night", director=LEVIN), tomatoes("Quarry: The Night")]
    crowded: set[str] = set()
    rows = match_titles([*films, tomatoes("Brewick: The Night", director=LEVIN)], crowded)
    assert [len(row.movies) for row in rows] == [2, 1]
    assert crowded == {"night"}


def test_a_third_site_can_not_bridge_two_titles_that_contradict_each_other() -> None:
    joined = match_titles([ours(number=7), theirs(imdb_id="tt0000008"), tomatoes()])
    assert sorted(len(row.movies) for row in joined) == [1, 2]
    assert not any({"imdb", "metacritic"} <= set(row.movies) for row in joined)


SPELLINGS = written.rows(__file__, "spellings.txt")
SPELLINGS.append(["equal", f"Salt{' ' * 10_000}Harbour", "Salt Harbour"])


@pytest.mark.parametrize(("verdict", "one", "other"), SPELLINGS)
def test_spellings_of_a_title_are_equal_and_titles_of_every_script_stay_apart(
    verdict: str, one: str, other: str
) -> None:
    assert (normalise(one) == normalise(other)) is (verdict == "equal")


SITES: list[Site] = ["imdb", "metacritic", "rottentomatoes"]
MOVIES = st.lists(
    st.builds(
        title,
        st.sampled_from(SITES),
        st.sampled_from(
            [
                "Salt Harbour",
                "The Salt Harbour",
                "Salt Harbours",
                "Brewick: Salt Harbour",
                "Brewick",
            ]
        ),
        st.sampled_from([None, 2000, 2001, 2002]),
        st.sampled_from([None, LEVIN, QUARRIE]),
        imdb_id=st.sampled_from([None, "tt0000001", "tt0000002"]),
    ),
    max_size=12,
)


@settings(max_examples=60)
@given(MOVIES)
def test_every_movie_stands_in_one_row_and_no_row_contradicts_itself(movies: list[Movie]) -> None:
    joined = match_titles(movies)
    assert sorted(id(movie) for row in joined for movie in row.movies.values()) == sorted(
        map(id, movies)
    )
    for row in joined:
        assert all(movie.site == site for site, movie in row.movies.items())
        assert len(row.matches) == len(row.movies) - 1
        assert len({movie.imdb_id for movie in row.movies.values() if movie.imdb_id}) <= 1
    assert match_titles(movies) == joined
