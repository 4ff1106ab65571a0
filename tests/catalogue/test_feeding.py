"""`lane=due` from an empty database to a complete scoreboard, on one worker and on several."""

from __future__ import annotations

import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from scrapy.settings import Settings

from moviecrawler.addon import check
from moviecrawler.errors import ConfigurationError
from moviecrawler.items import Site
from moviecrawler.replica.collection import Collection
from moviecrawler.replica.process import ReplicaProcess
from moviecrawler.replica.titles import Title
from moviecrawler.sites import SCOREBOARD_KINDS
from moviecrawler.spiders.imdb import ImdbSpider
from tests.catalogue.crawls import claimed, fetch_due, know, settings_of, states, title_pages, worker
from tests.crawling import change, counts, crawl_command, reset, scrapy
from tests.services.postgres import execute
from tests.services.replica import TITLES
from tests.waiting import LONGEST, wait_for

SITES: tuple[Site, ...] = ("imdb", "metacritic", "rottentomatoes")
FILMS, SERIES = 20, 10
SEASON = re.compile(r"/tv/[^/]+/(?:s\d|season-)")


def write_crosswalk(path: Path, titles: list[Title]) -> None:
    """Write what Wikidata would have: titles in other scripts, which no slug tells, and of the rest every third."""
    lines = ["imdb,rottentomatoes,metacritic,tmdb"]
    for index, title in enumerate(titles):
        imdb, tomatoes, metacritic = (title.movies.get(site) for site in ("imdb", "rottentomatoes", "metacritic"))
        assert imdb is not None
        if not imdb.title.isascii() or index % 3 == 0:
            if tomatoes is not None:
                # As Wikidata often has it: in the spelling that redirects to today's.
                site_id = str(tomatoes.site_id)
                lines.append(f"{imdb.imdb_id},{site_id.replace('_', '-') if index % 2 else site_id},,")
            if metacritic is not None:
                lines.append(f"{imdb.imdb_id},,{metacritic.site_id},")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def stored(database_url: str) -> dict[Any, Any]:
    """Return each record with the title, and the season of it, that it was found to be, and its scores."""
    rows = execute(
        database_url,
        "SELECT r.site::text, r.site_id, coalesce(of.imdb_id, t.imdb_id), t.season,"
        " array(SELECT s.kind || ' ' || s.value::float FROM scores s WHERE s.record_id = r.record_id AND s.kind::text = ANY (%s))"
        " FROM records r JOIN titles t USING (title_id) LEFT JOIN titles of ON of.title_id = t.series_title_id"
        " WHERE r.kind <> 'episode'",
        list(SCOREBOARD_KINDS),
    )
    return {(site, site_id): (imdb_id, season, {*scores}) for site, site_id, imdb_id, season, scores in rows}  # type: ignore[misc]


def truth(titles: list[Title]) -> dict[Any, Any]:
    """Return the same of all that the replica has."""
    return {
        (site, movie.site_id): (
            title.movies["imdb"].imdb_id,
            movie.season,
            {f"{score.kind} {score.value:g}" for score in movie.scores if score.kind in SCOREBOARD_KINDS},
        )
        for title in titles
        for site, whole in title.movies.items()
        for movie in (whole, *(part for part in title.parts.get(site, ()) if part.kind == "season"))
    }


@pytest.fixture(scope="module")
def large() -> Iterator[ReplicaProcess]:
    with ReplicaProcess(titles=FILMS, series=SERIES, light=True) as running:
        yield running


def test_from_an_empty_database_each_title_and_season_is_stored_with_its_scores_and_none_is_fetched_by_two_workers(
    database_url: str, redis_url: str, large: ReplicaProcess, tmp_path: Path
) -> None:
    collection = Collection(1, FILMS, SERIES)
    titles = [*map(collection.title, range(FILMS)), *map(collection.series.title, range(SERIES))]
    shared: dict[str, Any] = {
        "data": tmp_path,
        "replica": large,
        **settings_of(database_url, REDIS_URL=redis_url, SITE_BUDGETS="{}"),
    }
    write_crosswalk(tmp_path / "wikidata.csv", titles)

    for source in (["imdb", "--kinds", "movie,series"], ["wikidata", "--from", "wikidata.csv"]):
        finished = scrapy("catalogue", "import", *source, **shared)
        assert finished.code == 0, finished.log

    def fetch(*crawls: tuple[Site, str]) -> None:
        """Run crawls at the same time: of a list for the catalogue, or of what is due."""
        with ThreadPoolExecutor(len(crawls)) as pool:
            given = [["-a", f"list={name}"] if name else [] for _, name in crawls]
            ended = list(pool.map(lambda crawl, more: fetch_due(crawl[0], *more, **shared), crawls, given))
        assert [finished.code for finished in ended] == [0] * len(crawls), [each.log[-3000:] for each in ended]

    fetch(*((site, listing) for site in SITES[1:] for listing in ("sitemap", "sitemap-series")))
    assert [title_pages(large, site) for site in SITES] == [{}, {}, {}]
    # Two workers a site, all six at once; and again, for seasons whose series' page was the last one.
    fetch(*((site, "") for site in (*SITES, *SITES)))
    fetch(*((site, "") for site in SITES))
    found = stored(database_url)
    assert {name: found.get(name) for name in truth(titles)} == truth(titles)
    for site in SITES[1:]:
        assert set(states(database_url, site)) <= {"ok", "never"}  # what no source names is never asked for
    pages = {site: title_pages(large, site) for site in SITES}
    # Of the other sites, a page may be one of several titles', and is compared with each.
    assert set(pages["imdb"].values()) == {1}
    assert len(pages["imdb"]) == FILMS + SERIES
    # Rotten Tomatoes' pages of series tell the scores of most of their seasons; Metacritic's lack those of users.
    seasons = {site: sum(bool(SEASON.search(path)) for path in pages[site]) for site in SITES}
    assert 0 < seasons["rottentomatoes"] < seasons["metacritic"] / 2


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
        ({"lane": "due", "list": "bottom"}, {}, "list is 'bottom'"),
    ],
)
def test_mistakes_are_told(arguments: dict[str, str], changes: dict[str, str], told: str, tmp_path: Path) -> None:
    given = Settings({"DATABASE_URL": "postgresql://a@b/c", "DATA_DIR": str(tmp_path), **changes})
    given.setmodule("moviecrawler.settings", "default")
    with pytest.raises(ConfigurationError, match=re.escape(told)):  # noqa: PT012 - either of them says so
        check(given, ImdbSpider)
        ImdbSpider.parse_arguments(given, arguments)
