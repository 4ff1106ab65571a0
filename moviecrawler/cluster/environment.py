"""The environment and the settings of a spider's process, its log file and its memory."""

from __future__ import annotations

import os
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from moviecrawler.cluster.secrets import redacted

if TYPE_CHECKING:
    from collections.abc import Mapping

    from moviecrawler.cluster.options import NodeOptions
    from moviecrawler.cluster.state import LeasedJob

RUNNER = str(Path(__file__).with_name("runner.py"))
"""The program of spiders' processes."""
_MEMORY_CHECK_SECONDS = "5"
"""Seconds between two checks of a spider's memory: within Scrapy's 60 it can grow by gigabytes."""
_LOG_TAIL_BYTES = 4096
"""Bytes at the end of a log in which its last line is looked for."""
_NODE_ONLY = ("SCRAPYD_", "SCRAPY_SETTINGS_MODULE", "SCRAPY_PROJECT", "NOTIFY_SOCKET")
"""Prefixes of variables that spiders don't get: the node's passwords, and those that would replace the egg's settings."""


def spider_environment(environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return the node's environment without the node's own variables; the stores' URLs stay, as spiders need them."""
    kept = {name: value for name, value in environ.items() if not name.startswith(_NODE_ONLY)}
    return kept | {"PYTHONIOENCODING": "UTF-8"}


def spider_settings(options: NodeOptions, leased: LeasedJob, scrapyd_settings: Mapping[str, str]) -> dict[str, str]:
    """Return a job's settings with those of its node and of Scrapyd. When the job was started before, note that in its log."""
    job = leased.job
    if leased.start > 1:
        append_log_line(Path(scrapyd_settings["LOG_FILE"]), f"Start {leased.start} of this job, on {options.node_name}")
    given = {"FRONTIER_NODE": options.node_name, "FRONTIER_RUN": job.run}
    if "FRONTIER_RUN" not in job.settings:
        # Each start of a job goes on with the job's run; a job that is scheduled again under the same id begins a new run.
        given["FRONTIER_ASKED_AT"] = f"{leased.queued_at:.3f}"
    given |= {"MEMUSAGE_ENABLED": "1", "MEMUSAGE_CHECK_INTERVAL_SECONDS": _MEMORY_CHECK_SECONDS, **job.settings}
    limit, wanted = options.memory_limit_mb, job.settings.get("MEMUSAGE_LIMIT_MB", "0")
    # A limit that is not a number is passed on, and Scrapy reports it when the crawl starts.
    if limit and wanted.isdecimal() and not 0 < int(wanted) <= limit:
        given["MEMUSAGE_LIMIT_MB"] = str(limit)
    return {**given, **scrapyd_settings}


def log_path(options: NodeOptions, project: str, spider: str, job: str) -> Path:
    """Return the path of a job's log on the node that runs it."""
    return Path(options.logs_dir).absolute() / project / spider / f"{job}.log"


def log_url(project: str, spider: str, job: str) -> str:
    """Return the path of a job's log in the URL of any node."""
    return quote(f"/logs/{project}/{spider}/{job}.log")


def append_log_line(path: Path, sentence: str) -> None:
    """Append a line in Scrapy's format to a job's log; do nothing when the disk is full."""
    with suppress(OSError), path.open("a", encoding="utf-8") as file:
        file.write(f"{datetime.now():%Y-%m-%d %H:%M:%S} [moviecrawler.cluster] INFO: {sentence}\n")  # noqa: DTZ005 - as Scrapy has it


def read_end(path: Path, size: int) -> str:
    """Return the last whole lines of a file, up to `size` bytes. Raises OSError."""
    with path.open("rb") as file:
        length = file.seek(0, os.SEEK_END)
        file.seek(max(0, length - size))
        content = file.read(size)
    return (content if length <= size else content.partition(b"\n")[2]).decode(errors="replace")


def end_of_log(path: Path) -> str:
    """Return the last lines of a log, without secrets; empty when it can't be read."""
    try:
        return redacted(read_end(path, _LOG_TAIL_BYTES))
    except OSError:
        return ""


def memory_of(pid: int | None = None) -> int:
    """Return the bytes of memory that a process uses, by default this one; 0 where the system has no /proc."""
    try:
        pages = Path(f"/proc/{pid or 'self'}/statm").read_text("ascii").split()[1]
    except OSError:
        return 0
    return int(pages) * os.sysconf("SC_PAGE_SIZE")
