"""Pages that the sites really served, from `../shared/pages`.

Of those of today every fact that is known is read, of all others nothing wrong.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Literal

import pytest

from moviecrawler.politeness.blocks import classify
from tests.crawling import scrapy
from tests.shared import PAGES, is_here

pytestmark = pytest.mark.shared("pages")


def _files() -> list[str]:
    lines = (PAGES / "TRUTH.jsonl").read_text("utf-8").splitlines() if is_here("pages") else []
    return sorted(json.loads(line)["file"] for line in lines)


@pytest.mark.promise("The pages that the sites serve now are read with every fact that they state.")
def test_every_fact_of_todays_pages_is_read_and_nothing_wrong_of_any_other(
    tmp_path: Path,
) -> None:
    read = scrapy("extract", *(str(PAGES / file) for file in _files()), data=tmp_path)
    compared = subprocess.run(
        [sys.executable, PAGES / "compare.py", "--live", "-v"],
        input=read.output,
        capture_output=True,
        text=True,
        check=False,
    )
    assert compared.returncode == 0, compared.stdout


@pytest.mark.parametrize("file", _files())
def test_healthy_page_is_not_taken_for_a_block(file: str) -> None:
    body = (PAGES / file).read_bytes()
    expects: Literal["json", "page"] = "json" if file.endswith(".json") else "page"
    if len(body) > 10_000:  # owners have trimmed the others to pieces of pages
        assert classify(200, {}, body, expects=expects, now=0) is None
