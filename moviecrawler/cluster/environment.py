"""What a spider's process is given: its environment, the node's settings and its log file."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from moviecrawler.cluster.secrets import redacted

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from moviecrawler.cluster.jobs import Job
    from moviecrawler.cluster.options import NodeOptions

_MEMORY_CHECK_SECONDS = 5
"""Seconds between two checks of a spider's memory. In Scrapy's 60 seconds it can grow by gigabytes."""
_NODE = "moviecrawler.cluster"
"""The logger's name of lines that a node writes into a job's log."""
START_WORD = "Start"
"""First word of the line that a node writes into a job's log when it starts the job again; a number follows."""
START_LINE = re.compile(
    rb"^[-\d]{10} [:\d]{8} \[moviecrawler\.cluster\] INFO: Start (\d{1,9}) of this job", re.MULTILINE
)
"""That line, as a pattern."""
_LOG_TAIL_BYTES = 4096
"""Bytes at the end of a log in which its last line is looked for."""
_NODE_ONLY = ("SCRAPYD_", "SCRAPY_SETTINGS_MODULE", "SCRAPY_PROJECT", "NOTIFY_SOCKET")
"""Prefixes of variables that spiders don't get: the node's passwords, and those that would replace the egg's settings."""


def spider_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the node's environment without the node's own variables. Spiders need the URLs of the stores."""
    return {name: value for name, value in environ.items() if not name.startswith(_NODE_ONLY)} | {
        "PYTHONIOENCODING": "UTF-8"
    }


def log_path(options: NodeOptions, project: str, spider: str, job: str) -> Path:
    """Return where a job's log is, on the node that runs it."""
    return Path(options.logs_dir).absolute() / project / spider / f"{job}.log"


def spider_settings(options: NodeOptions, job: Job) -> dict[str, str]:
    """Return a job's settings with those that the node adds, and make the folder of its log."""
    path = log_path(options, job.project, job.spider, job.id)
    path.parent.mkdir(parents=True, exist_ok=True)
    for _, old in oldest(path.parent.iterdir(), options.jobs_to_keep):
        old.unlink(missing_ok=True)
    if job.start > 1:
        append_log_line(path, f"{START_WORD} {job.start} of this job, on {options.node_name}")
    given = {"FRONTIER_NODE": options.node_name, "FRONTIER_RUN": job.run}
    if job.queued_at:
        given["FRONTIER_ASKED_AT"] = f"{job.queued_at:.3f}"
    given |= job.settings
    if options.memory_limit_mb:
        # A job may lower its node's limit, but not raise it.
        wanted = int(job.settings.get("MEMUSAGE_LIMIT_MB", options.memory_limit_mb))
        given["MEMUSAGE_LIMIT_MB"] = str(min(wanted, options.memory_limit_mb))
    if "MEMUSAGE_LIMIT_MB" in given:
        given |= {"MEMUSAGE_ENABLED": "1", "MEMUSAGE_CHECK_INTERVAL_SECONDS": str(_MEMORY_CHECK_SECONDS)}
    return {**given, "LOG_FILE": str(path)}


def oldest(paths: Iterable[Path], keep: int) -> list[tuple[float, Path]]:
    """Return when (seconds since 1970) paths were changed, and the paths, without the `keep` newest."""
    found = []
    for path in paths:
        with suppress(FileNotFoundError):
            found.append((path.stat().st_mtime, path))
    return sorted(found)[:-keep]


def append_log_line(path: Path, sentence: str) -> None:
    """Append a line to a job's log, in Scrapy's format; or not, when the disk is full."""
    with suppress(OSError), path.open("a", encoding="utf-8") as file:
        file.write(f"{datetime.now():%Y-%m-%d %H:%M:%S} [{_NODE}] INFO: {sentence}\n")  # noqa: DTZ005 - as Scrapy has it


def read_end(path: Path, size: int) -> tuple[bytes, bool]:
    """Return the last bytes of a file, and whether these are all of it. Raises OSError."""
    with path.open("rb") as file:
        length = file.seek(0, os.SEEK_END)
        file.seek(max(0, length - size))
        return file.read(size), length <= size


def last_line(path: Path) -> str:
    """Return the last line of a log that is not empty; empty when there is none."""
    try:
        content, _ = read_end(path, _LOG_TAIL_BYTES)
    except OSError:
        return ""
    lines = content.decode(errors="replace").strip().splitlines()
    return redacted(lines[-1]) if lines else ""


def memory_of(pid: int | None = None) -> int:
    """Return the bytes of memory that a process uses, by default this one; 0 where the system has no /proc."""
    try:
        pages = Path(f"/proc/{pid or 'self'}/statm").read_text("ascii").split()[1]
    except OSError:
        return 0
    return int(pages) * os.sysconf("SC_PAGE_SIZE")
