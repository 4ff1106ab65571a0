"""README.md as PyPI shows it: its links lead to the repository."""

import re
import tomllib
from pathlib import Path

from setuptools import setup

FOLDER = Path(__file__).parent
PROJECT = tomllib.loads((FOLDER / "pyproject.toml").read_text("utf-8"))["project"]
LINK = re.compile(r"(!?)(\[[^]]*\])\((?!\w+:|#)")


def absolute(link: re.Match[str]) -> str:
    """Return the beginning of a picture, or of a link to a file."""
    kind = "raw" if link[1] else "blob"
    return f"{link[1]}{link[2]}({PROJECT['urls']['Repository']}/{kind}/HEAD/"


setup(
    long_description=LINK.sub(absolute, (FOLDER / "README.md").read_text("utf-8")),
    long_description_content_type="text/markdown",
)
