"""What every backend of the frontier promises, on a real Redis and on a real file."""

import asyncio
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from moviecrawler.basics.errors import ConfigurationError, FrontierFullError
from moviecrawler.frontier.contract import (
    ARGUMENTS,
    BOOSTED,
    LISTS,
    OFF_SITE,
    OUTCOMES,
    TERMS,
    TITLE_OUTCOMES,
    TITLES,
    Backend,
    End,
    Push,
    RequestIds,
    RunName,
)
from moviecrawler.frontier.outbox import Outbox
from moviecrawler.frontier.redis_client import connect
from moviecrawler.politeness.budgets import UNLIMITED, Budget
from moviecrawler.politeness.ledger import Refusal
from tests.backends import (
    ANOTHER,
    DAY_SECONDS,
    OVER,
    RUN,
    Outside,
    OutsideOfRedis,
    OutsideOfSqlite,
    account_of,
    back,
    begin,
    bury_next,
    charge,
    dead,
    done,
    expect,
    expect_report,
    files,
    finish_all,
    ids,
    is_all_done,
    letter_ids,
    letters_of,
    open_now,
    pushes,
    refuse,
    report_of,
    store,
    stored,
    take,
    take_arguments,
    take_ids,
    worker,
)

ONE = worker("one")
TWO = worker("two")
ONCE = worker("one", is_once=True)


@pytest.fixture(params=["sqlite", "redis"])
async def outside(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Outside]:
    """Return each of the backends, with what may befall its queue."""
    if request.param == "sqlite alone":
        yield OutsideOfSqlite(tmp_path)
    elif request.param == "sqlite":
        file = OutsideOfSqlite(tmp_path)
        await file.begin_others()
        yield file
        file.check_others()
        await file.close()
    else:
        client = connect(request.getfixturevalue("redis_url"))
        yield OutsideOfRedis(client)
        await client.aclose()


@pytest.fixture
def backend(outside: Outside) -> Backend:
    """Return each of the backends."""
    return outside.backend


# --- Passes -------------------------------------------------------------------------------------


@pytest.mark.promise(
    "A run is one pass: who was asked for before its end joins, who is asked for later begins anew."
)
@pytest.mark.parametrize(("requested_at", "age"), [(None, 0.001), (None, 1e6), (1.0, 0.0)])
async def test_a_run_that_is_not_over_is_joined_whenever_somebody_asked(
    backend: Backend, requested_at: float | None, age: float
) -> None:
    await begin(backend, ONE, "a", "b")
    opened = await backend.open(TWO, requested_at, age)
    assert (opened.over_at, opened.remarks) == (None, [])
    reply = await backend.take(TWO)
    assert (reply.account.requested, reply.account.open) == (3, 2)


@pytest.mark.promise(
    "A run is one pass: who was asked for before its end joins, who is asked for later begins anew."
)
async def test_a_run_that_was_over_is_begun_again_only_for_who_asked_later(
    backend: Backend,
) -> None:
    await begin(backend, ONE, "a")
    before = time.time()
    await asyncio.sleep(0.3)
    await finish_all(backend, ONE)
    await asyncio.sleep(0.01)
    for requested_at in (before, None):  # a job; a process that began before
        over_at = (await backend.open(TWO, requested_at, time.time() - before)).over_at
        assert over_at is not None
        assert before < over_at < time.time()
        assert await take(backend, TWO, 9) == []
    assert await open_now(backend, TWO) is None
    await expect(backend, TWO, requested=1, titles=0, ended=0, open=1)
    await take_arguments(backend, TWO)
    assert await backend.push(TWO, pushes("a")) == 0  # which the pass before has seen


@pytest.mark.promise(
    "A run is one pass: who was asked for before its end joins, who is asked for later begins anew."
)
async def test_a_run_whose_name_was_chosen_is_passed_over_once(backend: Backend) -> None:
    await begin(backend, ONCE, "a")
    await finish_all(backend, ONCE)
    await asyncio.sleep(0.01)
    assert await open_now(backend, ONCE) is not None
    assert is_all_done(await account_of(backend, ONCE))


async def test_a_run_is_begun_anew_when_something_of_it_was_lost_even_if_its_name_was_chosen(
    backend: Backend, outside: Outside
) -> None:
    await begin(backend, ONCE, "a", "b")
    await outside.lose("requests")
    await expect(backend, ONCE, open=0, lost=2)
    assert await open_now(backend, ONCE, age=1e6) is None
    await expect(backend, ONCE, requested=1)


async def test_a_worker_with_other_arguments_is_refused(backend: Backend) -> None:
    await begin(backend, ONE)
    other = worker("other", arguments="ids=b")
    with pytest.raises(
        ConfigurationError, match="run 'run' was started with ids=a; this worker has ids=b"
    ):
        await open_now(backend, other)
    await begin(backend, worker(run=RunName("imdb", "other"), arguments="ids=b"))
    await begin(backend, worker(run=RunName("metacritic", "run"), arguments="ids=b"))


async def test_one_worker_at_a_time_queues_what_the_arguments_name(
    backend: Backend, outside: Outside
) -> None:
    for one in (ONE, TWO):
        await open_now(backend, one)
    end = await take_arguments(backend, ONE)
    assert await take(backend, TWO, 9) == []
    await backend.push(ONE, pushes("a"))
    await outside.end_leases(end.id)  # the worker was killed half-way, or sleeps
    again = await take_arguments(backend, TWO)
    assert (again.id, again.number) == (end.id, 2)
    assert await backend.push(TWO, pushes("a", "b")) == 1
    await backend.finish(TWO, [again])
    await expect(backend, TWO, open=2)


async def test_what_the_arguments_name_is_queued_though_the_site_may_not_be_asked(
    backend: Backend,
) -> None:
    budget = Budget(per_day=1)
    one = worker(budget=budget)
    await open_now(backend, one)
    assert (await charge(backend, budget)).used == 1
    await take_arguments(backend, one)
    datasets = Push(OFF_SITE, "datasets", "[]")
    await backend.push(one, [*pushes("a"), datasets])
    assert await take_ids(backend, one, 9) == ["datasets"]


# --- The queue ----------------------------------------------------------------------------------


async def test_a_page_is_queued_once_in_a_pass(backend: Backend) -> None:
    await begin(backend, ONE)
    titles = [f"tt{number}" for number in range(300)]
    assert await backend.push(ONE, pushes(*titles)) == 0
    assert await backend.push(ONE, pushes(*titles[:5])) == 5  # which are open
    await finish_all(backend, ONE)
    assert await backend.push(ONE, pushes(*titles[:5])) == 5  # which were seen
    await expect(backend, ONE, requested=301)


async def test_what_is_repeatable_is_queued_again_but_never_twice_at_a_time(
    backend: Backend,
) -> None:
    await begin(backend, ONE, "a")
    repeatable = Push(TITLES, "a", "[]", title="a", is_repeatable=True)
    unseen = Push(TITLES, "b", "[]", title="b", is_repeatable=True)
    assert await backend.push(ONE, [repeatable, unseen]) == 1
    await finish_all(backend, ONE)
    assert await backend.push(ONE, [repeatable, repeatable]) == 1
    assert await backend.push(ONE, pushes("b")) == 0  # it was not remembered
    await expect(backend, ONE, requested=5, titles=4, open=2)


async def test_the_ids_of_a_run_are_those_of_its_open_requests_and_of_its_latest_letters(
    backend: Backend,
) -> None:
    await begin(backend, ONE, "a", "b", "c")
    leased = await take(backend, ONE, 2)
    found = await backend.ids(RUN)
    assert (found.open, found.died) == ({"a", "b", "c"}, set())
    await backend.finish(ONE, [dead(leased[0]), stored(leased[1])])
    found = await backend.ids(RUN)
    assert (found.open, found.died) == ({"c"}, {leased[0].id})
    assert await backend.ids(RunName("imdb", "another")) == RequestIds()
    place = await backend.place("imdb")
    assert place == await backend.place("imdb")
    assert "None" not in place


async def test_the_arguments_outlive_all_their_workers_and_keep_nothing_from_them(
    backend: Backend, outside: Outside
) -> None:
    one = worker(deliveries=2)
    await open_now(backend, one)
    for number in range(1, 6):
        [arguments] = await take(backend, one, 9)
        assert arguments.number == number
        await outside.end_leases(arguments.id)
    [arguments] = await take(backend, one, 9)
    await backend.push(one, pushes("a"))
    for _ in range(2):
        reply = await backend.take(one, 9, renew=[arguments.id])
        assert ids(reply.deliveries) == ["a"]  # the second time alone, beside the arguments
        await outside.end_leases("a")
    assert (await backend.take(one, 9, renew=[arguments.id])).new_dead_letters == ["a"]


async def test_limit_counts_titles_by_their_ids_and_not_requests(backend: Backend) -> None:
    limited = worker(limit=2)
    await begin(backend, limited)
    assert await backend.push(limited, pushes("a", "b", "c")) == 0
    second_request = Push(TITLES, "page-of-a", "[]", title="a")
    assert await backend.push(limited, [second_request, Push(LISTS, "list", "[]")]) == 0
    await expect(backend, limited, requested=5, titles=3)  # with the arguments


async def test_limit_lets_the_first_titles_through_and_counts_nothing_else(
    backend: Backend,
) -> None:
    limited = worker(limit=1)
    await begin(backend, limited)
    list_page = Push(LISTS, "list", "[]")
    assert await backend.push(limited, [list_page, *pushes("b", "a")]) == 0
    assert await take_ids(backend, limited, 9) == ["list", "b"]
    assert await backend.push(limited, [Push(TITLES, "page-of-b", "[]", title="b")]) == 0
    assert await take_ids(backend, limited, 9) == ["page-of-b"]


async def test_a_letter_that_was_requeued_takes_no_title_from_the_limit(backend: Backend) -> None:
    await bury(backend, "a")
    assert await backend.requeue(RUN, "a")
    limited = worker(limit=1)
    assert await open_now(backend, limited) is None
    await take_arguments(backend, limited)
    assert await backend.push(limited, pushes("a", "b")) == 1
    assert await take_ids(backend, limited, 9) == ["a", "b"]


async def test_limit_holds_for_each_pass(backend: Backend) -> None:
    limited = worker(limit=1)
    for title in ("a", "b"):
        await begin(backend, limited, title, "another")
        assert await take_ids(backend, limited, 9) == [title]
        await backend.finish(limited, [End(id=title, kind="done", outcomes={"stored": 1})])
        await asyncio.sleep(0.01)


async def test_levels_go_first_and_within_one_first_in_is_first_out(backend: Backend) -> None:
    await begin(backend, ONE)
    await backend.push(
        ONE, [*pushes("t2", "t1"), *pushes("l", level=LISTS), *pushes("b", level=BOOSTED)]
    )
    reply = await backend.take(ONE, 3)
    assert ids(reply.deliveries) == ["b", "l", "t2"]
    await backend.finish(ONE, [back(delivery) for delivery in reply.deliveries])
    await backend.push(ONE, pushes("t0"))
    deliveries = await take(backend, ONE, 9)
    assert ids(deliveries) == ["b", "l", "t2", "t1", "t0"]
    assert {delivery.number for delivery in deliveries} == {1}  # to give back is no delivery


async def test_bodies_come_back_as_they_were_queued(backend: Backend) -> None:
    await begin(backend, ONE)
    body = '["parse_title", "Amélie \\u0000 😀\n"]'
    await backend.push(ONE, [Push(TITLES, "a", body), Push(TITLES, "b", "")])
    deliveries = await take(backend, ONE, 9)
    assert [delivery.body for delivery in deliveries] == [body.encode(), b""]


async def test_the_last_requests_are_shared_out(backend: Backend) -> None:
    """Fifty workers: none starves while there is work."""
    workers = [worker(f"w{number}") for number in range(50)]
    for one in workers:
        await open_now(backend, one)
    arguments = await take_arguments(backend, workers[0])
    await backend.finish(workers[0], [arguments])
    for one in workers:
        await backend.take(one)
    await backend.push(workers[0], pushes(*map(str, range(200))))
    got = dict.fromkeys(workers, 0)
    is_open = True
    while is_open:
        replies = [(one, await backend.take(one, 32)) for one in workers]
        for one, reply in replies:
            got[one] += len(reply.deliveries)
            await store(backend, one, reply.deliveries)
        is_open = replies[-1][1].account.open > 0
    assert min(got.values()) >= 2


@pytest.mark.promise(
    "A request is done only when its items are durable everywhere, and what it leads to is queued."
)
async def test_leases_end_only_after_what_came_of_them_is_queued(backend: Backend) -> None:
    await begin(backend, ONE, "list")
    sent: list[str] = []

    class Spy:
        async def push(self, _: object, some: list[Push]) -> int:
            sent.extend(push.id for push in some)
            if len(sent) == 1:
                raise FrontierFullError
            return 0

        async def finish(self, _: object, some: list[End]) -> None:
            sent.extend(f"end of {end.id}" for end in some)

    spy: Any = Spy()
    outbox = Outbox(spy, ONE)
    outbox.end(End(id="early", kind="done"))
    outbox.push(Push(TITLES, "title", "[]"))
    outbox.end(End(id="list", kind="done"))
    with pytest.raises(FrontierFullError):
        await outbox.send()
    assert sent == ["title", "end of early"]
    await outbox.send()
    assert sent[2:] == ["title", "end of list"]
    await expect(backend, ONE, open=1)


# --- Deaths of workers --------------------------------------------------------------------------


@pytest.mark.promise(
    "A page that kills its workers becomes a dead letter, and nothing else with it."
)
async def test_what_was_handed_out_twice_is_handed_out_alone_and_buried_at_last(
    backend: Backend, outside: Outside
) -> None:
    one = worker(deliveries=4)
    await begin(backend, one, *map(str, range(8)))

    async def die(count: int) -> list[str]:
        deliveries = await take(backend, one, count)
        await outside.end_leases(*ids(deliveries))
        return ids(deliveries)

    assert len(await die(8)) == len(await die(8)) == 8
    # Only to a worker that holds nothing.
    assert await take(backend, one, 8, renew=["another"]) == []
    [killer] = await die(8)
    assert await die(8) == [killer]
    reply = await backend.take(one, 8)
    assert reply.new_dead_letters == [killer]
    while reply.deliveries:
        [delivery] = reply.deliveries
        await store(backend, one, [delivery])
        reply = await backend.take(one, 8)
    account = reply.account
    assert (account.requested, account.stored, account.dead, account.open) == (9, 7, 1, 0)
    [letter] = await letters_of(backend)
    assert (letter.id, letter.run, letter.body) == (killer, RUN, "[]")
    assert letter.reason == (
        "handed out 4 times, each time to a worker that died before it was done"
    )
    assert letter.at == pytest.approx(time.time(), abs=60)


@pytest.mark.promise(
    "A page that kills its workers becomes a dead letter, and nothing else with it."
)
async def test_of_a_worker_that_was_only_slow_what_it_stored_is_taken_back_from_the_dead_letters(
    backend: Backend, outside: Outside
) -> None:
    one = worker(deliveries=1)
    await begin(backend, one, "a", "b")
    deliveries = await take(backend, one, 9)
    await outside.end_leases("a", "b")
    reply = await backend.take(worker("two", deliveries=1))
    assert sorted(reply.new_dead_letters) == ["a", "b"]
    await backend.finish(one, [stored(deliveries[0]), done(deliveries[1], failed=1)])
    await expect(backend, one, stored=1, failed=0, dead=1, requested=3, titles=2, lost=0)
    assert await letter_ids(backend) == ["b"]


async def test_a_letter_of_an_earlier_pass_is_not_taken_from_the_account_of_a_later_one(
    backend: Backend,
) -> None:
    await begin(backend, ONE, "a")
    await bury_next(backend, ONE)
    await asyncio.sleep(0.01)
    await begin(backend, ONE, "a")
    [delivery] = await take(backend, ONE, 1)
    await store(backend, ONE, [delivery])
    await store(backend, TWO, [delivery])  # which had it when its lease ended
    await expect(backend, ONE, requested=2, stored=1, dead=0, lost=0)


async def test_a_lease_that_is_over_ends_nothing_though_nobody_has_it_now(
    backend: Backend, outside: Outside
) -> None:
    await begin(backend, ONE, "a")
    [first] = await take(backend, ONE, 1)
    await outside.end_leases("a")
    await backend.take(TWO)
    await backend.finish(ONE, [done(first, failed=1)])
    assert await outside.where() == ({"a"}, set())


@pytest.mark.promise(
    "Any worker may be killed: others get what it held, no title is lost and none doubled."
)
@pytest.mark.parametrize("how", ["back", "dead", "done"])
async def test_a_worker_whose_lease_went_to_another_ends_nothing_of_it(
    backend: Backend, outside: Outside, how: Any
) -> None:
    await begin(backend, ONE, "a")
    [first] = await take(backend, ONE, 1)
    await outside.end_leases("a")  # its time is over
    [second] = await take(backend, TWO, 1)
    assert (first.number, second.number) == (1, 2)
    outcomes = {"failed": 1} if how == "done" else {}
    end = End(id="a", kind=how, number=1, reason="why", outcomes=outcomes)
    await backend.finish(ONE, [end])
    assert await outside.where() == (set(), {"a"})
    await store(backend, TWO, [second])
    account = await account_of(backend, TWO)
    assert is_all_done(account)
    assert (account.stored, account.failed) == (1, 0)


async def test_what_a_worker_has_stored_counts_once_although_others_have_it_now(
    backend: Backend, outside: Outside
) -> None:
    await begin(backend, ONE, "a", "b")
    first = await take(backend, ONE, 2)
    await outside.end_leases("a")
    [second] = await take(backend, TWO, 1)
    await outside.end_leases("b")
    await backend.take(TWO)
    await store(backend, ONE, first)  # leased; and queued
    await store(backend, TWO, [second])
    await expect(backend, TWO, requested=3, stored=2, open=0, lost=0)


async def test_a_lease_that_is_renewed_goes_on(backend: Backend) -> None:
    brief = worker("brief", lease_seconds=0.5)
    await begin(backend, brief, "a", "b")
    await backend.take(brief, 2)
    ended: list[str] = []
    deadline = time.monotonic() + 30
    while not ended:
        assert time.monotonic() < deadline
        await asyncio.sleep(0.05)
        await backend.take(brief, renew=["a"])
        ended = await take_ids(backend, TWO, 2)
    assert ended == ["b"]


async def test_a_worker_counts_until_it_leaves_or_is_not_heard_of(backend: Backend) -> None:
    brief = worker("brief", lease_seconds=0.2)
    for one in (ONE, TWO, brief):
        await open_now(backend, one)
        await backend.take(one)
    await expect_report(backend, workers=3, state="running")
    await asyncio.sleep(0.3)
    await backend.leave(TWO)
    await expect_report(backend, workers=1)
    await backend.leave(ONE)
    await backend.leave(ONE)
    await expect_report(backend, workers=0, state="no worker")


# --- The account --------------------------------------------------------------------------------


async def test_each_outcome_is_counted_once_over_all_workers(backend: Backend) -> None:
    await begin(backend, ONE, *TITLE_OUTCOMES, "killer")
    await backend.push(ONE, [*pushes("open"), Push(LISTS, "read", ""), Push(LISTS, "unread", "")])
    for one in (ONE, TWO, ONE, TWO):
        for delivery in await take(backend, one, 4):
            if delivery.id == "killer":
                await backend.finish(one, [dead(delivery), dead(delivery)])
            elif delivery.id != "open":
                end = done(delivery, **{delivery.id: 1})
                await backend.finish(one, [end])
                await backend.finish(one, [end])
    account = await account_of(backend, ONE)
    counts = {outcome: getattr(account, outcome) for outcome in OUTCOMES}
    assert counts == dict.fromkeys(OUTCOMES, 1) | {"read": 2}  # with the arguments
    assert (account.requested, account.titles, account.open, account.lost) == (10, 7, 1, 0)


async def test_a_request_with_many_outcomes_counts_as_so_many_requests(backend: Backend) -> None:
    await begin(backend, ONE)
    await backend.push(ONE, [Push(OFF_SITE, "datasets", "")])
    [datasets] = await take(backend, ONE, 1)
    await backend.finish(ONE, [done(datasets, stored=40, absent=2)])
    await expect(backend, ONE, requested=43, titles=42, stored=40, absent=2, read=1, lost=0)


# --- Dead letters -------------------------------------------------------------------------------


async def bury(backend: Backend, *titles: str) -> None:
    """Make a pass that is over, of which some titles are dead letters."""
    await begin(backend, ONCE, *titles)
    deliveries = await take(backend, ONCE, 100)
    await backend.finish(ONCE, [dead(delivery, f"of {delivery.id}") for delivery in deliveries])
    await asyncio.sleep(0.01)


@pytest.mark.promise("Dead letters can be listed, queued again and dropped.")
async def test_dead_letters_outlive_passes_until_they_are_dropped(backend: Backend) -> None:
    await bury(backend, "a", "b")
    await begin(backend, ONE, "c")
    report = await report_of(backend)
    assert (report.account.dead, report.dead_letters) == (0, 2)
    letters = await letters_of(backend)
    assert {letter.id: letter.reason for letter in letters} == {"a": "of a", "b": "of b"}
    assert await backend.drop_letter(RUN, "a")
    assert not await backend.drop_letter(RUN, "a")
    assert not await backend.drop_letter(RunName("imdb", "another"), "b")
    assert await letter_ids(backend) == ["b"]
    every = [letter async for letter in backend.dead_letters()]
    assert [letter.id for letter in every if letter.run == RUN] == ["b"]
    assert [letter async for letter in backend.dead_letters("metacritic")] == []


async def test_a_dropped_letter_stays_counted_as_dead(backend: Backend) -> None:
    await bury(backend, "a")
    await backend.drop_letter(RUN, "a")
    await expect(backend, ONCE, dead=1)


async def test_many_dead_letters_are_all_listed(backend: Backend) -> None:
    titles = [f"tt{number}" for number in range(450)]
    await begin(backend, ONE, *titles)
    deliveries = await take(backend, ONE, 1000)
    await backend.finish(ONE, [dead(delivery) for delivery in deliveries])
    assert sorted(letter.id for letter in await letters_of(backend)) == sorted(titles)


@pytest.mark.promise("Dead letters can be listed, queued again and dropped.")
async def test_a_letter_that_is_requeued_joins_the_pass_that_is_under_way(
    backend: Backend,
) -> None:
    await begin(backend, ONE, "a", "b")
    killer = (await backend.take(ONE, 1)).deliveries[0]
    await backend.finish(ONE, [dead(killer)])
    assert await backend.requeue(RUN, "a")
    assert not await backend.requeue(RUN, "a")
    deliveries = await take(backend, ONE, 9)
    assert ids(deliveries) == ["b", "a"]  # at the back of its level
    assert deliveries[1].number == 1  # with all its tries
    await expect(backend, ONE, requested=3, titles=2, dead=0, open=2)
    assert await letters_of(backend) == []
    await store(backend, ONE, deliveries)
    assert is_all_done(await account_of(backend, ONE))


async def test_a_letter_of_an_earlier_pass_that_is_requeued_is_a_request_more(
    backend: Backend,
) -> None:
    await bury(backend, "a")
    await begin(backend, ONE, "b")
    assert await backend.requeue(RUN, "a")
    await expect(backend, ONE, requested=3, titles=2, dead=0, open=2)
    await finish_all(backend, ONE)
    await expect(backend, ONE, lost=0)


async def test_a_letter_that_is_requeued_after_a_lost_state_is_counted_as_dead_no_more(
    backend: Backend, outside: Outside
) -> None:
    await begin(backend, ONE, "a", "b")
    await bury_next(backend, ONE)
    await asyncio.sleep(0.01)
    await outside.lose("state")
    await expect(backend, ONE, dead=1)
    assert await backend.requeue(RUN, "a")
    await expect(backend, ONE, requested=3, dead=0, open=3)


async def test_a_letter_that_is_requeued_while_its_page_is_open_again_doubles_nothing(
    backend: Backend, outside: Outside
) -> None:
    await bury(backend, "a")
    await begin(backend, ONE, "a")
    [delivery] = await take(backend, ONE, 9)
    assert await backend.requeue(RUN, "a")
    assert await outside.where() == (set(), {"a"})
    await store(backend, ONE, [delivery])
    await expect(backend, ONE, requested=2, stored=1, open=0, lost=0)
    assert await letters_of(backend) == []


@pytest.mark.promise("Dead letters can be listed, queued again and dropped.")
async def test_a_letter_that_is_requeued_after_its_pass_waits_for_the_next_one(
    backend: Backend,
) -> None:
    await bury(backend, "a", "b")
    assert await backend.requeue(RUN, "a")
    assert not await backend.requeue(RUN, "a")
    assert await letter_ids(backend) == ["b"]
    await backend.finish(ONE, [End(id="a", kind="done", number=1, outcomes={"stored": 1})])
    assert (await backend.open(TWO, 1.0, 0.0)).over_at is not None
    await expect_report(backend, requeued=1, dead_letters=1, state="finished", is_current=True)
    await expect(backend, ONE, open=0, dead=2)  # it reopens nothing

    assert await open_now(backend, ONE) is None
    await expect(backend, ONE, requested=2, titles=1, dead=0, open=2)
    deliveries = await take(backend, ONE, 9)
    assert deliveries[0].id.startswith(ARGUMENTS)
    assert ids(deliveries[1:]) == ["a"]
    await expect_report(backend, requeued=0, dead_letters=1)


async def test_a_letter_that_waits_for_the_next_pass_joins_none_with_another_one(
    backend: Backend,
) -> None:
    await bury(backend, "a", "b")
    assert await backend.requeue(RUN, "a")
    await backend.push(ONE, pushes("c"))  # by a worker that was only slow
    assert not await backend.requeue(RUN, "a")
    assert not await backend.drop_letter(RUN, "a")
    assert await backend.requeue(RUN, "b")
    assert await take_ids(backend, ONE, 9) == ["c", "b"]
    await expect_report(backend, requeued=1, dead_letters=0)


async def test_a_run_whose_name_was_chosen_is_reopened_for_its_letters_alone(
    backend: Backend,
) -> None:
    await bury(backend, "a", "b")
    assert await backend.requeue(RUN, "a")
    with pytest.raises(ConfigurationError):
        await open_now(backend, worker(arguments="ids=b", is_once=True))
    await expect_report(backend, requeued=1)
    assert await open_now(backend, ONCE) is None
    deliveries = await take(backend, ONCE, 9)
    assert ids(deliveries) == ["a"]
    assert deliveries[0].number == 1
    await expect(backend, ONCE, requested=3, titles=2, dead=1, open=1)
    await store(backend, ONCE, deliveries)
    await asyncio.sleep(0.01)
    assert await open_now(backend, ONCE) is not None
    await expect(backend, ONCE, lost=0)


async def test_requeueing_writes_no_state_and_so_nobody_is_refused_for_it(
    backend: Backend, outside: Outside
) -> None:
    await bury(backend, "a")
    await outside.lose("state")
    assert await backend.requeue(RUN, "a")
    report = await report_of(backend)
    assert (report.requeued, report.arguments, report.account.requested) == (1, "", 0)
    assert report.state == "finished"
    assert await open_now(backend, worker("other", arguments="ids=b")) is None
    deliveries = await take(backend, ONE, 9)
    assert deliveries[0].id.startswith(ARGUMENTS)
    assert ids(deliveries[1:]) == ["a"]
    await expect(backend, ONE, requested=2)


async def test_dead_letters_are_kept_for_30_days(backend: Backend, outside: Outside) -> None:
    await bury(backend, "a")
    assert await outside.keeps_letters_for(29.9 * DAY_SECONDS)
    assert not await outside.keeps_letters_for(30.1 * DAY_SECONDS)


# --- Loss and expiry ----------------------------------------------------------------------------


@pytest.mark.promise("A lost key in Redis never hangs a crawl, and what was lost is told.")
async def test_who_queues_while_all_is_lost_begins_from_the_front(
    backend: Backend, outside: Outside
) -> None:
    await open_now(backend, ONE)
    end = await take_arguments(backend, ONE)
    await backend.push(ONE, pushes("a"))
    await outside.lose("everything")
    await backend.push(ONE, pushes("b"))
    await backend.finish(ONE, [end])  # which says nothing of what was lost
    await take_arguments(backend, ONE)
    assert await backend.push(ONE, pushes("a", "b")) == 1
    await expect(backend, ONE, requested=3, open=3)


@pytest.mark.promise("A lost key in Redis never hangs a crawl, and what was lost is told.")
async def test_a_lost_state_hides_no_dead_letter_and_has_all_queued_again(
    backend: Backend, outside: Outside
) -> None:
    await begin(backend, ONE, "a", "b", "c")
    first, second = await take(backend, ONE, 2)
    await backend.finish(ONE, [dead(first), stored(second)])
    await outside.lose("state")
    reply = await backend.take(ONE)
    assert reply.remarks == ["state of run 'run' was lost; its arguments are queued again"]
    assert (await backend.take(TWO)).remarks == []
    account = reply.account
    assert (account.requested, account.dead, account.open) == (3, 1, 2)  # with new arguments
    end = await take_arguments(backend, ONE)
    assert await backend.push(ONE, pushes("b", "c")) == 1  # nothing counts as seen but what is open
    await backend.finish(ONE, [end])
    await finish_all(backend, ONE)
    await expect(backend, ONE, requested=4, stored=2, dead=1, lost=0)


async def test_a_lost_state_refuses_nobody_and_a_run_without_one_is_restored_when_it_is_opened(
    backend: Backend, outside: Outside
) -> None:
    await begin(backend, ONE, "a")
    await outside.lose("state")
    assert await open_now(backend, worker("other", arguments="ids=b")) is None
    await expect(backend, ONE, requested=2, open=2)
    await take_arguments(backend, ONE)


@pytest.mark.parametrize("part", ["seen", "titles", "letters", "workers"])
async def test_a_part_that_is_lost_stops_nothing(
    backend: Backend, outside: Outside, part: Any
) -> None:
    one = worker(limit=3)
    await begin(backend, one, "a", "b", "c", "d")
    await bury_next(backend, one)
    await outside.lose(part)
    await finish_all(backend, one)
    await expect(backend, one, requested=4, stored=2, dead=1, lost=0)


async def test_a_run_that_is_unused_expires_after_a_week_and_that_is_said_once(
    backend: Backend, outside: Outside
) -> None:
    await begin(backend, ONE, "a", "b")
    assert await outside.lives_for(6.9 * DAY_SECONDS)
    assert not await outside.lives_for(7.1 * DAY_SECONDS)
    await outside.expire()
    opened = await backend.open(worker("other", arguments="ids=b"), None, 0)
    assert opened.over_at is None
    [remark] = opened.remarks
    assert remark.startswith("2 requests that were left of run 'run' are gone")
    opened = await backend.open(worker("other", arguments="ids=b"), None, 0)
    assert (opened.over_at, opened.remarks) == (None, [])
    await expect(backend, ONE, requested=1)


async def test_nothing_is_said_of_a_run_that_expired_when_it_was_over(
    backend: Backend, outside: Outside
) -> None:
    await begin(backend, ONE, "a")
    await finish_all(backend, ONE)
    await outside.expire()
    opened = await backend.open(ONE, None, 1e7)
    assert (opened.over_at, opened.remarks) == (None, [])


async def test_a_run_lives_for_a_week_after_the_pause_of_its_site(
    backend: Backend, outside: Outside
) -> None:
    await begin(backend, ONE, "a")
    await refuse(backend, 3 * DAY_SECONDS)
    await backend.take(ONE)
    assert await outside.lives_for(9.9 * DAY_SECONDS)
    assert not await outside.lives_for(10.1 * DAY_SECONDS)


# --- Reports ------------------------------------------------------------------------------------


@pytest.mark.parametrize("outside", ["sqlite alone", "redis"], indirect=True)
async def test_nothing_is_reported_of_an_empty_frontier_and_nothing_made(
    backend: Backend, tmp_path: Path
) -> None:
    budget = Budget(per_day=7)
    report = await backend.read({"imdb": budget})
    assert report.runs == []
    assert set(report.sites) == {"imdb", "metacritic", "rottentomatoes", "replay"}
    assert report.sites["imdb"].budget == budget
    assert report.sites["metacritic"].budget == UNLIMITED
    assert report.now == pytest.approx(time.time(), abs=60)
    assert await letters_of(backend) == []
    assert not await backend.requeue(RUN, "a")
    assert not await backend.drop_letter(RUN, "a")
    assert not await backend.drop_run(RUN)
    assert await backend.exchange_bans("imdb", {}) == {}
    await backend.leave(ONE)
    assert files(tmp_path) == []


async def test_runs_are_reported_by_site_and_from_the_one_that_began_first(
    backend: Backend,
) -> None:
    names = [
        RunName("metacritic", "run"),
        RunName("replay", "files"),
        RunName("imdb", "second"),
        RunName("imdb", "a third"),
    ]
    for name in names:
        await begin(backend, worker(run=name), "a")
        await asyncio.sleep(0.01)
    others = {ANOTHER.name, OVER.name}
    runs = [run for run in (await backend.read({})).runs if run.run not in others]
    assert [(run.site, run.run) for run in runs] == [*names[2:], *names[:2]]
    assert all(run.ended_at is None and run.arguments == "ids=a" for run in runs)
    assert [run.run for run in (await backend.read({}, "imdb")).runs] == ["second", "a third"]
    assert [run.site for run in (await backend.read({}, name="run")).runs] == ["metacritic"]
    await finish_all(backend, worker(run=names[0]))
    run = (await backend.read({}, "metacritic")).runs[0]
    assert run.ended_at is not None
    assert run.started_at <= run.ended_at <= run.now
    assert (run.account.stored, run.state) == (1, "finished")


async def test_the_runs_that_were_used_last_are_reported_and_any_by_its_name(
    backend: Backend,
) -> None:
    await bury(backend, "a")
    for number in range(TERMS.most_runs):
        await open_now(backend, worker(run=RunName("imdb", f"run {number}")))
    runs = (await backend.read({}, "imdb")).runs
    assert len(runs) == TERMS.most_runs
    assert "run" not in {run.run for run in runs}
    report = await report_of(backend)
    assert (report.dead_letters, report.account.dead) == (1, 1)


async def test_a_site_is_reported_with_its_refusal_and_what_was_charged_today(
    backend: Backend,
) -> None:
    await begin(backend, ONE, "a")
    await charge(backend, UNLIMITED)
    await refuse(backend, 60)
    report = await report_of(backend)
    site = report.site_state
    assert (site.refusal, site.used_today, report.state) == ("go away", 1, "stopped")
    assert site.stopped_until == pytest.approx(time.time() + 60, abs=30)
    await backend.ask("imdb", UNLIMITED, has_answered=True)
    report = await report_of(backend)
    assert (report.site_state.refusal, report.site_state.stopped_until) == (None, None)


async def test_a_run_that_is_dropped_leaves_its_dead_letters(backend: Backend) -> None:
    await bury(backend, "a", "b")
    await backend.requeue(RUN, "a")
    await begin(backend, worker(run=RunName("imdb", "other")), "a")
    assert await backend.drop_run(RUN)
    assert not await backend.drop_run(RUN)
    assert await letter_ids(backend) == ["b"]
    report = await report_of(backend)
    assert (report.dead_letters, report.requeued, report.account.requested) == (1, 0, 0)
    assert report.state == "finished"
    await backend.drop_letter(RUN, "b")
    assert len((await backend.read({}, RUN.site)).runs) == 1
    await begin(backend, worker(arguments="ids=b"), "a")
    await expect(backend, ONE, requested=2)


async def test_a_backend_that_was_closed_can_be_used_again(backend: Backend) -> None:
    await begin(backend, ONE, "a")
    await backend.close()
    await backend.close()
    await expect(backend, ONE, open=1)


# --- Bans of proxies ----------------------------------------------------------------------------


async def test_bans_are_kept_by_site_until_they_are_deleted(backend: Backend) -> None:
    assert await backend.exchange_bans("imdb", {}) == {}
    first = {"one": "1", "two": "2", "three": None}
    assert await backend.exchange_bans("imdb", first) == {"one": "1", "two": "2"}
    assert await backend.exchange_bans("metacritic", {"one": "ä"}) == {"one": "ä"}
    changes = {"one": "3", "two": None}
    assert await backend.exchange_bans("imdb", changes) == {"one": "3"}
    assert await backend.exchange_bans("imdb", {}) == {"one": "3"}
    assert await backend.exchange_bans("imdb", {}) == {"one": "3"}
    assert await backend.exchange_bans("rottentomatoes", {}) == {}
    await backend.exchange_bans("metacritic", {"one": None})
    assert await backend.exchange_bans("metacritic", {}) == {}


async def test_bans_outlive_a_backend_and_a_run(backend: Backend) -> None:
    await begin(backend, ONE, "a")
    await backend.exchange_bans("imdb", {"one": "1"})
    await finish_all(backend, ONE)
    await backend.drop_run(RUN)
    await backend.close()
    assert await backend.exchange_bans("imdb", {}) == {"one": "1"}


# --- Budgets and refusals -----------------------------------------------------------------------


@pytest.mark.promise(
    "Live sites have budgets a second and a day, and all workers together keep them."
)
async def test_requests_are_spaced_by_the_budget_however_many_wait_for_their_turn(
    backend: Backend,
) -> None:
    budget = Budget(per_second=0.1)
    delays = [(await charge(backend, budget)).delay for _ in range(30)]
    expected = [pytest.approx(number * 10_500, abs=5_000) for number in range(30)]
    assert delays == expected


async def test_a_clock_that_was_ahead_delays_nothing_for_long(
    backend: Backend, outside: Outside
) -> None:
    budget = Budget(per_second=10)
    await charge(backend, budget)
    await outside.set_clock_back(DAY_SECONDS)
    delays = [(await charge(backend, budget)).delay for _ in range(2)]
    assert max(delays) < 5_000


async def test_a_clock_that_was_ahead_makes_no_pause_longer_and_no_probe(
    backend: Backend, outside: Outside
) -> None:
    site = await refuse(backend, 60)
    await outside.set_clock_back(DAY_SECONDS)
    site = await backend.ask("imdb", UNLIMITED)
    assert site.blocked == pytest.approx(60_000, abs=5_000)
    await outside.set_clock_back(-20)  # so much time passes
    site = await backend.ask("imdb", UNLIMITED)
    assert site.blocked == pytest.approx(40_000, abs=5_000)
    await outside.end_pause()
    assert (await charge(backend, UNLIMITED)).probing
    await outside.set_clock_back(DAY_SECONDS)
    site = await backend.ask("imdb", UNLIMITED)
    assert site.state == "probed"
    assert site.blocked == pytest.approx(60_000, abs=5_000)


@pytest.mark.promise(
    "Live sites have budgets a second and a day, and all workers together keep them."
)
async def test_a_request_is_charged_when_it_is_sent_and_nothing_is_credited(
    backend: Backend,
) -> None:
    budget = Budget(per_day=2)
    one = worker(budget=budget)
    await begin(backend, one, *map(str, range(9)))
    [delivery] = await take(backend, one, 1)
    await backend.finish(one, [back(delivery)])
    used = [(await charge(backend, budget)).used for _ in range(2)]
    assert used == [1, 2]
    assert (await charge(backend, budget)).state == "budget_spent"
    reply = await backend.take(one, 9)
    assert (reply.deliveries, reply.account.open) == ([], 9)
    assert reply.site.state == "budget_spent"
    assert reply.site.reason == "the daily budget is exhausted"


async def test_a_day_spent_at_23_59_goes_on_at_00_01_in_the_same_run(
    backend: Backend, outside: Outside
) -> None:
    budget = Budget(per_day=1)
    one = worker(budget=budget)
    await begin(backend, one, *map(str, range(3)))
    assert (await charge(backend, budget)).state == "open"
    site = (await backend.take(one, 9)).site
    assert site.state == "budget_spent"
    assert site.blocked == pytest.approx(-time.time() % DAY_SECONDS * 1000, abs=5_000)
    await outside.begin_next_day()
    again = worker("two", budget=budget)
    assert await open_now(backend, again) is None
    reply = await backend.take(again, 9)
    assert reply.deliveries
    assert reply.account.requested == 4
    assert (await charge(backend, budget)).used == 1


async def test_a_request_is_charged_to_the_day_of_its_turn(backend: Backend) -> None:
    budget = Budget(per_second=0.5 / DAY_SECONDS, per_day=1)
    for days in (0, 2):
        reply = await charge(backend, budget)
        assert (reply.state, reply.used) == ("open", 1)
        assert reply.delay >= days * DAY_SECONDS * 1000


@pytest.mark.promise(
    "Live sites have budgets a second and a day, and all workers together keep them."
)
async def test_a_clock_that_was_ahead_gives_no_day_a_second_budget(
    backend: Backend, outside: Outside
) -> None:
    budget = Budget(per_day=2)
    for used in (1, 2):
        assert (await charge(backend, budget)).used == used
    await outside.set_clock_back(DAY_SECONDS)
    assert (await charge(backend, budget)).state == "budget_spent"
    await outside.begin_next_day()
    assert (await charge(backend, budget)).used == 1


async def test_a_pause_is_the_longest_that_an_answer_asks_for(
    backend: Backend, outside: Outside
) -> None:
    for seconds, longest in ((600, 600), (3600, 3600), (60, 3600)):
        site = await refuse(backend, seconds)
        assert site.blocked == pytest.approx(longest * 1000, abs=5_000)
    await outside.end_pause()
    site = await refuse(backend, 600)
    assert site.blocked == pytest.approx(1_200_000, abs=5_000)  # the second refusal in a row


@pytest.mark.promise(
    "After a refusal, one request finds out for all workers whether the site answers again."
)
async def test_a_refusal_stops_all_workers_and_one_probe_finds_out_when_it_is_over(
    backend: Backend, outside: Outside
) -> None:
    await begin(backend, ONE, *map(str, range(9)))
    for trips in (1, 2):
        site = await refuse(backend, 60)
        assert (site.blocked > 0, site.state, site.reason) == (True, "refused", "go away")
        site = await backend.ask("imdb", UNLIMITED, refusal=Refusal("what was in flight", 60))
        assert site.reason == "go away"
        assert site.blocked == pytest.approx(60_000 * trips, abs=5_000)  # the pause doubles
        assert await take(backend, ONE, 9) == []
        assert (await backend.ask("metacritic", UNLIMITED)).blocked == 0
        await outside.end_pause()
        reply = await backend.take(ONE, 9)
        assert (len(reply.deliveries), reply.site.state) == (1, "half_open")
        assert (await charge(backend, UNLIMITED)).probing
        site = await charge(backend, UNLIMITED)
        assert (site.blocked > 0, site.state, site.probing) == (True, "probed", False)
        assert await take(backend, ONE, 9) == []
    await backend.ask("imdb", UNLIMITED, has_answered=True)
    assert len(await take(backend, ONE, 9)) == 7


async def test_a_pause_is_never_longer_than_a_week(backend: Backend, outside: Outside) -> None:
    for _ in range(12):
        site = await refuse(backend, 3600)
        assert 0 < site.blocked <= 7 * DAY_SECONDS * 1000
        await outside.end_pause()
    assert site.blocked > 6.9 * DAY_SECONDS * 1000


async def test_the_robots_txt_that_was_fetched_last_is_kept_for_all(backend: Backend) -> None:
    host = "https://www.imdb.com"
    assert await backend.read_robots(host) is None
    for text in ("User-agent: *\nDisallow: /ä\n", ""):
        await backend.keep_robots(host, text)
        kept = await backend.read_robots(host)
        assert kept is not None
        assert kept.text == text
        assert kept.fetched_at == pytest.approx(time.time(), abs=60)
    assert await backend.read_robots("http://www.imdb.com") is None


async def test_what_is_put_last_comes_after_the_others_of_its_level_and_counts_for_nothing(
    backend: Backend,
) -> None:
    await begin(backend, ONE, *"abc")
    for _ in range(7):  # more often than a request may be handed out
        [delivery] = await take(backend, ONE, 1)
        await backend.finish(ONE, [End(id=delivery.id, kind="last", number=delivery.number)])
    await backend.push(ONE, pushes("list", level=LISTS))
    deliveries = await take(backend, ONE, 9)
    assert ids(deliveries) == ["list", "b", "c", "a"]
    assert {delivery.number for delivery in deliveries} == {1}
    await expect(backend, ONE, open=4)
    assert await letters_of(backend) == []
    await backend.finish(
        ONE, [End(id="b", kind="last", number=1), End(id="c", kind="back", number=1)]
    )
    assert await take_ids(backend, ONE, 9, ["a", "list"]) == ["c", "b"]
