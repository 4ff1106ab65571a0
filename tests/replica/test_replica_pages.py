from __future__ import annotations

import gzip
import zlib
from dataclasses import replace

import pytest

from moviecrawler.extract.pages import read_page
from moviecrawler.extract.sitemaps import read_sitemap
from moviecrawler.items import Entry, Listing, Movie, Score, Site
from moviecrawler.replica.movies import Catalogue
from moviecrawler.replica.process import ReplicaProcess
from moviecrawler.sites import SCOREBOARD_KINDS, SITES
from moviecrawler.urls import title_url
from tests.replica.client import TITLES, ask
from tests.replica.truth import truth

CATALOGUE = Catalogue(1, TITLES)
GZIP = {"Accept-Encoding": "gzip"}


def listing_at(replica: ReplicaProcess, site: Site, path: str) -> Listing:
    reply = ask(replica.urls[site] + path)
    assert reply.status == 200
    listing = read_page(reply.body, SITES[site].home + path).listing
    assert listing is not None
    return listing


def imdb_entry(index: int, *, in_box_office: bool = False, rank: int | None = None) -> Entry:
    """Return the row of a chart; that of the box office has neither years nor ranks."""
    movie = CATALOGUE.title(index)
    return Entry(
        site_id=movie.imdb_id,
        title=movie.basics.title,
        year=None if in_box_office else movie.basics.year,
        kind="movie",
        release_date=None if in_box_office else movie.release.iso,
        scores=[] if movie.rating is None else [Score(kind="imdb", value=movie.rating[0], count=movie.rating[1])],
        rank=rank,
    )


def assert_says(movie: Movie | None, expected: Movie) -> None:
    """Check what a page says. Of what a title has not, some pages have no row, and are silent; their scores they all tell (IMDb that of Metacritic without its reviews)."""
    assert movie is not None
    assert {name for name in movie.silent if name.startswith("scores.")} <= {"scores.metascore.count"}
    assert replace(movie, silent=[]) == expected


@pytest.mark.parametrize("site", SITES)
def test_title_pages_say_the_truth(replica: ReplicaProcess, light: ReplicaProcess, site: Site) -> None:
    for index in range(0, TITLES, 13):
        expected = truth(CATALOGUE, site, index)
        if expected is not None:
            assert expected.site_id is not None
            reply = ask(title_url(site, expected.site_id, replica.urls[site]), GZIP)
            assert_says(read_page(gzip.decompress(reply.body), expected.url).movie, expected)
            body = ask(title_url(site, expected.site_id, light.urls[site])).body
            assert_says(read_page(body, expected.url).movie, expected)
            assert 2_000 < len(body) < 20_000


@pytest.mark.parametrize(
    ("site", "smallest", "largest"),
    [("imdb", 1_000_000, 2_000_000), ("metacritic", 450_000, 550_000), ("rottentomatoes", 350_000, 450_000)],
)
def test_title_pages_have_the_sites_sizes(replica: ReplicaProcess, site: Site, smallest: int, largest: int) -> None:
    expected = truth(CATALOGUE, site, 1)
    assert expected is not None
    assert expected.site_id is not None
    url = title_url(site, expected.site_id, replica.urls[site])
    assert smallest < len(ask(url).body) < largest
    assert 3 < len(ask(url).body) / len(ask(url, GZIP).body) < 6


@pytest.mark.parametrize(
    ("accepted", "encoding"),
    [
        ("", None),
        ("identity", None),
        ("deflate", None),
        ("gzip", "gzip"),
        ("br", None),
        ("GZIP;q=0.5", "gzip"),
        ("gzip, deflate, br, zstd", "gzip"),
        ("br, gzip;q=0", None),
    ],
)
def test_a_page_is_encoded_as_asked(replica: ReplicaProcess, accepted: str, encoding: str | None) -> None:
    url = f"{replica.urls['imdb']}/title/{CATALOGUE.imdb_id(3)}/"
    reply = ask(url, {"Accept-Encoding": accepted})
    assert reply.headers.get("content-encoding") == encoding
    plain = ask(url).body
    if encoding is None:
        assert reply.body == plain
    else:  # one member, which ends with the body
        member = zlib.decompressobj(31)
        assert (member.decompress(reply.body), member.eof, member.unused_data) == (plain, True, b"")


def test_charts_are_in_order(replica: ReplicaProcess) -> None:
    for chart, indexes in (("top", CATALOGUE.top), ("moviemeter", range(100))):
        entries = listing_at(replica, "imdb", f"/chart/{chart}/").entries
        assert entries == [imdb_entry(index, rank=rank) for rank, index in enumerate(indexes, start=1)]
    assert len(CATALOGUE.top) == 250
    entries = listing_at(replica, "imdb", "/chart/boxoffice/").entries
    assert entries == [imdb_entry(index, in_box_office=True) for index in range(10)]


@pytest.mark.parametrize("order", ["-metaScore", "-releaseDate", "-popularityCount"])
def test_the_finder_lists_every_movie(replica: ReplicaProcess, order: str) -> None:
    found: list[Entry] = []
    repeated, total = 0, len(CATALOGUE.listed["metacritic"])
    for offset in range(0, total, 24):
        path = f"/finder/metacritic/web?mcoTypeId=2&sortBy={order}&limit=24&offset={offset}"
        listing = listing_at(replica, "metacritic", path)
        assert listing.total == total
        assert (listing.next is None) == (offset + 24 >= total)
        repeated += max(len(listing.entries) - 24, 0)
        found += listing.entries[:24]
    true = {movie.site_id: movie for index in range(TITLES) if (movie := truth(CATALOGUE, "metacritic", index))}
    assert {entry.site_id for entry in found} == true.keys()
    assert (repeated > 0) == (order == "-metaScore"), "rows that tie come up on both pages"
    for entry in found:
        expected = true[entry.site_id]
        assert (entry.title, entry.year, entry.release_date) == (expected.title, expected.year, expected.release_date)
        assert [(score.kind, score.value) for score in entry.scores] == [(s.kind, s.value) for s in expected.scores]
    if order == "-metaScore":
        scores = [
            entry.scores[0].value if entry.scores and entry.scores[0].kind == "metascore" else 0 for entry in found
        ]
        assert scores == sorted(scores, reverse=True)


@pytest.mark.parametrize(("name", "rows"), [("movies_at_home/sort:popular", 262), ("movies_in_theaters", 56)])
def test_browse_lists_end(replica: ReplicaProcess, name: str, rows: int) -> None:
    listing = listing_at(replica, "rottentomatoes", f"/browse/{name}")
    found = listing.entries
    while listing.next:
        listing = listing_at(replica, "rottentomatoes", f"/cnapi/browse/{name}?after={listing.next}")
        found += listing.entries
    expected = [movie for index in range(TITLES) if (movie := truth(CATALOGUE, "rottentomatoes", index))][:rows]
    assert [(e.site_id, e.title, e.release_date) for e in found] == [
        (m.site_id, m.title, m.release_date) for m in expected
    ]
    assert [[s.value for s in e.scores] for e in found] == [
        [s.value for s in m.scores if s.kind in SCOREBOARD_KINDS] for m in expected
    ]


@pytest.mark.parametrize(
    ("site", "index_path"), [("metacritic", "/movies.xml"), ("rottentomatoes", "/sitemaps/sitemap.xml")]
)
def test_sitemaps_list_every_movie(replica: ReplicaProcess, site: Site, index_path: str) -> None:
    home = replica.urls[site]
    index = read_sitemap(ask(home + index_path).body, None)
    assert index.is_index
    parts = [part for part in index.urls if "tv-s" not in part]
    found = [url for part in parts for url in read_sitemap(ask(part).body, None).urls]
    movies = [movie for number in range(TITLES) if (movie := truth(CATALOGUE, site, number))]
    assert found == [title_url(site, movie.site_id or "", home) for movie in movies]


@pytest.mark.parametrize(
    ("site", "path", "status"),
    [
        ("imdb", "/title/tt0000001/", 404),
        ("imdb", "/datasets/title.none.tsv.gz", 404),
        ("metacritic", "/movie/no-such-movie/", 404),
        ("metacritic", "/composer/metacritic/pages/movies/no-such-movie/web", 404),
        ("metacritic", "/movies/9.xml", 404),
        ("metacritic", "/finder/metacritic/web?mcoTypeId=13", 404),
        ("metacritic", "/finder/metacritic/web?mcoTypeId=2&limit=x", 400),
        ("rottentomatoes", "/m/no_such_movie", 404),
        ("rottentomatoes", "/cnapi/browse/movies_at_home", 404),
        ("rottentomatoes", "/sitemaps/movie_9.xml", 404),
    ],
)
def test_what_is_not_there_is_not_served(replica: ReplicaProcess, site: Site, path: str, status: int) -> None:
    reply = ask(replica.urls[site] + path)
    assert reply.status == status
    assert (b'"code":404' in reply.body) == ("/composer/" in path), "the JSON host says it in JSON"


def test_addresses_redirect_to_the_canonical_ones(replica: ReplicaProcess) -> None:
    imdb_id = CATALOGUE.imdb_id(0)
    reply = ask(f"{replica.urls['imdb']}/title/{imdb_id}")
    assert (reply.status, reply.headers["location"]) == (308, f"/title/{imdb_id}/")
    assert ask(f"{replica.urls['metacritic']}/movie/any").headers["location"] == "/movie/any/"
    slugs = [facts.slug for index in range(TITLES) if (facts := CATALOGUE.rottentomatoes(index))]
    underscores = next(slug for slug in slugs if "_" in slug and "-" not in slug)
    hyphens = next(slug for slug in slugs if "-" in slug and "_" not in slug)
    for slug, other in ((underscores, underscores.replace("_", "-")), (hyphens, hyphens.replace("-", "_"))):
        reply = ask(f"{replica.urls['rottentomatoes']}/m/{other}")
        assert (reply.status, reply.headers["location"]) == (301, f"/m/{slug}")
