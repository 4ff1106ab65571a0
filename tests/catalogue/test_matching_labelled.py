"""How often the matcher is right, on pairs of which that is known."""

from __future__ import annotations

from collections import Counter

import pytest

from moviecrawler.catalogue.comparing import Match
from moviecrawler.catalogue.matching import match, verify
from moviecrawler.items import Credit, Movie, OtherTitle, Score
from tests.catalogue.labelled import OTHER, OTHER_SERIES, SAME, SAME_SERIES, Pair, labelled_pairs

PAIRS = 4_000
SEEDS = (101, 102)
BY_MACHINE_OR_NOT_AT_ALL = {"other_id", "film_and_series", "remake_by_the_same_director", "wrong_id", "sequel"}
"""Cases in which one wrong answer is one too many."""


@pytest.fixture(scope="module", params=SEEDS)
def judged(request: pytest.FixtureRequest) -> list[tuple[Pair, Match]]:
    return [(pair, verify(pair.wanted, pair.page, pair.evidence)) for pair in labelled_pairs(request.param, PAIRS)]


def test_the_pairs_are_of_every_kind(judged: list[tuple[Pair, Match]]) -> None:
    cases = Counter(pair.case for pair, _ in judged)
    assert sum(cases.values()) == PAIRS
    assert set(cases) == {case.__name__ for case in (*SAME, *OTHER)}
    assert sum(pair.same for pair, _ in judged) == PAIRS // 2


def test_accepted_pairs_are_one_title_and_few_titles_are_missed(judged: list[tuple[Pair, Match]]) -> None:
    accepted = [pair for pair, found in judged if found.accepted]
    wrong = [pair for pair in accepted if not pair.same]
    right = len(accepted) - len(wrong)
    precision, recall = right / len(accepted), right / sum(pair.same for pair, _ in judged)
    assert precision >= 0.998, Counter(pair.case for pair in wrong)
    assert recall >= 0.965, Counter(pair.case for pair, found in judged if pair.same and not found.accepted)


@pytest.mark.parametrize("seed", SEEDS)
def test_series_are_matched_by_their_run_and_never_with_one_that_began_again(seed: int) -> None:
    judged = [
        (pair, verify(pair.wanted, pair.page, pair.evidence))
        for pair in labelled_pairs(seed, PAIRS // 4, SAME_SERIES, OTHER_SERIES)
    ]
    assert {pair.case for pair, _ in judged} == {case.__name__ for case in (*SAME_SERIES, *OTHER_SERIES)}
    assert not [pair for pair, found in judged if found.accepted and not pair.same]
    missed = Counter(pair.case for pair, found in judged if pair.same and not found.accepted)
    assert missed.total() <= 0.05 * PAIRS / 8, missed  # a year before IMDb's, and nothing else to tell by
    assert not [pair for pair, found in judged if pair.case == "season_of_a_series" and found.decision != "refused"]


def test_few_titles_are_refused_for_good(judged: list[tuple[Pair, Match]]) -> None:
    """What a machine can't tell is shown to a person, not thrown away."""
    refused = [pair for pair, found in judged if pair.same and found.decision == "refused"]
    assert len(refused) <= 0.005 * PAIRS / 2, Counter(pair.case for pair in refused)


def test_little_is_left_to_people(judged: list[tuple[Pair, Match]]) -> None:
    assert sum(found.decision == "review" for _, found in judged) <= 0.20 * PAIRS


def test_contradictions_are_never_accepted(judged: list[tuple[Pair, Match]]) -> None:
    for pair, found in judged:
        if pair.case in BY_MACHINE_OR_NOT_AT_ALL:
            assert not found.accepted, pair
        if pair.case in {"other_id", "film_and_series"}:
            assert found.decision == "refused", pair


def test_every_decision_has_its_reasons(judged: list[tuple[Pair, Match]]) -> None:
    for pair, found in judged:
        assert found.reasons or found.score == 0, pair
        if found.decision == "accepted":
            assert any(not reason.startswith("but ") for reason in found.reasons), pair


def test_a_page_and_a_stored_record_are_judged_alike(judged: list[tuple[Pair, Match]]) -> None:
    for pair, _ in judged[:1_000]:
        wanted = pair.wanted
        record = Movie(
            site="imdb",
            site_id=wanted.imdb_id,
            url="",
            title=wanted.title,
            original_title=wanted.original_title,
            kind=pair.ours.kind,
            year=wanted.year,
            runtime_minutes=wanted.runtime_minutes,
            other_titles=[OtherTitle(title=title) for title in wanted.other_titles],
            credits=[Credit(name=name, role="director", position=1) for name in wanted.directors],
            scores=[] if wanted.votes is None else [Score(kind="imdb", value=6.0, count=wanted.votes)],
        )
        found, turned = match(record, pair.page), match(pair.page, record)
        assert found == verify(wanted, pair.page, None)
        assert (found.score, found.decision) == (turned.score, turned.decision)
