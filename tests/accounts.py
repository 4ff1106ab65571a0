"""What holds of every crawl: its account adds up, in the queue and in the five lines at its end."""

import asyncio
import re
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from scrapy.settings import Settings

from moviecrawler.basics.errors import MovieCrawlerError
from moviecrawler.frontier.contract import TITLE_OUTCOMES, RunReport
from moviecrawler.frontier.runs import frontier
from moviecrawler.frontier.sqlite_backend import FILE
from moviecrawler.sites import SITES

CRAWLS = [("crawl", site) for site in SITES]
LABELS = ("stores", "refusals", "missing fields", "next")
"""The beginnings of the lines after the first one."""
ENDS = (*TITLE_OUTCOMES, "dead letters", "waiting in the queue", "lost")
"""How titles end, in the words of the first line."""
_TITLES = re.compile(
    r"(?P<site>\w+): (?P<asked>[\d,]+) titles asked for: (?P<ends>.*);"
    r" in [\d,]+\.\d s \((?P<reason>\w+)\)"
)
_END = re.compile(rf"(?:^|, )([\d,]+) ({'|'.join(ENDS)})(?= \(|, |$)")
_ORDERLY = ("shutdown", "budget_spent", "recycled", "memusage_exceeded", "closespider_")


@dataclass(frozen=True)
class Summary:
    """The five lines at the end of a crawl."""

    site: str
    asked: int
    ends: dict[str, int]
    """How many titles ended in which way."""
    titles: str
    """The first line, from how the titles ended on, without its last part."""
    reason: str
    stores: str
    refusals: str
    missing: str
    next: str

    @classmethod
    def read(cls, log: str) -> "Summary":
        """Return the lines that end the log of a crawl."""
        first, *others = log.splitlines()[-1 - len(LABELS) :]
        match = _TITLES.fullmatch(first)
        assert match is not None, f"the last lines are no summary but {[first, *others]}"
        told = dict(line.strip().split(": ", 1) for line in others)
        assert tuple(told) == LABELS, others
        ends = {end: _number(count) for count, end in _END.findall(match["ends"])}
        stores, refusals, missing, next_ = told.values()
        return cls(
            site=match["site"],
            asked=_number(match["asked"]),
            ends=ends,
            titles=match["ends"],
            reason=match["reason"],
            stores=stores,
            refusals=refusals,
            missing=missing,
            next=next_,
        )


def _number(text: str) -> int:
    return int(text.replace(",", ""))


def check_crawl(
    arguments: Sequence[str], environment: Mapping[str, str], log: str, code: int
) -> None:
    """Check the account of a command that has ended, if it is a crawl that has begun.

    Args:
        arguments: Those of `scrapy`.
        environment: The environment variables, which are settings.
        log: What it wrote to standard error.
        code: Its exit code; a signal is negative.
    """
    is_crawl = arguments[0] == "replay" or tuple(arguments[:2]) in CRAWLS
    if is_crawl and "-h" not in arguments and code in {0, 1, 3}:
        given = [argument.partition("=") for argument in arguments]
        check_summary(log, code)
        assert "lane=due" not in arguments or "Traceback" not in log, log
        check_queue({**environment, **{name: value for name, _, value in given}})


def check_summary(log: str, code: int) -> None:
    """Check the lines that end the log of a crawl, and that its exit code follows from them."""
    summary = Summary.read(log)
    assert summary.asked == sum(summary.ends.values()), summary
    assert (code == 0) == summary.next.startswith("nothing is left"), (code, summary)
    if code == 0:
        assert summary.ends.keys() <= {"stored", "absent", "fresh"}, summary
        assert "could not be read" not in summary.titles, summary
    if code == 3:
        assert summary.reason.startswith(_ORDERLY), summary


def check_queue(settings: Mapping[str, str], *, may_lose: bool = False) -> None:
    """Check that each run in the queue that these settings name adds up.

    Args:
        settings: REDIS_URL, or DATA_DIR with the queue's file.
        may_lose: Whether requests may have been deleted from the queue.
    """
    with ThreadPoolExecutor(1) as thread:  # the test may run in an event loop
        runs = thread.submit(lambda: asyncio.run(_read(settings))).result()
    for run in runs:
        account = run.account
        assert account.requested == account.ended + account.open + account.lost, account
        assert may_lose or not account.lost, account
        assert (run.ended_at is not None) == (account.open == 0), run


async def _read(settings: Mapping[str, str]) -> list[RunReport]:
    url = settings.get("REDIS_URL")
    if not url and not (Path(settings["DATA_DIR"]) / FILE).exists():
        return []
    with suppress(MovieCrawlerError):  # it is away, or refused, as the test wants it
        async with frontier(Settings(dict(settings))) as backend:
            return (await backend.read({})).runs
    return []
