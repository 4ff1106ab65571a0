"""The dashboard at `/` of every node, beside Scrapyd's own pages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import redis
from twisted.application.service import Service
from twisted.internet.task import LoopingCall
from twisted.logger import Logger

from moviecrawler.cluster.website import Root as ClusterRoot
from moviecrawler.dashboard.crawls import Crawls
from moviecrawler.dashboard.nodes import Nodes
from moviecrawler.dashboard.overview import Overview
from moviecrawler.dashboard.pages import Page, Static
from moviecrawler.dashboard.rendering import STATIC
from moviecrawler.dashboard.sources import Sources
from moviecrawler.dashboard.titles import Titles
from moviecrawler.errors import AwayError, Outages

if TYPE_CHECKING:
    from scrapyd.config import Config
    from twisted.internet.defer import Deferred


journal = Logger()

_EVERY_SECONDS = 5.0
"""Seconds between two checks whether the catalogue is to be counted."""


PAGES: dict[str, type[Page]] = {
    "/": Overview,
    "/crawls": Crawls,
    "/nodes": Nodes,
    "/titles": Titles,
}
MENU = {path: page.in_menu for path, page in PAGES.items() if page.in_menu}


class Root(ClusterRoot):
    """Everything under `/`: Scrapyd's web services, the logs and the dashboard's pages."""

    def __init__(self, config: Config, app: Any) -> None:
        super().__init__(config, app)
        sources = Sources(self.node)
        Upkeep(sources).setServiceParent(app)
        for path, page in PAGES.items():
            self.putChild(path[1:].encode(), page(sources, path, MENU))
        self.putChild(b"static", Static(str(STATIC)))


class Upkeep(Service):
    """Starts and stops the dashboard's threads, and has the catalogue counted when no other node did so lately."""

    name = "dashboard"

    def __init__(self, sources: Sources) -> None:
        self._sources = sources
        self._outages = Outages()
        self._call = LoopingCall(self._check)

    def startService(self) -> None:
        super().startService()
        self._sources.threads.start()
        self._call.start(_EVERY_SECONDS)

    def stopService(self) -> Any:
        super().stopService()
        self._call.stop()
        if self._sources.node.has_database:
            self._sources.node.database.interrupt()

    def _check(self) -> Deferred[Any]:
        looking: Deferred[Any] = self._sources.threads.run(self._work)
        looking.addErrback(lambda failure: journal.failure("The dashboard's upkeep failed", failure))
        return looking

    def _work(self) -> None:
        """Count the catalogue if it is due; in a thread."""
        sources = self._sources
        try:
            if sources.node.has_database and sources.count_if_due():
                self._outages.ends()
        except (AwayError, redis.exceptions.RedisError) as error:
            if self._outages.begins():
                journal.warn("The catalogue can't be counted: {error}; the node tries again", error=str(error))
