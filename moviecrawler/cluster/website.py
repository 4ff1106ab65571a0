"""The resources of a node: web services and logs. The dashboard adds its pages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from scrapy.utils.misc import load_object
from twisted.web.resource import Resource

from moviecrawler.cluster.logs import Logs

if TYPE_CHECKING:
    from scrapyd.config import Config
    from twisted.application.service import Service

    from moviecrawler.cluster.node import Node


class Root(Resource):
    """What stands under `/`."""

    def __init__(self, config: Config, node: Node) -> None:
        super().__init__()
        self.node = node
        self.services: list[Service] = []
        """What starts and stops with the node."""
        self.add("logs", Logs(node))
        for name, service in config.items("services", default=[]):
            if service:
                self.add(name, load_object(service)(node))

    def add(self, path: str, child: Any) -> None:  # zope's interfaces are no types
        """Put a resource under a path."""
        self.putChild(path.encode(), child)
