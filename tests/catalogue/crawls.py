"""Crawls of what is due: a catalogue that knows the replica's titles, workers, and what they did."""

from __future__ import annotations

from contextlib import closing, contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from scrapy.settings import Settings

from moviecrawler.catalogue.loading import load
from moviecrawler.catalogue.rows import ImportRow
from moviecrawler.catalogue.store import open_catalogue
from moviecrawler.replica.collection import Collection
from tests.crawling import Finished, counts, crawl_command, environment, scrapy
from tests.processes import ForkedCommand
from tests.services.postgres import execute

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from moviecrawler.replica.process import ReplicaProcess


def settings_of(database_url: str, **settings: str) -> dict[str, str]:
    return {"DATABASE_URL": database_url, "CSV_ENABLED": "0", **settings}


def know(database_url: str, titles: int, popularity: float = 50.0) -> None:
    """Have the catalogue know the replica's titles, the popular first, without an import's command."""
    movies = [film.movies["imdb"] for film in map(Collection(1, titles).title, range(titles))]
    rows = [
        ImportRow(
            imdb_id=str(movie.imdb_id),
            title=movie.title,
            kind="movie",
            year=movie.year,
            popularity=max(popularity - index / 10, 0),
        )
        for index, movie in enumerate(movies)
    ]
    with closing(open_catalogue(Settings({"DATABASE_URL": database_url}))) as store:
        load(store, "test", str(popularity), rows, titles, datetime.now(UTC))


def fetch_due(site: str, *arguments: str, data: Path, replica: ReplicaProcess, **settings: str) -> Finished:
    """Run a spider on what is due, patiently: a page that a busy machine answers late is asked for once."""
    finished = scrapy(
        *crawl_command(site, "lane=due", DOWNLOAD_TIMEOUT="60"), *arguments, data=data, replica=replica, **settings
    )
    assert "Traceback" not in finished.log, finished.log
    return finished


@contextmanager
def worker(data: Path, replica: ReplicaProcess, *, site: str = "imdb", **settings: str) -> Iterator[ForkedCommand]:
    """Run a worker on what is due at a site; its log is `worker.log`."""
    with (data / "worker.log").open("wb") as log:
        running = ForkedCommand(
            ["crawl", site, "-a", "lane=due"], env=environment(data, replica, **settings), cwd=data, stderr=log
        )
        try:
            yield running
        finally:
            running.kill()
            running.wait()


def title_pages(replica: ReplicaProcess, site: str = "imdb") -> dict[str, int]:
    """Return how often each title's page was asked for."""
    beginnings = {"imdb": ("/title/",), "metacritic": ("/movie/", "/tv/"), "rottentomatoes": ("/m/", "/tv/")}[site]
    return {path: times for path, times in counts(replica, site)["paths"].items() if path.startswith(beginnings)}


def states(database_url: str, site: str = "imdb") -> dict[str, int]:
    return dict(
        execute(  # type: ignore[arg-type]
            database_url, "SELECT state::text, count(*) FROM title_sites WHERE site = %s GROUP BY state", site
        )
    )


def claimed(database_url: str) -> Any:
    """Return how many claims there are."""
    return execute(database_url, "SELECT count(*) FROM title_sites WHERE claimed_until IS NOT NULL")[0][0]
