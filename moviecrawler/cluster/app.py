"""The node as a Twisted application: Scrapyd's own, with components that share their state."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from scrapy.utils.misc import load_object
from scrapyd.exceptions import ConfigError
from twisted.application.internet import TCPServer
from twisted.application.service import Application
from twisted.logger import Logger

from moviecrawler.cluster.auth import ConnectionLimit, LimitedSite
from moviecrawler.cluster.eggs import EggStore
from moviecrawler.cluster.launcher import ClusterLauncher
from moviecrawler.cluster.node import Node
from moviecrawler.cluster.options import NodeOptions
from moviecrawler.cluster.secrets import redacted
from moviecrawler.cluster.state import ClusterState, check_server
from moviecrawler.errors import ConfigurationError
from moviecrawler.redis_client import redis_parameters

if TYPE_CHECKING:
    from scrapyd.config import Config

journal = Logger()


def application(config: Config) -> Any:
    """Return the application; Scrapyd prints the sentence of a ConfigError and exits."""
    try:
        return _application(config, NodeOptions.from_config(config))
    except ConfigurationError as error:
        raise ConfigError(str(error)) from error


def _application(config: Config, options: NodeOptions) -> Any:
    redis_parameters(os.environ)  # raises ConfigurationError for parameters that no client accepts
    state = ClusterState(options)
    check_server(state.client)
    eggs = EggStore(state)
    node = Node(state, eggs, ClusterLauncher(state, eggs))
    root = load_object(config.get("webroot", "moviecrawler.dashboard.site.Root"))(config, node)
    site = LimitedSite(root, node)
    server = TCPServer(options.http_port, ConnectionLimit(site), interface=options.bind_address)
    app = Application("Scrapyd")
    for service in (node.launcher, *root.services, server):
        service.setServiceParent(app)
    journal.info(
        "Scrapyd at {url}, {access}; its cluster is {prefix} in {redis}",
        url=options.url,
        prefix=options.redis_prefix,
        redis=redacted(options.redis_url),
        access="with a password" if site.credentials.needed else "without a password, for this machine only",
    )
    return app
