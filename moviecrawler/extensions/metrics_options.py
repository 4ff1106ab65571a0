"""Where a single crawl's metrics go: the settings `METRICS_*`."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from moviecrawler.configuration import is_http_url
from moviecrawler.errors import ConfigurationError

if TYPE_CHECKING:
    from typing import Self

    from scrapy.settings import BaseSettings

_RUN = re.compile(r"[\w.-]{1,64}")


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricsOptions:
    """Where metrics are written to."""

    folder: str
    gateway: str = field(repr=False)
    every: float
    """Seconds."""
    run: str
    """A label of all of them."""

    @classmethod
    def from_settings(cls, settings: BaseSettings) -> Self:
        """Read METRICS_FOLDER, METRICS_PUSH_URL, METRICS_EVERY and FRONTIER_RUN. Raises ConfigurationError."""
        folder, gateway = settings["METRICS_FOLDER"] or "", settings["METRICS_PUSH_URL"] or ""
        every, run = settings["METRICS_EVERY"], settings["FRONTIER_RUN"]
        try:
            seconds = float(every)
        except (TypeError, ValueError):
            seconds = 0.0
        if not 0.05 <= seconds <= 86_400:  # noqa: PLR2004 - a day
            raise ConfigurationError(f"METRICS_EVERY is {every!r}; set it to a number of seconds from 0.05 to 86400")
        if folder and not Path(folder).is_dir():
            raise ConfigurationError(
                f"METRICS_FOLDER is {folder!r}, which is no folder; make it, or remove the setting"
            )
        if gateway and not is_http_url(gateway):
            raise ConfigurationError("METRICS_PUSH_URL is no http or https URL; set it to one, or remove it")
        if not _RUN.fullmatch(run):
            raise ConfigurationError(f"FRONTIER_RUN is {run!r}; use letters, digits, '_', '.' and '-', 64 at most")
        return cls(folder=folder, gateway=gateway, every=seconds, run=run)
