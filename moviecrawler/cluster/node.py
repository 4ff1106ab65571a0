"""A node: Scrapyd's own application with the components that scrapyd.conf names.

`Node` is the object that these share.
"""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import TYPE_CHECKING

from scrapyd.app import application as scrapyd_application
from scrapyd.exceptions import ConfigError
from twisted.logger import Logger

from moviecrawler.basics.credentials import redacted
from moviecrawler.basics.errors import ConfigurationError
from moviecrawler.cluster.eggs import find_egg
from moviecrawler.cluster.jobs import check_job
from moviecrawler.cluster.options import NodeOptions, chosen
from moviecrawler.cluster.process import reactor
from moviecrawler.cluster.state import ClusterState
from moviecrawler.cluster.uploads import guard

if TYPE_CHECKING:
    from scrapyd.config import Config
    from twisted.python.components import Componentized

    from moviecrawler.cluster.jobs import Job
    from moviecrawler.cluster.launcher import ClusterLauncher

journal = Logger()

_THREADS = 30
"""Web services and pages that run at a time; others wait."""


class Node:
    """This node."""

    launcher: ClusterLauncher

    def __init__(self, options: NodeOptions) -> None:
        self.options = options
        self.name = options.node_name
        self.state = ClusterState(options)

    def schedule(self, job: Job) -> None:
        """Queue a job.

        Raises ConfigurationError for a job that is refused, and redis.RedisError.
        """
        check_job(job, self.options.job_settings)
        if job.spider not in find_egg(self.state.eggs(), job.project, job.version).spiders:
            raise ConfigurationError(f"spider '{job.spider}' not found")
        self.state.schedule(job)


def application(config: Config) -> Componentized:
    """Return the application; Scrapyd prints the sentence of a ConfigError and exits."""
    try:
        options = NodeOptions.from_config(config)
        _check_port(options)
    except ConfigurationError as error:
        raise ConfigError(str(error)) from error
    config.node = Node(options)
    jobs_to_keep = os.environ.get("SCRAPYD_JOBS_TO_KEEP") or chosen(config).get("jobs_to_keep")
    own = {
        "node_name": options.node_name,
        "logs_dir": str(Path(options.logs_dir).absolute()),
        "jobs_to_keep": jobs_to_keep or "100",
        # Scrapyd's own check has one password, and would require it of the probes, too.
        "username": "",
        "password": "",
    }
    config.cp.read_dict({config.SECTION: own})
    # They are those of a scrapy.cfg nearby; a cluster's projects are its eggs.
    config.cp.remove_section("settings")
    for name in ("SCRAPYD_USERNAME", "SCRAPYD_PASSWORD", "SCRAPYD_DEPLOY_PASSWORD"):
        os.environ.pop(name, None)
    reactor.suggestThreadPoolSize(_THREADS)
    app: Componentized = scrapyd_application(config)
    guard(app, config.node)
    access = (
        "requests with a password"
        if options.password
        else "requests from this machine only, without a password"
    )
    url = redacted(options.redis_url)
    journal.info("The cluster's Redis is {url}; the node accepts {access}", url=url, access=access)
    return app


def _check_port(options: NodeOptions) -> None:
    """Raise ConfigurationError when another program listens at the node's port."""
    family = socket.AF_INET6 if ":" in options.bind_address else socket.AF_INET
    try:
        socket.create_server((options.bind_address, options.http_port), family=family).close()
    except OSError as error:
        raise ConfigurationError(
            f"{options.bind_address}:{options.http_port} can't be listened at "
            f"({os.strerror(error.errno or 0)}); set SCRAPYD_HTTP_PORT to another port, "
            "and SCRAPYD_NODE_NAME to another name, for a second node of this machine"
        ) from None
