"""IMDb's episodes come from its datasets as they are, and what is damaged there erases nothing."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from moviecrawler.catalogue.episodes_import import ImdbEpisodes
from moviecrawler.catalogue.loading import Done, Imported
from moviecrawler.datasets.files import DownloadError
from moviecrawler.errors import TransientStoreError
from tests.catalogue.files import FileServer, fetched

if TYPE_CHECKING:
    from tests.catalogue.catalogued import Catalogued

N = r"\N"
HEADERS = {
    "title.episode": "tconst\tparentTconst\tseasonNumber\tepisodeNumber",
    "title.basics": "tconst\ttitleType\tprimaryTitle\toriginalTitle\tisAdult\tstartYear\tendYear\truntimeMinutes\tgenres",
    "title.ratings": "tconst\taverageRating\tnumVotes",
}
PLACES = [
    "tt10000001 tt0000009 1 1",
    "tt1000002 tt0000009 1 0",
    f"tt1000003 tt0000009 {N} {N}",
    "tt1000004 tt0000009 2 1",
]
TITLES = {"tt10000001": "Half\\way \"there'", "tt1000003": "Unplaced", "tt1000004": "The End"}
RATINGS = ["tt1000004 7.0 2400", "tt10000001 8.5 100", "tt0000009 9.0 5000"]
STORED = [
    ("tt10000001", "tt0000009", 1, 1, "Half\\way \"there'", 2001, 8.5, 100),
    ("tt1000002", "tt0000009", 1, 0, None, None, None, None),  # title.basics has no row of it
    ("tt1000003", "tt0000009", None, None, "Unplaced", 2001, None, None),
    ("tt1000004", "tt0000009", 2, 1, "The End", 2001, 7.0, 2400),
]


def basics(titles: dict[str, str]) -> list[str]:
    rows = [f"{site_id}\ttvEpisode\t{title}\t{title}\t0\t2001\t{N}\t{N}\tDrama" for site_id, title in titles.items()]
    return [f"tt0000009\ttvSeries\tBrewick\tBrewick\t0\t1999\t{N}\t{N}\tDrama", *rows]


def rows_of(table: str) -> list[str]:
    if table == "title.basics":
        return basics(TITLES)
    return [row.replace(" ", "\t") for row in (PLACES if table == "title.episode" else RATINGS)]


def datasets(folder: Path, **changed: list[str]) -> ImdbEpisodes:
    """Write the files, each with the given rows in place of its own; return their source."""
    for table, header in HEADERS.items():
        rows = changed.get(table.removeprefix("title."), rows_of(table))
        text = "\n".join([header, *rows, ""]).encode(errors="surrogateescape")
        (folder / f"{table}.tsv.gz").write_bytes(gzip.compress(text))
    return ImdbEpisodes(str(folder), folder)


def bring(store: Catalogued, source: ImdbEpisodes, on_progress: Callable[[int], object] = lambda _: None) -> Imported:
    return source.load(store, "episodes", "1", Done(0, None), on_progress)


def stored(store: Catalogued) -> Any:
    columns = "imdb_id, series_imdb_id, season, episode, title, year, rating::float, votes"
    return store.sql(f'SELECT {columns} FROM imdb_episodes ORDER BY imdb_id COLLATE "C"')  # noqa: S608 - constants


def test_episodes_are_joined_whatever_the_order_of_the_files(store: Catalogued, tmp_path: Path) -> None:
    assert bring(store, datasets(tmp_path)) == Imported(added=4, changed=0, removed=0)
    assert stored(store) == STORED
    backwards = {table.removeprefix("title."): rows_of(table)[::-1] * 2 for table in HEADERS}
    assert bring(store, datasets(tmp_path, **backwards)) == Imported()


def test_what_has_left_whole_files_leaves_the_table_and_all_else_stays(store: Catalogued, tmp_path: Path) -> None:
    bring(store, datasets(tmp_path))
    places, ratings = rows_of("title.episode"), rows_of("title.ratings")
    places = [places[0], places[2], places[3].replace("\t2\t", "\t3\t"), "tt1000005\ttt0000009\t3\t2"]
    source = datasets(tmp_path, episode=places, ratings=[ratings[0], "tt1000005\t6.1\t7"])
    assert bring(store, source) == Imported(added=1, changed=2, removed=1)
    assert (
        stored(store)
        == [
            (*STORED[0][:6], None, None),  # its rating has left
            STORED[2],
            ("tt1000004", "tt0000009", 3, *STORED[3][3:]),
            ("tt1000005", "tt0000009", 3, 2, None, None, 6.1, 7),
        ]
    )


DAMAGED = [
    *(("episode", f"tt1000002\ttt0000009\t{rest}") for rest in ("1", "1\tx", "1\t9999999999")),
    ("episode", "tt1000002\tnm0000009\t1\t1"),
    ("basics", "tt1000003\ttvEpisode\tBad \udcff\tBad\t0\t2001\t\\N\t\\N\tDrama"),
    ("basics", "tt1000003\ttvEpisode\tShort"),
    ("basics", f"tt1000003\ttvEpisode\t{'x' * 501}\tLong\t0\t2001\t{N}\t{N}\tDrama"),
    *(("ratings", f"tt1000004\t{rest}") for rest in ("7.0", "0.0\t10", "7.0\t99999999999")),
]
CUTS: list[Callable[[bytes], bytes]] = [
    lambda body: body[:-20],
    lambda body: body[:-8] + bytes(8),  # another checksum
    lambda body: gzip.compress(gzip.decompress(body)[:-3]),
]


def test_a_damaged_row_erases_nothing(store: Catalogued, tmp_path: Path) -> None:
    bring(store, datasets(tmp_path))
    for table, damaged in DAMAGED:
        # Neither its own row nor another one is there, and what is, is as it was.
        others = [row for row in rows_of(f"title.{table}") if not row.startswith(damaged[:9])][:-1]
        source = datasets(tmp_path, **{table: [*others, damaged]})
        assert bring(store, source) == Imported(), damaged
        assert source.damaged == 1, damaged
    assert stored(store) == STORED


def test_a_file_that_is_not_whole_changes_nothing_and_is_fetched_anew(store: Catalogued, tmp_path: Path) -> None:
    bring(store, datasets(tmp_path))
    datasets(tmp_path, episode=rows_of("title.episode")[:1], ratings=[])  # so that much would change
    whole = {path.name: path.read_bytes() for path in tmp_path.glob("*.gz")}
    with FileServer() as server:
        source = ImdbEpisodes(server.url, tmp_path / "data")
        for table in HEADERS:
            for cut in CUTS:
                name = f"{table}.tsv.gz"
                server.files = {f"/{each}": body for each, body in {**whole, name: cut(whole[name])}.items()}
                with pytest.raises(DownloadError, match=f"{name} is no whole gzip file, and is fetched anew next time"):
                    bring(store, fetched(source))
                assert not (tmp_path / "data" / "datasets" / f"{name}.part").exists()
    assert stored(store) == STORED


def test_an_import_that_is_killed_leaves_the_table_as_it_was(store: Catalogued, tmp_path: Path) -> None:
    bring(store, datasets(tmp_path))
    source = datasets(tmp_path, episode=rows_of("title.episode")[:1], ratings=[])

    def kill(_: int) -> None:
        store.sql(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )

    with pytest.raises(TransientStoreError):
        bring(store, source, kill)
    assert stored(store) == STORED
    assert bring(store, source) == Imported(added=0, changed=1, removed=3)
