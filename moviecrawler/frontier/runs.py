"""How runs are named, and which backend keeps them."""

from __future__ import annotations

import asyncio
import re
from contextlib import asynccontextmanager
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from moviecrawler.frontier.contract import RunName
from moviecrawler.frontier.sqlite_backend import SqliteBackend
from moviecrawler.politeness.budgets import site_budget
from moviecrawler.sites import SITES
from moviecrawler.sites.hosts import hosts_of
from moviecrawler.sites.ids import parse_title_id

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping

    from scrapy.settings import BaseSettings

    from moviecrawler.frontier.contract import Backend, RunSite
    from moviecrawler.politeness.budgets import Budget
    from moviecrawler.sites import Site

T = TypeVar("T")
_MAX_NAME_CHARACTERS = 50
"""Characters of the arguments in the name of a run."""
_MAX_CHARACTERS = 200
"""Characters of the arguments in what describes them."""


def describe_arguments(
    ids: Collection[str], others: Mapping[str, str], hosts: Mapping[str, str] | None = None
) -> str:
    """Return a text that is the same for all workers of a run, and another one for other arguments.

    Args:
        ids: The titles of the argument `ids`.
        others: The other arguments. A file is named by its absolute path, whatever is in it.
        hosts: The site's hosts that are not the live ones, by setting.

    >>> describe_arguments(["tt1", "tt2"], {"limit": "9"})
    'ids=tt1,tt2 limit=9 (d6082c2f)'
    """
    given = []
    if ids:
        given.append(f"ids={','.join(ids)}")
    for name, value in sorted(others.items()):
        shown = str(Path(value).absolute()) if name == "file" else value
        given.append(f"{name}={shown}")
    given += [f"{setting}={host}" for setting, host in sorted((hosts or {}).items())]
    text = " ".join(given) or "no arguments"
    digest = blake2b(text.encode(), digest_size=4).hexdigest()
    return f"{text[:_MAX_CHARACTERS]} ({digest})"


def describe_crawl(site: Site, settings: BaseSettings, arguments: Mapping[str, str]) -> str:
    """Describe a crawl by the arguments of its spider, as `describe_arguments` does.

    Raises ConfigurationError.
    """
    home = hosts_of(site, settings)[SITES[site].home_setting]
    ids = dict.fromkeys(
        parse_title_id(site, text, home)
        for text in arguments.get("ids", "").split(",")
        if text.strip()
    )
    others = {name: value for name, value in arguments.items() if name != "ids" and name[0] != "_"}
    return describe_arguments(ids, others, replica_hosts(site, settings))


def replica_hosts(site: Site, settings: BaseSettings) -> dict[str, str]:
    """Return the hosts of a site that are not the live ones, by setting."""
    live = {host.setting: host.live for host in SITES[site].hosts}
    return dict(hosts_of(site, settings).items() - live.items())


def run_name(site: RunSite, settings: BaseSettings, described: str) -> RunName:
    """Return the name of a crawl's run: FRONTIER_RUN, or one that is made of its arguments."""
    return RunName(site, str(settings.get("FRONTIER_RUN") or name_of_arguments(described)))


def name_of_arguments(described: str) -> str:
    """Return the name of the run of a crawl without FRONTIER_RUN.

    >>> name_of_arguments("ids=tt1,tt2 limit=9 (d6082c2f)")
    'ids-tt1-tt2-limit-9-d6082c2f'
    """
    shown, _, digest = described.rpartition(" ")
    text = f"{shown[:_MAX_NAME_CHARACTERS]} {digest}"
    return re.sub(r"[^\w.-]+", "-", text, flags=re.ASCII).strip("-")


def open_backend(settings: BaseSettings) -> Backend:
    """Return the queues: Redis with REDIS_URL, otherwise a file in DATA_DIR.

    Nothing is connected. Raises ConfigurationError.
    """
    if settings.get("REDIS_URL"):
        from moviecrawler.frontier.redis_backend import RedisBackend  # noqa: PLC0415 - its client

        return RedisBackend.from_settings(settings)

    return SqliteBackend(Path(settings["DATA_DIR"]))


@asynccontextmanager
async def frontier(settings: BaseSettings) -> AsyncIterator[Backend]:
    """Open the queues, and close it. Its errors are MovieCrawlerErrors."""
    backend = open_backend(settings)
    try:
        yield backend
    finally:
        await backend.close()


def with_queue(settings: BaseSettings, use: Callable[[Backend], Awaitable[T]]) -> T:
    """Open the queues for a coroutine, and return its result.

    Errors of the queues are MovieCrawlerErrors.
    """

    async def run() -> T:
        async with frontier(settings) as backend:
            return await use(backend)

    # `asyncio.run` would leave no event loop for Scrapy.
    with asyncio.Runner(loop_factory=asyncio.new_event_loop) as runner:
        return runner.run(run())


def budgets_of(settings: BaseSettings) -> dict[RunSite, Budget]:
    """Return the budget of each site. Raises ConfigurationError."""
    return {site: site_budget(settings, site) for site in SITES}
