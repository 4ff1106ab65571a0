"""IMDb's datasets of the replica's titles, in the order of their ids as text.

They are written to files once.
"""

import gzip
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from moviecrawler.items import Movie
from moviecrawler.replica.collection import Collection

_NULL = r"\N"
_COLUMNS = {
    "title.basics": (
        "tconst titleType primaryTitle originalTitle isAdult "
        "startYear endYear runtimeMinutes genres"
    ),
    "title.ratings": "tconst averageRating numVotes",
    "title.crew": "tconst directors writers",
    "title.principals": "tconst ordering nconst category job characters",
    "title.akas": "titleId ordering title region language types attributes isOriginalTitle",
    "title.episode": "tconst parentTconst seasonNumber episodeNumber",
    "name.basics": "nconst primaryName birthYear deathYear primaryProfession knownForTitles",
}
FILES = tuple(f"{name}.tsv.gz" for name in _COLUMNS)


class Dataset(NamedTuple):
    """One of FILES in a folder."""

    collection: Collection
    folder: Path
    file: str

    def write(self) -> Path:
        """Write the file unless it is there, and return its path."""
        path = self.folder / self.file
        name = self.file.removesuffix(".tsv.gz")
        if not path.exists():
            self.folder.mkdir(parents=True, exist_ok=True)
            found = (row for movie in self.collection.pages("imdb") for row in _rows(movie, name))
            # Who is in several titles comes once.
            rows = dict.fromkeys(
                "\t".join(_NULL if cell is None else str(cell) for cell in row) for row in found
            )
            lines = [
                "\t".join(_COLUMNS[name].split()),
                *sorted(rows, key=lambda row: row.partition("\t")[0]),
            ]
            path.write_bytes(
                gzip.compress("".join(f"{line}\n" for line in lines).encode(), 1, mtime=0)
            )
            # Of the time and the size the web server makes an ETag, which is then the same for the
            # same titles.
            day = self.collection.series.today.toordinal() * 86_400
            os.utime(path, (day, day))
        return path


def _rows(movie: Movie, name: str) -> Iterator[tuple[object, ...]]:
    """Yield the rows of one title in a dataset; None is what it doesn't know."""
    rating = movie.score("imdb")
    original = movie.original_title or movie.title
    if name == "title.basics":
        named = (movie.site_id, movie.title_type, movie.title, original, 0)
        yield (*named, movie.year, movie.end_year, movie.runtime_minutes, ",".join(movie.genres))
    elif name == "title.ratings" and rating is not None:
        yield movie.site_id, rating.value, rating.count
    elif name == "title.episode" and movie.kind == "episode":
        yield movie.site_id, movie.series_id, movie.season, movie.episode
    elif name == "title.crew" and movie.kind == "movie":
        directors = [str(one.person_id) for one in movie.people("director")]
        writers = [str(one.person_id) for one in movie.people("writer")]
        yield movie.site_id, ",".join(directors), ",".join(writers)
    elif name == "title.principals" and movie.kind == "movie":
        credits_ = [*movie.people("cast"), *movie.people("director"), *movie.people("writer")]
        for ordering, credit in enumerate(credits_, start=1):
            played = (
                json.dumps(credit.character.split(" / "), ensure_ascii=False)
                if credit.character
                else None
            )
            category = "actor" if credit.role == "cast" else credit.role
            yield movie.site_id, ordering, credit.person_id, category, None, played
    elif name == "title.akas" and movie.kind == "movie":
        yield movie.site_id, 1, original, None, None, "original", None, 1
        yield movie.site_id, 2, movie.title, "US", "en", "imdbDisplay", None, 0
    elif name == "name.basics":
        yield from (
            (credit.person_id, credit.name, None, None, "actor", None) for credit in movie.credits
        )
