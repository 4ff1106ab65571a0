from __future__ import annotations

from typing import TYPE_CHECKING

from moviecrawler.replica.counts import Counts
from moviecrawler.replica.movies import Catalogue
from tests.replica.client import Control, ask

if TYPE_CHECKING:
    from moviecrawler.replica.process import ReplicaProcess

PATH = f"/title/{Catalogue().imdb_id(0)}/"


def test_the_rate_limit_counts_each_client_by_the_second() -> None:
    counts = Counts()
    places = [counts.arrive("/", "a", now)[1] for now in (10.0, 10.5, 10.999, 11.0, 11.1)]
    assert places == [1, 2, 3, 1, 2]
    assert counts.arrive("/", "b", 11.2)[1] == 1


def test_requests_are_counted(replica: ReplicaProcess, control: Control) -> None:
    for _ in range(2):
        ask(replica.urls["imdb"] + PATH, {"User-Agent": "tester"})
    ask(replica.urls["imdb"] + "/title/tt0000001/?a=b", {"User-Agent": "other"})
    ask(replica.urls["imdb"] + "/robots.txt")
    ask(replica.urls["metacritic"] + "/robots.txt")
    counts = control.counts()
    assert (counts["requests"], counts["robots"], sum(counts["seconds"].values())) == (3, 1, 3)
    assert counts["paths"] == {PATH: 2, "/title/tt0000001/?a=b": 1}
    assert counts["clients"] == {"127.0.0.1 tester": 2, "127.0.0.1 other": 1}
    assert counts["statuses"] == {"200": 2, "404": 1}
    assert control.counts("metacritic")["requests"] == 0
    control.reset()
    assert not any(control.counts().values())
