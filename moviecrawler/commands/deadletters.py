"""`scrapy deadletters`: show, requeue or drop dead-lettered requests."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from msgspec.structs import asdict
from scrapy.commands import ScrapyCommand

from moviecrawler.basics.clock import utc_text
from moviecrawler.basics.errors import ConfigurationError
from moviecrawler.basics.texts import printable
from moviecrawler.commands.base import JSON, RUN, SITE, BaseCommand, option, print_json

if TYPE_CHECKING:
    import argparse

    from moviecrawler.frontier.contract import Backend, DeadLetter, RunName


class Command(BaseCommand, ScrapyCommand):
    """Print, requeue or drop dead-lettered requests.

    They are those of all machines with REDIS_URL, otherwise those of DATA_DIR. Without ids, all are
    listed or shown; `requeue` and `drop` take ids, or --all.
    """

    arguments = "[list | show | requeue | drop] [ID...] [options]"
    options = (
        option("action", nargs="?", choices=["list", "show", "requeue", "drop"], default="list"),
        option("ids", nargs="*", metavar="ID"),
        option("--all", action="store_true", help="requeue or drop all of them"),
        SITE,
        RUN,
        JSON,
    )

    def execute(self, opts: argparse.Namespace) -> None:
        from moviecrawler.frontier.runs import with_queue

        if opts.action in {"requeue", "drop"} and bool(opts.ids) == opts.all:
            raise ConfigurationError(
                f"{opts.action} takes the ids of dead letters, or --all instead"
            )
        with_queue(self.settings, partial(self._run, opts))

    async def _run(self, opts: argparse.Namespace, queue: Backend) -> None:
        missing = set(opts.ids)
        is_any = False
        prospects: dict[RunName, str] = {}
        async for letter in queue.dead_letters(opts.site, opts.run):
            if opts.ids and letter.id not in opts.ids:
                continue
            is_any = True
            missing.discard(letter.id)
            # It may be gone: another operator can requeue or drop it meanwhile.
            if opts.action == "requeue":
                if letter.run not in prospects:
                    prospects[letter.run] = await _prospect(queue, letter.run)
                if await queue.requeue(letter.run, letter.id):
                    where = f"{_where(letter)} {prospects[letter.run]}"
                    print(printable(f"{letter.id} of {where}"))
            elif opts.action == "drop":
                if await queue.drop_letter(letter.run, letter.id):
                    print(printable(f"{letter.id} is dropped from {_where(letter)}"))
            else:
                _print(letter, opts)
        for letter_id in sorted(missing):
            self.fail(f"there is no dead letter {letter_id}")
        if not (is_any or opts.ids or opts.json):
            print("there are no dead letters")


async def _prospect(queue: Backend, run: RunName) -> str:
    """Return what becomes of a dead letter of a run that is requeued now."""
    from moviecrawler.frontier.runs import name_of_arguments

    report = await queue.read({}, run.site, run.name)
    state = next(iter(report.runs), None)
    if state is not None and state.ended_at is None:
        if state.workers:
            return "joins the pass that is under way"
        return "joins the pass that is under way; start the crawl's command to go on with it"
    if state is not None and state.arguments and run.name != name_of_arguments(state.arguments):
        return (
            f"waits for the next start with FRONTIER_RUN={run.name},"
            " which opens the run again for it"
        )
    return "waits for the next start of the crawl's command, which fetches it beside all else"


def _print(letter: DeadLetter, opts: argparse.Namespace) -> None:
    """Print a dead letter: as JSON, in a line, or with all that is known of it."""
    facts = _facts(letter)
    if opts.json:
        print_json(facts)
    elif opts.action == "list":
        about = facts.get("url") or letter.body[:100]
        parts = (letter.id, _where(letter), facts["at"], about, letter.reason)
        print("  ".join(printable(str(part)) for part in parts))
    else:
        for name, value in facts.items():
            print(f"{name + ':':12} {printable(str(value))}")
        print()


def _where(letter: DeadLetter) -> str:
    return f"{letter.run.site} ({letter.run.name})"


def _facts(letter: DeadLetter) -> dict[str, object]:
    """Return all that is known of a dead letter."""
    facts: dict[str, object] = {
        "id": letter.id,
        "site": letter.run.site,
        "run": letter.run.name,
        "at": utc_text(letter.at, seconds=True),
        "reason": letter.reason,
    }
    request = letter.request
    return facts | (asdict(request) if request else {"pushed": letter.body})
