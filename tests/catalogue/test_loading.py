"""What an import brings into the catalogue, and what it leaves as it is."""

from dataclasses import replace
from pathlib import Path

import pytest

from moviecrawler.basics.errors import ExtractionError
from moviecrawler.catalogue.csv_import import CsvTitles
from moviecrawler.catalogue.loading import Imported, load
from moviecrawler.catalogue.rows import ImportRow
from moviecrawler.catalogue.wikidata_import import WikidataCrosswalk
from tests.catalogued import NOW, Catalogued, judged, outcome, page, row, wikidata
from tests.stored import board_of


@pytest.mark.promise(
    "Titles come from IMDb's datasets, TMDB's exports, Wikidata's file and CSV, each row once."
)
def test_an_import_adds_and_changes_and_repeats_nothing(store: Catalogued) -> None:
    titles = {
        "A\tB\nC\rD\\E": "A\tB\nC\rD\\E",
        "\\N": "\\N",
        "Nul\0l": "Null",
        "\x1b[31mRed": "\x1b[31mRed",
    }
    rows = [row(number, title=title, popularity=None) for number, title in enumerate(titles)]
    assert store.bring_in(*rows)[:2] == (4, 0)
    assert store.sql("SELECT title FROM titles ORDER BY imdb_id") == [
        (title,) for title in titles.values()
    ]
    assert store.bring_in(*rows)[:2] == (0, 0)
    assert store.bring_in(row(1, title="\\N", popularity=12.5), rows[0])[:2] == (0, 1)
    assert {store.state("tt1000001", site).popularity for site in ("imdb", "metacritic")} == {12.5}
    # What a crawl has stored are the import's titles, too.
    store.write(page("imdb", "tt1000009", "Title 9", imdb_id="tt1000009"))
    store.record(outcome("tt1000009", page_id="tt1000009"))
    assert store.bring_in(row(9)).added == 0
    assert "tt1000009" not in store.due_ids()


def test_a_popularity_gives_way_to_that_of_the_same_or_a_higher_source(store: Catalogued) -> None:
    popularity = (
        "SELECT t.popularity, t.popularity_source::text, array_agg(DISTINCT s.popularity), t.votes"
        " FROM titles t JOIN title_sites s USING (title_id) GROUP BY t.title_id"
    )
    watched = ImportRow(tmdb_id=603, popularity=20.0, popularity_source="tmdb")
    given = ImportRow(imdb_id="tt1000001", popularity=80.0, popularity_source="given")
    steps: list[tuple[ImportRow, float, str, int]] = [
        (row(1, popularity=50.0, votes=9, tmdb_id=603), 50.0, "votes", 9),
        (row(1, popularity=51.0, votes=10), 51.0, "votes", 10),
        (watched, 20.0, "tmdb", 10),
        (row(1, popularity=52.0, votes=11), 20.0, "tmdb", 11),
        (replace(watched, popularity=90.0), 90.0, "tmdb", 11),
        (given, 80.0, "given", 11),
        (watched, 80.0, "given", 11),
        (replace(given, popularity=70.0), 70.0, "given", 11),
    ]
    for told, *expected, votes in steps:
        store.bring_in(told)
        assert store.sql(popularity) == [(*expected, expected[:1], votes)], told
        assert store.bring_in(told).changed == 0


@pytest.mark.promise("A source that does not tell a thing erases nothing.")
def test_a_source_that_does_not_tell_a_thing_erases_nothing(store: Catalogued) -> None:
    store.bring_in(
        row(1, original_title="Le titre", year=2001, runtime_minutes=90, votes=7, end_year=2009)
    )
    store.bring_in(ImportRow(imdb_id="tt1000001", title="Title", kind="movie"), source="csv")
    known = store.sql(
        "SELECT title, original_title, year, runtime_minutes, votes, end_year FROM titles"
    )
    assert known == [("Title", "Le titre", 2001, 90, 7, 2009)]


def test_the_scoreboard_has_tmdbs_id_of_a_film_and_of_a_series(store: Catalogued) -> None:
    """TMDB's popularity of a film is none of the series with its number."""
    for number, kind in ((1, "movie"), (2, "series")):
        imdb_id = f"tt{1_000_000 + number}"
        store.bring_in(row(number, popularity=None, kind=kind))
        store.write(page("imdb", imdb_id, f"Title {number}", imdb_id=imdb_id, kind=kind))
        ids = wikidata(number, f"m/title_{number}")
        counted = store.bring_in(replace(ids, tmdb_id=602 + number, tmdb_series_id=601 + number))
        assert (counted.changed, counted.ids) == (1, 1)
    store.bring_in(ImportRow(tmdb_id=603, popularity=70.0, popularity_source="tmdb"))
    assert [(row.kind, row.tmdb_id) for row in board_of(store.url)] == [
        ("movie", 603),
        ("series", 603),
    ]
    assert [store.state(f"tt100000{number}").popularity for number in (1, 2)] == [70, 0]


def test_a_broken_off_import_goes_on_where_it_was(store: Catalogued, tmp_path: Path) -> None:
    path = tmp_path / "titles.csv"
    path.write_text(
        "imdb_id,title,kind\n" + "".join(f"tt{1_000_000 + n},Title {n},movie\n" for n in range(50))
    )
    assert CsvTitles(path).import_into(store, "csv") == Imported(added=50)
    assert CsvTitles(path).import_into(store, "csv") is None
    # As if it had been killed after 30 rows, whose titles are gone since: they are not brought in
    # again.
    store.sql(
        "UPDATE imports SET finished_at = NULL, rows_done = 30;"
        " DELETE FROM titles; DELETE FROM title_sites"
    )
    assert CsvTitles(path).import_into(store, "csv") == Imported(added=20)


def test_a_crosswalk_that_was_cut_short_between_two_rows_is_refused(
    store: Catalogued, tmp_path: Path
) -> None:
    rows = [f"tt{1_000_000 + n},m/title_{n}\r\n" for n in range(100)]

    def bring(kept: int, name: str = "wikidata") -> None:
        (tmp_path / "query.csv").write_text(
            "imdb,rottentomatoes\r\n" + "".join(rows[:kept]), newline=""
        )
        WikidataCrosswalk(tmp_path / "query.csv").import_into(store, name)

    bring(100)
    told = "has the ids of 80 titles, and had those of 100 at the last import"
    with pytest.raises(ExtractionError, match=told):
        bring(80)
    # What was imported wholly is still known while the next version is broken off.
    load(store, "wikidata", "next", [row(1)], 1, NOW)
    with pytest.raises(ExtractionError, match=told):
        bring(80)
    bring(95)  # a few that Wikidata's people have taken out are no reason
    bring(1, "wikidata some.csv")  # nor is another file


def test_an_id_that_a_page_has_shown_is_not_overruled(store: Catalogued) -> None:
    store.bring_in(row(1), row(2))
    store.write(page("rottentomatoes", "m/right", "Title 1"))
    store.record(judged("m/right", store.title_id()))
    store.bring_in(wikidata(1, "m/other", "given", 4.0))
    store.bring_in(wikidata(2, "m/right", "given", 4.0))
    assert store.state("tt1000001", "rottentomatoes").site_id == "m/right"
    assert store.state("tt1000002", "rottentomatoes").site_id is None
