"""The node as a Twisted application: Scrapyd's own, with components that share their state."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from scrapy.utils.misc import load_object
from scrapyd.exceptions import ConfigError
from scrapyd.interfaces import IEggStorage, IJobStorage, IPoller, ISpiderScheduler
from scrapyd.utils import initialize_component
from twisted.application.internet import TCPServer, TimerService
from twisted.application.service import Application
from twisted.logger import Logger

from moviecrawler.cluster.auth import Connections, Credentials, Gate, LimitedSite
from moviecrawler.cluster.components import RedisScheduler
from moviecrawler.cluster.options import NodeOptions
from moviecrawler.cluster.state import check_server, state_for
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
    redis_parameters(os.environ)  # complains of what no spider or page could use
    check_server(state_for(options).client)
    app: Any = Application("Scrapyd")
    for interface, name, default in (
        (IEggStorage, "eggstorage", "moviecrawler.cluster.eggs.EggStore"),
        (IJobStorage, "jobstorage", "moviecrawler.cluster.components.RedisJobStorage"),
        (IPoller, "poller", "moviecrawler.cluster.poller.RedisPoller"),
    ):
        app.setComponent(interface, initialize_component(config, name, default))
    app.setComponent(ISpiderScheduler, RedisScheduler(config))
    launcher = initialize_component(config, "launcher", "moviecrawler.cluster.launcher.ClusterLauncher", app)
    launcher.setServiceParent(app)
    poller = app.getComponent(IPoller)
    TimerService(options.poll_interval, poller.poll).setServiceParent(app)
    for _, path in config.items("node_services", default=[]):
        load_object(path)(config, app).setServiceParent(app)
    root = initialize_component(config, "webroot", "moviecrawler.cluster.website.Root", app)
    credentials = Credentials(options)
    site = LimitedSite(Gate(root, options, credentials), options, credentials)
    TCPServer(options.http_port, Connections(site), interface=options.bind_address).setServiceParent(app)
    journal.info(
        "Scrapyd at {url}, {access}",
        url=options.url,
        access="with a password" if credentials.needed else "without a password, for this machine only",
    )
    return app
