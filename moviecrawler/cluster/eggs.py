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
from typing import TYPE_CHECKING, Any, BinaryIO
from zipfile import BadZipFile, ZipFile, is_zipfile

import msgspec
import redis

from moviecrawler.cluster.environment import oldest, spider_environment
from moviecrawler.cluster.jobs import BadEggError, UnknownVersionError, check_name
from moviecrawler.cluster.secrets import redacted
from moviecrawler.cluster.state import connect, decode

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from moviecrawler.cluster.state import ClusterState


RUNNER = str(Path(__file__).with_name("runner.py"))
"""The program of spiders' processes."""
_EGG_SECONDS = 30.0
"""Seconds to read or write a whole egg in Redis."""
_LIST_SECONDS = 60.0
"""Seconds for the import of all of an egg's spiders."""
_ERROR_CHARACTERS = 2000
"""Characters of an error that are shown."""
_UNFINISHED_SUFFIX = ".new.egg"
"""Suffix of a copy that is being written or checked. It must end in .egg for Python to read it as an egg."""
_UNPACKED_FACTOR = 10
"""Multiple of `egg_max_mb` that an egg may have when it is unpacked."""
_TRIES = 20
"""How often a change of versions is tried while others change them, or while Redis does not answer in time."""
_UNUSED_COPIES = 20
"""Eggs that a node keeps on its disk unpacked, beside those in use."""


Spiders = list[str]
"""Names of spiders. Inside EggStore, `list` is a method."""


class Egg(msgspec.Struct, frozen=True, kw_only=True):
    """A version of a project."""

    project: str
    version: str
    sha256: str
    size: int
    """Bytes."""
    spiders: Spiders
    added_at: float
    """Seconds since 1970."""


class EggStore:
    """The cluster's projects. Its methods block, so call them in a thread. They raise redis.RedisError."""

    def __init__(self, state: ClusterState) -> None:
        options = state.options
        self._state = state
        self._key = state.keys.eggs
        self._keep = options.versions_to_keep
        self._largest = options.egg_max_mb * 1024 * 1024
        self._folder = Path(options.eggs_dir).absolute()
        self._checking = Lock()
        self._client = connect(options, socket_timeout=_EGG_SECONDS)

    # --- Reading ------------------------------------------------------------------------------------------------

    def _all(self, client: Any = None) -> list[Egg]:
        """Return every version, the latest one last."""
        found = (client or self._state.client).hvals(self._key)
        eggs = [egg for text in found if (egg := decode(text, Egg)) is not None]
        return sorted(eggs, key=lambda egg: (egg.added_at, egg.version))

    def list_projects(self) -> list[str]:
        """Return the projects, by name."""
        return sorted({egg.project for egg in self._all()})

    def list(self, project: str) -> list[str]:
        """Return a project's versions, the latest one last; none for an unknown project.

        The latest is the one that was deployed last, so that timestamps and tags mix and a roll-back is a deploy.
        """
        return [egg.version for egg in self._all() if egg.project == project]

    def find(self, project: str, version: str | None = None) -> Egg:
        """Return a version of a project, the latest one if none is named. Raises UnknownVersionError."""
        eggs = [egg for egg in self._all() if egg.project == project]
        if not eggs:
            raise UnknownVersionError(f"project '{project}' not found")
        for egg in reversed(eggs):
            if version in {None, egg.version}:
                return egg
        raise UnknownVersionError(f"version '{version}' not found")

    # --- Changes ------------------------------------------------------------------------------------------------------

    def put(
        self, eggfile: BinaryIO, project: str, version: str, *, is_wanted: Callable[[], bool] = lambda: True
    ) -> Egg:
        """Check an egg by listing its spiders, and then make it known to all nodes.

        A broken egg never becomes a version, nor does one that is not wanted any more when it is checked. Versions above `versions_to_keep`
        are deleted. Raises BadEggError, or ConfigurationError for a name.
        """
        check_name("project", project)
        check_name("version", version)
        data = eggfile.read(self._largest + 1)
        if len(data) > self._largest:
            raise BadEggError(f"the egg has more than {self._largest:,} bytes; leave out what is not needed")
        if not is_zipfile(BytesIO(data)):
            raise BadEggError("egg is not a ZIP file (if using curl, use egg=@path not egg=path)")
        digest = sha256(data).hexdigest()
        with self._checking:
            spiders = self._unpack(data, digest, list_spiders)
        if not spiders:
            raise BadEggError("the egg holds no spider")
        if not is_wanted():
            raise BadEggError("whoever has sent the egg is gone")
        now = self._state.now()
        egg = Egg(project=project, version=version, sha256=digest, size=len(data), spiders=spiders, added_at=now)

        def replaced(eggs: Sequence[Egg]) -> Sequence[Egg]:
            """Choose the version itself, if it was there, and the oldest of the others."""
            own = [each for each in reversed(eggs) if each.project == project]
            others = [each for each in own if each.version != version]
            return [each for each in own if each not in others[: self._keep - 1]]

        self._change(replaced, egg, data)
        return egg

    def delete(self, project: str, version: str | None = None) -> None:
        """Delete a version, or all of a project's. Raises UnknownVersionError."""

        def named(eggs: Sequence[Egg]) -> Sequence[Egg]:
            found = [egg for egg in eggs if egg.project == project and version in {None, egg.version}]
            if not found:
                what = f"project '{project}'" if version is None else f"version '{version}'"
                raise UnknownVersionError(f"{what} not found")
            return found

        self._change(named)

    def _change(
        self, outdated: Callable[[Sequence[Egg]], Sequence[Egg]], new: Egg | None = None, data: bytes = b""
    ) -> None:
        """Delete the versions that `outdated` chooses of all, and add one, in one step; bytes go with the last version that has them."""
        tries = iter(range(_TRIES))

        def change(pipe: Any) -> None:
            if next(tries, None) is None:
                raise redis.exceptions.TimeoutError(f"the versions could not be changed in {_TRIES} tries")
            eggs = self._all(pipe)
            gone = outdated(eggs)
            used = {egg.sha256 for egg in eggs if egg not in gone}
            pipe.multi()
            for egg in gone:
                pipe.hdel(self._key, f"{egg.project}/{egg.version}")
                if egg.sha256 not in used:
                    pipe.delete(self._state.keys.egg(egg.sha256))
            if new is not None:
                pipe.set(self._state.keys.egg(new.sha256), data)
                pipe.hset(self._key, f"{new.project}/{new.version}", msgspec.json.encode(new))

        # It is tried again when another node has changed a version meanwhile, and when the connection breaks at the last step.
        self._client.transaction(change, self._key)

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
                self._unpack(self._read(egg), egg.sha256, lambda _: [])
            except BadEggError:
                if self.find(project, version) == egg:
                    raise
                return self.fetch(project, version, in_use)  # it was deployed anew meanwhile
        os.utime(path)
        self._prune({egg.sha256, *in_use})
        return egg, path

    def _copy(self, digest: str) -> Path:
        return self._folder / f"{digest}.egg"

    def _read(self, egg: Egg) -> bytes:
        data: bytes | None = self._client.get(self._state.keys.egg(egg.sha256))
        if data is None:
            raise BadEggError(f"the egg of version '{egg.version}' is gone from Redis; deploy it again")
        if sha256(data).hexdigest() != egg.sha256:
            raise BadEggError(f"the egg of version '{egg.version}' is damaged; deploy it again")
        return data

    def _unpack(self, data: bytes, digest: str, check: Callable[[Path], Spiders]) -> Spiders:
        """Unpack an egg, so that Python compiles its modules once and not in each process; return what `check` returns.

        When that raises, nothing is left behind.
        """
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder = Path(tempfile.mkdtemp(dir=self._folder, suffix=_UNFINISHED_SUFFIX))
        try:
            with ZipFile(BytesIO(data)) as archive:
                size = sum(member.file_size for member in archive.infolist())
                if size > _UNPACKED_FACTOR * self._largest:
                    raise BadEggError(f"the egg unpacks to {size:,} bytes; leave out what is not needed")
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
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        return checked

    def _prune(self, in_use: Collection[str]) -> None:
        for used_at, path in oldest(self._folder.glob("*.egg"), _UNUSED_COPIES):
            if path.stem not in in_use and time.time() - used_at > _LIST_SECONDS:
                shutil.rmtree(path, ignore_errors=True)


def list_spiders(egg: Path) -> Spiders:
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
            return msgspec.json.decode(ended.stdout, type=Spiders)
    output = redacted(ended.stderr.strip()[-_ERROR_CHARACTERS:])
    reason = output.rpartition("\n")[2] or f"exit code {ended.returncode}"
    raise BadEggError(f"the egg's spiders can't be listed: {reason}\n{output}")
