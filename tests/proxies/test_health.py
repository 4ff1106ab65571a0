from __future__ import annotations

import time

import pytest

from moviecrawler.proxies.health import FORGIVEN_AFTER_SECONDS, MAX_QUARANTINE_SECONDS, Health

NOW = 1_800_000_000.0
BASE = 1800.0
PROXY = "datacenter:1"


@pytest.fixture
def health() -> Health:
    return Health(BASE, proxies=5)


def until(health: Health) -> float:
    return health.quarantines[PROXY].until


def failed(health: Health, proxy_id: str = PROXY, *, certain: bool = False, sites_fault: bool = True) -> bool:
    return health.failed(proxy_id, "timeout", NOW, sites_fault=sites_fault, certain=certain)


def test_a_refusal_rests_a_proxy_for_the_quarantine(health: Health) -> None:
    assert health.state(PROXY, NOW) == "well"
    assert health.quarantine(PROXY, "202 challenge", NOW)
    assert health.state(PROXY, NOW + BASE - 0.001) == "quarantined"
    assert health.state(PROXY, NOW + BASE) == "recovering"
    assert health.state("datacenter:2", NOW) == "well"


def test_a_quarantine_doubles_each_time_up_to_a_week(health: Health) -> None:
    now, lengths = NOW, []
    for _ in range(11):
        assert health.quarantine(PROXY, "403", now)
        lengths.append(until(health) - now)
        now = until(health)
        health.succeeded(PROXY, 0.1, now)  # a single good answer is no pardon
    assert lengths[:4] == [BASE, 2 * BASE, 4 * BASE, 8 * BASE]
    assert lengths[-2:] == [MAX_QUARANTINE_SECONDS, MAX_QUARANTINE_SECONDS]


def test_a_day_without_a_refusal_is_a_pardon(health: Health) -> None:
    for wait, length in ((FORGIVEN_AFTER_SECONDS, 2 * BASE), (FORGIVEN_AFTER_SECONDS + 0.01, BASE)):
        health.quarantines.clear()
        health.quarantine(PROXY, "403", NOW)
        again = until(health) + wait
        health.quarantine(PROXY, "403", again)
        assert until(health) - again == pytest.approx(length)


def test_refusals_of_requests_that_were_on_their_way_count_once(health: Health) -> None:
    assert health.quarantine(PROXY, "403", NOW)
    assert not health.quarantine(PROXY, "403", NOW + 1)
    assert until(health) == NOW + BASE
    assert health.quarantines[PROXY].strikes == 1


def test_retry_after_is_heeded_when_it_is_longer_up_to_a_week(health: Health) -> None:
    health.quarantine(PROXY, "429", NOW, least=60)
    assert until(health) == NOW + BASE
    health.quarantine(PROXY, "429", NOW + 1, least=7200)
    assert until(health) == NOW + 1 + 7200
    assert health.quarantines[PROXY].strikes == 1
    later = Health(BASE, 1)
    later.quarantine(PROXY, "429", NOW, least=1e9)
    assert until(later) == NOW + MAX_QUARANTINE_SECONDS


def test_only_an_answer_to_what_was_sent_after_a_quarantine_ends_it(health: Health) -> None:
    health.quarantine(PROXY, "403", NOW)
    health.succeeded(PROXY, 0.1, NOW - 1)
    assert health.state(PROXY, NOW + BASE) == "recovering"
    assert not health.proven(PROXY)
    health.succeeded(PROXY, 0.1, NOW + BASE)
    assert health.state(PROXY, NOW + BASE) == "well"
    assert health.proven(PROXY)


def test_two_failures_in_a_row_rest_a_proxy_and_one_does_not(health: Health) -> None:
    assert not failed(health)
    health.succeeded(PROXY, 0.1, NOW)
    assert not failed(health)
    assert failed(health)
    assert health.state(PROXY, NOW) == "quarantined"


def test_a_failure_that_is_surely_the_proxys_rests_it_at_once(health: Health) -> None:
    assert failed(health, certain=True)


def test_a_failed_probe_rests_a_proxy_again_and_longer(health: Health) -> None:
    health.quarantine(PROXY, "403", NOW - BASE)
    assert health.state(PROXY, NOW) == "recovering"
    assert failed(health)
    assert until(health) == NOW + 2 * BASE


def test_failures_in_a_row_of_three_proxies_are_the_sites(health: Health) -> None:
    proxies = [f"datacenter:{n}" for n in range(5)]
    assert not any(failed(health, proxy_id) for proxy_id in proxies)
    assert health.in_trouble
    assert not any(failed(health, proxy_id) for proxy_id in proxies * 5)
    health.succeeded(proxies[0], 0.1, NOW)
    assert not health.in_trouble
    assert not failed(health, proxies[1])
    assert failed(health, proxies[1])


def test_failures_are_the_proxies_while_another_pool_is_left(health: Health) -> None:
    proxies = [f"datacenter:{n}" for n in range(5)]
    assert not any(failed(health, proxy_id, sites_fault=False) for proxy_id in proxies)
    assert all(failed(health, proxy_id, sites_fault=False) for proxy_id in proxies)


def test_the_only_proxy_is_not_to_blame_for_a_site_that_is_down() -> None:
    health = Health(BASE, proxies=1)
    assert not any(failed(health) for _ in range(10))
    assert failed(health, certain=True)


def test_share_tells_how_a_proxy_does(health: Health) -> None:
    assert health.figures(PROXY).success_share == 1
    assert health.figures(PROXY).latency is None
    for _ in range(8):
        health.succeeded(PROXY, 0.5, NOW)
    health.refused(PROXY)
    failed(health)
    figures = health.figures(PROXY)
    assert (figures.successes, figures.bans, figures.failures, figures.latency) == (8, 1, 1, 0.5)
    assert figures.success_share == pytest.approx(10 / 12)


def test_what_could_not_be_taken_is_taken_again(health: Health) -> None:
    health.succeeded(PROXY, 0.5, NOW)
    health.quarantine("datacenter:2", "403", NOW)
    taken = health.take_unpublished()
    assert not health.is_urgent
    assert health.take_unpublished() == ({}, {})
    health.put_back(*taken)
    assert health.is_urgent
    assert health.figures(PROXY).successes == 1
    assert health.take_unpublished() == taken


def test_a_clock_that_is_set_right_changes_no_quarantine(monkeypatch: pytest.MonkeyPatch) -> None:
    health = Health(1800, 1)
    began = health.now()
    health.quarantine("a", "202", began)
    for jump in (-30 * 365 * 86_400, 86_400):
        monkeypatch.setattr(time, "time", lambda jump=jump: began + jump)
        assert health.state("a", health.now()) == "quarantined"
        assert abs(health.now() - began) < 60
