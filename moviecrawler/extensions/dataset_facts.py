"""Leaving out titles of IMDb's datasets that the stores have as they are."""

from __future__ import annotations

from datetime import timedelta
from hashlib import blake2b
from importlib.metadata import version
from typing import TYPE_CHECKING

from scrapy import signals

from moviecrawler.datasets.stored_facts import StoredFacts
from moviecrawler.pipelines.store import path_of_stores
from moviecrawler.signals import item_completed

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from scrapy.crawler import Crawler

    from moviecrawler.datasets.stored_facts import Facts, Pass
    from moviecrawler.items import Movie
    from moviecrawler.signals import Outcome


class DatasetFacts:
    """Knows which titles all stores have, and follows those of a crawl until they have them."""

    def __init__(self, crawler: Crawler) -> None:
        """Read DATA_DIR, IMDB_VOTES_CHANGE, FRESHNESS_MARGIN and the settings of stores."""
        self._settings = crawler.settings
        self._opened: StoredFacts | None = None
        self._path = path_of_stores(crawler.settings, "datasets/stored-{}.sqlite3")
        self._following: dict[int, tuple[Movie, Facts]] = {}
        self._pass: tuple[str, int, list[str]] | None = None
        self._is_whole = True
        """Whether all that was given to the stores is durable in each of them."""
        crawler.signals.connect(self._completed, item_completed)
        crawler.signals.connect(self._dropped, signals.item_dropped)
        crawler.signals.connect(self._dropped, signals.item_error)
        crawler.signals.connect(self._closed, signals.spider_closed)

    @property
    def _facts(self) -> StoredFacts:
        """What is kept of these stores; most crawls read pages, and don't need it."""
        if self._opened is None:
            settings = self._settings
            margin = timedelta(seconds=settings.getfloat("FRESHNESS_MARGIN"))
            self._opened = StoredFacts(self._path, least_change=settings.getfloat("IMDB_VOTES_CHANGE"), margin=margin)
        return self._opened

    def pass_of(self, files: str, asked: Iterable[str]) -> tuple[str, Pass | None]:
        """Return the version of a pass over the files of a version, for what is asked for; and that pass, if all of it is stored."""
        hashed = blake2b("\n".join([version("moviecrawler"), *asked]).encode(), digest_size=16).hexdigest()
        name = f"{files} {hashed}"
        return name, self._facts.known_pass(name)

    def changed(self, movies: Iterable[Movie]) -> list[Movie]:
        """Return the movies that not all stores have as they are, and follow them until they have."""
        changed = self._facts.changed(movies)
        self._following.update((id(movie), (movie, facts)) for movie, facts in changed)
        return [movie for movie, _ in changed]

    def end_pass(self, name: str, titles: int, absent: list[str]) -> None:
        """Note a pass by its version once all of it is stored, when the crawl is over."""
        self._pass = (name, titles, absent)

    def _completed(self, item: Any, outcomes: frozenset[Outcome]) -> None:
        followed = self._following.pop(id(item), None)
        if followed is None:
            return
        if outcomes == {"durable"} and item.scraped_at is not None:
            self._facts.add(followed[1], item.scraped_at)
        else:
            self._is_whole = False

    def _dropped(self, item: Any) -> None:
        if self._following.pop(id(item), None) is not None:
            self._is_whole = False

    def _closed(self) -> None:
        if self._opened is None:
            return
        try:
            if self._pass is not None and self._is_whole and not self._following:
                self._facts.add_pass(*self._pass)
        finally:
            self._opened.close()
