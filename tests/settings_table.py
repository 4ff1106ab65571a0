"""The tables in `SETTINGS.md`: the declared settings of `options.py`, Scrapy's own in `settings.py` and `cluster/jobs.py`, and a node's options.

python -m tests.settings_table > moviecrawler/SETTINGS.md
"""

from __future__ import annotations

import ast
import inspect
import sys
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from moviecrawler import options as declared
from moviecrawler.cluster.jobs import SCRAPY_JOB_SETTINGS
from moviecrawler.cluster.options import NodeOptions

if TYPE_CHECKING:
    from moviecrawler.options import Options

_SOURCE = Path(__file__).parents[1] / "moviecrawler" / "settings.py"
_HEAD = """# Settings

`python -m tests.settings_table` makes this page from `options.py`, `settings.py` and `cluster/`.

Set a setting on the command line (`scrapy crawl imdb -s NAME=value`), by an environment variable of the same name, or in
`settings.py`; Scrapy's own, at the end, not by the environment. Set a password or a token in the environment only, as
everybody on the machine can see a command line. A wrong value ends a crawl before its first request, with a sentence. A
job of a cluster may make [some](#settings-that-a-job-may-make).

## The ten that you will set

| setting | example | what it is |
| --- | --- | --- |
"""
_TEN = {
    "CONTACT": "you@example.org",
    "DATA_DIR": "/srv/movies",
    "DATABASE_URL": "postgresql://user:password@host/movies",
    "REDIS_URL": "redis://:password@host:6379/0",
    "S3_BUCKET": "my-bucket",
    "MONGO_URL": "mongodb://user:password@host/movies",
    "ALERT_WEBHOOK": "https://hooks.example/…",
    "IMDB_DATASETS": "ratings",
    "SITE_BUDGETS": '{"www.metacritic.com": {"per_day": 300}}',
    "FRONTIER_RUN": "weekly-47",
}
"""The settings of the first table, with examples; the other tables leave them out."""
_LONGEST_VALUE = 60


@dataclass
class _Row:
    """Scrapy's settings that share a comment, which says why they differ from Scrapy's defaults."""

    why: str
    names: list[str] = field(default_factory=list)
    values: list[str] = field(default_factory=list)


def rows(source: str) -> list[_Row]:
    """Return what a settings module sets, and why, in its order; what has no comment is left out."""
    lines = source.splitlines()
    found: list[_Row] = []
    last_end = 0
    for node in ast.parse(source).body:
        between = lines[last_end : node.lineno - 1]
        last_end = node.end_lineno or node.lineno
        why = " ".join(
            line.removeprefix("#").strip() for line in between if line.startswith("# ") and "---" not in line
        )
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            if why or any("# ---" in line for line in between) or not found:
                found.append(_Row(why))
            found[-1].names.append(node.targets[0].id)
            found[-1].values.append(_shown(node.value))
    return [row for row in found if row.why and row.values != ["see `settings.py`"] * len(row.values)]


def _shown(value: ast.expr) -> str:
    if isinstance(value, ast.Constant):
        return str(value.value) if value.value != "" else "empty"
    text = ast.unparse(value)
    return text if len(text) <= _LONGEST_VALUE and "\n" not in text else "see `settings.py`"


def _described(options: type[Options]) -> dict[str, str]:
    """Return the docstring of each setting of a struct, by the setting's name."""
    docs: dict[str, str] = {}
    (body,) = [node for node in ast.parse(inspect.getsource(options)).body if isinstance(node, ast.ClassDef)]
    for node, following in pairwise(body.body):
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and isinstance(following, ast.Expr):
            docs[node.target.id] = " ".join(ast.literal_eval(following.value).split())
    names = zip(options.__struct_fields__, options.__struct_encode_fields__, strict=True)
    return {name: docs[attribute] for attribute, name in names}


def _line(*cells: str) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n"


def _declared(options: type[Options], **elsewhere: str) -> str:
    """Return the table of one struct of settings; `elsewhere` are defaults that it does not have itself."""
    heading, _, more = inspect.getdoc(options).partition("\n\n")  # type: ignore[union-attr]
    lines = [f"\n## {heading.rstrip('.')}\n\n", f"{' '.join(more.split())}\n\n" if more else ""]
    lines += ["| setting | default | what it is |\n| --- | --- | --- |\n"]
    defaults = {one.encode_name: one.default for one in msgspec.structs.fields(options)} | elsewhere
    for name, text in _described(options).items():
        if name not in _TEN:
            default = defaults[name]
            shown = "" if default in {"", None} else f"{default:g}" if isinstance(default, float) else str(default)
            lines.append(_line(f"`{name}`", shown, text))
    return "".join(lines)


def table(source: str) -> str:
    """Return the Markdown of all settings: the ten, then a table a part."""
    described = {name: text for options in declared.SETTINGS for name, text in _described(options).items()}
    parts = [_HEAD, *(_line(f"`{name}`", f"`{example}`", described[name]) for name, example in _TEN.items())]
    parts += map(_declared, declared.SETTINGS)
    parts.append("\n## Where Scrapy's settings differ\n\n| setting | value | why |\n| --- | --- | --- |\n")
    for row in rows(source):
        parts.append(_line("<br>".join(f"`{name}`" for name in row.names), "<br>".join(row.values), row.why))
    names = ", ".join(f"`{name}`" for name in (*declared.JOB_SETTINGS, *SCRAPY_JOB_SETTINGS))
    parts.append(f"\n## Settings that a job may make\n\n{names}\n")
    parts.append(_declared(NodeOptions, redis_url="REDIS_URL", node_name="the host's name"))
    return "".join(parts)


def main() -> None:
    """Print the table."""
    sys.stdout.write(table(_SOURCE.read_text("utf-8")))


if __name__ == "__main__":
    main()
