"""The monitors as Spidermon runs them, with the actions that notify people.

This module is imported only when people are to be notified, as importing Spidermon takes long.
"""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Any, ClassVar

from scrapy.utils.misc import load_object
from spidermon import Monitor, MonitorSuite, settings
from spidermon.runners import MonitorRunner

from moviecrawler.monitors.actions import DeliveryError
from moviecrawler.monitors.notifications import chat_message

if TYPE_CHECKING:
    from collections.abc import Sequence

    from scrapy.crawler import Crawler
    from spidermon.core.actions import Action

    from moviecrawler.monitors.alarm_store import Kind
    from moviecrawler.monitors.checks import Verdict
    from moviecrawler.monitors.notifications import Notification
    from moviecrawler.monitors.receivers import Receiver

logger = logging.getLogger(__name__)

_PAUSE_SECONDS = (0.0, 1.0, 2.0)
"""Seconds before each try."""
_RETRY_SECONDS = 20.0
"""Time after which nothing is tried again, as a crawl that ends waits for this. A single action of Spidermon may take 60 seconds."""


class AlarmMonitor(Monitor):  # type: ignore[misc]  # Spidermon has no types
    """Each test fails when an alarm of its kind stands, passes when all is well, and is skipped when too little was seen."""

    data: Any

    def test_places_of_fields_are_there(self) -> None:
        """Compare the places of fields with those of earlier pages."""
        self._check("coverage")

    def test_pages_can_be_read(self) -> None:
        """Compare the share of unreadable pages with ALARM_EXTRACTION_ERRORS."""
        self._check("extraction_errors")

    def test_site_does_not_refuse(self) -> None:
        """Compare the share of refusals with ALARM_BLOCKS; a site that was stopped is an alarm."""
        self._check("blocks")

    def test_work_that_is_due_is_done(self) -> None:
        """Compare the time since the last answer with ALARM_STALLED."""
        self._check("stalled")

    def test_stores_take_batches(self) -> None:
        """Look for stores that fail again and again."""
        self._check("store")

    def test_dead_letters_do_not_grow(self) -> None:
        """Look for items that were rejected, and requests that were set aside."""
        self._check("dead_letters")

    def test_titles_are_fresh(self) -> None:
        """Compare the share of titles within their due date with ALARM_FRESHNESS."""
        self._check("freshness")

    def _check(self, kind: Kind) -> None:
        verdicts = [verdict for verdict in self.data.verdicts if verdict.kind == kind]
        if not verdicts:
            self.skipTest("too few pages or answers were seen")
        standing = [f"{verdict.name}: {verdict.text}" for verdict in verdicts if verdict.stands]
        if standing:
            self.fail("; ".join(standing))


class AlarmSuite(MonitorSuite):  # type: ignore[misc]  # Spidermon has no types
    """The suite of all monitors."""

    monitors: ClassVar = [AlarmMonitor]


def notify(
    crawler: Crawler, receivers: Sequence[Receiver], verdicts: Sequence[Verdict], notifications: Sequence[Notification]
) -> Sequence[Notification]:
    """Run the suite with the actions of the receivers, and again with those that failed; return what one of them did not deliver.

    It blocks for as long as the actions do: call it in a thread.
    """
    # These packages log URLs with tokens in them.
    for name in ("urllib3", "slack_sdk"):
        logging.getLogger(name).setLevel(logging.ERROR)
    stands = any(one.status != "recovered" for one in notifications)
    # Sentry gets problems only.
    left = [_action(crawler, one) for one in receivers if stands or one.setting != "SPIDERMON_SENTRY_DSN"]
    failed, began = [], time.monotonic()
    for pause in _PAUSE_SECONDS:
        if not left or time.monotonic() - began > _RETRY_SECONDS:
            break
        time.sleep(pause)
        # Spidermon's runner for spiders logs thirty lines each time, and errors with the URLs that failed.
        result = MonitorRunner().run(
            AlarmSuite(monitors_finished_actions=left),
            verdicts=verdicts,
            notifications=notifications,
            text=chat_message(notifications),
            stats=dict(crawler.stats.get_stats()) if crawler.stats is not None else {},
            crawler=crawler,
            spider=crawler.spider,
            sc_spider_name=crawler.spidercls.name,
            job=None,
        )
        failed = [one for one in result.monitors_finished_action_results if one.status == settings.MONITOR.STATUS.ERROR]
        left = [one.item for one in failed]
    for one in failed:
        logger.warning("%s could not notify people (%s); it is tried again", one.item.name, _reason(one.error))
    # Spidermon's own actions send all notifications in one message, so they have no `sent`.
    return notifications[min((getattr(action, "sent", 0) for action in left), default=len(notifications)) :]


def _action(crawler: Crawler, receiver: Receiver) -> Action:
    action = load_object(receiver.action)
    return action(**{**action.from_crawler_kwargs(crawler), **dict(receiver.arguments)})


def _reason(traceback: str) -> str:
    """Return the class of an exception. Its text may hold a URL with a token, so it is shown for our own exceptions only."""
    latest = traceback.rpartition("Traceback (most recent call last):\n")[2]
    line = next((line for line in latest.splitlines() if not line.startswith(" ")), "")
    name, _, text = line.partition(": ")
    name = name.rpartition(".")[2]
    return text if name == DeliveryError.__name__ else name
