"""The node as a Twisted application: Scrapyd's own, with the components that scrapyd.conf names."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scrapyd.app import application as scrapyd_application
from scrapyd.exceptions import ConfigError
from scrapyd.interfaces import IEggStorage, ISpiderScheduler
from twisted.logger import Logger

from moviecrawler.cluster.node import Node
from moviecrawler.cluster.options import NodeOptions
from moviecrawler.cluster.secrets import redacted
from moviecrawler.errors import ConfigurationError

if TYPE_CHECKING:
    from scrapyd.config import Config

journal = Logger()

_LOGS_KEPT = "100"
"""Logs of each spider that a node keeps."""


def application(config: Config) -> Any:
    """Return the application; Scrapyd prints the sentence of a ConfigError and exits."""
    try:
        options = NodeOptions.from_config(config)
        _check_port(options)
    except ConfigurationError as error:
        raise ConfigError(str(error)) from error
    config.node = Node(config, options)
    own = {
        "node_name": options.node_name,
        "logs_dir": str(Path(options.logs_dir).absolute()),
        "jobs_to_keep": _LOGS_KEPT,
    }
    own |= {"max_proc": str(options.max_proc), "poll_interval": "1", "items_dir": "", "jobs_dir": ""}
    # Scrapyd's own check knows one password, and would ask the probes for it too.
    for name, value in {**own, "username": "", "password": ""}.items():
        config.cp.set(config.SECTION, name, value)
    for name in ("SCRAPYD_USERNAME", "SCRAPYD_PASSWORD", "SCRAPYD_DEPLOY_PASSWORD"):
        os.environ.pop(name, None)
    app = scrapyd_application(config)
    # Scrapyd's services use the scheduler only to list projects, which the egg storage does.
    app.unsetComponent(ISpiderScheduler)
    app.setComponent(ISpiderScheduler, app.getComponent(IEggStorage))
    journal.info(
        "The cluster's Redis is {redis}; the node answers {access}",
        redis=redacted(options.redis_url),
        access="requests with a password" if options.username else "this machine only, without a password",
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
