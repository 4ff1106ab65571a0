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
IMDB = {
    "title.basics.tsv.gz": (
        "tconst\ttitleType\tprimaryTitle\toriginalTitle\tisAdult\tstartYear\tendYear\truntimeMinutes\tgenres",
        "tt{:07}\tmovie\tLamp\tLamp\t0\t2001\t\\N\t90\tDrama",
    ),
    "title.ratings.tsv.gz": ("tconst\taverageRating\tnumVotes", "tt{:07}\t7.0\t10"),
    "title.episode.tsv.gz": ("tconst\tparentTconst\tseasonNumber\tepisodeNumber", "tt{:07}\ttt9999999\t1\t{}"),
}


def write(path: Path, header: str, row: str) -> Path:
    text = "".join(f"{line}\n" for line in [*[header] * bool(header), *(row.format(n, n) for n in MANY)]).encode()
    path.write_bytes(gzip.compress(text, mtime=0) if path.suffix == ".gz" else text)
    return path


def imdb(folder: Path) -> FileSource:
    for name in ImdbDatasets.files:
        write(folder / name, *IMDB[name])
    return ImdbDatasets(str(folder), folder)


def episodes(folder: Path) -> FileSource:
    for name in ImdbEpisodes.files:
        write(folder / name, *IMDB[name])
    return ImdbEpisodes(str(folder), folder)


def tmdb(folder: Path) -> FileSource:
    path = write(folder / "export.json.gz", "", '{{"id":{},"original_title":"T","popularity":1.5}}')
    return TmdbExport(str(path), folder, day=date(2026, 11, 5))


def wikidata(folder: Path) -> FileSource:
    return WikidataCrosswalk(write(folder / "crosswalk.csv", "imdb,rottentomatoes", "tt{:07},m/t_{}"))


def mine(folder: Path) -> FileSource:
    return CsvTitles(write(folder / "mine.csv", "imdb_id", "tt{:07}"))


@pytest.mark.parametrize("make", [imdb, episodes, tmdb, wikidata, mine])
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
