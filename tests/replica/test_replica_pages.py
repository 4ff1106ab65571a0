"""A right reader gets the replica's items from its pages and lists, and nothing else."""

import gzip
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import timedelta
from hashlib import sha256
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

import pytest

from moviecrawler.items import Entry, Site
from moviecrawler.replica.collection import Collection
from moviecrawler.replica.datasets import FILES, Dataset
from moviecrawler.replica.options import TODAY
from moviecrawler.replica.process import ReplicaProcess
from moviecrawler.replica.series import SHAPES
from moviecrawler.replica.sources import Answer, Source
from moviecrawler.sites import SCORE_SITES, SCOREBOARD_KINDS, SITES
from moviecrawler.sites.ids import title_url
from moviecrawler.sites.pages import read_page
from moviecrawler.sites.rottentomatoes.replica import IN_THEATERS
from tests import written
from tests.crawling import change
from tests.replica.client import ask
from tests.services.replica import ReplicaOf, page_of

TITLES = 300
COLLECTION = Collection(1, TITLES, 20)
SERIES = COLLECTION.series
SLUG = SERIES.ids["metacritic"][1]
FINDER = "/finder/metacritic/web?mcoTypeId=2&limit=24&sortBy="
FINDER_KEYS: dict[str, Callable[[int], int]] = {
    "-metaScore": lambda index: -(COLLECTION.critics("metacritic", index) or 0),
    "-releaseDate": lambda index: -COLLECTION.year("metacritic", index),
    "-popularityCount": int,
}
ON_METACRITIC = list(COLLECTION.ids["metacritic"])
ON_TOMATOES = list(COLLECTION.ids["rottentomatoes"])
TOMATOES = SERIES.ids["rottentomatoes"][1]


@pytest.fixture
def entire(replica_of: ReplicaOf) -> ReplicaProcess:
    """Return a replica with whole pages, and with series."""
    return replica_of(titles=TITLES, series=20)


@pytest.mark.parametrize("site", SITES)
def test_every_page_is_read_as_its_item(site: Site) -> None:
    collection = Collection(1, 30, len(SHAPES))
    movies = collection.every(site)
    kinds = {"imdb": {"movie", "series", "episode"}}.get(
        site, {"movie", "series", "season", "episode"}
    )
    assert {movie.kind for movie in movies.values()} == kinds
    for site_id, movie in movies.items():
        page = read_page(page_of(collection, site, site_id), str(movie.url))
        assert page.movie is not None
        assert replace(page.movie, unknown_fields=[]) == movie
        if site == "imdb":
            assert set(page.movie.unknown_fields) == {"offers", "taglines"}, "what other pages tell"
        found = collection.find(site, site_id)
        assert found is not None
        listed = found[0].listed.get(site, []) if movie.kind == "series" else []
        assert [replace(season, unknown_fields=[]) for season in page.seasons] == listed


@pytest.mark.parametrize(("digest", "site", "asked"), written.rows(__file__, "bytes.txt"))
def test_the_bytes_are_those_of_earlier_versions(
    digest: str, site: Site, asked: str, tmp_path: Path
) -> None:
    collection = COLLECTION if asked.startswith("/") else Collection(1, 60, len(SHAPES))
    source = Source(collection, light=True)
    if asked == "datasets":
        files = [Dataset(collection, tmp_path, name).write() for name in sorted(FILES)]
        bodies = [gzip.decompress(file.read_bytes()) for file in files]
    else:
        paths = [asked]
        if asked == "titles":
            paths = [urlsplit(str(movie.url)).path for movie in collection.pages(site)]
        bodies = []
        for path in paths:
            plain, _, query = path.partition("?")
            answer = source.answer(site, plain, dict(parse_qsl(query)), "http://127.0.0.1:8000")
            assert isinstance(answer, Answer)
            bodies.append(answer.body)
    assert sha256(b"".join(bodies)).hexdigest()[:12] == digest


def test_films_and_series_have_the_traps_of_the_sites() -> None:
    films = [COLLECTION.title(index).movies for index in range(TITLES)]
    assert len({movies["imdb"].title for movies in films}) < TITLES, "remakes share a title"
    for site in ("metacritic", "rottentomatoes"):
        assert any(movies[site].year != movies["imdb"].year for movies in films if site in movies)
    specials = SERIES.title(0)
    first = SERIES.title(4)
    again = SERIES.title(5)
    assert str(specials.listed["metacritic"][0].site_id).endswith("/specials")
    assert specials.listed["rottentomatoes"][-1].season == 0
    assert f"/{SLUG}/critic-reviews/?season=season-2".encode() in page_of(
        COLLECTION, "metacritic", f"{SLUG}/season-2"
    )
    assert first.movies["imdb"].title == again.movies["imdb"].title


def test_a_new_season_begins_on_its_day(entire: ReplicaProcess) -> None:
    begins = next(start for start in SERIES.starts(0) if start > TODAY)
    before = Collection(1, TITLES, 20, begins - timedelta(1)).series.title(0)
    after = Collection(1, TITLES, 20, begins).series.title(0)
    assert before == SERIES.title(0)
    assert after.movies["imdb"].season_count == (before.movies["imdb"].season_count or 0) + 1
    new = [one for one in after.parts["imdb"] if one.season == after.movies["imdb"].season_count]
    assert not any(one.scores for one in new[1:]), "the others are announced"
    address = f"{entire.urls['rottentomatoes']}/{SERIES.ids['rottentomatoes'][0]}/s04"
    basics = f"{entire.urls['imdb']}/datasets/title.basics.tsv.gz"
    asked = [(ask(address).status, ask(basics, method="HEAD").headers["etag"])]
    change(entire, today=begins.isoformat())
    asked.append((ask(address).status, ask(basics, method="HEAD").headers["etag"]))
    assert [status for status, _ in asked] == [404, 200]
    assert asked[0][1] != asked[1][1]


@pytest.mark.parametrize(
    ("site", "smallest", "largest"),
    [
        ("imdb", 1_200_000, 1_500_000),
        ("metacritic", 400_000, 600_000),
        ("rottentomatoes", 350_000, 450_000),
    ],
)
def test_title_pages_have_the_sites_sizes(
    entire: ReplicaProcess, site: Site, smallest: int, largest: int
) -> None:
    site_id = COLLECTION.ids[site][1]
    url = title_url(site, site_id, entire.urls[site])
    whole = ask(url).body
    light = page_of(COLLECTION, site, site_id)
    assert smallest < len(whole) < largest
    assert 3 < len(whole) / len(ask(url, {"Accept-Encoding": "gzip"}).body) < 7
    assert 2_000 < len(light) < 20_000
    movie = read_page(whole, title_url(site, site_id)).movie
    assert movie is not None
    assert replace(movie, unknown_fields=[]) == COLLECTION.title(1).movies[site]


@pytest.mark.parametrize(
    "accepted", ["", "identity", "br", "gzip", "gzip;q=0.5", "gzip, deflate, br"]
)
def test_a_page_is_encoded_as_asked(entire: ReplicaProcess, accepted: str) -> None:
    url = f"{entire.urls['imdb']}/title/{COLLECTION.ids['imdb'][3]}/"
    reply = ask(url, {"Accept-Encoding": accepted})
    plain = ask(url).body
    is_compressed = "gzip" in accepted
    assert reply.headers.get("content-encoding") == ("gzip" if is_compressed else None)
    assert (gzip.decompress(reply.body) if is_compressed else reply.body) == plain


@pytest.mark.parametrize(
    ("site", "path", "places"),
    [
        ("imdb", "/chart/top/", COLLECTION.top_ranks),
        ("imdb", "/chart/moviemeter/", range(100)),
        ("imdb", "/chart/boxoffice/", range(10)),
        *(
            (
                "metacritic",
                FINDER + order,
                sorted(ON_METACRITIC, key=key),
            )
            for order, key in FINDER_KEYS.items()
        ),
        ("rottentomatoes", "/browse/movies_at_home/sort:popular", ON_TOMATOES),
        ("rottentomatoes", "/browse/movies_in_theaters", ON_TOMATOES[:IN_THEATERS]),
    ],
)
def test_a_list_has_its_titles_in_order_to_its_end(
    entire: ReplicaProcess, site: Site, path: str, places: Iterable[int]
) -> None:
    movies = [COLLECTION.title(place).movies[site] for place in places]
    live = {"metacritic": "https://backend.metacritic.com"}.get(site, f"https://www.{site}.com")
    entries = list[Entry]()
    repeated = 0
    offset = 0
    following = path
    while following:
        listing = read_page(ask(entire.urls[site] + following).body, live + following).listing
        assert listing is not None
        new = [
            entry
            for entry in listing.entries
            if entry.site_id not in {one.site_id for one in entries}
        ]
        repeated += len(listing.entries) - len(new)
        entries += new
        following = (
            path.replace("/browse/", "/cnapi/browse/") + f"?after={listing.next}"
            if listing.next
            else ""
        )
        if site == "metacritic":
            offset += 24
            following = f"{path}&offset={offset}" if listing.next else ""
            assert listing.total == len(movies)
    assert [entry.site_id for entry in entries] == [movie.site_id for movie in movies]
    assert [entry.title for entry in entries] == [movie.title for movie in movies]
    assert (repeated > 0) == ("metaScore" in path), "rows that tie come up on both pages"
    shown = {kind for kind in SCOREBOARD_KINDS if SCORE_SITES[kind] == site}
    for entry, movie in zip(entries, movies, strict=True):
        scores = [(score.kind, score.value) for score in movie.scores if score.kind in shown]
        assert [(score.kind, score.value) for score in entry.scores] == scores
        assert entry.year in {movie.year, None}


@pytest.mark.parametrize(
    ("site", "path", "status"),
    [
        ("imdb", f"/title/{SERIES.ids['imdb'][1][:-2]}99/", 404),
        ("imdb", "/datasets/title.none.tsv.gz", 404),
        ("metacritic", "/movie/no-such-movie/", 404),
        ("metacritic", f"/{SLUG}/season-6/", 404),
        ("metacritic", "/movies/9.xml", 404),
        ("metacritic", "/finder/metacritic/web?mcoTypeId=13", 404),
        ("metacritic", "/finder/metacritic/web?mcoTypeId=2&limit=x", 400),
        ("rottentomatoes", "/m/no_such_movie", 404),
        ("rottentomatoes", f"/{TOMATOES}/s01/e14", 404),
        ("rottentomatoes", "/cnapi/browse/movies_at_home", 404),
        ("rottentomatoes", "/sitemaps/movie_9.xml", 404),
    ],
)
def test_what_is_not_there_is_not_served(
    entire: ReplicaProcess, site: Site, path: str, status: int
) -> None:
    assert ask(entire.urls[site] + path).status == status


def test_addresses_redirect_to_the_canonical_ones(entire: ReplicaProcess) -> None:
    imdb_id = COLLECTION.ids["imdb"][0]
    reply = ask(f"{entire.urls['imdb']}/title/{imdb_id}")
    assert (reply.status, reply.headers["location"]) == (308, f"/title/{imdb_id}/")
    assert ask(f"{entire.urls['metacritic']}/{SLUG}").headers["location"] == f"/{SLUG}/"
    for mark, other in (("_", "-"), ("-", "_")):
        site_id = next(
            one
            for one in COLLECTION.ids["rottentomatoes"].values()
            if mark in one and other not in one
        )
        reply = ask(f"{entire.urls['rottentomatoes']}/{site_id.replace(mark, other)}")
        assert (reply.status, reply.headers["location"]) == (301, f"/{site_id}")
