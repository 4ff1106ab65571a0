"""What nodes tell each other through Redis."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import redis

from moviecrawler.dashboard.keys import Keys
from moviecrawler.dashboard.sources import Sources


def test_versions_are_those_of_nodes_that_live(redis_client: redis.Redis) -> None:
    alive = [SimpleNamespace(name="one"), SimpleNamespace(name="two")]
    state = SimpleNamespace(client=redis_client, nodes=lambda: alive)

    def node(name: str) -> Any:
        return SimpleNamespace(state=state, keys=Keys("test"), node_name=name)

    for name in ("one", "gone", "two"):
        Sources.tell_versions(node(name), {"python": name})
    assert redis_client.hkeys(Keys("test").versions) == [b"one", b"two"]
    found = Sources.versions(node("one"), ["one", "three", "two"])
    assert found == {"one": {"python": "one"}, "two": {"python": "two"}}
    assert Sources.versions(node("one"), []) == {}
    assert 0 < redis_client.ttl(Keys("test").versions) <= 86_400
    alive.clear()
    Sources.tell_versions(node("new"), {"python": "x"})
    assert redis_client.hkeys(Keys("test").versions) == [b"new"]
