"""The Spidermon suite that checks a crawl's stats when it is over.

Importing Spidermon takes long, so this module is imported only if an action is switched on.
"""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Any, ClassVar

import requests
from scrapy.utils.misc import load_object
from spidermon import Monitor, MonitorSuite, settings
from spidermon.core.actions import Action
from spidermon.runners import MonitorRunner

from moviecrawler.errors import MovieCrawlerError
from moviecrawler.frontier.account import is_orderly
from moviecrawler.monitors.actions import chosen_actions

if TYPE_CHECKING:
    from collections.abc import Sequence

    from scrapy.crawler import Crawler

logger = logging.getLogger(__name__)

MOST_UNREADABLE = 0.05
"""Largest share of unreadable pages."""
MOST_REFUSED = 0.05
"""Largest share of refusals among answers."""
LEAST_FRESH = 0.9
"""Least share of the titles fetched before that are not overdue."""
LEAST_COUNT = 20
"""Pages, answers or titles below which no share is checked."""
_PAUSE_SECONDS = (0.0, 1.0, 2.0)
"""Seconds before each try to post."""
_TIMEOUT_SECONDS = 10.0
_OK = 200


class NotPostedError(MovieCrawlerError):
    """The webhook refused a message. The error's text holds no secret."""


class CrawlMonitor(Monitor):  # type: ignore[misc]  # Spidermon has no types
    """Checks a crawl: a test fails when something is wrong."""

    data: Any

    def _sum(self, prefix: str, suffix: str = "") -> float:
        """Return the sum of the stats with this prefix and suffix."""
        stats: dict[str, Any] = self.data.stats
        return sum(
            value
            for name, value in stats.items()
            if name.startswith(prefix) and name.endswith(suffix) and isinstance(value, int | float)
        )

    def _fail_above(self, share: float, bad: float, of: float, what: str) -> None:
        if of >= LEAST_COUNT and bad > share * of:
            self.fail(f"{bad:,.0f} of {of:,.0f} {what}")

    def test_site_does_not_refuse(self) -> None:
        """Check the share of refusals; a site that was stopped is a failure."""
        site = self.data.spider.site
        if stopped := self.data.stats.get(f"blocks/{site}/stopped"):
            self.fail(stopped)
        self._fail_above(
            MOST_REFUSED,
            self._sum(f"blocks/{site}/"),
            self._sum("downloader/response_count"),
            "answers are refusals",
        )

    def test_pages_can_be_read(self) -> None:
        """Check the share of unreadable pages."""
        unreadable = self._sum("extraction/errors/")
        self._fail_above(
            MOST_UNREADABLE,
            unreadable,
            unreadable + self._sum("pages/read"),
            "pages could not be read",
        )

    def test_no_field_is_missing(self) -> None:
        """Look for fields that have vanished from pages."""
        prefix = "pages/missing/"
        missing = [
            f"{name.removeprefix(prefix)} {why}"
            for name, why in self.data.stats.items()
            if name.startswith(prefix)
        ]
        if missing:
            self.fail("; ".join(sorted(missing)))

    def test_stores_took_everything(self) -> None:
        """Look for items that were rejected, spooled or lost."""
        counts = {what: self._sum("store/", f"/{what}") for what in ("rejected", "spooled", "lost")}
        counts["invalid"] = self.data.stats.get("items/rejected", 0)
        if found := [f"{count:,.0f} {what}" for what, count in counts.items() if count]:
            self.fail(f"items: {', '.join(found)}")

    def test_spool_files_can_be_read(self) -> None:
        """Look for spool files of earlier crawls that could not be read."""
        if damaged := self._sum("store/", "/damaged"):
            self.fail(f"{damaged:,.0f} spool files can't be read")

    def test_no_request_is_a_dead_letter(self) -> None:
        """Look for requests that were given up."""
        if letters := self.data.stats.get("frontier/dead_letters"):
            self.fail(f"{letters:,} requests are dead letters")

    def test_no_request_is_lost(self) -> None:
        """Look for requests of the run that somebody has deleted from the queue."""
        if lost := self.data.stats.get("frontier/run/lost"):
            self.fail(f"{lost:,} requests were deleted from the queue")

    def test_something_was_fetched(self) -> None:
        """Look for a list that could not be read, and for a crawl without any result."""
        stats = self.data.stats
        if missed := stats.get("lists/missed"):
            self.fail(f"{missed:,} list pages could not be read")
        asked = stats.get("titles/asked", 0)
        if asked and not any(stats.get(f"titles/{outcome}") for outcome in ("stored", "absent")):
            self.fail(f"none of {asked:,} titles was stored")
        reason = stats.get("finish_reason", "")
        if not asked and reason != "finished" and not is_orderly(reason):
            self.fail(f"nothing was asked for ({reason})")

    def test_titles_are_fresh(self) -> None:
        """Check the share of the catalogue's titles that are overdue."""
        overdue = self.data.stats.get("catalogue/overdue", 0)
        titles = self.data.stats.get("catalogue/fetched", 0)
        self._fail_above(1 - LEAST_FRESH, overdue, titles, "titles are overdue")


class CrawlSuite(MonitorSuite):  # type: ignore[misc]  # Spidermon has no types
    """The suite of all monitors; Spidermon's own settings can list it, too."""

    monitors: ClassVar = [CrawlMonitor]

    def on_monitors_failed(self, result: Any) -> None:
        """Write the text of all messages: what is wrong, and the crawl's summary."""
        failed = result.monitors_failed_results
        data = failed[0].monitor.data
        wrong = [f"- {one.reason or one.error}" for one in failed]
        data.meta["text"] = "\n".join(
            [f"{data.sc_spider_name}: something is wrong", *wrong, "", data.meta.get("summary", "")]
        )


class PostWebhook(Action):  # type: ignore[misc]  # Spidermon has no types
    """Posts {"text": ...} to ALERT_WEBHOOK, which Slack, Mattermost, Teams and ntfy accept."""

    data: Any

    def __init__(self, url: str) -> None:
        super().__init__()
        self._url = url

    @classmethod
    def from_crawler_kwargs(cls, crawler: Crawler) -> dict[str, Any]:
        """Read ALERT_WEBHOOK."""
        return {"url": crawler.settings["ALERT_WEBHOOK"]}

    def run_action(self) -> None:
        """Post the text; try twice more on failure."""
        for pause in _PAUSE_SECONDS:
            time.sleep(pause)
            try:
                answer = requests.post(
                    self._url,
                    json={"text": self.data.meta["text"]},
                    timeout=_TIMEOUT_SECONDS,
                    allow_redirects=False,
                )
            except requests.RequestException as error:
                why = type(error).__name__
                continue
            if _OK <= answer.status_code < _OK + 100:
                return
            why = f"HTTP status {answer.status_code}"
        raise NotPostedError(why)


def run_suite(crawler: Crawler, summary: Sequence[str]) -> None:
    """Run the monitors on a crawl's stats, and when one fails the actions that the settings name.

    Call it in a thread. Nothing of an action's error but its class is logged, as its text may hold
    a URL with a token.
    """
    for name in ("urllib3", "slack_sdk"):  # they log URLs with tokens
        logging.getLogger(name).setLevel(logging.ERROR)
    # Spidermon's runner for spiders logs thirty lines, and errors with the URLs that failed.
    result = MonitorRunner().run(
        CrawlSuite(crawler=crawler, monitors_failed_actions=_actions(crawler)),
        stats=crawler.stats.get_stats() if crawler.stats is not None else {},
        crawler=crawler,
        spider=crawler.spider,
        sc_spider_name=crawler.spidercls.name,
        job=None,
        meta={"summary": "\n".join(summary)},
    )
    for one in result.monitors_failed_results:
        logger.error("%s: %s", one.monitor.method_description, one.reason)
    for one in result.monitors_failed_action_results:
        if one.status == settings.ACTION.STATUS.ERROR:
            logger.error("%s could not send the alert (%s)", one.item.name, _reason(one.error))


def _actions(crawler: Crawler) -> list[Action]:
    made = []
    for choice in chosen_actions(crawler.settings):
        action = load_object(choice.path)
        made.append(action(**{**action.from_crawler_kwargs(crawler), **dict(choice.arguments)}))
    return made


def _reason(traceback: str) -> str:
    """Return the class of an exception, and the text of one of our own."""
    last = traceback.strip().splitlines()[-1]
    name, _, text = last.partition(": ")
    name = name.rpartition(".")[2]
    return text if name == NotPostedError.__name__ else name
