"""IMDb's episodes come from its datasets as they are, and what is damaged there erases nothing."""

from collections.abc import Callable
from pathlib import Path

import pytest

from moviecrawler.basics.errors import ExtractionError, TransientStoreError
from moviecrawler.catalogue.episodes_import import ImdbEpisodes
from moviecrawler.catalogue.loading import Done, Imported
from tests.catalogued import Catalogued
from tests.dataset_files import put

N = r"\N"
PLACES = [
    "tt10000001 tt0000009 1 1",
    "tt1000002 tt0000009 1 0",
    f"tt1000003 tt0000009 {N} {N}",
    "tt1000004 tt0000009 2 1",
]
TITLES = {"tt10000001": "Half\\way_\"there'", "tt1000003": "Unplaced", "tt1000004": "The_End"}
BASICS = [
    f"{site_id} tvEpisode {title} {title} 2001 {N} {N} Drama" for site_id, title in TITLES.items()
]
ROWS = {
    "episode": PLACES,
    "basics": [f"tt0000009 tvSeries Brewick Brewick 1999 {N} {N} Drama", *BASICS],
    "ratings": ["tt1000004 7.0 2400", "tt10000001 8.5 100", "tt0000009 9.0 5000"],
}
STORED = [
    ("tt10000001", "tt0000009", 1, 1, "Half\\way_\"there'", 2001, 8.5, 100),
    ("tt1000002", "tt0000009", 1, 0, None, None, None, None),  # title.basics has no row of it
    ("tt1000003", "tt0000009", None, None, "Unplaced", 2001, None, None),
    ("tt1000004", "tt0000009", 2, 1, "The_End", 2001, 7.0, 2400),
]


def datasets(folder: Path, **changed: list[str]) -> ImdbEpisodes:
    """Write the files, each with the given rows in place of its own; return their source.

    The rows have spaces between their cells.
    """
    for name, rows in {**ROWS, **changed}.items():
        put(
            folder,
            f"title.{name}",
            *(row.replace(" ", "|").encode(errors="surrogateescape") for row in rows),
        )
    return ImdbEpisodes(str(folder), folder)


def bring(
    store: Catalogued, source: ImdbEpisodes, on_progress: Callable[[int], object] = lambda _: None
) -> Imported:
    return source.load(store, "episodes", "1", Done(0, None), on_progress)


def stored(store: Catalogued) -> list[tuple[object, ...]]:
    columns = "imdb_id, series_imdb_id, season, episode, title, year, rating::float, votes"
    # S608: the columns are ours.
    ordered = f'SELECT {columns} FROM imdb_episodes ORDER BY imdb_id COLLATE "C"'  # noqa: S608
    return list(store.sql(ordered))


def test_episodes_are_joined_whatever_the_order_of_the_files(
    store: Catalogued, tmp_path: Path
) -> None:
    assert bring(store, datasets(tmp_path)) == Imported(added=4)
    assert stored(store) == STORED
    assert (
        bring(store, datasets(tmp_path, **{name: rows[::-1] * 2 for name, rows in ROWS.items()}))
        == Imported()
    )
    # What has left whole files leaves the table, and all else stays.
    places = [PLACES[0], PLACES[2], PLACES[3].replace(" 2 ", " 3 "), "tt1000005 tt0000009 3 2"]
    source = datasets(tmp_path, episode=places, ratings=[ROWS["ratings"][0], "tt1000005 6.1 7"])
    assert bring(store, source) == Imported(added=1, changed=2, removed=1)
    unrated = (*STORED[0][:6], None, None)
    moved = ("tt1000004", "tt0000009", 3, *STORED[3][3:])
    added = ("tt1000005", "tt0000009", 3, 2, None, None, 6.1, 7)
    assert stored(store) == [unrated, STORED[2], moved, added]


DAMAGED = [
    *(("episode", f"tt1000002 tt0000009 {rest}") for rest in ("1", "1 x", "1 9999999999")),
    ("episode", "tt1000002 nm0000009 1 1"),
    ("basics", f"tt1000003 tvEpisode Bad\udcff Bad 2001 {N} {N} Drama"),
    ("basics", "tt1000003 tvEpisode Short"),
    ("basics", f"tt1000003 tvEpisode {'x' * 501} Long 2001 {N} {N} Drama"),
    *(("ratings", f"tt1000004 {rest}") for rest in ("7.0", "0.0 10", "7.0 99999999999")),
]


def test_a_damaged_row_erases_nothing(store: Catalogued, tmp_path: Path) -> None:
    bring(store, datasets(tmp_path))
    for name, damaged in DAMAGED:
        # Neither its own row nor another one is there, and what is, is as it was.
        others = [row for row in ROWS[name] if not row.startswith(damaged[:9])][:-1]
        source = datasets(tmp_path, **{name: [*others, damaged]})
        assert bring(store, source) == Imported(), damaged
        assert source.damaged == 1, damaged
    assert stored(store) == STORED


def test_an_import_that_is_killed_or_of_a_file_that_is_cut_leaves_the_table_as_it_was(
    store: Catalogued, tmp_path: Path
) -> None:
    bring(store, datasets(tmp_path))
    source = datasets(tmp_path, episode=PLACES[:1], ratings=[])  # so that much would change

    def kill(_: int) -> None:
        store.sql(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )

    with pytest.raises(TransientStoreError):
        bring(store, source, kill)
    assert stored(store) == STORED
    path = tmp_path / "title.ratings.tsv.gz"
    whole = path.read_bytes()
    path.write_bytes(whole[:-4])
    with pytest.raises(ExtractionError):
        bring(store, source)
    assert stored(store) == STORED
    path.write_bytes(whole)
    assert bring(store, source) == Imported(changed=1, removed=3)
