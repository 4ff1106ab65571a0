"""A node's options: section [scrapyd] of scrapyd.conf, or the environment."""

from __future__ import annotations

import os
import socket
from configparser import ConfigParser
from importlib.resources import files
from ipaddress import ip_address
from typing import TYPE_CHECKING, Annotated

import msgspec
from msgspec import Meta

from moviecrawler.errors import ConfigurationError
from moviecrawler.option_types import Name, Options, is_redis_url

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Self

    from scrapyd.config import Config

_SCRAPYD_OWN = {"application", "webroot", "dbs_dir"}
"""Options that Scrapyd itself reads."""
_GONE = {
    **dict.fromkeys(("eggs_bucket", "eggs_prefix"), "eggs are in Redis; remove it, and deploy each project again"),
    "max_pages": "set FRONTIER_MAX_PAGES in the node's environment",
}
"""Options of former versions, and what to do instead."""


class NodeOptions(Options, frozen=True, kw_only=True):
    """Options of a node.

    They stand in the section `[scrapyd]` of scrapyd.conf, or as SCRAPYD_NAME in the environment, which comes first. An unknown one stops
    the node with a sentence.
    """

    redis_url: str
    """Where the cluster's state is: a single Redis. From SCRAPYD_REDIS_URL, which spiders don't get, or REDIS_URL, which they do."""
    redis_prefix: Name = "cluster"
    """Several clusters may share a Redis under different prefixes."""
    node_name: Name = msgspec.field(default_factory=socket.gethostname)
    """What the node is called; another one for each node of a machine."""
    node_url: str = ""
    """URL at which other nodes reach this one; by default made of `node_name` and `http_port`."""
    bind_address: str = "127.0.0.1"
    """Beyond loopback, a password is required."""
    http_port: Annotated[int, Meta(ge=1, le=65_535)] = 6800
    """The port of the API and the dashboard."""
    username: str = ""
    """With `password`: what everything but the probes asks for."""
    password: str = ""
    """Set it in the environment only."""
    deploy_username: str = ""
    """With `deploy_password`: what addversion, delversion and delproject ask for instead of the above."""
    deploy_password: str = ""
    """Set it in the environment only."""

    max_proc: Annotated[int, Meta(ge=1, le=1000)] = 6
    """Jobs that the node runs at a time."""
    max_deaths: Annotated[int, Meta(ge=0, le=1000)] = 3
    """How often a job whose node or process died is started again. The count restarts when the job was recycled or has run for a day."""
    lease_seconds: Annotated[float, Meta(ge=1, le=3600)] = 20.0
    """Seconds without a heartbeat after which a node counts as dead."""
    poll_interval: Annotated[float, Meta(ge=0.1, le=3600)] = 5.0
    """Seconds between two checks of the queue. New jobs are also announced over pub/sub."""
    drain_seconds: Annotated[float, Meta(ge=0, le=86_400)] = 5.0
    """Seconds that spiders may go on when the node is stopped, in case they end by themselves."""
    stop_seconds: Annotated[float, Meta(ge=0, le=86_400)] = 20.0
    """Seconds that they then have until they are killed."""
    cancel_seconds: Annotated[float, Meta(ge=0, le=86_400)] = 45.0
    """Seconds that the spider of a cancelled job may take to end, until it is killed; more than the 30 that stores have to close."""
    hang_seconds: Annotated[float, Meta(ge=1, le=86_400)] = 60.0
    """Seconds that a spider's event loop may stand still, until the spider is killed and its job is started again."""
    memory_limit_mb: Annotated[int, Meta(ge=0, le=1_000_000)] = 0
    """Memory of a spider; 300 in scrapyd.conf. A job may set a lower MEMUSAGE_LIMIT_MB. 0 for no limit."""

    max_pending: Annotated[int, Meta(ge=1, le=10_000_000)] = 100_000
    """Jobs that may wait."""
    finished_to_keep: Annotated[int, Meta(ge=1, le=1_000_000)] = 1000
    """Jobs that are over and can be asked for."""
    versions_to_keep: Annotated[int, Meta(ge=1, le=10_000)] = 20
    """Versions of a project. Older ones are deleted when a new one is added."""
    egg_max_mb: Annotated[int, Meta(ge=1, le=500)] = 32
    """The largest egg; unpacked it may have ten times that."""
    eggs_dir: str = "eggs"
    """Folder for copies of the eggs that the node uses."""
    logs_dir: str = "logs"
    """Folder for the jobs' logs."""
    jobs_to_keep: Annotated[int, Meta(ge=1, le=1_000_000)] = 100
    """Logs that a node keeps of each spider."""

    @classmethod
    def from_config(cls, config: Config, environ: Mapping[str, str] = os.environ) -> Self:
        """Read them. Raises ConfigurationError, also for an unknown option."""
        section = config.SECTION
        for name, todo in _GONE.items():
            if environ.get(f"SCRAPYD_{name.upper()}") or config.get(name, ""):
                raise ConfigurationError(f"{name} is gone: {todo}")
        own = cls.__struct_fields__
        usual = ConfigParser()
        usual.read_string(files("scrapyd").joinpath("default_scrapyd.conf").read_text("utf-8"))
        for name in config.cp.options(section) if config.cp.has_section(section) else ():
            value = config.get(name)
            # A component of former versions of this project is made by the node itself now.
            unused = value != usual.get(section, name, fallback=None) and not value.startswith("moviecrawler.cluster.")
            if unused and name not in {*own, *_SCRAPYD_OWN}:
                raise ConfigurationError(
                    f"scrapyd.conf sets {name}, which a node of a cluster does not use; correct or remove it"
                )
        given = {name: environ.get(f"SCRAPYD_{name.upper()}") or config.get(name, "") for name in own}
        given["redis_url"] = given["redis_url"] or environ.get("REDIS_URL", "")
        if not is_redis_url(given["redis_url"]):
            # Not the value itself, which may hold a password.
            raise ConfigurationError("REDIS_URL is no Redis URL; set it to one such as redis://127.0.0.1:6379/0")
        options = cls.read(given)
        options.check_access()
        return options

    def check_access(self) -> None:
        """Raise ConfigurationError when others could reach the node without a password."""
        for prefix in ("", "deploy_"):
            username, password = getattr(self, f"{prefix}username"), getattr(self, f"{prefix}password")
            if bool(username) != bool(password):
                missing = f"{prefix}username" if password else f"{prefix}password"
                raise ConfigurationError(f"{missing} is not set; set it, or neither of username and password")
            if ":" in username:
                raise ConfigurationError(f"{prefix}username is {username!r}; HTTP allows no colon in it")
        if self.deploy_username and not self.username:
            raise ConfigurationError("deploy_username is set without username; set both, or everybody may do the rest")
        if not self.username and not _is_loopback(self.bind_address):
            raise ConfigurationError(
                f"bind_address is {self.bind_address!r}, which others can reach; set SCRAPYD_USERNAME and SCRAPYD_PASSWORD, "
                "or bind to 127.0.0.1"
            )

    @property
    def url(self) -> str:
        """URL at which other nodes reach this one."""
        host = self.bind_address if _is_loopback(self.bind_address) else self.node_name
        return self.node_url.rstrip("/") or f"http://{host}:{self.http_port}"


def _is_loopback(address: str) -> bool:
    try:
        return address == "localhost" or ip_address(address).is_loopback
    except ValueError:
        return False
