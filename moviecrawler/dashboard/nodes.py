"""The nodes: whether each is up, its jobs and its versions."""

from __future__ import annotations

import time
from typing import Any

from moviecrawler.dashboard.pages import Page, PageRequest

_LATE_PART = 0.5
"""Share of its lease after which a heartbeat is late: a node sends one in each quarter."""


class Nodes(Page):
    """`/nodes`."""

    template = "nodes.html"
    title = in_menu = "Nodes"

    def show(self, request: PageRequest) -> dict[str, Any]:
        nodes = request.attempt(self.node.state.nodes, otherwise=[])
        now = time.time()
        lease = self.node.options.lease_seconds
        rows: list[dict[str, Any]] = []
        for node in nodes:
            info, heard = node.info, node.heard_seconds_ago
            state = "draining" if info.draining else "late" if heard > _LATE_PART * lease else "up"
            up = now - info.started_at
            rows.append({"node": info, "memory": node.memory, "heard": heard, "state": state, "up": up})
        return {
            "rows": rows,
            "mixed": len({tuple(sorted(node.info.versions.items())) for node in nodes}) > 1,
            "projects": request.attempt(self._projects, otherwise=[]),
        }

    def _projects(self) -> list[tuple[str, list[str]]]:
        snapshot = self.node.state.snapshot()
        versions = [(egg.project, egg.version) for egg in reversed(snapshot.eggs)]
        return [(one, [version for project, version in versions if project == one]) for one in snapshot.projects]
