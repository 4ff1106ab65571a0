"""What all pages share: rendering in threads, security headers, forms, and sentences on stores that can't be reached."""

from __future__ import annotations

import re
import time
import traceback
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeVar
from urllib.parse import urlencode

import redis
from twisted.logger import Logger
from twisted.web import http
from twisted.web.pages import notFound
from twisted.web.resource import Resource
from twisted.web.static import File

from moviecrawler.cluster.website import answer_later
from moviecrawler.dashboard.rendering import render
from moviecrawler.errors import AwayError, ConfigurationError, MovieCrawlerError
from moviecrawler.redis_client import describe_error

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from twisted.web.server import Request

    from moviecrawler.dashboard.sources import Sources

journal = Logger()
T = TypeVar("T")
U = TypeVar("U")

SECURITY = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; "
        "frame-ancestors 'none'; base-uri 'none'"
    ),
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
_PREFIX = re.compile(r"(/[\w.~-]+)*", re.ASCII)
_MAX_VALUE_LENGTH = 16 * 1024
"""Characters of a field of a form."""
NOTICES = {
    "scheduled": "The job is queued.",
    "cancelled": "The job was still pending, and is taken out of the queue.",
    "cancelling": "The job's node ends it.",
    "no-job": "There is no such job any more, or it is over.",
    "boosted": "Boosted: it is fetched before all others, on every site, at most once a week.",
    "no-title": "The catalogue has no such title.",
}
"""Sentences that a page shows after an action, by name: a link names one, so that it can't put its own text into a page."""


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
        """Return a parameter, stripped; empty when it is missing. Raises RefusedError for a NUL character, which Postgres does not take."""
        text = self.values.get(name, "")
        if "\0" in text:
            raise RefusedError(f"{name} has a NUL character in it; leave that out")
        return text.strip()

    def whole_number(self, name: str, least: int, most: int, default: int) -> int:
        """Return a whole number. Raises RefusedError."""
        text = self.value(name)
        if not text:
            return default
        if not (text.isascii() and text.isdigit() and len(text) < 20) or not least <= int(text) <= most:  # noqa: PLR2004 - no number here is longer
            raise RefusedError(f"{name} is {text[:40]!r}; give a whole number from {least} to {most:,}")
        return int(text)

    def place(self, name: str, parse: Callable[[str], T]) -> T | None:
        """Return a parameter that names an entry of a list, such as the last one before a page; None when it is missing.

        `parse` raises ValueError for a text that names none. Raises RefusedError.
        """
        try:
            return parse(self.value(name)) if self.value(name) else None
        except ValueError:
            raise RefusedError(f"{name} is {self.value(name)[:40]!r}, which is not in this list") from None

    def attempt(self, function: Callable[..., T], *arguments: Any, otherwise: U = None) -> T | U:  # type: ignore[assignment]  # mypy knows no type of a default
        """Return a function's result; `otherwise`, and a sentence on the page, when its store can't be reached or is not configured."""
        try:
            return function(*arguments)
        except redis.exceptions.RedisError as error:
            trouble = f"Redis can't be asked: {describe_error(error)}"
        except (AwayError, ConfigurationError) as error:
            trouble = str(error)
        trouble = trouble[:1].upper() + trouble[1:]
        if trouble not in self.troubles:
            self.troubles.append(trouble)
        return otherwise


class Page(Resource):
    """A page. `show` gathers the variables of its template; a method `do_<action>` carries out a form. All run in threads."""

    isLeaf = True
    title: ClassVar[str]
    template: ClassVar[str]
    in_menu: ClassVar[str] = ""
    """Its name in the menu; empty for a page that is not there."""

    def __init__(self, sources: Sources, here: str, menu: Mapping[str, str]) -> None:
        """Create it at a path. `menu` has the names of pages by their paths."""
        super().__init__()
        self.sources = sources
        self.node = sources.node
        self.here = here
        self.menu = menu

    def show(self, request: PageRequest) -> dict[str, Any]:
        """Return the template's variables. Raises RefusedError.

        `template` and `title` are among the variables where they are not the page's own.
        """
        raise NotImplementedError

    def act(self, request: PageRequest) -> tuple[str, str]:
        """Carry out a form; return the path to redirect to, and the name in `NOTICES` of the sentence to show there. Raises RefusedError."""
        known = [name.removeprefix("do_") for name in dir(self) if name.startswith("do_")]
        action = request.value("action")
        if not known:
            raise RefusedError(f"there is nothing to send to {self.here}", http.NOT_ALLOWED)
        if action not in known:
            raise RefusedError(f"action is {action[:40]!r}; it is {' or '.join(known)}")
        path, notice = getattr(self, f"do_{action}")(request)
        return path, notice

    def render(self, request: Request) -> int:
        return answer_later(request, self.sources.threads.run(self._render, request, _read_request(request)))

    def _render(self, request: Request, given: PageRequest) -> bytes:
        answer = self.answer(given)
        request.setResponseCode(answer.code)
        for name, value in answer.headers.items():
            request.setHeader(name, value)
        return answer.content

    def answer(self, request: PageRequest) -> Answer:
        """Return the answer to a request, whatever happens; in a thread."""
        try:
            if request.method == "POST":
                return self._acted(request)
            if request.method in {"GET", "HEAD"}:
                return self._shown(request)
            code, sentence = http.NOT_ALLOWED, "this takes GET, HEAD and POST"
        except (AwayError, redis.exceptions.RedisError) as error:
            code, sentence = http.SERVICE_UNAVAILABLE, f"a store can't be asked now: {error}"
        except MovieCrawlerError as error:
            code, sentence = error.code if isinstance(error, RefusedError) else http.BAD_REQUEST, str(error)
        except Exception as error:  # noqa: BLE001 - the client gets a sentence, the log the traceback
            journal.error("{trace}", trace=traceback.format_exc())
            sentence = f"this page has a fault ({type(error).__name__}); the node's log has more"
            code = http.INTERNAL_SERVER_ERROR
        sentence = sentence[:1].upper() + sentence[1:] + ("" if sentence.endswith(".") else ".")
        return self._page(request, code, "", template="refused.html", problem=sentence)

    def _shown(self, request: PageRequest) -> Answer:
        shown = self.show(request)
        return self._page(request, http.OK, NOTICES.get(request.value("notice"), ""), **shown)

    def _acted(self, request: PageRequest) -> Answer:
        path, notice = self.act(request)
        target = f"{request.base}{path}{'&' if '?' in path else '?'}{urlencode({'notice': notice})}"
        return Answer(http.SEE_OTHER, b"", {"Location": target})

    def _page(self, request: PageRequest, code: int, notice: str, **variables: Any) -> Answer:
        variables = {"template": self.template, "title": self.title, **variables}
        text = render(
            **variables,
            base=request.base,
            here=self.here,
            menu=self.menu,
            notice=notice,
            troubles=request.troubles,
            node=self.node.name,
            has_database=self.node.has_database,
            has_frontier=self.node.has_frontier,
            now=time.time(),
        )
        return _answer(code, text.encode(), "text/html")


class Static(File):
    """`/static/`: the style sheet, the script and the icon. Pages ask for each with its version."""

    def render_GET(self, request: Request) -> Any:
        for name, value in {**SECURITY, "Cache-Control": "private, max-age=86400"}.items():
            request.setHeader(name, value)
        return super().render_GET(request)

    def directoryListing(self) -> Any:
        return notFound()


def _read_request(request: Request) -> PageRequest:
    base = request.getHeader("x-forwarded-prefix") or ""
    values = {
        name.decode(errors="replace"): given[0].decode(errors="replace")[:_MAX_VALUE_LENGTH]
        for name, given in (request.args or {}).items()
    }
    method: bytes = request.method
    return PageRequest(
        method=method.decode("latin-1"),
        path=tuple(part.decode(errors="replace") for part in request.postpath or () if part),
        base=base.rstrip("/") if _PREFIX.fullmatch(base.rstrip("/")) else "",
        values=values,
    )


def _answer(code: int, content: bytes, kind: str, more: Mapping[str, str] | None = None) -> Answer:
    headers = {"Content-Type": f"{kind}; charset=utf-8", "Cache-Control": "no-store", **SECURITY, **(more or {})}
    return Answer(code, content, headers)
