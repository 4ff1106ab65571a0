"""What all tests share: where the saved pages of the sites are, if they are here, and a replica to crawl."""

from __future__ import annotations

import os
from pathlib import Path

pytest_plugins = [
    "tests.services.postgres",
    "tests.services.mongo",
    "tests.services.s3",
    "tests.services.redis",
    "tests.services.tor",
    "tests.services.browser",
]

PROJECT = Path(__file__).parents[1]
SHARED_PAGES = Path(os.environ.get("SHARED_PAGES") or PROJECT.parent / "shared" / "pages")
"""Pages that the sites really served. They belong to their publishers and are not part of the project."""

collect_ignore = [] if SHARED_PAGES.is_dir() else ["extract/test_shared_pages.py"]


def pytest_report_header() -> str:
    if SHARED_PAGES.is_dir():
        return f"saved pages: {SHARED_PAGES}"
    return f"saved pages: {SHARED_PAGES} is not here, so the tests against pages of the sites are left out"
