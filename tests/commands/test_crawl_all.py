"""`scrapy crawl all`: the sites in one process, with one summary."""

import re
from pathlib import Path

import pytest

from moviecrawler.replica.process import ReplicaProcess
from tests.crawling import Finished, change, scrapy
from tests.services.replica import COLLECTION, TITLES

SITES = ("imdb", "metacritic", "rottentomatoes")
FAST = ["-s", "RETRY_TIMES=0", "-s", "RETRY_BACKOFF=0.02"]


def ids_of(number: int) -> dict[str, str]:
    """Return the ids of the replica's n-th title, by site."""
    movies = COLLECTION.title(number).movies
    return {site: str(movie.site_id) for site, movie in movies.items()}


def stored(finished: Finished) -> set[tuple[str, str]]:
    return {(movie.site, str(movie.site_id)) for movie in finished.movies}


@pytest.fixture
def everywhere() -> list[dict[str, str]]:
    """Return titles that all sites have, and whose page on Metacritic names the IMDb id."""
    return [
        ids_of(number)
        for number in range(TITLES)
        if len(movies := COLLECTION.title(number).movies) == 3 and movies["metacritic"].imdb_id
    ]


@pytest.mark.promise("scrapy crawl all fetches each title on every site where its id is known.")
def test_titles_of_a_file_are_fetched_wherever_their_ids_are_known(
    replica: ReplicaProcess, everywhere: list[dict[str, str]], tmp_path: Path
) -> None:
    of_wikidata, of_a_page, alone = everywhere[:3]
    (tmp_path / "wikidata.csv").write_text(
        "imdb,metacritic,rottentomatoes\n"
        f"{of_wikidata['imdb']},{of_wikidata['metacritic']},{of_wikidata['rottentomatoes']}\n"
        f"{of_a_page['imdb']},,{of_a_page['rottentomatoes']}\n"
    )
    (tmp_path / "films.csv").write_text(
        "Title,Year,imdb_id,metacritic_id\n"
        f"One,2001,{of_wikidata['imdb']},\n"
        f"Two,2002,,{of_a_page['metacritic']}\n"
        f"Three,2003,{alone['imdb']},\nFour,2004,,\n"
    )
    given = ["-a", "file=films.csv", "-a", "wikidata=wikidata.csv"]
    finished = scrapy("crawl", "all", *given, data=tmp_path, replica=replica)
    assert finished.code == 0, finished.log
    expected = {*of_wikidata.items(), *of_a_page.items(), ("imdb", alone["imdb"])}
    assert stored(finished) == expected
    lines = finished.log.splitlines()
    assert "all: 7 titles asked for: 7 stored" in lines
    assert (
        f"  unknown: 1 on imdb: line 5 of films.csv; 2 on metacritic: {alone['imdb']}, line 5 of "
        f"films.csv; 2 on rottentomatoes: {alone['imdb']}, line 5 of films.csv" in lines
    )
    again = scrapy("crawl", "all", "-a", f"ids={of_a_page['imdb']}", data=tmp_path, replica=replica)
    assert "all: 3 titles asked for: 3 stored" in again.log  # known from movies.sqlite3


def test_the_catalogue_knows_ids_of_other_sites(
    database_url: str, replica: ReplicaProcess, everywhere: list[dict[str, str]], tmp_path: Path
) -> None:
    ids = everywhere[0]
    (tmp_path / "known.csv").write_text(
        f"imdb_id,metacritic_id,rottentomatoes_id\n{','.join(ids[site] for site in SITES)}\n"
    )
    given = ["import", "csv", "--from", "known.csv"]
    known = scrapy("catalogue", *given, data=tmp_path, DATABASE_URL=database_url)
    assert known.code == 0, known.log
    named = f"ids={ids['metacritic']}"
    finished = scrapy(
        "crawl", "all", "-a", named, data=tmp_path, replica=replica, DATABASE_URL=database_url
    )
    assert finished.code == 0, finished.log
    assert stored(finished) == set(ids.items())


def test_without_titles_each_site_has_its_usual_list_and_the_worst_end_counts(
    replica: ReplicaProcess, tmp_path: Path
) -> None:
    finished = scrapy("crawl", "all", "-a", "limit=3", data=tmp_path, replica=replica)
    assert finished.code == 0
    assert len(re.findall(r"^  \w+: 3 titles asked for: 3 stored", finished.log, re.MULTILINE)) == 3
    budgets = 'SITE_BUDGETS={"imdb": {"per_day": 2}}'
    limited = scrapy(
        "crawl", "all", "-a", "limit=4", "-s", budgets, data=tmp_path / "2", replica=replica
    )
    assert limited.code == 3, limited.log
    change(replica, faults={"500": 1})
    failed = scrapy("crawl", "all", "-a", "limit=4", *FAST, data=tmp_path / "3", replica=replica)
    assert failed.code == 1
    assert "Traceback" not in failed.log
