"""Crawls of what is due.

They have a catalogue that knows the replica's titles, workers, and what these did.
"""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from scrapy.settings import Settings

from moviecrawler.catalogue.loading import load
from moviecrawler.catalogue.store import open_catalogue
from moviecrawler.replica.collection import Collection
from moviecrawler.replica.process import ReplicaProcess
from tests.catalogued import row
from tests.crawling import Finished, counts, scrapy
from tests.processes import ForkedCommand, crawl_command, environment
from tests.services.postgres import execute
from tests.services.replica import COLLECTION, TITLES

_PAGES = {
    "imdb": ("/title/",),
    "metacritic": ("/movie/", "/tv/"),
    "rottentomatoes": ("/m/", "/tv/"),
}


class Due:
    """A replica, and a database with a catalogue of which crawls fetch what is due."""

    def __init__(
        self,
        database_url: str,
        replica: ReplicaProcess,
        data: Path,
        collection: Collection = COLLECTION,
    ) -> None:
        self.url = database_url
        self.collection = collection
        self.replica = replica
        self.data = data
        self._settings = {"DATABASE_URL": database_url, "CSV_ENABLED": "0"}

    def know(self, titles: int = TITLES, popularity: float = 50.0) -> None:
        """Have the catalogue know the replica's titles, the popular first.

        No import command is run for that.
        """
        movies = [self.collection.title(number).movies["imdb"] for number in range(titles)]
        rows = [
            row(
                n,
                imdb_id=movie.imdb_id,
                title=movie.title,
                year=movie.year,
                popularity=max(popularity - n / 10, 0),
            )
            for n, movie in enumerate(movies)
        ]
        with closing(open_catalogue(Settings({"DATABASE_URL": self.url}))) as store:
            load(store, "test", str(popularity), rows, titles, datetime.now(UTC))

    def scrapy(self, *arguments: str, **settings: str) -> Finished:
        """Run a command; settings are environment variables."""
        return scrapy(
            *arguments, data=self.data, replica=self.replica, **(self._settings | settings)
        )

    def fetch(self, site: str = "imdb", *arguments: str, **settings: str) -> Finished:
        """Run a spider on what is due."""
        finished = self.scrapy(*crawl_command(site, "lane=due", *arguments), **settings)
        assert "Traceback" not in finished.log, finished.log
        return finished

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
        return {
            path: n
            for path, n in counts(self.replica, site)["paths"].items()
            if path.startswith(_PAGES[site])
        }

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
