"""Wikidata's ids of one film on several sites, and saved answers that are not whole."""

from __future__ import annotations

from pathlib import Path

import pytest

from moviecrawler.catalogue.wikidata_import import PROPERTIES, QUERY, WikidataCrosswalk
from moviecrawler.errors import MovieCrawlerError

TRACE = (
    "tt00000SPARQL-QUERY: queryStr=SELECT ?imdb ?rottentomatoes WHERE {}\n"
    "java.util.concurrent.TimeoutException\n"
    "\tat java.util.concurrent.FutureTask.get(FutureTask.java:205)\n"
)
"""What the service writes into a row when its time is up."""


def saved(tmp_path: Path, text: str) -> WikidataCrosswalk:
    path = tmp_path / "crosswalk.csv"
    path.write_bytes(text.encode())
    return WikidataCrosswalk(path)


def test_a_saved_answer_gives_each_films_ids(tmp_path: Path) -> None:
    source = saved(
        tmp_path,
        "imdb,rottentomatoes,metacritic,tmdb,tmdb_series\r\n"
        "tt0000001,m/salt_harbour,movie/salt-harbour,11,\r\n"
        "tt0000002,tv/brewick,,,11\r\n"
        # What names no title of the site is left out.
        "tt0000003,m/\x1b[31mred,movie/../../etc,99999999999,\r\n"
        "tt0000004,,game/salt,,\r\n"
        "nm0000001,m/person,movie/salt,,\r\n",
    )
    assert source.version()
    rows = list(source.rows())
    assert [(row.imdb_id, row.site_ids, row.tmdb_id, row.tmdb_series_id) for row in rows] == [
        ("tt0000001", {"rottentomatoes": "m/salt_harbour", "metacritic": "movie/salt-harbour"}, 11, None),
        ("tt0000002", {"rottentomatoes": "tv/brewick"}, None, 11),
    ]
    assert {(row.id_source, row.id_confidence) for row in rows} == {("wikidata", 2.0)}


def test_an_id_that_is_given_twice_counts_less(tmp_path: Path) -> None:
    pairs = ["1,m/salt", "1,m/salt_2001", "2,m/lamp", "3,m/lamp", "4,m/river", "4,m/river"]
    source = saved(tmp_path, "imdb,rottentomatoes\r\n" + "".join(f"tt000000{pair}\r\n" for pair in pairs))
    assert [(row.imdb_id, row.site_ids["rottentomatoes"], row.id_confidence) for row in source.rows()] == [
        ("tt0000001", "m/salt", 1.0),
        ("tt0000002", "m/lamp", 1.0),
        ("tt0000003", "m/lamp", 1.0),
        ("tt0000004", "m/river", 2.0),
    ]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("imdb,rottentomatoes\r\ntt0000001,m/salt\r\n" + TRACE, "time limit"),
        ("imdb,rottentomatoes\r\ntt0000001,m/salt\r\ntt0000002,m/la", "inside a line"),
        ("imdb,rottentomatoes\r\ntt0000001,m/salt", "inside a line"),
        ("imdb,rottentomatoes\r\ntt0000001,m/salt\r\ntt0000002\r\n", "line 3 has 1 cells, not 2"),
        ("imdb,rottentomatoes\r\ntt0000001,m/salt,x\r\n", "line 2 has 3 cells, not 2"),
        ('imdb,rottentomatoes\r\ntt0000001,"m/sa\r\n', "line"),
        ("<html><body>502</body></html>\n", "columns"),
        ("imdb,director\r\ntt0000001,Levin\r\n", "needed are imdb and one of"),
        ("", "inside a line|columns"),
    ],
)
def test_an_answer_that_is_not_whole_is_refused(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(MovieCrawlerError, match=told):
        saved(tmp_path, text).version()
    with pytest.raises(MovieCrawlerError, match=told):
        list(saved(tmp_path, text).rows())


def test_an_answer_of_the_query_that_is_run_by_hand_is_read(tmp_path: Path) -> None:
    columns = QUERY.split(" WHERE")[0].removeprefix("SELECT ").split()
    assert {column.lstrip("?") for column in columns} == {"imdb", *PROPERTIES}
    lines = ["imdb,rottentomatoes,metacritic,tmdb", "tt0000001,m/salt,,", "tt0000001,,movie/salt,", "tt0000001,,,11"]
    source = saved(tmp_path, "".join(f"{line}\r\n" for line in lines))
    (row,) = source.rows()
    assert (row.site_ids, row.tmdb_id) == ({"rottentomatoes": "m/salt", "metacritic": "movie/salt"}, 11)
