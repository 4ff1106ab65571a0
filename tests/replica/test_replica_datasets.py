from __future__ import annotations

import gzip
import json
from typing import TYPE_CHECKING

import pytest

from moviecrawler.replica.datasets import TABLES, Dataset
from moviecrawler.replica.movies import MOST_TITLES, Catalogue
from moviecrawler.replica.series import MOST_SERIES
from tests.replica.client import TITLES, ask

if TYPE_CHECKING:
    from moviecrawler.replica.process import ReplicaProcess

CATALOGUE = Catalogue(1, TITLES)


def rows(name: str) -> list[dict[str, str]]:
    dataset = Dataset(CATALOGUE, name)
    lines = gzip.decompress(b"".join(dataset.read(0, dataset.size))).decode().split("\n")
    assert lines.pop() == ""
    columns = lines[0].split("\t")
    return [dict(zip(columns, line.split("\t"), strict=True)) for line in lines[1:]]


def test_basics_say_what_the_movies_are() -> None:
    found = [row for row in rows("title.basics.tsv.gz") if row["titleType"] in {"movie", "tvMovie"}]
    assert [row["tconst"] for row in found] == sorted(CATALOGUE.imdb_id(index) for index in range(TITLES))
    for row in found:
        index = CATALOGUE.index_of_imdb_id(row["tconst"])
        assert index is not None
        basics = CATALOGUE.basics(index)
        runtime = r"\N" if basics.runtime_minutes is None else str(basics.runtime_minutes)
        assert (row["primaryTitle"], row["startYear"], row["runtimeMinutes"]) == (
            basics.title,
            str(basics.year),
            runtime,
        )
        assert row["originalTitle"] == (basics.original_title or basics.title)
        assert row["genres"].split(",") == list(basics.genres)


def test_ratings_leave_out_the_unrated() -> None:
    found = {row["tconst"]: (float(row["averageRating"]), int(row["numVotes"])) for row in rows("title.ratings.tsv.gz")}
    rated = {CATALOGUE.imdb_id(index): CATALOGUE.rating(index) for index in range(TITLES)}
    for number in range(CATALOGUE.series.count):
        series = CATALOGUE.series.title(number)
        rated[series.imdb_id] = series.rating
        rated |= {episode.imdb_id: episode.rating for episode in series.episodes}
    assert found == {imdb_id: rating for imdb_id, rating in rated.items() if rating is not None}
    assert len(found) < len(rated)


def test_credits_are_those_of_the_pages() -> None:
    principals = rows("title.principals.tsv.gz")
    names = {row["nconst"]: row["primaryName"] for row in rows("name.basics.tsv.gz")}
    crew = {row["tconst"]: row for row in rows("title.crew.tsv.gz")}
    for index in range(0, TITLES, 29):
        made, imdb_id = CATALOGUE.credits(index), CATALOGUE.imdb_id(index)
        cast = [row for row in principals if row["tconst"] == imdb_id and row["category"] == "actor"]
        assert [names[row["nconst"]] for row in cast] == [person.name for person, _ in made.cast]
        played = [None if row["characters"] == r"\N" else " / ".join(json.loads(row["characters"])) for row in cast]
        assert played == [character for _, character in made.cast]
        assert crew[imdb_id]["directors"].split(",") == [person.imdb_id for person in made.directors]
        assert crew[imdb_id]["writers"].split(",") == [person.imdb_id for person in made.writers]


@pytest.mark.parametrize("name", ["title.ratings.tsv.gz", "title.basics.tsv.gz", "name.basics.tsv.gz"])
def test_any_range_is_a_part_of_the_whole(name: str) -> None:
    catalogue = Catalogue(2, 6_003, 250)
    dataset = Dataset(catalogue, name)
    whole = b"".join(dataset.read(0, dataset.size))
    assert len(whole) == dataset.size
    assert len(gzip.decompress(whole).splitlines()) > 5_000
    for start in (0, 200, dataset.size // 2, dataset.size - 1):
        end = min(start + 70_000, dataset.size)
        assert b"".join(dataset.read(start, end)) == whole[start:end]


@pytest.mark.parametrize("name", ["title.ratings.tsv.gz", "title.basics.tsv.gz", "name.basics.tsv.gz"])
def test_members_far_apart_can_be_padded_to_one_size(name: str) -> None:
    dataset = Dataset(Catalogue(99, MOST_TITLES, MOST_SERIES), name)
    for share in (0.2, 0.5, 0.99):
        start = int(dataset.size * share)
        assert len(b"".join(dataset.read(start, start + 10))) == 10


@pytest.mark.parametrize("name", TABLES)
def test_datasets_come_whole_and_in_parts(replica: ReplicaProcess, name: str) -> None:
    url = f"{replica.urls['imdb']}/datasets/{name}"
    whole = ask(url)
    size = len(whole.body)
    assert whole.status == 200
    assert whole.headers["content-length"] == str(size)
    assert "content-encoding" not in whole.headers
    middle = ask(url, {"Range": f"bytes=10-{size - 10}"})
    assert (middle.status, middle.headers["content-range"]) == (206, f"bytes 10-{size - 10}/{size}")
    assert middle.body == whole.body[10 : size - 9]
    assert ask(url, {"Range": "bytes=50-"}).body == whole.body[50:]
    assert ask(url, {"Range": "bytes=-50"}).body == whole.body[-50:]
    assert ask(url, {"Range": "bytes=0-0"}).body == whole.body[:1]


def test_a_request_is_answered_with_a_part_the_whole_or_nothing_as_its_headers_ask(replica: ReplicaProcess) -> None:
    url = f"{replica.urls['imdb']}/datasets/title.ratings.tsv.gz"
    whole = ask(url)
    etag, size = whole.headers["etag"], len(whole.body)
    assert whole.headers["last-modified"].endswith("GMT")
    part = {"Range": "bytes=1-5"}
    for headers, status, body in (
        ({**part, "If-Range": etag}, 206, whole.body[1:6]),
        ({**part, "If-Range": '"older"'}, 200, whole.body),
        *(
            ({"Range": asked}, 200, whole.body)
            for asked in ("bytes=5-2,7-9", "lines=1-2", "bytes=-", "bytes=a-b", "bytes=9-5")
        ),
        *(({"If-None-Match": known}, 304, b"") for known in (etag, f'"other", W/{etag}', "*")),
        ({"If-None-Match": '"other"'}, 200, whole.body),
    ):
        reply = ask(url, headers)
        assert (reply.status, reply.body, reply.headers["etag"]) == (status, body, etag), headers
    beyond = ask(url, {"Range": f"bytes={size}-"})
    assert (beyond.status, beyond.headers["content-range"]) == (416, f"bytes */{size}")


def test_every_catalogue_has_etags_of_its_own() -> None:
    tags = {Dataset(Catalogue(seed, titles), name).etag for seed in (1, 2) for titles in (5, 6) for name in TABLES}
    assert len(tags) == 4 * len(TABLES)
