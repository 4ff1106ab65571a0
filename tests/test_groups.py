"""Which tests plain `pytest` leaves out, and that it says so."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import shared

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
OTHERS = "tests marked browser, tests marked clients, tests marked prometheus, tests marked tor"


@pytest.mark.parametrize(
    ("arguments", "is_here", "passed", "left_out"),
    [
        ((), False, 1, f"{OTHERS}, tests marked long, what reads {{}}, "),
        ((), True, 2, f"{OTHERS}, tests marked long ("),
        (("-m", "long"), False, 1, f"{OTHERS}, what reads {{}}, "),
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
