"""Groups of tests that plain `pytest` leaves out, each of them said in one line of the summary; and how many processes run.

Groups are for what takes programs that PyPI can't bring (`browser`, `tor`) or much time (`long`). A group runs when `-m` names
it. Tests marked `shared` run wherever the folder that they read is.
"""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.shared import FOLDERS, SHARED, is_here

GROUPS = {
    "browser": "takes chromium and its driver",
    "clients": "takes programs of others in a virtual environment of their own, and Debian's `promtool`",
    "tor": "takes a private Tor network, and so Debian's `tor`",
    "long": "takes minutes: damage at full size, many kills in a row, an image built step by step",
}
_REQUIRED = "--require-shared"


class Groups:
    """What was left out, and which shared folders were read. Worker processes send theirs to the first process."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._left_out: Counter[str] = Counter()
        self._ran: set[str] = set()

    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        left = {item: reason for item in items if (reason := self._reason(item))}
        if left:
            self._left_out.update(left.values())
            config.hook.pytest_deselected(items=list(left))
            items[:] = [item for item in items if item not in left]

    def _reason(self, item: pytest.Item) -> str | None:
        for folder in _folders(item):
            if not is_here(folder):
                return f"that read {SHARED / folder}, which is not here"
        for group in GROUPS:
            if item.get_closest_marker(group) and group not in self._config.option.markexpr:
                return f"marked {group}"
        return None

    def pytest_runtest_call(self, item: pytest.Item) -> None:
        self._ran.update(_folders(item))

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        output = getattr(self._config, "workeroutput", None)
        if output is not None:
            output["groups"] = {"left_out": dict(self._left_out), "ran": sorted(self._ran)}
        elif self._missing():
            session.exitstatus = pytest.ExitCode.USAGE_ERROR

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        told = getattr(node, "workeroutput", {}).get("groups")
        if told:
            self._left_out = Counter(told["left_out"])  # the same from each, as each collects all
            self._ran.update(told["ran"])

    def _missing(self) -> list[str]:
        if not self._config.getoption(_REQUIRED) or self._config.getoption("lf"):
            return []  # what has failed is run again without the others
        return [folder for folder in self._config.getoption(_REQUIRED) if is_here(folder) and folder not in self._ran]

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self._left_out:
            told = ", ".join(f"{count} {reason}" for reason, count in sorted(self._left_out.items()))
            terminalreporter.write_line(f"left out: {told} (a marked group runs with `pytest -m GROUP`)")
        for folder in self._missing():
            terminalreporter.write_line(
                f"FAILED: {SHARED / folder} is here, and no test that reads it has run", red=True
            )


def _folders(item: pytest.Item) -> set[str]:
    named = {folder for marker in item.iter_markers("shared") for folder in marker.args}
    if not named <= set(FOLDERS):
        raise pytest.UsageError(f"{item.nodeid}: no folder of ../shared: {named - set(FOLDERS)}; there are {FOLDERS}")
    return named


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        _REQUIRED,
        action="append",
        choices=FOLDERS,
        help="fail when this folder of ../shared is here and no test that reads it has run",
    )


def pytest_configure(config: pytest.Config) -> None:
    for group, why in GROUPS.items():
        config.addinivalue_line("markers", f"{group}: {why}; run by `pytest -m {group}`")
    config.addinivalue_line("markers", "shared(folder): reads a folder of ../shared; left out where it is not")
    config.pluginmanager.register(Groups(config), "groups")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Run two processes a core, as tests mostly wait for servers; and test files that are named one by one in this process."""
    named = [Path(argument.split("::")[0]) for argument in config.args]
    if len(named) <= 2 and all(path.is_file() for path in named):
        return 0  # servers of each process cost more than they save
    return 2 * len(os.sched_getaffinity(0))
