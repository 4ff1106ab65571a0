"""What a spider's process is given: its environment, the node's settings and its log file."""

from __future__ import annotations

import os
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from moviecrawler.cluster.secrets import redacted
from moviecrawler.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from moviecrawler.cluster.options import NodeOptions
    from moviecrawler.cluster.state import Taken

LOGS_KEPT = 100
"""Logs that a node keeps of each spider."""
_MEMORY_CHECK_SECONDS = 5
"""Seconds between two checks of a spider's memory. In Scrapy's 60 seconds it can grow by gigabytes."""
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


def spider_settings(options: NodeOptions, taken: Taken) -> dict[str, str]:
    """Return a job's settings with those that the node adds, and make the folder of its log. Raises ConfigurationError."""
    job = taken.job
    path = log_path(options, job.project, job.spider, job.id)
    path.parent.mkdir(parents=True, exist_ok=True)
    for _, old in oldest(path.parent.iterdir(), LOGS_KEPT):
        old.unlink(missing_ok=True)
    if taken.start > 1:
        append_log_line(path, f"Start {taken.start} of this job, on {options.node_name}")
    given = {"FRONTIER_NODE": options.node_name, "FRONTIER_RUN": job.run}
    if "FRONTIER_RUN" not in job.settings:
        # A job that is queued again under its id makes a new run; however often it is started, it goes on with its own.
        given["FRONTIER_ASKED_AT"] = f"{taken.queued_at:.3f}"
    given |= job.settings
    limit = _memory_limit(options.memory_limit_mb, job.settings.get("MEMUSAGE_LIMIT_MB", "0"))
    if limit:
        given |= {"MEMUSAGE_LIMIT_MB": str(limit), "MEMUSAGE_ENABLED": "1"}
        given |= {"MEMUSAGE_CHECK_INTERVAL_SECONDS": str(_MEMORY_CHECK_SECONDS)}
    return {**given, "LOG_FILE": str(path)}


def _memory_limit(most: int, wanted: str) -> int:
    """Return the lower one of a node's and a job's limit, of which 0 is none."""
    if not wanted.isascii() or not wanted.isdigit():
        raise ConfigurationError(f"setting MEMUSAGE_LIMIT_MB is {wanted[:80]!r}; give a whole number")
    return min((limit for limit in (most, int(wanted)) if limit), default=0)


def oldest(paths: Iterable[Path], keep: int) -> list[tuple[float, Path]]:
    """Return when (seconds since 1970) paths were changed, and the paths, without the `keep` newest."""
    found = []
    for path in paths:
        with suppress(FileNotFoundError):
            found.append((path.stat().st_mtime, path))
    return sorted(found)[: len(found) - keep if len(found) > keep else 0]


def append_log_line(path: Path, sentence: str) -> None:
    """Append a line to a job's log, in Scrapy's format; or not, when the disk is full."""
    with suppress(OSError), path.open("a", encoding="utf-8") as file:
        file.write(f"{datetime.now():%Y-%m-%d %H:%M:%S} [moviecrawler.cluster] INFO: {sentence}\n")  # noqa: DTZ005 - as Scrapy has it


def read_end(path: Path, size: int) -> str:
    """Return the last lines of a file, of at most so many bytes. Raises OSError."""
    with path.open("rb") as file:
        length = file.seek(0, os.SEEK_END)
        file.seek(max(0, length - size))
        content = file.read(size)
    return (content if length <= size else content.partition(b"\n")[2]).decode(errors="replace")


def last_line(path: Path) -> str:
    """Return the last line of a log that is not empty; empty when there is none."""
    try:
        lines = read_end(path, _LOG_TAIL_BYTES).strip().splitlines()
    except OSError:
        return ""
    return redacted(lines[-1]) if lines else ""


def memory_of(pid: int | None = None) -> int:
    """Return the bytes of memory that a process uses, by default this one; 0 where the system has no /proc."""
    try:
        pages = Path(f"/proc/{pid or 'self'}/statm").read_text("ascii").split()[1]
    except OSError:
        return 0
    return int(pages) * os.sysconf("SC_PAGE_SIZE")
