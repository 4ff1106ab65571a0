"""The addresses of titles, and the ids in them, for programs that use this package."""

from moviecrawler.sites.ids import id_in_url, title_url

__all__ = ["id_in_url", "title_url"]
