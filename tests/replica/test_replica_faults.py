import http.client
from collections import Counter
from contextlib import nullcontext
from typing import Any
from urllib.error import HTTPError

import pytest

from moviecrawler.basics.errors import ConfigurationError
from moviecrawler.replica.app import choose
from moviecrawler.replica.options import Fault, Options
from moviecrawler.replica.process import ReplicaProcess
from moviecrawler.sites import SITES
from tests.crawling import change, counts
from tests.replica.client import ask
from tests.services.replica import IDS
from tests.waiting import LONGEST, wait_for

PATH = f"/title/{IDS[0]}/"


def test_faults_meet_their_shares_of_requests_and_the_same_ones_again() -> None:
    shares = {Fault.SERVER_ERROR: 0.2, Fault.RESET: 0.1}
    asked = [(f"/title/tt{n}/", attempt) for n in range(5_000) for attempt in (1, 2)]
    first = [choose(1, shares, *one) for one in asked]
    again = [choose(1, shares, *one) for one in asked]
    other = [choose(2, shares, *one) for one in asked]
    met = Counter(first)
    assert met == {
        Fault.SERVER_ERROR: pytest.approx(2_000, rel=0.1),
        Fault.RESET: pytest.approx(1_000, rel=0.1),
        None: pytest.approx(7_000, rel=0.1),
    }
    assert first == again != other
    assert any(once and not again for once, again in zip(first[::2], first[1::2], strict=True)), (
        "a retry can succeed"
    )


@pytest.mark.parametrize("site", SITES)
@pytest.mark.parametrize("fault", ["500", "403", "429", "404", "throttle", "challenge"])
def test_spoiled_answers_look_like_the_sites_own(
    replica: ReplicaProcess, fault: str, site: str
) -> None:
    change(replica, faults={fault: 1})
    reply = ask(replica.urls[site] + PATH)
    expected = {"throttle": 200, "challenge": 202 if site == "imdb" else 403}
    assert reply.status == (int(fault) if fault.isdigit() else expected[fault])
    assert len(reply.body) < (5_000 if fault == "404" else 2_000)
    assert ("retry-after" in reply.headers) == (fault == "429")
    assert (reply.headers.get("x-amzn-waf-action") == "challenge") == (
        (fault, site) == ("challenge", "imdb")
    )
    assert (reply.headers.get("cf-mitigated") == "challenge") == (
        (fault, site) == ("challenge", "metacritic")
    )
    assert counts(replica, site)["faults"] == {fault: 1}


def test_a_timeout_says_nothing_and_a_reset_breaks_the_connection(replica: ReplicaProcess) -> None:
    change(replica, faults={"timeout": 1})
    with pytest.raises(TimeoutError):
        ask(replica.urls["imdb"] + PATH, timeout=0.3)
    change(replica, faults={"reset": 1})
    with pytest.raises(ConnectionError):
        ask(replica.urls["imdb"] + PATH, timeout=LONGEST)


@pytest.mark.parametrize("path", [PATH, "/datasets/title.basics.tsv.gz"])
def test_a_truncated_answer_ends_early(replica: ReplicaProcess, path: str) -> None:
    whole = ask(replica.urls["imdb"] + path)
    change(replica, faults={"truncated": 1})
    with pytest.raises(http.client.IncompleteRead) as broken:
        ask(replica.urls["imdb"] + path)
    assert 0 < len(broken.value.partial) < len(whole.body)
    assert whole.body.startswith(broken.value.partial)


@pytest.mark.parametrize(
    "options", [{"faults": {"teapot": 0.1}}, {"faults": {"404": 2}}, {"titles": 5, "faults": {}}]
)
def test_options_that_cannot_be_are_refused_and_change_nothing(
    replica: ReplicaProcess, options: dict[str, Any]
) -> None:
    change(replica, faults={"500": 1})
    with pytest.raises(HTTPError, match="400"):
        change(replica, **options)
    assert ask(replica.urls["imdb"] + PATH).status == 500


def test_more_requests_than_the_rate_limit_get_429(replica: ReplicaProcess) -> None:
    url = replica.urls["imdb"] + PATH
    change(replica, rate_limit=1)
    assert ask(url, {"User-Agent": "a"}).status == 200
    wait_for(lambda: ask(url, {"User-Agent": "a"}).headers.get("retry-after") == "1")
    assert ask(url, {"User-Agent": "b"}).status == 200


@pytest.mark.parametrize(
    ("name", "lowest", "highest"),
    [
        ("port", 0, 65_533),
        ("titles", 1, 200_000),
        ("series", 0, 10_000),
        ("seed", 0, 1_000_000_000),
        ("latency", 0, 86_400_000),
        ("rate_limit", 1, 1_000_000),
    ],
)
def test_an_option_has_bounds(name: str, lowest: int, highest: int) -> None:
    for right in (lowest, highest):
        assert getattr(Options.read({name: right}), name) == right
    for wrong in (lowest - 1, highest + 1):
        with pytest.raises(ConfigurationError, match=name):
            Options.read({name: wrong})


@pytest.mark.parametrize(
    ("faults", "told"),
    [
        ({"404": 1, "500": 0}, ""),
        ({"404": -0.1}, "the share of 404 is -0.1; use 0 to 1"),
        ({"404": 1.1}, "the share of 404 is 1.1; use 0 to 1"),
        ({"404": 0.6, "500": 0.5}, "the shares of faults add up to 1.1; use at most 1"),
    ],
)
def test_shares_of_faults_are_those_of_all_requests(faults: dict[str, float], told: str) -> None:
    with pytest.raises(ConfigurationError, match=told) if told else nullcontext():
        Options.read({"faults": faults})


def test_only_some_options_are_changed_while_a_replica_runs() -> None:
    options = Options.read({"titles": 3})
    assert options.change({"latency": 5.0}) == Options.read({"titles": 3, "latency": 5.0})
    with pytest.raises(ConfigurationError, match="'titles' can't be changed; latency, "):
        options.change({"titles": 4})
