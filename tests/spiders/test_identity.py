"""Sites that answer with the pages of other titles: nothing that is stored is lost or replaced."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from moviecrawler.basics.clock import utc_now
from moviecrawler.catalogue.loading import load
from moviecrawler.catalogue.rows import ImportRow
from moviecrawler.database.connection import Database
from moviecrawler.items import Movie, Site
from moviecrawler.sites import SITES
from moviecrawler.sites.ids import title_url
from tests.crawling import Finished, scrapy
from tests.processes import crawl_command
from tests.scripted_site import Site as StandIn
from tests.scripted_site import Told
from tests.services.postgres import execute
from tests.services.replica import COLLECTION, page_of
from tests.stored import Stores, in_order
from tests.tables import read_movies, sqlite_movies

FIRST = {
    site: [str(movie.site_id) for movie in COLLECTION.pages(site) if movie.kind == "movie"][:8]
    for site in SITES
}
"""Ids of films."""


def html(body: str) -> Told:
    """Return a page that is long enough not to be taken for a refusal."""
    return Told(body=f"<html><body>{body}{'<p>Salt.</p>' * 1000}</body></html>".encode())


def path_of(site: Site, site_id: str) -> str:
    return urlsplit(title_url(site, site_id)).path


class WrongSite(StandIn):
    """A site that has the pages of the replica, but for those answers that a test changes."""

    def __init__(self, site: Site) -> None:
        super().__init__()
        self.site = site
        self.answers = {
            path_of(site, site_id): Told(body=page_of(COLLECTION, site, site_id))
            for site_id in FIRST[site]
        }

    def show(self, at: str, page: str) -> None:
        """Answer the address of a title with the page of another one."""
        self.answers[path_of(self.site, at)] = self.answers[path_of(self.site, page)]

    def redirect(self, at: str, to: str, status: int) -> None:
        """Redirect from the address of a title to that of another one."""
        to_path = path_of(self.site, to)
        self.answers[path_of(self.site, at)] = Told(status, headers={"Location": to_path})

    def crawl(self, *arguments: str, data: Path, **settings: str) -> Finished:
        """Crawl the site, however lately it was crawled before."""
        hosts = {f"{self.site.upper()}_URL": self.url, "FRESHNESS_MARGIN": "0.001"}
        via = ["via=pages"] if self.site == "imdb" else []
        command = crawl_command(self.site, *arguments, *via, **hosts)
        return scrapy(*command, data=data, replica=None, **settings)


@pytest.fixture(params=SITES)
def wrong_site(request: pytest.FixtureRequest) -> Iterator[WrongSite]:
    """Return a site that gives wrong pages."""
    with WrongSite(request.param) as site:
        yield site


def contents(movies: list[Movie]) -> dict[str, Movie]:
    """Return what is stored of each title, but for when and how it was read."""
    return {
        str(movie.site_id): replace(in_order(movie), scraped_at=None, fetch=None)
        for movie in movies
    }


def aliases(data: Path) -> list[tuple[str, str]]:
    with closing(sqlite3.connect(data / "movies.sqlite3")) as connection:
        return connection.execute("SELECT old_id, new_id FROM aliases").fetchall()


@pytest.mark.promise(
    "A page of another title is never stored as the one that was asked for, and deletes nothing."
)
@pytest.mark.promise(
    "Every store holds the same records, and a replay of the archived pages gives them again."
)
def test_pages_of_other_titles_change_no_store_and_are_misses_with_their_reasons(
    wrong_site: WrongSite, stores: Stores, database_url: str, tmp_path: Path
) -> None:
    def stored() -> list[dict[str, Movie]]:
        files = list(read_movies(tmp_path / "movies.csv"))
        return [*map(contents, (files, sqlite_movies(tmp_path), *stores.movies()))]

    site = wrong_site.site
    right, cached, away, moved, landed, left, right_one, right_other = FIRST[site]
    named = f"ids={','.join(FIRST[site])}"
    finished = wrong_site.crawl(named, data=tmp_path, **stores.settings)
    assert finished.code == 0, finished.log
    before = stored()
    assert all(movies.keys() == set(FIRST[site]) for movies in before)

    wrong_site.show(cached, right)
    wrong_site.redirect(away, right, 302)
    wrong_site.redirect(moved, right, 301)
    wrong_site.answers[path_of(site, landed)] = Told(302, headers={"Location": "/"})
    wrong_site.answers["/"] = html("Choose a country.")
    wrong_site.redirect(left, right_one, 308)
    wrong_site.show(right_one, right_other)  # the page is not that of the address either
    finished = wrong_site.crawl(named, data=tmp_path, **stores.settings)
    assert finished.code == 1, finished.log
    assert stored() == before
    found = finished.reasons
    assert found.keys() == {cached, away, landed, left, right_one}
    assert found[cached] == found[away] == f"the page is that of {right}"
    assert found[left] == found[right_one] == f"the page is that of {right_other}"
    assert set(finished.misses.values()) == {"failed"}
    assert finished.stat("titles/stored") == 3
    assert aliases(tmp_path) == [(moved, right)]
    assert execute(database_url, "SELECT old_id, new_id FROM aliases") == [(moved, right)]
    # A title that is under two ids is one row.
    board = execute(database_url, "SELECT count(*) FROM scoreboard")
    assert board == [(len(FIRST[site]) - 1,)]

    replayed = tmp_path / "replayed"
    again_read = scrapy("replay", stores.archive, data=replayed, replica=None, **stores.s3)
    assert again_read.code == 1, again_read.log
    assert contents(sqlite_movies(replayed)) == before[1]
    assert again_read.reasons == found
    assert aliases(replayed) == [(moved, right)]


@pytest.mark.promise(
    "A page of another title is never stored as the one that was asked for, and deletes nothing."
)
def test_one_page_for_all_addresses_is_stored_once(wrong_site: WrongSite, tmp_path: Path) -> None:
    first, *others = FIRST[wrong_site.site]
    for other in others:
        wrong_site.show(other, first)
    finished = wrong_site.crawl(f"ids={','.join([first, *others])}", data=tmp_path)
    assert (finished.code, [movie.site_id for movie in finished.movies]) == (1, [first])
    assert finished.misses == dict.fromkeys(others, "failed")
    count = len(others)
    assert f"1 stored, {count} failed ({count} the page is that of …)" in finished.log


def test_an_alias_is_followed_until_a_list_names_the_old_id_or_it_has_a_page_again(
    tmp_path: Path,
) -> None:
    with WrongSite("rottentomatoes") as site:
        old, new = FIRST["rottentomatoes"][:2]
        site.redirect(old, new, 301)
        assert site.crawl(f"ids={old}", data=tmp_path).code == 0
        assert aliases(tmp_path) == [(old, new)]
        site.clear_log()
        finished = site.crawl(f"ids={old},{new}", data=tmp_path)
        assert site.pages == [f"/{new}", f"/{new}"]
        assert (finished.code, finished.misses) == (0, {})
        assert finished.stat("titles/stored") == 2
        # A list names it, which tells that it may be a title of its own again.
        page = f'<a data-qa="discovery-media-list-item" href="/{old}">'
        page += f'<span data-qa="discovery-media-list-item-title">{old}</span></a>'
        site.answers["/browse/movies_at_home"] = html(page)
        site.answers[path_of("rottentomatoes", old)] = Told(
            body=page_of(COLLECTION, "rottentomatoes", old)
        )
        site.clear_log()
        finished = site.crawl("list=movies_at_home", data=tmp_path)
        assert site.pages == ["/browse/movies_at_home", f"/{old}"]
        assert {movie.site_id for movie in finished.movies} == {old, new}
        assert aliases(tmp_path) == []


def test_what_comes_at_the_address_of_an_alias_is_checked_as_well(tmp_path: Path) -> None:
    with WrongSite("metacritic") as site:
        old, new, other = FIRST["metacritic"][:3]
        site.redirect(old, new, 308)
        assert site.crawl(f"ids={old}", data=tmp_path).code == 0
        site.show(new, other)
        finished = site.crawl(f"ids={old}", data=tmp_path)
        assert (finished.code, [movie.site_id for movie in finished.movies]) == (1, [new])
        assert finished.reasons[old] == f"the page is that of {other}"
        # And with the right page the miss is over.
        site.answers[path_of("metacritic", new)] = Told(body=page_of(COLLECTION, site.site, new))
        assert site.crawl(f"ids={old}", data=tmp_path).misses == {}


def test_two_ids_that_redirect_to_each_other_are_misses(tmp_path: Path) -> None:
    with WrongSite("imdb") as site:
        one, other = FIRST["imdb"][:2]
        site.redirect(one, other, 301)
        site.redirect(other, one, 301)
        finished = site.crawl(f"ids={one},{other}", data=tmp_path)
    assert finished.code == 1
    assert finished.misses == {one: "failed", other: "failed"}


@pytest.mark.promise("What can't be decided waits for a person.")
def test_a_due_title_whose_address_has_the_page_of_another_is_for_a_person_to_look_at(
    database_url: str, tmp_path: Path
) -> None:
    right, wrong = FIRST["imdb"][:2]
    rows = [
        ImportRow(imdb_id=imdb_id, title=imdb_id, kind="movie", year=2001)
        for imdb_id in (right, wrong)
    ]
    with closing(Database(database_url)) as store:
        load(store, "imdb", "1", rows, len(rows), utc_now())
    with WrongSite("imdb") as site:
        site.show(wrong, right)
        finished = site.crawl("lane=due", data=tmp_path, DATABASE_URL=database_url)
    assert (finished.code, finished.misses) == (1, {wrong: "failed"})
    found = execute(database_url, "SELECT site_id, decision::text, reasons FROM title_matches")
    assert found == [(wrong, "review", [f"but its page is that of {right}"])]
    in_14_days = execute(
        database_url,
        "SELECT site_id FROM title_sites"
        " WHERE next_due > now() + interval '13 days' AND next_due < now() + interval '14 days'",
    )
    assert (wrong,) in in_14_days
