import json
import os
import sys
from pathlib import Path

from tests.crawling import scrapy
from tests.shared import PROJECT

PAGES = PROJECT / "tests" / "pages"


def test_each_file_is_one_line_in_order_and_what_can_not_be_read_is_an_error(
    tmp_path: Path,
) -> None:
    cases = ("imdb/title-2025", "metacritic/nuxt3", "rottentomatoes/2026")
    pages = [str(next(PAGES.glob(f"{case}*/page.*"))) for case in cases]
    is_unicode = sys.platform in {"win32", "darwin"}
    odd = "l\ufffdmpa.txt" if is_unicode else os.fsdecode(b"l\xe1mpa.txt")  # a name that is no text
    (tmp_path / odd).write_text("Dear Sir")
    (tmp_path / "empty.html").write_text("")
    (tmp_path / "cut.html").write_bytes(Path(pages[0]).read_bytes()[:1500])
    (tmp_path / "block.html").write_text(
        "<html><head><title>Just a moment...</title></head><body></body></html>"
    )
    wrong = [odd, "empty.html", "cut.html", "missing.html", str(tmp_path), "block.html"]
    finished = scrapy("extract", *wrong, "-s", "LOG_LEVEL=INFO", *pages, data=tmp_path)
    lines = [json.loads(line) for line in finished.output.splitlines()]
    assert [line["file"] for line in lines] == ["l\ufffdmpa.txt", *wrong[1:], *pages]
    assert ["error" in line for line in lines] == [True] * 5 + [False] * 4
    assert lines[5]["block"] == 'no page, but a challenge: a page titled "Just a moment..."'
    assert [line["site"] for line in lines[6:]] == ["imdb", "metacritic", "rottentomatoes"]
    assert (finished.code, finished.log) == (1, "")
    assert scrapy("extract", *pages, data=tmp_path).code == 0
