"""Groups of tests that plain `pytest` leaves out, and how many processes run which tests.

Groups are for what takes programs that PyPI can't bring (`browser`, `tor`) or much time (`long`). A
group runs when `-m` names it; the summary says in one line which were left out. Tests marked
`shared` run wherever the folder that they read is.
"""

import os
from pathlib import Path
from typing import Any

import pytest
from xdist.scheduler import LoadFileScheduling

from tests import shared

GROUPS = {
    "browser": "takes chromium and its driver",
    "clients": "takes programs of others in a virtual environment of their own",
    "prometheus": "takes Debian's `prometheus`, and `promtool` with it",
    "tor": "takes a private Tor network, and so Debian's `tor`",
    "long": "takes minutes: damage at full size, many kills in a row, an image built step by step",
}

TOGETHER = ("tests/cluster/", "tests/dashboard/test_pages.py")
"""One process runs all tests of these that share nodes."""
APART = ("tests/cluster/test_broken_nodes.py", "tests/cluster/test_crawls.py")
"""Files of the folder that have nodes of their own, and so need not wait for the others."""
FIRST = (
    *TOGETHER,
    "tests/frontier/test_faults.py",
    "tests/commands/test_ends.py",
    "tests/politeness/test_crawls.py",
    "tests/commands/test_replay.py",
    "tests/frontier/test_shared_crawls.py",
    "tests/frontier/test_lost_keys.py",
    "tests/outside/",
    "tests/datasets/test_dataset_crawls.py",
    "tests/catalogue/test_faults.py",
    "tests/proxies/test_three_pools.py",
    "tests/commands/test_terminal.py",
    "tests/test_data_document.py",
    "tests/datasets/test_titles.py",
    "tests/database/test_queries.py",
    "tests/frontier/test_model.py",
)
"""What takes longest, in this order, and what mostly waits before what computes: all begins with
that, so that no process is left with it at the end."""


def pytest_configure(config: pytest.Config) -> None:
    for group, why in GROUPS.items():
        config.addinivalue_line("markers", f"{group}: {why}; run by `pytest -m {group}`")
    config.addinivalue_line("markers", "promise(sentence): keeps one of `promises.txt`")
    config.addinivalue_line(
        "markers", "shared(folder): reads a folder of ../shared; left out where it is not"
    )


def _not_named(config: pytest.Config) -> list[str]:
    return [group for group in GROUPS if group not in config.option.markexpr]


def _is_left_out(item: pytest.Item) -> bool:
    folders = {folder for marker in item.iter_markers("shared") for folder in marker.args}
    if not folders <= set(shared.FOLDERS):
        raise pytest.UsageError(
            f"{item.nodeid}: {folders} are not all of ../shared; there are {shared.FOLDERS}"
        )
    return not all(map(shared.is_here, folders)) or any(
        map(item.get_closest_marker, _not_named(item.config))
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    left = [item for item in items if _is_left_out(item)]
    config.hook.pytest_deselected(items=left)
    items[:] = [item for item in items if item not in left]
    items.sort(key=lambda item: (_turn(item.nodeid), item.path.name))


def _turn(nodeid: str) -> int:
    turns = (turn for turn, start in enumerate(FIRST) if nodeid.startswith(start))
    return next(turns, len(FIRST))


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    missing = [
        f"what reads {shared.SHARED / name}" for name in shared.FOLDERS if not shared.is_here(name)
    ]
    left = ", ".join([*(f"tests marked {group}" for group in _not_named(config)), *missing])
    if left:
        terminalreporter.write_line(
            f"left out: {left} (a marked group runs with `pytest -m GROUP`)"
        )


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Run three processes a core, as tests mostly wait for servers.

    Test files that are named one by one run in this process.
    """
    named = [Path(argument.split("::")[0]) for argument in config.args]
    if len(named) <= 2 and all(path.is_file() for path in named):
        return 0  # servers of each process cost more than they save
    return 3 * len(os.sched_getaffinity(0))


class _ByFileOrFolder(LoadFileScheduling):  # type: ignore[misc]
    def _split_scope(self, nodeid: str) -> str:
        is_together = nodeid.startswith(TOGETHER) and not nodeid.startswith(APART)
        return TOGETHER[0] if is_together else super()._split_scope(nodeid)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadFileScheduling | None:
    return _ByFileOrFolder(config, log) if config.getoption("dist") == "loadfile" else None
