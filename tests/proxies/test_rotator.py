from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pytest

from moviecrawler.proxies.health import Health
from moviecrawler.proxies.pools import Kind, ListedPool, Proxy, ProxyPool, Route
from moviecrawler.proxies.rotator import ProxyRotator, RoundRobin

NOW = 1_800_000_000.0
URL = "https://example.com/"


def pool(name: str, weights: Sequence[float], kind: Kind = "datacenter") -> ProxyPool:
    exits = (Proxy(f"{name}:{n}", name, kind, f"{name}:{n}", weight) for n, weight in enumerate(weights, 1))
    return ListedPool(name, kind, {exit_: Route("http://proxy:1") for exit_ in exits})


class Site:
    """A rotation whose requests end when the test says so."""

    def __init__(self, *pools: ProxyPool, run: int = 1, room: int = 100) -> None:
        self.health = Health(1800, sum(len(one.exits) for one in pools))
        self.rotation = ProxyRotator([RoundRobin(one, self.health, run=run, room=room) for one in pools])
        self.exits = {exit_.name: exit_ for one in pools for exit_ in one.exits}
        self.now = NOW

    def take(self, *tried: str, only: str | None = None) -> str:
        found = self.rotation.take(URL, self.now, tried, only)
        return found.name if isinstance(found, Proxy) else found

    def end(self, name: str, *, good: bool = True) -> None:
        self.rotation.release(self.exits[name])
        if good:
            self.health.succeeded(name, 0.1, self.now)

    def use(self, *tried: str) -> str:
        name = self.take(*tried)
        self.end(name)
        return name

    def rest(self, *names: str) -> None:
        for name in names:
            self.health.quarantine(name, "403", self.now)


def test_exits_take_turns() -> None:
    site = Site(pool("a", [1, 1, 1, 1]))
    assert [site.use() for _ in range(8)] == ["a:1", "a:2", "a:3", "a:4"] * 2


def test_turns_follow_weight_and_health() -> None:
    site = Site(pool("a", [1, 1, 2]))
    uses = Counter(site.use() for _ in range(400))
    assert uses["a:3"] == pytest.approx(200, abs=2)
    site = Site(pool("a", [1, 1]))
    for _ in range(50):
        site.health.succeeded("a:1", 0.1, NOW)
        site.health.refused("a:2")
    assert Counter(site.take() for _ in range(20)).most_common(1)[0][0] == "a:1"


def test_an_exit_that_was_away_does_not_make_up_for_it() -> None:
    site = Site(pool("a", [1, 1, 1]))
    for _ in range(3):
        site.use()
    site.rest("a:2")
    assert "a:2" not in {site.use() for _ in range(300)}
    site.now += 1800
    uses = Counter(site.use() for _ in range(30))
    assert uses["a:2"] <= 11


def test_residential_exits_are_held_for_a_run() -> None:
    site = Site(pool("home", [1, 1, 1], "residential"), run=5)
    assert [site.use() for _ in range(15)] == ["home:1"] * 5 + ["home:2"] * 5 + ["home:3"] * 5


def test_a_run_ends_when_its_exit_is_refused() -> None:
    site = Site(pool("home", [1, 1], "residential"), run=5)
    assert [site.use(), site.use()] == ["home:1"] * 2
    site.rest("home:1")
    assert [site.use() for _ in range(5)] == ["home:2"] * 5


def test_an_exit_that_nothing_is_known_of_gets_one_request_until_it_answers() -> None:
    site = Site(pool("a", [1, 1]))
    assert [site.take(), site.take(), site.take()] == ["a:1", "a:2", "wait"]
    site.end("a:1")
    assert [site.take(), site.take()] == ["a:1", "a:1"]


def test_no_more_requests_than_there_is_room_for_wait_at_an_exit() -> None:
    site = Site(pool("a", [1]), room=2)
    site.use()
    assert [site.take(), site.take(), site.take()] == ["a:1", "a:1", "wait"]


def test_a_recovered_exit_is_tried_with_one_request_before_it_gets_more() -> None:
    site = Site(pool("a", [1, 1]))
    site.use()
    site.use()
    site.rest("a:1")
    site.now += 1800
    taken = [site.take() for _ in range(9)]
    assert Counter(taken)["a:1"] == 1
    site.end("a:1")
    assert Counter(site.take() for _ in range(8))["a:1"] > 1


def test_the_next_pool_is_used_when_one_is_exhausted_and_not_before() -> None:
    site = Site(pool("a", [1, 1]), pool("b", [1]), room=1)
    assert [site.use() for _ in range(4)] == ["a:1", "a:2"] * 2
    assert [site.take(), site.take(), site.take()] == ["a:1", "a:2", "wait"]  # not b, as a will be free
    site.rest("a:1", "a:2")
    assert site.use() == "b:1"
    site.rest("b:1")
    assert site.take() == "exhausted"
    assert site.rotation.exhausted(site.now, site.health)


def test_a_request_goes_out_from_another_exit_while_there_is_one() -> None:
    site = Site(pool("a", [1, 1]), pool("b", [1]))
    assert site.use("a:1") == "a:2"
    assert site.use("a:1", "a:2") == "b:1"
    assert site.use("a:1", "a:2", "b:1") in {"a:1", "a:2"}
    site.rest("a:1", "b:1")
    assert site.use("a:2") == "a:2"


def test_a_request_may_be_bound_to_a_pool() -> None:
    site = Site(pool("a", [1]), pool("b", [1]))
    assert site.take(only="b") == "b:1"
    assert site.take(only="c") == "none"


def test_while_another_process_tries_an_exit_its_requests_wait() -> None:
    site = Site(pool("a", [1]))
    site.rest("a:1")
    site.now += 1800
    site.health.alone = False
    assert site.take() == "wait"
    assert site.health.wanted == {"a:1"}
    site.health.granted["a:1"] = site.now + 10
    assert [site.take(), site.take()] == ["a:1", "wait"]
