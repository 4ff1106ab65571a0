"""`scrapy replica`: serve a replica of the sites on this machine."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from scrapy.commands import ScrapyCommand

from moviecrawler.basics.errors import ConfigurationError
from moviecrawler.commands.base import BaseCommand, option
from moviecrawler.replica.options import TODAY, Fault, Options

if TYPE_CHECKING:
    import argparse

_KINDS = ", ".join(Fault)


class Command(BaseCommand, ScrapyCommand):
    """Serve a local replica of the sites.

    The first one that is printed is on port P, the others on those after it.
    """

    options = (
        option("--port", default="8000", help="IMDb's (default: 8000); 0 for any"),
        option("--host", help="listen there (default: this machine only)"),
        option("--titles", help="movies to make up (default: 1000)"),
        option("--series", help="series (default: one for 100 movies)"),
        option("--today", help=f"show series as of that day (default: {TODAY})"),
        option("--seed", help="which movies those are (default: 1)"),
        option("--latency", help="milliseconds before every response (default: 0)"),
        option("--rate-limit", help="requests a second and client; more get 429"),
        option("--robots", help="robots.txt: open (default), or live as today"),
        option(
            "--fail",
            action="append",
            default=[],
            metavar="KIND:SHARE",
            help=f"spoil a share of the responses, such as 500:0.1; KIND is one of {_KINDS}; "
            "can be repeated",
        ),
        option("--light", action="store_true", help="pages of a few kB, with the same data"),
    )

    def execute(self, opts: argparse.Namespace) -> None:
        """Print the URLs, and serve until SIGINT or SIGTERM."""
        from moviecrawler.replica.app import serve

        asyncio.run(serve(read_options(opts)))


def read_options(opts: argparse.Namespace) -> Options:
    """Return the options given on a command line.

    Raises ConfigurationError for the first that can't be right.
    """
    faults: dict[Fault, float] = {}
    for text in opts.fail:
        kind, _, share = text.rpartition(":")
        try:
            faults[Fault(kind)] = faults.get(Fault(kind), 0) + float(share)
        except ValueError:
            raise ConfigurationError(
                f"--fail is {text!r}; use KIND:SHARE, such as 500:0.1, with a KIND of {_KINDS}"
            ) from None
    return Options.read({**vars(opts), "faults": faults})
