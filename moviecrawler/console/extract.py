"""`scrapy extract`: print what would be read from saved pages."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from scrapy.exceptions import UsageError

from moviecrawler.console.output import Console, printing
from moviecrawler.errors import ExtractionError
from moviecrawler.extract.pages import page_record, read_page
from moviecrawler.urls import site_of

if TYPE_CHECKING:
    import argparse


class Extract(Console):
    """One JSON object a line and file: what the page says, or why it could not be read."""

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        """Read every file; exit code 1 when one of them could not be read."""
        if not args:
            raise UsageError("name at least one file", print_help=False)
        if opts.url is not None and (len(args) > 1 or site_of(opts.url) is None):
            raise UsageError(
                f"--url takes the address of one page of the three sites, for one FILE; got {opts.url!r} for {len(args)}",
                print_help=False,
            )
        with printing():
            for name in args:
                record = self._read(name, opts.url)
                shown = os.fsencode(name).decode(errors="replace")  # a file's name may be any bytes
                sys.stdout.buffer.write(msgspec.json.encode({"file": shown, **record}) + b"\n")

    def _read(self, name: str, url: str | None) -> dict[str, Any]:
        try:
            return page_record(read_page(Path(name).read_bytes(), url))
        except ExtractionError as error:
            self.exitcode = 1
            return {"block": error.reason} if error.field == "block" else {"error": str(error)}
        except OSError as error:
            self.exitcode = 1
            return {"error": f"can't be read: {error.strerror or error}"}
