"""A site and its workers: whatever befalls them, no gate lets through more than it may."""

import asyncio
import math
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    rule,
    run_state_machine_as_test,
)
from scrapy import Request
from scrapy.exceptions import DownloadConnectionRefusedError, DownloadTimeoutError
from scrapy.http import Response

from moviecrawler.politeness.gate import Closed
from moviecrawler.spiders.metacritic import MetacriticSpider
from tests.chain import DAY, NOON, Chain, VirtualLoop, page

HOSTS = ["https://www.metacritic.com", "https://backend.metacritic.com"]
PATHS = ["/movie/a/", "/movie/b/", "/movie/c/"]
WORKERS = range(3)
MINUTE = 60.0
PROBE_SECONDS = 60.0
"""For how long workers wait for the response to a probe before another one is sent."""
HOUR = 3600.0
GAP_SECONDS = 5.0
PER_DAY = 8
BUDGETS = {
    "live": f'{{"metacritic": {{"per_day": {PER_DAY}}}}}',
    "unlimited": '{"metacritic": {"per_second": null, "per_day": null}}',
}
HEARTBEAT_SECONDS = 5.0
PATIENCE_SECONDS = 100.0
PAUSES = {403: DAY, 429: 2 * HOUR}
"""For how long a refusal closes the gate, by its status. The latter has a Retry-After."""
ERRORS = [DownloadTimeoutError("no answer"), DownloadConnectionRefusedError("refused")]
FAILED_AT = "failed_at"
"""Of a page's request: when its attempts failed."""
TINY = 1e-3
SECONDS = st.sampled_from([0.0, 1.0, 6.0, 35.0, 70.0])


@dataclass(eq=False)
class Flight:
    """A page that was requested and is not answered yet."""

    began: float
    is_probe: bool


@dataclass
class World:
    """A site with two hosts, and the time. It notes what must not happen."""

    budget: str
    pages: dict[str, Any] = field(default_factory=dict)
    """By path, the status of a page, or an error; by default it is 200."""
    robots: dict[str, Any] = field(default_factory=dict)
    """By host, the status of its robots.txt, or an error; by default there is none."""
    delay: float = 0.0
    """Seconds until something is answered."""
    faults: list[str] = field(default_factory=list)
    """What happened and must not."""

    offset: float = 0.0
    """Seconds by which the clock is ahead of the time that has passed."""
    jumps: float = 0.0
    """Seconds by which it was set forward, together."""
    jumped_at: float = -math.inf

    sent_at: float = -math.inf
    day: float = 0.0
    sent_on_day: int = 0
    refused_at: float = -math.inf
    closed_until: float = -math.inf
    """By `now`."""
    is_half_open: bool = False
    flights: list[Flight] = field(default_factory=list)
    with_robots: set[str] = field(default_factory=set)
    """Hosts that have told somebody their rules, or that they have none."""

    @property
    def elapsed(self) -> float:
        return asyncio.get_running_loop().time()

    @property
    def now(self) -> float:
        """The time that has passed, together with all by which the clock was set forward."""
        return self.elapsed + self.jumps

    def clock(self) -> float:
        return NOON + self.elapsed + self.offset

    def set_clock(self, seconds: float) -> None:
        if seconds > 0:
            self.jumps += seconds
            self.jumped_at = self.elapsed
        else:
            # Before midnight, requests may have a turn that is after it.
            self.meet_day((self.clock() + MINUTE) // DAY, late=len(WORKERS))
        self.offset += seconds
        self.day = min(self.day, self.clock() // DAY)

    def meet_day(self, day: float, late: int) -> None:
        """Count anew on a new day, besides requests that were charged to the day before."""
        if day > self.day:
            self.day = day
            self.sent_on_day = -late

    @property
    def may_be_late(self) -> bool:
        """Whether requests may have waited for their turn while the clock was set forward."""
        return self.elapsed - self.jumped_at < 2 * MINUTE

    def must(self, is_so: bool, what: str) -> None:
        if not is_so:
            self.faults.append(f"after {self.elapsed:.1f} s: {what}")

    def check_robots(self) -> None:
        """A robots.txt is requested: the worker has heard of a refusal by its last heartbeat."""
        is_known = self.elapsed > self.refused_at + HEARTBEAT_SECONDS + TINY
        is_closed = is_known and self.now < self.closed_until - TINY
        self.must(not is_closed, "a robots.txt was requested of a site that had refused us")

    def check_page(self, worker: "Worker", host: str) -> Flight:
        """A page is requested."""
        self.must(worker.gate.unreachable_seconds is None, "an unreachable site was asked")
        self.must(host in self.with_robots, "a host was asked without a robots.txt")
        if self.budget == "live":
            self.check_rate(worker)
            self.check_day()
        flight = Flight(self.now, self.check_closed())
        self.flights.append(flight)
        return flight

    def check_rate(self, worker: "Worker") -> None:
        gap = GAP_SECONDS - TINY
        self.must(self.elapsed - worker.sent_at >= gap, "a worker was faster than the budget")
        if not self.may_be_late:
            self.must(self.elapsed - self.sent_at >= gap, "workers were faster than the budget")
        worker.sent_at = self.sent_at = self.elapsed

    def check_day(self) -> None:
        self.meet_day(self.clock() // DAY, late=len(WORKERS) if self.may_be_late else 0)
        self.sent_on_day += 1
        self.must(self.sent_on_day <= PER_DAY, "more was requested than the budget of the day")

    def check_closed(self) -> bool:
        """Return whether a request is a probe."""
        seconds_known = 0.0 if self.budget == "live" else HEARTBEAT_SECONDS
        is_known = self.elapsed > self.refused_at + seconds_known + TINY
        if self.now < self.closed_until - TINY:
            self.must(not is_known, "a site that had refused us was asked")
            return False
        if self.now > self.closed_until + 14 * DAY:
            self.is_half_open = False  # it is known no more
        if self.is_half_open and is_known:
            recent = self.now - PROBE_SECONDS + len(WORKERS) * GAP_SECONDS
            others = [one for one in self.flights if one.is_probe and one.began > recent]
            self.must(not others, "two probes were on their way")
        return self.is_half_open and is_known

    def note(self, answer: Any, flight: Flight | None) -> None:
        """A worker has got an answer."""
        if answer in PAUSES:
            if self.now >= self.closed_until:
                self.refused_at = self.elapsed
            self.closed_until = max(self.closed_until, self.now + PAUSES[answer])
            self.is_half_open = True
        elif flight is not None and flight.is_probe and answer == 200:
            self.is_half_open = False


class Worker:
    """A crawl that has joined a run, as far as its gate is concerned, and its scheduler's part."""

    def __init__(self, world: World, folder: Path) -> None:
        self.world = world
        given = {"SITE_BUDGETS": BUDGETS[world.budget], "RETRY_TIMES": 1}
        self.chain = Chain(folder, self._answer, MetacriticSpider, world.clock, **given)
        self.chain.politeness.has_joined = True
        self.gate = self.chain.politeness.gate
        self.sent_at = -math.inf
        self.reached_at: dict[str, float] = {}
        """When a host gave its robots.txt last."""
        self.has_ended = False
        self.requests: set[asyncio.Task[None]] = set()
        self._heartbeat = asyncio.create_task(self._beat())

    async def _beat(self) -> None:
        while True:
            await asyncio.sleep(HEARTBEAT_SECONDS)
            await self.gate.ask()
            if (self.gate.unreachable_seconds or 0) >= PATIENCE_SECONDS:
                self.has_ended = True

    def request(self, host: str, path: str) -> None:
        task = asyncio.create_task(self._request(host, path))
        self.requests.add(task)
        task.add_done_callback(self.requests.discard)

    async def _request(self, host: str, path: str) -> None:
        failed_at: list[float] = []
        try:
            await self.chain.send(host + path, **{FAILED_AT: failed_at})
        except (DownloadTimeoutError, DownloadConnectionRefusedError):
            is_reached = self.reached_at.get(host, -math.inf) >= failed_at[-1]
            self.world.must(is_reached, "a title failed by a fault of the network")
        except Exception as error:  # noqa: BLE001 - it is told
            self.world.must(isinstance(error, Closed), repr(error))

    async def _answer(self, request: Request) -> Response:
        host = next(one for one in HOSTS if request.url.startswith(one))
        path = request.url.removeprefix(host)
        flight = None
        if path == "/robots.txt":
            self.world.check_robots()
        else:
            flight = self.world.check_page(self, host)
        try:
            await asyncio.sleep(self.world.delay)
        finally:
            if flight is not None:
                self.world.flights.remove(flight)
        if flight is None:
            answer = self.world.robots.get(host, 404)
            if answer in {200, 404}:
                self.reached_at[host] = self.world.elapsed
                self.world.with_robots.add(host)
        else:
            answer = self.world.pages.get(path, 200)
        self.world.note(answer, flight)
        if isinstance(answer, Exception):
            request.meta.get(FAILED_AT, []).append(self.world.elapsed)
            raise answer
        headers = {"Retry-After": str(int(PAUSES[429]))} if answer == 429 else {}
        request.meta["download_latency"] = self.world.delay
        return page(request, answer, headers=headers)

    async def kill(self) -> None:
        """End as a process that is killed: nothing is reported."""
        tasks = {self._heartbeat, *self.requests, *self.gate._reports}
        if self.gate._probe_task is not None:
            tasks.add(self.gate._probe_task)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self.gate.ledger.close()


class Gates(RuleBasedStateMachine):
    """The gates of some workers of one site, and what the site and time do."""

    budget: str

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.runner = asyncio.Runner(loop_factory=VirtualLoop)
        self.world = World(self.budget)
        self.workers: dict[int, Worker] = {}

    async def worker(self, number: int) -> Worker:
        """Return a worker, which is started when there is none."""
        if number in self.workers and self.workers[number].has_ended:
            await self.workers.pop(number).kill()
        if number not in self.workers:
            self.workers[number] = Worker(self.world, Path(self.folder.name))
        return self.workers[number]

    @rule(
        number=st.sampled_from(WORKERS),
        host=st.sampled_from(HOSTS),
        paths=st.lists(st.sampled_from(PATHS), min_size=1, max_size=4),
        seconds=SECONDS,
    )
    def request(self, number: int, host: str, paths: list[str], seconds: float) -> None:
        async def request() -> None:
            worker = await self.worker(number)
            for path in paths:
                worker.request(host, path)
            await asyncio.sleep(seconds)

        self.runner.run(request())

    @rule(seconds=SECONDS)
    def request_all(self, seconds: float) -> None:
        """All workers have something to ask."""
        for number in WORKERS:
            self.request(number, HOSTS[number % 2], PATHS, seconds)

    @rule(
        path=st.sampled_from(PATHS),
        answer=st.sampled_from([200, 200, 404, 500, 403, 429, *ERRORS]),
    )
    def change_page(self, path: str, answer: Any) -> None:
        self.world.pages[path] = answer

    @rule(
        host=st.sampled_from(HOSTS),
        answer=st.sampled_from([404, 404, 200, 503, 403, *ERRORS]),
    )
    def change_robots(self, host: str, answer: Any) -> None:
        self.world.robots[host] = answer

    @rule(delay=st.sampled_from([0.0, 2.0, 20.0]))
    def change_delay(self, delay: float) -> None:
        self.world.delay = delay

    @rule(seconds=SECONDS)
    def wait(self, seconds: float) -> None:
        self.runner.run(asyncio.sleep(seconds))

    @rule(seconds=st.sampled_from([-DAY, -HOUR, -10.0, -0.7, 3.0, HOUR, DAY]))
    def set_clock(self, seconds: float) -> None:
        async def change() -> None:
            self.world.set_clock(seconds)

        self.runner.run(change())

    @rule()
    def meet_midnight(self) -> None:
        """Set the clock to a moment before midnight, and wait until it is past."""

        async def meet() -> None:
            self.world.set_clock(-self.world.clock() % DAY - 7.0)
            await asyncio.sleep(4.0)

        self.runner.run(meet())

    @rule(
        answers=st.lists(st.sampled_from(sorted(PAUSES)), min_size=3, max_size=3),
        seconds=st.sampled_from([3 * HOUR, 7 * DAY]),
    )
    def refuse(self, answers: list[int], seconds: float) -> None:
        """The site refuses all that is on its way, and answers again after a while."""
        self.world.delay = 20.0
        self.world.pages = dict(zip(PATHS, answers, strict=True))
        self.request_all(HEARTBEAT_SECONDS)
        self.wait(35.0)
        self.set_clock(seconds)
        self.world.pages.clear()
        self.wait(HEARTBEAT_SECONDS + 1)
        self.request_all(HEARTBEAT_SECONDS)

    @rule(number=st.sampled_from(WORKERS))
    def kill(self, number: int) -> None:
        if number in self.workers:
            self.runner.run(self.workers.pop(number).kill())

    @invariant()
    def nothing_has_happened_that_must_not(self) -> None:
        assert not self.world.faults, self.world.faults[0]

    async def recover(self) -> None:
        """See that all workers can ask the site once all is well again."""
        self.world.pages.clear()
        self.world.robots.clear()
        self.world.delay = 0.0
        self.world.set_clock(8 * DAY)
        await asyncio.sleep(2 * PATIENCE_SECONDS)
        self.world.set_clock(DAY)
        for number in WORKERS:
            worker = await self.worker(number)
            for _ in range(20):
                await asyncio.sleep(HEARTBEAT_SECONDS)
                try:
                    answer = await worker.chain.send(HOSTS[0] + PATHS[0])
                except Closed as closed:
                    why = str(closed)
                else:
                    assert answer.status == 200, answer
                    break
            else:
                pytest.fail(f"worker {number} is kept from the site for good: {why}")

    def teardown(self) -> None:
        async def end() -> None:
            for worker in self.workers.values():
                await worker.kill()

        try:
            if not self.world.faults:
                self.runner.run(self.recover())
        finally:
            self.runner.run(end())
            self.runner.close()
            self.folder.cleanup()
        assert not self.world.faults, self.world.faults[0]


@pytest.mark.promise(
    "Live sites have budgets a second and a day, and all workers together keep them."
)
@pytest.mark.promise(
    "After a refusal, one request finds out for all workers whether the site answers again."
)
@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("examples", [8, pytest.param(100, marks=pytest.mark.long)])
def test_no_gate_lets_through_more_than_it_may(budget: str, examples: int) -> None:
    run_state_machine_as_test(
        type("Machine", (Gates,), {"budget": budget}),
        settings=settings(
            max_examples=examples,
            stateful_step_count=40,
            deadline=None,
            derandomize=True,
            suppress_health_check=list(HealthCheck),
        ),
    )
