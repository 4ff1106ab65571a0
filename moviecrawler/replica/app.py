"""The replica's web servers: one process, one event loop, a port for each site."""

from __future__ import annotations

import asyncio
import signal
import socket
import struct
import time
from collections import Counter
from contextlib import suppress
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import msgspec
from aiohttp import web

from moviecrawler.errors import ConfigurationError
from moviecrawler.replica.bodies import Body
from moviecrawler.replica.collection import Collection
from moviecrawler.replica.datasets import Dataset
from moviecrawler.replica.faults import Fault, FaultPlan
from moviecrawler.replica.saved import SavedPages
from moviecrawler.replica.sources import HTML, Answer, Generated, not_found
from moviecrawler.sites import SITES

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping
    from typing import Self

    from moviecrawler.items import Site
    from moviecrawler.replica.options import Options, Robots

# On the live site the datasets have a host of their own, without a robots.txt.
_IMDB_LIVE = "User-agent: *\nDisallow: /\nAllow: /datasets/\n"
_DISALLOWED: dict[Site, str] = {
    "imdb": "/OnThisDay /ap/ /mymovies/ /registration/ /search/name-text /search/title-text /tvschedule",
    "metacritic": "/search /signup /login /user",
    "rottentomatoes": "/m/*/pictures /tv/*/pictures /search /critics/self-submission/ /user/account/*",
}
"""What each site forbids to all; IMDb only where it is open."""
_CONTROL = "/__replica__/"
_REDIRECTED = "replica_redirected"
"""The parameter that a request carries after the fault "redirect"."""


class Counts(msgspec.Struct):
    """The requests to one site, without those for robots.txt and for the replica's own control paths."""

    requests: int = 0
    paths: Counter[str] = msgspec.field(default_factory=Counter)
    """Requests by path and query."""
    clients: Counter[str] = msgspec.field(default_factory=Counter)
    """Requests by address and user agent."""
    seconds: Counter[int] = msgspec.field(default_factory=Counter)
    """Requests by Unix second of arrival."""
    statuses: Counter[int] = msgspec.field(default_factory=Counter)
    """Answers by status; a request that was reset, or that timed out, has none."""
    faults: Counter[str] = msgspec.field(default_factory=Counter)
    robots: int = 0
    """Requests for robots.txt."""
    latest: Counter[str] = msgspec.field(default_factory=Counter)
    """Each client's requests in the latest second."""

    def arrive(self, path: str, client: str, now: float) -> tuple[int, int]:
        """Count a request; return which attempt at its path it is, and which of its client's in this second, from 1."""
        second = int(now)
        if second not in self.seconds:
            self.latest.clear()
        self.requests += 1
        self.paths[path] += 1
        self.clients[client] += 1
        self.seconds[second] += 1
        self.latest[client] += 1
        return self.paths[path], self.latest[client]


class Replica:
    """A local stand-in for the sites.

    `GET /__replica__/counts` on any port returns a JSON object of the figures of `Counts` by site. `POST /__replica__/options`
    changes some of the options that are CHANGEABLE, as in {"faults": {"500": 0.1}}. `POST /__replica__/reset` sets all figures to
    zero, and all options to what they were at the start. These requests are neither counted nor spoiled, nor are those for
    robots.txt spoiled.
    """

    def __init__(self, options: Options) -> None:
        """Prepare what is served. Raises ConfigurationError when the folder of saved pages can't be read."""
        self._at_start = options
        self._folder, self._writing = TemporaryDirectory(prefix="replica-"), asyncio.Lock()
        self._source = self._source_of(options)
        self._options = options
        self._behave(options)
        self.counts: dict[Site, Counts] = {site: Counts() for site in SITES}
        self.urls: dict[Site, str] = {}
        """Each site's scheme, host and port, once started."""
        self._runners: list[web.AppRunner] = []
        self._stopping = asyncio.Event()

    async def __aenter__(self) -> Self:
        """Listen on a port for each site. Raises ConfigurationError when one is taken."""
        for site, listener in zip(SITES, _listeners(self._options.host, self._options.port), strict=True):
            app = web.Application()
            app.on_response_prepare.append(partial(self._count_status, site))
            app.router.add_get(_CONTROL + "counts", self._get_counts)
            app.router.add_post(_CONTROL + "options", self._change)
            app.router.add_post(_CONTROL + "reset", self._reset)
            app.router.add_get("/robots.txt", partial(self._robots, site))
            app.router.add_get("/{path:.*}", partial(self._respond, site))
            # Stalled requests end when their client goes, and don't hold up the end.
            runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=1)
            await runner.setup()
            await web.SockSite(runner, listener).start()
            self._runners.append(runner)
            self.urls[site] = f"http://{self._options.host}:{listener.getsockname()[1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close all connections."""
        self._stopping.set()
        for runner in self._runners:
            await runner.cleanup()
        self._folder.cleanup()

    # --- Requests -------------------------------------------------------------------------------------------------------

    async def _robots(self, site: Site, _: web.Request) -> web.StreamResponse:
        self.counts[site].robots += 1
        # Saved pages are there to be read, whatever the sites permit.
        return web.Response(text=_robots_txt(site, "open" if self._options.pages else self._options.robots))

    async def _count_status(self, site: Site, request: web.Request, response: web.StreamResponse) -> None:
        is_open = request.transport is not None and not request.transport.is_closing()
        if is_open and request.path != "/robots.txt" and not request.path.startswith(_CONTROL):
            self.counts[site].statuses[response.status] += 1

    async def _respond(self, site: Site, request: web.Request) -> web.StreamResponse:
        counts, options = self.counts[site], self._options
        redirected = _REDIRECTED in request.query
        url = request.rel_url.without_query_params(_REDIRECTED) if redirected else request.rel_url
        address = request.headers.get("X-Forwarded-For", "").partition(",")[0].strip() or request.remote or ""
        client = f"{address} {request.headers.get('User-Agent', '')}"
        attempt, in_second = counts.arrive(url.raw_path_qs, client, time.time())
        if options.rate_limit is not None and in_second > options.rate_limit:
            return await self._send(request, _small(429, "Too Many Requests", {"Retry-After": "1"}))
        if options.latency:
            await asyncio.sleep(options.latency / 1000)
        fault = self._options.clients.get(address)
        if fault is None and not redirected:
            fault = self._plan.choose(f"{site} {url.raw_path_qs}", attempt)
        if fault is not None:
            counts.faults[fault] += 1
        match fault:
            case Fault.TIMEOUT:
                await self._stopping.wait()
                return web.Response(status=503)
            case Fault.RESET:
                _reset_connection(request)
                return web.Response()
            case Fault.REDIRECT:
                where = str(request.rel_url.extend_query({_REDIRECTED: "1"}))
                return await self._send(request, Answer(Body(b""), HTML, 302, {"Location": where}))
            case None | Fault.TRUNCATED:
                return await self._serve(site, request, truncated=fault is not None)
            case Fault.NOT_FOUND:
                return await self._send(request, not_found(site))
            case _:
                return await self._send(request, _SPOILED.get((fault, site)) or _SPOILED[fault])

    async def _serve(self, site: Site, request: web.Request, *, truncated: bool) -> web.StreamResponse:
        query = {name: value for name, value in request.query.items() if name != _REDIRECTED}
        try:
            found = self._source.answer(site, request.path, query, self.urls[site])
        except ValueError as error:
            found = _small(400, f"Bad Request: {error}")
        if isinstance(found, Dataset):
            async with self._writing:  # which takes longer than the event loop may wait
                file = await asyncio.to_thread(found.write)
            if not truncated:
                return web.FileResponse(file, headers={"Content-Type": "binary/octet-stream"})
            found = Answer(Body(file.read_bytes()), "binary/octet-stream")
        return await self._send(request, found or not_found(site), truncated=truncated)

    async def _send(self, request: web.Request, answer: Answer, *, truncated: bool = False) -> web.StreamResponse:
        accepted = request.headers.get("Accept-Encoding", "")
        content, encoding = self._renamed(answer.body).encode(accepted, light=self._options.light)
        headers = {"Content-Type": answer.content_type, "Vary": "Accept-Encoding", **answer.headers}
        if encoding is not None:
            headers["Content-Encoding"] = encoding
        if not truncated:
            return web.Response(body=content, status=answer.status, headers=headers)
        response = web.StreamResponse(status=answer.status, headers=headers)
        response.content_length = len(content)
        await response.prepare(request)
        await response.write(content[: len(content) // 2])
        if request.transport is not None:
            request.transport.close()  # before all that was announced
        return response

    def _renamed(self, body: Body) -> Body:
        """Return the body of an answer as the site has it now."""
        if not self._options.renames:
            return body
        if self._until_renamed > 0:
            self._until_renamed -= 1
            return body
        content = body.identity(light=self._options.light)
        for old, new in self._options.renames.items():
            content = content.replace(old.encode(), new.encode())
        return Body(content)

    # --- Control --------------------------------------------------------------------------------------------------------

    async def _get_counts(self, _: web.Request) -> web.StreamResponse:
        return web.Response(body=msgspec.json.encode(self.counts), content_type="application/json")

    async def _change(self, request: web.Request) -> web.StreamResponse:
        try:
            self._behave(self._options.change(msgspec.json.decode(await request.read(), type=dict[str, Any])))
        except (msgspec.DecodeError, ConfigurationError) as error:
            return web.Response(text=f"{error}\n", status=400)
        return web.Response(status=204)

    def _behave(self, options: Options) -> None:
        if options.today != self._options.today:
            self._source = self._source_of(options)
        self._options = options
        self._plan = FaultPlan(options.seed, options.faults)
        self._until_renamed = options.rename_after

    def _source_of(self, options: Options) -> Generated | SavedPages:
        if options.pages:
            return SavedPages(Path(options.pages))
        collection = Collection(options.seed, options.titles, options.series, options.today)
        return Generated(collection, Path(self._folder.name) / str(options.today))

    async def _reset(self, _: web.Request) -> web.StreamResponse:
        self.counts = {site: Counts() for site in SITES}
        self._behave(self._at_start)
        return web.Response(status=204)


async def serve(options: Options, *, until: Callable[[], Awaitable[object]] | None = None) -> None:
    """Run a replica, and print the sites' URLs when it answers, until SIGINT or SIGTERM, or until `until` returns.

    Raises ConfigurationError when it can't start.
    """
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    async with Replica(options) as replica:
        for site, url in replica.urls.items():
            print(f"{site} {url}", flush=True)  # noqa: T201 - whoever started it reads them here
        waiting: list[asyncio.Future[Any]] = [asyncio.ensure_future(stop.wait())]
        if until is not None:
            waiting.append(asyncio.ensure_future(until()))
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        for other in waiting:
            other.cancel()


def _listeners(host: str, port: int) -> list[socket.socket]:
    """Return a listening socket for each site: on `port` and the next ones, or on any that are free."""
    ports = [port + offset if port else 0 for offset in range(len(SITES))]
    try:
        return [socket.create_server((host, one), backlog=1024) for one in ports]
    except OSError as error:
        last = port + len(SITES) - 1
        raise ConfigurationError(f"one of the ports {port} to {last} can't be had on {host}: {error}") from error


def _robots_txt(site: Site, robots: Robots) -> str:
    """Return a site's robots.txt. Only IMDb's differs: live, it lets nobody in."""
    if site == "imdb" and robots == "live":
        return _IMDB_LIVE
    return "User-agent: *\n" + "".join(f"Disallow: {path}\n" for path in _DISALLOWED[site].split())


def _small(status: int, text: str, headers: Mapping[str, str] | None = None) -> Answer:
    """Return a page of less than 2 kB."""
    title = "" if text.startswith("<") else f"<title>{text}</title>"
    page = f'<!DOCTYPE html><html><head>{title}</head><body><div id="main">{text}</div></body></html>'
    return Answer(Body(page.encode()), HTML, status, dict(headers or {}))


_SPOILED: dict[Fault | tuple[Fault, Site], Answer] = {
    (Fault.CHALLENGE, "imdb"): _small(
        202,
        "<script>window.awsWafCookieDomainList = []; window.gokuProps = {};</script>",
        {"x-amzn-waf-action": "challenge"},
    ),
    (Fault.CHALLENGE, "metacritic"): _small(403, "Just a moment...", {"cf-mitigated": "challenge"}),
    Fault.CHALLENGE: _small(403, "Access Denied"),
    Fault.FORBIDDEN: _small(403, "Access Denied"),
    Fault.RATE_LIMITED: _small(429, "Too Many Requests", {"Retry-After": "30"}),
    Fault.THROTTLE: _small(200, "Please try again later"),
    Fault.SERVER_ERROR: _small(500, "Internal Server Error"),
}
"""What stands in for the proper answer, on one site or on all others."""


def _reset_connection(request: web.Request) -> None:
    transport = request.transport
    if transport is not None:
        # Lingering for no time makes the kernel send RST in place of FIN.
        connection: socket.socket = transport.get_extra_info("socket")
        with suppress(OSError):
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        transport.abort()
