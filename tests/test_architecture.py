"""The shape of the house: which part may import which, settings that are read, lines that fit."""

import ast
import doctest
import importlib
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import grimp
import msgspec
import pytest

from moviecrawler.options import SETTINGS
from tests import conftest, fixtures, groups, rooms
from tests.settings_table import table
from tests.shared import PROJECT

PACKAGE = PROJECT / "moviecrawler"
MODULES = sorted(PACKAGE.rglob("*.py"))


@pytest.mark.parametrize(
    "module",
    [path for path in MODULES if ">>>" in path.read_text("utf-8")],
    ids=lambda path: path.stem,
)
def test_examples_in_docstrings_hold(module: Path) -> None:
    ran = doctest.testmod(
        importlib.import_module(".".join(module.relative_to(PROJECT).with_suffix("").parts))
    )
    assert ran.failed == 0
    assert ran.attempted > 0


@pytest.mark.promise("Parts import downward only.")
def test_imports_keep_the_contracts_of_pyproject() -> None:
    command = [str(Path(sys.executable).with_name("lint-imports")), "--no-cache", "--no-logo"]
    ended = subprocess.run(
        command, cwd=PROJECT, capture_output=True, text=True, timeout=60, check=False
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "2 kept, 0 broken" in ended.stdout


@pytest.mark.promise("Parts import downward only.")
def test_rooms_are_few_and_so_are_the_arrows_between_them() -> None:
    found = rooms.look()
    assert found.circles == []
    assert len(found.arrows) <= 120
    assert len(found.loose_modules) <= 12


def test_pure_modules_open_nothing_and_know_no_clock() -> None:
    contracts = tomllib.loads((PROJECT / "pyproject.toml").read_text("utf-8"))["tool"][
        "importlinter"
    ]["contracts"]
    (pure,) = [tuple(each["source_modules"]) for each in contracts if each["id"] == "pure"]
    texts = {
        ".".join(path.relative_to(PROJECT).with_suffix("").parts): path.read_text("utf-8")
        for path in MODULES
    }
    impure = r"\bopen\(|datetime\.now|date\.today|utc_now|time\.time\(|urllib(\.| import )request"
    assert [
        name for name, text in texts.items() if name.startswith(pure) and re.search(impure, text)
    ] == []


@pytest.mark.promise("Every setting is read, and documented.")
def test_every_setting_is_read() -> None:
    readers = (
        module
        for module in MODULES
        if module not in {PACKAGE / "settings.py", PACKAGE / "options.py"}
    )
    code = "\n".join(module.read_text("utf-8") for module in readers)
    fields = [field for options in SETTINGS for field in msgspec.structs.fields(options)]
    unread = [one.encode_name for one in fields if f'"{one.encode_name}"' not in code]
    assert [
        one.name
        for one in fields
        if one.encode_name in unread and not re.search(rf"\.{one.name}\b", code)
    ] == []


@pytest.mark.promise("Every setting is read, and documented.")
def test_the_table_of_settings_is_that_of_their_declarations() -> None:
    written = (PACKAGE / "SETTINGS.md").read_text("utf-8")
    assert written == table(), (
        "stale; run python -m tests.settings_table > moviecrawler/SETTINGS.md"
    )


def test_mark_of_a_folder_that_is_not_shared_is_an_error(request: pytest.FixtureRequest) -> None:
    request.node.add_marker(pytest.mark.shared("page"))
    with pytest.raises(pytest.UsageError, match="page"):
        groups.pytest_collection_modifyitems(request.config, [request.node])


def _tracked(*patterns: str) -> list[str]:
    """Return the files that git tracks, relative to the project."""
    listed = subprocess.run(
        ["git", "ls-files", *patterns], cwd=PROJECT, capture_output=True, text=True, check=True
    )
    return listed.stdout.splitlines()


@pytest.mark.parametrize(
    "pattern",
    [
        "*.css",
        "*.html",
        "*.lua",
        "*.sh",
        "*.sql",
        "*.toml",
        "*.yaml",
        "*.yml",
        ".ci/run",
    ],
)
def test_lines_that_ruff_does_not_read_have_at_most_100_characters(pattern: str) -> None:
    assert [
        f"{name}:{number}"
        for name in _tracked(pattern, ":!tests/pages")
        for number, line in enumerate((PROJECT / name).read_text("utf-8").splitlines(), 1)
        if len(line) > 100 and "@sha256:" not in line
    ] == []


def test_lines_of_prose_have_at_most_120_characters() -> None:
    code = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)
    may_be_longer = re.compile(r"\||    |(?:\[[^]]+\]: )?https?://\S+$")  # a table, code, one URL
    assert [
        f"{name}: {line}"
        for name in _tracked("*.md")
        for line in code.sub("", (PROJECT / name).read_text("utf-8")).splitlines()
        if len(line) > 120 and not may_be_longer.match(line)
    ] == []


def test_readme_of_a_folder_names_its_modules() -> None:
    unnamed = []
    for readme in PACKAGE.rglob("README.md"):
        named = set(re.findall(r"[\w*]+\.(?:py|lua)\b", readme.read_text("utf-8")))
        modules = [
            path
            for path in readme.parent.iterdir()
            if path.suffix in {".py", ".lua"} and "__" not in path.name
        ]
        unnamed += [f"{readme}: {path.name}" for path in modules if not any(map(path.match, named))]
    assert unnamed == []


def test_helpers_are_two_layers_deep_and_are_imported_in_their_folder_only() -> None:
    """A test or a program imports helpers, these import others, and those import none.

    What several folders share lies beside them, or in `services`.
    """
    graph = grimp.build_graph("tests", cache_dir=None)

    def layers(module: str) -> int:
        imported = graph.find_modules_directly_imported_by(module) - {"tests"}
        return 1 + max(map(layers, imported), default=0)

    def is_helper(module: str) -> bool:
        return bool(graph.find_modules_that_directly_import(module)) or module in plugins

    plugins = {*conftest.pytest_plugins, *(m for m in graph.modules if m.endswith(".conftest"))}
    assert [m for m in graph.modules if layers(m) > 2 + (not is_helper(m))] == []
    wrong = []
    for module in graph.modules:
        for imported in graph.find_modules_directly_imported_by(module):
            *folder, name = imported.split(".")
            is_near = folder in (["tests"], ["tests", "services"], module.split(".")[:-1])
            if not is_near or name.startswith("test_"):
                wrong.append(f"{module} imports {imported}")
    assert wrong == []


def test_each_fixture_has_one_meaning_which_the_table_of_the_readme_tells() -> None:
    found = list(fixtures.fixtures())
    assert len({fixture.name for fixture in found}) == len(found)
    assert all(fixture.meaning for fixture in found)
    assert fixtures.README.read_text("utf-8") == fixtures.document()


def test_no_test_has_more_than_20_assertions() -> None:
    for path in (PROJECT / "tests").rglob("test_*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                count = sum(isinstance(part, ast.Assert) for part in ast.walk(node))
                assert count <= 20, f"{path.name}: {node.name}"
