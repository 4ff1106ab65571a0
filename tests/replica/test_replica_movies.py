from __future__ import annotations

from itertools import pairwise
from typing import get_args

import pytest

from moviecrawler.replica.movies import MOST_TITLES, Catalogue
from moviecrawler.replica.people import people, people_of
from moviecrawler.replica.titles import SlugSite, slugify

LARGE = Catalogue(1, 1_000_000)
SAMPLE = [*range(200), *range(200, 1_000_000, 4_999)]


def test_a_seed_makes_the_same_movies_in_every_catalogue_that_has_them() -> None:
    small, again, other = Catalogue(1, 250), Catalogue(1, 250), Catalogue(2, 250)
    for index in range(250):
        assert small.title(index) == again.title(index) == LARGE.title(index) != other.title(index)
    for index in (-1, 250):
        with pytest.raises(IndexError):
            small.title(index)


def test_ids_lead_back_to_their_movies_and_others_nowhere() -> None:
    for catalogue in (LARGE, Catalogue(77, 1_000_000), Catalogue(1, MOST_TITLES), Catalogue(1, 300)):
        for index in [*(index for index in SAMPLE if index < catalogue.count), catalogue.count - 1]:
            assert catalogue.index_of_imdb_id(catalogue.imdb_id(index)) == index
    assert {len(LARGE.imdb_id(index)) for index in SAMPLE} == {len("tt1234567"), len("tt12345678")}
    for imdb_id in ("tt0000001", "tt4000003", "tt99999999", "nm4000002", "tt", "", "tt4000002 "):
        assert LARGE.index_of_imdb_id(imdb_id) is None, imdb_id
    assert Catalogue(1, 300).index_of_imdb_id(LARGE.imdb_id(300)) is None, "it is beyond the last title"


@pytest.mark.parametrize("site", get_args(SlugSite))
def test_slugs_lead_back_to_their_movies(site: SlugSite) -> None:
    for index in SAMPLE:
        movie = LARGE.title(index)
        facts = movie.facts(site)
        if facts is not None:
            assert LARGE.index_of_slug(site, facts.slug) == index
            assert LARGE.index_of_slug(site, facts.slug + "-of-nowhere") is None


@pytest.mark.parametrize("titles", [1, 2, 250, 10_000, 10_001, 25_003])
def test_half_blocks_list_every_id_once_in_the_datasets_order(titles: int) -> None:
    catalogue = Catalogue(5, titles)
    indexes = [index for half in catalogue.halves() for index in catalogue.indexes_by_id(*half)]
    ids = [catalogue.imdb_id(index) for index in indexes]
    assert sorted(indexes) == list(range(titles))
    assert ids == sorted(ids)
    for half in catalogue.halves():
        assert catalogue.is_full(*half) == (len(catalogue.indexes_by_id(*half)) == 5_000)


def test_the_movies_are_as_uneven_as_the_sites() -> None:
    movies = [LARGE.title(index) for index in range(3_000)]
    titles = [movie.basics.title for movie in movies]
    assert len(set(titles)) < len(titles), "remakes share a title"
    assert any(movie.rating is None for movie in movies)
    assert any(movie.basics.original_title for movie in movies)
    assert any(not title.isascii() for title in titles)
    assert any(not slugify(title, "-") for title in titles), "some titles have no Latin letter"
    assert (
        {movie.metacritic is None for movie in movies}
        == {movie.rottentomatoes is None for movie in movies}
        == {True, False}
    )
    on_metacritic = [movie for movie in movies if movie.metacritic]
    assert any(m.metacritic and m.metacritic.release.year != m.basics.year for m in on_metacritic)
    assert any(m.metacritic and m.metacritic.metascore is None for m in on_metacritic)
    assert any(m.rottentomatoes and m.rottentomatoes.tomatometer is None for m in movies)
    for movie in movies:
        if movie.basics.upcoming:
            assert movie.rating is None
            assert movie.metascore is None


def test_two_movies_of_one_title_are_years_apart() -> None:
    years: dict[str, list[int]] = {}
    for index in range(2_000):
        basics = LARGE.basics(index)
        if basics.title == basics.english_title:
            years.setdefault(basics.title, []).append(basics.year)
    shared = [sorted(found) for found in years.values() if len(found) > 1]
    assert shared
    assert all(later - earlier >= 9 for found in shared for earlier, later in pairwise(found))


def test_people_are_shared_their_names_unique_and_nobody_is_twice_in_a_role() -> None:
    made = [LARGE.credits(index) for index in range(100)]
    credited = [person for credits_ in made for person, _ in credits_.cast]
    assert len(set(credited)) < len(credited)
    assert set(credited) <= set(people(0, people_of(100)))
    for one in made:
        for who in (one.directors, one.writers, tuple(person for person, _ in one.cast)):
            assert len(set(who)) == len(who)
    some = people(0, 30_000)
    assert len({person.name for person in some}) == len({person.slug for person in some}) == len(some)
