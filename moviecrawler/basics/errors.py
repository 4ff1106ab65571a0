"""Every error that this project raises on purpose, each with a sentence that says what to do."""

from moviecrawler.basics.texts import shortened

LONGEST_REASON = 500
"""Characters of why something failed: it may hold what a site has sent."""


class MovieCrawlerError(Exception):
    """Base of all of them."""


class ExtractionError(MovieCrawlerError):
    """A page does not have the shape that its reader knows; nothing of it may be stored.

    `field` is the item field (or `page`) that could not be read, `url` where the page came from
    (None when it was read from a file without one) and `reason` what was found instead, in up to
    LONGEST_REASON characters.
    """

    def __init__(self, field: str, url: str | None, reason: str) -> None:
        self.field = shortened(field, 100)
        self.url = url
        self.reason = shortened(reason, LONGEST_REASON)
        super().__init__(
            f"{self.field}: {self.reason} ({shortened(url or 'no URL', LONGEST_REASON)})"
        )


class ConfigurationError(MovieCrawlerError):
    """A setting or a spider argument is wrong: what, the value given, and what would be right."""


class ClockError(ConfigurationError):
    """This machine's clock is not that of a server."""


class InterruptedReadError(MovieCrawlerError):
    """Files were not read to their end, as the crawl ends."""


class InvalidItemError(MovieCrawlerError):
    """An item holds what no title can have.

    `field` names it; the message gives the value and what would be right. `path` leads to the
    value, such as `("credits", 3, "character")`.
    """

    def __init__(self, field: str, reason: str, path: tuple[str | int, ...] = ()) -> None:
        super().__init__(f"{field}: {reason}")
        self.field = field
        self.path = path or (field,)


class UnavailableError(MovieCrawlerError):
    """A store cannot be reached now; the message is a sentence for users."""


class FrontierError(MovieCrawlerError):
    """What keeps the queue cannot do a step now. The worker tries again."""


class FrontierFullError(FrontierError):
    """The queue has no room for more requests. Leases can still end, which makes room."""


class TransientStoreError(MovieCrawlerError):
    """A store can't write now, and may be able to later.

    It is locked, full, restarting or out of reach.
    """


class SchemaError(MovieCrawlerError):
    """A database's tables do not fit a statement: an error of this program, whatever the item."""


class TooSlowError(TransientStoreError):
    """A store took longer for this than it may; a smaller batch may work."""


class OutputError(MovieCrawlerError):
    """What is stored could not be put into the files that people read."""


class RejectedError(MovieCrawlerError):
    """A store will never take this batch, because of something in it."""


class ArchiveError(MovieCrawlerError):
    """An archive, or an object in it, is damaged or not one that this project wrote."""
