"""The tables in `SETTINGS.md`: the declared settings of `options.py`, Scrapy's own in `settings.py` and `cluster/allowed.py`, and a node's options.

python -m tests.settings_table > moviecrawler/SETTINGS.md
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from moviecrawler import options as declared
from moviecrawler.cluster.allowed import SCRAPY_JOB_SETTINGS
from moviecrawler.cluster.options import NodeOptions

if TYPE_CHECKING:
    from moviecrawler.options import Options

_SOURCE = Path(__file__).parents[1] / "moviecrawler" / "settings.py"
_HEAD = """# Settings

Made from `options.py`, `settings.py` and `cluster/` by `python -m tests.settings_table`; change them there.

Set one on the command line (`scrapy crawl imdb -s NAME=value`), by an environment variable of the same name, or in a
project's `settings.py`; Scrapy's own, at the end, not by the environment. Set what holds a password in the
environment only: everybody on the machine can see a command line. A wrong value stops a crawl before its first request,
with a sentence. A job of a cluster may set those that say "job", and [some of Scrapy's](#scrapys-own-settings-that-a-job-may-make). The last table is of
[options of a node](#options-of-a-node), which are no settings.
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
        found[-1].names.append(name)
        found[-1].values.append(_shown(node.value))
    return found


def _shown(value: ast.expr) -> str:
    if isinstance(value, ast.Constant):
        return str(value.value) if value.value != "" else "empty"
    text = ast.unparse(value)
    return text if len(text) <= _LONGEST_VALUE and "\n" not in text else "see `settings.py`"


def _declared(options: type[Options], **elsewhere: str) -> str:
    """Return the table of one struct of settings; `elsewhere` are defaults that it does not have itself."""
    heading, _, more = inspect.getdoc(options).partition("\n\n")  # type: ignore[union-attr]
    docs: dict[str, str] = {}
    (body,) = [node for node in ast.parse(inspect.getsource(options)).body if isinstance(node, ast.ClassDef)]
    for node, following in zip(body.body, [*body.body[1:], None], strict=True):
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            text = following.value if isinstance(following, ast.Expr) else None
            docs[node.target.id] = " ".join(str(text.value).split()) if isinstance(text, ast.Constant) else ""
    lines = [f"\n## {heading.rstrip('.')}\n\n", f"{' '.join(more.split())}\n\n" if more else ""]
    lines += ["| setting | default | what it is | job |\n| --- | --- | --- | --- |\n"]
    defaults = {one.encode_name: one.default for one in msgspec.structs.fields(options)}
    for name, attribute in zip(options.__struct_encode_fields__, options.__struct_fields__, strict=True):
        default = elsewhere.get(name, defaults[name])
        shown = "empty" if default in {"", None} else f"{default:g}" if isinstance(default, float) else str(default)
        cells = (f"`{name}`", shown, docs[attribute], "job" if name in declared.JOB_SETTINGS else "")
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n")
    return "".join(lines)


def table(source: str) -> str:
    """Return the Markdown of all settings, a table a section."""
    parts = [_HEAD, *map(_declared, declared.SETTINGS)]
    section = None
    for row in rows(source):
        if row.section != section:
            section = row.section
            parts.append(f"\n## Scrapy: {section}\n\n| setting | value | why |\n| --- | --- | --- |\n")
        names = "<br>".join(f"`{name}`" for name in row.names)
        cells = (names, "<br>".join(row.values), row.text)
        parts.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n")
    names = ", ".join(f"`{name}`" for name in SCRAPY_JOB_SETTINGS)
    parts.append(f"\n## Scrapy's own settings that a job may make\n\n{names}\n")
    parts.append(_declared(NodeOptions, redis_url="REDIS_URL", node_name="the host's name"))
    return "".join(parts)


def main() -> None:
    """Print the table."""
    sys.stdout.write(table(_SOURCE.read_text("utf-8")))


if __name__ == "__main__":
    main()
