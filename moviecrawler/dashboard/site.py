"""Serves the dashboard at `/` of every node, next to Scrapyd's own pages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from twisted.application.service import Service
from twisted.internet.threads import deferToThread

from moviecrawler.cluster.website import Root as ClusterRoot
from moviecrawler.dashboard.crawls import Crawls
from moviecrawler.dashboard.overview import Overview
from moviecrawler.dashboard.pages import Page, PageRequest, Static
from moviecrawler.dashboard.rendering import ENVIRONMENT, STATIC
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
        pages = {path: page(self.sources, path, MENU) for path, page in PAGES.items()}
        PageService(self.sources, list(pages.values())).setServiceParent(app)
        for path, page in pages.items():
            self.putChild(path[1:].encode(), page)
        self.putChild(b"static", Static(str(STATIC)))
        # Scrapyd's own pages name no icon, so that browsers look for this one.
        self.putChild(b"favicon.ico", Static(str(STATIC.joinpath("icon.svg"))))


class PageService(Service):
    """Warms up the pages when the node starts, and interrupts their queries when it stops."""

    name = "dashboard"

    def __init__(self, sources: Sources, pages: list[Page]) -> None:
        self._sources = sources
        self._pages = pages

    def startService(self) -> None:
        super().startService()
        deferToThread(warm_up, self._pages)

    def stopService(self) -> Any:
        super().stopService()
        if self._sources.has_database:
            self._sources.database.interrupt()


def warm_up(pages: list[Page]) -> None:
    """Compile the templates, and make each page once: its first reader would wait for that.

    Call it in a thread.
    """
    for name in ENVIRONMENT.list_templates():
        ENVIRONMENT.get_template(name)
    for page in pages:
        page.answer(PageRequest())
