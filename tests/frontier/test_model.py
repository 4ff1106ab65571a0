"""The scripts against a dictionary: whatever workers do, die of or delete, no request is lost, doubled or in two places."""

import asyncio
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    invariant,
    multiple,
    rule,
    run_state_machine_as_test,
)

from moviecrawler.frontier.budgets import UNLIMITED
from moviecrawler.frontier.keys import SiteKeys
from moviecrawler.frontier.queue import ARGUMENTS, SEED, Delivery, End, Push, Scripts, SharedQueue
from moviecrawler.options import FrontierOptions
from moviecrawler.redis_client import connect

DELIVERIES = 3
WORKERS = [0, 1, 2]
Held = tuple[int, Delivery]


class Frontier(RuleBasedStateMachine):
    redis_url: str

    held = Bundle("held")

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.client = connect(self.redis_url)
        self.do(self.client.flushdb())
        options = FrontierOptions(deliveries=DELIVERIES, lease=3600)
        scripts = Scripts(self.client, UNLIMITED)
        self.queues = [
            SharedQueue(scripts, SiteKeys("imdb"), options, worker=f"w{one}") for one in WORKERS
        ]
        for queue in self.queues:
            self.do(queue.open("run", 0))
        self.keys = self.queues[0].keys
        # The model: what is open, with how often each was handed out and who holds it; and what
        # came to an end.
        self.open: dict[str, int] = {}
        self.holder: dict[str, int] = {}
        self.seen: set[str] = set()
        self.total = self.done = self.failed = self.seeds = 0
        self.dead: set[str] = set()
        self.arguments_wait()

    def arguments_wait(self) -> None:
        """A worker meets a run without a state: it puts what stands for the arguments into the queue."""
        before = self.ids()
        self.do(self.queues[0].take())
        [new] = self.ids() - before
        assert new.startswith(ARGUMENTS)
        self.open[new] = 0
        self.total, self.done, self.failed = len(self.open) + len(self.dead), 0, len(self.dead)

    def do(self, step: Any) -> Any:
        return self.runner.run(step)

    def teardown(self) -> None:
        self.do(self.client.aclose())
        self.runner.close()

    @rule(
        ids=st.lists(st.sampled_from("abcdefghijklmn"), max_size=5), worker=st.sampled_from(WORKERS)
    )
    def push(self, ids: list[str], worker: int) -> None:
        self.do(self.queues[worker].push([Push(2, one, f"[{one}]") for one in ids]))
        for one in ids:
            if one not in self.open and one not in self.seen:
                self.open[one] = 0
                self.total += 1
            self.seen.add(one)

    @rule(seeds=st.lists(st.binary(min_size=1, max_size=5), min_size=1, max_size=3))
    def push_seeds(self, seeds: list[bytes]) -> None:
        self.do(self.client.rpush("imdb:start_urls", *seeds))
        self.seeds += len(seeds)

    @rule(target=held, worker=st.sampled_from(WORKERS), want=st.integers(1, 4), holds=st.booleans())
    def take(self, worker: int, want: int, holds: bool) -> Any:
        before = self.ids()
        reply = self.do(self.queues[worker].take(want, renew=["another"] if holds else []))
        new = self.ids() - before
        assert len(new) == min(want, self.seeds)
        self.open.update(dict.fromkeys(new, 0))
        self.seeds -= len(new)
        self.total += len(new)
        for one in reply.new_dead_letters:
            assert self.open.pop(one) >= DELIVERIES
            self.failed += 1
            self.dead.add(one)
        alone = [one for one in reply.deliveries if one.number > 2]
        assert not alone or (len(reply.deliveries) == 1 and not holds)
        for one in reply.deliveries:
            assert one.id not in self.holder
            self.open[one.id] += 1
            assert one.number == self.open[one.id]
            self.holder[one.id] = worker
            assert one.body == f"[{one.id}]".encode() or one.id.startswith((SEED, ARGUMENTS))
        return multiple(*((worker, one) for one in reply.deliveries))

    @rule(delivery=consumes(held))
    def finish(self, delivery: Held) -> None:
        worker, one = delivery
        self.do(self.queues[worker].finish([End(one.id, "done")]))
        if one.id in self.open:
            del self.open[one.id]
            self.holder.pop(one.id, None)
            self.done += 1
        elif one.id in self.dead:  # of a worker that was only slow
            self.dead.discard(one.id)
            self.failed -= 1
            self.done += 1

    @rule(delivery=consumes(held), how=st.sampled_from(["back", "dead"]))
    def give_up(self, delivery: Held, how: Any) -> None:
        worker, one = delivery
        self.do(self.queues[worker].finish([End(one.id, how, one.number, "why")]))
        if self.open.get(one.id) != one.number:
            return  # it is another worker's since
        self.holder.pop(one.id, None)
        if how == "back":
            self.open[one.id] -= 1
        else:
            del self.open[one.id]
            self.failed += 1
            self.dead.add(one.id)

    @rule(worker=st.sampled_from(WORKERS))
    def lease_ends(self, worker: int) -> None:
        """The worker was killed, or it sleeps; what it acknowledges later is what a sleeper says."""
        ids = [one for one, holder in self.holder.items() if holder == worker]
        for one in ids:
            self.do(self.client.zadd(self.keys.leases, {one: 1}))
        reply = self.do(self.queues[(worker + 1) % 3].take())
        for one in ids:
            del self.holder[one]
            if self.open[one] >= DELIVERIES:
                assert one in reply.new_dead_letters
                del self.open[one]
                self.failed += 1
                self.dead.add(one)

    @rule()
    def requeue_dead_letters(self) -> None:
        assert self.do(self.queues[0].finish([End(one, "again") for one in self.dead])) == len(
            self.dead
        )
        self.open.update(dict.fromkeys(self.dead, 0))
        self.failed -= len(self.dead)
        self.dead.clear()

    @rule(name=st.sampled_from(["queue", "leases", "seen", "workers"]))
    def lose(self, name: str) -> None:
        self.do(self.client.delete(getattr(self.keys, name)))
        if name == "leases":
            self.holder.clear()
        if name == "seen":
            self.seen.clear()
        self.do(self.queues[0].take())  # what was lost is found again

    @rule()
    def lose_state(self) -> None:
        self.do(self.client.delete(self.keys.state))
        self.seen.clear()
        self.arguments_wait()

    @rule()
    def lose_requests(self) -> None:
        self.do(self.client.delete(self.keys.requests))
        self.do(self.client.delete(self.keys.leases, self.keys.queue))
        self.open.clear()
        self.holder.clear()

    def ids(self) -> set[str]:
        return {one.decode() for one in self.do(self.client.hkeys(self.keys.requests))}

    @invariant()
    def each_request_is_in_one_place(self) -> None:
        queued = {one.decode() for one in self.do(self.client.zrange(self.keys.queue, 0, -1))}
        leased = {one.decode() for one in self.do(self.client.zrange(self.keys.leases, 0, -1))}
        assert queued | leased == self.ids() == set(self.open)
        assert not queued & leased
        assert leased == set(self.holder)

    @invariant()
    def the_account_is_right(self) -> None:
        reply = self.do(self.queues[0].take())
        assert reply.open == len(self.open)
        assert (reply.total, reply.done, reply.failed) == (self.total, self.done, self.failed)
        assert self.do(self.client.hlen(self.keys.dead)) == len(self.dead)


@pytest.mark.promise(
    "Any worker may be killed: others get what it held, no title is lost and none doubled."
)
@pytest.mark.parametrize("examples", [15, pytest.param(250, marks=pytest.mark.long)])
def test_no_request_is_lost_doubled_or_in_two_places(redis_url: str, examples: int) -> None:
    machine = type("Machine", (Frontier,), {"redis_url": redis_url})
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=examples,
            stateful_step_count=40,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
