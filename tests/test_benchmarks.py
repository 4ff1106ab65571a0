"""Each benchmark can be run as it says, and ends with a sentence where it is given too little."""

from __future__ import annotations

import importlib
import re
import sys
from pathlib import Path

import pytest

from tests.conftest import PROJECT

FOLDER = PROJECT / "tests" / "benchmarks"
PROGRAMS = sorted(path for path in FOLDER.glob("*.py") if path.name != "harness.py")
WITHOUT_NUMBERS = {"extraction_speed", "matching_accuracy"}


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_usage_is_the_command_that_runs_it_and_the_readme_has_it(path: Path) -> None:
    assert f"python -m tests.benchmarks.{path.stem}" in path.read_text("utf-8").partition('"""\n\n')[0]
    assert f"`{path.name}`" in (FOLDER / "README.md").read_text("utf-8")


@pytest.mark.parametrize("name", sorted({path.stem for path in PROGRAMS} - WITHOUT_NUMBERS))
def test_number_that_is_too_small_is_told_in_a_sentence(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", [name, "-1"])
    with pytest.raises(SystemExit) as ended:
        importlib.import_module(f"tests.benchmarks.{name}").main()
    assert re.fullmatch(r"argument 1 is '-1'; give a number from [\d,]+ on", str(ended.value.code))
