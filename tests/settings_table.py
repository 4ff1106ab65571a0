"""The table of settings in `SETTINGS.md`, made from `settings.py`: the values there, and the comments above them.

python -m tests.settings_table > moviecrawler/SETTINGS.md
"""

from __future__ import annotations

import ast
import re
import sys
from dataclasses import dataclass, field
from pathlib import Path

from scrapy.settings import default_settings

_SOURCE = Path(__file__).parents[1] / "moviecrawler" / "settings.py"
_HEAD = """# Settings

Made from `settings.py` by `python -m tests.settings_table`; change it there.

Set one on the command line (`scrapy crawl imdb -s NAME=value`), in `settings.py`, or, where the last column says so, by an
environment variable of the same name. What holds a password belongs into the environment: a command line can be seen by
everybody on the machine. A wrong value stops a crawl before its first request, with a sentence.
"""
_SECTION = re.compile(r"# -+ (.+?) -+$")
_LONGEST_VALUE = 60


@dataclass
class _Row:
    """Settings that share a comment."""

    section: str
    text: str
    names: list[str] = field(default_factory=list)
    values: list[str] = field(default_factory=list)
    by_environment: bool = False


def rows(source: str) -> list[_Row]:
    """Return what a settings module declares, in its order."""
    lines = source.splitlines()
    found: list[_Row] = []
    section, comment, last_end = "", "", 0
    for node in ast.parse(source).body:
        between = lines[last_end : node.lineno - 1]
        last_end = node.end_lineno or node.lineno
        said: list[str] = []
        for line in between:
            if heading := _SECTION.match(line):
                section, said = heading[1], []
            elif line.startswith("#"):
                said.append(line.removeprefix("#").strip())
        if not isinstance(node, ast.Assign) or not isinstance(node.targets[0], ast.Name):
            continue
        name = node.targets[0].id
        if said or not found or found[-1].section != section:
            comment = " ".join(said)
            found.append(_Row(section, comment))
        call = node.value
        by_environment = isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "_env"
        value = call.args[1] if isinstance(call, ast.Call) and by_environment else call
        row = found[-1]
        row.names.append(name)
        row.values.append(_shown(value))
        row.by_environment |= by_environment
    return found


def _shown(value: ast.expr) -> str:
    if isinstance(value, ast.Constant):
        return str(value.value) if value.value != "" else "empty"
    text = ast.unparse(value)
    return text if len(text) <= _LONGEST_VALUE and "\n" not in text else "see `settings.py`"


def table(source: str) -> str:
    """Return the Markdown of all settings, a table a section."""
    parts = [_HEAD]
    section = None
    for row in rows(source):
        if row.section != section:
            section = row.section
            parts.append(
                f"\n## {section}\n\n| setting | default | what it is | environment |\n| --- | --- | --- | --- |\n"
            )
        names = "<br>".join(f"`{name}`{'' if _is_own(name) else ' (Scrapy)'}" for name in row.names)
        values = "<br>".join(row.values)
        cells = (names, values, row.text, "yes" if row.by_environment else "")
        parts.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n")
    return "".join(parts)


def _is_own(name: str) -> bool:
    return not hasattr(default_settings, name)


def main() -> None:
    """Print the table."""
    sys.stdout.write(table(_SOURCE.read_text("utf-8")))


if __name__ == "__main__":
    main()
