"""Imports titles and their popularity (by votes) from IMDb's datasets."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from moviecrawler.basics.errors import ConfigurationError, ExtractionError
from moviecrawler.catalogue.file_source import FileSource
from moviecrawler.catalogue.popularity import popularity_of_votes
from moviecrawler.catalogue.rows import ImportRow
from moviecrawler.datasets.tables import COLUMNS, Tables
from moviecrawler.datasets.titles import movie_of
from moviecrawler.sites.imdb.values import TITLE_KINDS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from moviecrawler.datasets.files import FileClient
    from moviecrawler.items import TitleKind

BASICS = "title.basics.tsv.gz"
RATINGS = "title.ratings.tsv.gz"
EPISODES = "title.episode.tsv.gz"
_SUFFIX = ".tsv.gz"
_TITLES = f"""
SELECT tconst,
    json_array({COLUMNS["title.basics"]}),
    coalesce(TRY_CAST(numVotes AS BIGINT), 0) AS votes
FROM {{}} LEFT JOIN ratings USING (tconst)
WHERE titleType IN $types AND votes >= $fewest
"""  # noqa: S608 - the columns are ours
"""The id of each title, its columns and its votes, in the order of the file."""


@dataclass(slots=True, frozen=True)
class Selection:
    """Filters, all of which apply.

    Their `str` is a part of the import's version: another selection is another import.
    """

    kinds: frozenset[TitleKind] = frozenset({"movie"})
    min_votes: int = 0
    """Votes on IMDb, which shows none below 5. 0 includes unrated titles."""
    first_year: int | None = None
    last_year: int | None = None
    """Titles without a year are included only when neither is given."""

    def __post_init__(self) -> None:
        if (
            self.first_year is not None
            and self.last_year is not None
            and self.first_year > self.last_year
        ):
            raise ConfigurationError(
                f"years from {self.first_year} to {self.last_year}; give the earlier one first"
            )

    def takes_year(self, year: int | None) -> bool:
        """Return whether titles of that year are included."""
        if self.first_year is None and self.last_year is None:
            return True
        if year is None:
            return False
        return (self.first_year or year) <= year <= (self.last_year or year)

    def __str__(self) -> str:
        years = f"{self.first_year or ''}-{self.last_year or ''}"
        return f"kinds={','.join(sorted(self.kinds))} votes={self.min_votes} years={years}"


class ImdbFiles(FileSource):
    """Some of IMDb's datasets."""

    files: ClassVar[tuple[str, ...]]
    """Their names."""

    def __init__(self, origin: str, data_dir: Path) -> None:
        """Use the files in the folder `origin`.

        If `origin` is a URL, they are downloaded from it into `data_dir`/datasets.
        """
        folder = data_dir / "datasets" if "://" in origin else Path(origin)
        instead = f"the folder that holds {', '.join(self.files[:-1])} and {self.files[-1]}"
        super().__init__(origin.rstrip("/"), [folder / name for name in self.files], instead)
        self._scratch = data_dir / "datasets"

    def fetch(self, client: FileClient) -> None:
        """Download the files that have changed; see `FileSource`."""
        for path in self.paths:
            client.download(f"{self._origin}/{path.name}", path, header_lines=1)

    def tables(self) -> closing[Tables]:
        """Open the files; a downloaded one that turns out to be damaged is downloaded again."""
        files = {path.name.removesuffix(_SUFFIX): path for path in self.paths}
        return closing(Tables(files, self._scratch, is_downloaded=self.is_remote))

    def count(self, tables: Tables) -> None:
        """Count damaged rows. Raises ExtractionError when there are too many."""
        damaged = sum(rows for rows, _ in tables.damaged.values())
        if damaged > self.damaged:
            (dataset, site_id), (_, reason) = next(iter(tables.damaged.items()))
            text = f"the rows of {site_id or 'no readable id'}: {reason}"
            self.count_damage(ExtractionError(dataset, self._origin, text), damaged - self.damaged)


class ImdbDatasets(ImdbFiles):
    """The selected titles of title.basics, with their votes from title.ratings."""

    name = "imdb"
    files: ClassVar[tuple[str, ...]] = (BASICS, RATINGS)

    def __init__(self, origin: str, data_dir: Path, selection: Selection) -> None:
        """Use the files as `ImdbFiles` does."""
        super().__init__(origin, data_dir)
        self._selection = selection

    def version(self) -> str:
        """Return a hash of the files, and the selection."""
        return f"{super().version()} {self._selection}"

    def read(self) -> Iterator[ImportRow]:
        """Yield the selected titles, in the order of title.basics; see `FileSource`."""
        chosen = self._selection
        with self.tables() as tables:
            tables.load("ratings", "title.ratings", "true", once=True)
            for site_id, row, votes in tables.select(
                _TITLES.format(tables.source("title.basics")),
                types=[name for name, kind in TITLE_KINDS.items() if kind in chosen.kinds],
                fewest=chosen.min_votes,
            ):
                try:
                    movie = movie_of(row)
                except ValueError as error:
                    tables.note("title.basics", site_id, str(error))
                    self.count(tables)
                    continue
                # The other sites don't have titles of the genre "Adult".
                if not chosen.takes_year(movie.year) or "Adult" in movie.genres:
                    continue
                yield ImportRow(
                    imdb_id=movie.site_id,
                    title=movie.title,
                    original_title=movie.original_title,
                    kind=movie.kind,
                    year=movie.year,
                    end_year=movie.end_year,
                    tells_end_year=movie.kind == "series",
                    runtime_minutes=movie.runtime_minutes,
                    votes=votes,
                    popularity=popularity_of_votes(votes),
                )
            tables.note_rejects("title.basics")
            self.count(tables)
