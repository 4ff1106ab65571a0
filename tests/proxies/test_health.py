from __future__ import annotations

import time

import pytest

from moviecrawler.proxies.health import FORGIVEN_AFTER_SECONDS, MAX_QUARANTINE_SECONDS, Health
from moviecrawler.proxies.keys import HOUR

NOW = 1_800_000_000.0
"""The beginning of an hour."""
BASE = 1800.0
PROXY = "datacenter:1"
PROXIES = [f"datacenter:{n}" for n in range(5)]


@pytest.fixture
def health() -> Health:
    return Health(BASE, proxies=5)


def until(health: Health) -> float:
    return health.quarantines[PROXY].until


def failed(health: Health, proxy_id: str = PROXY, *, certain: bool = False, sites_fault: bool = True) -> bool:
    return health.failed(proxy_id, "timeout", NOW, sites_fault=sites_fault, certain=certain)


def test_a_quarantine_is_of_one_proxy_and_doubles_each_time_up_to_a_week(health: Health) -> None:
    now, lengths = NOW, []
    for _ in range(11):
        assert health.state(PROXY, now) in {"well", "recovering"}
        assert health.quarantine(PROXY, "403", now)
        assert not health.quarantine(PROXY, "403", now + 1)  # of a request that was on its way
        lengths.append(until(health) - now)
        now = until(health)
        assert health.state(PROXY, now - 0.001) == "quarantined"
        assert health.state(PROXY, now) == "recovering"
        health.succeeded(PROXY, 0.1, now)  # a single good answer is no pardon
    assert lengths[:4] == [BASE, 2 * BASE, 4 * BASE, 8 * BASE]
    assert lengths[-2:] == [MAX_QUARANTINE_SECONDS, MAX_QUARANTINE_SECONDS]
    assert health.state("datacenter:2", NOW) == "well"


def test_a_day_without_a_refusal_is_a_pardon(health: Health) -> None:
    for wait, length in ((FORGIVEN_AFTER_SECONDS, 2 * BASE), (FORGIVEN_AFTER_SECONDS + 0.01, BASE)):
        health.quarantines.clear()
        health.quarantine(PROXY, "403", NOW)
        again = until(health) + wait
        health.quarantine(PROXY, "403", again)
        assert until(health) - again == pytest.approx(length)


def test_retry_after_is_heeded_when_it_is_longer_up_to_a_week(health: Health) -> None:
    for now, least, ends in ((NOW, 60, NOW + BASE), (NOW + 1, 7200, NOW + 7201)):
        health.quarantine(PROXY, "429", now, least=least)
        assert (until(health), health.quarantines[PROXY].strikes) == (ends, 1)
    later = Health(BASE, 1)
    later.quarantine(PROXY, "429", NOW, least=1e9)
    assert until(later) == NOW + MAX_QUARANTINE_SECONDS


def test_only_an_answer_to_what_was_sent_after_a_quarantine_ends_it(health: Health) -> None:
    health.quarantine(PROXY, "403", NOW)
    for sent_at, state in ((NOW - 1, "recovering"), (NOW + BASE, "well")):
        health.succeeded(PROXY, 0.1, sent_at)
        assert health.state(PROXY, NOW + BASE) == state
        assert health.proven(PROXY) == (state == "well")


def test_two_failures_in_a_row_or_one_that_is_surely_the_proxys_quarantine_it(health: Health) -> None:
    assert not failed(health)
    health.succeeded(PROXY, 0.1, NOW)
    assert [failed(health), failed(health)] == [False, True]
    assert health.state(PROXY, NOW) == "quarantined"
    assert failed(health, "datacenter:2", certain=True)


def test_a_failed_probe_quarantines_again_and_longer(health: Health) -> None:
    health.quarantine(PROXY, "403", NOW - BASE)
    assert failed(health)
    assert until(health) == NOW + 2 * BASE


def test_failures_in_a_row_of_three_proxies_are_the_sites(health: Health) -> None:
    assert not any(failed(health, proxy_id) for proxy_id in PROXIES * 6)
    assert health.in_trouble
    health.succeeded(PROXIES[0], 0.1, NOW)
    assert not health.in_trouble
    assert [failed(health), failed(health)] == [False, True]


def test_failures_are_the_proxies_while_another_pool_is_left(health: Health) -> None:
    assert not any(failed(health, proxy_id, sites_fault=False) for proxy_id in PROXIES)
    assert all(failed(health, proxy_id, sites_fault=False) for proxy_id in PROXIES)


def test_the_only_proxy_is_not_to_blame_for_a_site_that_is_down() -> None:
    health = Health(BASE, proxies=1)
    assert not any(failed(health) for _ in range(10))
    assert failed(health, certain=True)


def test_figures_say_how_a_proxy_does(health: Health) -> None:
    assert health.figures(PROXY).success_share == 1
    assert health.figures(PROXY).latency is None
    for _ in range(8):
        health.succeeded(PROXY, 0.5, NOW)
    health.refused(PROXY)
    failed(health)
    figures = health.figures(PROXY)
    assert (figures.successes, figures.bans, figures.failures, figures.latency) == (8, 1, 1, 0.5)
    assert figures.success_share == pytest.approx(10 / 12)


def test_figures_are_those_of_this_hour_and_the_one_before(health: Health, monkeypatch: pytest.MonkeyPatch) -> None:
    now = NOW
    monkeypatch.setattr(health, "now", lambda: now)
    for _ in range(8):
        health.succeeded(PROXY, 0.5, NOW)
    for later, share in ((2 * HOUR - 0.001, 10 / 11), (2 * HOUR, 2 / 4), (5 * HOUR, 2 / 3), (0, 2 / 3)):
        now = NOW + later
        health.refused(PROXY)
        assert health.figures(PROXY).success_share == pytest.approx(share)


def test_what_could_not_be_published_is_published_again(health: Health) -> None:
    health.succeeded(PROXY, 0.5, NOW)
    health.quarantine("datacenter:2", "403", NOW)
    taken = health.take_unpublished()
    assert not health.is_urgent
    assert health.take_unpublished() == ({}, {})
    health.put_back(*taken)
    assert health.is_urgent
    assert health.figures(PROXY).successes == 1
    assert health.take_unpublished() == taken


def test_a_clock_that_is_corrected_changes_no_quarantine(monkeypatch: pytest.MonkeyPatch) -> None:
    health = Health(1800, 1)
    began = health.now()
    health.quarantine("a", "202", began)
    for jump in (-30 * 365 * 86_400, 86_400):
        monkeypatch.setattr(time, "time", lambda jump=jump: began + jump)
        assert health.state("a", health.now()) == "quarantined"
        assert abs(health.now() - began) < 60
