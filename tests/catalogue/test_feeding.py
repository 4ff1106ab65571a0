"""`lane=due` from an empty database to a complete scoreboard, on one worker and on several."""

import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from moviecrawler.items import Site
from moviecrawler.replica.collection import Collection
from moviecrawler.sites import SCOREBOARD_KINDS
from moviecrawler.sites.replicas import Title
from tests.crawling import change, counts, crawl, reset, scrapy
from tests.due_crawls import Due
from tests.services.replica import TITLES, ForkedReplica
from tests.waiting import LONGEST, wait_for

SITES: tuple[Site, ...] = ("imdb", "metacritic", "rottentomatoes")
FILMS = 12
SERIES = 6
SEASON = re.compile(r"/tv/[^/]+/(?:s\d|season-)")


def write_crosswalk(path: Path, titles: list[Title]) -> None:
    """Write what Wikidata would have.

    That is titles in other scripts, which no slug tells, and of the rest every third.
    """
    lines = ["imdb,rottentomatoes,metacritic,tmdb"]
    for index, title in enumerate(titles):
        imdb = title.movies.get("imdb")
        tomatoes = title.movies.get("rottentomatoes")
        metacritic = title.movies.get("metacritic")
        assert imdb is not None
        if not imdb.title.isascii() or index % 3 == 0:
            if tomatoes is not None:
                # As Wikidata often has it: in the spelling that redirects to today's.
                site_id = str(tomatoes.site_id)
                lines.append(
                    f"{imdb.imdb_id},{site_id.replace('_', '-') if index % 2 else site_id},,"
                )
            if metacritic is not None:
                lines.append(f"{imdb.imdb_id},,{metacritic.site_id},")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def stored(due: Due) -> dict[Any, Any]:
    """Return each record with the title that it was found to be.

    With it come the season of that title, and the record's scores.
    """
    rows = due.sql(
        "SELECT r.site::text, r.site_id, coalesce(of.imdb_id, t.imdb_id), t.season,"
        " array(SELECT s.kind || ' ' || s.value::float FROM scores s"
        " WHERE s.record_id = r.record_id AND s.kind = ANY (%s))"
        " FROM records r JOIN titles t USING (title_id)"
        " LEFT JOIN titles of ON of.title_id = t.series_title_id"
        " WHERE r.kind <> 'episode'",
        list(SCOREBOARD_KINDS),
    )
    return {
        (site, site_id): (imdb_id, season, {*scores})
        for site, site_id, imdb_id, season, scores in rows
    }


def truth(titles: list[Title]) -> dict[Any, Any]:
    """Return the same of all that the replica has."""
    return {
        (site, movie.site_id): (
            title.movies["imdb"].imdb_id,
            movie.season,
            {
                f"{score.kind} {score.value:g}"
                for score in movie.scores
                if score.kind in SCOREBOARD_KINDS
            },
        )
        for title in titles
        for site, whole in title.movies.items()
        for movie in (whole, *(part for part in title.parts.get(site, ()) if part.kind == "season"))
    }


def test_from_an_empty_database_each_title_and_season_is_stored_and_fetched_once(
    database_url: str, redis_url: str, tmp_path: Path
) -> None:
    collection = Collection(1, FILMS, SERIES)
    titles = [*map(collection.title, range(FILMS)), *map(collection.series.title, range(SERIES))]
    write_crosswalk(tmp_path / "wikidata.csv", titles)
    with ForkedReplica(titles=FILMS, series=SERIES, light=True) as replica:
        due = Due(database_url, replica, tmp_path)
        for source in (["imdb", "--kinds", "movie,series"], ["wikidata", "--from", "wikidata.csv"]):
            finished = scrapy("catalogue", "import", *source, **due.where)
            assert finished.code == 0, finished.log

        def fetch(*crawls: tuple[str, ...]) -> None:
            """Run crawls at the same time: of a list for the catalogue, or of what is due."""
            with ThreadPoolExecutor(len(crawls)) as pool:
                settings = {**due.where, "REDIS_URL": redis_url, "SITE_BUDGETS": "{}"}
                ended = list(pool.map(lambda given: crawl(*given, **settings), crawls))
            assert [finished.code for finished in ended] == [0] * len(crawls), [
                each.log[-3000:] for each in ended
            ]

        fetch(
            *(
                (site, "lane=due", f"list={listing}")
                for site in SITES[1:]
                for listing in ("sitemap", "sitemap-series")
            )
        )
        assert [due.pages(site) for site in SITES] == [{}, {}, {}]
        # Two workers a site, all six at once; and again, for seasons whose series' page was the
        # last one.
        fetch(*((site, "lane=due") for site in (*SITES, *SITES)))
        fetch(*((site, "lane=due") for site in SITES))
        pages = {site: due.pages(site) for site in SITES}
    found = stored(due)
    assert {name: found.get(name) for name in truth(titles)} == truth(titles)
    for site in SITES[1:]:
        assert set(due.states(site)) <= {"ok", "never"}  # what no source names is never asked for
    # Of the other sites, a page may be one of several titles', and is compared with each.
    assert set(pages["imdb"].values()) == {1}
    assert len(pages["imdb"]) == FILMS + SERIES
    # Rotten Tomatoes' pages of series tell the scores of most of their seasons; Metacritic's lack
    # those of users.
    seasons = {site: sum(bool(SEASON.search(path)) for path in pages[site]) for site in SITES}
    assert 0 < seasons["rottentomatoes"] < seasons["metacritic"] / 2


def test_a_worker_that_is_asked_to_stop_gives_back_what_it_has_not_fetched(due: Due) -> None:
    change(due.replica, latency=300)
    with due.worker() as running:
        wait_for(lambda: len(due.pages()) >= 5)
        running.terminate()
        running.wait(LONGEST)
    stored = due.states()["ok"]
    assert 5 <= stored < TITLES
    assert due.sql("SELECT count(*) FROM records") == [(stored,)]
    change(due.replica, latency=0)
    assert crawl("imdb", "lane=due", **due.where).code == 0
    assert due.states() == {"ok": TITLES}
    assert set(due.pages().values()) == {1}


def test_a_site_that_refuses_us_is_let_alone_by_all_later_workers(due: Due) -> None:
    change(due.replica, faults={"challenge": 1.0})
    due.sql(
        "UPDATE title_sites SET site_id = 'movie/' || title_id, id_source = 'given'"
        " WHERE site = 'metacritic'"
    )
    assert crawl("metacritic", "lane=due", **due.where).code == 1
    assert due.sql("SELECT count(*) FROM records") == [(0,)]
    assert due.sql("SELECT count(*) FROM title_sites WHERE last_success IS NOT NULL") == [(0,)]
    assert set(due.states("metacritic")) == {"never"}
    reset(due.replica)
    later = crawl("metacritic", "lane=due", **due.where)
    assert later.code == 1
    assert later.summary.next.startswith("metacritic is blocking us")
    assert "metacritic is paused until" in later.summary.next
    assert counts(due.replica, "metacritic")["requests"] == 0


def test_imdb_titles_come_from_its_datasets_where_its_pages_may_not_be_had(due: Due) -> None:
    change(due.replica, robots="live")
    # The replica has no series, and so no rows of episodes.
    finished = crawl("imdb", "lane=due", **due.where, IMDB_DATASETS="crew,principals,names,akas")
    assert finished.code == 0, finished.log
    assert due.states() == {"ok": TITLES}
    assert due.pages() == {}
    assert due.sql("SELECT DISTINCT source::text FROM records") == [("dataset",)]
    assert crawl("imdb", "lane=due", "via=datasets", **due.where).stat("titles/requested") == 0
    due.sql("UPDATE title_sites SET next_due = 'epoch'")
    away: dict[str, Any] = {"IMDB_DATASETS_URL": "http://127.0.0.1:1", "RETRY_TIMES": "0"}
    away["FRONTIER_PATIENCE"] = "1"
    assert crawl("imdb", "lane=due", "via=datasets", **due.where, **away).code == 1
    assert due.states() == {"ok": TITLES}
