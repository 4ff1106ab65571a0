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
            heard = node.heard_seconds_ago
            state = "draining" if node.draining else "late" if heard > _LATE_PART * lease else "up"
            rows.append({"node": node, "heard": heard, "state": state, "up": now - node.started_at})
        return {
            "rows": rows,
            "projects": request.attempt(self._projects, otherwise=[]),
        }

    def _projects(self) -> list[tuple[str, list[str]]]:
        snapshot = self.node.state.snapshot()
        versions = [(egg.project, egg.version) for egg in reversed(snapshot.eggs)]
        return [(one, [version for project, version in versions if project == one]) for one in snapshot.projects]
