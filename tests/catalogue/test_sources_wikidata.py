"""Wikidata's ids of one film on several sites, and answers of its service that are not whole."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from moviecrawler.catalogue.wikidata_import import (
    BY_HAND_QUERY,
    PROPERTIES,
    WikidataCrosswalk,
    count_query,
    query,
    read_crosswalk,
)
from moviecrawler.datasets.downloads import DownloadError
from moviecrawler.errors import ExtractionError, MovieCrawlerError
from tests.catalogue.files import Asked, FileServer, Reply, fetched

TRACE = (
    "tt00000SPARQL-QUERY: queryStr=SELECT ?imdb ?rottentomatoes WHERE {}\n"
    "java.util.concurrent.TimeoutException\n"
    "\tat java.util.concurrent.FutureTask.get(FutureTask.java:205)\n"
)
"""What the service writes into a row when its time is up."""


def saved(tmp_path: Path, text: str) -> WikidataCrosswalk:
    path = tmp_path / "crosswalk.csv"
    path.write_bytes(text.encode())
    return WikidataCrosswalk(str(path), tmp_path, now=datetime.now(UTC))


def test_a_saved_answer_gives_each_films_ids(tmp_path: Path) -> None:
    source = saved(
        tmp_path,
        "imdb,rottentomatoes,metacritic,tmdb,tmdb_series\r\n"
        "tt0000001,m/salt_harbour,movie/salt-harbour,11,\r\n"
        "tt0000002,tv/brewick,,,11\r\n",
    )
    assert source.version()
    rows = list(source.rows())
    assert [(row.imdb_id, row.site_ids, row.tmdb_id, row.tmdb_series_id) for row in rows] == [
        ("tt0000001", {"rottentomatoes": "m/salt_harbour"}, None, None),
        ("tt0000001", {"metacritic": "movie/salt-harbour"}, None, None),
        ("tt0000001", {}, 11, None),
        ("tt0000002", {"rottentomatoes": "tv/brewick"}, None, None),
        ("tt0000002", {}, None, 11),
    ]
    assert {(row.id_source, row.id_confidence) for row in rows} == {("wikidata", 2.0)}
    assert source.position == source.total


def test_what_names_no_title_of_the_site_is_left_out(tmp_path: Path) -> None:
    source = saved(
        tmp_path,
        "imdb,rottentomatoes,metacritic,tmdb\r\n"
        "tt0000001,m/dune,movie/dune,603\r\n"
        "tt0000002,m/\x1b[31mred,movie/../../etc,99999999999\r\n"
        "tt0000003,,game/salt,\r\n"
        "nm0000001,m/person,movie/salt,\r\n",
    )
    source.version()
    assert [(row.imdb_id, row.site_ids, row.tmdb_id) for row in source.rows()] == [
        ("tt0000001", {"rottentomatoes": "m/dune"}, None),
        ("tt0000001", {"metacritic": "movie/dune"}, None),
        ("tt0000001", {}, 603),
    ]


def test_an_id_that_is_given_twice_counts_less(tmp_path: Path) -> None:
    source = saved(
        tmp_path,
        "imdb,rottentomatoes\r\ntt0000001,m/salt\r\ntt0000001,m/salt_2001\r\ntt0000002,m/lamp\r\ntt0000003,m/lamp\r\n"
        "tt0000004,m/river\r\ntt0000004,m/river\r\n",
    )
    assert [(row.imdb_id, row.site_ids, row.id_confidence) for row in source.rows()] == [
        ("tt0000001", {"rottentomatoes": "m/salt"}, 1.0),
        ("tt0000002", {"rottentomatoes": "m/lamp"}, 1.0),
        ("tt0000003", {"rottentomatoes": "m/lamp"}, 1.0),
        ("tt0000004", {"rottentomatoes": "m/river"}, 2.0),
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


def test_an_answer_without_rows_is_no_damage() -> None:
    assert read_crosswalk(["?imdb,?tmdb\r\n"], "x") == []


class Service:
    """Answers as the query service does: CSV of the rows that it knows, or their number."""

    def __init__(self) -> None:
        self.known = {column: [("tt0000001", "7"), ("tt0000002", "8")] for column in PROPERTIES}
        self.known["rottentomatoes"] = [(f"tt{number:07}", f"m/t_{number}") for number in range(1, 4_001)]
        self.known["metacritic"] = [("tt0000001", "movie/t-1")]
        self.forgets = 0
        """Rows at the end that an answer lacks."""
        self.kind = "text/csv;charset=utf-8"

    def __call__(self, asked: Asked) -> Reply:
        assert asked.headers["accept"] == "text/csv"
        given = {"Content-Type": self.kind}
        for column, rows in self.known.items():
            if asked.query["query"] == count_query(column):
                return 200, given, f"rows\r\n{len(rows)}\r\n".encode()
            if asked.query["query"] == query(column):
                lines = [f"imdb,{column}\r\n", *(f"{imdb_id},{value}\r\n" for imdb_id, value in rows)]
                return 200, given, "".join(lines[: len(lines) - self.forgets]).encode()
        return 400, {}, b"malformed"


@pytest.fixture
def service() -> Service:
    return Service()


@pytest.fixture
def server(service: Service) -> Iterator[FileServer]:
    with FileServer() as serving:
        serving.replies["/sparql"] = service
        yield serving


def asking(server: FileServer, tmp_path: Path, later: timedelta = timedelta()) -> WikidataCrosswalk:
    return WikidataCrosswalk(f"{server.url}/sparql", tmp_path, now=datetime.now(UTC) + later)


def test_the_service_is_asked_for_each_site_and_at_most_once_a_day(server: FileServer, tmp_path: Path) -> None:
    source = fetched(asking(server, tmp_path))
    first = source.version()
    rows = list(source.rows())
    assert len(rows) == 4_005
    assert [row.tmdb_id for row in rows if row.tmdb_id] == [7, 8]
    asked = len(server.paths)
    assert asked == 3 * len(PROPERTIES)
    assert fetched(asking(server, tmp_path)).version() == first
    assert len(server.paths) == asked
    fetched(asking(server, tmp_path, timedelta(days=1, minutes=1)))
    assert len(server.paths) == 2 * asked


def test_an_answer_with_fewer_rows_than_counted_is_refused_and_the_last_one_kept(
    server: FileServer, service: Service, tmp_path: Path
) -> None:
    fetched(asking(server, tmp_path))
    service.forgets = 50
    later = asking(server, tmp_path, timedelta(days=2))
    with pytest.raises(ExtractionError, match="3950 rows of rottentomatoes, where 4000 were counted"):
        fetched(later)
    assert len(list(later.rows())) == 4_005
    assert sorted(path.name for path in (tmp_path / "wikidata").iterdir()) == sorted(
        f"{name}.csv" for name in PROPERTIES
    )


def test_a_row_that_somebody_edits_meanwhile_is_no_damage(server: FileServer, service: Service, tmp_path: Path) -> None:
    original = service.known["rottentomatoes"]

    def editing(asked: Asked) -> Reply:
        reply = service(asked)
        if asked.query["query"] == query("rottentomatoes"):
            service.known["rottentomatoes"] = original[:-2]
        return reply

    server.replies["/sparql"] = editing
    assert fetched(asking(server, tmp_path)).version()


def test_a_page_instead_of_csv_is_refused(server: FileServer, service: Service, tmp_path: Path) -> None:
    service.kind = "text/html"
    with pytest.raises(DownloadError, match="text/html"):
        fetched(asking(server, tmp_path))


def test_an_answer_of_the_query_that_is_run_by_hand_is_read(tmp_path: Path) -> None:
    columns = BY_HAND_QUERY.split(" WHERE")[0].removeprefix("SELECT ").split()
    assert {column.lstrip("?") for column in columns} == {"imdb", *PROPERTIES}
    source = saved(
        tmp_path,
        "imdb,rottentomatoes,metacritic,tmdb\r\ntt0000001,m/salt,,\r\ntt0000001,,movie/salt,\r\ntt0000001,,,11\r\n",
    )
    assert [(row.site_ids, row.tmdb_id) for row in source.rows()] == [
        ({"rottentomatoes": "m/salt"}, None),
        ({"metacritic": "movie/salt"}, None),
        ({}, 11),
    ]
