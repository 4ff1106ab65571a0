"""The image of a node has what a node needs. CI builds it, and runs a cluster with it."""

from __future__ import annotations

import re
import tomllib
from importlib.metadata import requires

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.conftest import PROJECT

LOCKS = [PROJECT / "scrapyd" / name for name in ("build-requirements.txt", "requirements.txt")]
PART_OF_PYTHON = {"typing"}
"""What a dependency asks for and the lock leaves out."""


def locked() -> dict[str, str]:
    """Return version by name."""
    found = re.findall(r"^([\w.-]+)==(\S+)", "".join(path.read_text("utf-8") for path in LOCKS), re.MULTILINE)
    return {canonicalize_name(name): pinned for name, pinned in found}


def test_lock_holds_what_a_node_needs() -> None:
    pinned = locked()
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text("utf-8"))["project"]
    wanted = [*project["dependencies"], *project["optional-dependencies"]["cluster"]]
    seen: set[tuple[str, str]] = set()
    while wanted:
        requirement = Requirement(wanted.pop())
        name = canonicalize_name(requirement.name)
        for extra in ("", *requirement.extras):
            if (name, extra) in seen:
                continue
            seen.add((name, extra))
            for text in requires(name) or ():
                needed = Requirement(text)
                if needed.marker is None or needed.marker.evaluate({"extra": extra}):
                    wanted.append(text)
        if name not in PART_OF_PYTHON:
            assert name in pinned, f"make scrapyd/requirements.txt anew: {name} is missing"
            assert requirement.specifier.contains(pinned[name]), f"{requirement}, but {pinned[name]} is locked"
    assert len(seen) > 30
