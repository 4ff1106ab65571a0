"""What PyPI shows of the project."""

import re
import runpy
import tomllib
from typing import Any
from urllib.parse import urldefrag

import pytest
import setuptools

from tests.shared import PROJECT


def test_links_of_the_description_lead_to_files_of_the_repository(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given: dict[str, Any] = {}
    monkeypatch.setattr(setuptools, "setup", given.update)
    runpy.run_path(str(PROJECT / "setup.py"))
    home = tomllib.loads((PROJECT / "pyproject.toml").read_text("utf-8"))["project"]["urls"]
    links = re.findall(r"(!?)\[[^]]*\]\(([^)]+)\)", given["long_description"])
    files = 0
    for picture, link in links:
        url, _ = urldefrag(link)
        assert url.startswith("https://") or not url, link
        start = f"{home['Repository']}/{'raw' if picture else 'blob'}/HEAD/"
        if url.startswith(home["Repository"]):
            assert (PROJECT / url.removeprefix(start)).is_file(), link
            files += 1
    assert files > 9
