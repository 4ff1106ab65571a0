"""Passes of runs as workers make them, in Redis or in a folder's file, without a crawl."""

import asyncio
from collections.abc import Mapping
from pathlib import Path

from scrapy.settings import Settings

from moviecrawler.frontier.contract import LISTS, TITLES, End, Push, RunName, Worker
from moviecrawler.frontier.runs import frontier

WEEKLY = Worker(
    run=RunName("imdb", "weekly"), name="node-1", arguments="list=top (77759cfa)", is_once=True
)
"""A worker of a run that FRONTIER_RUN names."""
TITLE = '["parse_title","https://www.imdb.com/title/tt0000001/",{},"page"]'
LIST = '["parse_list","https://www.imdb.com/chart/top/",{},"page"]'


def make_pass(
    data: Path,
    redis_url: str,
    outcomes: Mapping[str, str],
    worker: Worker = WEEKLY,
    title: str = TITLE,
) -> None:
    """Make a pass whose requests end with these outcomes; those without one stay queued.

    Those that are `read` are for a list, the others for a title, whose body is `title`. The request
    for the arguments is read, too.
    """
    settings = Settings({"REDIS_URL": redis_url, "DATA_DIR": str(data)})
    asyncio.run(_make_pass(settings, outcomes, worker, title))


async def _make_pass(
    settings: Settings, outcomes: Mapping[str, str], worker: Worker, title: str
) -> None:
    async with frontier(settings) as backend:
        await backend.open(worker, requested_at=None, age=0.0)
        [arguments] = (await backend.take(worker, 1)).deliveries
        pushes = [
            Push(level=LISTS, id=id_, body=LIST)
            if outcome == "read"
            else Push(level=TITLES, id=id_, body=title, title=id_)
            for id_, outcome in outcomes.items()
        ]
        await backend.push(worker, pushes)
        ends = [End(id=arguments.id, kind="done", number=1, outcomes={"read": 1})]
        await backend.finish(worker, ends)
        leased = await backend.take(worker, len(outcomes))
        ends = [_end_of(delivery.id, outcomes[delivery.id]) for delivery in leased.deliveries]
        await backend.finish(worker, ends)
        await backend.leave(worker)


def _end_of(id_: str, outcome: str) -> End:
    if not outcome:
        return End(id=id_, kind="back", number=1)
    if outcome == "dead":
        return End(id=id_, kind="dead", number=1, reason="it kills")
    return End(id=id_, kind="done", number=1, outcomes={outcome: 1})
