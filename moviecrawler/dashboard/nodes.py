"""The nodes: whether each lives, what it is at, and what it runs."""

from __future__ import annotations

from typing import Any, ClassVar

from moviecrawler.dashboard.pages import Asked, Page

_LATE = 0.5
"""Part of its lease after which a heartbeat is late: three should have come by then."""


class Nodes(Page):
    """`/nodes`."""

    template = "nodes.html"
    title = "Nodes"
    here: ClassVar[str] = "/nodes"

    def show(self, asked: Asked) -> dict[str, Any]:
        """Return the nodes that live."""
        sources = self.sources
        nodes = asked.attempt(sources.state.nodes, otherwise=[])
        now = asked.attempt(sources.state.now, otherwise=0.0)
        versions = asked.attempt(sources.versions, [node.name for node in nodes], otherwise={})
        lease = sources.options.lease_seconds
        rows: list[dict[str, Any]] = []
        for node in nodes:
            heard = max(0.0, now - (node.dead_at - lease))
            state = "draining" if node.draining else "late" if heard > _LATE * lease else "up"
            rows.append(
                {
                    "node": node,
                    "heard": heard,
                    "state": state,
                    "spiders": sum(process.memory for process in node.processes.values()),
                    "versions": versions.get(node.name, {}),
                    "up": now - node.started_at,
                }
            )
        told = {tuple(sorted(one.items())) for node in nodes if (one := versions.get(node.name))}
        return {
            "rows": rows,
            "slots": sum(node.slots for node in nodes),
            "busy": sum(len(node.processes) for node in nodes),
            "mixed": len(told) > 1,
            "projects": asked.attempt(self._projects, otherwise=[]),
        }

    def _projects(self) -> list[tuple[str, list[str]]]:
        eggs = self.sources.eggs
        return [(project, eggs.list(project)[::-1]) for project in eggs.list_projects()]
