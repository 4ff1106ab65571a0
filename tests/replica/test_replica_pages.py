"""A right reader gets the replica's items from its pages and lists, and nothing else."""

from __future__ import annotations

import zlib
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, get_args

import pytest

from moviecrawler.extract.pages import read_page
from moviecrawler.items import Site
from moviecrawler.replica.collection import Collection
from moviecrawler.replica.options import TODAY
from moviecrawler.sites import SCOREBOARD_KINDS
from moviecrawler.urls import title_url
from tests.crawling import change
from tests.replica.client import ask
from tests.replica.conftest import TITLES
from tests.services.replica import page_of

if TYPE_CHECKING:
    from moviecrawler.items import Listing
    from moviecrawler.replica.process import ReplicaProcess

COLLECTION = Collection(1, TITLES, 20)
SERIES = COLLECTION.series
SLUG = SERIES.site_ids("metacritic")[1]
TOMATOES = SERIES.site_ids("rottentomatoes")[1]


@pytest.mark.promise("The pages that the sites serve now are read with every fact that they state.")
@pytest.mark.parametrize("site", get_args(Site))
def test_every_page_is_read_as_its_item(site: Site) -> None:
    movies = COLLECTION.every(site)
    kinds = {"imdb": {"movie", "series", "episode"}}.get(site, {"movie", "series", "season", "episode"})
    assert {movie.kind for movie in movies.values()} == kinds
    for site_id, movie in movies.items():
        page = read_page(page_of(COLLECTION, site, site_id), str(movie.url))
        assert page.movie is not None
        assert replace(page.movie, unknown_fields=[]) == movie
        if site == "imdb":
            assert set(page.movie.unknown_fields) == {"offers", "taglines"}, "what other pages tell"
        found = COLLECTION.find(site, site_id)
        assert found is not None
        listed = found[0].listed.get(site, []) if movie.kind == "series" else []
        assert [replace(season, unknown_fields=[]) for season in page.seasons] == listed


def test_the_collection_is_as_uneven_as_the_sites() -> None:
    large = Collection(1, 1_000)
    films = [large.film(index).movies for index in range(1_000)]
    imdb = [movies["imdb"] for movies in films]
    assert len({movie.title for movie in imdb}) < len(imdb), "remakes share a title"
    for field in ("original_title", "runtime_minutes", "certificate", "plot", "poster_url", "scores", "amounts"):
        assert {bool(getattr(movie, field)) for movie in imdb} == {True, False}, field
    for site in ("metacritic", "rottentomatoes"):
        assert len(large.site_ids(site)) < len(films)
        assert any(movies[site].year != movies["imdb"].year for movies in films if site in movies)


def test_series_have_the_traps_of_the_sites() -> None:
    specials, split, first, again = SERIES.title(0), SERIES.title(1), SERIES.title(4), SERIES.title(5)
    assert str(specials.listed["metacritic"][0].site_id).endswith("/specials")
    assert specials.listed["rottentomatoes"][-1].season == 0
    assert b'/s05.2"' in page_of(COLLECTION, "rottentomatoes", str(split.movies["rottentomatoes"].site_id))
    assert f"/{SLUG}/critic-reviews/?season=season-2".encode() in page_of(COLLECTION, "metacritic", f"{SLUG}/season-2")
    assert first.movies["imdb"].title == again.movies["imdb"].title
    unscored = [
        title
        for title in map(SERIES.title, SERIES.site_ids("rottentomatoes"))
        if not title.movies["rottentomatoes"].scores
    ]
    assert any(season.scores for title in unscored for season in title.listed["rottentomatoes"])


def test_a_new_season_begins_on_its_day(replica: ReplicaProcess) -> None:
    begins = next(start for start in SERIES.starts(0) if start > TODAY)
    before, after = (Collection(1, TITLES, 20, day).series.title(0) for day in (begins - timedelta(1), begins))
    assert before == SERIES.title(0)
    assert after.movies["imdb"].season_count == (before.movies["imdb"].season_count or 0) + 1
    new = [one for one in after.parts["imdb"] if one.season == after.movies["imdb"].season_count]
    assert not any(one.scores for one in new[1:]), "the others are announced"
    address = f"{replica.urls['rottentomatoes']}/{SERIES.site_ids('rottentomatoes')[0]}/s04"
    basics = f"{replica.urls['imdb']}/datasets/title.basics.tsv.gz"
    asked = [(ask(address).status, ask(basics, method="HEAD").headers["etag"])]
    change(replica, today=begins.isoformat())
    asked.append((ask(address).status, ask(basics, method="HEAD").headers["etag"]))
    assert [status for status, _ in asked] == [404, 200]
    assert asked[0][1] != asked[1][1]


# --- Bodies -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("site", "smallest", "largest"),
    [("imdb", 1_200_000, 1_500_000), ("metacritic", 400_000, 600_000), ("rottentomatoes", 350_000, 450_000)],
)
def test_title_pages_have_the_sites_sizes(replica: ReplicaProcess, site: Site, smallest: int, largest: int) -> None:
    site_id = COLLECTION.site_ids(site)[1]
    url = title_url(site, site_id, replica.urls[site])
    whole, light = ask(url).body, page_of(COLLECTION, site, site_id)
    assert smallest < len(whole) < largest
    assert 3 < len(whole) / len(ask(url, {"Accept-Encoding": "gzip"}).body) < 7
    assert 2_000 < len(light) < 20_000
    for body in (whole, light):
        movie = read_page(body, title_url(site, site_id)).movie
        assert movie is not None
        assert replace(movie, unknown_fields=[]) == COLLECTION.film(1).movies[site]


@pytest.mark.parametrize(
    ("accepted", "encoding"),
    [
        *(("", None), ("identity", None), ("br", None), ("br, gzip;q=0", None)),
        *(("gzip", "gzip"), ("GZIP;q=0.5", "gzip"), ("gzip, deflate, br, zstd", "gzip")),
    ],
)
def test_a_page_is_encoded_as_asked(replica: ReplicaProcess, accepted: str, encoding: str | None) -> None:
    url = f"{replica.urls['imdb']}/title/{COLLECTION.imdb_id(3)}/"
    reply, plain = ask(url, {"Accept-Encoding": accepted}), ask(url).body
    assert reply.headers.get("content-encoding") == encoding
    if encoding is None:
        assert reply.body == plain
    else:  # one member, which ends with the body
        member = zlib.decompressobj(31)
        assert (member.decompress(reply.body), member.eof, member.unused_data) == (plain, True, b"")


# --- Lists ------------------------------------------------------------------------------------------------------------


def listing_at(replica: ReplicaProcess, site: Site, path: str) -> Listing:
    live = {"metacritic": "https://backend.metacritic.com"}.get(site, f"https://www.{site}.com")
    listing = read_page(ask(replica.urls[site] + path).body, live + path).listing
    assert listing is not None
    return listing


def test_charts_are_in_order(replica: ReplicaProcess) -> None:
    for chart, indexes in (("top", COLLECTION.top), ("moviemeter", range(100)), ("boxoffice", range(10))):
        entries = listing_at(replica, "imdb", f"/chart/{chart}/").entries
        assert [entry.site_id for entry in entries] == [COLLECTION.imdb_id(index) for index in indexes]
        if chart != "boxoffice":
            assert [entry.rank for entry in entries] == list(range(1, len(entries) + 1))
            films = [COLLECTION.film(index).movies["imdb"] for index in indexes]
            assert [entry.year for entry in entries] == [film.year for film in films]
            assert [[score.value for score in entry.scores] for entry in entries] == [
                [score.value for score in film.scores if score.kind == "imdb"] for film in films
            ]


@pytest.mark.parametrize("order", ["-metaScore", "-releaseDate", "-popularityCount"])
def test_the_finder_lists_every_film(replica: ReplicaProcess, order: str) -> None:
    true = {str(movie.site_id): movie for movie in COLLECTION.every("metacritic").values() if movie.kind == "movie"}
    found, repeated = [], 0
    for offset in range(0, len(true), 24):
        path = f"/finder/metacritic/web?mcoTypeId=2&sortBy={order}&limit=24&offset={offset}"
        listing = listing_at(replica, "metacritic", path)
        assert (listing.total, listing.next is None) == (len(true), offset + 24 >= len(true))
        repeated += max(len(listing.entries) - 24, 0)
        found += listing.entries[:24]
    assert {entry.site_id for entry in found} == true.keys()
    assert (repeated > 0) == (order == "-metaScore"), "rows that tie come up on both pages"
    for entry in found:
        movie = true[entry.site_id]
        assert (entry.title, entry.year, entry.release_date) == (movie.title, movie.year, movie.release_date)
        assert [(score.kind, score.value) for score in entry.scores] == [(one.kind, one.value) for one in movie.scores]


@pytest.mark.parametrize(("name", "rows"), [("movies_at_home/sort:popular", TITLES), ("movies_in_theaters", 56)])
def test_browse_lists_end(replica: ReplicaProcess, name: str, rows: int) -> None:
    listing = listing_at(replica, "rottentomatoes", f"/browse/{name}")
    found = listing.entries
    while listing.next:
        listing = listing_at(replica, "rottentomatoes", f"/cnapi/browse/{name}?after={listing.next}")
        found += listing.entries
    places = list(COLLECTION.site_ids("rottentomatoes"))[:rows]
    films = [COLLECTION.film(index).movies["rottentomatoes"] for index in places]
    assert [(entry.site_id, entry.title, entry.release_date) for entry in found] == [
        (film.site_id, film.title, film.release_date) for film in films
    ]
    assert [[score.value for score in entry.scores] for entry in found] == [
        [score.value for score in film.scores if score.kind in SCOREBOARD_KINDS] for film in films
    ]


# --- Other addresses --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("site", "path", "status"),
    [
        ("imdb", "/title/tt0000001/", 404),
        ("imdb", f"/title/{SERIES.imdb_id(1, 99)}/", 404),
        ("imdb", "/datasets/title.none.tsv.gz", 404),
        ("metacritic", "/movie/no-such-movie/", 404),
        ("metacritic", f"/{SLUG}/season-6/", 404),
        ("metacritic", f"/{SLUG}/season-1/episode-1-of-another-name/", 404),
        ("metacritic", "/movies/9.xml", 404),
        ("metacritic", "/finder/metacritic/web?mcoTypeId=13", 404),
        ("metacritic", "/finder/metacritic/web?mcoTypeId=2&limit=x", 400),
        ("rottentomatoes", "/m/no_such_movie", 404),
        ("rottentomatoes", f"/{TOMATOES}/s01/e14", 404),
        ("rottentomatoes", "/cnapi/browse/movies_at_home", 404),
        ("rottentomatoes", "/sitemaps/movie_9.xml", 404),
    ],
)
def test_what_is_not_there_is_not_served(replica: ReplicaProcess, site: Site, path: str, status: int) -> None:
    assert ask(replica.urls[site] + path).status == status


def test_addresses_redirect_to_the_canonical_ones(replica: ReplicaProcess) -> None:
    imdb_id = COLLECTION.imdb_id(0)
    reply = ask(f"{replica.urls['imdb']}/title/{imdb_id}")
    assert (reply.status, reply.headers["location"]) == (308, f"/title/{imdb_id}/")
    assert ask(f"{replica.urls['metacritic']}/movie/any").headers["location"] == "/movie/any/"
    ids = COLLECTION.site_ids("rottentomatoes").values()
    for mark, other in (("_", "-"), ("-", "_")):
        site_id = next(site_id for site_id in ids if mark in site_id and other not in site_id)
        reply = ask(f"{replica.urls['rottentomatoes']}/{site_id.replace(mark, other)}")
        assert (reply.status, reply.headers["location"]) == (301, f"/{site_id}")
