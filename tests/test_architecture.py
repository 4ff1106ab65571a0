"""The shape of the house: which part may import which, and that every setting is read and documented."""

from __future__ import annotations

import ast
import doctest
import importlib
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from moviecrawler.options import SETTINGS
from tests.conftest import PROJECT
from tests.settings_table import table

PACKAGE = PROJECT / "moviecrawler"
MODULES = sorted(PACKAGE.rglob("*.py"))

PURE = {
    "extract": {"html", "isal", "lxml", "msgspec", "parsel", "w3lib"},
    "catalogue/popularity.py": set(),
    "catalogue/merging.py": set(),
    "catalogue/rows.py": set(),
    "catalogue/comparing.py": set(),
    "catalogue/forms.py": set(),
    "catalogue/linking.py": set(),
    "catalogue/matching.py": set(),
    "catalogue/people.py": set(),
    "catalogue/slugs.py": {"anyascii"},
    "catalogue/normalise.py": {"anyascii", "rapidfuzz"},
    "errors.py": set(),
    "fields.py": set(),
    "frontier/budgets.py": {"msgspec", "scrapy"},  # the latter for a type
    "monitors/checks.py": set(),
    "monitors/places.py": set(),
    "items.py": {"msgspec"},
    "texts.py": set(),
    "urls.py": set(),
}
"""Parts that open nothing and know no clock, and the packages beside the standard library that they may use."""
OPENERS = {"os", "pathlib", "socket", "subprocess", "sqlite3", "time"}


def _imports(module: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(module.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module}: relative import"
            assert node.module is not None
            yield from (f"{node.module}.{name.name}" for name in node.names)


@pytest.mark.parametrize(
    "module", [path for path in MODULES if ">>>" in path.read_text("utf-8")], ids=lambda path: path.stem
)
def test_examples_in_docstrings_hold(module: Path) -> None:
    ran = doctest.testmod(importlib.import_module(".".join(module.relative_to(PROJECT).with_suffix("").parts)))
    assert ran.failed == 0
    assert ran.attempted > 0


@pytest.mark.promise("Parts import downward only.")
def test_imports_keep_the_contracts_of_pyproject() -> None:
    command = [str(Path(sys.executable).with_name("lint-imports")), "--no-cache", "--no-logo"]
    ended = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "2 kept, 0 broken" in ended.stdout


def test_pure_parts_open_nothing() -> None:
    wrong = []
    for part, allowed in PURE.items():
        path = PACKAGE / part
        for module in [path] if path.is_file() else sorted(path.rglob("*.py")):
            for name in _imports(module):
                top = name.split(".")[0]
                known = top == "moviecrawler" or top in allowed or top in sys.stdlib_module_names
                if not known or top in OPENERS or name.startswith("urllib.request"):
                    wrong.append(f"{module} imports {name}")
            if found := re.search(r"\bopen\(|datetime\.now|time\.time\(|date\.today", module.read_text("utf-8")):
                wrong.append(f"{module} has {found[0]}")
    assert wrong == []


@pytest.mark.promise("Every setting is read, and documented.")
def test_every_setting_is_read() -> None:
    code = "\n".join(
        module.read_text("utf-8")
        for module in MODULES
        if module not in {PACKAGE / "settings.py", PACKAGE / "options.py"}
    )
    unread = []
    for options in SETTINGS:
        for field, name in zip(options.__struct_fields__, options.__struct_encode_fields__, strict=True):
            if f'"{name}"' not in code and not re.search(rf"\.{field}\b", code):
                unread.append(name)
    assert unread == []


@pytest.mark.promise("Every setting is read, and documented.")
def test_the_table_of_settings_is_that_of_their_declarations() -> None:
    written = (PACKAGE / "SETTINGS.md").read_text("utf-8")
    assert written == table((PACKAGE / "settings.py").read_text("utf-8")), (
        "stale; run python -m tests.settings_table > moviecrawler/SETTINGS.md"
    )


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


def test_readme_of_a_folder_names_its_modules() -> None:
    unnamed = []
    for readme in PACKAGE.rglob("README.md"):
        named = set(re.findall(r"[\w*]+\.(?:py|lua)\b", readme.read_text("utf-8")))
        modules = [path for path in readme.parent.iterdir() if path.suffix in {".py", ".lua"} and "__" not in path.name]
        unnamed += [f"{readme}: {path.name}" for path in modules if not any(map(path.match, named))]
    assert unnamed == []
