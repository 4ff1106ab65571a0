"""The monitors, as Spidermon runs them, and what it does when they have run.

A monitor fails when its alarms stand, passes when all is certain to be well, and is skipped when too little was seen to tell.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from spidermon import Monitor, MonitorSuite
from spidermon.core.actions import Action

if TYPE_CHECKING:
    from moviecrawler.monitors.books import Kind


class _AlarmMonitor(Monitor):  # type: ignore[misc]  # Spidermon has no types
    data: Any

    def look(self, kind: Kind) -> None:
        """Fail, pass or be skipped by what was found of alarms of that kind."""
        verdicts = [verdict for verdict in self.data.alarms.verdicts if verdict.kind == kind]
        if not verdicts:
            self.skipTest("too little was seen to tell")
        standing = [f"{verdict.name}: {verdict.text}" for verdict in verdicts if verdict.stands]
        if standing:
            self.fail("; ".join(standing))


class PagesMonitor(_AlarmMonitor):
    """What the sites' pages say."""

    def test_places_of_fields_are_there(self) -> None:
        """Compare the places of fields with those of earlier pages."""
        self.look("coverage")

    def test_pages_can_be_read(self) -> None:
        """Compare the share of pages of an unknown shape with ALARM_EXTRACTION_ERRORS."""
        self.look("extraction_errors")


class SiteMonitor(_AlarmMonitor):
    """How the sites treat us."""

    def test_site_does_not_refuse(self) -> None:
        """Compare the share of refusals with ALARM_BLOCKS; a site that was stopped is an alarm."""
        self.look("blocks")

    def test_work_that_is_due_is_done(self) -> None:
        """Compare the time since the last answer with ALARM_STALLED."""
        self.look("stalled")


class StoresMonitor(_AlarmMonitor):
    """What becomes of what was read."""

    def test_stores_take_batches(self) -> None:
        """Look for stores that fail again and again."""
        self.look("store")

    def test_dead_letters_do_not_grow(self) -> None:
        """Look for items that were rejected, and requests that were set aside."""
        self.look("dead_letters")

    def test_titles_are_fresh(self) -> None:
        """Compare the share of titles within their due date with ALARM_FRESHNESS."""
        self.look("freshness")


class TellAlarms(Action):  # type: ignore[misc]  # Spidermon has no types
    """Tells people of alarms that have opened, and of those that have recovered."""

    data: Any

    def run_action(self) -> None:
        """Begin to tell; nothing is waited for."""
        self.data.alarms.begin_to_tell()


class AlarmSuite(MonitorSuite):  # type: ignore[misc]  # Spidermon has no types
    """All of them."""

    monitors: ClassVar = [PagesMonitor, SiteMonitor, StoresMonitor]
    monitors_finished_actions: ClassVar = [TellAlarms]
