"""A replica in a process of its own, for the demo, tests and benchmarks."""

import subprocess
import sys
import tempfile
from typing import Self

import msgspec

from moviecrawler.basics.errors import MovieCrawlerError
from moviecrawler.replica.options import Options
from moviecrawler.sites import SITES


class ReplicaError(MovieCrawlerError):
    """The replica's process did not start."""


class ReplicaProcess:
    """A replica that runs while the `with` block does.

    It also ends when this process does, in whatever way.
    """

    def __init__(self, **options: object) -> None:
        """Take the fields of `Options`; without `port`, any free ports are used.

        Raises ConfigurationError.
        """
        self._options = Options.read(options)
        self.urls: dict[str, str] = {}
        """Each site's scheme, host and port."""

    @property
    def settings(self) -> dict[str, str]:
        """The project's settings that make its spiders ask the replica.

        They can be given as environment variables, too.
        """
        return {
            host.setting: self.urls[site] + ("/datasets" if host.has_files else "")
            for site, profile in SITES.items()
            for host in profile.hosts
        }

    def __enter__(self) -> Self:
        """Start it, and wait until it answers. Raises ReplicaError."""
        command = [
            sys.executable,
            "-m",
            "moviecrawler.replica.app",
            msgspec.json.encode(self._options).decode(),
        ]
        with tempfile.TemporaryFile("w+") as errors:
            self._process = subprocess.Popen(  # noqa: S603 - this package's own command
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                # A terminal's Ctrl-C reaches its starter alone, which then ends it.
                start_new_session=True,
            )
            assert self._process.stdout is not None  # noqa: S101 - it is a pipe
            lines = [self._process.stdout.readline().split() for _ in SITES]
            if not all(lines):
                self.__exit__()
                errors.seek(0)
                raise ReplicaError(f"the replica did not start: {errors.read().strip()}")
        self.urls = {line[0]: line[1] for line in lines}
        return self

    def __exit__(self, *_: object) -> None:
        """Stop it."""
        stop(self._process, within=10)


def stop(process: subprocess.Popen[str], within: float) -> None:
    """End a process; it is killed when that takes more than so many seconds."""
    process.terminate()
    try:
        process.communicate(timeout=within)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
