"""A command that can't do what it is asked to says why in one sentence, without a secret."""

import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from moviecrawler.database.sqlite import FILE
from tests.crawling import scrapy


def write_files(folder: Path) -> None:
    """Write what users take for something else."""
    for name in ("damaged", "foreign", "folder", "readonly"):
        (folder / name).mkdir()
    (folder / "damaged" / FILE).write_bytes(b"no database" * 1000)
    (folder / "folder" / FILE).mkdir()
    (folder / "wide.txt").write_text("tt0111161\ndull film\n", "utf-16")
    with closing(sqlite3.connect(folder / "foreign" / FILE)) as connection:
        connection.execute("CREATE TABLE films (name)")
    (folder / "readonly" / FILE).touch(0o400)


DATABASE = ["-s", "DATABASE_URL=postgresql://me:s3cret@127.0.0.1:1/movies"]


@pytest.mark.promise("A user's mistake is one sentence with what to do, and never a traceback.")
@pytest.mark.parametrize(
    ("arguments", "code", "expected"),
    [
        (["progress", "--run", "nope"], 1, "there is no run 'nope'"),
        (["progress", "drop"], 2, "drop takes the name of a run: --run RUN"),
        (["progress", "drop", "--run", "nope"], 1, "there is no run 'nope'"),
        (["progress", "-s", "REDIS_URL=localhost:6379"], 2, "REDIS_URL is not a Redis URL"),
        (
            ["progress", "-s", "REDIS_URL=redis://127.0.0.1:1/0", "now"],
            2,
            "invalid choice: 'now' (choose from",
        ),
        (
            ["progress", "-s", "REDIS_URL=redis://me:s3cret@127.0.0.1:1/0"],
            1,
            "Redis at REDIS_URL can't be used: ",
        ),
        (["deadletters", "drop", "nope"], 1, "there is no dead letter nope"),
        (["deadletters", "eat"], 2, "invalid choice: 'eat' (choose from"),
        (["deadletters", "drop"], 2, "drop takes the ids of dead letters"),
        (["deadletters", "drop", "1", "--all"], 2, "drop takes the ids"),
        (
            ["deadletters", "-s", "REDIS_URL=redis://me:s3cret@127.0.0.1:1/0"],
            1,
            "Redis at REDIS_URL can't be used: ",
        ),
        (["proxies", "nonsense"], 2, "invalid choice: 'nonsense'"),
        (["proxies", "clear", "nobody"], 2, "there is no proxy nobody"),
        (
            ["proxies", "-s", "REDIS_URL=redis://me:s3cret@127.0.0.1:1/0"],
            1,
            "Redis at REDIS_URL can't be used: ",
        ),
        (["extract"], 2, "the following arguments are required: FILE"),
        (
            ["extract", "--url", "https://example.com/", "a.html"],
            2,
            "--url takes the address of one page",
        ),
        (
            ["extract", "--url", "https://www.imdb.com/title/tt0111161/", "a", "b"],
            2,
            "--url takes the address of one",
        ),
        (["extract", "a", "-s", "LOG_LEVEL=INFO", "--eat"], 2, "takes no argument '--eat'"),
        (["match"], 2, "the following arguments are required: FILMS"),
        (["match", "films.csv"], 2, "films.csv can't be read"),
        (["match", os.devnull], 2, "/dev/null is empty; give CSV"),
        (
            ["replay", "--to", "yesterday", "."],
            2,
            "--to: 'yesterday' is not a date; use YYYY-MM-DD",
        ),
        (["replay", ".", "elsewhere"], 2, "takes no argument 'elsewhere'"),
        (["replay", "."], 2, "'.' holds no archive: it has no folder raw"),
        (["catalogue"], 2, "the following arguments are required: ACTION"),
        (["catalogue", "import", "imdb", "--kinds", "film"], 2, "--kinds: names 'film'"),
        (["catalogue", "import", "imdb", "--years", "x"], 2, "--years: 'x' is not an integer"),
        (
            ["catalogue", "import", "imdb", "--from", "file:///tmp"],
            2,
            "'file:///tmp'; give a path, or a URL such as",
        ),
        (
            ["catalogue", "import", "imdb", "--from", "http://me:s3cret@h"],
            2,
            "the URL seems to contain credentials",
        ),
        (["catalogue", *DATABASE, "boost", "0111161"], 2, "'0111161' is not a title"),
        (
            ["catalogue", *DATABASE, "boost", "tv/a"],
            2,
            "'tv/a' may be a title of metacritic and rottentomatoes; give its URL",
        ),
        (
            ["catalogue", "boost", "tt0111161", "--by", "-1"],
            2,
            "--by: '-1' is not a number above 0",
        ),
        (["catalogue", "due", "imbd"], 2, "invalid choice: 'imbd'"),
        (
            ["catalogue", *DATABASE, "review", "tt0111161", "--accept"],
            2,
            "to decide, give IMDb id, site and --accept",
        ),
        (
            ["catalogue", *DATABASE, "review", "tt1", "imdb", "--accept", "--refuse"],
            2,
            "to decide, give IMDb id, site",
        ),
        (
            ["catalogue", "import", "csv", "--min-votes", "0", *DATABASE],
            2,
            "csv needs the file: --from FILE",
        ),
        (["catalogue", "status"], 2, "DATABASE_URL is not set"),
        (["catalogue", "status", *DATABASE], 1, "scrapy catalogue: "),
        (["changes", "--since", "monday"], 2, "--since: 'monday' is not a day such as 2026-11-28"),
        (["changes", "--since", "2026-11-28"], 1, "movies.sqlite3 yet; crawl first: "),
        (["scoreboard", "--limit", "0"], 2, "--limit: '0' is not an integer greater than 0"),
        (
            ["scoreboard", "-s", "SQLITE_ENABLED=0"],
            2,
            "there is no embedded database; set DATABASE",
        ),
        (["crawl", "imdb", "-s", "SQLITE_ENABLED=0"], 2, "no other store is set; set DATABASE_URL"),
        (
            ["crawl", "imdb", "-s", "SQLITE_ENABLED=0", "-s", "CSV_ENABLED=1", *DATABASE],
            2,
            "the CSV files are made from that database; remove one of them",
        ),
        (["scoreboard"], 1, "crawl first, such as with: scrapy crawl imdb"),
        (["scoreboard", "-s", "DATA_DIR=damaged"], 2, "damaged can't be read (file is not a data"),
        (["scoreboard", "-s", "DATA_DIR=foreign"], 2, "no version of moviecrawler has made"),
        (["scoreboard", "--export", "-s", "DATA_DIR=folder"], 2, "folder can't be read"),
        (["scoreboard", "-s", "DATA_DIR=readonly"], 1, "holds no title yet"),
        (["crawl"], 2, "name one spider"),
        (["crawl", "imdb", "top"], 2, "name one spider"),
        (["crawl", "imbd"], 2, "no spider 'imbd'; there are imdb, metacritic, rottentomatoes"),
        (["crawl", "imdb", "-a", "top"], 2, "Invalid -a value, use -a NAME=VALUE"),
        (["crawl", "imdb", "-a", "limit=three"], 2, "limit is 'three'; give a whole number"),
        (["crawl", "imdb", "-a", "list=bottom"], 2, "list is 'bottom'; give one of top, "),
        (["crawl", "imdb", "-a", "year=1994"], 2, "unknown argument 'year'; this spider takes "),
        (["crawl", "imdb", "-a", "file=folder"], 2, "file 'folder' can't be read"),
        (["crawl", "imdb", "-a", "file=wide.txt"], 2, "line 2 of wide.txt is not a title of imdb"),
        (["crawl", "imdb", "-o", "films.doc"], 2, "Unrecognized output format 'doc'"),
        (["crawl", "all", "-a", "list=top"], 2, "list is 'top', which is a list of one site"),
        (["crawl", "imdb", "-s", "DATADIR=films"], 2, "setting DATADIR: did you mean DATA_DIR?"),
        (["crawl", "imdb", "-s", "DATA_DIR=wide.txt"], 2, "where nothing can be written"),
        (["crawl", "imdb", "-s", "DATA_DIR"], 2, "Invalid -s value, use -s NAME=VALUE"),
        (["crawl", "imdb", "-L", "loud"], 2, "LOG_LEVEL is 'loud'; set it to CRITICAL, ERROR, "),
        (["crawl", "imdb", "-s", "LOG_FORMAT=%(text)s"], 2, "LOG_FORMAT is '%(text)s'; set it to "),
        (["crawl", "imdb", "-s", "SQLITE_ENABLED=FALSE"], 2, "SQLITE_ENABLED is 0, and no other"),
        (["crawl", "imdb", "--logfile", "folder"], 2, "LOG_FILE is 'folder'; set it to a file"),
        (["crawl", "imdb", "--pidfile", "none/pid"], 2, "No such file or directory: 'none/pid'"),
        (["crawl", "imdb", "-s", "LOG_ENCODING=latin-0"], 2, "LOG_ENCODING is 'latin-0'; set it"),
        (["crawl", "imdb", "-s", "CONCURRENT_REQUESTS=-1"], 2, "CONCURRENT_REQUESTS is '-1'; set"),
        (["crawl", "imdb", "-s", "DOWNLOAD_TIMEOUT=nan"], 2, "DOWNLOAD_TIMEOUT is 'nan'; set it"),
        (["crawl", "imdb", "-s", "RETRY_HTTP_CODES=5xx"], 2, "RETRY_HTTP_CODES is '5xx'; set it"),
        (["crawl", "imdb", "-s", "ITEM_PIPELINES=mine"], 2, "ITEM_PIPELINES is 'mine'; set it to"),
        (
            ["crawl", "imdb", "-s", 'EXTENSIONS={"a.B": 1}'],
            2,
            "EXTENSIONS names 'a.B', which",
        ),
        (
            ["crawl", "imdb", "-s", "SPIDER_LOADER_CLASS=a.B"],
            2,
            "SPIDER_LOADER_CLASS is 'a.B'",
        ),
        (["crawl", "imdb", "-s", "STORE_UNREACHABLE=skip"], 2, "is 'skip'; set it to fail or wait"),
        (["crawl", "imdb", "-s", "SITE_BUDGETS=60"], 2, "SITE_BUDGETS "),
        (["list", "-s", 'ADDONS={"a.B": 1}'], 2, "ADDONS names what can't be imported"),
        (["replica", "--port", "99999"], 2, "port is '99999'; set it to a whole number from 0"),
        (["demo", "--titles", "0"], 2, "titles is 0; set it to a whole number from 1"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_what_is_wrong_is_one_sentence(
    arguments: list[str], code: int, expected: str, tmp_path: Path
) -> None:
    write_files(tmp_path)
    finished = scrapy(*arguments, data=tmp_path)
    assert finished.code == code, finished.log
    assert expected in finished.log.strip().splitlines()[-1]
    assert "s3cret" not in finished.log
    assert "Traceback" not in finished.log
