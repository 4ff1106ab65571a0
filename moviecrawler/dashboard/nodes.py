"""The nodes: whether each is up, its jobs and its versions."""

from __future__ import annotations

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
        now = request.attempt(self.node.state.now, otherwise=0.0)
        lease = self.node.options.lease_seconds
        rows: list[dict[str, Any]] = []
        for node in nodes:
            heard = node.heard_ago(now, lease)
            state = "draining" if node.draining else "late" if heard > _LATE_PART * lease else "up"
            rows.append({"node": node, "heard": heard, "state": state, "up": now - node.started_at})
        return {
            "rows": rows,
            "mixed": len({tuple(sorted(node.versions.items())) for node in nodes if node.versions}) > 1,
            "projects": request.attempt(self._projects, otherwise=[]),
        }

    def _projects(self) -> list[tuple[str, list[str]]]:
        eggs = self.node.eggs
        return [(project, eggs.list(project)[::-1]) for project in eggs.list_projects()]
