"""Seeds: titles that other programs push to a key of the site, as scrapy-redis' users do."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import msgspec

from moviecrawler.errors import ConfigurationError
from moviecrawler.frontier.serialisation import SerialisationError
from moviecrawler.redis_client import load_script
from moviecrawler.texts import without_credentials

if TYPE_CHECKING:
    from scrapy.statscollectors import StatsCollector

    from moviecrawler.frontier.keys import Keys
    from moviecrawler.frontier.spider import SharedSpider
    from moviecrawler.frontier.worker_queue import WorkerQueue

logger = logging.getLogger(__name__)

_MAX_SEEDS = 100
"""Seeds that are taken at once."""
_MAX_NAME_CHARS = 200
"""Characters of a bad seed's name among the dead letters."""
_KINDS = {"list", "set", "zset", "none"}
"""Types of keys that seeds are taken from; of the last, there are none."""


class Seeds:
    """What one worker takes from the site's seeds. Raises redis.RedisError when Redis can't do what it is asked.

    A seed that was taken stays in Redis until it is queued. When the worker dies before, another one takes it over.
    """

    def __init__(
        self, client: Any, keys: Keys, spider: SharedSpider, queue: WorkerQueue, stats: StatsCollector
    ) -> None:
        self._client = client
        self._keys = keys
        self._spider = spider
        self._queue = queue
        self._stats = stats
        self._take = load_script(client, __package__, "take_seeds")
        self._taken: list[bytes] = []  # as they are named in Redis, until they are acknowledged
        self._bad: dict[bytes, str] = {}  # those of them that are none, and why
        self._wrong_kind: str | None = None  # of the key, when it was last looked at
        self.round_trips = 0

    async def look(self, lease: float) -> tuple[int, int]:
        """Give seeds to the worker's queue; return how many, and how many others have taken and not queued yet.

        `lease` is the seconds after which another worker takes them over.
        """
        self.round_trips += 1
        kind, others, *members = await self._take(
            keys=[self._keys.start_urls, self._keys.taken_seeds], args=[_MAX_SEEDS, round(lease * 1000)]
        )
        self._warn_of_kind(kind.decode())
        for member in members:
            seed = member.partition(b"\n")[2]
            try:
                self._queue.push(self._spider.seed_request(seed), limited=False)
            except (ConfigurationError, SerialisationError) as error:
                self._bad[member] = str(error)
                self._stats.inc_value("frontier/dead_letters")
                # A sentence says it.
                logger.error("A bad seed is set aside: %s", error, extra={"spider": self._spider})  # noqa: TRY400
        self._taken += members
        return len(members), others

    async def settle(self) -> None:
        """Acknowledge the seeds whose requests are queued; set bad ones aside."""
        if not self._taken:
            return
        self.round_trips += 1
        taken, bad = list(self._taken), dict(self._bad)
        pipe = self._client.pipeline(transaction=False)
        for member, reason in bad.items():
            seed = without_credentials(member.partition(b"\n")[2].decode(errors="backslashreplace"))
            head = msgspec.json.encode({"reason": f"a bad seed: {reason}", "at": None})
            pipe.hset(self._keys.dead_letters, f"seed {seed[:_MAX_NAME_CHARS]}", head + b"\n" + seed.encode())
        pipe.zrem(self._keys.taken_seeds, *taken)
        await pipe.execute()
        del self._taken[: len(taken)]
        for member in bad:
            del self._bad[member]

    def _warn_of_kind(self, kind: str) -> None:
        wrong = None if kind in _KINDS else kind
        if wrong is not None and wrong != self._wrong_kind:
            message = "Seeds can't be taken from the key %r, as it is a %s; make it a list, a set or a sorted set (REDIS_START_URLS_KEY names it)"
            logger.warning(message, self._keys.start_urls, wrong, extra={"spider": self._spider})
        self._wrong_kind = wrong


async def push_seed(client: Any, key: str, seed: bytes) -> None:
    """Add a seed to a site's key, of whatever type it is."""
    kind = (await client.type(key)).decode()
    if kind == "set":
        await client.sadd(key, seed)
    elif kind == "zset":
        await client.zadd(key, {seed: 0})
    else:
        await client.rpush(key, seed)


async def count_seeds(client: Any, key: str) -> int:
    """Return how many seeds wait under a key, of whatever type it is; 0 for a type that seeds are not taken from."""
    kind = (await client.type(key)).decode()
    count = {"list": client.llen, "set": client.scard, "zset": client.zcard}.get(kind)
    return 0 if count is None else int(await count(key))
