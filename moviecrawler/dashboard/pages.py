"""What all pages share.

That is rendering in threads, security headers, links, forms, and sentences on unavailable stores.
"""

from __future__ import annotations

import re
import time
import traceback
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, NamedTuple
from urllib.parse import quote, urlencode

import redis
from twisted.internet.threads import deferToThread
from twisted.logger import Logger
from twisted.web import http
from twisted.web.pages import notFound
from twisted.web.resource import Resource
from twisted.web.static import File

from moviecrawler.basics.errors import MovieCrawlerError, UnavailableError
from moviecrawler.basics.texts import shown
from moviecrawler.cluster.website import respond_later
from moviecrawler.dashboard.rendering import render
from moviecrawler.dashboard.sources import PageReads
from moviecrawler.frontier.redis_client import state_error

if TYPE_CHECKING:
    from collections.abc import Mapping

    from twisted.web.resource import IResource
    from twisted.web.server import Request

    from moviecrawler.dashboard.sources import Sources

journal = Logger()

Variables = dict[str, object]
"""What a template shows, by name."""
SECURITY = {
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; "
        "frame-ancestors 'none'; base-uri 'none'"
    ),
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
ROWS = 50
"""Rows of a page of a list."""
_REFRESH_SECONDS = 10
"""Seconds after which a browser reloads a page that refreshes. A header makes it do so; a link on
the page pauses that, as WCAG 2.2.1 requires."""
_MOST_PAGES = 20
"""Pages of a list; a search or the API finds the rest."""
_PREFIX = re.compile(r"(/[\w.~-]+)*", re.ASCII)
NOTICES = {
    "scheduled": "The job is queued.",
    "cancelled": "The pending job was removed from the queue.",
    "cancelling": "The job's node ends it.",
    "no-job": "There is no such job, or it has already finished.",
    "run-dropped": "The run is dropped, with all that it had queued.",
    "no-run": "There is no such run.",
    "requeued": "The dead letters are queued again. If nobody works on the run, resume it.",
    "letters-dropped": "The dead letters are dropped.",
    "no-letters": "No dead letter was selected, or it is gone.",
    "boosted": "Boosted: it is fetched before all others, on every site, at most once a week.",
    "no-title": "The catalogue has no such title.",
}
"""Sentences that a page shows after an action, by name: links give the name, so that no link can
put its own text into a page."""
_PASSING = {"notice", "action"}
"""Parameters that no link of a page repeats."""


class Response(NamedTuple):
    """What is sent to a browser."""

    code: int
    content: bytes
    headers: Mapping[str, str]


class RefusedError(MovieCrawlerError):
    """A request is refused, with a sentence and an HTTP status."""

    def __init__(self, sentence: str, code: int = http.BAD_REQUEST) -> None:
        super().__init__(sentence)
        self.code = code


class FormError(MovieCrawlerError):
    """A form is wrong: its page shows it again, with a sentence beside each wrong field."""

    def __init__(self, errors: Mapping[str, str]) -> None:
        super().__init__("; ".join(errors.values()))
        self.errors = errors


@dataclass(slots=True, kw_only=True)
class PageRequest:
    """A request as a thread reads it."""

    method: str = "GET"
    path: tuple[str, ...] = ()
    """The parts of the path below the page's own."""
    base: str = ""
    """The prefix of a reverse proxy."""
    values: Mapping[str, str] = field(default_factory=dict)
    """The first value of each parameter."""
    errors: Mapping[str, str] = field(default_factory=dict)
    """What is wrong in a form, by field."""
    reads: PageReads = field(init=False)
    """What its page reads; `Page.respond` sets it."""

    def value(self, name: str) -> str:
        """Return a parameter, stripped; empty when it is missing.

        Raises RefusedError for a NUL character, which Postgres does not take.
        """
        text = self.values.get(name, "")
        if "\0" in text:
            raise RefusedError(f"{name} has a NUL character in it; leave that out")
        return text.strip()

    @property
    def page(self) -> int:
        """The number of the requested page of a list, from 1."""
        try:
            return min(max(int(self.value("page")), 1), _MOST_PAGES)
        except ValueError:
            return 1

    @property
    def first(self) -> int:
        """How many rows the earlier pages of the list have."""
        return (self.page - 1) * ROWS

    def has_more(self, count: int) -> bool:
        """Return whether another page follows in a list of that many rows."""
        return self.first + ROWS < count and self.page < _MOST_PAGES


class Page(Resource):
    """A page.

    `show` gathers the variables of its template; a method `do_<action>` carries out a form. All run
    in threads.
    """

    isLeaf = True
    title: ClassVar[str]
    template: ClassVar[str]

    def __init__(self, sources: Sources, here: str, menu: Mapping[str, str]) -> None:
        """Create the page at the path `here`. `menu` has the names of pages by their paths."""
        super().__init__()
        self.sources = sources
        self.node = sources.node
        self.here = here
        self.menu = menu

    def show(self, request: PageRequest) -> Variables:
        """Return the template's variables.

        Raises RefusedError, and UnavailableError when everything is unknown.

        They may replace the page's `template` and `title`, and set `refreshes`: the browser
        reloads the page every 10 s. One with a form never does, as typed text would be lost.
        """
        raise NotImplementedError

    def render(self, request: Request) -> int:
        return respond_later(request, deferToThread(self._render, request, _read_request(request)))

    def _render(self, request: Request, page_request: PageRequest) -> bytes:
        response = self.respond(page_request)
        request.setResponseCode(response.code)
        for name, value in response.headers.items():
            request.setHeader(name, value)
        return response.content

    def respond(self, request: PageRequest) -> Response:
        """Return the response to a request; every error becomes a page. Call it in a thread."""
        request.reads = PageReads(self.sources)
        try:
            if request.method == "POST":
                return self._act(request)
            if request.method in {"GET", "HEAD"}:
                return self._page(request, self.show(request))
            code = http.NOT_ALLOWED
            sentence = "this takes GET, HEAD and POST"
        except redis.exceptions.RedisError as error:
            code = http.SERVICE_UNAVAILABLE
            sentence = state_error(error)
        except UnavailableError as error:
            code = http.SERVICE_UNAVAILABLE
            sentence = str(error)
        except MovieCrawlerError as error:
            code = error.code if isinstance(error, RefusedError) else http.BAD_REQUEST
            sentence = str(error)
        except Exception as error:  # noqa: BLE001
            # The client gets a sentence, the log the traceback.
            journal.error("{trace}", trace=traceback.format_exc())
            sentence = f"this page has a fault ({type(error).__name__}); the node's log has more"
            code = http.INTERNAL_SERVER_ERROR
        sentence = sentence[:1].upper() + sentence[1:] + ("" if sentence.endswith(".") else ".")
        return self._page(request, {"template": "refused.html", "problem": sentence}, code)

    def _act(self, request: PageRequest) -> Response:
        """Carry out a form and redirect, or show it again with what is wrong in it.

        The form's method returns the path, and the name of a sentence of `NOTICES`.
        """
        action = request.value("action")
        act = getattr(self, f"do_{action}", None)
        if act is None:
            raise RefusedError(f"{self.here} has no action {shown(action)}")
        try:
            path, notice = act(request)
        except FormError as error:
            request.errors = error.errors
            return self._page(request, self.show(request), http.BAD_REQUEST)
        target = f"{request.base}{path}?{urlencode({'notice': notice})}"
        return Response(http.SEE_OTHER, b"", {"Location": target})

    def path_of(self, request: PageRequest) -> str:
        """Return the path of a request, without the prefix of a reverse proxy."""
        return "/".join([self.here, *(quote(part, safe="") for part in request.path)])

    def _page(self, request: PageRequest, variables: Variables, code: int = http.OK) -> Response:
        path = self.path_of(request)
        parameters = {} if request.method == "POST" else request.values
        kept = {name: text for name, text in parameters.items() if name not in _PASSING}

        def link(**changed: object) -> str:
            """Return the address of this page with other parameters; None removes one."""
            values = {name: value for name, value in (kept | changed).items() if value}
            return f"{request.base}{path}" + (f"?{urlencode(values)}" if values else "")

        is_paused = "paused" in request.values
        common = {
            "title": self.title,
            "refreshes": False,
            "is_paused": is_paused,
            "notice": NOTICES.get(request.values.get("notice", ""), ""),
            "base": request.base,
            "here": self.here,
            "link": link,
            "menu": self.menu,
            "causes": request.reads.causes,
            "errors": request.errors,
            "node": self.node.name,
            "has_database": self.sources.has_database,
            "has_redis": self.sources.queue == "Redis",
            "now": time.time(),
        }
        headers = {
            "Content-Type": "text/html; charset=utf-8",
            "Cache-Control": "no-store",
            **SECURITY,
        }
        if variables.get("refreshes") and not is_paused:
            headers["Refresh"] = f"{_REFRESH_SECONDS}; url={link()}"
        template = str(variables.get("template", self.template))
        return Response(code, render(template, {**common, **variables}).encode(), headers)


class Static(File):
    """`/static/`: the style sheet and the icon. Browsers check whether theirs are current."""

    def render_GET(self, request: Request) -> object:
        for name, value in {**SECURITY, "Cache-Control": "private, no-cache"}.items():
            request.setHeader(name, value)
        return super().render_GET(request)

    def directoryListing(self) -> IResource:
        return notFound()


def _read_request(request: Request) -> PageRequest:
    base = (request.getHeader("x-forwarded-prefix") or "").rstrip("/")
    # Browsers end the lines of a form as HTTP does.
    values = {
        name.decode(errors="replace"): texts[0].decode(errors="replace").replace("\r\n", "\n")
        for name, texts in (request.args or {}).items()
    }
    method: bytes = request.method
    return PageRequest(
        method=method.decode("latin-1"),
        path=tuple(part.decode(errors="replace") for part in request.postpath or () if part),
        base=base if _PREFIX.fullmatch(base) else "",
        values=values,
    )
