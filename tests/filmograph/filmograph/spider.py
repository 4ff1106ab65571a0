"""Filmograph: its lists, page by page, then each title's page."""

from __future__ import annotations

from moviecrawler.spiders.lists import ListSpider


class FilmographSpider(ListSpider):
    """Fetches Filmograph's lists and title pages. `list` is films or shows."""

    name = "filmograph"
    site = "filmograph"

    def list_url(self, name: str, _before: int, cursor: str | None) -> str:
        """Return the address of a page of a list; the page before it names its number."""
        return f"{self.home}{self.profile.lists[name].path}?page={cursor or 1}"
