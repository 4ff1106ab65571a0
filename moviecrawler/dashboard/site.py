"""Serves the dashboard at `/` of every node, next to Scrapyd's own pages."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moviecrawler.cluster.process import reactor
from moviecrawler.cluster.website import Root as ClusterRoot
from moviecrawler.dashboard.crawls import Crawls
from moviecrawler.dashboard.overview import Overview
from moviecrawler.dashboard.pages import Page, Static
from moviecrawler.dashboard.rendering import STATIC
from moviecrawler.dashboard.runs import RunPage
from moviecrawler.dashboard.schedule import Schedule
from moviecrawler.dashboard.sources import Sources
from moviecrawler.dashboard.titles import Titles

if TYPE_CHECKING:
    from scrapyd.config import Config
    from twisted.python.components import Componentized

PAGES: dict[str, type[Page]] = {
    "/": Overview,
    "/crawls": Crawls,
    "/titles": Titles,
    "/runs": RunPage,
    "/schedule": Schedule,
}
MENU = {path: PAGES[path].title for path in ("/", "/crawls", "/titles")}


def make_pages(sources: Sources) -> dict[str, Page]:
    """Return the pages by their paths."""
    return {path: page(sources, path, MENU) for path, page in PAGES.items()}


class Root(ClusterRoot):
    """Everything under `/`: Scrapyd's web services, the logs and the dashboard's pages."""

    def __init__(self, config: Config, app: Componentized) -> None:
        self.sources = Sources(config.node)
        super().__init__(config, app)
        reactor.addSystemEventTrigger("before", "shutdown", self.sources.close)
        for path, page in make_pages(self.sources).items():
            self.putChild(path[1:].encode(), page)
        self.putChild(b"static", Static(str(STATIC)))
        # Scrapyd's own pages name no icon, so that browsers look for this one.
        self.putChild(b"favicon.ico", Static(str(STATIC.joinpath("icon.svg"))))
