import os
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from scrapy.settings import Settings
from scrapy.spiderloader import SpiderLoader

from moviecrawler.basics.errors import ConfigurationError
from moviecrawler.proxies.site_pools import SitePools
from moviecrawler.spiders.imdb import ImdbSpider
from tests import written


@pytest.fixture
def settings() -> Settings:
    """Return the project's settings."""
    settings = Settings()
    settings.setmodule("moviecrawler.settings")
    return settings


@pytest.mark.promise(
    "A wrong argument or setting ends a crawl before its first request, in one sentence."
)
@pytest.mark.parametrize(
    ("site", "arguments", "told"),
    [
        *written.rows(__file__, "arguments.txt"),
        ("imdb", "ids=,", "names no title"),
        ("imdb", "limit=" + "9" * 5000, "limit is '999"),
        ("imdb", "file=a\0b", "can't be read"),
        ("rottentomatoes", "list=movies_at_home\n", "list is"),
    ],
)
def test_wrong_argument_is_one_sentence(
    settings: Settings, site: str, arguments: str, told: str
) -> None:
    spider: Any = SpiderLoader(settings).load(site)
    given = dict(argument.split("=", 1) for argument in arguments.split(" "))
    with pytest.raises(ConfigurationError) as error:
        spider.parse_arguments(settings, given)
    assert told in str(error.value)
    assert "\n" not in str(error.value)


def test_arguments_that_scrapyd_adds_are_accepted(settings: Settings) -> None:
    ImdbSpider.parse_arguments(settings, {"_job": "abc", "_version": "1"})


def test_the_age_of_records_needs_a_store_that_can_tell_it(settings: Settings) -> None:
    age = {"skip_newer_than": "7d"}
    assert ImdbSpider.parse_arguments(settings, age).skip_newer_than == timedelta(days=7)
    settings.setdict({"SQLITE_ENABLED": "0", "MONGO_URL": "mongodb://db/movies"})
    with pytest.raises(ConfigurationError, match="needs SQLITE_ENABLED or DATABASE_URL"):
        ImdbSpider.parse_arguments(settings, age)
    settings.set("DATABASE_URL", "postgresql://db/movies")
    assert ImdbSpider.parse_arguments(settings, age).skip_newer_than == timedelta(days=7)


def test_ids_and_file_together_name_each_title_once_in_order(
    settings: Settings, tmp_path: Path
) -> None:
    file = tmp_path / "titles.txt"
    file.write_text(
        "\ufeff# first\ntt0000002\n\n https://www.imdb.com/title/tt0000003/?ref_=x \ntt0000001\n",
        "utf-8",
    )
    given = {"ids": "tt0000001, tt0000004", "file": str(file)}
    plan = ImdbSpider.parse_arguments(settings, given)
    assert plan.titles == ["tt0000001", "tt0000004", "tt0000002", "tt0000003"]


@pytest.mark.promise("A CSV of any program is a list of titles, and rows without an id are told.")
@pytest.mark.parametrize(
    ("content", "ids", "note"),
    [
        (
            (
                "\ufeffPosition,Const,Description,Title,URL\r\n"
                '1,tt0000001,"two\r\nlines, tt0000009",A,https://www.imdb.com/title/tt0000001/\r\n'
                "2,,,B,https://www.imdb.com/title/tt0000002/?ref_=ttls\r\n3,,,C,\r\n"
            ),
            ["tt0000001", "tt0000002"],
            "1 of 3, first line 5",
        ),
        ("trakt_id,imdb_id,url\n1,tt0000001,https://trakt.tv/a\n2,\n", ["tt0000001"], "1 of 2"),
        ("title;imdbID\nA;tt0000001\n".encode("utf-16"), ["tt0000001"], ""),
        ("Titel\tKennung\nAm\xe9lie\ttt0000001\n".encode("latin-1"), ["tt0000001"], ""),
        ("sep=;\nmovieId;imdbId\n1;0000001\n", ["tt0000001"], ""),
        ("tt0000001,no header\ntt0000002,\n", ["tt0000001", "tt0000002"], ""),
        ("best,next\ntt0000001,\ntt0000002,\n,tt0000003\n", ["tt0000001", "tt0000002"], "1 of 3"),
    ],
    ids=["imdb", "trakt", "utf-16", "own names", "movielens", "no header", "two columns"],
)
def test_a_csv_names_titles_and_rows_without_an_id_are_told(
    content: str | bytes, ids: list[str], note: str, settings: Settings, tmp_path: Path
) -> None:
    (tmp_path / "a.csv").write_bytes(content.encode() if isinstance(content, str) else content)
    plan = ImdbSpider.parse_arguments(settings, {"file": str(tmp_path / "a.csv")})
    assert plan.titles == ids
    assert (note in plan.note) if note else not plan.note


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (
            b"tt0000002\nThe Third Man is not\n",
            r"line 2 of .*titles\.txt is not a title of imdb; give an id such as tt",
        ),
        (b"\xff\xfe\x00", "can't be read"),
        (b"# none\n", "names no title"),
        (b"Third,Man\n1,2\n", "none of the 1 rows of .*titles.txt has an id or URL of imdb"),
        (b"\0" * (16 * 1024 * 1024 + 1), "it has more than 16,777,216 bytes"),
    ],
    ids=["malformed line", "no text", "no titles", "no ids", "too large"],
)
def test_a_wrong_file_is_refused_and_none_of_it_shown(
    content: bytes, told: str, settings: Settings, tmp_path: Path
) -> None:
    (tmp_path / "titles.txt").write_bytes(content)
    with pytest.raises(ConfigurationError, match=told) as caught:
        ImdbSpider.parse_arguments(settings, {"file": str(tmp_path / "titles.txt")})
    # It may be any file of a node.
    assert "Third" not in str(caught.value)


@pytest.mark.promise(
    "A job makes no setting that names a class, a path or a URL, and shows no secret."
)
def test_only_a_regular_file_is_read(settings: Settings, tmp_path: Path) -> None:
    """A device may never end, and a pipe may never begin."""
    os.mkfifo(tmp_path / "pipe")
    for path in ("/dev/zero", str(tmp_path / "pipe"), "/dev/null"):
        with pytest.raises(ConfigurationError, match="can't be read: it is not a regular file"):
            ImdbSpider.parse_arguments(settings, {"file": path})
    for pools in ("/dev/zero", str(tmp_path / "pipe")):
        with pytest.raises(ConfigurationError, match="it is not a regular file"):
            SitePools.from_settings(Settings({"PROXY_POOLS": pools}))
