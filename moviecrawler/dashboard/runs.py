"""The page of a run: what became of its requests, its jobs, and its dead letters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from moviecrawler.dashboard.pages import Page, PageRequest, RefusedError, Variables
from moviecrawler.dashboard.rendering import site_name
from moviecrawler.frontier.contract import RUN_SITES, RunName

if TYPE_CHECKING:
    from moviecrawler.frontier.contract import Backend

_TICKED = "letter."
"""What the name of a letter's field begins with."""
_JOBS = 20
"""Jobs of a run that are shown, the latest ones."""


class RunPage(Page):
    """`/runs/<site>/<run>`."""

    template = "run.html"
    title = "Run"

    def show(self, request: PageRequest) -> Variables:
        name = _name_of(request)
        reads = request.reads
        ask_cluster = reads.start_cluster()
        runs = reads.require(reads.start_runs()())
        cluster = ask_cluster()
        run = runs.find(name)
        if run is None:
            raise RefusedError("there is no such run; one that is not used for 7 days expires", 404)
        jobs = cluster and [
            status for status in cluster.jobs if self.sources.run_of(status.job) == name
        ]
        question = request.value("ask")
        return {
            "title": f"{site_name(run.site)}: run {run.run}",
            "refreshes": not question,
            "asks": question,
            "run": run,
            "letters": runs.letters.get(name, []),
            "jobs": jobs and jobs[:_JOBS],
        }

    def do_drop(self, request: PageRequest) -> tuple[str, str]:
        name = _name_of(request)
        is_dropped = self.sources.with_queue(lambda queue: queue.drop_run(name))
        return "/crawls", "run-dropped" if is_dropped else "no-run"

    def do_requeue(self, request: PageRequest) -> tuple[str, str]:
        return self._end_letters(request, "requeue", "requeued")

    def do_drop_letters(self, request: PageRequest) -> tuple[str, str]:
        return self._end_letters(request, "drop_letter", "letters-dropped")

    def _end_letters(
        self, request: PageRequest, end: Literal["requeue", "drop_letter"], notice: str
    ) -> tuple[str, str]:
        """Requeue or drop the dead letters that are ticked."""
        run = _name_of(request)
        ticked = [name.removeprefix(_TICKED) for name in request.values if name.startswith(_TICKED)]

        async def end_all(queue: Backend) -> int:
            return sum([await getattr(queue, end)(run, letter_id) for letter_id in ticked])

        return self.path_of(request), notice if self.sources.with_queue(end_all) else "no-letters"


def _name_of(request: PageRequest) -> RunName:
    """Return the run that a path names. Raises RefusedError."""
    if len(request.path) == 2 and request.path[0] in RUN_SITES:  # noqa: PLR2004 - site and run
        site, name = request.path
        return RunName(site, name)
    raise RefusedError("there is no such page", 404)
