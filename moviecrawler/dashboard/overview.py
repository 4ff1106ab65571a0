"""The first page: what needs attention, and how far each site is."""

from __future__ import annotations

from typing import Any, ClassVar

from moviecrawler.dashboard.attention import concerns, sentence
from moviecrawler.dashboard.cards import card
from moviecrawler.dashboard.pages import Page, PageRequest
from moviecrawler.urls import HOMES


class Overview(Page):
    """`/`."""

    template = "overview.html"
    title = "Overview"
    here: ClassVar[str] = "/"

    def show(self, request: PageRequest) -> dict[str, Any]:
        sources = self.sources
        counts = request.attempt(sources.counts)
        frontier = request.attempt(sources.frontier)
        alarms = request.attempt(sources.alarms, otherwise=[])
        jobs = request.attempt(sources.state.counts)
        nodes = request.attempt(sources.state.nodes)
        cards = [card(site, counts, frontier) for site in HOMES]
        todo = concerns(
            cards,
            alarms=alarms,
            troubles=request.troubles,
            dead_letters=sum(run.dead_letters for run in frontier.runs) if frontier else 0,
            pending=jobs.pending if jobs else 0,
            slots=None if nodes is None else sum(node.slots for node in nodes if not node.draining),
        )
        return {
            "sentence": sentence(todo),
            "concerns": todo,
            "cards": cards,
            "counts": counts,
            "jobs": jobs,
            "nodes": nodes,
            "has_database": sources.node.has_database,
            "has_frontier": sources.node.has_frontier,
        }
