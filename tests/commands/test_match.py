"""`scrapy match` needs a list and the titles that are at hand."""

import csv
import json
from contextlib import closing
from pathlib import Path

import pytest

from moviecrawler.pipelines.sqlite import SqliteStore
from moviecrawler.replica.process import ReplicaProcess
from tests import crawling
from tests.catalogued import Catalogued, page, row
from tests.dataset_files import put
from tests.runs import make_movie, record_of

TITLES = """imdb_id,title,year,runtime_minutes,directors,votes
tt0000001,Salt Harbour,2001,92,Mara Levin,90000
tt0000002,Salt Harbour,2001,,Ines Quarrie,12
tt0000003,千年の灯,1999,120,,5000
"""
FILMS = """site,site_id,title,year,runtime_minutes
my shelf,b,Salt Harbour,2001,92
my shelf,a,A Thousand Years (千年の灯),2000,121
my shelf,b,Salt Harbour,2001,92
my shelf,c,Brewick,,
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with two lists of titles."""
    (tmp_path / "titles.csv").write_text(TITLES, "utf-8")
    (tmp_path / "films.csv").write_text(FILMS, "utf-8")
    return tmp_path


@pytest.mark.promise("scrapy match finds the IMDb ids of a list of films.")
def test_one_line_a_film_in_their_order(folder: Path) -> None:
    ended = crawling.scrapy(
        "match", "films.csv", "--against", "titles.csv", data=folder, PYTHONIOENCODING="ascii"
    )
    assert ended.code == 0, ended.log
    lines = [json.loads(line) for line in ended.output.splitlines()]
    assert [(line["site_id"], line["imdb_id"], line["decision"]) for line in lines] == [
        ("b", "tt0000001", "accepted"),
        ("a", "tt0000003", "accepted"),
        ("b", "tt0000001", "accepted"),
        ("c", None, "refused"),
    ]
    assert lines[0] == {
        "site": "my shelf",
        "site_id": "b",
        "title": "Salt Harbour",
        "year": 2001,
        "imdb_id": "tt0000001",
        "decision": "accepted",
        "score": 2.5,
        "reasons": ["same title", "same year", "same runtime"],
        "others": [{"imdb_id": "tt0000002", "score": 0.75}],
    }


def test_without_a_second_file_stored_titles_and_the_datasets_are_compared(
    replica: ReplicaProcess, tmp_path: Path
) -> None:
    (tmp_path / "films.csv").write_text(
        "Name,Year\nSalt Harbour,2001\nBroken Lamp,1984\nNobody,\n,1999\n"
    )
    nothing = crawling.scrapy("match", "films.csv", data=tmp_path)
    assert nothing.code == 2
    assert "has no IMDb titles to compare with; crawl first" in nothing.log
    store = SqliteStore(tmp_path, with_csv=False)
    store.open()
    store.write([record_of(make_movie(1, title="Salt Harbour", year=2001))])
    store.close()
    folder = tmp_path / "datasets"
    folder.mkdir()
    put(folder, "title.basics", r"tt0000002|movie|Broken Lamp|Broken Lamp|1984|\N|90|Drama")
    put(folder, "title.ratings", "tt0000002|7.0|5000")
    ended = crawling.scrapy("match", "films.csv", "--format", "csv", data=tmp_path)
    assert ended.code == 1
    assert "compared with 2 titles of" in ended.log
    assert "1 films could not be read, the first: films.csv, line 5 has no title" in ended.log
    answers = list(csv.reader(ended.output.splitlines()))
    assert answers == [
        ["title", "year", "imdb_id", "decision", "reason"],
        ["Salt Harbour", "2001", "tt0000001", "accepted", "same title, same year"],
        ["Broken Lamp", "1984", "tt0000002", "accepted", "same title, same year"],
        ["Nobody", "", "", "refused", "but no title is like it"],
        ["", "", "", "refused", "films.csv, line 5 has no title"],
    ]
    # And what was found is a list for a crawl.
    (tmp_path / "found.csv").write_text(ended.output, newline="")
    crawled = crawling.crawl("imdb", "file=found.csv", "via=pages", data=tmp_path, replica=replica)
    assert "2 titles asked for: 2 absent" in crawled.log
    assert "rows without an id or URL of imdb: 2 of 4, first line 4 of found.csv" in crawled.log


def test_with_a_catalogue_its_titles_are_compared(folder: Path, database_url: str) -> None:
    """Directors and votes are those of IMDb's page where one was read.

    Other sites' titles are titles, too.
    """
    with closing(Catalogued(database_url)) as store:
        store.bring_in(
            row(1, title="Salt Harbour", year=2001, runtime_minutes=92, popularity=80.0),
            row(2, title="Salt Harbour", year=2001, popularity=5.0),
            row(3, title="Sennen", year=1999, runtime_minutes=120),
        )
        store.write(
            page(
                "imdb", "tt1000003", "Sennen", year=1999, imdb_id="tt1000003", runtime_minutes=120
            ),
            page(
                "metacritic",
                "movie/x",
                "A Thousand Years",
                year=1999,
                imdb_id="tt1000003",
                runtime_minutes=120,
            ),
        )
    ended = crawling.scrapy("match", "films.csv", data=folder, DATABASE_URL=database_url)
    assert ended.code == 0, ended.log
    lines = [json.loads(line) for line in ended.output.splitlines()]
    assert [(line["site_id"], line["imdb_id"]) for line in lines] == [
        ("b", "tt1000001"),
        ("a", "tt1000003"),
        ("b", "tt1000001"),
        ("c", None),
    ]
    assert lines[1]["reasons"][0] == "same title"
