from __future__ import annotations

import time

import pytest

from moviecrawler.proxies.health import FORGIVEN_AFTER, LONGEST_QUARANTINE, Health

NOW = 1_800_000_000.0
BASE = 1800.0
EXIT = "datacenter:1"


@pytest.fixture
def health() -> Health:
    return Health(BASE, exits=5)


def until(health: Health) -> float:
    return health.quarantines[EXIT].until


def failed(health: Health, exit_id: str = EXIT, *, certain: bool = False, sites_fault: bool = True) -> bool:
    return health.failed(exit_id, "timeout", NOW, sites_fault=sites_fault, certain=certain)


def test_a_refusal_rests_an_exit_for_the_quarantine(health: Health) -> None:
    assert health.state(EXIT, NOW) == "well"
    assert health.quarantine(EXIT, "202 challenge", NOW)
    assert health.state(EXIT, NOW + BASE - 0.001) == "quarantined"
    assert health.state(EXIT, NOW + BASE) == "recovering"
    assert health.state("datacenter:2", NOW) == "well"


def test_a_quarantine_doubles_each_time_up_to_a_week(health: Health) -> None:
    now, lengths = NOW, []
    for _ in range(11):
        assert health.quarantine(EXIT, "403", now)
        lengths.append(until(health) - now)
        now = until(health)
        health.succeeded(EXIT, 0.1, now)  # a single good answer is no pardon
    assert lengths[:4] == [BASE, 2 * BASE, 4 * BASE, 8 * BASE]
    assert lengths[-2:] == [LONGEST_QUARANTINE, LONGEST_QUARANTINE]


def test_a_day_without_a_refusal_is_a_pardon(health: Health) -> None:
    for wait, length in ((FORGIVEN_AFTER, 2 * BASE), (FORGIVEN_AFTER + 0.01, BASE)):
        health.quarantines.clear()
        health.quarantine(EXIT, "403", NOW)
        again = until(health) + wait
        health.quarantine(EXIT, "403", again)
        assert until(health) - again == pytest.approx(length)


def test_refusals_of_requests_that_were_on_their_way_count_once(health: Health) -> None:
    assert health.quarantine(EXIT, "403", NOW)
    assert not health.quarantine(EXIT, "403", NOW + 1)
    assert until(health) == NOW + BASE
    assert health.quarantines[EXIT].strikes == 1


def test_retry_after_is_heeded_when_it_is_longer_up_to_a_week(health: Health) -> None:
    health.quarantine(EXIT, "429", NOW, least=60)
    assert until(health) == NOW + BASE
    health.quarantine(EXIT, "429", NOW + 1, least=7200)
    assert until(health) == NOW + 1 + 7200
    assert health.quarantines[EXIT].strikes == 1
    later = Health(BASE, 1)
    later.quarantine(EXIT, "429", NOW, least=1e9)
    assert until(later) == NOW + LONGEST_QUARANTINE


def test_only_an_answer_to_what_was_sent_after_a_quarantine_ends_it(health: Health) -> None:
    health.quarantine(EXIT, "403", NOW)
    health.succeeded(EXIT, 0.1, NOW - 1)
    assert health.state(EXIT, NOW + BASE) == "recovering"
    assert not health.proven(EXIT)
    health.succeeded(EXIT, 0.1, NOW + BASE)
    assert health.state(EXIT, NOW + BASE) == "well"
    assert health.proven(EXIT)


def test_two_failures_in_a_row_rest_an_exit_and_one_does_not(health: Health) -> None:
    assert not failed(health)
    health.succeeded(EXIT, 0.1, NOW)
    assert not failed(health)
    assert failed(health)
    assert health.state(EXIT, NOW) == "quarantined"


def test_a_failure_that_is_surely_the_exits_rests_it_at_once(health: Health) -> None:
    assert failed(health, certain=True)


def test_a_failed_probe_rests_an_exit_again_and_longer(health: Health) -> None:
    health.quarantine(EXIT, "403", NOW - BASE)
    assert health.state(EXIT, NOW) == "recovering"
    assert failed(health)
    assert until(health) == NOW + 2 * BASE


def test_failures_in_a_row_of_three_exits_are_the_sites(health: Health) -> None:
    exits = [f"datacenter:{n}" for n in range(5)]
    assert not any(failed(health, exit_id) for exit_id in exits)
    assert health.in_trouble
    assert not any(failed(health, exit_id) for exit_id in exits * 5)
    health.succeeded(exits[0], 0.1, NOW)
    assert not health.in_trouble
    assert not failed(health, exits[1])
    assert failed(health, exits[1])


def test_failures_are_the_exits_while_another_pool_is_left(health: Health) -> None:
    exits = [f"datacenter:{n}" for n in range(5)]
    assert not any(failed(health, exit_id, sites_fault=False) for exit_id in exits)
    assert all(failed(health, exit_id, sites_fault=False) for exit_id in exits)


def test_the_only_exit_is_not_to_blame_for_a_site_that_is_down() -> None:
    health = Health(BASE, exits=1)
    assert not any(failed(health) for _ in range(10))
    assert failed(health, certain=True)


def test_share_tells_how_an_exit_does(health: Health) -> None:
    assert health.figures(EXIT).share == 1
    assert health.figures(EXIT).latency is None
    for _ in range(8):
        health.succeeded(EXIT, 0.5, NOW)
    health.refused(EXIT)
    failed(health)
    figures = health.figures(EXIT)
    assert (figures.successes, figures.bans, figures.failures, figures.latency) == (8, 1, 1, 0.5)
    assert figures.share == pytest.approx(10 / 12)


def test_what_could_not_be_told_is_told_again(health: Health) -> None:
    health.succeeded(EXIT, 0.5, NOW)
    health.quarantine("datacenter:2", "403", NOW)
    told = health.tell()
    assert not health.urgent
    assert health.tell() == ({}, {})
    health.untell(*told)
    assert health.urgent
    assert health.figures(EXIT).successes == 1
    assert health.tell() == told


def test_a_clock_that_is_set_right_changes_no_quarantine(monkeypatch: pytest.MonkeyPatch) -> None:
    health = Health(1800, 1)
    began = health.now()
    health.quarantine("a", "202", began)
    for jump in (-30 * 365 * 86_400, 86_400):
        monkeypatch.setattr(time, "time", lambda jump=jump: began + jump)
        assert health.state("a", health.now()) == "quarantined"
        assert abs(health.now() - began) < 60
