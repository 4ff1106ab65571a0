"""Crawls of IMDb's datasets: what a second one writes, and what becomes of damaged files."""

from __future__ import annotations

import asyncio
import gzip
from typing import TYPE_CHECKING

import pytest
from scrapy import Request
from scrapy.http import Response
from scrapy.utils.test import get_crawler

from moviecrawler import settings as project
from moviecrawler.datasets.downloads import RangedDownload
from moviecrawler.extract.dataset_titles import COLUMNS
from moviecrawler.items import Miss
from moviecrawler.spiders.imdb import ImdbSpider
from tests.crawling import FAST, Finished, scrapy
from tests.datasets.served import serving

if TYPE_CHECKING:
    from pathlib import Path

RATINGS = {"tt0900001": ("8.7", 30_000), "tt0900002": ("6.1", 1_000), "tt0900003": ("5.0", 2_000)}
ASKED = ",".join([*RATINGS, "tt0900009"])


def put(folder: Path, name: str, *rows: str) -> None:
    text = "".join(f"{row}\n" for row in ("|".join(COLUMNS[name]), *rows)).replace("|", "\t")
    (folder / f"{name}.tsv.gz").write_bytes(gzip.compress(text.encode()))


def put_ratings(folder: Path, **changed: tuple[str, int]) -> None:
    rated = {**RATINGS, **changed}
    put(folder, "title.ratings", *(f"{site_id}|{rating}|{votes}" for site_id, (rating, votes) in rated.items()))


def put_all(folder: Path) -> None:
    folder.mkdir()
    put_ratings(folder)
    put(folder, "title.basics", *(rf"{site_id}|movie|Kettle {site_id}|\N|1999|\N|118|Drama" for site_id in RATINGS))
    put(folder, "title.crew", *(rf"{site_id}|nm0900001|\N" for site_id in RATINGS))
    put(folder, "title.principals", *(rf'{site_id}|1|nm0900002|actress|["Vera"]' for site_id in RATINGS))
    put(folder, "title.akas", *(rf"{site_id}|1|Kessel|DE|de|\N" for site_id in RATINGS))
    put(folder, "title.episode")
    put(folder, "name.basics", "nm0900001|Aino", "nm0900002|Berit")


def crawl(url: str, data: Path) -> Finished:
    options = [part for name, value in FAST.items() for part in ("-s", f"{name}={value}")]
    arguments = ("crawl", "imdb", "-a", "via=datasets", "-a", f"ids={ASKED}", *options)
    return scrapy(*arguments, data=data, IMDB_DATASETS_URL=url, FRESHNESS_MARGIN="0")


def test_only_titles_whose_facts_have_changed_are_written_again(tmp_path: Path) -> None:
    files, data = tmp_path / "files", tmp_path / "data"
    data.mkdir()
    put_all(files)
    with serving(files) as url:
        first = crawl(url, data)
        assert (first.code, first.stat("titles/stored"), first.stat("titles/absent")) == (0, 3, 1)
        written = {movie.site_id: movie for movie in first.movies}

        # Nothing has changed: nothing is even read.
        same = crawl(url, data)
        assert "nothing is written" in same.log
        assert (same.code, same.stat("titles/unchanged"), same.stat("titles/absent")) == (0, 3, 1)

        # Votes that hardly moved are no change; a rating is, and so are many votes.
        put_ratings(files, tt0900001=("8.7", 30_200), tt0900002=("6.1", 1_011), tt0900003=("5.1", 2_000))
        changed = crawl(url, data)
        assert (changed.code, changed.stat("titles/unchanged"), changed.stat("titles/stored")) == (0, 1, 2)
        now = {movie.site_id: movie for movie in changed.movies}
        assert now["tt0900001"] == written["tt0900001"]
        assert [now[site_id].scores[0].count for site_id in ("tt0900002", "tt0900003")] == [1_011, 2_000]
        assert now["tt0900003"].scores[0].value == 5.1

        # Whoever removes the CSV files gets them again.
        (data / "movies.sqlite3").unlink()
        assert crawl(url, data).stat("titles/stored") == 3


def test_a_damaged_file_is_reported_and_erases_nothing(tmp_path: Path) -> None:
    files, data = tmp_path / "files", tmp_path / "data"
    data.mkdir()
    put_all(files)
    with serving(files) as url:
        before = crawl(url, data).movies
        whole = (files / "title.principals.tsv.gz").read_bytes()
        for damage in (whole[:-20], whole[:-6] + bytes([whole[-6] ^ 1]) + whole[-5:]):
            (files / "title.principals.tsv.gz").write_bytes(damage)
            put_ratings(files, tt0900001=("1.0", 5))
            cut = crawl(url, data)
            assert cut.code == 1
            assert "damaged or cut short" in cut.log
            # The others need not be fetched again.
            left = {path.name for path in (data / "datasets").glob("*.tsv.gz")}
            assert left == {f"{name}.tsv.gz" for name in COLUMNS if name != "title.principals"}
            assert cut.movies == before
        # Once the file is whole again, so is what it tells.
        (files / "title.principals.tsv.gz").write_bytes(whole)
        mended = crawl(url, data)
        assert mended.code == 0
        assert [movie.site_id for movie in mended.movies] == [movie.site_id for movie in before]
        (movie,) = (movie for movie in mended.movies if movie.site_id == "tt0900001")
        assert movie.scores[0].value == 1.0
        # A row with too few columns costs what it tells, and no more.
        put(files, "title.principals", "tt0900001|1|nm0900002|actress")
        row = crawl(url, data)
        assert (row.code, row.stat("extraction/errors/dataset")) == (0, 1)
        assert "4 columns instead of 5" in row.log
        (movie,) = (movie for movie in row.movies if movie.site_id == "tt0900001")
        assert movie.scores[0].value == 1.0
        (known,) = (movie for movie in before if movie.site_id == "tt0900001")
        assert movie.people("director") == known.people("director")


def test_whatever_goes_wrong_ends_the_pass_and_is_accounted_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> bool:
        raise RuntimeError("not foreseen")

    monkeypatch.setattr(RangedDownload, "accept", broken)

    async def run() -> list[object]:
        values = {name: value for name, value in vars(project).items() if name.isupper()}
        crawler = get_crawler(ImdbSpider, {**values, "DATA_DIR": str(tmp_path)})
        spider = ImdbSpider.from_crawler(crawler, ids="tt0900001", via="datasets")
        requests = [request async for request in spider.start()]
        answer = Response(requests[0].url, request=Request(requests[0].url))
        found = [item async for item in spider.parse_dataset(answer, **requests[0].cb_kwargs)]
        assert spider.pass_done.is_set()  # else `lane=due` would wait for ever
        spider.close_downloads()
        return found

    (miss,) = asyncio.run(run())
    assert isinstance(miss, Miss)
    assert (miss.site_id, miss.outcome, "not foreseen" in (miss.reason or "")) == ("tt0900001", "failed", True)
