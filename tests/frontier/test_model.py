"""Each backend against a dictionary: whatever workers do, die of or lose, nothing is doubled."""

import asyncio
import tempfile
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, TypeVar

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    invariant,
    multiple,
    precondition,
    rule,
    run_state_machine_as_test,
)

from moviecrawler.frontier.contract import (
    ARGUMENTS,
    LISTS,
    OUTCOMES,
    SEED,
    TERMS,
    TITLE_OUTCOMES,
    TITLES,
    Delivery,
    End,
    Push,
)
from moviecrawler.frontier.redis_client import connect
from tests.backends import (
    RUN,
    Outside,
    OutsideOfRedis,
    OutsideOfSqlite,
    account_of,
    letters_of,
    report_of,
    worker,
)

DELIVERIES = 3
WORKERS = [worker(f"w{number}", deliveries=DELIVERIES) for number in range(3)]
NUMBERS = st.integers(0, len(WORKERS) - 1)
IDS = "abcdefg"
LISTS_IDS = "fg"
"""Those of IDS that are for lists."""
HOWS = [{"stored": 1}, "dead", {"failed": 1}, "back", {"stored": 2, "absent": 1}, {}]
"""How a lease ends: done, with such outcomes, or otherwise."""
PARTS = ["run", "state", "requests", "seen", "workers", "everything"]
ENDS_BEFORE_LOSS = 6
"""Leases that end before something is lost; otherwise hardly anything would be queued for long."""
LETTERS = st.runner().flatmap(lambda machine: st.sampled_from([*sorted(machine.dead), "none"]))
"""The ids of dead letters, and one that is not."""
Held = tuple[int, Delivery]
Result = TypeVar("Result")


def push_of(id_: str, *, is_repeatable: bool = False) -> Push:
    is_list = id_ in LISTS_IDS
    return Push(
        LISTS if is_list else TITLES,
        id_,
        f"[{id_}]",
        title="" if is_list else f"title of {id_}",
        is_repeatable=is_repeatable,
    )


def is_title(id_: str) -> bool:
    return id_.startswith(SEED) or (id_ in IDS and id_ not in LISTS_IDS)


class Frontier(RuleBasedStateMachine):
    """The model of a run's queue, and a real one."""

    held = Bundle("held")

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.outside = self.make_outside()
        self.backend = self.outside.backend
        # What is open, with how often each was handed out, and who holds it.
        self.open: dict[str, int] = {}
        self.holder: dict[str, int] = {}
        self.seen: set[str] = set()
        self.dead: set[str] = set()
        """The dead letters. Those of `old` are of earlier passes."""
        self.old: set[str] = set()
        self.requeued: set[str] = set()
        self.counts = dict.fromkeys(("requested", *OUTCOMES), 0)
        self.are_titles_known = True
        self.titles = 0
        self.ends = 0
        """Leases that have ended since something was lost."""
        self.do(self.backend.open(WORKERS[0], None, 0))
        self.begin_pass()
        self.push(list(IDS), 0, is_repeatable=False)

    def make_outside(self) -> Outside:
        raise NotImplementedError

    def do(self, step: Coroutine[Any, Any, Result]) -> Result:
        return self.runner.run(step)

    def teardown(self) -> None:
        self.do(self.outside.close())
        self.runner.close()

    # --- The model ------------------------------------------------------------------------------

    def ids(self) -> set[str]:
        queued, leased = self.do(self.outside.where())
        return queued | leased

    def arguments_wait(self) -> None:
        """Find what stands for the arguments, which a step has put into the queue."""
        [new] = self.ids() - self.open.keys() - self.requeued
        assert new.startswith(ARGUMENTS)
        self.open[new] = 0
        self.seen.clear()

    def begin_pass(self) -> None:
        self.arguments_wait()
        self.old |= self.dead | self.requeued
        self.counts = dict.fromkeys(self.counts, 0) | {"requested": 1}
        self.titles = 0
        self.are_titles_known = True
        self.queue_letters()

    def queue_letters(self) -> None:
        for id_ in self.requeued:
            self.queue_letter(id_)
        self.requeued.clear()

    def queue_letter(self, id_: str) -> None:
        """Queue a dead letter, which is dead no more when it died in this pass."""
        if id_ not in self.open:
            self.queue(id_)
            if id_ not in self.old:
                self.counts["dead"] -= 1
                self.counts["requested"] -= 1
                self.titles -= is_title(id_)
        self.old.discard(id_)

    def queue(self, id_: str) -> None:
        self.open[id_] = 0
        self.counts["requested"] += 1
        self.titles += is_title(id_)

    def bury(self, id_: str) -> None:
        del self.open[id_]
        self.holder.pop(id_, None)
        self.counts["dead"] += 1
        self.dead.add(id_)
        self.old.discard(id_)
        self.requeued.discard(id_)

    def count(self, id_: str, outcomes: dict[str, int]) -> None:
        for outcome, number in outcomes.items():
            self.counts[outcome] += number
        self.counts["requested"] += sum(outcomes.values()) - 1
        self.titles += sum(outcomes.get(outcome, 0) for outcome in TITLE_OUTCOMES)
        self.titles -= is_title(id_)

    @property
    def is_over(self) -> bool:
        return not self.open

    @property
    def lost(self) -> int:
        ended = sum(self.counts[outcome] for outcome in OUTCOMES)
        return max(0, self.counts["requested"] - ended - len(self.open))

    # --- What workers do ------------------------------------------------------------------------

    @rule(
        ids=st.lists(st.sampled_from(IDS), max_size=5),
        number=NUMBERS,
        is_repeatable=st.booleans(),
    )
    def push(self, ids: list[str], number: int, is_repeatable: bool) -> None:
        some = [push_of(id_, is_repeatable=is_repeatable) for id_ in ids]
        dropped = self.do(self.backend.push(WORKERS[number], some))
        queued = 0
        for id_ in ids:
            if id_ not in self.open and (is_repeatable or id_ not in self.seen):
                self.queue(id_)
                queued += 1
            if not is_repeatable:
                self.seen.add(id_)
        assert dropped == len(ids) - queued

    @rule(target=held, number=NUMBERS, want=st.integers(1, 4), holds=st.booleans())
    def take(self, number: int, want: int, holds: bool) -> Any:
        before = self.ids()
        reply = self.do(self.backend.take(WORKERS[number], want, ["another"] if holds else []))
        self.receive_seeds(self.ids() - before, want)
        for id_ in reply.new_dead_letters:
            assert self.open[id_] >= DELIVERIES
            self.bury(id_)
        alone = [
            one
            for one in reply.deliveries
            if one.number > TERMS.deliveries_alone and not one.id.startswith(ARGUMENTS)
        ]
        assert not alone or (len(reply.deliveries) == 1 and not holds)
        for delivery in reply.deliveries:
            assert delivery.id not in self.holder
            self.open[delivery.id] += 1
            assert delivery.number == self.open[delivery.id]
            self.holder[delivery.id] = number
            if delivery.id in IDS:
                assert delivery.body == f"[{delivery.id}]".encode()
        return multiple(*((number, delivery) for delivery in reply.deliveries))

    def receive_seeds(self, new: set[str], want: int) -> None:
        """Note the seeds that a step has made requests of."""
        assert not new, want

    @rule(number=NUMBERS, want=st.integers(1, 4), how=st.sampled_from(HOWS))
    def work(self, number: int, want: int, how: Any) -> None:
        """A worker takes requests, and is done with them before anything else happens."""
        for holder, delivery in self.take(number, want, holds=False).values:
            self.end(holder, delivery, how)

    @rule(number=NUMBERS)
    def work_off(self, number: int) -> None:
        """A worker stores all that is queued, and the pass is over unless others hold some."""
        for other in range(len(WORKERS)):
            if other != number:
                self.leave(other)
        while deliveries := self.take(number, 4, holds=False).values:
            for holder, delivery in deliveries:
                self.end(holder, delivery, {"stored": 1})

    @rule(delivery=consumes(held), how=st.sampled_from(HOWS))
    def finish(self, delivery: Held, how: Any) -> None:
        self.end(*delivery, how)

    def end(self, number: int, one: Delivery, how: Any) -> None:
        self.ends += 1
        if isinstance(how, dict):
            end = End(id=one.id, kind="done", number=one.number, outcomes=how)
        else:
            end = End(id=one.id, kind=how, number=one.number, reason="why")
        self.do(self.backend.finish(WORKERS[number], [end]))
        is_current = self.open.get(one.id) == one.number and one.id in self.holder
        if how == "back" and is_current:
            self.open[one.id] -= 1
            del self.holder[one.id]
        elif how == "dead" and is_current:
            self.bury(one.id)
        elif isinstance(how, dict):
            self.end_done(one.id, how, is_current=is_current)

    def end_done(self, id_: str, outcomes: dict[str, int], *, is_current: bool) -> None:
        is_stored = "stored" in outcomes
        if id_ in self.open:
            if is_current or is_stored:
                del self.open[id_]
                self.holder.pop(id_, None)
                self.count(id_, outcomes)
        elif id_ in self.dead and is_stored:  # of a worker that was only slow
            self.dead.discard(id_)
            if id_ not in self.old:
                self.counts["dead"] -= 1
                self.count(id_, outcomes)
            self.old.discard(id_)

    @rule(number=NUMBERS)
    def lease_ends(self, number: int) -> None:
        """The worker sleeps, or died; what it says later is what a sleeper says."""
        ids = [id_ for id_, holder in self.holder.items() if holder == number]
        self.do(self.outside.end_leases(*ids))
        reply = self.do(self.backend.take(WORKERS[(number + 1) % len(WORKERS)]))
        self.end_leases(ids, reply.new_dead_letters)

    @rule(number=NUMBERS)
    def leave(self, number: int) -> None:
        self.do(self.backend.leave(WORKERS[number]))
        ids = [id_ for id_, holder in self.holder.items() if holder == number]
        self.do(self.outside.end_leases(*ids))
        reply = self.do(self.backend.take(WORKERS[(number + 1) % len(WORKERS)]))
        self.end_leases(ids, reply.new_dead_letters)

    def end_leases(self, ids: list[str], new_dead_letters: list[str]) -> None:
        for id_ in ids:
            del self.holder[id_]
        too_often = [
            id_ for id_ in ids if self.open[id_] >= DELIVERIES and not id_.startswith(ARGUMENTS)
        ]
        assert sorted(new_dead_letters) == sorted(too_often)
        for id_ in too_often:
            self.bury(id_)

    @rule(number=NUMBERS, is_later=st.booleans(), is_once=st.booleans())
    def open_run(self, number: int, is_later: bool, is_once: bool) -> None:
        one = worker(f"w{number}", deliveries=DELIVERIES, is_once=is_once)
        # A worker that was requested before the run was over, or after it.
        age = -1.0 if is_later else 1e6
        opened = self.do(self.backend.open(one, None, age))
        if not self.is_over:
            assert opened.over_at is None
        elif is_once and self.requeued:
            assert opened.over_at is None
            self.queue_letters()
        elif self.lost or (is_later and not is_once):
            assert opened.over_at is None
            self.begin_pass()
        else:
            assert opened.over_at is not None

    # --- What operators do ----------------------------------------------------------------------

    @precondition(lambda self: self.dead)
    @rule(id_=LETTERS)
    def requeue(self, id_: str) -> None:
        assert self.do(self.backend.requeue(RUN, id_)) == (id_ in self.dead)
        if id_ not in self.dead:
            return
        self.dead.discard(id_)
        if self.is_over:
            self.requeued.add(id_)
        else:
            self.queue_letter(id_)

    @rule(id_=st.sampled_from(IDS))
    def drop_letter(self, id_: str) -> None:
        assert self.do(self.backend.drop_letter(RUN, id_)) == (id_ in self.dead)
        self.dead.discard(id_)
        self.old.discard(id_)

    # --- Losses ---------------------------------------------------------------------------------

    @precondition(lambda self: self.ends >= ENDS_BEFORE_LOSS)
    @rule(part=st.sampled_from(PARTS), number=NUMBERS)
    def lose(self, part: Any, number: int) -> None:
        """Lose a part of the queue; `run` is dropped by an operator."""
        self.ends = 0
        if part == "run":
            assert self.do(self.backend.drop_run(RUN))
        else:
            self.do(self.outside.lose(part))
        if part == "seen":
            self.seen.clear()
        if part in {"run", "requests", "everything"}:
            self.open.clear()
            self.holder.clear()
        if part in {"run", "everything"}:
            self.requeued.clear()
        if part == "everything":
            self.dead.clear()
            self.old.clear()
            self.lose_seeds()
        if part in {"run", "state", "everything"}:
            self.restore(number)

    def lose_seeds(self) -> None:
        """Note that the seeds that were pushed are lost."""

    def restore(self, number: int) -> None:
        """A worker meets a run without a state."""
        self.do(self.backend.take(WORKERS[number]))
        self.arguments_wait()
        self.old.clear()
        self.counts = dict.fromkeys(self.counts, 0)
        self.counts["dead"] = len(self.dead) + len(self.requeued)
        self.counts["requested"] = len(self.open) + self.counts["dead"]
        self.are_titles_known = False
        self.queue_letters()

    # --- What always holds ----------------------------------------------------------------------

    @invariant()
    def each_request_is_in_one_place(self) -> None:
        queued, leased = self.do(self.outside.where())
        assert queued | leased == set(self.open)
        assert not queued & leased
        assert leased == set(self.holder)

    @invariant()
    def the_account_is_right(self) -> None:
        account = self.do(account_of(self.backend, WORKERS[0]))
        assert account.open == len(self.open)
        assert {name: getattr(account, name) for name in self.counts} == self.counts
        if self.are_titles_known:
            assert account.titles == self.titles
        assert account.lost == self.lost

    @invariant()
    def the_report_is_right(self) -> None:
        assert {letter.id for letter in self.do(letters_of(self.backend))} == self.dead
        report = self.do(report_of(self.backend))
        assert (report.ended_at is not None) == self.is_over
        assert (report.dead_letters, report.requeued) == (len(self.dead), len(self.requeued))


class SqliteFrontier(Frontier):
    def make_outside(self) -> Outside:
        self.folder = tempfile.TemporaryDirectory()
        return OutsideOfSqlite(Path(self.folder.name))

    def teardown(self) -> None:
        super().teardown()
        self.folder.cleanup()


class RedisFrontier(Frontier):
    redis_url: str

    def make_outside(self) -> Outside:
        self.client = connect(self.redis_url)
        self.do(self.client.flushdb())
        self.seeds = 0
        return OutsideOfRedis(self.client)

    def teardown(self) -> None:
        self.do(self.client.aclose())
        super().teardown()

    @rule(seeds=st.lists(st.binary(min_size=1, max_size=5), min_size=1, max_size=3))
    def push_seeds(self, seeds: list[bytes]) -> None:
        self.do(self.client.rpush("imdb:start_urls", *seeds))
        self.seeds += len(seeds)

    def receive_seeds(self, new: set[str], want: int) -> None:
        assert len(new) == min(want, self.seeds)
        self.seeds -= len(new)
        for id_ in new:
            assert id_.startswith(SEED)
            self.queue(id_)

    def lose_seeds(self) -> None:
        self.seeds = 0

    @rule()
    def lose_leases(self) -> None:
        self.do(self.client.delete(self.backend_keys.leases))
        self.holder.clear()
        self.do(self.backend.take(WORKERS[0]))  # what was lost is found again

    @rule()
    @precondition(lambda self: self.open)
    def lose_queue(self) -> None:
        self.do(self.client.delete(self.backend_keys.queue))
        self.do(self.backend.take(WORKERS[0]))

    @property
    def backend_keys(self) -> Any:
        assert isinstance(self.outside, OutsideOfRedis)
        return self.outside.keys


@pytest.mark.promise(
    "Any worker may be killed: others get what it held, no title is lost and none doubled."
)
@pytest.mark.parametrize("kind", ["sqlite", "redis"])
@pytest.mark.parametrize("examples", [15, pytest.param(250, marks=pytest.mark.long)])
def test_no_request_is_lost_doubled_or_in_two_places(
    request: pytest.FixtureRequest, kind: str, examples: int
) -> None:
    machine: type[Frontier] = SqliteFrontier
    if kind == "redis":
        url = request.getfixturevalue("redis_url")
        machine = type("Machine", (RedisFrontier,), {"redis_url": url})
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=examples,
            stateful_step_count=60,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
