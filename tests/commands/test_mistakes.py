"""A command that can't do what it is asked to says why in one sentence, without a secret."""

import os
from pathlib import Path

import pytest

from tests.crawling import scrapy

DATABASE = ["-s", "DATABASE_URL=postgresql://me:s3cret@127.0.0.1:1/movies"]


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
            "--to: 'yesterday' is no date such as 2026-03-01",
        ),
        (["replay", ".", "elsewhere"], 2, "takes no argument 'elsewhere'"),
        (["replay", "."], 2, "'.' holds no archive: it has no folder raw"),
        (["catalogue"], 2, "the following arguments are required: ACTION"),
        (["catalogue", "import", "imdb", "--kinds", "film"], 2, "--kinds: names 'film'"),
        (["catalogue", "import", "imdb", "--years", "x"], 2, "--years: 'x' is no whole number"),
        (
            ["catalogue", "import", "imdb", "--from", "file:///tmp"],
            2,
            "'file:///tmp'; give a path, or a URL such as",
        ),
        (
            ["catalogue", "import", "imdb", "--from", "http://me:s3cret@h"],
            2,
            "it has a user or a password before its host",
        ),
        (["catalogue", "boost", "0111161"], 2, "'0111161' is no title"),
        (
            ["catalogue", "boost", "tv/a"],
            2,
            "'tv/a' may be a title of metacritic and rottentomatoes; give its URL",
        ),
        (["catalogue", "boost", "tt0111161", "--by", "-1"], 2, "--by: '-1' is no number above 0"),
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
        (["scoreboard", "--limit", "0"], 2, "--limit: '0' is no whole number above 0"),
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
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_what_is_wrong_is_one_sentence(
    arguments: list[str], code: int, expected: str, tmp_path: Path
) -> None:
    finished = scrapy(*arguments, data=tmp_path)
    assert finished.code == code, finished.log
    assert expected in finished.log.strip().splitlines()[-1]
    assert "s3cret" not in finished.log
    assert "Traceback" not in finished.log
