"""Tables that stand in text files beside the tests that read them.

A line is a row; between its cells are two spaces or more, and "(none)" stands for nothing. Lines
that begin with # tell what the columns are.
"""

import re
from pathlib import Path


def rows(file: str, name: str) -> list[list[str | None]]:
    """Return the rows of the table of a name that stands beside a file."""
    lines = Path(file).with_name(name).read_text("utf-8").splitlines()
    return [
        [None if cell == "(none)" else cell for cell in re.split(" {2,}", line)]
        for line in lines
        if line and line[0] != "#"
    ]
