"""Projects and their versions: eggs in Redis, and copies on the node's disk."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import zlib
from contextlib import suppress
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any
from uuid import uuid4
from zipfile import BadZipFile, ZipFile, is_zipfile

import msgspec

from moviecrawler.cluster.environment import oldest, spider_environment
from moviecrawler.cluster.jobs import BadEggError, UnknownVersionError, check_name
from moviecrawler.cluster.secrets import redacted
from moviecrawler.cluster.state import Egg, connect

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from moviecrawler.cluster.state import ClusterState

RUNNER = str(Path(__file__).with_name("runner.py"))
"""The program of spiders' processes."""
VERSIONS_KEPT = 20
"""Versions of a project. Older ones are deleted when a new one is added."""
MAX_EGG_BYTES = 32 * 1024 * 1024
_MAX_UNPACKED_BYTES = 10 * MAX_EGG_BYTES
_MAX_FILES = 10_000
_MAX_NAME_LENGTH = 200
_EGG_SECONDS = 30.0
"""Seconds to read or write a whole egg in Redis."""
_LIST_SECONDS = 60.0
"""Seconds for the import of all of an egg's spiders."""
_ERROR_CHARACTERS = 2000
"""Characters of an error that are shown."""
_UNFINISHED_SUFFIX = ".new.egg"
"""Suffix of a copy that is being written or checked. It must end in .egg for Python to read it as an egg."""
_UNUSED_COPIES = 20
"""Eggs that a node keeps on its disk unpacked, beside those in use."""


class EggStore:
    """The cluster's eggs. Its methods block, so call them in a thread. They raise redis.RedisError."""

    def __init__(self, state: ClusterState) -> None:
        self._state = state
        self._keys = state.keys
        self._folder = Path(state.options.eggs_dir).absolute()
        self._checking = Lock()
        self._client = connect(state.options, socket_timeout=_EGG_SECONDS)

    def find(self, project: str, version: str | None = None) -> Egg:
        """Return a version of a project, the latest one if none is named. Raises UnknownVersionError."""
        return find_egg(self._state.eggs(project), project, version)

    def put(self, data: bytes, project: str, version: str) -> Egg:
        """Check an egg by listing its spiders, and then make it known to all nodes.

        A broken egg never becomes a version. Raises BadEggError, or ConfigurationError for a name.
        """
        check_name("project", project)
        check_name("version", version)
        if len(data) > MAX_EGG_BYTES:
            raise BadEggError(f"the egg has more than {MAX_EGG_BYTES:,} bytes; leave out what is not needed")
        if not is_zipfile(BytesIO(data)):
            raise BadEggError("egg is not a ZIP file (if using curl, use egg=@path not egg=path)")
        digest = sha256(data).hexdigest()
        with self._checking:
            spiders = self._unpack(data, digest, list_spiders)
        now = self._state.now()
        egg = Egg(project=project, version=version, sha256=digest, size=len(data), spiders=spiders, added_at=now)
        others = [one for one in self._state.eggs(project) if one.version != version]
        pipe = self._client.pipeline().set(self._keys.egg(egg.key), data)
        pipe.hset(self._keys.eggs, egg.key, msgspec.json.encode(egg))
        self._delete(pipe, others[: -VERSIONS_KEPT + 1])
        return egg

    def delete(self, project: str, version: str | None = None) -> None:
        """Delete a version, or all of a project's. Raises UnknownVersionError."""
        named = self.find(project, version)
        self._delete(self._client.pipeline(), self._state.eggs(project) if version is None else [named])

    def _delete(self, pipe: Any, eggs: Collection[Egg]) -> None:
        for egg in eggs:
            pipe.hdel(self._keys.eggs, egg.key).delete(self._keys.egg(egg.key))
        pipe.set(self._keys.changed, uuid4().hex).execute()

    def read(self, egg: Egg) -> bytes:
        """Return the bytes of a version. Raises BadEggError."""
        data: bytes | None = self._client.get(self._keys.egg(egg.key))
        if data is None or sha256(data).hexdigest() != egg.sha256:
            raise BadEggError(
                f"the egg of version '{egg.version}' is {'gone' if data is None else 'damaged'}; deploy it again"
            )
        return data

    # --- On this node's disk ------------------------------------------------------------------------------------------

    def fetch(self, project: str, version: str | None, in_use: Collection[str] = ()) -> tuple[Egg, Path]:
        """Return a version, the latest one if none is named, and the folder of its files.

        They never change, as Python reads modules from there while a spider runs. Old copies are removed, except those whose SHA-256 is
        `in_use`. Raises UnknownVersionError and BadEggError.
        """
        egg = self.find(project, version)
        path = self._copy(egg.sha256)
        if not path.is_dir():
            try:
                self._unpack(self.read(egg), egg.sha256, lambda _: [])
            except BadEggError:
                if self.find(project, version) == egg:
                    raise
                return self.fetch(project, version, in_use)  # it was deployed anew meanwhile
        os.utime(path)
        self._prune({egg.sha256, *in_use})
        return egg, path

    def _copy(self, digest: str) -> Path:
        return self._folder / f"{digest}.egg"

    def _unpack(self, data: bytes, digest: str, check: Callable[[Path], list[str]]) -> list[str]:
        """Unpack an egg, so that Python compiles its modules once and not in each process; return what `check` returns.

        When that raises, nothing is left behind.
        """
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder = Path(tempfile.mkdtemp(dir=self._folder, suffix=_UNFINISHED_SUFFIX))
        try:
            with ZipFile(BytesIO(data)) as archive:
                _check_members(archive)
                archive.extractall(folder)
            checked = check(folder)
            # Another thread, or another node that shares this folder, may have done so already.
            with suppress(OSError):
                folder.rename(self._copy(digest))
        except (
            BadZipFile,
            zlib.error,
            EOFError,
            NotImplementedError,
            RuntimeError,
        ) as error:  # the last: it is encrypted
            raise BadEggError(f"the egg is damaged: {error}") from None
        except (FileExistsError, NotADirectoryError, IsADirectoryError):
            raise BadEggError("the egg is damaged: two of its names are in each other's way") from None
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        return checked

    def _prune(self, in_use: Collection[str]) -> None:
        """Remove copies that are not needed, and those that a killed node was checking."""
        copies = set(self._folder.glob("*.egg"))
        unfinished = set(self._folder.glob(f"*{_UNFINISHED_SUFFIX}"))
        for used_at, path in (*oldest(copies - unfinished, _UNUSED_COPIES), *oldest(unfinished, 0)):
            if path.stem not in in_use and time.time() - used_at > 2 * _LIST_SECONDS:
                shutil.rmtree(path, ignore_errors=True)


def find_egg(eggs: Collection[Egg], project: str, version: str | None = None) -> Egg:
    """Return a version of a project, the latest one if none is named. Raises UnknownVersionError."""
    own = [egg for egg in eggs if egg.project == project]
    if not own:
        raise UnknownVersionError(f"project '{project}' not found")
    for egg in reversed(own):
        if version in {None, egg.version}:
            return egg
    raise UnknownVersionError(f"version '{version}' not found")


def _check_members(archive: ZipFile) -> None:
    """Raise BadEggError for an egg that would fill the disk."""
    members = archive.infolist()
    size = sum(member.file_size for member in members)
    longest = max((len(part.encode()) for member in members for part in member.filename.split("/")), default=0)
    for what, found, most in (
        ("bytes when it is unpacked", size, _MAX_UNPACKED_BYTES),
        ("files", len(members), _MAX_FILES),
        ("bytes in a name", longest, _MAX_NAME_LENGTH),
    ):
        if found > most:
            raise BadEggError(f"the egg has {found:,} {what}, and may have {most:,}; leave out what is not needed")


def list_spiders(egg: Path) -> list[str]:
    """Return the spiders that Scrapy finds in an egg, in a separate process. Raises BadEggError with its output."""
    try:
        ended = subprocess.run(  # noqa: S603 - this package's own program
            [sys.executable, "-P", RUNNER, "list"],
            input=json.dumps({"egg": str(egg)}) + "\n",
            env=spider_environment(os.environ),
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=_LIST_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise BadEggError(f"listing the egg's spiders took more than {_LIST_SECONDS:g} s") from None
    if not ended.returncode:
        with suppress(msgspec.DecodeError):
            if found := msgspec.json.decode(ended.stdout, type=list[str]):
                return found
            raise BadEggError("the egg holds no spider")
    output = redacted(ended.stderr.strip()[-_ERROR_CHARACTERS:])
    reason = output.rpartition("\n")[2] or f"exit code {ended.returncode}"
    raise BadEggError(f"the egg's spiders can't be listed: {reason}\n{output}")
