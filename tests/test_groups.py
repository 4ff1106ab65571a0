"""Which tests plain `pytest` leaves out, that it says so, and that a run fails that should have read the saved pages."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import groups, shared
from tests.shared import PROJECT

TESTS = """
import pytest

@pytest.mark.long
def test_long(): pass

@pytest.mark.browser
def test_browser(): pass

@pytest.mark.shared("pages")
@pytest.mark.parametrize("page", [])
def test_page(page): pass

@pytest.mark.shared("pages")
def test_pages(): pass

def test_always(): pass
"""
READERS = "tests/extract/test_shared_pages.py", "tests/extract/test_changed_pages.py", "tests/proxies/test_signs.py"


def run(pytester: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    pytester.makepyfile(TESTS)
    return pytester.runpytest_inprocess("-p", "tests.groups", "-p", "no:hypothesispytest", "-n0", *arguments)


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Return the folder that stands for ../shared."""
    monkeypatch.setattr(shared, "SHARED", tmp_path)
    monkeypatch.setattr(groups, "SHARED", tmp_path)
    return tmp_path


def test_what_is_left_out_is_said_in_one_line(pytester: pytest.Pytester, here: Path) -> None:
    ended = run(pytester, "--require-shared", "pages")
    assert ended.ret == 0
    (line,) = [line for line in ended.outlines if line.startswith("left out: ")]
    assert f"2 that read {here / 'pages'}, which is not here" in line
    assert "1 marked browser, 1 marked long" in line
    ended.assert_outcomes(passed=1, deselected=4)


def test_group_runs_when_it_is_named(pytester: pytest.Pytester, here: Path) -> None:
    del here
    run(pytester, "-m", "long").assert_outcomes(passed=1, deselected=4)


def test_tests_that_read_a_folder_run_where_it_is(pytester: pytest.Pytester, here: Path) -> None:
    (here / "pages").mkdir()
    ended = run(pytester, "--require-shared", "pages")
    assert ended.ret == 0
    ended.assert_outcomes(passed=2, skipped=1, deselected=2)


def test_run_in_two_processes_says_the_same_and_fails_without_the_tests_that_are_required(tmp_path: Path) -> None:
    (tmp_path / "pages").mkdir()
    (tmp_path / "test_some.py").write_text(TESTS)
    arguments = ["-q", "-p", "tests.groups", "-n2", "--require-shared", "pages", "-k", "always or long"]
    ended = subprocess.run(
        [sys.executable, "-m", "pytest", *arguments, tmp_path],
        env={**os.environ, "PYTHONPATH": str(PROJECT), "SHARED_FOLDER": str(tmp_path)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ended.returncode == pytest.ExitCode.USAGE_ERROR, ended.stdout
    assert "left out: 1 marked browser, 1 marked long" in ended.stdout
    assert f"{tmp_path / 'pages'} is here, and no test that reads it has run" in ended.stdout


def test_files_whose_tests_read_a_folder_can_be_imported_where_it_is_not(tmp_path: Path) -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-n0", "--collect-only", *READERS],
        env={**os.environ, "SHARED_FOLDER": str(tmp_path)},
        cwd=PROJECT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout[-3000:]
    assert f"that read {tmp_path / 'pages'}, which is not here" in ended.stdout
