"""Every error that this project raises on purpose, each with a sentence that says what to do."""

from __future__ import annotations


class MovieCrawlerError(Exception):
    """Base of all of them."""


class ExtractionError(MovieCrawlerError):
    """A page does not have the shape that its reader knows; nothing of it may be stored.

    `field` is the item field (or `page`) that could not be read, `url` where the page came from (None when
    it was read from a file without one) and `reason` what was found instead.
    """

    def __init__(self, field: str, url: str | None, reason: str) -> None:
        super().__init__(f"{field}: {reason} ({url or 'no URL'})")
        self.field = field
        self.url = url
        self.reason = reason


class ConfigurationError(MovieCrawlerError):
    """A setting or a spider argument is wrong: what, the value given, and what would be right."""
