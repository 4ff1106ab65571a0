"""The two backends of the frontier, each with what may befall its queue from outside."""

import sqlite3
import time
from collections.abc import Collection, Iterable
from contextlib import closing
from pathlib import Path
from typing import Any, Literal

from moviecrawler.frontier.contract import (
    ARGUMENTS,
    TITLES,
    Account,
    Backend,
    DeadLetter,
    Delivery,
    End,
    Push,
    RunName,
    RunReport,
    Worker,
)
from moviecrawler.frontier.redis_backend import RedisBackend
from moviecrawler.frontier.sqlite_backend import FILE, SqliteBackend
from moviecrawler.politeness.budgets import UNLIMITED, Budget, SiteReply
from moviecrawler.politeness.ledger import Refusal
from tests.run_keys import RunKeys, SiteKeys

RUN = RunName("imdb", "run")
ANOTHER = RunName("replay", "another")
OVER = RunName("replay", "over")
DAY_SECONDS = 86_400.0
Part = Literal["state", "requests", "seen", "titles", "letters", "workers", "everything"]
"""What may be lost of a queue."""
Where = tuple[set[str], set[str]]
"""The ids of the requests that are queued, and of those that are leased."""


class OutsideOfRedis:
    """A backend on an empty Redis, and what others and time can do to its queue."""

    def __init__(self, client: Any) -> None:
        self.client = client
        self.backend = RedisBackend(client)
        self.keys = RunKeys(SiteKeys(RUN.site), RUN.name)

    async def end_leases(self, *ids: str) -> None:
        """Let the time of leases be over, as if their worker slept."""
        if ids:
            await self.client.zadd(self.keys.leases, dict.fromkeys(ids, 1), xx=True)

    async def lose(self, part: Part) -> None:
        """Delete a part of the run's queue."""
        if part == "everything":
            await self.client.flushdb()
            return
        keys = self.keys
        parts: dict[Part, list[str]] = {
            "state": [keys.state],
            "requests": [keys.requests, keys.queue, keys.leases],
            "seen": [keys.seen],
            "titles": [keys.titles],
            "letters": [keys.dead],
            "workers": [keys.workers],
        }
        await self.client.delete(*parts[part])

    async def expire(self) -> None:
        """Let a week without use go by, and some seconds."""
        keys = self.keys
        of_run = [keys.state, keys.queue, keys.leases, keys.requests, keys.seen, keys.titles]
        await self.client.delete(*of_run, keys.workers)

    async def lives_for(self, seconds: float) -> bool:
        """Tell whether the run is still there when nobody uses it for so long."""
        return int(await self.client.pttl(self.keys.state)) > seconds * 1000

    async def keeps_letters_for(self, seconds: float) -> bool:
        """Tell whether the run's dead letters are still there after so long."""
        return int(await self.client.pttl(self.keys.dead)) > seconds * 1000

    async def end_pause(self) -> None:
        """Let the pause after a refusal be over."""
        await self.client.hset(self.keys.site.circuit, "until", 1)

    async def begin_next_day(self) -> None:
        """Let the next UTC day begin."""
        await self.client.hincrby(self.keys.site.budget, "day", -1)

    async def set_clock_back(self, seconds: float) -> None:
        """Have the clock been ahead by so much when the site was asked last, or refused us."""
        site = self.keys.site
        for key, names in {
            site.budget: ("next", "at"),
            site.circuit: ("until", "at", "probe_until"),
        }.items():
            for name in names:
                if await self.client.hexists(key, name):
                    await self.client.hincrbyfloat(key, name, seconds * 1000)
        if await self.client.exists(site.budget):
            await self.client.hincrby(site.budget, "day", int(seconds / DAY_SECONDS))

    async def where(self) -> Where:
        """Return where the requests of the run are."""
        queued = await self.client.zrange(self.keys.queue, 0, -1)
        leased = await self.client.zrange(self.keys.leases, 0, -1)
        requests = await self.client.hkeys(self.keys.requests)
        assert set(queued) | set(leased) == set(requests)
        return {id_.decode() for id_ in queued}, {id_.decode() for id_ in leased}

    async def close(self) -> None:
        """The client is closed by whoever has made it."""


class Clock:
    """A clock that a test can set."""

    def __init__(self) -> None:
        self.ahead = 0.0
        """Seconds by which it is ahead."""

    def __call__(self) -> float:
        return time.time() + self.ahead


class OutsideOfSqlite:
    """A backend on a file that another connection changes, and whose clock is set."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.path = folder / FILE
        self.clock = Clock()
        self.backend = SqliteBackend(folder, self.clock)
        self.others: list[int] = []
        """The numbers of runs beside the one that is tested."""
        self.before: dict[str, list[Any]] = {}
        self.is_disturbed = False
        """Whether a test has changed the times of all runs, or has deleted them."""

    async def begin_others(self) -> None:
        """Begin two runs beside the one that is tested: with all that there may be of one.

        One is over. The other one's site has refused us, and it may have been lost once.
        """
        over = worker(run=OVER, lease_seconds=0)
        await begin(self.backend, over, "a")
        await bury_next(self.backend, over)
        await self.backend.requeue(OVER, "a")
        one = worker(run=ANOTHER, limit=9, lease_seconds=1e6)
        await begin(self.backend, one, *"abcdefg")
        for _ in range(2):
            await bury_next(self.backend, one)
        await self.backend.requeue(ANOTHER, "b")
        await take(self.backend, one, 2)
        await self.backend.ask(ANOTHER.site, UNLIMITED, charge=True)
        await self.backend.ask(ANOTHER.site, UNLIMITED, refusal=Refusal("another", 9999))
        await self.backend.exchange_bans(ANOTHER.site, {"proxy": "{}"})
        letters = "SELECT id, requeued_at IS NULL, is_counted FROM letters ORDER BY number"
        assert self.execute(letters) == [("a", 0, 1), ("a", 1, 1)]
        await self.end_leases("c")
        self.execute("UPDATE runs SET is_restored = 1")
        self.others = [run for (run,) in self.execute("SELECT run FROM runs")]
        self.before = self.rows_of_others()

    def rows_of_others(self) -> dict[str, list[Any]]:
        """Return all rows of these runs, and of their site."""
        of_runs = ("runs", "requests", "seen", "limited_titles", "letters", "workers")
        rows = {
            table: self.execute(
                f"SELECT * FROM {table} WHERE run IN (?, ?)",  # noqa: S608
                *self.others,
            )
            for table in of_runs
        }
        for table in ("sites", "bans"):
            of_site = f"SELECT * FROM {table} WHERE site = ?"  # noqa: S608
            rows[table] = self.execute(of_site, ANOTHER.site)
        return rows

    def check_others(self) -> None:
        """Check that no step of the run that is tested has changed the other ones."""
        if not self.is_disturbed:
            assert self.rows_of_others() == self.before

    def is_ours(self) -> str:
        """Return the condition of rows that are of no other run."""
        return f"run NOT IN ({', '.join(map(str, self.others))})"

    def execute(self, statement: str, *parameters: object) -> list[Any]:
        """Run a statement as another program does."""
        with closing(sqlite3.connect(self.path, timeout=10)) as database, database:
            return database.execute(statement, parameters).fetchall()

    async def end_leases(self, *ids: str) -> None:
        leased = f"lease_until IS NOT NULL AND {self.is_ours()}"
        ended = f"UPDATE requests SET lease_until = 1 WHERE id = ? AND {leased}"  # noqa: S608
        for id_ in ids:
            self.execute(ended, id_)

    async def lose(self, part: Part) -> None:
        if part == "everything":
            self.path.unlink()
            self.is_disturbed = True
            return
        statements: dict[Part, str] = {
            "state": "DELETE FROM runs",
            "requests": "DELETE FROM requests",
            "seen": "DELETE FROM seen",
            "titles": "DELETE FROM limited_titles",
            "letters": "DELETE FROM letters",
            "workers": "DELETE FROM workers",
        }
        self.execute(f"{statements[part]} WHERE {self.is_ours()}")

    async def expire(self) -> None:
        self.clock.ahead += 7 * DAY_SECONDS + 10
        self.is_disturbed = True

    async def lives_for(self, seconds: float) -> bool:
        self.clock.ahead += seconds
        is_there = (await self.backend.read({}, *RUN)).runs != []
        self.clock.ahead -= seconds
        return is_there

    async def keeps_letters_for(self, seconds: float) -> bool:
        self.clock.ahead += seconds
        letters = await letters_of(self.backend)
        self.clock.ahead -= seconds
        return letters != []

    async def end_pause(self) -> None:
        self.execute("UPDATE sites SET until = ? WHERE site = ?", self.clock() - 1, RUN.site)

    async def begin_next_day(self) -> None:
        self.execute("UPDATE sites SET day = day - 1 WHERE site = ?", RUN.site)

    async def set_clock_back(self, seconds: float) -> None:
        self.clock.ahead -= seconds
        self.is_disturbed = True

    async def where(self) -> Where:
        if not self.path.exists():
            return set(), set()
        rows = self.execute(
            f"SELECT id, lease_until IS NULL FROM requests WHERE {self.is_ours()}"  # noqa: S608
        )
        queued = {id_ for id_, is_queued in rows if is_queued}
        return queued, {id_ for id_, _ in rows} - queued

    async def close(self) -> None:
        await self.backend.close()


Outside = OutsideOfRedis | OutsideOfSqlite


def files(folder: Path) -> list[str]:
    """Return the files of a folder but those that SQLite keeps while the queue is open."""
    return sorted(path.name for path in folder.iterdir() if path.name[-4:] not in {"-wal", "-shm"})


# --- What many tests do -------------------------------------------------------------------------


def worker(name: str = "one", **terms: Any) -> Worker:
    """Return a worker whose leases do not end by themselves."""
    return Worker(
        **{"run": RUN, "name": name, "arguments": "ids=a", "lease_seconds": 3600, **terms}
    )


def pushes(*ids: str, level: int = TITLES) -> list[Push]:
    """Return a request for each title."""
    return [Push(level, id_, "[]", title=id_) for id_ in ids]


def stored(delivery: Delivery) -> End:
    """Return the end of a request whose title was stored."""
    return done(delivery, stored=1)


def done(delivery: Delivery, **outcomes: int) -> End:
    """Return the end of a request, with what became of it."""
    return End(id=delivery.id, kind="done", number=delivery.number, outcomes=outcomes)


def back(delivery: Delivery) -> End:
    """Return the end of a request that is given back."""
    return End(id=delivery.id, kind="back", number=delivery.number)


def dead(delivery: Delivery, reason: str = "why") -> End:
    """Return the end of a request that becomes a dead letter."""
    return End(id=delivery.id, kind="dead", number=delivery.number, reason=reason)


def ids(deliveries: Iterable[Delivery]) -> list[str]:
    """Return which requests were handed out."""
    return [delivery.id for delivery in deliveries]


async def open_now(backend: Backend, one: Worker, age: float = 0.0) -> float | None:
    """Open a run as a worker that is requested now; return when the run was over."""
    return (await backend.open(one, None, age)).over_at


async def take_arguments(backend: Backend, one: Worker) -> End:
    """Lease the request that stands for the arguments; return the end of the lease."""
    [arguments] = (await backend.take(one, 1)).deliveries
    assert arguments.id.startswith(ARGUMENTS)
    return done(arguments, read=1)


async def begin(backend: Backend, one: Worker, *titles: str) -> None:
    """Open a run that is not over, and queue what its arguments name."""
    assert await open_now(backend, one) is None
    arguments = await take_arguments(backend, one)
    await backend.push(one, pushes(*titles))
    await backend.finish(one, [arguments])


async def finish_all(backend: Backend, one: Worker) -> None:
    """Store the titles of all requests that are queued."""
    while deliveries := (await backend.take(one, 100)).deliveries:
        await backend.finish(one, [stored(delivery) for delivery in deliveries])


async def take(
    backend: Backend, one: Worker, want: int, renew: Collection[str] = ()
) -> list[Delivery]:
    """Lease requests; return their deliveries."""
    return (await backend.take(one, want, renew)).deliveries


async def take_ids(
    backend: Backend, one: Worker, want: int, renew: Collection[str] = ()
) -> list[str]:
    """Lease requests; return their ids."""
    return ids(await take(backend, one, want, renew))


async def store(backend: Backend, one: Worker, deliveries: Iterable[Delivery]) -> None:
    """End requests whose titles were stored."""
    await backend.finish(one, [stored(delivery) for delivery in deliveries])


async def bury_next(backend: Backend, one: Worker) -> None:
    """Make a dead letter of the next request."""
    [delivery] = await take(backend, one, 1)
    await backend.finish(one, [dead(delivery)])


async def charge(backend: Backend, budget: Budget) -> SiteReply:
    """Charge a request to IMDb's budget."""
    return await backend.ask("imdb", budget, charge=True)


async def refuse(backend: Backend, seconds: float) -> SiteReply:
    """Note that IMDb has blocked us."""
    return await backend.ask("imdb", UNLIMITED, refusal=Refusal("go away", seconds))


async def account_of(backend: Backend, one: Worker) -> Account:
    """Return the account of a worker's run."""
    return (await backend.take(one)).account


async def expect(backend: Backend, one: Worker, **figures: int) -> None:
    """Compare figures of the account of a worker's run."""
    account = await account_of(backend, one)
    assert {figure: getattr(account, figure) for figure in figures} == figures


def is_all_done(account: Account) -> bool:
    """Tell whether nothing is open, dead or lost."""
    return (account.open, account.dead, account.lost) == (0, 0, 0)


async def letters_of(backend: Backend, run: RunName = RUN) -> list[DeadLetter]:
    """Return the dead letters of a run."""
    return [letter async for letter in backend.dead_letters(run.site, run.name)]


async def letter_ids(backend: Backend) -> list[str]:
    """Return the ids of the dead letters of the run."""
    return [letter.id for letter in await letters_of(backend)]


async def report_of(backend: Backend, run: RunName = RUN) -> RunReport:
    """Return what is reported of a run."""
    [report] = (await backend.read({}, run.site, run.name)).runs
    return report


async def expect_report(backend: Backend, **figures: object) -> None:
    """Compare figures of what is reported of the run."""
    report = await report_of(backend)
    assert {figure: getattr(report, figure) for figure in figures} == figures
