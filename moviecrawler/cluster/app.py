"""The node as a Twisted application: Scrapyd's own, of the components that scrapyd.conf names."""

from __future__ import annotations

import os
import socket
from typing import TYPE_CHECKING, Any

from scrapyd.app import application as scrapyd_application
from scrapyd.exceptions import ConfigError
from scrapyd.interfaces import ISpiderScheduler
from twisted.logger import Logger

from moviecrawler.cluster.node import Node
from moviecrawler.cluster.options import NodeOptions
from moviecrawler.cluster.secrets import redacted
from moviecrawler.cluster.views import Queues
from moviecrawler.errors import ConfigurationError

if TYPE_CHECKING:
    from scrapyd.config import Config

journal = Logger()

_POLL_SECONDS = 1.0


def application(config: Config) -> Any:
    """Return the application; Scrapyd prints the sentence of a ConfigError and exits."""
    try:
        return _application(config, NodeOptions.from_config(config))
    except ConfigurationError as error:
        raise ConfigError(str(error)) from error


def _application(config: Config, options: NodeOptions) -> Any:
    _check_port(options)
    node = config.node = Node(config, options)
    node.state.check_server()
    own = {"node_name": options.node_name, "logs_dir": options.logs_dir, "poll_interval": str(_POLL_SECONDS)}
    # Scrapyd's own check of passwords knows one user, and would close the probes.
    for name, value in {**own, "username": "", "password": ""}.items():
        config.cp.set(config.SECTION, name, value)
    for name in ("SCRAPYD_USERNAME", "SCRAPYD_PASSWORD", "SCRAPYD_DEPLOY_PASSWORD"):
        os.environ.pop(name, None)
    app = scrapyd_application(config)
    app.getComponent(ISpiderScheduler).queues = Queues(node, with_jobs=False)
    journal.info(
        "The cluster is {prefix} in {redis}; this node itself checks who asks: {access}",
        prefix=options.redis_prefix,
        redis=redacted(options.redis_url),
        access="with a password" if options.username else "without a password, for this machine only",
    )
    return app


def _check_port(options: NodeOptions) -> None:
    """Raise ConfigurationError when another program listens at the node's port."""
    address = (options.bind_address, options.http_port)
    try:
        socket.create_server(address, family=socket.AF_INET6 if ":" in options.bind_address else socket.AF_INET).close()
    except OSError as error:
        raise ConfigurationError(
            f"{options.bind_address}:{options.http_port} can't be listened at ({os.strerror(error.errno or 0)}); set SCRAPYD_HTTP_PORT to "
            "another port, and SCRAPYD_NODE_NAME to another name, for a second node of this machine"
        ) from None
