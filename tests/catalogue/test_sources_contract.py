"""What every source of titles promises to an import, whatever it reads."""

import gzip
from collections.abc import Callable
from datetime import date
from pathlib import Path

import pytest

from moviecrawler.basics.errors import MovieCrawlerError
from moviecrawler.catalogue.csv_import import CsvTitles
from moviecrawler.catalogue.episodes_import import ImdbEpisodes
from moviecrawler.catalogue.file_source import FileSource
from moviecrawler.catalogue.imdb_import import ImdbDatasets, Selection
from moviecrawler.catalogue.tmdb_import import TmdbExport
from moviecrawler.catalogue.wikidata_import import WikidataCrosswalk
from tests.dataset_files import put

MANY = range(1, 2_001)
ROWS = {
    "title.basics": "tt{0:07}|movie|Lamp|Lamp|2001|\\N|90|Drama",
    "title.ratings": "tt{0:07}|7.0|10",
    "title.episode": "tt{0:07}|tt9999999|1|{0}",
}


def imdb(folder: Path) -> str:
    """Write datasets; return the folder."""
    for name, row in ROWS.items():
        put(folder, name, *(row.format(n) for n in MANY))
    return str(folder)


def write(path: Path, row: str, *header: str) -> Path:
    text = "".join(f"{line}\n" for line in (*header, *(row.format(n) for n in MANY))).encode()
    path.write_bytes(gzip.compress(text, mtime=0) if path.suffix == ".gz" else text)
    return path


TMDB = '{{"id":{0},"original_title":"T","popularity":1.5}}'


@pytest.mark.parametrize(
    "make",
    [
        lambda folder: ImdbDatasets(imdb(folder), folder, Selection()),
        lambda folder: ImdbEpisodes(imdb(folder), folder),
        lambda folder: TmdbExport(
            str(write(folder / "export.json.gz", TMDB)), folder, day=date(2026, 11, 5)
        ),
        lambda folder: WikidataCrosswalk(
            write(folder / "all.csv", "tt{0:07},m/t_{0}", "imdb,rottentomatoes")
        ),
        lambda folder: CsvTitles(write(folder / "mine.csv", "tt{0:07}", "imdb_id")),
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
    files = source.paths
    changed = max(files, key=lambda path: path.stat().st_size)
    body = changed.read_bytes()
    is_gzip = changed.suffix == ".gz"
    fewer = b"".join((gzip.decompress(body) if is_gzip else body).splitlines(keepends=True)[:-1])
    changed.write_bytes(gzip.compress(fewer) if is_gzip else fewer)
    assert source.version() != version
    for path in files:
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2 + 1])
    try:
        list(source.rows())
    except MovieCrawlerError:
        pass
    else:
        assert source.damaged == 1
    for path in files:
        path.unlink()
    with pytest.raises(MovieCrawlerError, match="is not there"):
        source.version()
