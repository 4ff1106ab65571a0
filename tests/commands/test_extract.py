from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from tests.conftest import PROJECT
from tests.crawling import Finished, scrapy

PAGES = PROJECT / "tests" / "pages"


def lines(finished: Finished) -> list[dict[str, object]]:
    return [json.loads(line) for line in finished.output.splitlines()]


def test_each_file_is_one_line_in_order(tmp_path: Path) -> None:
    files = [
        str(next(PAGES.glob(f"{case}*/page.*")))
        for case in ("imdb/title-2025", "metacritic/nuxt3", "rottentomatoes/2026")
    ]
    finished = scrapy("extract", *files, data=tmp_path)
    assert [line["file"] for line in lines(finished)] == files
    assert [line["site"] for line in lines(finished)] == ["imdb", "metacritic", "rottentomatoes"]
    assert finished.code == 0


def test_file_that_can_not_be_read_is_an_error_and_the_rest_is_read(tmp_path: Path) -> None:
    good = str(next(PAGES.glob("imdb/title-2025*/page.html")))
    (tmp_path / "letter.txt").write_text("Dear Sir")
    (tmp_path / "empty.html").write_text("")
    cut = tmp_path / "cut.html"
    cut.write_bytes(Path(good).read_bytes()[:1500])
    finished = scrapy(
        "extract", "letter.txt", "empty.html", "missing.html", str(cut), str(tmp_path), good, data=tmp_path
    )
    assert finished.code == 1
    assert ["error" in line for line in lines(finished)] == [True, True, True, True, True, False]
    assert "Traceback" not in finished.log


@pytest.mark.skipif(sys.platform in {"win32", "darwin"}, reason="file names are Unicode there")
def test_a_file_may_have_any_name(tmp_path: Path) -> None:
    (tmp_path / os.fsdecode(b"l\xe1mpa.html")).write_text("Dear Sir")
    finished = scrapy("extract", os.fsdecode(b"l\xe1mpa.html"), "missing.html", data=tmp_path)
    assert finished.code == 1
    assert [line["file"] for line in lines(finished)] == ["l\ufffdmpa.html", "missing.html"]
    assert "Traceback" not in finished.log


def test_block_page_is_reported_as_one(tmp_path: Path) -> None:
    (tmp_path / "block.html").write_text("<html><head><title>Just a moment...</title></head><body></body></html>")
    finished = scrapy("extract", "block.html", data=tmp_path)
    assert finished.code == 1
    assert lines(finished) == [
        {"file": "block.html", "block": 'no page, but a challenge: a page titled "Just a moment..."'}
    ]
