"""Crawls of what is due.

They have a catalogue that knows the replica's titles, workers, and what these did.
"""

import json
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
from scrapy.settings import Settings

from moviecrawler.catalogue.loading import load
from moviecrawler.catalogue.rows import ImportRow
from moviecrawler.catalogue.store import open_catalogue
from moviecrawler.replica.collection import Collection
from moviecrawler.replica.process import ReplicaProcess
from tests.processes import ForkedCommand, environment
from tests.services.postgres import execute

_PAGES = {
    "imdb": ("/title/",),
    "metacritic": ("/movie/", "/tv/"),
    "rottentomatoes": ("/m/", "/tv/"),
}


class Due:
    """A replica, and a database with a catalogue of which crawls fetch what is due."""

    def __init__(self, database_url: str, replica: ReplicaProcess, data: Path) -> None:
        self.url = database_url
        self.replica = replica
        self.data = data
        self._settings = {"DATABASE_URL": database_url, "CSV_ENABLED": "0"}
        self.where: dict[str, Any] = {"data": data, "replica": replica, **self._settings}
        """For `scrapy` and `crawl`: where commands run, and their settings."""

    def know(self, titles: int = 0, popularity: float = 50.0) -> None:
        """Have the catalogue know so many of the replica's titles, or all, the popular first.

        No import command is run for that.
        """
        options = self.replica._options
        titles = titles or options.titles
        collection = Collection(options.seed, options.titles)
        movies = [collection.title(number).movies["imdb"] for number in range(titles)]
        rows = [
            ImportRow(
                imdb_id=movie.imdb_id,
                title=movie.title,
                kind="movie",
                year=movie.year,
                popularity=max(popularity - n / 10, 0),
            )
            for n, movie in enumerate(movies)
        ]
        with closing(open_catalogue(Settings({"DATABASE_URL": self.url}))) as store:
            load(store, "test", str(popularity), rows, titles, datetime.now(UTC))

    @contextmanager
    def worker(self, name: str = "worker", **settings: str) -> Iterator[ForkedCommand]:
        """Run a worker on what is due at IMDb; its log is `<name>.log`."""
        environ = environment(self.data, self.replica, **(self._settings | settings))
        with (self.data / f"{name}.log").open("wb") as log:
            command = ["crawl", "imdb", "-a", "lane=due"]
            running = ForkedCommand(command, env=environ, cwd=self.data, stderr=log)
            try:
                yield running
            finally:
                running.kill()
                running.wait()

    @property
    def log(self) -> str:
        """What all workers have logged."""
        return "\n".join(path.read_text() for path in sorted(self.data.glob("*.log")))

    def pages(self, site: str = "imdb") -> dict[str, int]:
        """Return how often each title's page was asked for."""
        with urlopen(f"{self.replica.urls[site]}/__replica__/counts") as answer:
            counts = json.load(answer)[site]
        return {path: n for path, n in counts["paths"].items() if path.startswith(_PAGES[site])}

    def sql(self, statement: str, *values: object) -> Any:
        """Return the rows of a statement."""
        return execute(self.url, statement, *values)

    def states(self, site: str = "imdb") -> dict[str, int]:
        """Return the number of titles in each state."""
        return dict(
            self.sql(
                "SELECT state::text, count(*) FROM title_sites WHERE site = %s GROUP BY state", site
            )
        )


@pytest.fixture
def due(database_url: str, replica: ReplicaProcess, tmp_path: Path) -> Due:
    """Return crawls of a catalogue that knows the replica's titles."""
    made = Due(database_url, replica, tmp_path)
    made.know()
    return made
