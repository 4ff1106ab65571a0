"""The nodes: whether each is up, its jobs and its versions."""

from __future__ import annotations

from typing import Any, ClassVar

from moviecrawler.dashboard.pages import Page, PageRequest

_LATE_PART = 0.5
"""Share of its lease after which a heartbeat is late: a node sends one in each quarter."""


class Nodes(Page):
    """`/nodes`."""

    template = "nodes.html"
    title = "Nodes"
    here: ClassVar[str] = "/nodes"

    def show(self, request: PageRequest) -> dict[str, Any]:
        sources = self.sources
        nodes = request.attempt(sources.state.nodes, otherwise=[])
        now = request.attempt(sources.state.now, otherwise=0.0)
        lease = sources.options.lease_seconds
        rows: list[dict[str, Any]] = []
        for node in nodes:
            heard = max(0.0, now - (node.dead_at - lease))
            state = "draining" if node.draining else "late" if heard > _LATE_PART * lease else "up"
            rows.append(
                {
                    "node": node,
                    "heard": heard,
                    "state": state,
                    "spiders": sum(process.memory for process in node.processes.values()),
                    "versions": node.versions,
                    "up": now - node.started_at,
                }
            )
        running = {tuple(sorted(node.versions.items())) for node in nodes if node.versions}
        return {
            "rows": rows,
            "slots": sum(node.slots for node in nodes),
            "busy": sum(len(node.processes) for node in nodes),
            "mixed": len(running) > 1,
            "projects": request.attempt(self._projects, otherwise=[]),
        }

    def _projects(self) -> list[tuple[str, list[str]]]:
        eggs = self.sources.eggs
        return [(project, eggs.list(project)[::-1]) for project in eggs.list_projects()]
