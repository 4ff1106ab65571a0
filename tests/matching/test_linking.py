"""Which IMDb title each film of a list is."""

from typing import Any

import pytest

from moviecrawler.matching.facts import TitleFacts
from moviecrawler.matching.forms import Title, prepare
from moviecrawler.matching.linking import Linked, link


def imdb(number: int, name: str, year: int | None = 2001, **more: Any) -> Title:
    return prepare(
        "imdb", TitleFacts(imdb_id=f"tt{number:07}", title=name, year=year, kind="movie", **more)
    )


def record(name: str, year: int | None = 2001, site: str = "rottentomatoes", **more: Any) -> Title:
    return prepare(site, TitleFacts(title=name, year=year, kind="movie", **more))


def shown(found: list[Linked]) -> list[tuple[str | None, str]]:
    return [(linked.imdb_id, linked.decision) for linked in found]


def test_each_record_gets_its_title_in_order() -> None:
    found = link(
        [
            record("Brewick"),
            record("Salt Harbour"),
            record("Nothing of the Kind"),
            record("Havn", 1990),
        ],
        [imdb(1, "Salt Harbour"), imdb(2, "Brewick", 2000), imdb(3, "Havn", 1991)],
    )
    assert shown(found) == [
        ("tt0000002", "accepted"),
        ("tt0000001", "accepted"),
        (None, "refused"),
        (None, "review"),
    ]
    assert found[0].reasons == ["same title", "years 2001 and 2000"]
    assert (found[2].score, found[2].reasons, found[2].others) == (
        0.0,
        ["but no title is like it"],
        [],
    )
    assert found[3].reasons == ["same title", "years 1990 and 1991"]
    assert [(other.imdb_id, other.score) for other in found[3].others] == [("tt0000003", 1.25)]


def test_a_film_of_another_name_with_the_same_director_year_and_runtime_is_for_a_person() -> None:
    more: dict[str, Any] = {"directors": ["Ida Brandt"]}
    records = [
        record("Lys", runtime_minutes=94, **more),
        record("Havn", runtime_minutes=80, **more),
    ]
    titles = [
        imdb(1, "Light", runtime_minutes=96, **more),
        imdb(2, "Havn", runtime_minutes=95, **more),
    ]
    found = link(records, titles)
    assert shown(found) == [(None, "review"), ("tt0000002", "accepted")]
    assert found[0].reasons[-1] == "but unlike titles"


def test_a_tie_is_for_a_person_and_names_both() -> None:
    found = link(
        [record("Salt Harbour")],
        [imdb(1, "Salt Harbour"), imdb(2, "The Salt Harbour"), imdb(3, "Salt Harbour", 2000)],
    )
    assert shown(found) == [(None, "review")]
    assert found[0].reasons[-1] == "but another fits about as well"
    assert [(other.imdb_id, other.score) for other in found[0].others] == [
        ("tt0000001", 2.0),
        ("tt0000002", 2.0),
        ("tt0000003", 1.75),
    ]


def test_a_title_is_one_record_of_a_site_only() -> None:
    salt = imdb(1, "Salt Harbour", runtime_minutes=90)
    better = record("Salt Harbour", runtime_minutes=90)
    worse = record("Salt Harbour", 2004, runtime_minutes=90)
    found = link([worse, better], [salt])
    assert shown(found) == [(None, "refused"), ("tt0000001", "accepted")]
    assert found[0].reasons[-1] == "but a record that fits better is that title"
    assert shown(link([better, better], [salt])) == [(None, "review"), (None, "review")]
    assert shown(link([better], [salt, salt])) == [("tt0000001", "accepted")]
    elsewhere = record("Salt Harbour", runtime_minutes=91, site="a friend's list")
    assert shown(link([better, elsewhere], [salt])) == [("tt0000001", "accepted")] * 2


def test_a_record_whose_likeliest_title_is_anothers_gets_the_next_one() -> None:
    more: dict[str, Any] = {"directors": ["Ida Brandt"]}
    titles = [imdb(1, "Salt Harbour", **more), imdb(2, "Salt Harbour", 2000)]
    found = link([record("Salt Harbour", **more), record("Salt Harbour")], titles)
    assert shown(found) == [("tt0000001", "accepted"), ("tt0000002", "accepted")]
    assert found[1].reasons == ["same title", "years 2001 and 2000"]


def test_of_the_titles_that_share_a_key_the_first_are_compared(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("moviecrawler.matching.linking.LARGEST_BLOCK", 2)
    (found,) = link([record("Home")], [imdb(number, "Home") for number in (1, 2, 3)])
    assert [other.imdb_id for other in found.others] == ["tt0000001", "tt0000002"]


def test_a_common_title_costs_no_more_than_a_rare_one() -> None:
    """Words that thousands of titles share say nothing.

    Names that they share are too many to compare.
    """
    titles = [imdb(number, f"Home: {number}", 1950 + number % 70) for number in range(4_000)]
    found = link([record("Home"), record("Salt Harbour")], [*titles, imdb(9_999, "Salt Harbour")])
    assert found[0].decision != "accepted"
    assert found[1].imdb_id == "tt0009999"
    assert len(found[0].others) <= 5
