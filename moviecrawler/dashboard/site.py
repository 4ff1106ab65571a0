"""Serves the dashboard at `/` of every node, next to Scrapyd's own pages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from twisted.application.service import Service

from moviecrawler.cluster.website import Root as ClusterRoot
from moviecrawler.dashboard.crawls import Crawls
from moviecrawler.dashboard.overview import Overview
from moviecrawler.dashboard.pages import Page, Static
from moviecrawler.dashboard.rendering import STATIC
from moviecrawler.dashboard.sources import Sources
from moviecrawler.dashboard.titles import Titles

if TYPE_CHECKING:
    from scrapyd.config import Config

PAGES: dict[str, type[Page]] = {"/": Overview, "/crawls": Crawls, "/titles": Titles}
MENU = {path: page.title for path, page in PAGES.items()}


class Root(ClusterRoot):
    """Everything under `/`: Scrapyd's web services, the logs and the dashboard's pages."""

    def __init__(self, config: Config, app: Any) -> None:
        self.sources = Sources(config.node)
        super().__init__(config, app)
        PageService(self.sources).setServiceParent(app)
        for path, page in PAGES.items():
            self.putChild(path[1:].encode(), page(self.sources, path, MENU))
        self.putChild(b"static", Static(str(STATIC)))
        # Scrapyd's own pages name no icon, so that browsers look for this one.
        self.putChild(b"favicon.ico", Static(str(STATIC.joinpath("icon.svg"))))


class PageService(Service):
    """Interrupts the queries of the pages when the node stops."""

    name = "dashboard"

    def __init__(self, sources: Sources) -> None:
        self._sources = sources

    def stopService(self) -> Any:
        super().stopService()
        if self._sources.has_database:
            self._sources.database.interrupt()
