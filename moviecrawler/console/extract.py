"""`scrapy extract`: print what would be read from saved pages."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from moviecrawler.console.output import Console, print_json
from moviecrawler.errors import ConfigurationError, ExtractionError
from moviecrawler.extract.pages import page_record, read_page
from moviecrawler.urls import site_of

if TYPE_CHECKING:
    import argparse


class Extract(Console):
    """Prints one JSON object for each file: what the page says, or why it could not be read."""

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        """Read every file; exit code 1 when one of them could not be read."""
        if not args:
            raise ConfigurationError("name at least one file")
        if opts.url is not None and (len(args) > 1 or site_of(opts.url) is None):
            raise ConfigurationError(
                f"--url takes the address of one page of the three sites, for one FILE; got {opts.url!r} for {len(args)}"
            )
        for name in args:
            shown = os.fsencode(name).decode(errors="replace")  # a file's name may be any bytes
            print_json({"file": shown, **self._read(name, opts.url)})

    def _read(self, name: str, url: str | None) -> dict[str, Any]:
        try:
            return page_record(read_page(Path(name).read_bytes(), url))
        except ExtractionError as error:
            self.exitcode = 1
            return {"block": error.reason} if error.field == "block" else {"error": str(error)}
        except OSError as error:
            self.exitcode = 1
            return {"error": f"can't be read: {error.strerror or error}"}
