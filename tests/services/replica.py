"""The replicas of all tests of a process, one for each set of options, and their items.

Each test finds the replica as it was at the start.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit
from urllib.request import urlopen

import pytest
from scrapy.settings import Settings
from scrapy.spiderloader import SpiderLoader

from moviecrawler.items import Movie, Site
from moviecrawler.replica.collection import Collection
from moviecrawler.replica.process import ReplicaProcess
from moviecrawler.replica.sources import Answer, Source
from moviecrawler.sites import SITES
from moviecrawler.sites.ids import title_url
from tests.processes import CONTEXT
from tests.services.changing_replica import ChangingOptions, serve_replica
from tests.services.https import HttpsFront

TITLES = 40
COLLECTION = Collection(1, TITLES)
IDS = COLLECTION.imdb_ids
SPIDERS = SpiderLoader(Settings({"SPIDER_MODULES": ["moviecrawler.spiders"]})).list()
EVERYTHING = {
    "imdb": [],
    "metacritic": ["list=new"],
    "rottentomatoes": ["list=movies_at_home/sort:newest"],
}
"""Arguments with which each spider finds all that its site has."""


ReplicaOf = Callable[..., ReplicaProcess]
"""Gives the replica with some options."""


class ForkedReplica(ReplicaProcess):
    """A `ChangingReplica` forked from a process that has imported what it needs.

    It ends when its `with` block, or this process, does.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__()
        self._options = ChangingOptions.read(options)

    def __enter__(self) -> Self:
        self._here, there = CONTEXT.Pipe()
        self._process: Any = CONTEXT.Process(
            target=serve_replica, args=(self._options, there), daemon=True
        )
        self._process.start()
        there.close()
        with os.fdopen(os.dup(self._here.fileno())) as lines:
            self.urls = dict(lines.readline().split() for _ in SITES)
        return self

    def __exit__(self, *_: object) -> None:
        self._here.close()
        self._process.join()


@pytest.fixture(scope="session")
def replica_of() -> Iterator[ReplicaOf]:
    """Return what gives the replica with these options, as it was at its start."""
    running: dict[str, ReplicaProcess] = {}
    with ExitStack() as stack:

        def give(**options: Any) -> ReplicaProcess:
            name = repr(sorted(options.items()))
            if name not in running:
                running[name] = stack.enter_context(ForkedReplica(**options))
            urlopen(running[name].urls["imdb"] + "/__replica__/reset", b"").close()
            return running[name]

        yield give


@pytest.fixture(scope="session")
def front(replica_of: ReplicaOf) -> Iterator[HttpsFront]:
    """Return IMDb's replica by https."""
    with HttpsFront(replica_of(titles=TITLES, light=True).urls["imdb"]) as front:
        yield front


@pytest.fixture
def replica(replica_of: ReplicaOf) -> ReplicaProcess:
    """Return a replica of 40 titles on light pages."""
    return replica_of(titles=TITLES, light=True)


def write_ids(folder: Path, titles: int, *more: str) -> str:
    """Write the ids of the replica's first titles, and more, to a file.

    Returns the argument that names it.
    """
    path = folder / "ids"
    path.write_text("\n".join([*IDS[:titles], *more]))
    return f"file={path}"


def page_of(collection: Collection, site: Site, site_id: str) -> bytes:
    """Return the light page of a title, a season or an episode."""
    answer = Source(collection, light=True).answer(
        site, urlsplit(title_url(site, site_id)).path, {}, "http://replica"
    )
    assert isinstance(answer, Answer)
    assert answer.status == 200
    return answer.body


def series_of(collection: Collection, site: Site, *, listed: bool = False) -> dict[str, Movie]:
    """Return the items of all series of a site, of their seasons, and of IMDb's episodes.

    They are by their ids.

    `listed`: seasons as their series' pages have them.
    """
    titles = [
        title
        for n in range(collection.series.count)
        if site in (title := collection.series.title(n)).movies
    ]
    parts = [
        part
        for title in titles
        for part in title.parts[site]
        if site == "imdb" or part.kind == "season"
    ]
    if listed:
        parts = [part for title in titles for part in title.listed[site]]
    return {
        str(movie.site_id): movie for movie in (*(title.movies[site] for title in titles), *parts)
    }


Scores = dict[str, tuple[float, int | None]]


def scores_of(movie: Movie) -> Scores:
    """Return the value and the count of each score."""
    return {score.kind: (score.value, score.count) for score in movie.scores}
