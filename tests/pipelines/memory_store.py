"""A store in memory, for what the pipeline promises whatever the store is."""

from collections.abc import Callable, Sequence

import msgspec

from moviecrawler.items import Movie
from moviecrawler.pipelines.store import Record, Store


class MemoryStore(Store):
    """The least that a store can be, with what happens before it is opened or written."""

    name = "memory"

    def __init__(self) -> None:
        self.movies: dict[str | None, Movie] = {}
        self.batches: list[int] = []
        self.before_open: Callable[[], object] = lambda: None
        self.before_write: Callable[[Sequence[Record]], object] = lambda _: None

    def open(self) -> None:
        self.before_open()

    def write(self, records: Sequence[Record]) -> None:
        self.batches.append(len(records))
        self.before_write(records)
        for record in records:
            movie = msgspec.json.decode(record.encoded, type=Movie)
            known = self.movies.get(movie.site_id)
            assert movie.scraped_at is not None
            if known is None or known.scraped_at is None or known.scraped_at <= movie.scraped_at:
                self.movies[movie.site_id] = movie

    def close(self) -> None:
        pass


def failing(times: int, error: Exception) -> Callable[..., None]:
    """Return what fails so many times."""
    left = iter(range(times))

    def fail(*_: object) -> None:
        if next(left, None) is not None:
            raise error

    return fail
