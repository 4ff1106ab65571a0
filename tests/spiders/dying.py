"""A pipeline that kills its own process between two items of one page."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from moviecrawler.items import Movie

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

MARK = "dies-at"
"""A file in DATA_DIR with the id of the item at which the process dies, once."""


class DyingPipeline:
    """Kills the process when a certain item comes; the mark goes first, so that the next process lives."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(Path(crawler.settings["DATA_DIR"]) / MARK)

    def process_item(self, item: Any) -> Any:
        if isinstance(item, Movie) and self.mark.exists() and self.mark.read_text() == item.site_id:
            self.mark.unlink()
            os.kill(os.getpid(), signal.SIGKILL)
        return item
