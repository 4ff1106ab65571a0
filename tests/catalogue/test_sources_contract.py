"""What every source of titles promises to an import, whatever it reads."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from datetime import date
from pathlib import Path

import pytest

from moviecrawler.catalogue.csv_import import CsvTitles
from moviecrawler.catalogue.episodes_import import ImdbEpisodes
from moviecrawler.catalogue.file_source import FileSource
from moviecrawler.catalogue.imdb_import import ImdbDatasets
from moviecrawler.catalogue.tmdb_import import TmdbExport
from moviecrawler.catalogue.wikidata_import import WikidataCrosswalk
from moviecrawler.errors import MovieCrawlerError

MANY = range(1, 2_001)
FILES = {
    "title.basics.tsv.gz": (
        "tconst\ttitleType\tprimaryTitle\toriginalTitle\tisAdult\tstartYear\tendYear\truntimeMinutes\tgenres\n",
        "tt{0:07}\tmovie\tLamp\tLamp\t0\t2001\t\\N\t90\tDrama\n",
    ),
    "title.ratings.tsv.gz": ("tconst\taverageRating\tnumVotes\n", "tt{0:07}\t7.0\t10\n"),
    "title.episode.tsv.gz": ("tconst\tparentTconst\tseasonNumber\tepisodeNumber\n", "tt{0:07}\ttt9999999\t1\t{0}\n"),
    "export.json.gz": ("", '{{"id":{0},"original_title":"T","popularity":1.5}}\n'),
    "crosswalk.csv": ("imdb,rottentomatoes\n", "tt{0:07},m/t_{0}\n"),
    "mine.csv": ("imdb_id\n", "tt{0:07}\n"),
}


def write(folder: Path, *names: str) -> Path:
    """Write files; return the last one's path."""
    for name in names:
        header, row = FILES[name]
        text = (header + "".join(row.format(n) for n in MANY)).encode()
        (folder / name).write_bytes(gzip.compress(text, mtime=0) if name.endswith(".gz") else text)
    return folder / names[-1]


@pytest.mark.parametrize(
    "make",
    [
        lambda folder: ImdbDatasets(str(write(folder, *ImdbDatasets.files).parent), folder),
        lambda folder: ImdbEpisodes(str(write(folder, *ImdbEpisodes.files).parent), folder),
        lambda folder: TmdbExport(str(write(folder, "export.json.gz")), folder, day=date(2026, 11, 5)),
        lambda folder: WikidataCrosswalk(write(folder, "crosswalk.csv")),
        lambda folder: CsvTitles(write(folder, "mine.csv")),
    ],
    ids=["imdb", "episodes", "tmdb", "wikidata", "csv"],
)
def test_a_version_has_the_same_rows_in_the_same_order_and_a_file_that_is_cut_or_gone_is_told(
    tmp_path: Path, make: Callable[[Path], FileSource]
) -> None:
    """An import that was broken off skips the rows that it has."""
    source = make(tmp_path)
    version = source.version()
    broken_off = source.rows()
    next(broken_off)
    broken_off.close()  # type: ignore[attr-defined]
    rows = list(source.rows())
    assert (source.damaged, len(rows)) == (0, len(MANY))
    again = make(tmp_path)
    assert again.version() == version
    assert list(again.rows()) == rows == list(again.rows())
    # A change of a file is another version.
    files = [path for path in tmp_path.iterdir() if path.is_file()]
    changed = max(files, key=lambda path: path.stat().st_size)
    body = changed.read_bytes()
    is_gzip = changed.suffix == ".gz"
    fewer = b"".join((gzip.decompress(body) if is_gzip else body).splitlines(keepends=True)[:-1])
    changed.write_bytes(gzip.compress(fewer) if is_gzip else fewer)
    assert source.version() != version
    for path in files:
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2 + 1])
    with pytest.raises(MovieCrawlerError):
        list(source.rows())
    for path in files:
        path.unlink()
    with pytest.raises(MovieCrawlerError, match="is not there"):
        source.version()
