"""The one rule of erasing: a value replaces, a stated absence erases, silence keeps."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import reduce
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moviecrawler.items import Credit, Movie, Offer, OtherTitle, Score
from moviecrawler.matching.merging import complete, merged, supersedes
from moviecrawler.sites.fields import known_fields, unknown_in_datasets
from tests.readings import TOLD, reading, said
from tests.runs import make_movie


@pytest.mark.promise(
    "A newer reading replaces an older one, never the other way; what it does not mention stays."
)
@given(st.randoms(use_true_random=False), st.integers(1, 4))
def test_each_field_has_what_the_newest_reading_that_tells_of_it_says(
    luck: Random, readings: int
) -> None:
    history = [reading(luck) for _ in range(readings)]
    known = reduce(lambda known, newer: complete(newer, known), history)
    for name in TOLD:
        told = [text for text in (said(movie, name) for movie in history) if text is not None]
        assert said(known, name) == (told[-1] if told else None), name
    assert known.source == ("page" if any(movie.source == "page" for movie in history) else "list")
    assert known.unknown_fields == sorted(set(known.unknown_fields))
    assert not known_fields(known) & set(known.unknown_fields)


def test_what_stands_beside_a_score_stays_while_readings_are_silent_of_it() -> None:
    scores = [
        Score(kind="imdb", value=7.5, count=1_000, histogram=list(range(10)), liked=0),
        Score(kind="metascore", value=61),
    ]
    known = make_movie(1, scores=scores, unknown_fields=["metascore_reviews"])
    newer = replace(known, scores=[Score(kind="imdb", value=7.6)])
    newer.unknown_fields = ["imdb_votes", "metascore", "scores.imdb.histogram"]
    merged = complete(newer, known)
    assert merged.scores == [
        Score(kind="imdb", value=7.6, count=1_000, histogram=list(range(10))),
        Score(kind="metascore", value=61),
    ]
    assert merged.unknown_fields == ["metascore_reviews"]
    # Without votes, as it states.
    assert complete(replace(newer, unknown_fields=[]), known).scores == newer.scores
    unscored = complete(newer, replace(known, scores=[], unknown_fields=["metascore"]))
    # Nothing is known of what stands beside a score that there was not.
    assert unscored.unknown_fields == newer.unknown_fields
    # An id that a page does not name is kept.
    known.external_ids = {"ems": "1-2", "rottentomatoes": "77"}
    newer = replace(known, external_ids={"ems": "1-3"})
    assert complete(newer, known).external_ids == {"ems": "1-3", "rottentomatoes": "77"}


def test_a_dataset_adds_to_a_page_and_erases_nothing_of_it() -> None:
    page = make_movie(1, year=1999, runtime_minutes=90, genres=["Drama", "Heist"])
    page.credits = [
        Credit(name="A", role="director", position=1, person_id="nm7"),
        *(Credit(name=f"C{n}", role="cast", position=n, person_id=f"nm{n}") for n in (1, 2)),
    ]
    of_dataset = replace(page, source="dataset", year=2000, runtime_minutes=None, genres=["Drama"])
    datasets = ("title.basics", "title.ratings", "title.crew", "title.principals", "title.akas")
    of_dataset.unknown_fields = list(unknown_in_datasets("movie", frozenset(datasets)))
    of_dataset.credits = [
        Credit(name=None, role="director", position=1, person_id="nm7"),
        Credit(name="W", role="writer", position=1, person_id="nm9"),
        Credit(name="C1", role="cast", position=1, person_id="nm1"),
    ]
    of_dataset.other_titles = [OtherTitle(title="T.", country="FR")]
    merged = complete(of_dataset, page)
    assert (merged.year, merged.runtime_minutes, merged.genres) == (2000, 90, ["Drama", "Heist"])
    assert merged.people("director") == page.people("director")
    assert merged.people("writer") == of_dataset.people("writer")
    assert merged.people("cast") == page.people("cast")
    assert merged.source == "page"
    # Nor does a page erase what only the datasets tell.
    again = complete(page, merged)
    whole = replace(page, site="metacritic")
    assert complete(whole, replace(whole, plot="Old.", source="list")) is whole
    assert again.other_titles == of_dataset.other_titles
    assert again.unknown_fields == []
    # A fuller list of the dataset takes the place of the page's.
    of_dataset.credits = [
        Credit(name=f"C{n}", role="cast", position=place, person_id=f"nm{n}")
        for place, n in enumerate((3, 2, 1), 1)
    ]
    assert complete(of_dataset, page).people("cast") == of_dataset.credits


def test_a_page_that_shows_the_first_of_the_cast_keeps_the_full_cast() -> None:
    def movie(cast: range, writers: int = 1) -> Movie:
        people = [Credit(name=f"P {n}", role="cast", position=n) for n in cast]
        people += [Credit(name=f"W {n}", role="writer", position=n) for n in range(1, 1 + writers)]
        return make_movie(1, credits=people)

    full = movie(range(1, 31))
    for both in (complete(movie(range(1, 19)), full), complete(full, movie(range(1, 19)))):
        assert len(both.people("cast")) == 30
        assert both.unknown_fields == []
    assert len(complete(movie(range(1, 19)), movie(range(1, 21))).people("cast")) == 18
    assert len(complete(movie(range(13, 31)), movie(range(1, 30))).people("cast")) == 18
    assert len(complete(movie(range(1, 19)), movie(range(1, 31), 2)).people("writer")) == 1


def test_a_reading_takes_the_place_of_older_ones_only() -> None:
    now = datetime(2026, 11, 1, tzinfo=UTC)
    page = make_movie(1, scraped_at=now)
    row = replace(page, source="list")

    def at(seconds: float) -> Movie:
        return replace(page, scraped_at=now + timedelta(seconds=seconds))

    assert supersedes(page, page, 60, now)
    assert not supersedes(at(59), page, 60, now)
    assert supersedes(at(60), page, 60, now)
    assert supersedes(at(1), row, 60, now)
    assert not supersedes(at(-1), row, 0, now)
    # Of a page from the future.
    assert supersedes(at(-86_401), page, 60, now - timedelta(seconds=1))


def test_an_older_reading_adds_what_a_newer_one_does_not_tell() -> None:
    now = datetime(2026, 11, 1, tzinfo=UTC)
    older = make_movie(1, scraped_at=now - timedelta(seconds=60), plot="Old.")
    newer = replace(older, scraped_at=now, plot=None)
    unknown = replace(newer, unknown_fields=["plot"])
    assert merged(newer, older, 60, now) == newer
    assert merged(older, newer, 60, now) is None
    assert merged(older, unknown, 60, now) == replace(newer, plot="Old.")


@pytest.mark.parametrize(
    ("known_at", "newer_at", "seen_at"), [(5, 6, 5), (6, 5, 5), (5, None, None), (None, 6, None)]
)
def test_an_offer_that_a_reading_does_not_tell_of_has_the_time_when_it_was_seen(
    known_at: int | None, newer_at: int | None, seen_at: int | None
) -> None:
    def day(number: int | None) -> datetime | None:
        return None if number is None else datetime(2026, 11, number, tzinfo=UTC)

    offers = [
        Offer(provider="Lamp", kind="free"),
        Offer(provider="Salt", kind="ads", seen_at=day(1)),
    ]
    known = make_movie(1, scraped_at=day(known_at), offers=offers)
    newer = replace(known, scraped_at=day(newer_at), offers=[], unknown_fields=["offers"])
    assert [offer.seen_at for offer in complete(newer, known).offers] == [day(seen_at), day(1)]
