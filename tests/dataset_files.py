"""Files of IMDb's datasets, of rows in which `|` stands for a tab."""

import gzip
from datetime import UTC, datetime
from pathlib import Path

from moviecrawler.datasets.tables import COLUMNS, Tables
from moviecrawler.datasets.titles import read_titles
from moviecrawler.items import EncodedMovie, Movie

READ_AT = datetime(2026, 1, 2, tzinfo=UTC)


def put(folder: Path, name: str, *rows: str | bytes) -> Path:
    """Write a dataset with just the columns that are read."""
    lines = [
        row if isinstance(row, bytes) else row.encode()
        for row in (COLUMNS[name].replace(", ", "|"), *rows)
    ]
    path = folder / f"{name}.tsv.gz"
    path.write_bytes(
        gzip.compress(b"".join(line.replace(b"|", b"\t") + b"\n" for line in lines), 0, mtime=0)
    )
    return path


def movies_of(tables: Tables) -> list[Movie]:
    """Return the movies that tables have of what is wanted."""
    titles = read_titles(tables, READ_AT)
    return [title.movie() for title in titles if isinstance(title, EncodedMovie)]
