"""`lane=due` from an empty database to a complete scoreboard, on one worker and on several."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from scrapy.settings import Settings

from moviecrawler.addon import check
from moviecrawler.errors import ConfigurationError
from moviecrawler.items import ScoreKind, Site
from moviecrawler.replica.process import ReplicaProcess
from moviecrawler.spiders.imdb import ImdbSpider
from tests.catalogue.crawls import claimed, fetch_due, know, settings_of, states, title_pages, worker
from tests.crawling import Finished, change, counts, crawl_command, reset, scrapy
from tests.services.postgres import execute
from tests.services.replica import COLLECTION, TITLES
from tests.waiting import LONGEST, wait_for

SITES: tuple[Site, ...] = ("imdb", "metacritic", "rottentomatoes")
_SCORES: dict[str, ScoreKind] = {
    "imdb_rating": "imdb",
    "metascore": "metascore",
    "metacritic_user_score": "metacritic_user",
    "tomatometer": "tomatometer",
    "popcornmeter": "popcornmeter",
}


def bring_in(database_url: str, data: Path, replica: ReplicaProcess, *arguments: str) -> None:
    finished = scrapy(
        "catalogue", "import", *(arguments or ("imdb",)), data=data, replica=replica, **settings_of(database_url)
    )
    assert finished.code == 0, finished.log


def at_once(sites: list[str], *arguments: str, data: Path, replica: ReplicaProcess, **settings: str) -> list[Finished]:
    """Run a spider on what is due for each site that is named, all at the same time."""
    with ThreadPoolExecutor(len(sites)) as pool:
        return list(pool.map(lambda site: fetch_due(site, *arguments, data=data, replica=replica, **settings), sites))


def scoreboard(database_url: str) -> dict[Any, dict[str, Any]]:
    columns = ["imdb_id", "metacritic_id", "rottentomatoes_id", *_SCORES]
    scores = ", ".join(f"{column}::float" for column in _SCORES)
    rows = execute(database_url, f"SELECT imdb_id, metacritic_id, rottentomatoes_id, {scores} FROM scoreboard")  # noqa: S608 - our own columns
    return {row[0]: dict(zip(columns, row, strict=True)) for row in rows}


def expected(index: int) -> dict[str, Any]:
    """Return a title's row, by what the replica itself knows."""
    pages = {site: COLLECTION.film(index).movies.get(site) for site in SITES}
    row: dict[str, Any] = {f"{site}_id": page.site_id if page else None for site, page in pages.items()}
    for column, kind in _SCORES.items():
        scores = [score for page in pages.values() if page and (score := page.score(kind))]
        row[column] = scores[0].value if scores else None
    return row


def write_crosswalk(path: Path) -> None:
    """Write what Wikidata would have: titles in other scripts, which no slug tells, and of the rest every third."""
    lines = ["imdb,rottentomatoes,metacritic,tmdb"]
    for index in range(TITLES):
        movies = COLLECTION.film(index).movies
        imdb, tomatoes, metacritic = (movies.get(site) for site in ("imdb", "rottentomatoes", "metacritic"))
        assert imdb is not None
        if not imdb.title.isascii() or index % 3 == 0:
            if tomatoes is not None:
                # As Wikidata often has it: in the spelling that redirects to today's.
                site_id = str(tomatoes.site_id)
                lines.append(f"{imdb.imdb_id},{site_id.replace('_', '-') if index % 2 else site_id},,")
            if metacritic is not None:
                lines.append(f"{imdb.imdb_id},,{metacritic.site_id},")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def test_from_an_empty_database_to_a_scoreboard_that_is_right(
    database_url: str, redis_url: str, replica: ReplicaProcess, tmp_path: Path
) -> None:
    shared = settings_of(database_url, REDIS_URL=redis_url)
    bring_in(database_url, tmp_path, replica)
    write_crosswalk(tmp_path / "wikidata.csv")
    bring_in(database_url, tmp_path, replica, "wikidata", "--from", str(tmp_path / "wikidata.csv"))

    for listing in SITES[1:]:
        read = fetch_due(listing, "-a", "list=sitemap", data=tmp_path, replica=replica, **shared)
        assert read.code == 0, read.log
        assert title_pages(replica, listing) == {}

    # Two workers a site, all six at once.
    workers = at_once([*SITES, *SITES], data=tmp_path, replica=replica, **shared)
    assert [finished.code for finished in workers] == [0] * 6, [
        finished.log[-3000:] for finished in workers if finished.code
    ]
    board = scoreboard(database_url)
    assert len(board) == TITLES
    for index in range(TITLES):
        row = expected(index)
        assert board[row["imdb_id"]] == row
    for site in ("metacritic", "rottentomatoes"):
        found = states(database_url, site)  # what no source names is never asked for
        assert found.pop("ok") == len(COLLECTION.site_ids(site))
        assert set(found) <= {"never", "absent"}
    assert states(database_url, "imdb") == {"ok": TITLES}
    assert set(title_pages(replica, "imdb").values()) == {1}  # no title was fetched by two workers

    # Nothing is due now, so nothing is fetched.
    reset(replica)
    assert fetch_due("metacritic", data=tmp_path, replica=replica, **shared).code == 0
    assert title_pages(replica, "metacritic") == {}


def test_a_worker_that_is_asked_to_stop_gives_back_what_it_has_not_fetched(
    database_url: str, replica: ReplicaProcess, tmp_path: Path
) -> None:
    change(replica, latency=300)
    know(database_url, TITLES)
    with worker(tmp_path, replica, **settings_of(database_url)) as running:
        wait_for(lambda: len(title_pages(replica)) >= 5)
        running.terminate()
        running.wait(LONGEST)
    assert claimed(database_url) == 0
    stored = states(database_url)["ok"]
    assert stored >= 5
    assert execute(database_url, "SELECT count(*) FROM records") == [(stored,)]


def test_a_site_that_refuses_us_is_let_alone_by_all_later_workers(
    database_url: str, replica: ReplicaProcess, tmp_path: Path
) -> None:
    change(replica, faults={"challenge": 1.0})
    know(database_url, 10)
    execute(
        database_url,
        "UPDATE title_sites SET site_id = 'movie/' || title_id, id_source = 'given' WHERE site = 'metacritic'",
    )
    finished = fetch_due("metacritic", data=tmp_path, replica=replica, **settings_of(database_url))
    assert finished.code == 1
    assert execute(database_url, "SELECT count(*) FROM records") == [(0,)]
    assert execute(database_url, "SELECT count(*) FROM title_sites WHERE last_success IS NOT NULL") == [(0,)]
    assert set(states(database_url, "metacritic")) <= {"never", "blocked"}
    assert execute(database_url, "SELECT until > now() FROM site_pauses WHERE site = 'metacritic'") == [(True,)]
    reset(replica)
    later = fetch_due("metacritic", data=tmp_path, replica=replica, **settings_of(database_url))
    assert "Nothing is claimed: metacritic refused us" in later.log
    assert counts(replica, "metacritic")["requests"] == 0


def test_errors_put_titles_off_and_do_not_end_the_crawl(
    database_url: str, replica: ReplicaProcess, tmp_path: Path
) -> None:
    change(replica, faults={"500": 0.6})
    know(database_url, 10)
    settings = settings_of(database_url)
    finished = fetch_due("imdb", "-s", "RETRY_TIMES=0", data=tmp_path, replica=replica, **settings)
    ended = states(database_url, "imdb")
    assert ended["error"] > 0
    assert ended["ok"] > 0
    assert ended["error"] + ended["ok"] == 10
    assert finished.stat("titles/failed") == ended["error"]


def test_imdb_titles_come_from_its_datasets_where_its_pages_may_not_be_had(
    database_url: str, replica: ReplicaProcess, tmp_path: Path
) -> None:
    change(replica, robots="live")
    know(database_url, TITLES)
    finished = fetch_due("imdb", data=tmp_path, replica=replica, **settings_of(database_url, CATALOGUE_BATCH="10"))
    assert finished.code == 0, finished.log
    assert states(database_url, "imdb") == {"ok": TITLES}
    assert title_pages(replica, "imdb") == {}
    assert execute(database_url, "SELECT DISTINCT source::text FROM records") == [("dataset",)]
    again = fetch_due("imdb", "-a", "via=datasets", data=tmp_path, replica=replica, **settings_of(database_url))
    assert again.stat("titles/asked") == 0


def test_other_crawls_tell_the_catalogue_too(database_url: str, replica: ReplicaProcess, tmp_path: Path) -> None:
    know(database_url, TITLES)
    command = crawl_command("imdb", "list=top", "limit=20")
    finished = scrapy(*command, data=tmp_path, replica=replica, **settings_of(database_url))
    assert finished.code == 0, finished.log
    assert states(database_url, "imdb") == {"ok": 20, "never": TITLES - 20}
    due = fetch_due("imdb", data=tmp_path, replica=replica, **settings_of(database_url))
    assert due.stat("titles/asked") == TITLES - 20


@pytest.mark.parametrize(
    ("arguments", "changes", "told"),
    [
        ({"lane": "due"}, {"DATABASE_URL": ""}, "DATABASE_URL is not set, and the catalogue is in Postgres"),
        ({"lane": "due", "ids": "tt0111161"}, {}, "lane and ids are given"),
        ({"lane": "top"}, {}, "lane is 'top'; give one of due"),
        ({"lane": "due"}, {"CATALOGUE_BATCH": "0"}, "CATALOGUE_BATCH is wrong"),
        ({"lane": "due", "list": "bottom"}, {}, "list is 'bottom'"),
    ],
)
def test_mistakes_are_told(arguments: dict[str, str], changes: dict[str, str], told: str, tmp_path: Path) -> None:
    given = Settings()
    given.setmodule("moviecrawler.settings")
    given.setdict({"DATABASE_URL": "postgresql://a@b/c", "DATA_DIR": str(tmp_path), **changes})
    with pytest.raises(ConfigurationError, match=re.escape(told)):  # noqa: PT012 - either of them says so
        check(given, ImdbSpider)
        ImdbSpider.parse_arguments(given, arguments)
