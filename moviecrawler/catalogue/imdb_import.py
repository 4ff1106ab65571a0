"""The catalogue's titles from IMDb's datasets: which there are, and how popular they are by their votes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from moviecrawler.catalogue.file_source import FileSource
from moviecrawler.catalogue.lanes import popularity_of_votes
from moviecrawler.catalogue.rows import ImportRow
from moviecrawler.catalogue.selection import Selection
from moviecrawler.datasets.downloads import version_of
from moviecrawler.extract import datasets

if TYPE_CHECKING:
    from collections.abc import Iterator

    from moviecrawler.catalogue.fetching import Fetcher

BASICS, RATINGS = "title.basics.tsv.gz", "title.ratings.tsv.gz"


class ImdbDatasets(FileSource):
    """The titles of title.basics, each with its votes from title.ratings."""

    name = "imdb"

    def __init__(
        self, origin: str, data_dir: Path, *, selection: Selection | None = None, fetcher: Fetcher | None = None
    ) -> None:
        """Read the files in the folder `origin`, or fetch them from below the URL `origin` into `data_dir`/datasets."""
        super().__init__(origin.rstrip("/"), fetcher)
        self._folder = data_dir / "datasets" if self._fetcher else Path(origin)
        self._selection = selection or Selection()

    def version(self) -> str:
        """Return what changes when the files or the selection do; see `FileSource`."""
        paths = self._paths()
        if self._fetcher is not None:
            for path in paths:
                self._fetcher.download(f"{self._origin}/{path.name}", path)
        self.check_there(paths, f"the folder that holds {BASICS} and {RATINGS}")
        return f"{version_of(paths)} {self._selection}"

    def rows(self) -> Iterator[ImportRow]:
        """Yield the selected titles, in the order of title.basics; see `FileSource`."""
        basics, ratings = self._paths()
        self.measure((basics, ratings))
        chosen = self._selection
        with self.reading(basics) as titles, self.reading(ratings) as rated:
            blocks = datasets.gunzip(titles), datasets.gunzip(rated)
            for movie in datasets.movies(
                *blocks, kinds=chosen.kinds, min_votes=chosen.min_votes, on_error=self.count_damage
            ):
                # IMDb's own genre for what the other sites don't have.
                if not chosen.takes_year(movie.year) or "Adult" in movie.genres:
                    continue
                votes = movie.scores[0].count if movie.scores else 0
                yield ImportRow(
                    imdb_id=movie.site_id,
                    title=movie.title,
                    original_title=movie.original_title,
                    kind=movie.kind,
                    year=movie.year,
                    runtime_minutes=movie.runtime_minutes,
                    popularity=popularity_of_votes(votes or 0),
                )

    def _paths(self) -> tuple[Path, Path]:
        return self._folder / BASICS, self._folder / RATINGS
