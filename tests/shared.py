"""Pages and data sets of others, which lie beside the project and are no part of it.

They belong to their publishers. A test that reads them is marked `@pytest.mark.shared("pages")` (or
`pytestmark = …` for a whole file). It runs where the folder is; where it is not, it is left out,
and the summary says so. Nothing may be read from there when a test file is imported: functions that
make a list of cases ask `is_here` first, or begin with what a missing folder gives.
"""

import os
from pathlib import Path

PROJECT = Path(__file__).parents[1]
SHARED = Path(os.environ.get("SHARED_FOLDER") or PROJECT.parent / "shared")
"""SHARED_FOLDER names another place."""
FOLDERS = ("pages", "matching", "datasets")
PAGES = SHARED / "pages"


def is_here(folder: str) -> bool:
    """Return whether a folder of them is on this machine."""
    return (SHARED / folder).is_dir()
