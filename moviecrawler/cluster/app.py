"""The node as a Twisted application: Scrapyd's own, with the components that scrapyd.conf names."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scrapyd.app import application as scrapyd_application
from scrapyd.exceptions import ConfigError

from moviecrawler.cluster.node import Node
from moviecrawler.cluster.options import NodeOptions
from moviecrawler.cluster.process import reactor
from moviecrawler.errors import ConfigurationError

if TYPE_CHECKING:
    from scrapyd.config import Config

_THREADS = 30
"""Web services and pages that answer at once; others wait."""


def application(config: Config) -> Any:
    """Return the application; Scrapyd prints the sentence of a ConfigError and exits."""
    try:
        options = NodeOptions.from_config(config)
        _check_port(options)
    except ConfigurationError as error:
        raise ConfigError(str(error)) from error
    config.node = Node(config, options)
    # Scrapyd's own check knows one password, and would ask the probes for it too.
    own = {"node_name": options.node_name, "max_proc": str(options.max_proc), "username": "", "password": ""}
    for name, value in {**own, "logs_dir": str(Path(options.logs_dir).absolute())}.items():
        config.cp.set(config.SECTION, name, value)
    for name in ("SCRAPYD_USERNAME", "SCRAPYD_PASSWORD", "SCRAPYD_DEPLOY_PASSWORD"):
        os.environ.pop(name, None)
    reactor.suggestThreadPoolSize(_THREADS)
    return scrapyd_application(config)


def _check_port(options: NodeOptions) -> None:
    """Raise ConfigurationError when another program listens at the node's port."""
    family = socket.AF_INET6 if ":" in options.bind_address else socket.AF_INET
    try:
        socket.create_server((options.bind_address, options.http_port), family=family).close()
    except OSError as error:
        raise ConfigurationError(
            f"{options.bind_address}:{options.http_port} can't be listened at ({os.strerror(error.errno or 0)}); set SCRAPYD_HTTP_PORT to "
            "another port, and SCRAPYD_NODE_NAME to another name, for a second node of this machine"
        ) from None
