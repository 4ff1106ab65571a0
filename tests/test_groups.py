"""Which tests plain `pytest` leaves out, and that it says so."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import shared
from tests.shared import PROJECT

TESTS = """
import pytest

@pytest.mark.long
def test_long(): pass

@pytest.mark.browser
def test_browser(): pass

@pytest.mark.shared("pages")
def test_pages(): pass

def test_always(): pass
"""
READERS = ("tests/extract/test_shared_pages.py",)


@pytest.mark.parametrize(
    ("arguments", "is_here", "passed", "left_out"),
    [
        (
            (),
            False,
            1,
            "tests marked browser, tests marked clients, tests marked prometheus, tests marked tor, tests marked long, what reads {}, ",
        ),
        (
            (),
            True,
            2,
            "tests marked browser, tests marked clients, tests marked prometheus, tests marked tor, tests marked long (",
        ),
        (
            ("-m", "long"),
            False,
            1,
            "tests marked browser, tests marked clients, tests marked prometheus, tests marked tor, what reads {}, ",
        ),
        (("-m", "shared"), True, 1, "tests marked browser"),
        (("-m", "shared"), False, 0, "tests marked browser"),
    ],
)
def test_what_is_left_out_is_said_in_one_line(
    arguments: tuple[str, ...],
    is_here: bool,
    passed: int,
    left_out: str,
    pytester: pytest.Pytester,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.setattr(shared, "SHARED", tmp_path)
    monkeypatch.setattr(shared, "FOLDERS", ("pages",))
    if is_here:
        (tmp_path / "pages").mkdir()
    pytester.makepyfile(TESTS)
    ended = pytester.runpytest_inprocess("-p", "tests.groups", "-p", "no:hypothesispytest", "-n0", *arguments)
    ended.assert_outcomes(passed=passed, deselected=4 - passed)
    (line,) = [line for line in ended.outlines if line.startswith("left out: ")]
    assert line.startswith(f"left out: {left_out.format(tmp_path / 'pages')}")
    assert ended.ret == (
        0 if passed else pytest.ExitCode.NO_TESTS_COLLECTED
    )  # by which .ci/run sees that none was read


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
    assert ended.returncode == pytest.ExitCode.NO_TESTS_COLLECTED, ended.stdout[-3000:]
