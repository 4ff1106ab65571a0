"""What the work of a command stands on: its settings, its exit code, and printing that may be cut short."""

from __future__ import annotations

import io
import os
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from scrapy.commands import ScrapyCommand


class Console:
    """The work of one command.

    `commands/` declares names, arguments and help, because Scrapy imports all of it for every command. The work, with what
    it imports, stands in `console/` and is imported when the command runs.
    """

    exitcode = 0

    def __init__(self, command: ScrapyCommand) -> None:
        """Take the settings and, where the command asks for one, the crawler process."""
        assert command.settings is not None  # noqa: S101 - set by Scrapy before a command runs
        self.settings = command.settings
        self.crawler_process = command.crawler_process

    def exit_code(self, args: list[str], opts: argparse.Namespace) -> int:
        """Run it and return the command's exit code; it ends quietly when nobody reads on. Raises UsageError."""
        with printing():
            self.run(args, opts)
        return self.exitcode

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        """Do the work, and set `exitcode` where it fails."""
        raise NotImplementedError


@contextmanager
def printing(*, encoding: str | None = None, errors: str | None = None, newline: str | None = None) -> Iterator[None]:
    """Print in the block, in that form; it ends quietly when whoever reads has seen enough, such as `head`."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding=encoding, errors=errors, newline=newline)
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        # Else the interpreter complains when it flushes what is left at its end.
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
