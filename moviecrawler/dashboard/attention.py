"""What needs an operator's attention, and what to do about it. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from moviecrawler.dashboard.formats import counted, joined, number, when
from moviecrawler.dashboard.rendering import SITES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from moviecrawler.dashboard.cards import Card
    from moviecrawler.monitors.alarm_store import Alarm

_MAX_NAMED = 3
"""Concerns that the sentence names."""


class Concern(NamedTuple):
    """Something that needs attention."""

    short: str
    """Its part of the sentence at the top of the page."""
    more: str
    """The details."""
    todo: str
    """What to do."""
    link: str
    """The page with more about it."""


def concerns(
    cards: Sequence[Card],
    *,
    alarms: Sequence[Alarm],
    troubles: Sequence[str],
    dead_letters: int,
    pending: int,
    slots: int | None,
) -> list[Concern]:
    """Return the concerns, the most urgent first.

    `troubles` are sentences on stores that can't be reached. `slots` counts those of nodes that take jobs; None when it is unknown.
    """
    found = [
        Concern("a store can't be asked", trouble, "See that it runs, and that every node can reach it.", "/nodes")
        for trouble in troubles
    ]
    if slots == 0:
        found.append(
            Concern("no node takes jobs", "No node is up and not draining.", "Start a node, or see its log.", "/nodes")
        )
    found += [
        Concern(
            f"{SITES[card.site]} has refused us",
            f"{SITES[card.site]} is not asked until {when(card.stopped_until)}: {card.stopped}",
            "Leave it alone until then; it is tried again by itself. If it happens daily, lower the site's budget.",
            "/crawls",
        )
        for card in cards
        if card.stopped is not None and not card.trying
    ]
    # The concerns above have the open circuits already.
    stopped = {f"blocks/{card.site}" for card in cards if card.stopped is not None}
    found += [
        Concern(
            f"the alarm {alarm.name} stands",
            f"{alarm.name}: {alarm.text}",
            "See the runbook on this alarm.",
            "/quality",
        )
        for alarm in alarms
        if alarm.name not in stopped
    ]
    if dead_letters:
        letters = counted(dead_letters, "request was", "requests were")
        found.append(
            Concern(f"{letters} set aside", f"{letters} set aside.", "Look at why, and queue or drop them.", "/stores")
        )
    for card in cards:
        idle = [run for run in card.runs if run.state == "no worker"]
        if idle and not pending:
            to_go = sum(run.to_go for run in idle)
            found.append(
                Concern(
                    f"nobody works on {number(to_go)} requests to {SITES[card.site]}",
                    f"{SITES[card.site]} has {number(to_go)} requests to go, and no worker.",
                    "Schedule a job of its spider.",
                    "/crawls",
                )
            )
    return found


def sentence(found: Sequence[Concern]) -> str:
    """Return the sentence at the top of the page.

    >>> sentence([])
    'Nothing needs attention.'
    >>> sentence([Concern("Metacritic has refused us", "", "", "")])
    'One thing needs attention: Metacritic has refused us.'
    """
    if not found:
        return "Nothing needs attention."
    named = list(dict.fromkeys(concern.short for concern in found))
    more = len(named) - _MAX_NAMED
    parts = [*named[:_MAX_NAMED], *([f"{more} more"] if more > 0 else [])]
    needs = "One thing needs" if len(named) == 1 else f"{len(named)} things need"
    return f"{needs} attention: {joined(parts)}."
