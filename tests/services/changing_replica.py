"""A replica that changes its pages, and that challenges some of its clients."""

import asyncio
import gzip
import os
import sys
from multiprocessing.connection import Connection

import msgspec
from aiohttp import web
from aiohttp.typedefs import Handler

from moviecrawler.items import Site
from moviecrawler.replica.app import Replica, serve
from moviecrawler.replica.options import Options

RATING = {"aggregateRating": "meanOfVotes"}
"""What the pages call IMDb's rating, and what they call it when they have changed."""
IDENTITY = {
    "titleText": "nameOfTheTitle",
    "og:title": "og:name",
    "<title>": "<name>",
    '"name"': '"called"',
}


class ChangingOptions(Options, frozen=True, kw_only=True):
    CHANGEABLE = (*Options.CHANGEABLE, "challenged", "renames", "rename_after")
    challenged: list[str] = msgspec.field(default_factory=list)
    """Clients whose requests are challenged, by the address in X-Forwarded-For, where a proxy says
    for whom it asks."""
    renames: dict[str, str] = msgspec.field(default_factory=dict)
    """Words of pages, and what stands in their places: how a site changes its pages."""
    rename_after: int = 0
    """Answers that are as before."""


class ChangingReplica(Replica):
    options: ChangingOptions
    _answers = 0

    def change(self, options: Options) -> None:
        super().change(options)
        self._answers = 0

    def app(self, site: Site) -> web.Application:
        app = super().app(site)
        app.middlewares.append(self._answer)
        return app

    @web.middleware
    async def _answer(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        options = self.options
        answer = await handler(request)
        if request.path.startswith(("/robots.txt", "/__replica__/")):
            return answer
        if request.headers.get("X-Forwarded-For") in options.challenged:
            return web.Response(status=202, headers={"x-amzn-waf-action": "challenge"})
        if options.renames and isinstance(answer, web.Response) and isinstance(answer.body, bytes):
            self._answers += 1
            if self._answers > options.rename_after:
                self._rename(answer, answer.body)
        return answer

    def _rename(self, answer: web.Response, body: bytes) -> None:
        if answer.headers.pop("Content-Encoding", None):
            body = gzip.decompress(body)
        for old, new in self.options.renames.items():
            body = body.replace(old.encode(), new.encode())
        answer.body = body


def serve_replica(options: ChangingOptions, end: Connection) -> None:
    """Be a replica until the other end of a pipe is closed, to which its URLs are written."""
    os.dup2(end.fileno(), 1)
    sys.stdin = os.fdopen(end.fileno())
    asyncio.run(serve(options, ChangingReplica, until_input_ends=True))
