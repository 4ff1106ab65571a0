"""The web page of any node, for the whole cluster."""

from __future__ import annotations

import os
import time
from datetime import timedelta
from html import escape
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from scrapy.utils.misc import load_object
from scrapyd.interfaces import IEggStorage, IPoller, ISpiderScheduler
from twisted.application.service import IServiceCollection
from twisted.web.resource import Resource

from moviecrawler.cluster.components import local_time
from moviecrawler.cluster.logs import Logs
from moviecrawler.cluster.options import NodeOptions
from moviecrawler.cluster.state import state_for
from moviecrawler.cluster.webservice import ClusterResource, read_frontier, wrong

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from scrapyd.config import Config
    from twisted.web.server import Request

    from moviecrawler.cluster.eggs import EggStore
    from moviecrawler.cluster.jobs import Job
    from moviecrawler.cluster.launcher import ClusterLauncher


_ROWS = 200
"""Jobs of a kind that the page shows; listjobs.json has all."""
_SECURITY = "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
_STYLE = """
body { font-family: system-ui, sans-serif; }
table { border-collapse: collapse; }
th, td { border: 1px solid; padding: .4rem; text-align: left; word-break: break-word; }
tbody > tr:first-child { background-color: #eee; }
"""


class Root(Resource):
    """What stands under `/`."""

    debug = False

    def __init__(self, config: Config, app: Any) -> None:
        super().__init__()
        self.app = app
        self.options = NodeOptions.from_config(config)
        self.state = state_for(self.options)
        self.node_name = self.options.node_name
        self.eggs: EggStore = app.getComponent(IEggStorage)
        # Under these names Scrapyd's own web services look for them.
        self.eggstorage = self.eggs
        self.poller = app.getComponent(IPoller)
        self.scheduler = app.getComponent(ISpiderScheduler)
        pages: dict[bytes, Any] = {b"logs": Logs(self), b"": Home(self), b"jobs": Jobs(self)}
        for path, page in pages.items():
            self.putChild(path, page)
        for name, service in config.items("services", default=[]):
            if service:
                self.putChild(name.encode(), load_object(service)(self))

    @property
    def launcher(self) -> ClusterLauncher:
        """What runs this node's jobs."""
        services: Any = IServiceCollection(self.app)
        return services.getServiceNamed("launcher")  # type: ignore[no-any-return]

    def log_url(self, job: Job) -> str:
        """Return where any node gives a job's log."""
        return quote(f"/logs/{job.project}/{job.spider}/{job.id}.log")

    def trouble(self) -> str | None:
        """Return why this node takes no jobs; None when it does."""
        if self.launcher.draining:
            return "the node is draining"
        beaten_at = self.launcher.beaten_at
        if beaten_at is None or time.monotonic() - beaten_at > self.options.lease_seconds:
            return "Redis can't be reached"
        return None

    def runs(self) -> list[dict[str, Any]]:
        """Return the frontier's runs; it is where spiders are told that it is."""
        url = os.environ.get("REDIS_URL")
        if not url:
            raise wrong("REDIS_URL is not set in the node's environment, so spiders share no frontier")
        return read_frontier(url)

    def current_runs(self) -> list[dict[str, Any]]:
        """Return the runs that are not over, or only just; none when spiders share no frontier."""
        url = os.environ.get("REDIS_URL")
        return read_frontier(url, current=True) if url else []


# --- Pages -----------------------------------------------------------------------------------------------------------


class Page(ClusterResource):
    """A page, made in a thread. Whatever is put into it must be escaped."""

    title = "Scrapyd"

    def body(self, base: str) -> str:
        """Return what stands in <body>; `base` is where a proxy has put this site. Raises redis.RedisError."""
        raise NotImplementedError

    def render_GET(self, request: Request) -> dict[str, Any]:  # noqa: N802 - Twisted's own name
        """Answer with the page."""
        request.setHeader("Content-Security-Policy", _SECURITY)
        request.setHeader("X-Frame-Options", "DENY")
        return {"page": self.body(escape((request.getHeader("x-forwarded-prefix") or "").rstrip("/")))}

    def encode(self, data: Any) -> tuple[bytes, str]:
        """Return the page as HTML."""
        body = data.get("page") or f"<p>{escape(data['message'])}</p>" if data else ""
        page = (
            '<!DOCTYPE html>\n<html lang="en">\n<head><meta charset="utf-8">'
            '<meta name="viewport" content="width=device-width, initial-scale=1">'
            f"<title>{self.title}</title><style>{_STYLE}</style></head>\n<body>\n{body}\n</body>\n</html>\n"
        )
        return page.encode(), "text/html; charset=utf-8"


def table(headers: Iterable[str], parts: Mapping[str, Iterable[Iterable[str]]]) -> str:
    """Return a table of cells that are HTML already, in parts with a heading each, which may be empty."""
    head = "".join(f"<th>{header}</th>" for header in headers)
    bodies = []
    for heading, rows in parts.items():
        line = f'<tr><th colspan="{len(tuple(headers))}">{heading}</th></tr>\n' if heading else ""
        lines = "\n".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows)
        bodies.append(f"<tbody>\n{line}{lines}\n</tbody>")
    return f"<table><thead><tr>{head}</tr></thead>\n{chr(10).join(bodies)}</table>"


_COLUMNS = (
    *("Project", "Spider", "Job", "PID", "Start", "Runtime", "Finish", "Log", "Items", "Cancel"),
    *("Node", "Version", "Priority", "Reason", "Scraped", "Errors"),
)
"""Of the page of jobs: Scrapyd's own, in its order, and then ours."""


def row(project: str, spider: str, job: str, **others: str) -> list[str]:
    """Return a job's cells, one a column; those that are not given are empty, as Items, a file's link, always is here."""
    given = {"project": project, "spider": spider, "job": job, **others}
    return [given.get(column.lower(), "") for column in _COLUMNS]


class Home(Page):
    """The first page: what there is, and how the nodes are."""

    def body(self, base: str) -> str:
        """Return projects and nodes."""
        counts = self.root.state.counts()
        projects = "".join(f"<li>{escape(name)}</li>" for name in self.root.eggs.list_projects())
        nodes = table(
            ("Node", "Jobs", "Slots", "Memory", "State"),
            {
                "": (
                    (
                        escape(node.name),
                        str(len(node.processes)),
                        str(node.slots),
                        f"{node.memory / 1024**2:.0f} MB",
                        "draining" if node.draining else "up",
                    )
                    for node in self.root.state.nodes()
                )
            },
        )
        return (
            "<h1>Scrapyd</h1>\n<ul>"
            f'<li><a href="{base}/jobs">Jobs</a>: {counts.pending} pending, {counts.running} running, '
            f"{counts.finished} finished</li>"
            f'<li><a href="{base}/logs/">Logs</a> of this node</li>'
            '<li><a href="https://scrapyd.readthedocs.io/en/latest/">Documentation</a></li></ul>\n'
            f"<h2>Projects</h2>\n<ul>{projects or '<li>none yet: deploy one</li>'}</ul>\n<h2>Nodes</h2>\n{nodes}"
        )


class Jobs(Page):
    """The page of jobs. Its first columns are those of Scrapyd's own page, as there are clients that read them by their places."""

    title = "Jobs"

    def body(self, base: str) -> str:
        """Return the jobs of all nodes."""
        state = self.root.state
        counts, now = state.counts(), state.now()
        pending = (
            row(*self._names(job), cancel=self._cancel(base, job), priority=f"{job.priority:g}")
            for job in state.pending(most=_ROWS)
        )
        running = (
            row(
                *self._names(job.job),
                pid=str(job.process.pid) if job.process else "",
                start=_time(job.started_at),
                runtime=_duration(now - job.started_at),
                log=self._log(base, job.job),
                cancel=self._cancel(base, job.job),
                node=escape(job.node),
                version=escape(job.version or ""),
                priority=f"{job.job.priority:g}",
            )
            for job in state.running()
        )
        finished = (
            row(
                *self._names(done.job),
                start=_time(done.outcome.started_at / 1000),
                runtime=_duration((done.outcome.ended_at - done.outcome.started_at) / 1000),
                finish=_time(done.outcome.ended_at / 1000),
                log=self._log(base, done.job),
                node=escape(done.outcome.node),
                version=escape(done.version or ""),
                reason=escape(done.outcome.reason),
                scraped=_number(done.outcome.items),
                errors=_number(done.outcome.errors),
            )
            for done in state.finished(most=_ROWS)
        )
        parts = {
            f"Pending ({counts.pending})": pending,
            f"Running ({counts.running})": running,
            f"Finished ({counts.finished})": finished,
        }
        return f'<h1>Jobs</h1>\n<p><a href="{base}/">Go up</a></p>\n{table(_COLUMNS, parts)}'

    def _names(self, job: Job) -> tuple[str, str, str]:
        return escape(job.project), escape(job.spider), escape(job.id)

    def _log(self, base: str, job: Job) -> str:
        return f'<a href="{base}{escape(self.root.log_url(job))}">Log</a>'

    def _cancel(self, base: str, job: Job) -> str:
        return (
            f'<form method="post" action="{base}/cancel.json">'
            f'<input type="hidden" name="project" value="{escape(job.project)}">'
            f'<input type="hidden" name="job" value="{escape(job.id)}"><input type="submit" value="Cancel"></form>'
        )


def _time(seconds: float) -> str:
    return f"{local_time(seconds):%Y-%m-%d %H:%M:%S}"


def _duration(seconds: float) -> str:
    return str(timedelta(seconds=max(0, round(seconds))))


def _number(number: int | None) -> str:
    return "" if number is None else str(number)
