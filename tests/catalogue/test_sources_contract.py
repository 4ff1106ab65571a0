"""What every source of titles promises to an import, whatever it reads."""

from __future__ import annotations

import functools
import gzip
import tempfile
from collections.abc import Callable
from datetime import date
from pathlib import Path

import pytest

from moviecrawler.catalogue.csv_import import CsvTitles
from moviecrawler.catalogue.episodes_import import ImdbEpisodes
from moviecrawler.catalogue.file_source import FileSource
from moviecrawler.catalogue.imdb_import import BASICS, EPISODES, RATINGS, ImdbDatasets
from moviecrawler.catalogue.tmdb_import import TmdbExport
from moviecrawler.catalogue.wikidata_import import WikidataCrosswalk
from moviecrawler.errors import MovieCrawlerError
from moviecrawler.replica.collection import Collection
from moviecrawler.replica.datasets import Dataset

MANY = range(1, 2_001)


@functools.cache
def dataset(name: str) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        return Dataset(Collection(1, len(MANY), 0), Path(folder), name).write().read_bytes()


def imdb(folder: Path) -> FileSource:
    for name in (BASICS, RATINGS):
        (folder / name).write_bytes(dataset(name))
    return ImdbDatasets(str(folder), folder)


def tmdb(folder: Path) -> FileSource:
    lines = [f'{{"id":{number},"original_title":"T {number}","popularity":{number / 7}}}\n' for number in MANY]
    (folder / "export.json.gz").write_bytes(gzip.compress("".join(lines).encode(), mtime=0))
    return TmdbExport(str(folder / "export.json.gz"), folder, day=date(2026, 11, 5))


def wikidata(folder: Path) -> FileSource:
    lines = [f"tt{number:07},m/t_{number}\r\n" for number in MANY]
    (folder / "crosswalk.csv").write_text("imdb,rottentomatoes\r\n" + "".join(lines), encoding="utf-8", newline="")
    return WikidataCrosswalk(folder / "crosswalk.csv")


def mine(folder: Path) -> FileSource:
    (folder / "mine.csv").write_text("imdb_id\n" + "".join(f"tt{number:07}\n" for number in MANY), encoding="utf-8")
    return CsvTitles(folder / "mine.csv")


def episodes(folder: Path) -> FileSource:
    rows = {EPISODES: [f"tt{number:07}\ttt0000001\t1\t{number}\n" for number in MANY]}
    for name in ImdbEpisodes.files:
        lines = [gzip.decompress(dataset(name)).split(b"\n")[0].decode() + "\n", *rows.get(name, [])]
        (folder / name).write_bytes(gzip.compress("".join(lines).encode(), mtime=0))
    return ImdbEpisodes(str(folder), folder)


SOURCES: list[Callable[[Path], FileSource]] = [imdb, episodes, tmdb, wikidata, mine]


def leaves(kind: type[FileSource]) -> set[type[FileSource]]:
    return set().union(*map(leaves, kind.__subclasses__())) if kind.__subclasses__() else {kind}


def test_every_source_is_here(tmp_path: Path) -> None:
    assert {type(make(tmp_path)) for make in SOURCES} == leaves(FileSource)  # type: ignore[type-abstract]
    assert {make(tmp_path).name for make in SOURCES} == {"imdb", "episodes", "tmdb", "wikidata", "csv"}


@pytest.mark.parametrize("make", SOURCES)
def test_the_same_version_has_the_same_rows_in_the_same_order(
    tmp_path: Path, make: Callable[[Path], FileSource]
) -> None:
    """An import that was broken off skips the rows that it has."""
    source = make(tmp_path)
    version = source.version()
    broken_off = source.rows()
    next(broken_off)
    broken_off.close()  # type: ignore[attr-defined]
    rows = list(source.rows())
    assert source.damaged == 0
    assert len(rows) == len(MANY)
    again = make(tmp_path)
    assert again.version() == version
    assert list(again.rows()) == rows == list(again.rows())


@pytest.mark.parametrize("make", SOURCES)
def test_a_change_of_the_file_is_another_version(tmp_path: Path, make: Callable[[Path], FileSource]) -> None:
    source = make(tmp_path)
    version = source.version()
    make(tmp_path)
    changed = max(tmp_path.iterdir(), key=lambda path: path.stat().st_size)
    body = changed.read_bytes()
    unpacked = gzip.decompress(body) if changed.suffix == ".gz" else body
    lines = unpacked.splitlines(keepends=True)[:-1]
    changed.write_bytes(gzip.compress(b"".join(lines)) if changed.suffix == ".gz" else b"".join(lines))
    assert source.version() != version
    assert len(list(source.rows())) == len(MANY) - 1


@pytest.mark.parametrize("make", SOURCES)
def test_a_file_that_is_cut_or_gone_is_told(tmp_path: Path, make: Callable[[Path], FileSource]) -> None:
    source = make(tmp_path)
    for path in tmp_path.iterdir():
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2 + 1])
    with pytest.raises(MovieCrawlerError):
        list(source.rows())
    for path in tmp_path.iterdir():
        path.unlink()
    with pytest.raises(MovieCrawlerError, match="is not there"):
        source.version()
