"""What all pages share.

That is rendering in threads, security headers, forms, and sentences on stores that can't be
reached.
"""

from __future__ import annotations

import re
import time
import traceback
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeVar
from urllib.parse import urlencode

import redis
from twisted.internet.threads import deferToThread
from twisted.logger import Logger
from twisted.web import http
from twisted.web.pages import notFound
from twisted.web.resource import Resource
from twisted.web.static import File

from moviecrawler.basics.errors import AwayError, ConfigurationError, MovieCrawlerError
from moviecrawler.cluster.website import answer_later
from moviecrawler.dashboard.rendering import render
from moviecrawler.frontier.redis_client import state_error

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from twisted.web.server import Request

    from moviecrawler.dashboard.sources import Sources

journal = Logger()
T = TypeVar("T")
U = TypeVar("U")

SECURITY = {
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; "
        "frame-ancestors 'none'; base-uri 'none'"
    ),
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
MOST_PAGES = 20
"""Pages of a list; a search or the API finds the rest."""
_PREFIX = re.compile(r"(/[\w.~-]+)*", re.ASCII)
_MAX_VALUE_LENGTH = 16 * 1024
"""Characters of a field of a form."""
NOTICES = {
    "scheduled": "The job is queued.",
    "cancelled": "The job was still waiting, and is taken out of the queue.",
    "cancelling": "The job's node ends it.",
    "no-job": "There is no such job any more, or it is over.",
    "boosted": "Boosted: it is fetched before all others, on every site, at most once a week.",
    "no-title": "The catalogue has no such title.",
}
"""Sentences that a page shows after an action, by name: links give the name, so that no link can
put its own text into a page."""


class Answer(NamedTuple):
    """What is sent to a browser."""

    code: int
    content: bytes
    headers: Mapping[str, str]


class RefusedError(MovieCrawlerError):
    """A request is refused, with a sentence and an HTTP status."""

    def __init__(self, sentence: str, code: int = http.BAD_REQUEST) -> None:
        super().__init__(sentence)
        self.code = code


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
    troubles: list[str] = field(default_factory=list)
    """Sentences on stores that could not be reached."""

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
        """Which page of a list is asked for, from 1."""
        try:
            return min(max(int(self.value("page")), 1), MOST_PAGES)
        except ValueError:
            return 1

    # mypy knows no type of a default
    def attempt(
        self,
        function: Callable[..., T],
        *arguments: Any,
        otherwise: U = None,  # type: ignore[assignment]
    ) -> T | U:
        """Return a function's result, or `otherwise` if its store can't be reached.

        In that case, note a sentence for the page.
        """
        try:
            return function(*arguments)
        except redis.exceptions.RedisError as error:
            trouble = state_error(error)
        except (AwayError, ConfigurationError) as error:
            trouble = str(error)
        trouble = trouble[:1].upper() + trouble[1:]
        if trouble not in self.troubles:
            self.troubles.append(trouble)
        return otherwise


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

    def show(self, request: PageRequest) -> dict[str, Any]:
        """Return the template's variables. Raises RefusedError.

        They may replace the page's `template` and `title`, and name a path as `refresh`, which the
        browser then asks for every 10 s.
        """
        raise NotImplementedError

    def render(self, request: Request) -> int:
        return answer_later(request, deferToThread(self._render, request, _read_request(request)))

    def _render(self, request: Request, given: PageRequest) -> bytes:
        answer = self.answer(given)
        request.setResponseCode(answer.code)
        for name, value in answer.headers.items():
            request.setHeader(name, value)
        return answer.content

    def answer(self, request: PageRequest) -> Answer:
        """Return the answer to a request; every error becomes a page. Call it in a thread."""
        try:
            if request.method == "POST":
                return self._act(request)
            if request.method in {"GET", "HEAD"}:
                return self._page(
                    request, **self.show(request), notice=NOTICES.get(request.value("notice"), "")
                )
            code = http.NOT_ALLOWED
            sentence = "this takes GET, HEAD and POST"
        except redis.exceptions.RedisError as error:
            code = http.SERVICE_UNAVAILABLE
            sentence = state_error(error)
        except AwayError as error:
            code = http.SERVICE_UNAVAILABLE
            sentence = f"a store can't be asked now: {error}"
        except MovieCrawlerError as error:
            code = error.code if isinstance(error, RefusedError) else http.BAD_REQUEST
            sentence = str(error)
        except Exception as error:  # noqa: BLE001
            # The client gets a sentence, the log the traceback.
            journal.error("{trace}", trace=traceback.format_exc())
            sentence = f"this page has a fault ({type(error).__name__}); the node's log has more"
            code = http.INTERNAL_SERVER_ERROR
        sentence = sentence[:1].upper() + sentence[1:] + ("" if sentence.endswith(".") else ".")
        return self._page(request, code, template="refused.html", problem=sentence)

    def _act(self, request: PageRequest) -> Answer:
        """Carry out a form and redirect.

        The form's method returns the path, and the name of a sentence of `NOTICES`.
        """
        known = [name.removeprefix("do_") for name in dir(self) if name.startswith("do_")]
        action = request.value("action")
        if action not in known:
            raise RefusedError(
                f"action is {action[:40]!r}; {self.here} knows {' and '.join(known) or 'none'}"
            )
        path, notice = getattr(self, f"do_{action}")(request)
        target = f"{request.base}{path}?{urlencode({'notice': notice})}"
        return Answer(http.SEE_OTHER, b"", {"Location": target})

    def _page(self, request: PageRequest, code: int = http.OK, **variables: Any) -> Answer:
        defaults = {"template": self.template, "title": self.title, "refresh": None, "notice": ""}
        common = {
            "base": request.base,
            "here": self.here,
            "menu": self.menu,
            "troubles": request.troubles,
            "node": self.node.name,
            "has_database": self.sources.has_database,
            "has_redis": self.sources.has_redis,
            "now": time.time(),
        }
        headers = {
            "Content-Type": "text/html; charset=utf-8",
            "Cache-Control": "no-store",
            **SECURITY,
        }
        return Answer(code, render(**{**defaults, **common, **variables}).encode(), headers)


class Static(File):
    """`/static/`: the style sheet and the icon. Browsers ask whether theirs are of today."""

    def render_GET(self, request: Request) -> Any:
        for name, value in {**SECURITY, "Cache-Control": "private, no-cache"}.items():
            request.setHeader(name, value)
        return super().render_GET(request)

    def directoryListing(self) -> Any:
        return notFound()


def _read_request(request: Request) -> PageRequest:
    base = (request.getHeader("x-forwarded-prefix") or "").rstrip("/")
    values = {
        name.decode(errors="replace"): given[0].decode(errors="replace")[:_MAX_VALUE_LENGTH]
        for name, given in (request.args or {}).items()
    }
    method: bytes = request.method
    return PageRequest(
        method=method.decode("latin-1"),
        path=tuple(part.decode(errors="replace") for part in request.postpath or () if part),
        base=base if _PREFIX.fullmatch(base) else "",
        values=values,
    )
