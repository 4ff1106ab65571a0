"""`scrapy match` needs two lists and nothing else."""

import json
from contextlib import closing
from pathlib import Path

import pytest

from tests import crawling
from tests.catalogue.catalogued import Catalogued, page, row

HEADER = "site,site_id,title,original_title,year,release_date,runtime_minutes,directors,votes"
TITLES = f"""{HEADER}
imdb,tt0000001,Salt Harbour,,2001,,92,Mara Levin,90000
imdb,tt0000002,Salt Harbour,,2001,,,Ines Quarrie,12
imdb,tt0000003,千年の灯,,1999,,120,,5000
"""
RECORDS = f"""{HEADER}
my shelf,b,Salt Harbour,,2001,,92,,
my shelf,a,A Thousand Years (千年の灯),,2000,,121,,
my shelf,b,Salt Harbour,,2001,,92,,
my shelf,c,Brewick,,,,,,
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "titles.csv").write_text(TITLES, "utf-8")
    (tmp_path / "records.csv").write_text(RECORDS, "utf-8")
    return tmp_path


@pytest.mark.promise("scrapy match finds the IMDb ids of a list of films.")
def test_one_line_a_film_in_their_order(folder: Path) -> None:
    ended = crawling.scrapy(
        "match", "records.csv", "--against", "titles.csv", data=folder, PYTHONIOENCODING="ascii"
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
        "imdb_id": "tt0000001",
        "decision": "accepted",
        "score": 2.5,
        "reasons": ["same title", "same year", "same runtime"],
        "others": [{"imdb_id": "tt0000002", "score": 0.75}],
    }


def test_without_titles_the_catalogue_is_matched_against(folder: Path, database_url: str) -> None:
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
    ended = crawling.scrapy("match", "records.csv", data=folder, DATABASE_URL=database_url)
    assert ended.code == 0, ended.log
    lines = [json.loads(line) for line in ended.output.splitlines()]
    assert [(line["site_id"], line["imdb_id"]) for line in lines] == [
        ("b", "tt1000001"),
        ("a", "tt1000003"),
        ("b", "tt1000001"),
        ("c", None),
    ]
    assert lines[1]["reasons"][0] == "same title"
