"""Which titles of different sites are one, and which only look so."""

from __future__ import annotations

import random
import re
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moviecrawler.catalogue import matching
from moviecrawler.catalogue.comparing import compare
from moviecrawler.catalogue.matching import SAME_ID, Match, join, match
from moviecrawler.catalogue.normalise import normalise
from moviecrawler.items import Credit, Movie, Score

if TYPE_CHECKING:
    from moviecrawler.catalogue.forms import Title
    from moviecrawler.items import Site

IDS: dict[Site, str] = {"imdb": "tt{:07}", "metacritic": "movie/t-{}", "rottentomatoes": "m/t_{}"}


def title(
    site: Site, name: str, year: int | None = None, director: str | None = None, number: int = 1, **more: Any
) -> Movie:
    """Return an invented title of a site."""
    directors = [Credit(name=director, role="director", position=1)] if director else []
    site_id = IDS[site].format(number)
    return Movie(
        **{"kind": "movie", **more}, site=site, site_id=site_id, url="", title=name, year=year, credits=directors
    )


LEVIN = "Mara Levin"

SAME: dict[str, tuple[Movie, Movie]] = {
    "title and year": (title("imdb", "Salt Harbour", 2001), title("metacritic", "Salt Harbour", 2001)),
    "a year apart": (title("imdb", "Salt Harbour", 2001), title("rottentomatoes", "Salt Harbour", 2002)),
    "year unknown, same director": (
        title("imdb", "Salt Harbour", 2001, LEVIN),
        title("rottentomatoes", "Salt Harbour", None, LEVIN),
    ),
    "article, case and sign": (
        title("imdb", "The Salt & the Sea!", 2001),
        title("metacritic", "SALT AND THE SEA", 2001),
    ),
    "accents": (title("imdb", "Élodie à Brôme", 2001), title("rottentomatoes", "Elodie a Brome", 2001)),
    "letters that don't decompose": (title("imdb", "Sæl på Øya", 2001), title("metacritic", "Sael pa Oya", 2001)),
    "apostrophes": (title("imdb", "Levin's Lamp", 2001), title("metacritic", "Levin\u2019s Lamp", 2001)),
    "roman numeral": (title("imdb", "Harbour III", 2001), title("rottentomatoes", "Harbour 3", 2001)),
    "number word": (title("imdb", "Harbour: Part Two", 2001), title("metacritic", "Harbour: Part II", 2001)),
    "year in the title": (title("imdb", "Salt Harbour", 2001), title("metacritic", "Salt Harbour (2001)", 2001)),
    "label in the title": (
        title("imdb", "Harbour", 1950, LEVIN),
        title("metacritic", "Harbour [re-release]", 2009, LEVIN),
    ),
    "subtitle on one site only": (
        title("imdb", "Brewick: The Long Night of the Keeper", 2001),
        title("rottentomatoes", "Brewick", 2001),
    ),
    "only the subtitle": (
        title("imdb", "Harbour Tales: Episode IV - A Lamp Goes Out", 2001),
        title("metacritic", "A Lamp Goes Out", 2001),
    ),
    "without the episode": (
        title("imdb", "Harbour Tales: Episode IV - A Lamp Goes Out", 2001),
        title("metacritic", "Harbour Tales: A Lamp Goes Out", 2001),
    ),
    "translation with the original beside it": (
        title("imdb", "The Lamp of a Thousand Years", 2001, original_title="千年の灯"),
        title("rottentomatoes", "千年の灯", 2001),
    ),
    "translation in brackets": (
        title("imdb", "Sennen no Akari", 2001),
        title("rottentomatoes", "A Thousand Years (Sennen no Akari)", 2001),
    ),
    "script of its own": (title("imdb", "बत्ती का घर", 2001), title("metacritic", "बत्ती का घर", 2001)),
    "other spelling": (
        title("imdb", "The Colour of Harbours", 2001),
        title("metacritic", "The Color of Harbors", 2001),
    ),
    "released again": (
        title("imdb", "Salt Harbour", 1931, LEVIN, runtime_minutes=92),
        title("rottentomatoes", "Salt Harbour", 2011, LEVIN, runtime_minutes=95),
    ),
    "year unknown, date known": (
        title("imdb", "Salt Harbour", 1931, runtime_minutes=92),
        title("rottentomatoes", "Salt Harbour", None, release_date="1931-04", runtime_minutes=92),
    ),
    "two years after the festival": (
        title("imdb", "Salt Harbour", 2001, LEVIN),
        title("metacritic", "Salt Harbour", 2003, LEVIN),
    ),
    "two years after the festival, directors unknown": (
        title("imdb", "Salt Harbour", 2001, runtime_minutes=92),
        title("metacritic", "Salt Harbour", 2003, runtime_minutes=93),
    ),
    "second title in brackets": (
        title("imdb", "Sennen no Akari", 2001),
        title("rottentomatoes", "A Thousand Years (Sennen no Akari) (Lamps)", 2001),
    ),
    "whose film it is": (
        title("imdb", "Salt Harbour", 2001, LEVIN, runtime_minutes=92),
        title("rottentomatoes", "Mara Levin's Salt Harbour", 2001, LEVIN, runtime_minutes=92),
    ),
    "words in between": (
        title("imdb", "Brewick: Inside the Harbour", 2001, LEVIN, runtime_minutes=92),
        title("metacritic", "Brewick: A Year Inside the Old Harbour", 2002, LEVIN, runtime_minutes=91),
    ),
    "a label of three dimensions": (
        title("imdb", "Storm Harbour", 2001, LEVIN),
        title("rottentomatoes", "Storm Harbour 3-D", 2001, LEVIN),
    ),
    "one of two family names": (
        title("imdb", "Salt Harbour", 2001, "Inés Quarrie Fonseca"),
        title("metacritic", "Salt Harbour", 2001, "Ines Quarrie"),
    ),
    "director's name turned round": (
        title("imdb", "Salt Harbour", 2001, "Seo Min-ji"),
        title("metacritic", "Salt Harbour", 2001, "Min Ji Seo"),
    ),
    "director's other first name": (
        title("imdb", "Salt Harbour", 2001, "Mara Levin"),
        title("metacritic", "Salt Harbour", 2001, "M. Levin"),
    ),
    "director in another script": (
        title("imdb", "Salt Harbour", 2001, "Mara Levin"),
        title("metacritic", "Salt Harbour", 2001, "מרה לוין"),
    ),
    "IMDb id, other title": (
        title("imdb", "The Lamp", 2001, number=7),
        title("metacritic", "Lys", 2001, imdb_id="tt0000007"),
    ),
    "IMDb id, other year": (
        title("imdb", "The Lamp", 1931, number=7),
        title("metacritic", "The Lamp", 2001, imdb_id="tt0000007"),
    ),
    "short": (title("imdb", "Salt Harbour", 2001, kind="short"), title("rottentomatoes", "Salt Harbour", 2001)),
}

OTHER: dict[str, tuple[Movie, Movie]] = {
    "same site": (title("imdb", "Salt Harbour", 2001), title("imdb", "Salt Harbour", 2001, number=2)),
    "other title": (title("imdb", "Salt Harbour", 2001, LEVIN), title("metacritic", "Brewick", 2001, LEVIN)),
    "title alone": (title("imdb", "Salt Harbour"), title("metacritic", "Salt Harbour")),
    "title alone, one year unknown": (title("imdb", "Salt Harbour", 2001, LEVIN), title("metacritic", "Salt Harbour")),
    "two years apart": (title("imdb", "Salt Harbour", 2001), title("metacritic", "Salt Harbour", 2003)),
    "remake": (title("imdb", "Salt Harbour", 1961, LEVIN), title("metacritic", "Salt Harbour", 2001, "Ines Quarrie")),
    "remake, director unknown": (title("imdb", "Salt Harbour", 1961, LEVIN), title("metacritic", "Salt Harbour", 2001)),
    "remake by the same director": (
        title("imdb", "Salt Harbour", 1934, LEVIN, runtime_minutes=75),
        title("metacritic", "Salt Harbour", 1956, LEVIN, runtime_minutes=120),
    ),
    "namesake of the same year": (
        title("imdb", "Salt Harbour", 2001, LEVIN),
        title("metacritic", "Salt Harbour", 2001, "Ines Quarrie"),
    ),
    "sequel by number": (title("imdb", "Harbour 2", 2001, LEVIN), title("metacritic", "Harbour 3", 2001, LEVIN)),
    "sequel without number": (
        title("imdb", "Salt Harbour", 2001, LEVIN),
        title("metacritic", "Salt Harbour 2", 2002, LEVIN),
    ),
    "sequel by part": (title("imdb", "Harbour", 2001), title("metacritic", "Harbour: Part Two", 2001)),
    "sequel by subtitle": (
        title("imdb", "Brewick", 2001, LEVIN),
        title("rottentomatoes", "Brewick: The Return", 2002, LEVIN),
    ),
    "two subtitles": (title("imdb", "Brewick: The Lamp", 2001), title("metacritic", "Brewick: The Storm", 2001)),
    "short words": (title("imdb", "Lamp", 2001), title("metacritic", "Limp", 2001)),
    "series": (title("imdb", "Salt Harbour", 2001), title("metacritic", "Salt Harbour", 2001, kind="series")),
    "game": (title("imdb", "Salt Harbour", 2001, kind="game"), title("rottentomatoes", "Salt Harbour", 2001)),
    "season of a series": (
        title("imdb", "Salt Harbour", 2001, kind="series"),
        title("metacritic", "Salt Harbour", 2001, kind="series", season=1, imdb_id="tt0000001"),
    ),
    "other episode": (
        title("imdb", "Pilot", 2001, kind="episode", season=1, episode=1),
        title("metacritic", "Pilot", 2001, kind="episode", season=1, episode=2),
    ),
    "other IMDb id": (
        title("imdb", "Salt Harbour", 2001, LEVIN, number=7),
        title("metacritic", "Salt Harbour", 2001, LEVIN, imdb_id="tt0000008"),
    ),
    "IMDb id of a pilot": (
        title("imdb", "The Keeper Arrives", 1999, number=7),
        title("metacritic", "Brewick", 2003, imdb_id="tt0000007"),
    ),
    "two years before": (
        title("imdb", "Salt Harbour", 2003, runtime_minutes=92),
        title("metacritic", "Salt Harbour", 2001, runtime_minutes=92),
    ),
    "date of another release": (
        title("imdb", "Salt Harbour", 2011),
        title("rottentomatoes", "Salt Harbour", 1931, release_date="2011-04"),
    ),
    "one title in the other, director unknown": (
        title("imdb", "Salt Harbour", 2001, runtime_minutes=92),
        title("metacritic", "The Salt Harbour Murders", 2001, runtime_minutes=92),
    ),
    "a relative of the director": (
        title("imdb", "Salt Harbour", 2001, "Mara Levin"),
        title("metacritic", "Salt Harbour", 2001, "Tobias Levin"),
    ),
    "hardly anybody has voted on it": (
        title("imdb", "Salt Harbour", 2001, scores=[Score(kind="imdb", value=6.0, count=12)], runtime_minutes=92),
        title("metacritic", "Salt Harbour", 2001, runtime_minutes=92),
    ),
    "only IMDb lacks the runtime, a subtitle away": (
        title("imdb", "Brewick: The Long Night", 2001),
        title("metacritic", "Brewick", 2001, runtime_minutes=92),
    ),
    "signs": (title("imdb", "!!!", 2001), title("metacritic", "???", 2001)),
}


@pytest.mark.parametrize(("a", "b"), SAME.values(), ids=SAME)
def test_one_title_is_recognised(a: Movie, b: Movie) -> None:
    found = match(a, b)
    assert found.accepted, found.reasons
    assert found.reasons
    assert match(b, a).score == found.score
    assert len(join([a, b])) == len(join([b, a])) == 1


@pytest.mark.parametrize(("a", "b"), OTHER.values(), ids=OTHER)
def test_two_titles_are_told_apart(a: Movie, b: Movie) -> None:
    found = match(a, b)
    assert not found.accepted, found.reasons
    assert not match(b, a).accepted
    assert len(join([a, b])) == len(join([b, a])) == 2


def test_a_match_gives_its_score_and_reasons() -> None:
    a = title("imdb", "Salt Harbour", 2001, LEVIN)
    b = title("metacritic", "Salt Harbour", 2002, LEVIN, imdb_id="tt0000001")
    found = match(a, b)
    assert found.score == 4 + 1 + 0.75 + 1.5
    assert found.reasons == ["same IMDb id", "same title", "years 2001 and 2002", "same director"]
    assert match(a, title("metacritic", "Salt Harbour", 2001, "Ines Quarrie")).reasons[-1] == "but other directors"


def test_three_sites_become_one_row_with_the_surest_match_first() -> None:
    imdb = title("imdb", "Salt Harbour", 2001, LEVIN)
    tomatoes = title("rottentomatoes", "Salt Harbour", 2001)
    metacritic = title("metacritic", "Havn av salt", 2001, imdb_id="tt0000001")
    (row,) = join([tomatoes, metacritic, imdb])
    assert row.movies == {"imdb": imdb, "rottentomatoes": tomatoes, "metacritic": metacritic}
    assert [found.score >= SAME_ID for found in row.matches] == [True, False]


def test_the_director_decides_between_namesakes() -> None:
    films = [title("imdb", "Salt Harbour", 2001, name, number=n) for n, name in enumerate((LEVIN, "Ines Quarrie"), 1)]
    joined = join([*films, title("rottentomatoes", "Salt Harbour", 2001, "Ines Quarrie")])
    assert [len(row.movies) for row in joined] == [1, 2]


def test_the_nearer_year_decides_between_a_film_and_its_remake() -> None:
    films = [title("imdb", "Salt Harbour", year, LEVIN, number=year) for year in (1961, 2001)]
    joined = join([*films, title("rottentomatoes", "Salt Harbour", 2002, LEVIN)])
    assert [len(row.movies) for row in joined] == [1, 2]


def test_what_fits_two_titles_equally_is_joined_to_neither() -> None:
    films = [title("imdb", "Salt Harbour", 2001, number=n) for n in (1, 2)]
    assert len(join([*films, title("rottentomatoes", "Salt Harbour", 2001)])) == 3


def test_of_two_that_tie_neither_is_taken_and_a_worse_third_even_less() -> None:
    films = [title("imdb", "Salt Harbour", year, number=n) for n, year in enumerate((2001, 2001, 2000), 1)]
    assert len(join([*films, title("rottentomatoes", "Salt Harbour", 2001)])) == 4


def test_half_a_point_does_not_decide_between_rivals() -> None:
    films = [title("imdb", "Salt Harbour", year, number=n) for n, year in enumerate((2001, 2000), 1)]
    page = title("rottentomatoes", "Salt Harbour", 2001)
    assert match(films[0], page).accepted
    assert len(join([*films, page])) == 3
    assert len(join([films[0], page])) == 1


@pytest.mark.parametrize(("votes", "rows"), [((250_000, 240), 2), ((250_000, 90_000), 3), ((240, None), 3)])
def test_votes_decide_between_namesakes(votes: tuple[int, int | None], rows: int) -> None:
    films = [
        title(
            "imdb",
            "Salt Harbour",
            2001,
            number=n,
            scores=[] if count is None else [Score(kind="imdb", value=6.0, count=count)],
        )
        for n, count in enumerate(votes, 1)
    ]
    joined = join([*films, title("rottentomatoes", "Salt Harbour", 2001)])
    assert len(joined) == rows
    if rows == 2:
        assert set(joined[0].movies) == {"imdb", "rottentomatoes"}


def test_the_same_director_two_years_apart_is_nearer_than_a_stranger_of_the_year() -> None:
    festival = title("imdb", "Salt Harbour", 2001, LEVIN, number=1)
    stranger = title("imdb", "Salt Harbour", 2003, number=2)
    joined = join([stranger, festival, title("metacritic", "Salt Harbour", 2003, LEVIN)])
    assert [len(row.movies) for row in joined] == [1, 2]


def test_each_of_two_films_that_resemble_each_other_finds_its_own() -> None:
    """A page that has a better title stands back from the other's."""
    films = [
        title(
            "imdb",
            name,
            2001,
            number=n,
            runtime_minutes=90 + 4 * n,
            scores=[Score(kind="imdb", value=6.0, count=votes)],
        )
        for n, (name, votes) in enumerate((("The Keeper", 90_000), ("Brewick: The Keeper", 2_000)))
    ]
    pages = [
        title("rottentomatoes", name, 2001, number=n, runtime_minutes=93)
        for n, name in enumerate(("The Keeper", "Brewick: The Keeper"))
    ]
    joined = join([*films, *pages])
    assert [{movie.title for movie in row.movies.values()} for row in joined] == [
        {"The Keeper"},
        {"Brewick: The Keeper"},
    ]


def test_the_same_film_in_another_cut_is_for_a_person() -> None:
    cut = match(
        title("imdb", "Salt Harbour", 1961, LEVIN, runtime_minutes=90),
        title("metacritic", "Salt Harbour", 1985, LEVIN, runtime_minutes=131),
    )
    assert cut.decision == "review"


def test_a_third_site_can_not_bridge_two_titles_that_contradict_each_other() -> None:
    imdb = title("imdb", "Salt Harbour", 2001, number=7)
    metacritic = title("metacritic", "Salt Harbour", 2001, imdb_id="tt0000008")
    tomatoes = title("rottentomatoes", "Salt Harbour", 2001)
    joined = join([imdb, metacritic, tomatoes])
    assert sorted(len(row.movies) for row in joined) == [1, 2]
    assert not any({"imdb", "metacritic"} <= set(row.movies) for row in joined)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Alien³", "Alien 3"),
        ("Romeo + Juliet", "Romeo & Juliet"),
        ("S.W.A.T.", "SWAT"),
        ("ガラスの城", "ガラスの城"),
        ("서울의 밤", "서울의 밤!"),
        ("La Nuit étoilée", "la nuit etoilee"),
        ("Œuvre", "Oeuvre"),
        ("Straße", "Strasse"),
        ("S*A*L*T", "Salt"),
        ("30,000 Harbours", "30000 Harbours"),
        ("6½", "6 1/2"),
        ("Har5our Nigh7s", "Harsour Nighvs"),
        ("Ri¢h ¢ity", "Rich City"),
        ("Le$$", "Less"),
        ("Storm 3-D", "Storm 3D"),
        ("Harbour IX", "Harbour 9"),
        ("Twenty-Two Lamps", "22 Lamps"),
        ("Salt vs. Sea", "Salt versus Sea"),
        ("Dr. Brewick", "Doctor Brewick"),
        ("[SALT]", "Salt"),
    ],
)
def test_spellings_of_a_title_are_equal(one: str, other: str) -> None:
    assert normalise(one) == normalise(other)


@pytest.mark.parametrize(("one", "other"), [("千と", "千年"), ("क", "कि"), ("か", "が"), ("!!!", "???"), ("The", "A")])
def test_titles_of_every_script_stay_apart(one: str, other: str) -> None:
    assert normalise(one) != normalise(other)


@given(st.text(min_size=1))
def test_no_title_is_erased_or_changed_by_normalising_it_again(text: str) -> None:
    if text.strip():
        assert normalise(text)
        assert normalise(text.upper()) == normalise(text.upper().lower()) or not text.isascii()


SITES: list[Site] = ["imdb", "metacritic", "rottentomatoes"]
MOVIES = st.lists(
    st.builds(
        title,
        st.sampled_from(SITES),
        st.sampled_from(["Salt Harbour", "The Salt Harbour", "Salt Harbours", "Brewick: Salt Harbour", "Brewick"]),
        st.sampled_from([None, 2000, 2001, 2002]),
        st.sampled_from([None, LEVIN, "Ines Quarrie"]),
        imdb_id=st.sampled_from([None, "tt0000001", "tt0000002"]),
    ),
    max_size=12,
)


@settings(max_examples=150, deadline=None)
@given(MOVIES)
def test_every_movie_stands_in_one_row_and_no_row_contradicts_itself(movies: list[Movie]) -> None:
    joined = join(movies)
    assert sorted(id(movie) for row in joined for movie in row.movies.values()) == sorted(map(id, movies))
    for row in joined:
        assert all(movie.site == site for site, movie in row.movies.items())
        assert len(row.matches) == len(row.movies) - 1
        assert len({movie.imdb_id for movie in row.movies.values() if movie.imdb_id}) <= 1
    assert join(movies) == joined


def generated(count: int) -> tuple[list[Movie], int]:
    """Return titles as the three sites might have them, spelt in their own ways, and how many rows they make."""
    chance = random.Random(11)  # noqa: S311 - repeatable
    words = [
        "".join(chance.choices("bcdfglmnprst", k=1) + chance.choices("aeiou", k=1)) * 2 + ending
        for ending in ("", "n", "rk", "lis", "mond", "wick", "dale", "ver", "stein", "ra")
        for _ in range(60)
    ]
    movies: list[Movie] = []
    for number in range(count):
        name = " ".join(chance.sample(words, chance.choice((2, 3, 4)))).title()
        year, director = chance.randrange(1930, 2026), " ".join(chance.sample(words, 2)).title()
        movies.append(title("imdb", f"The {name} II", year, director, number))
        movies.append(title("metacritic", f"{name} 2", year, None, number, imdb_id=f"tt{number:07}"))
        movies.append(title("rottentomatoes", f"{name.upper()} II", year + chance.choice((0, 0, 1)), director, number))
    chance.shuffle(movies)
    return movies, count


def test_generated_titles_are_joined_completely_and_by_linearly_many_comparisons(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    compared = 0

    def counted(one: Title, other: Title) -> Match:
        nonlocal compared
        compared += 1
        return compare(one, other)

    monkeypatch.setattr(matching, "compare", counted)
    figures = []
    for count in (500, 2_000):
        movies, expected = generated(count)
        compared = 0
        joined = join(movies)
        figures.append(compared)
        assert len(joined) == expected
        for row in joined:
            numbers = {re.sub(r"\D", "", movie.site_id or "").lstrip("0") for movie in row.movies.values()}
            assert len(numbers) == 1
    # Four times the titles: sixteen times the comparisons would be quadratic.
    assert 2_000 < figures[1] < 9 * figures[0]
