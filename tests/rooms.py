"""The rooms of the package, and the arrows between them: `python -m tests.rooms`.

A room is a folder of the package, or a module beside these folders. An arrow leads from one room to
another whose modules it imports, also for type checking.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter

import grimp

PACKAGE = "moviecrawler"


@dataclass(frozen=True, kw_only=True)
class Rooms:
    """The house as its imports show it."""

    folders: list[str]
    loose_modules: list[str]
    arrows: dict[tuple[str, str], int]
    """From which room to which, with the number of imports."""
    circles: list[str]
    """The rooms of a circle in order; empty when there is none."""


def look() -> Rooms:
    """Return the rooms of the package."""
    graph = grimp.build_graph(PACKAGE, cache_dir=None)
    top = {module.split(".")[1] for module in graph.modules if "." in module}
    folders = {name for name in top if graph.find_children(f"{PACKAGE}.{name}")}
    arrows: dict[tuple[str, str], int] = defaultdict(int)
    for module in graph.modules - {PACKAGE}:
        for imported in graph.find_modules_directly_imported_by(module) - {PACKAGE}:
            room, other = module.split(".")[1], imported.split(".")[1]
            if room != other:
                arrows[room, other] += 1
    below: dict[str, set[str]] = defaultdict(set)
    for room, other in arrows:
        below[room].add(other)
    circles: list[str] = []
    try:
        TopologicalSorter(below).prepare()
    except CycleError as error:
        circles = error.args[1]
    return Rooms(
        folders=sorted(folders),
        loose_modules=sorted(top - folders),
        arrows=dict(sorted(arrows.items())),
        circles=circles,
    )


def main() -> None:
    """Print the rooms, their arrows with the number of imports, and the circles."""
    found = look()
    print(f"{len(found.folders)} folders: {', '.join(found.folders)}")
    print(f"{len(found.loose_modules)} loose modules: {', '.join(found.loose_modules)}")
    print(f"{len(found.arrows)} arrows, {sum(found.arrows.values())} imports:")
    for room in (*found.folders, *found.loose_modules):
        to = [f"{other} ({count})" for (one, other), count in found.arrows.items() if one == room]
        print(f"  {room} -> {', '.join(to) or 'nothing'}")
    print(f"circle: {' -> '.join(found.circles) or 'none'}")


if __name__ == "__main__":
    main()
