"""The replica's web servers: one process, one event loop, a port for each site."""

import asyncio
import signal
import socket
import sys
import time
from collections import Counter
from collections.abc import Mapping
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
from aiohttp import web
from isal import isal_zlib

from moviecrawler.basics.errors import ConfigurationError
from moviecrawler.items import Site
from moviecrawler.replica.collection import Collection
from moviecrawler.replica.datasets import Dataset
from moviecrawler.replica.options import Fault, Options
from moviecrawler.replica.sources import REFUSALS, Answer, Source
from moviecrawler.sites import SITES
from moviecrawler.sites.replicas import Refusal, SeededRandom, replica_of

_CONTROL = "/__replica__/"
_REDIRECTED = "replica_redirected"
"""The parameter that a request carries after the fault "redirect"."""
_GZIP_MEMBER = 31


class Counts(msgspec.Struct):
    """The requests to one site.

    Those for robots.txt and for the replica's own control paths are not among them.
    """

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

    def arrive(self, path: str, client: str, second: int) -> None:
        """Count a request."""
        if second not in self.seconds:
            self.latest.clear()
        self.requests += 1
        self.seconds[second] += 1
        self.paths[path] += 1
        self.clients[client] += 1
        self.latest[client] += 1


def choose(seed: int, shares: Mapping[Fault, float], path: str, attempt: int) -> Fault | None:
    """Return what happens to the `attempt`th request for a path; None for a proper answer.

    Attempts are counted from 1. The same crawl meets the same faults, and a retry is another
    attempt, which can succeed.
    """
    faults = [*shares, None]
    weights = [*shares.values(), 1 - sum(shares.values())]
    return SeededRandom(seed, attempt, path).choices(faults, weights)[0]


class Replica:
    """What the servers of all sites share.

    `GET /__replica__/counts` on any port returns a JSON object of the figures of `Counts` by site.
    `POST /__replica__/options` changes some of the options that are CHANGEABLE, as in {"faults":
    {"500": 0.1}}. `POST /__replica__/reset` sets all figures to zero, and all options to what they
    were at the start. These requests are neither counted nor spoiled, nor are those for robots.txt
    spoiled.
    """

    def __init__(self, options: Options, folder: Path) -> None:
        """Take a folder for the datasets."""
        self.options = options
        self._at_start = options
        self._folder = folder
        self._writing = asyncio.Lock()
        self._source = self._source_of(options)
        self._counts: dict[Site, Counts] = {site: Counts() for site in SITES}

    def app(self, site: Site) -> web.Application:
        """Return the web server of a site."""
        app = web.Application()
        app.on_response_prepare.append(partial(self._count_status, site))
        app.router.add_get(_CONTROL + "counts", self._get_counts)
        app.router.add_post(_CONTROL + "options", self._set_options)
        app.router.add_post(_CONTROL + "reset", self._reset)
        app.router.add_get("/robots.txt", partial(self._robots, site))
        app.router.add_get("/{path:.*}", partial(self._respond, site))
        return app

    async def _robots(self, site: Site, _: web.Request) -> web.StreamResponse:
        self._counts[site].robots += 1
        replica = replica_of(site)
        is_live = self.options.robots == "live"
        return web.Response(text=replica.LIVE_ROBOTS if is_live else replica.ROBOTS)

    async def _count_status(
        self, site: Site, request: web.Request, response: web.StreamResponse
    ) -> None:
        is_open = request.transport is not None and not request.transport.is_closing()
        if is_open and request.path != "/robots.txt" and not request.path.startswith(_CONTROL):
            self._counts[site].statuses[response.status] += 1

    async def _respond(self, site: Site, request: web.Request) -> web.StreamResponse:
        counts = self._counts[site]
        options = self.options
        redirected = _REDIRECTED in request.query
        url = request.rel_url.without_query_params(_REDIRECTED) if redirected else request.rel_url
        address = request.headers.get("X-Forwarded-For", request.remote)
        client = f"{address} {request.headers.get('User-Agent', '')}"
        counts.arrive(url.raw_path_qs, client, int(time.time()))
        if options.rate_limit is not None and counts.latest[client] > options.rate_limit:
            return self._send(request, _refuse(REFUSALS["rate-limit"]))
        if options.latency:
            await asyncio.sleep(options.latency / 1000)
        fault = None
        if not redirected:
            path = url.raw_path_qs
            fault = choose(options.seed, options.faults, f"{site} {path}", counts.paths[path])
        if fault:
            counts.faults[fault] += 1
        match fault:
            case Fault.TIMEOUT:
                await asyncio.Event().wait()
                return web.Response()
            case Fault.RESET:
                if (transport := request.transport) is not None:
                    transport.abort()
                return web.Response()
            case Fault.REDIRECT:
                where = str(request.rel_url.extend_query({_REDIRECTED: "1"}))
                answer = Answer(b"", status=302, headers={"Location": where})
            case Fault.CHALLENGE:
                answer = _refuse(replica_of(site).CHALLENGE)
            case None | Fault.TRUNCATED:
                return await self._serve(site, request, url.query, truncated=fault is not None)
            case _:
                answer = _refuse(REFUSALS[fault])
        return self._send(request, answer)

    async def _serve(
        self, site: Site, request: web.Request, query: Mapping[str, str], *, truncated: bool
    ) -> web.StreamResponse:
        try:
            found = self._source.answer(site, request.path, query, f"http://{request.host}")
        except ValueError:
            found = Answer(b"Bad Request", status=400)
        if isinstance(found, Dataset):
            async with self._writing:  # which takes longer than the event loop may wait
                file = await asyncio.to_thread(found.write)
            if not truncated:
                return web.FileResponse(file, headers={"Content-Type": "binary/octet-stream"})
            found = Answer(file.read_bytes(), "binary/octet-stream")
        return self._send(request, found or _refuse(REFUSALS["404"]), truncated=truncated)

    def _send(
        self, request: web.Request, answer: Answer, *, truncated: bool = False
    ) -> web.Response:
        content = answer.body
        headers = {"Content-Type": answer.content_type, "Vary": "Accept-Encoding", **answer.headers}
        if "gzip" in request.headers.get("Accept-Encoding", ""):
            content = isal_zlib.compress(content, 1, _GZIP_MEMBER)
            headers["Content-Encoding"] = "gzip"
        response = web.Response(body=content, status=answer.status, headers=headers)
        if truncated:
            response.headers["Content-Length"] = str(len(content))
            response.body = content[: len(content) // 2]
            response.force_close()  # before all that was announced
        return response

    async def _get_counts(self, _: web.Request) -> web.StreamResponse:
        return web.Response(body=msgspec.json.encode(self._counts), content_type="application/json")

    async def _set_options(self, request: web.Request) -> web.StreamResponse:
        try:
            given = msgspec.json.decode(await request.read(), type=dict[str, object])
            self.change(self.options.change(given))
        except (msgspec.DecodeError, ConfigurationError) as error:
            return web.Response(text=f"{error}\n", status=400)
        return web.Response(status=204)

    def change(self, options: Options) -> None:
        """Behave as other options say."""
        if options.today != self.options.today:
            self._source = self._source_of(options)
        self.options = options

    def _source_of(self, options: Options) -> Source:
        collection = Collection(options.seed, options.titles, options.series, options.today)
        return Source(collection, self._folder / str(options.today), light=options.light)

    async def _reset(self, _: web.Request) -> web.StreamResponse:
        self._counts = {site: Counts() for site in SITES}
        self.change(self._at_start)
        return web.Response(status=204)


async def serve(
    options: Options, make: type[Replica] = Replica, *, until_input_ends: bool = False
) -> None:
    """Run a replica until SIGINT or SIGTERM, or until standard input ends.

    Prints the sites' URLs when it answers. Raises ConfigurationError when it can't start.
    """
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    if until_input_ends:
        # It ends when the process at its other end is gone; nothing is ever written to it.
        loop.add_reader(sys.stdin, stop.set)
    async with AsyncExitStack() as stack:
        replica = make(options, Path(stack.enter_context(TemporaryDirectory(prefix="replica-"))))
        for site, listener in zip(SITES, _listeners(options.host, options.port), strict=True):
            # Stalled requests end when their client goes, and don't hold up the end.
            runner = web.AppRunner(
                replica.app(site), access_log=None, handler_cancellation=True, shutdown_timeout=1
            )
            await runner.setup()
            stack.push_async_callback(runner.cleanup)
            await web.SockSite(runner, listener).start()
            url = f"http://{options.host}:{listener.getsockname()[1]}"
            print(f"{site} {url}", flush=True)  # noqa: T201 - for who started it
        await stop.wait()


def _listeners(host: str, port: int) -> list[socket.socket]:
    """Return a listening socket for each site.

    They are on `port` and the next ones, or on any ports that are free.
    """
    ports = range(port, port + len(SITES)) if port else [0] * len(SITES)
    try:
        return [socket.create_server((host, one), backlog=1024) for one in ports]
    except OSError as error:
        message = f"one of the ports {port} to {ports[-1]} is not available on {host}: {error}"
        raise ConfigurationError(message) from error


def _refuse(refusal: Refusal) -> Answer:
    """Return a site's answer to what it refuses or does not have: a page of less than 2 kB."""
    page = f"<!DOCTYPE html><html><head>{refusal.head}</head><body></body></html>"
    return Answer(page.encode(), status=refusal.status, headers=refusal.headers)


if __name__ == "__main__":  # the process of a `ReplicaProcess`, whose options it takes as JSON
    try:
        asyncio.run(serve(msgspec.json.decode(sys.argv[1], type=Options), until_input_ends=True))
    except ConfigurationError as wrong:
        sys.exit(str(wrong))
