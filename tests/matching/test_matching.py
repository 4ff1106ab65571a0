"""Which titles of different sites are one, and which only look so."""

from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moviecrawler.items import Credit, Movie, OtherTitle, Score, Site
from moviecrawler.matching.comparing import SAME_ID, Match, compare
from moviecrawler.matching.normalise import normalise
from moviecrawler.matching.titles import match_titles, title_of

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
    **more: Any,
) -> Movie:
    """Return an invented title of a site."""
    movie = Movie(
        site=site,
        site_id=IDS[site].format(number),
        url="",
        title=name,
        year=year,
        **{"kind": "movie", **more},
    )
    movie.runtime_minutes = runtime
    movie.credits = [Credit(name=director, role="director", position=1)] if director else []
    movie.scores = [Score(kind="imdb", value=6.0, count=votes)] if votes else []
    return movie


def match(a: Movie, b: Movie) -> Match:
    return compare(title_of(a), title_of(b))


ours = partial(title, "imdb")
theirs = partial(title, "metacritic")
tomatoes = partial(title, "rottentomatoes")
EPISODE_IV = "Harbour Tales: Episode IV - A Lamp Goes Out"

SAME: dict[str, tuple[Movie, Movie]] = {
    "article, case and sign": (ours("The Salt & the Sea!"), theirs("SALT AND THE SEA")),
    "subtitle on one site only": (
        ours("Brewick: The Long Night", votes=5_000),
        tomatoes("Brewick"),
    ),
    "without the episode": (
        ours(EPISODE_IV, votes=5_000),
        theirs("Harbour Tales: A Lamp Goes Out"),
    ),
    "without the number": (
        ours("Brewick: The Storm", director=LEVIN),
        theirs("Brewick 2: The Storm", director=LEVIN),
    ),
    "translation with the original beside it": (
        ours("The Lamp of a Thousand Years", original_title="千年の灯"),
        tomatoes("千年の灯"),
    ),
    "second title in brackets": (
        ours("Sennen no Akari"),
        tomatoes("A Thousand Years (Sennen no Akari) (Lamps)"),
    ),
    "other spelling": (ours("The Colour of Harbours", votes=5_000), theirs("The Color of Harbors")),
    "year unknown, date known": (
        ours(year=1931, runtime=92),
        tomatoes(year=None, release_date="1931-04", runtime=92),
    ),
    "whose film it is": (
        ours(director=LEVIN),
        tomatoes("Mara Levin's Salt Harbour", director=LEVIN),
    ),
    "next year, neither is IMDb's": (
        theirs(director=LEVIN, runtime=90),
        tomatoes(year=2002, director=LEVIN, runtime=120),
    ),
    "IMDb id, other title": (ours("The Lamp", number=7), theirs("Lys", imdb_id="tt0000007")),
    "IMDb id, other year": (
        ours("The Lamp", 1931, number=7),
        theirs("The Lamp", imdb_id="tt0000007"),
    ),
    "words run together": (ours("Spider Man", votes=5_000), theirs("Spiderman")),
    "another title of IMDb": (
        ours(
            "Sol og vind",
            votes=5_000,
            other_titles=[OtherTitle(title="Sun and Wind", country="US")],
        ),
        theirs("Sun & Wind"),
    ),
    "a small word left out": (ours("Lord of the Rings", votes=5_000), theirs("Lord of Rings")),
}

OTHER: dict[str, tuple[Movie, Movie]] = {
    "same site": (ours(), ours(number=2)),
    "title alone, one year unknown": (ours(director=LEVIN), theirs(year=None)),
    "sequel without number": (ours(director=LEVIN), theirs("Salt Harbour 2", 2002, LEVIN)),
    "sequel by part": (
        ours("Harbour", director=LEVIN),
        theirs("Harbour: Part Two", director=LEVIN),
    ),
    "sequel by volume": (
        ours("Harbour", director=LEVIN),
        theirs("Harbour: Vol. 2 - The Storm", director=LEVIN),
    ),
    "sequel by letter": (
        ours("Harbour", director=LEVIN),
        theirs("Harbour: Part B", director=LEVIN),
    ),
    "sequel in words": (
        ours("Harbour", director=LEVIN),
        theirs("Harbour: The Second Part", director=LEVIN),
    ),
    "sequel of several": (
        ours("Harbour", director=LEVIN),
        theirs("Harbour: Book 2 of 3", director=LEVIN),
    ),
    "spin-off": (ours("Brewick", director=LEVIN), tomatoes("Brewick: Origins", director=QUARRIE)),
    "other words of the same letters": (
        ours("Sunrise in Oslo", votes=5_000),
        theirs("Sunset in Oslo"),
    ),
    "another word, nearly spelt so": (
        ours("Painter in Oslo", votes=5_000),
        theirs("Panther in Oslo"),
    ),
    "series": (ours(), theirs(kind="series")),
    "season of a series": (
        ours(kind="series"),
        theirs(kind="series", season=1, imdb_id="tt0000001"),
    ),
    "other episode": (
        ours("Pilot", kind="episode", season=1, episode=1),
        theirs("Pilot", kind="episode", season=1, episode=2),
    ),
    "other IMDb id": (ours(director=LEVIN, number=7), theirs(director=LEVIN, imdb_id="tt0000008")),
    "IMDb id of a pilot": (
        ours("The Keeper Arrives", 1999, number=7),
        theirs("Brewick", 2003, imdb_id="tt0000007"),
    ),
    "date of a release two years later": (ours(year=2003), tomatoes(release_date="2003-04")),
}


PAIRS = [
    *((name, *pair, 1) for name, pair in SAME.items()),
    *((name, *pair, 2) for name, pair in OTHER.items()),
]


@pytest.mark.promise(
    "Records of one title become one title, and two titles are told apart, each with reasons."
)
@pytest.mark.parametrize(
    ("a", "b", "titles"), [pair[1:] for pair in PAIRS], ids=[pair[0] for pair in PAIRS]
)
def test_one_title_is_recognised_and_two_are_told_apart(a: Movie, b: Movie, titles: int) -> None:
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


RIVALS: dict[str, tuple[list[Movie], Movie, list[int]]] = {
    "the director decides": (
        [ours(director=LEVIN), ours(director=QUARRIE, number=2)],
        tomatoes(director=QUARRIE),
        [1, 2],
    ),
    "the nearer year decides": (
        [ours(year=year, director=LEVIN, number=year) for year in (1961, 2001)],
        tomatoes(year=2002, director=LEVIN),
        [1, 2],
    ),
    "two fit equally": ([ours(), ours(number=2)], tomatoes(), [1, 1, 1]),
    "two tie, and a third is worse": (
        [ours(year=year, number=n) for n, year in enumerate((2001, 2001, 2000))],
        tomatoes(),
        [1, 1, 1, 1],
    ),
    "votes decide": ([ours(votes=250_000), ours(votes=240, number=2)], tomatoes(), [2, 1]),
    "votes that differ too little": (
        [ours(votes=250_000), ours(votes=90_000, number=2)],
        tomatoes(),
        [1, 1, 1],
    ),
}


@pytest.mark.parametrize(("films", "page", "sites"), RIVALS.values(), ids=RIVALS)
def test_a_page_is_joined_only_with_a_film_that_is_ahead_of_its_rivals(
    films: list[Movie], page: Movie, sites: list[int]
) -> None:
    assert [len(row.movies) for row in match_titles([*films, page])] == sites


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


SPELLINGS = [
    ("Romeo + Juliet", "Romeo & Juliet"),
    ("ガラスの城", "ガラスの城"),
    ("Œuvre", "Oeuvre"),
    ("Sæl på Øya", "Sael pa Oya"),
    ("30,000 Harbours", "30000 Harbours"),
    ("Harbour IX", "Harbour 9"),
    ("Keeper, The", "A Keeper (1972)"),
    ("Salt" + " " * 10_000 + "Harbour", "Salt Harbour"),
    ("Harbour: Vol. 2", "Harbour, Volume II"),
    ("Harbour, Pt. I", "Harbour: Part One"),
    ("Harbour Ch. 3", "Harbour Chapter 3"),
    ("Harbour: Book I", "Harbour: Book One"),
    ("Harbour, Pt. A", "Harbour: Part A"),
    ("Harbour No. 5", "Harbour: Number Five"),
    ("Harbour XXX", "Harbour 30"),
    ("Salt v. Storm", "Salt vs Storm"),
    ("Seven Lamps", "7 Lamps"),
    ("Thirteen Lamps", "13 Lamps"),
]
APART = [("X", "10"), ("The V", "5"), ("Ten", "10"), ("Keeper X", "Keeper 10"), ("Vol", "Volume")]
APART += [("千と", "千年"), ("क", "कि"), ("か", "が"), ("!!!", "???"), ("The", "A")]


@pytest.mark.parametrize(
    ("one", "other", "equal"), [*((*p, True) for p in SPELLINGS), *((*p, False) for p in APART)]
)
def test_spellings_of_a_title_are_equal_and_titles_of_every_script_stay_apart(
    one: str, other: str, *, equal: bool
) -> None:
    assert (normalise(one) == normalise(other)) is equal


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
