"""Which proxy is used next, and for how long one that is refused is not."""

from __future__ import annotations

import pytest

from moviecrawler.proxies.pools import BAN_MEMORY_SECONDS, MAX_QUARANTINE_SECONDS, QUARANTINE_SECONDS, Proxy, ProxyPool

NOW = 1_800_000_000.0


def pool(size: int, run: int = 1) -> ProxyPool:
    return ProxyPool(
        "a", "datacenter", [Proxy(f"a:{n}", "http://proxy:1", key=f"{n}") for n in range(1, size + 1)], run
    )


def use(pool: ProxyPool, *tried: str) -> str:
    """Send a request through the next proxy, and get an answer."""
    proxy = pool.take(tried)
    assert proxy is not None
    proxy.is_busy = False
    pool.answered(proxy.name)
    return proxy.name


@pytest.mark.promise("Proxies are off by default, and used in turn where a setting names them.")
def test_proxies_take_turns() -> None:
    made = pool(4)
    assert [use(made) for _ in range(8)] == ["a:1", "a:2", "a:3", "a:4"] * 2


def test_residential_proxies_are_held_for_a_run() -> None:
    made = pool(3, run=5)
    assert [use(made) for _ in range(15)] == ["a:1"] * 5 + ["a:2"] * 5 + ["a:3"] * 5


def test_a_run_ends_when_its_proxy_is_banned() -> None:
    made = pool(2, run=5)
    assert [use(made), use(made)] == ["a:1"] * 2
    made.ban("a:1", NOW, 0)
    assert [use(made) for _ in range(5)] == ["a:2"] * 5


def test_a_proxy_carries_one_request_at_a_time() -> None:
    made = pool(2)
    taken = [made.take(), made.take()]
    assert [proxy and proxy.name for proxy in taken] == ["a:1", "a:2"]
    assert made.take() is None
    assert made.is_usable()


def test_a_proxy_of_an_earlier_attempt_is_not_taken() -> None:
    made = pool(2)
    assert use(made, "a:1") == "a:2"
    assert not made.is_usable(("a:1", "a:2"))
    assert made.take(("a:1", "a:2")) is None


@pytest.mark.promise("A proxy that a site refuses rests for that site, on all nodes.")
def test_a_banned_proxy_is_not_used_until_its_quarantine_is_over() -> None:
    made = pool(2)
    assert made.ban("a:1", NOW, 0) == NOW + QUARANTINE_SECONDS
    for later, expected in ((0, {"a:2"}), (QUARANTINE_SECONDS - 0.001, {"a:2"}), (QUARANTINE_SECONDS, {"a:1", "a:2"})):
        made.reanimate(NOW + later)
        assert {use(made) for _ in range(4)} == expected


def test_a_quarantine_is_doubled_to_a_week_and_a_good_answer_or_a_week_without_a_ban_forgets_it() -> None:
    made, now, lengths = pool(1), NOW, []
    for _ in range(10):
        until = made.ban("a:1", now, 0)
        assert until is not None
        lengths.append(until - now)
        now = until
        made.reanimate(now)
    assert lengths == [min(QUARANTINE_SECONDS * 2**n, MAX_QUARANTINE_SECONDS) for n in range(10)]
    assert made.ban("a:1", now + BAN_MEMORY_SECONDS + 1, 0) == now + BAN_MEMORY_SECONDS + 1 + QUARANTINE_SECONDS
    again = pool(1)
    assert again.ban("a:1", NOW, 0)
    again.reanimate(NOW + QUARANTINE_SECONDS)
    assert again.answered("a:1")
    assert again.ban("a:1", NOW + 1e6, 0) == NOW + 1e6 + QUARANTINE_SECONDS


def test_an_answer_to_a_request_that_was_sent_before_a_ban_changes_nothing() -> None:
    made = pool(2)
    made.ban("a:1", NOW, 0)
    assert made.ban("a:1", NOW + 1, 0) is None
    assert not made.answered("a:1")
    assert "a:1" not in {use(made) for _ in range(4)}
    assert made.proxies["a:1"].failed_attempts == 1


@pytest.mark.parametrize(("least", "seconds"), [(0, 1800), (3600, 3600), (60, 1800)])
def test_a_quarantine_lasts_at_least_as_long_as_the_site_asks_for(least: float, seconds: float) -> None:
    assert pool(1).ban("a:1", NOW, least) == NOW + seconds
