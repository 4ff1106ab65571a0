"""A node's options: section [scrapyd] of scrapyd.conf, or the environment."""

from __future__ import annotations

import os
import socket
from configparser import ConfigParser
from importlib.resources import files
from typing import TYPE_CHECKING, Annotated

import msgspec
from msgspec import Meta

from moviecrawler.basics.errors import ConfigurationError
from moviecrawler.basics.service_urls import LOOPBACK, is_redis_url
from moviecrawler.cluster.jobs import JobSettings  # noqa: TC001 - msgspec reads the type
from moviecrawler.options import Name, Options

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Self

    from scrapyd.config import Config

_SCRAPYDS = {"application", "webroot", "eggstorage", "launcher", "jobs_to_keep"}
"""Options that Scrapyd itself reads."""
_OTHER_VARIABLES = {"SCRAPYD_CONF", "SCRAPYD_URL", "SCRAPYD_JOBS_TO_KEEP"}
"""Variables that are no options of a node: entrypoint.sh, scrapy.cfg and Scrapyd's cleaning of logs
use them."""


class NodeOptions(Options, frozen=True, kw_only=True):
    """Options of a node.

    They are read from the environment (SCRAPYD_NAME), or else from the section `[scrapyd]` of
    scrapyd.conf. A node does not start with an unknown one.
    """

    redis_url: str = ""
    """A single Redis; each cluster has a database of its own. From SCRAPYD_REDIS_URL, which spiders
    don't get, or REDIS_URL, which they do."""
    node_name: Name = msgspec.field(default_factory=socket.gethostname)
    """The node's name, a different one for each node of a machine."""
    node_url: str = ""
    """URL at which clients reach this node, to send them here for its logs; leave it empty when
    nodes share `logs_dir`."""
    bind_address: str = "127.0.0.1"
    """Beyond loopback, a password is required."""
    http_port: Annotated[int, Meta(ge=1, le=65_535)] = 6800
    """The port of the API and the dashboard."""
    username: str = ""
    """The user name that clients need, with `password`, for everything but the probes."""
    password: str = ""
    """Set it in the environment only."""
    deploy_password: str = ""
    """The password for addversion, delversion and delproject, instead of `password`. Set it in the
    environment only."""
    max_proc: Annotated[int, Meta(ge=1, le=1000)] = 6
    """Jobs that the node runs at a time."""
    memory_limit_mb: Annotated[int, Meta(ge=0, le=1_000_000)] = 300
    """Memory of a spider. A job may set a lower MEMUSAGE_LIMIT_MB. 0 for no limit."""
    job_settings: JobSettings = "allowed"
    """`any` lets jobs set any setting, which may run programs on the nodes: for clusters whose
    users all may do that."""
    lease_seconds: Annotated[float, Meta(ge=3, le=3600)] = 20.0
    """Seconds without a heartbeat after which a node counts as dead."""
    logs_dir: str = "logs"
    """Folder for the jobs' logs; nodes may share it."""
    eggs_dir: str = "eggs"
    """Folder for copies of the eggs that the node uses. Each node has its own."""

    @classmethod
    def from_config(cls, config: Config, environ: Mapping[str, str] = os.environ) -> Self:
        """Read the options. Raises ConfigurationError, also for an unknown one."""
        written = chosen(config)
        for name in written.keys() - {*cls.__struct_fields__, *_SCRAPYDS}:
            raise ConfigurationError(
                f"scrapyd.conf sets {name}, which a node of a cluster does not use; "
                "correct or remove it"
            )
        known = {f"SCRAPYD_{name.upper()}": name for name in cls.__struct_fields__}
        for name in environ.keys() - {*known, *_OTHER_VARIABLES}:
            if name.startswith("SCRAPYD_"):
                raise ConfigurationError(f"{name} is not an option of a node; correct or remove it")
        values = {
            name: environ.get(variable) or written.get(name, "") for variable, name in known.items()
        }
        values["redis_url"] = values["redis_url"] or environ.get("REDIS_URL", "")
        if not is_redis_url(values["redis_url"]):
            # The value is not shown, as it may hold a password.
            wrong = "not a Redis URL" if values["redis_url"] else "not set"
            raise ConfigurationError(
                f"REDIS_URL is {wrong}; set it to one such as redis://127.0.0.1:6379/0"
            )
        options = cls.read(values)
        if bool(options.username) != bool(options.password):
            raise ConfigurationError("set username and password, or neither of them")
        if options.deploy_password and not options.password:
            raise ConfigurationError(
                "deploy_password is set without password; set both, or everybody may do the rest"
            )
        if not options.password and options.bind_address not in LOOPBACK:
            raise ConfigurationError(
                f"bind_address is {options.bind_address!r}, which others can reach; "
                "set SCRAPYD_USERNAME and SCRAPYD_PASSWORD, or bind to 127.0.0.1"
            )
        return options


def chosen(config: Config) -> dict[str, str]:
    """Return what scrapyd.conf sets, without Scrapyd's own defaults, which are not a node's."""
    usual = ConfigParser()
    usual.read_string(files("scrapyd").joinpath("default_scrapyd.conf").read_text("utf-8"))
    defaults = usual[config.SECTION]
    written = config.items(config.SECTION, [])
    return {name: value for name, value in written if value != defaults.get(name)}
