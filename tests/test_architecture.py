"""The shape of the house: which part may import which, and that every setting is read and documented."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from moviecrawler import settings
from moviecrawler.frontier.options import FrontierOptions
from moviecrawler.pipelines.base import Limits
from tests.conftest import PROJECT

PACKAGE = PROJECT / "moviecrawler"
MODULES = sorted(PACKAGE.rglob("*.py"))

LAYERS = [
    {"addon", "clock", "errors", "fields", "items", "locks", "signals"},
    {"urls"},
    {"extract"},
    {"configuration", "catalogue", "frontier", "identity", "cluster", "monitors"},
    {"middlewares", "pipelines", "extensions", "dashboard", "logformatter", "settings"},
    {"spiders", "replica"},
    {"console"},
    {"commands"},
]
"""A part imports its own layer's and lower layers' only."""

PURE = {
    "extract": {"brotli", "html", "isal", "lxml", "msgspec", "parsel", "w3lib"},
    "catalogue/fields.py": set(),
    "catalogue/lanes.py": set(),
    "catalogue/merging.py": set(),
    "catalogue/rows.py": set(),
    "catalogue/matching.py": set(),
    "catalogue/slugs.py": {"anyascii"},
    "catalogue/spelling.py": {"anyascii", "rapidfuzz"},
    "catalogue/scoreboard.py": {"msgspec"},
    "catalogue/stored.py": {"msgspec"},
    "errors.py": set(),
    "fields.py": set(),
    "frontier/budget.py": set(),
    "monitors/checks.py": set(),
    "monitors/coverage.py": set(),
    "monitors/likeness.py": set(),
    "items.py": set(),
    "urls.py": set(),
}
"""Parts that open nothing and know no clock, and the packages beside the standard library that they may use."""


def _imports(module: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(module.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module}: relative import"
            assert node.module is not None
            yield from (f"{node.module}.{name.name}" for name in node.names)


def _part(module: Path) -> str:
    return module.relative_to(PACKAGE).parts[0].removesuffix(".py")


def _layer(part: str) -> int:
    return next(level for level, parts in enumerate(LAYERS) if part in parts)


@pytest.mark.parametrize("module", MODULES, ids=lambda path: str(path.relative_to(PROJECT)))
def test_imports_run_downward(module: Path) -> None:
    if _part(module) == "__init__":
        return
    for name in _imports(module):
        if name.startswith("moviecrawler."):
            imported = name.split(".")[1]
            if imported != _part(module):
                assert _layer(imported) <= _layer(_part(module)), f"imports {name}"


@pytest.mark.parametrize("part", ["replica"])
def test_only_commands_know_the_replica(part: str) -> None:
    for module in MODULES:
        if _part(module) not in {part, "commands", "console"}:
            assert not any(name.startswith(f"moviecrawler.{part}") for name in _imports(module)), module


@pytest.mark.parametrize("part", PURE)
def test_pure_parts_open_nothing(part: str) -> None:
    path = PACKAGE / part
    for module in [path] if path.is_file() else sorted(path.rglob("*.py")):
        text = module.read_text("utf-8")
        for name in _imports(module):
            top = name.split(".")[0]
            assert top == "moviecrawler" or top in PURE[part] or top in sys.stdlib_module_names, f"{module}: {name}"
            assert top not in {"os", "pathlib", "socket", "subprocess", "urllib.request", "sqlite3", "time"}, (
                f"{module}: {name}"
            )
        assert not re.search(r"\bopen\(|datetime\.now|time\.time\(|date\.today", text), module


OWN_SETTINGS = [
    name
    for name in vars(settings)
    if name.isupper() and not hasattr(__import__("scrapy.settings.default_settings", fromlist=["x"]), name)
]


@pytest.mark.parametrize("name", OWN_SETTINGS)
def test_setting_is_read_and_documented(name: str) -> None:
    field = name.removeprefix("STORE_").removeprefix("FRONTIER_").lower()
    fields = Limits.__dataclass_fields__ if name.startswith("STORE_") else FrontierOptions.__dataclass_fields__
    named = f"{field}:" if field != name.lower() and field in fields else f'"{name}"'
    assert any(named in module.read_text("utf-8") for module in MODULES if module.name != "settings.py"), (
        "nothing reads it"
    )
    assert f"`{name}`" in (PROJECT / "README.md").read_text("utf-8"), "README.md does not name it"


def test_top_level_holds_only_what_belongs_there() -> None:
    tracked = subprocess.run(
        ["git", "ls-files"], cwd=PROJECT, capture_output=True, text=True, check=True
    ).stdout.split()
    allowed = {
        "scrapy.cfg",
        "pyproject.toml",
        "README.md",
        "moviecrawler",
        "tests",
        "scrapyd",
        "docker-compose.yml",
        "LICENSE",
        "CHANGELOG.md",
    }
    top = {name.split("/")[0] for name in tracked}
    assert {name for name in top if not name.startswith(".")} <= allowed
