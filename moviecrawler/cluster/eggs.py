"""Projects and their versions: eggs in Redis, and copies on the node's disk."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from contextlib import contextmanager, suppress
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock
from typing import TYPE_CHECKING
from uuid import uuid4
from zipfile import ZipFile, is_zipfile

import msgspec
from scrapyd.interfaces import IEggStorage
from zope.interface import implementer

from moviecrawler.basics.credentials import redacted
from moviecrawler.basics.errors import ConfigurationError
from moviecrawler.cluster import keys
from moviecrawler.cluster.jobs import check_name
from moviecrawler.cluster.process import RUNNER, spider_environment
from moviecrawler.cluster.state import Argument, Egg

if TYPE_CHECKING:
    from collections.abc import Collection, Hashable, Iterator, Sequence

    from scrapyd.config import Config

    from moviecrawler.cluster.node import Node
    from moviecrawler.frontier.redis_client import Client

VERSIONS_KEPT = 20
"""Versions of a project. Older ones are deleted when a new one is added."""
_MAX_UNPACKED_BYTES = 100 * 1024 * 1024
_MAX_FILES = 10_000
_READS = 3
"""Readings of an egg that is deployed again meanwhile."""
_EGG_SECONDS = 30.0
"""Seconds to read or write a whole egg in Redis."""
_LIST_SECONDS = 60.0
"""Seconds to import all spiders of an egg."""
_ERROR_CHARACTERS = 2000
"""Characters of an error that are shown."""


@implementer(IEggStorage)
class RedisEggStorage:
    """The cluster's eggs.

    Lists are those of the snapshot; the other methods call Redis, block, and raise
    redis.RedisError.
    """

    def __init__(self, config: Config) -> None:
        node: Node = config.node
        self._state = node.state
        self._folder = Path(node.options.eggs_dir).absolute()
        self._new = self._folder / f"new-{node.name}"
        """The folder in which eggs are unpacked and checked. What is there at the start was left by
        a node that was killed."""
        shutil.rmtree(self._new, ignore_errors=True)
        self._checking = Lock()
        self._fetching = Lock()
        self._in_use: dict[Hashable, str] = {}
        """The SHA-256 of the egg that each running job uses."""
        self._client = self._state.connect(_EGG_SECONDS)

    def list(self, project: str) -> Sequence[str]:
        """Return a project's versions; the last one was deployed last."""
        return [egg.version for egg in self._state.seen.eggs if egg.project == project]

    def list_projects(self) -> Sequence[str]:
        """Return the projects."""
        return self._state.seen.projects

    def put(self, data: bytes, project: str, version: str) -> Egg:
        """Check an egg by listing its spiders, then make it a version on all nodes.

        Raises ConfigurationError.
        """
        check_name("project", project)
        check_name("version", version)
        if not is_zipfile(BytesIO(data)):
            raise ConfigurationError(
                "egg is not a ZIP file (if using curl, use egg=@path not egg=path)"
            )
        digest = sha256(data).hexdigest()
        with self._checking, self._unpacked(data, digest) as folder:
            spiders = list_spiders(folder)
        egg = Egg(
            project=project,
            version=version,
            sha256=digest,
            spiders=list(spiders),
            arguments={name: arguments for name, arguments in spiders.items() if arguments},
            added_at=self._state.now(),
        )
        others = [
            other
            for other in self._state.eggs()
            if other.project == project and other.version != version
        ]
        pipe = self._client.pipeline()
        pipe.hset(keys.EGG_FILES, egg.key, data)
        pipe.hset(keys.EGGS, egg.key, msgspec.json.encode(egg))
        self._delete(pipe, others[: -VERSIONS_KEPT + 1])
        return egg

    def delete(self, project: str, version: str | None = None) -> None:
        """Delete a version, or all of a project's. Raises ConfigurationError."""
        eggs = self._state.eggs()
        find_egg(eggs, project, version)
        deleted = [egg for egg in eggs if egg.project == project and version in {None, egg.version}]
        self._delete(self._client.pipeline(), deleted)

    def _delete(self, pipe: Client, eggs: Collection[Egg]) -> None:
        for egg in eggs:
            pipe.hdel(keys.EGGS, egg.key).hdel(keys.EGG_FILES, egg.key)
        pipe.set(keys.STATE_VERSION, uuid4().hex).execute()

    # --- On this node's disk ----------------------------------------------------------------------

    def fetch(self, user: Hashable, project: str, version: str | None) -> Path:
        """Return the folder of a version's files, by default of the latest one. This blocks.

        Raises ConfigurationError for a missing version, and OSError.

        The files never change, as Python reads modules from there while a spider runs, and stay
        until `release` is called with this user. Other copies of deleted versions are removed.
        """
        with self._fetching:
            egg = find_egg(self._state.eggs(), project, version)
            self._in_use[user] = egg.sha256
            if not self._copy(egg.sha256).is_dir():
                egg, data = self._read(egg)
                self._in_use[user] = egg.sha256
                self._copy_out(data, egg.sha256)
                current = {other.sha256 for other in self._state.eggs()}
                for copy in self._folder.glob("*.egg"):
                    if copy.stem not in {*current, *list(self._in_use.values())}:
                        shutil.rmtree(copy, ignore_errors=True)
            return self._copy(egg.sha256)

    def release(self, user: Hashable) -> None:
        """Let the files go that `fetch` returned for this user."""
        self._in_use.pop(user, None)

    def _copy_out(self, data: bytes, digest: str) -> None:
        """Unpack an egg that was checked when it was deployed. Raises OSError."""
        try:
            with self._unpacked(data, digest):
                pass
        except ConfigurationError as error:
            raise OSError(str(error)) from error
        if not self._copy(digest).is_dir():
            raise OSError("the egg's copy can't be kept in eggs_dir")

    def _read(self, egg: Egg) -> tuple[Egg, bytes]:
        """Return a version and its file from Redis. Raises ConfigurationError."""
        for _ in range(_READS):
            # Not as a transaction, which a full Redis refuses. The version may be deployed again in
            # between: then it is read once more.
            pipe = self._client.pipeline(transaction=False)
            described, data = pipe.hget(keys.EGGS, egg.key).hget(keys.EGG_FILES, egg.key).execute()
            if not described or not data:
                raise ConfigurationError(
                    f"the egg of version '{egg.version}' is gone; deploy it again"
                )
            egg = msgspec.json.decode(described, type=Egg)
            if sha256(data).hexdigest() == egg.sha256:
                return egg, data
        raise ConfigurationError(f"the egg of version '{egg.version}' is damaged; deploy it again")

    def _copy(self, digest: str) -> Path:
        return self._folder / f"{digest}.egg"

    @contextmanager
    def _unpacked(self, data: bytes, digest: str) -> Iterator[Path]:
        """Unpack an egg into a folder, and keep that as its copy unless the block fails.

        Raises ConfigurationError.
        """
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._new.mkdir(exist_ok=True)
        with TemporaryDirectory(dir=self._new) as new:
            folder = Path(new) / "unpacked.egg"  # the suffix makes it an egg for Python
            try:
                with ZipFile(BytesIO(data)) as archive:
                    members = archive.infolist()
                    size = sum(member.file_size for member in members)
                    is_too_large = size > _MAX_UNPACKED_BYTES or len(members) > _MAX_FILES
                    if not is_too_large:
                        archive.extractall(folder)
            except Exception as error:  # noqa: BLE001 - a damaged file raises errors of many kinds
                # The text of an OSError has a path of this node.
                reason = getattr(error, "strerror", None) or str(error) or repr(error)
                raise ConfigurationError(f"the egg can't be unpacked: {reason}") from None
            if is_too_large:
                raise ConfigurationError(
                    f"the egg has {len(members):,} files of {size:,} bytes when it is unpacked; "
                    f"it may have {_MAX_FILES:,} of {_MAX_UNPACKED_BYTES:,}"
                )
            yield folder  # in which Python compiles the modules
            # An OSError means that another thread has done so already.
            with suppress(OSError):
                folder.rename(self._copy(digest))


def find_egg(eggs: Collection[Egg], project: str, version: str | None = None) -> Egg:
    """Return a version of a project, by default the latest one. Raises ConfigurationError."""
    own = [egg for egg in eggs if egg.project == project]
    if not own:
        raise ConfigurationError(f"project '{project}' not found")
    for egg in reversed(own):
        if version in {None, egg.version}:
            return egg
    raise ConfigurationError(f"version '{version}' not found")


def list_spiders(egg: Path) -> dict[str, list[Argument]]:
    """List the spiders of an egg, with the arguments that they name, in a separate process.

    Raises ConfigurationError, with the output of that, when there are none.
    """
    try:
        completed = subprocess.run(  # noqa: S603 - this package's own program
            [sys.executable, "-P", RUNNER, "list"],
            input=json.dumps({"egg": str(egg)}) + "\n",
            env=spider_environment(),
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=_LIST_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise ConfigurationError(
            f"listing the egg's spiders took more than {_LIST_SECONDS:g} s"
        ) from None
    with suppress(msgspec.DecodeError):
        if completed.returncode == 0:
            if spiders := msgspec.json.decode(completed.stdout, type=dict[str, list[Argument]]):
                return spiders
            raise ConfigurationError("the egg has no spider")
    output = redacted(completed.stderr.strip()[-_ERROR_CHARACTERS:])
    reason = output.rpartition("\n")[2] or f"exit code {completed.returncode}"
    raise ConfigurationError(f"the egg's spiders can't be listed: {reason}\n{output}")
