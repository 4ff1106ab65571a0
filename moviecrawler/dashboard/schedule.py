"""The form that schedules a job: of each spider, with the arguments that it takes."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote
from uuid import uuid4

from msgspec.structs import replace

from moviecrawler.basics.errors import ConfigurationError
from moviecrawler.basics.texts import shown
from moviecrawler.cluster.eggs import find_egg
from moviecrawler.cluster.jobs import Job, check_job
from moviecrawler.cluster.state import Argument
from moviecrawler.dashboard.pages import FormError, Page, PageRequest, RefusedError, Variables
from moviecrawler.dashboard.rendering import job_path
from moviecrawler.frontier.contract import RunName
from moviecrawler.frontier.runs import describe_crawl, name_of_arguments
from moviecrawler.sites import SITES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from moviecrawler.cluster.state import Egg, Snapshot
    from moviecrawler.dashboard.sources import Runs, Sources
    from moviecrawler.frontier.contract import RunReport

_ARGUMENT = "argument."
_SETTING = "setting."
_MORE = {_ARGUMENT: "arguments", _SETTING: "settings"}
"""What a field's name begins with, and the field with further ones, a NAME=VALUE per line."""
_NOT_IN_JOBS = {"file"}
"""Arguments that a job may not have."""
_RUN = Argument(
    name="FRONTIER_RUN", text="Name of its run; empty for one that is made of the arguments"
)
_LINE_LENGTH = 50
"""Characters of a line of a field."""
_MAX_LINES = 8


class Field(NamedTuple):
    """A field of the form."""

    name: str
    label: str
    text: str
    value: str
    choices: Sequence[str] = ()

    @property
    def rows(self) -> int:
        """Lines that show its value."""
        lines = sum(1 + len(line) // _LINE_LENGTH for line in self.value.split("\n"))
        return min(lines, _MAX_LINES)


class Schedule(Page):
    """`/schedule`, and `/schedule/<project>/<spider>`."""

    template = "schedule.html"
    title = "Schedule a job"

    def show(self, request: PageRequest) -> Variables:
        ask_runs = request.reads.start_runs() if request.value("run") else None
        jobs = request.reads.require(request.reads.start_cluster()())
        if ask_runs is not None:
            site, _, name = request.value("run").partition("/")
            job = _job_of_run(self.sources, ask_runs(), RunName(site, name), jobs)
        elif again := request.value("again"):
            project, _, job_id = again.partition("/")
            status = jobs.find(project, job_id)
            if status is None:
                raise RefusedError("no such job any more; it can't run again", 404)
            job = status.job
        elif request.path:
            job = _job_of_path(request)
        else:
            return {
                "job": None,
                "eggs": [find_egg(jobs.eggs, project) for project in jobs.projects],
            }
        eggs = [egg for egg in reversed(jobs.eggs) if egg.project == job.project]
        if not any(job.spider in egg.spiders for egg in eggs):
            raise RefusedError(f"no version of {job.project} has a spider {job.spider!r}", 404)
        versions = [egg.version for egg in eggs]
        return {
            "title": f"Schedule {job.spider}",
            "job": job,
            "path": f"/schedule/{quote(job.project, safe='')}/{quote(job.spider, safe='')}",
            "latest": versions[0],
            "versions": dict.fromkeys(filter(None, [job.version, *versions])),
            "fields": list(_fields(job, eggs[0], request.values)),
            "value": request.values.get,
        }

    def do_schedule(self, request: PageRequest) -> tuple[str, str]:
        """Queue the job of a form. Raises FormError."""
        job = _job_of_path(request)
        errors: dict[str, str] = {}
        values = {prefix: _values(request, prefix, errors) for prefix in _MORE}
        priority = 0.0
        try:
            priority = float(request.value("priority") or 0)
        except ValueError:
            errors["priority"] = f"{shown(request.value('priority'))} is not a number"
        job = replace(
            job,
            id=uuid4().hex,
            version=request.value("version") or None,
            settings=values[_SETTING],
            arguments=values[_ARGUMENT],
            priority=priority,
        )
        for field, sentence in self._check_values(job).items():
            prefix = field.partition(".")[0] + "."
            errors.setdefault(field if field in request.values else _MORE[prefix], sentence)
        if not errors:
            try:
                self.node.schedule(job)
            except ConfigurationError as error:
                errors[""] = str(error)
        if errors:
            raise FormError(errors)
        return job_path(job), "scheduled"

    def _check_values(self, job: Job) -> dict[str, str]:
        """Return what is wrong with single values, by the fields that they could have."""
        errors = {}
        none = replace(job, arguments={}, settings={}, priority=0.0)
        jobs = {
            _ARGUMENT + name: replace(none, arguments={name: value})
            for name, value in job.arguments.items()
        }
        for name, value in job.settings.items():
            jobs[_SETTING + name] = replace(none, settings={name: value})
        for field, single in jobs.items():
            try:
                check_job(single, self.node.options.job_settings)
                if job.spider in SITES:
                    describe_crawl(job.spider, self.sources.settings, single.arguments)
            except ConfigurationError as error:
                errors[field] = str(error)
        limit = job.arguments.get("limit", "1")
        if job.spider in SITES and not (limit.isdecimal() and int(limit[:18])):
            errors[f"{_ARGUMENT}limit"] = f"{shown(limit)} is not a whole number of at least 1"
        return errors


def _job_of_path(request: PageRequest) -> Job:
    if len(request.path) != 2:  # noqa: PLR2004 - project and spider
        raise RefusedError("there is no such page", 404)
    project, spider = request.path
    return Job(project=project, spider=spider, id="")


def _fields(job: Job, egg: Egg, values: Mapping[str, str]) -> Iterator[Field]:
    """Yield a field for what the spider takes, for what the job has, and for what was filled in."""
    arguments = {
        argument.name: argument
        for argument in egg.arguments.get(job.spider, ())
        if argument.name not in _NOT_IN_JOBS
    }
    for prefix, known, current in (
        (_ARGUMENT, arguments, job.arguments),
        (_SETTING, {_RUN.name: _RUN}, job.settings),
    ):
        filled_in = [name.removeprefix(prefix) for name in values if name.startswith(prefix)]
        for name in dict.fromkeys([*known, *sorted(current), *filled_in]):
            argument = known.get(name) or Argument(name=name, text="")
            value = values.get(prefix + name, current.get(name, ""))
            choices = argument.choices
            if choices and value and value not in choices:
                choices = [*choices, value]
            yield Field(prefix + name, name, argument.text, value, choices)


def _values(request: PageRequest, prefix: str, errors: dict[str, str]) -> dict[str, str]:
    """Return the arguments or the settings of a form; note what is wrong with further ones."""
    values = {
        name.removeprefix(prefix): value
        for name, value in request.values.items()
        if name.startswith(prefix) and value
    }
    more = _MORE[prefix]
    for line in request.values.get(more, "").splitlines():
        name, equals, value = line.partition("=")
        if equals and name.strip() in values:
            errors[more] = f"{name.strip()} is given twice"
        elif equals:
            values[name.strip()] = value
        elif line.strip():
            errors[more] = f"a line is {shown(line)}; write NAME=VALUE"
    return values


def _job_of_run(sources: Sources, runs: Runs | None, name: RunName, jobs: Snapshot) -> Job:
    """Return the job that goes on with a run: its latest one, or one with the run's arguments.

    Raises RefusedError when its arguments are not known.
    """
    for status in jobs.jobs:
        if sources.run_of(status.job) == name:
            return status.job
    run = runs.find(name) if runs else None
    job = run and _job_of_description(sources, run, jobs)
    if not job:
        raise RefusedError(
            f"what the run {name.name} was started with is not known here; "
            "start it again with the command that began it"
        )
    return job


def _job_of_description(sources: Sources, run: RunReport, jobs: Snapshot) -> Job | None:
    """Return a job with the arguments that a run's description has, if that has them all."""
    text, _, _ = run.arguments.rpartition(" ")
    pairs = (part.partition("=") for part in text.split(" ") if "=" in part)
    arguments = {name: value for name, _, value in pairs if name.islower()}
    own = run.run == name_of_arguments(run.arguments)
    try:
        is_whole = describe_crawl(run.site, sources.settings, arguments) == run.arguments
        egg = next(egg for egg in reversed(jobs.eggs) if run.site in egg.spiders)
    except (ConfigurationError, KeyError, StopIteration):
        return None
    settings = {} if own else {_RUN.name: run.run}
    job = Job(project=egg.project, spider=run.site, id="", arguments=arguments, settings=settings)
    return job if is_whole else None
