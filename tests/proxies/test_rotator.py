from __future__ import annotations

from collections import Counter

from moviecrawler.proxies.health import Health
from moviecrawler.proxies.pools import Kind, ListedPool, Proxy, ProxyPool, Route
from moviecrawler.proxies.rotator import ProxyRotator, RoundRobin

NOW = 1_800_000_000.0
URL = "https://example.com/"


def pool(name: str, size: int, kind: Kind = "datacenter") -> ProxyPool:
    proxies = (Proxy(f"{name}:{n}", name, kind, f"{name}:{n}") for n in range(1, size + 1))
    return ListedPool(name, kind, {proxy: Route("http://proxy:1") for proxy in proxies})


class Site:
    """A rotation whose requests end when the test says so."""

    def __init__(self, *pools: ProxyPool, run: int = 1, concurrency: int = 100) -> None:
        self.health = Health(1800, sum(len(one.proxies) for one in pools))
        robins = [RoundRobin(one, self.health, run=run, concurrency=concurrency) for one in pools]
        self.rotator = ProxyRotator(robins, self.health)
        self.proxies = {proxy.name: proxy for one in pools for proxy in one.proxies}
        self.now = NOW

    def take(self, *tried: str, only: str | None = None) -> str:
        found = self.rotator.take(URL, self.now, tried, only)
        return found.name if isinstance(found, Proxy) else found

    def end(self, name: str, *, good: bool = True) -> None:
        self.rotator.release(self.proxies[name])
        if good:
            self.health.succeeded(name, 0.1, self.now)

    def use(self, *tried: str) -> str:
        name = self.take(*tried)
        self.end(name)
        return name

    def rest(self, *names: str) -> None:
        for name in names:
            self.health.quarantine(name, "403", self.now)


def test_proxies_take_turns() -> None:
    site = Site(pool("a", 4))
    assert [site.use() for _ in range(8)] == ["a:1", "a:2", "a:3", "a:4"] * 2


def test_turns_follow_the_share_of_requests_that_succeed() -> None:
    site = Site(pool("a", 2))
    for _ in range(50):
        site.health.succeeded("a:1", 0.1, NOW)
        site.health.refused("a:2")
    assert Counter(site.take() for _ in range(20)).most_common(1)[0][0] == "a:1"


def test_a_proxy_that_was_away_does_not_make_up_for_it() -> None:
    site = Site(pool("a", 3))
    for _ in range(3):
        site.use()
    site.rest("a:2")
    assert "a:2" not in {site.use() for _ in range(300)}
    site.now += 1800
    uses = Counter(site.use() for _ in range(30))
    assert uses["a:2"] <= 11


def test_residential_proxies_are_held_for_a_run() -> None:
    site = Site(pool("home", 3, "residential"), run=5)
    assert [site.use() for _ in range(15)] == ["home:1"] * 5 + ["home:2"] * 5 + ["home:3"] * 5


def test_a_run_ends_when_its_proxy_is_refused() -> None:
    site = Site(pool("home", 2, "residential"), run=5)
    assert [site.use(), site.use()] == ["home:1"] * 2
    site.rest("home:1")
    assert [site.use() for _ in range(5)] == ["home:2"] * 5


def test_a_proxy_that_nothing_is_known_of_gets_one_request_until_it_answers() -> None:
    site = Site(pool("a", 2))
    assert [site.take(), site.take(), site.take()] == ["a:1", "a:2", "wait"]
    site.end("a:1")
    assert [site.take(), site.take()] == ["a:1", "a:1"]


def test_a_recovered_proxy_is_tried_with_one_request_before_it_gets_more() -> None:
    site = Site(pool("a", 2))
    site.use()
    site.use()
    site.rest("a:1")
    site.now += 1800
    taken = [site.take() for _ in range(9)]
    assert Counter(taken)["a:1"] == 1
    site.end("a:1")
    assert Counter(site.take() for _ in range(8))["a:1"] > 1


def test_the_next_pool_is_used_when_one_is_exhausted_and_not_before() -> None:
    site = Site(pool("a", 2), pool("b", 1), concurrency=1)
    assert [site.use() for _ in range(4)] == ["a:1", "a:2"] * 2
    assert [site.take(), site.take(), site.take()] == ["a:1", "a:2", "wait"]  # not b, as a will be free
    site.rest("a:1", "a:2")
    assert site.use() == "b:1"
    site.rest("b:1")
    assert site.take() == "exhausted"
    assert site.rotator.is_exhausted(site.now)


def test_a_request_goes_out_from_another_proxy_while_there_is_one() -> None:
    site = Site(pool("a", 2), pool("b", 1))
    assert site.use("a:1") == "a:2"
    assert site.use("a:1", "a:2") == "b:1"
    assert site.use("a:1", "a:2", "b:1") in {"a:1", "a:2"}
    site.rest("a:1", "b:1")
    assert site.use("a:2") == "a:2"


def test_while_another_process_tries_a_proxy_its_requests_wait() -> None:
    site = Site(pool("a", 1))
    site.rest("a:1")
    site.now += 1800
    site.health.is_shared = True
    assert site.take() == "wait"
    assert site.health.wanted_probes == {"a:1"}
    site.health.granted_probes["a:1"] = site.now + 10
    assert [site.take(), site.take()] == ["a:1", "wait"]
    site.health.granted_probes["a:1"] = site.now + 10_000
    site.end("a:1", good=False)
    site.rest("a:1")
    site.now += 3600
    assert site.take() == "wait"  # it is asked for anew
