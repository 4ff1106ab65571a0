"""One worker's end of the shared queue: requests that were handed out to it, and requests and acknowledgements to send."""

from __future__ import annotations

import asyncio
import logging
import time
import uuid
from collections import deque
from itertools import islice
from typing import TYPE_CHECKING

import redis.exceptions
from scrapy_redis.queue import Base

from moviecrawler.frontier.leases import META
from moviecrawler.frontier.queue import BOOSTED, LISTS, TITLES, Batch, Push, Reply
from moviecrawler.frontier.serialisation import SerialisationError, decode, encode

if TYPE_CHECKING:
    from scrapy import Request

    from moviecrawler.frontier.dupefilter import SharedDupeFilter
    from moviecrawler.frontier.leases import How
    from moviecrawler.frontier.queue import SharedQueue
    from moviecrawler.frontier.spider import SharedSpider

logger = logging.getLogger(__name__)

_PUSH_BATCH = 500
"""At most in one exchange, so that no other worker waits long."""
_LATE_SECONDS = 0.1
"""Seconds after the moment that the budget has for a request, after which it is too late for it."""
BOOST_PRIORITY, LIST_PRIORITY = 100, 1
"""The least priorities of requests on the two upper levels."""


def new_name(node: str) -> str:
    """Return a worker's name that was never used, so that what is said of an old lease can't be taken for a new one."""
    return f"{node}-{uuid.uuid4().hex[:12]}"


class WorkerQueue(Base):  # type: ignore[misc]  # scrapy-redis has no types
    """What the last exchange with the shared queue has brought, and what the next one will send; nothing here waits.

    scrapy-redis' queue, of which `push`, `pop`, the length and the two methods that (de)serialise are kept. Replaced are pickle
    (by checked JSON), the pop that waits for Redis and takes a request away for good (by leases, fetched ahead), and `clear`.

    The end of a lease waits for all requests that were queued before it: those that came of it are among them.
    """

    def __init__(
        self, shared: SharedQueue, node: str, spider: SharedSpider | None = None, df: SharedDupeFilter | None = None
    ) -> None:
        # Not the base's own, which falls back to pickle.
        self.server = shared.server
        self.key = shared.keys.requests(TITLES)
        self.spider = spider
        self.shared = shared
        self.reply: Reply | None = None
        """The last one."""
        self.held: set[str] = set()
        """The leases that Redis counts as this worker's, when all is well."""
        self.suspects: set[str] = set()
        """Those of requests that are set aside if this worker dies: it takes no others meanwhile."""
        self.given_back = 0
        """How many were given back without having been sent."""
        self._df = df
        self._node = node
        self._join = True
        # When each may be sent, by the event loop's clock; its lease; and the request, which the engine has not taken yet.
        self._ready: deque[tuple[float, str, Request]] = deque()
        self._local: deque[Request] = deque()
        self._pushes: deque[Push] = deque()
        self._pushed = 0  # since the start, as is the next
        self._accepted = 0
        self._ends: deque[tuple[int, tuple[str, How, str]]] = deque()  # with how many pushes must have gone before
        self._spent = self._unsent = 0
        self._orphans: set[str] = set()

    # --- What scrapy-redis' queues do -----------------------------------------------------------------------------------

    def __len__(self) -> int:
        """Return how many requests wait: here, on the way to Redis, and there when it last said so."""
        waiting = self.reply.waiting if self.reply is not None else 0
        return len(self._local) + len(self._ready) + len(self._pushes) + waiting

    def push(self, request: Request, *, limited: bool = True) -> None:
        """Have a request queued for whichever worker; a title within the crawl's limit only, if `limited`.

        Raises SerialisationError.
        """
        assert self._df is not None  # noqa: S101 - every scheduler has one
        payload = self._encode_request(request)
        fingerprint = self._df.request_fingerprint(request)
        counted = limited and is_title(request)
        # What the arguments name, and all pages of a list, are asked for in each round; other titles once in a window.
        by_round = bool(request.meta.get("is_start_request")) or not is_title(request)
        self.add(Push(_level(request), fingerprint, payload, not request.dont_filter, counted, by_round))

    def pop(self, timeout: int = 0) -> Request | None:  # noqa: ARG002 - scrapy-redis' own signature
        """Return a request that may be sent now, else None, at once."""
        if self._local:
            return self._local.popleft()
        if self.due:
            request = self._ready.popleft()[2]
            if self.shared.spaced:
                # What is late by much would crowd what others send now: its turn is over, and it gets another one.
                now = asyncio.get_running_loop().time()
                self._give_back(sum(due < now - _LATE_SECONDS for due, _, _ in self._ready))
            return request
        return None

    def clear(self) -> None:
        """Refuse: it would empty the queue of all workers."""
        raise NotImplementedError("the shared queue is emptied by nobody; a new FRONTIER_RUN has an empty one")

    def _encode_request(self, request: Request) -> str:
        return encode(request, time.time())

    def _decode_request(self, encoded_request: bytes) -> Request:
        assert self.spider is not None  # noqa: S101 - every scheduler has one
        return decode(encoded_request, self.spider)

    # --- What this process does itself ----------------------------------------------------------------------------------

    def push_local(self, request: Request) -> None:
        """Have this worker do a request before all others: what took over a lease, or what only it can do."""
        if META in request.meta:
            self._spent += 1
        self._local.append(request)

    @property
    def local(self) -> bool:
        """Whether there are such requests."""
        return bool(self._local)

    @property
    def ready(self) -> int:
        """How many requests were handed out and are not yet taken to be sent."""
        return len(self._ready)

    @property
    def next_due(self) -> float:
        """When the first of them may be sent, by the event loop's clock; infinity without any."""
        return self._ready[0][0] if self._ready else float("inf")

    @property
    def due(self) -> bool:
        """Whether it may be sent now."""
        return bool(self._ready) and self._ready[0][0] <= asyncio.get_running_loop().time()

    def give_back_ready(self) -> None:
        """Have those given back."""
        self._give_back(len(self._ready))

    def _give_back(self, count: int) -> None:
        for _, lease, _ in reversed(
            [self._ready.popleft() for _ in range(count)]
        ):  # each becomes the first in the queue
            self.end(lease, "back", "")
        self.given_back += count
        if self.reply is not None and not self.reply.shut:
            self._unsent += count

    # --- What is sent to Redis ------------------------------------------------------------------------------------------

    @property
    def pushes(self) -> int:
        """How many requests are still to be queued."""
        return len(self._pushes)

    @property
    def ends(self) -> int:
        """How many leases are still to be ended."""
        return len(self._ends)

    def add(self, push: Push) -> None:
        """Have a request queued."""
        self._pushes.append(push)
        self._pushed += 1

    def end(self, lease: str, how: How, reason: str) -> None:
        """Have a lease ended."""
        self._ends.append((self._pushed, (lease, how, reason)))

    async def exchange(self, batch: Batch) -> Reply:
        """Send what there is, and what `batch` has besides, and take what is handed out.

        Raises RedisError or RunGoneError; the next exchange sends it again.
        """
        batch.join = self._join
        batch.pushes, batch.first = list(islice(self._pushes, _PUSH_BATCH)), self._accepted
        batch.spent, batch.unsent = self._spent, self._unsent
        ends = self._ends_after(len(batch.pushes))
        batch.ends = [*ends, *((orphan, "back", "") for orphan in self._orphans)]
        try:
            reply = await self.shared.exchange(batch)
        except redis.exceptions.OutOfMemoryError:
            # Ends free memory, but those stay whose follow-ups could not be queued.
            ends = self._ends_after(0)
            await self.shared.exchange(Batch(ends=ends, join=self._join))
            self._sent(0, ends)
            raise
        self.reply = reply
        self._join = False
        self._orphans.clear()
        self._spent -= batch.spent
        self._unsent -= batch.unsent
        self._sent(len(batch.pushes), ends)
        if reply.lost:
            self._begin_anew()
        else:
            self._take(reply)
            if reply.held != len(self.held):
                await self._reconcile()
        return reply

    def _take(self, reply: Reply) -> None:
        now = asyncio.get_running_loop().time()
        for entry, delay in reply.handed_out:
            lease = entry[3:35].decode()
            self.held.add(lease)
            if int(entry[1:3]) + 1 >= self.shared.deliveries:
                self.suspects.add(lease)
            if self.spider is None:
                continue
            try:
                request = self._decode_request(entry[35:])
            except SerialisationError as error:
                self.end(lease, "dead", str(error))
                logger.error("Dead letter %s: %s", lease, error, extra={"spider": self.spider})  # noqa: TRY400 - a sentence says it
                continue
            request.meta[META] = lease
            self._ready.append((now + delay / 1000, lease, request))

    def _ends_after(self, pushes: int) -> list[tuple[str, How, str]]:
        return [end for needs, end in self._ends if needs <= self._accepted + pushes]

    def _sent(self, pushes: int, ends: list[tuple[str, How, str]]) -> None:
        for _ in range(pushes):
            self._pushes.popleft()
        self._accepted += pushes
        for lease, _, _ in ends:
            self._ends.popleft()
            self.held.discard(lease)
            self.suspects.discard(lease)

    def _begin_anew(self) -> None:
        logger.warning(
            "This worker was taken for dead, and its %d requests are others' now: going on under a new name",
            len(self.held),
        )
        self._ends.clear()
        self.held.clear()
        self.suspects.clear()
        self._ready.clear()
        self._local = deque(request for request in self._local if META not in request.meta)
        self.shared.worker = new_name(self._node)
        self._join = True

    async def _reconcile(self) -> None:
        """Find what Redis counts as ours and never arrived, because an answer was lost or Redis' file was cut short."""
        in_redis = await self.shared.held()
        self._orphans = in_redis - self.held
        self.held &= in_redis
        self.suspects &= in_redis
        if self._orphans:
            logger.info("Giving back %d requests that never arrived here", len(self._orphans))


def _level(request: Request) -> int:
    if request.priority >= BOOST_PRIORITY:
        return BOOSTED
    return LISTS if request.priority >= LIST_PRIORITY else TITLES


def is_title(request: Request) -> bool:
    """Return whether a request is for a title's page, and not for a list's."""
    return "site_id" in request.cb_kwargs
