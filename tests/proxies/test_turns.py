"""Which proxy is used next, and for how long one that is refused is not."""

import pytest

from moviecrawler.proxies.pools import (
    BAN_MEMORY_SECONDS,
    MAX_QUARANTINE_SECONDS,
    QUARANTINE_SECONDS,
    Ban,
    Proxy,
    ProxyPool,
)

NOW = 1_800_000_000.0


def pool(size: int, run: int = 1) -> ProxyPool:
    return ProxyPool(
        "a", "datacenter", [Proxy(f"a:{n}", "http://proxy:1") for n in range(1, size + 1)], run
    )


def use(pool: ProxyPool, requests: int, *tried: str) -> str:
    """Send requests through the next proxies, and get answers; return the proxies' numbers."""
    used = ""
    for _ in range(requests):
        proxy = pool.take(tried)
        assert proxy is not None
        proxy.is_busy = False
        pool.report_success(proxy.name)
        used += proxy.name.removeprefix("a:")
    return used


@pytest.mark.promise("Proxies are off by default, and used in turn where a setting names them.")
def test_proxies_take_turns_and_none_carries_two_requests_or_one_twice() -> None:
    assert use(pool(4), 8) == "12341234"
    assert use(pool(3, run=5), 15) == "111112222233333"
    made = pool(2)
    assert use(made, 1, "a:1") == "2"
    assert not made.is_usable(("a:1", "a:2"))
    assert made.take(("a:1", "a:2")) is None
    taken = [made.take(), made.take(), made.take()]
    assert [proxy and proxy.name for proxy in taken] == ["a:1", "a:2", None]


@pytest.mark.promise("A proxy that a site refuses rests for that site, on all nodes.")
def test_a_ban_that_another_worker_knows_of_holds_until_its_end() -> None:
    made = pool(1)
    for ban, is_used in (
        (Ban(NOW + 0.5, 3, "403"), False),
        (Ban(NOW, 2, "403"), True),
        (Ban(NOW + 0.5, 3, "403"), False),
        (None, True),
    ):
        made.apply_shared_ban("a:1", ban, NOW)
        assert made.is_usable() == is_used
        assert made.proxies["a:1"].failed_attempts == (ban.bans if ban else 0)


@pytest.mark.promise("A proxy that a site refuses rests for that site, on all nodes.")
def test_a_banned_proxy_is_not_used_until_its_quarantine_is_over() -> None:
    for least, lasts in ((60, QUARANTINE_SECONDS), (3600, 3600)):  # as the site asks for
        assert pool(1).ban("a:1", NOW, least) == NOW + lasts
    made = pool(2, run=5)
    assert use(made, 2) == "11"
    assert made.ban("a:1", NOW, 0) == NOW + QUARANTINE_SECONDS
    # Answers to requests that were sent before change nothing.
    assert made.ban("a:1", NOW + 1, 0) is None
    assert not made.report_success("a:1")
    for later, used in (
        (0, "22222"),
        (QUARANTINE_SECONDS - 0.001, "22222"),
        (QUARANTINE_SECONDS, "11122"),
    ):
        made.reanimate(NOW + later)
        assert use(made, 5) == used


def test_a_quarantine_doubles_to_a_week_and_a_good_answer_or_a_week_forgets_it() -> None:
    made = pool(1)
    now = NOW
    lengths = []
    for _ in range(10):
        lengths.append((made.ban("a:1", now, 0) or 0) - now)
        now += lengths[-1]
        made.reanimate(now)
    assert lengths == [min(QUARANTINE_SECONDS * 2**n, MAX_QUARANTINE_SECONDS) for n in range(10)]
    for later, lasts in ((0, MAX_QUARANTINE_SECONDS), (1, QUARANTINE_SECONDS)):
        now += BAN_MEMORY_SECONDS + later
        assert made.ban("a:1", now, 0) == now + lasts
        now += lasts
        made.reanimate(now)
    assert made.report_success("a:1")
    assert made.ban("a:1", now, 0) == now + QUARANTINE_SECONDS
