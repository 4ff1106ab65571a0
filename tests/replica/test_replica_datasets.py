"""IMDb's datasets say what the replica's pages say, and are served in parts."""

from contextlib import closing
from dataclasses import replace
from pathlib import Path

from moviecrawler.datasets.tables import Tables
from moviecrawler.datasets.titles import dataset_names
from moviecrawler.items import Role
from moviecrawler.replica.collection import Collection
from moviecrawler.replica.datasets import Dataset
from moviecrawler.replica.process import ReplicaProcess
from tests.dataset_files import movies_of
from tests.replica.client import ask

FIELDS = (
    "title",
    "kind",
    "title_type",
    "original_title",
    "year",
    "end_year",
    "runtime_minutes",
    "genres",
)
ROLES: tuple[Role, ...] = ("director", "writer", "cast")
PLACE = ("series_id", "series_title", "season", "episode")


def test_datasets_are_read_as_the_items_of_the_pages(tmp_path: Path) -> None:
    collection = Collection(1, 60, 10)
    names = dataset_names("basics,ratings,crew,principals,akas,episode")
    files = {name: Dataset(collection, tmp_path, f"{name}.tsv.gz").write() for name in names}
    true = collection.every("imdb")
    with closing(Tables(files, tmp_path)) as tables:
        tables.want(list(true))
        movies = movies_of(tables)
        assert not tables.damaged
    for movie in movies:
        item = true.pop(str(movie.site_id))
        names_of = (*FIELDS, *PLACE) if item.kind == "episode" else FIELDS
        assert {name: getattr(movie, name) for name in names_of} == {
            name: getattr(item, name) for name in names_of
        }
        rating = item.score("imdb")
        assert movie.scores == ([replace(rating, reviews=None, histogram=[])] if rating else [])
        if item.kind == "movie":
            assert [
                [(one.person_id, one.character) for one in movie.people(role)] for role in ROLES
            ] == [[(one.person_id, one.character) for one in item.people(role)] for role in ROLES]
            assert item.title in {other.title for other in movie.other_titles}
    assert not true


def test_datasets_come_whole_and_in_parts(replica: ReplicaProcess) -> None:
    url = f"{replica.urls['imdb']}/datasets/title.crew.tsv.gz"
    whole = ask(url)
    size = len(whole.body)
    assert (whole.status, whole.headers["content-length"]) == (200, str(size))
    assert "content-encoding" not in whole.headers
    end = ask(url, {"Range": "bytes=10-"})
    assert (end.status, end.headers["content-range"]) == (206, f"bytes 10-{size - 1}/{size}")
    assert end.body == whole.body[10:]
    assert ask(url, {"If-None-Match": whole.headers["etag"]}).status == 304
