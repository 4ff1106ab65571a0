"""Deploying a version of the project to a cluster: afterwards it is there and works, or it was deleted again."""

from __future__ import annotations

import os
import re
import subprocess
from argparse import Namespace
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from shutil import rmtree
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urljoin, urlsplit

import requests
from scrapy.utils.conf import closest_scrapy_cfg
from scrapyd_client import deploy as scrapyd_deploy
from scrapyd_client.utils import get_auth

from moviecrawler.errors import ConfigurationError, MovieCrawlerError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_CONNECT_SECONDS = 10.0  # seconds
_ANSWER_SECONDS = 300.0  # seconds; a node lists the spiders of a new egg before it answers
_UNSET = re.compile(r"\$\{?(\w+)\}?")
_MAX_ERROR_LENGTH = 3_000  # characters of a node's error that are worth showing


class DeployError(MovieCrawlerError):
    """A version was not deployed. It was deleted from the cluster again, or the text says why not."""


@dataclass(frozen=True, slots=True)
class Target:
    """Where to deploy to: a section of scrapy.cfg, and the HTTP API of the cluster there."""

    url: str
    """Of one of its nodes, with a slash at its end."""
    project: str
    options: Mapping[str, str] = field(repr=False)
    """As scrapyd-client reads them, with what the environment holds filled in. Credentials are among them, or else in netrc."""

    def call(
        self, method: Literal["GET", "POST"], service: str, *, egg: bytes | None = None, **parameters: str
    ) -> dict[str, Any]:
        """Return a service's answer. Raises DeployError when there is none, and for an error with any HTTP status."""
        url = urljoin(self.url, service)
        try:
            answer = requests.request(
                method,
                url,
                auth=get_auth(self.url, self.options.get("username", ""), self.options.get("password", "")),
                files=None if egg is None else {"egg": ("project.egg", egg)},
                timeout=(_CONNECT_SECONDS, _ANSWER_SECONDS),
                allow_redirects=False,  # which would turn a POST into a GET
                **{"params" if method == "GET" else "data": {"project": self.project, **parameters}},  # type: ignore[arg-type]
            )
        except requests.RequestException as error:
            raise DeployError(f"{url} could not be asked: {error}") from None
        try:
            data = answer.json()
        except ValueError:
            data = None
        if answer.status_code == requests.codes.unauthorized:
            raise DeployError(f"{url} refuses these credentials; set username and password of the target, or ~/.netrc")
        if answer.ok and isinstance(data, dict) and data.get("status") == "ok":
            return data
        text = (data.get("message") if isinstance(data, dict) else None) or answer.text
        raise DeployError(f"{url} answered {answer.status_code}: {str(text).strip()[:_MAX_ERROR_LENGTH]}")

    def versions(self) -> list[str]:
        """Return the project's versions, the latest last; none for a new project."""
        if self.project not in self.call("GET", "listprojects.json")["projects"]:
            return []
        return list(self.call("GET", "listversions.json")["versions"])

    def spiders(self, version: str) -> list[str]:
        """Return the spiders of a version, by name."""
        return sorted(self.call("GET", "listspiders.json", _version=version)["spiders"])


def read_target(name: str, project: str | None) -> Target:
    """Return the target of a section `[deploy:NAME]`, or of `[deploy]` for "default". Raises ConfigurationError."""
    targets: dict[str, dict[str, str]] = scrapyd_deploy._get_targets()  # noqa: SLF001 - scrapyd-deploy's own reading
    if name not in targets:
        raise ConfigurationError(f"scrapy.cfg has no target {name!r}; it has {', '.join(sorted(targets)) or 'none'}")
    options = targets[name]
    for option in ("url", "project", "username", "password", "version"):
        # scrapyd-client sends a variable that is not set as it is written. A password may contain a $.
        unset = (_UNSET.fullmatch if option == "password" else _UNSET.search)(options.get(option, ""))
        if unset:
            raise ConfigurationError(
                f"{option} of the target {name!r} is {unset[0]}; set {unset[1]} in the environment"
            )
    url = options.get("url", "")
    if urlsplit(url).scheme not in {"http", "https"} or not urlsplit(url).hostname:
        raise ConfigurationError(
            f"url of the target {name!r} is {url!r}; give a node's, such as http://127.0.0.1:6800/"
        )
    if urlsplit(url).username or urlsplit(url).password:
        raise ConfigurationError(f"url of the target {name!r} holds credentials; give them as username and password")
    found = project or options.get("project")
    if not found:
        raise ConfigurationError(f"the target {name!r} has no project; add one to scrapy.cfg, or give --project")
    return Target(url if url.endswith("/") else f"{url}/", found, options)


def version_for(target: Target, given: str | None) -> str:
    """Return the version to deploy: as given, or as scrapyd-deploy makes it (scrapy.cfg's `version`, else the time)."""
    version: str = scrapyd_deploy._get_version(dict(target.options), Namespace(version=given))  # noqa: SLF001
    return version


@contextmanager
def built_egg() -> Iterator[Path]:
    """Build the egg of the project that this folder is in, as scrapyd-deploy does, and leave nothing behind.

    Raises DeployError when it can't be built, ConfigurationError outside of a project.
    """
    found = closest_scrapy_cfg()
    if not found:
        raise ConfigurationError(f"no scrapy.cfg in {Path.cwd()} or above; deploy from a checkout, or give --egg")
    written = Path(found).with_name("setup.py")
    keep = written.exists()
    before = Path.cwd()
    folder = None
    # Compiled modules would make the egg three times as large, and Python ignores them in an egg.
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    try:
        egg, folder = scrapyd_deploy._build_egg(Namespace(include_dependencies=False, debug=False))  # noqa: SLF001
        yield Path(egg)
    except subprocess.CalledProcessError as error:
        raise DeployError(
            f"the egg could not be built, code {error.returncode}; `scrapyd-deploy --debug --build-egg project.egg` shows why"
        ) from None
    finally:
        os.chdir(before)
        if folder is not None:
            rmtree(folder, ignore_errors=True)
        if not keep:
            # scrapyd-deploy wrote it, as there was none. pyproject.toml makes it unnecessary.
            written.unlink(missing_ok=True)


def deploy(target: Target, version: str, egg: Path) -> list[str]:
    """Deploy an egg and return the spiders that the nodes find in it.

    Afterwards new jobs run this version. When anything goes wrong, or on an interruption, it is deleted again, unless it was there before:
    nodes replace a version only by an egg whose spiders they can list. Raises DeployError and OSError.
    """
    data = egg.read_bytes()
    known = version in target.versions()
    try:
        return _upload(target, version, data)
    except BaseException as error:
        remains = "" if known else _delete_again(target, version)
        reason = str(error) if isinstance(error, DeployError) else f"interrupted ({type(error).__name__})"
        raise DeployError(f"{target.project} {version} was not deployed: {reason}{remains}") from error


def _upload(target: Target, version: str, egg: bytes) -> list[str]:
    target.call("POST", "addversion.json", egg=egg, version=version)
    spiders = target.spiders(version)
    if not spiders:
        raise DeployError("the egg holds no spider")
    [latest] = target.versions()[-1:] or ["no version"]
    if latest != version:
        raise DeployError(f"{latest} is the latest, which new jobs would go on to run")
    return spiders


def _delete_again(target: Target, version: str) -> str:
    """Delete a version if it is there; return a text for the error, which is empty when that worked."""
    try:
        if version in target.versions():
            target.call("POST", "delversion.json", version=version)
    except DeployError as error:
        return f"; and it could not be taken away ({error}), so delete it by delversion.json"
    return ""
