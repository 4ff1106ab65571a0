"""A spider's process: `runner.py crawl <project> <spider> <job>` or `runner.py list`.

It needs nothing of this project, as that comes from the egg. The node writes a line of JSON to
standard input: `egg` (path) and, for a crawl, `settings`, `arguments` and `hang_seconds`. While a
crawl runs, the end of standard input means that the node is gone, and the process ends. Lines of
JSON on descriptor 3 report the crawl to the node: `{"stats": {...}, "summary": [...]}` from the
spider at any time, and from here `{"closing": ..., "cause": ..., "stats": {...}}` when the spider
has closed, and the same with `reason` in place of `closing` when all is over. `list` writes to
standard output, as JSON, the arguments of each spider by its name: those that its method
`describe_arguments` returns, or none.

When the event loop hangs for `hang_seconds`, a thread of `faulthandler` writes a traceback to
standard error and kills the process. That thread is not Python code, so it runs also while a
regular expression holds the interpreter.
"""

from __future__ import annotations

import faulthandler
import json
import os
import signal
import sys
import threading
import time
from contextlib import suppress
from importlib.metadata import distributions
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

_FIGURES = 3
_BEATS = 24
"""Heartbeats of the event loop within `hang_seconds`."""
_STARTUP_FACTOR = 10
"""The crawl may take this multiple of `hang_seconds` to begin, as stores may have to be
prepared."""
_END_SECONDS = 15.0
"""Seconds that a spider may take to end when its node is gone; fewer than that node's lease has."""


def _activate(egg: str) -> str:
    """Put the egg first in `sys.path`; return the name of its settings module."""
    sys.path.insert(0, egg)
    for distribution in distributions(path=[egg]):
        for entry in distribution.entry_points.select(group="scrapy", name="settings"):
            return entry.module
    sys.exit(
        "the egg has no entry point `settings` in the group `scrapy`; scrapyd-deploy makes one"
    )


def _end_with_node() -> None:
    while os.read(0, 1):
        pass
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(_END_SECONDS)
    os.kill(os.getpid(), signal.SIGKILL)


def _expect_beat_within(seconds: float) -> None:
    # Two heartbeats more, as the last one may have come late, or just before the loop hung.
    faulthandler.dump_traceback_later(seconds * (1 + 2 / _BEATS), exit=True)


def _watch(hang_seconds: float) -> None:
    """Have this process killed when its event loop hangs."""
    from twisted.internet import reactor  # noqa: PLC0415 - it is installed by then

    _expect_beat_within(hang_seconds)
    # Twisted types it by interfaces, whose methods have no `self`.
    reactor.callLater(hang_seconds / _BEATS, _watch, hang_seconds)  # type: ignore[arg-type]


def _report(sender: Crawler, name: str, reason: str) -> None:
    stats = sender.stats.get_stats()
    counts = {name: value for name, value in stats.items() if isinstance(value, int | float)}
    line = {name: reason, "cause": str(stats.get("crawl/cause", "")), "stats": counts}
    os.write(_FIGURES, json.dumps(line).encode() + b"\n")


def _report_closing(sender: Crawler, reason: str) -> None:
    _report(sender, "closing", reason)


def _report_end(sender: Crawler) -> None:
    _report(sender, "reason", str(sender.stats.get_value("finish_reason")))


def _crawl(
    spider: str, settings: dict[str, str], arguments: dict[str, str], hang_seconds: float
) -> None:
    threading.Thread(target=_end_with_node, daemon=True).start()

    from pydispatch import dispatcher  # noqa: PLC0415 - after the egg's modules have come first
    from scrapy import signals  # noqa: PLC0415
    from scrapy.cmdline import execute  # noqa: PLC0415

    if sys.platform == "linux":
        with suppress(ImportError):  # the egg may have an earlier version of this project
            from moviecrawler.scrapy_internals import measure_own_memory  # noqa: PLC0415

            measure_own_memory()

    def watch() -> None:
        _watch(hang_seconds)

    dispatcher.connect(watch, signals.engine_started, weak=False)
    dispatcher.connect(_report_closing, signals.spider_closed)
    dispatcher.connect(_report_end, signals.engine_stopped)
    _expect_beat_within(hang_seconds * _STARTUP_FACTOR)
    options = [f"-s{name}={value}" for name, value in settings.items()]
    options += [f"-a{name}={value}" for name, value in arguments.items()]
    execute(["scrapy", "crawl", spider, *options])


def _list() -> None:
    # What the egg prints goes to standard error.
    with os.fdopen(os.dup(1), "w") as output:
        os.dup2(2, 1)
        # After the egg's modules have come first.
        from scrapy.spiderloader import get_spider_loader  # noqa: PLC0415
        from scrapy.utils.project import get_project_settings  # noqa: PLC0415

        loader = get_spider_loader(get_project_settings())
        spiders = {name: loader.load(name) for name in sorted(loader.list())}
        json.dump(
            {
                name: spider.describe_arguments() if hasattr(spider, "describe_arguments") else []
                for name, spider in spiders.items()
            },
            output,
        )


def _main(command: str, spider: str = "") -> None:
    line = sys.stdin.buffer.readline()
    if not line.endswith(b"\n"):
        sys.exit("the node wrote no task to standard input")
    task = json.loads(line)
    os.environ["SCRAPY_SETTINGS_MODULE"] = _activate(task.pop("egg"))
    if command == "list":
        _list()
    else:
        _crawl(spider, **task)


if __name__ == "__main__":
    _main(*sys.argv[1:2], *sys.argv[3:4])
