"""Running the project's commands in processes of their own, and reading what they left behind."""

import csv
import json
import re
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

from moviecrawler.items import Movie
from moviecrawler.replica.process import ReplicaProcess
from tests.accounts import Summary, check_crawl
from tests.processes import crawl_command, environment, start
from tests.tables import read_movies

LONGEST = 300
"""Seconds that a command may take before it counts as hung."""


@dataclass(frozen=True)
class Finished:
    """A command that has ended."""

    code: int
    output: str
    log: str
    data: Path

    @property
    def ranks(self) -> dict[str, int]:
        """The rank of each title in lists.csv."""
        with (self.data / "lists.csv").open(encoding="utf-8", newline="") as file:
            return {row["site_id"]: int(row["rank"]) for row in csv.DictReader(file)}

    @property
    def movies(self) -> list[Movie]:
        """The rows of movies.csv, in its order."""
        path = self.data / "movies.csv"
        return list(read_movies(path)) if path.exists() else []

    @property
    def summary(self) -> Summary:
        """The five lines at the end of a crawl."""
        return Summary.read(self.log)

    @property
    def misses(self) -> dict[str, str]:
        """Outcome by site_id, of misses.csv."""
        return self._missed("outcome")

    @property
    def reasons(self) -> dict[str, str]:
        """The reason of each miss, by site_id."""
        return self._missed("reason")

    def _missed(self, column: str) -> dict[str, str]:
        path = self.data / "misses.csv"
        lines = path.read_text("utf-8").splitlines() if path.exists() else []
        return {row["site_id"]: row[column] for row in csv.DictReader(lines)}

    def stat(self, name: str) -> int:
        """A number of the stats that Scrapy logs at the end; 0 when it is not there."""
        found = re.search(rf"'{re.escape(name)}': (\d+)", self.log)
        return int(found[1]) if found else 0


def scrapy(
    *arguments: str, data: Path, replica: ReplicaProcess | None = None, **settings: str
) -> Finished:
    """Run `scrapy` with arguments in the folder `data`; settings are environment variables.

    The account of a crawl must add up.
    """
    data.mkdir(exist_ok=True)
    with NamedTemporaryFile() as output, NamedTemporaryFile() as log:
        env = environment(data, replica, **settings)
        process = start(list(arguments), env=env, cwd=data, stdout=output, stderr=log)
        try:
            process.wait(LONGEST)
        finally:
            process.kill()
        code = process.wait()
        finished = Finished(code, Path(output.name).read_text(), Path(log.name).read_text(), data)
    check_crawl(arguments, env, finished.log, code)
    return finished


def crawl(
    spider: str, *arguments: str, data: Path, replica: ReplicaProcess | None = None, **settings: str
) -> Finished:
    """Run a spider against the replica; `arguments` are NAME=VALUE."""
    return scrapy(*crawl_command(spider, *arguments, **settings), data=data, replica=replica)


def counts(replica: ReplicaProcess, site: str = "imdb") -> Any:
    """Return what the replica has counted for a site."""
    with urllib.request.urlopen(
        f"{replica.urls[site]}/__replica__/counts", timeout=LONGEST
    ) as answer:
        return json.load(answer)[site]


def change(replica: ReplicaProcess, **options: Any) -> None:
    """Set options of a replica, such as `faults={"500": 0.1}`, `latency=100` or `robots="live"`."""
    _post(replica, "options", json.dumps(options).encode())


def reset(replica: ReplicaProcess) -> None:
    """Make the replica count from 0, with the options that it was started with."""
    _post(replica, "reset", b"")


def _post(replica: ReplicaProcess, what: str, body: bytes) -> None:
    urllib.request.urlopen(
        f"{replica.urls['imdb']}/__replica__/{what}", data=body, timeout=LONGEST
    ).close()
