"""What is told of a run, by figures alone."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
import redis
from redis.asyncio.connection import AbstractConnection

from moviecrawler.frontier import report
from moviecrawler.frontier.budgets import Budget
from moviecrawler.frontier.dead_letters import Place, page_of_dead_letters
from moviecrawler.frontier.keys import Keys
from moviecrawler.frontier.queue import SharedQueue
from moviecrawler.frontier.report import read_current_runs, read_earlier_runs, read_runs
from moviecrawler.frontier.runs import Rate, RunReport
from moviecrawler.items import Site
from moviecrawler.options import FrontierOptions

NOW = 1_000_000.0


def a_run(**figures: object) -> RunReport:
    given = {
        "total": 10,
        "done": 4,
        "failed": 1,
        "dropped": 0,
        "queued": 3,
        "dead_letters": 0,
        "workers": 2,
        "started_at": NOW - 100,
        "ended_at": NOW - 10,
        "now": NOW,
        **figures,
    }
    return RunReport(site="imdb", run="default", **given)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("figures", "state"),
    [
        ({}, "running"),
        ({"workers": 0}, "no worker"),
        ({"done": 9}, "running"),  # its workers have yet to notice
        ({"done": 9, "workers": 0}, "finished"),
        ({"done": 9, "workers": 0, "refusal": "no", "stopped_until": NOW + 1}, "finished"),
        ({"refusal": "no", "stopped_until": NOW + 1}, "stopped"),
        ({"refusal": "no", "stopped_until": NOW}, "trying"),
        ({"budget": Budget(per_day=7), "used_today": 6}, "running"),
        ({"budget": Budget(per_day=7), "used_today": 7}, "budget spent"),
    ],
)
def test_state_is_what_holds_a_run_up(figures: dict[str, object], state: str) -> None:
    assert a_run(**figures).state == state


def test_rate_is_the_mean_at_first_and_then_follows_what_is_done() -> None:
    rate = Rate(since=NOW - 100)
    assert rate.seconds_left(5) is None
    rate.update(50, NOW)
    assert (rate.per_second, rate.seconds_left(5)) == (0.5, 10.0)
    for second in range(1, 301):
        rate.update(50 + 4 * second, NOW + second)
        assert rate.per_second is not None
        assert 0.5 < rate.per_second < 4
    assert rate.per_second == pytest.approx(4, rel=0.01)
    for second in range(301, 601):
        rate.update(50 + 1200, NOW + second)
    assert rate.per_second == pytest.approx(0, abs=0.01)


def test_rate_is_the_same_however_often_it_is_looked_at() -> None:
    seldom, often = Rate(since=NOW), Rate(since=NOW)
    for rate, step in ((seldom, 20), (often, 1)):
        rate.update(100, NOW + 100)
        for second in range(100 + step, 161, step):
            rate.update(100 + 3 * (second - 100), NOW + second)
    assert seldom.per_second == pytest.approx(often.per_second)


def test_rate_survives_a_count_that_falls_and_a_clock_that_stands() -> None:
    rate = Rate(since=NOW)
    rate.update(10, NOW)
    assert rate.per_second is None
    rate.update(10, NOW + 10)
    rate.update(8, NOW + 20)  # dead letters were queued again
    assert rate.per_second is not None
    assert 0 < rate.per_second < 1


# --- Of many runs -------------------------------------------------------------------------------------------------------

HOURS = 3600


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return a list that gets an entry whenever something is sent to Redis: the number of commands."""
    times: list[int] = []
    send = AbstractConnection.send_packed_command

    async def counted(self: Any, command: Any, *arguments: Any, **more: Any) -> None:
        packed = command if isinstance(command, bytes) else b"".join(command)
        times.append(packed.count(b"\r\n*") + 1)
        await send(self, command, *arguments, **more)

    monkeypatch.setattr(AbstractConnection, "send_packed_command", counted)
    return times


def add(client: Any, site: Site, run: str, *, hours: float, total: int = 1, done: int = 1, letters: int = 0) -> Keys:
    """Write a run that a worker has begun with so long ago, and that has ended as long ago."""
    keys = Keys(site, run)
    at = round((time.time() - hours * HOURS) * 1000)
    client.hset(keys.state, mapping={"born": "x", "started_at": at, "ended_at": at, "total": total, "done": done})
    client.zadd(keys.runs, {run: at})
    client.zadd(keys.current, {run: at})
    for number in range(letters):
        entry = f"201{number:032}[1,2]"
        client.hset(keys.dead_letters, f"{number:032}", json.dumps({"reason": "r" * 70, "at": at}) + "\n" + entry)
    return keys


async def test_many_runs_are_read_in_few_round_trips(client: Any, redis_client: redis.Redis, sent: list[int]) -> None:
    for number in range(250):
        add(redis_client, "imdb", f"r{number:03}", hours=number, total=number)
    add(redis_client, "metacritic", "x", hours=1)
    found = await read_runs(client)
    assert 4 <= len(sent) <= 12  # three pipelines of runs, four other questions, and what a new connection says
    assert max(sent) <= 1000
    assert [(run.site, run.total) for run in found] == [
        *(("imdb", number) for number in range(249, -1, -1)),
        ("metacritic", 1),
    ]
    assert [run.run for run in await read_runs(client, run="r007")] == ["r007"]
    assert [run.run for run in await read_runs(client, "metacritic")] == ["x"]


async def test_current_runs_cost_the_same_however_many_are_over(
    client: Any, redis_client: redis.Redis, sent: list[int]
) -> None:
    add(redis_client, "imdb", "default", hours=500, total=9)
    add(redis_client, "imdb", "set-aside", hours=400, letters=1)
    for number in range(700):
        add(redis_client, "imdb", f"over{number}", hours=2 + number / 100)
    add(redis_client, "imdb", "just-now", hours=0.9)
    # What is over is told of no more, and not read again: at most as many at once as are read at all.
    names = [[run.run for run in (await read_current_runs(client)).runs] for _ in range(4)]
    assert names[-1] == ["default", "set-aside", "just-now"]
    assert redis_client.zcard(Keys("imdb", "").current) == 3
    assert redis_client.zcard(Keys("imdb", "").runs) == 703
    sent.clear()
    assert len((await read_current_runs(client)).runs) == 3
    assert sum(sent) < 250  # those three, twenty others, and the sites' own


async def test_run_that_a_worker_begins_with_anew_is_current_again(client: Any, redis_client: redis.Redis) -> None:
    keys = add(redis_client, "imdb", "again", hours=30)
    for number in range(40):  # so that it is not among the latest
        add(redis_client, "imdb", f"over{number}", hours=2)
    assert (await read_current_runs(client)).runs == []

    # It was seen as over, and a worker has begun since.
    redis_client.zadd(keys.current, {"again": 1})
    options = FrontierOptions(url="redis://", run="again", node="here")
    await SharedQueue(client, keys, options, worker="w").open("n")
    redis_client.hset(keys.state, "total", 5)
    await report._forget(client, [(keys, "1")])
    assert [run.run for run in (await read_current_runs(client)).runs] == ["again"]


async def test_those_begun_with_last_are_read_and_the_others_counted(client: Any, redis_client: redis.Redis) -> None:
    for number in range(30):
        add(redis_client, "imdb", f"cut{number:02}", hours=100 - number, total=2)
    found = await read_current_runs(client, most=20)
    assert [run.run for run in found.runs if run.run >= "cut10"] == [f"cut{number:02}" for number in range(10, 30)]
    assert found.left_out == 10


async def test_expired_runs_are_forgotten_by_whoever_looks(client: Any, redis_client: redis.Redis) -> None:
    for number in range(30):
        keys = add(redis_client, "imdb", f"r{number}", hours=1)
        redis_client.delete(keys.state)
    kept = add(redis_client, "imdb", "kept", hours=0)
    for _ in range(100):
        await read_current_runs(client)
        if redis_client.zcard(kept.runs) == 1:
            break
    assert redis_client.zrange(kept.runs, 0, -1) == redis_client.zrange(kept.current, 0, -1) == [b"kept"]


async def test_earlier_runs_are_paged_through_each_once(client: Any, redis_client: redis.Redis) -> None:
    for number in range(60):
        add(redis_client, ("imdb", "metacritic")[number % 2], f"r{number}", hours=2 + number // 3)
    add(redis_client, "imdb", "now", hours=0)
    seen: list[RunReport] = []
    before: float | None = None
    for _ in range(20):
        page, before = await read_earlier_runs(client, before=before, size=7)
        assert len(page) <= 10
        seen += page
        if before is None:
            break
    assert before is None
    assert sorted(run.run for run in seen) == sorted(f"r{number}" for number in range(60))
    assert [run.started_at for run in seen] == sorted((run.started_at for run in seen), reverse=True)
    assert await read_earlier_runs(client, 1.0, 7) == ([], None)


async def test_dead_letters_are_paged_through_each_once_while_others_come_and_go(
    client: Any, redis_client: redis.Redis
) -> None:
    expected = set()
    for site, run, count in (("imdb", "a", 400), ("imdb", "b", 3), ("metacritic", "a", 150)):
        keys = add(redis_client, site, run, hours=9, letters=count)  # type: ignore[arg-type]
        expected |= {(site, run, f"{number:032}") for number in range(count)}
    add(redis_client, "rottentomatoes", "none", hours=9)

    seen: list[tuple[str, str, str]] = []
    place: Place | None = None
    for turn in range(40):
        letters, place = await page_of_dead_letters(client, await read_runs(client), place, 50)
        assert len(letters) < 150
        seen += [(letter.site, letter.run, letter.id) for letter in letters]
        redis_client.hset(keys.dead_letters, f"new{turn}", '{"reason":"new","at":null}\nseed')
        if place is None:
            break
        place = Place.parse(str(place))
    assert place is None
    assert expected <= set(seen)
    assert len(seen) < len(expected) + 60
    # The run that a page begins with has gone.
    redis_client.delete(Keys("imdb", "b").dead_letters)
    letters, _ = await page_of_dead_letters(client, await read_runs(client), Place("imdb", "b", 0), 50)
    assert {letter.site for letter in letters} == {"metacritic"}


@pytest.mark.parametrize("text", ["", "imdb", "imdb/a/x", "nowhere/a/1", "imdb/a/-1", f"imdb/a/{10**19}", "imdb/a/1/2"])
def test_place_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is no place"):
        Place.parse(text)


NESTED = "[" * 5000


@pytest.mark.parametrize(
    "letter",
    ["", "x", NESTED, '{"reason":1}', '{"reason":"r","at":"x"}\n', f'{{"reason":"r","at":1}}\n{"2" * 35}{NESTED}', "\n" * 9,
     '{"reason":"r","at":1}\n' + "2" * 35 + '[1,[2],"imdb",4,5,6,7,8,9,10,11]',
     b'{"reason":"\xff","at":1}\n', b'{"reason":"r","at":1}\n' + b"2" * 35 + b'["\xff"]'],
)  # fmt: skip
async def test_what_others_have_set_aside_breaks_nothing(
    client: Any, redis_client: redis.Redis, letter: str | bytes
) -> None:
    keys = add(redis_client, "imdb", "a", hours=0)
    redis_client.hset(keys.dead_letters, b"\xff", letter)

    [found], _ = await page_of_dead_letters(client, await read_runs(client), None, 9)
    assert (found.id, found.request) == ("\\xff", None)
    assert found.reason in {"r", "set aside by another program"}
