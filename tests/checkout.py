"""A checkout to deploy from.

It has the project's files in a folder of their own, so that building leaves nothing in this one.
"""

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from tests.shared import PROJECT

LONGEST = 120
"""Seconds that a command may take before it counts as hung."""


@dataclass(frozen=True)
class Ran:
    """A command that has ended."""

    code: int
    output: str
    """Of both streams."""


def copy_project(folder: Path) -> Path:
    """Copy what the image's builder gets into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("pyproject.toml", "setup.py", "README.md", "LICENSE", "scrapy.cfg"):
        shutil.copy(PROJECT / name, folder)
    shutil.copytree(
        PROJECT / "moviecrawler",
        folder / "moviecrawler",
        ignore=shutil.ignore_patterns("__pycache__"),
    )
    return folder


def run(checkout: Path, *command: str, **environment: str) -> Ran:
    """Run one of the commands of this virtual environment in a checkout."""
    home = checkout / "home"
    home.mkdir(exist_ok=True)
    ended = subprocess.run(
        [str(Path(sys.executable).parent / command[0]), *command[1:]],
        cwd=checkout,
        env={"PATH": os.environ["PATH"], "HOME": str(home), **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        text=True,
        timeout=LONGEST,
        check=False,
    )
    return Ran(ended.returncode, ended.stdout)
