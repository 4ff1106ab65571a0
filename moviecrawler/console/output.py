"""The base of the classes that do the work of commands: settings, exit codes, errors and printing."""

from __future__ import annotations

import io
import os
import sys
import unicodedata
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import msgspec
from scrapy.exceptions import UsageError

from moviecrawler.errors import ConfigurationError, MovieCrawlerError
from moviecrawler.texts import printable

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Sequence

    from scrapy.commands import ScrapyCommand

_INTERRUPTED = 130
"""The exit code by which shells know Ctrl-C."""
_GAP = "  "
_LEAST_FIRST_COLUMN = 16
_WIDE = frozenset("WF")
"""Unicode's classes of characters that take two columns."""


class Console:
    """The work of one command, which `commands/` declares."""

    exitcode = 0

    def __init__(self, command: ScrapyCommand) -> None:
        """Take the settings and, where the command asks for one, the crawler process."""
        assert command.settings is not None  # noqa: S101 - set by Scrapy before a command runs
        self._command = command
        self.name = type(command).__module__.rpartition(".")[2]
        self.settings = command.settings
        self.crawler_process = command.crawler_process

    def exit_code(self, args: list[str], opts: argparse.Namespace) -> int:
        """Run it and return the command's exit code. It ends quietly when its output is closed, such as by `head`.

        Raises UsageError (exit code 2) for wrong arguments and settings.
        """
        with printing():
            try:
                self.run(args, opts)
            except BrokenPipeError:
                raise  # handled by `printing`
            except ConfigurationError as error:
                raise UsageError(printable(str(error)), print_help=False) from error
            except (MovieCrawlerError, OSError) as error:
                self.fail(str(error))
            except KeyboardInterrupt:
                self.fail("interrupted")
                self.exitcode = _INTERRUPTED
        return self.exitcode

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        """Do the work, by default the command's `execute`.

        Raises ConfigurationError for a wrong argument, and MovieCrawlerError or OSError for exit code 1.
        """
        self._command.execute(self, args, opts)  # type: ignore[attr-defined]  # a LazyCommand

    def fail(self, sentence: str) -> None:
        """Print what went wrong; the exit code becomes 1."""
        print(f"scrapy {self.name}: {printable(sentence)}", file=sys.stderr)
        self.exitcode = 1


def check_no_arguments(args: Sequence[str]) -> None:
    """Raise ConfigurationError when there is an argument."""
    if args:
        raise ConfigurationError(f"takes no argument {args[0]!r}")


def print_json(value: Any, *, indent: int | None = None) -> None:
    """Print a value as a line of JSON, or as several."""
    line = msgspec.json.encode(value)
    sys.stdout.buffer.write((line if indent is None else msgspec.json.format(line, indent=indent)) + b"\n")
    sys.stdout.buffer.flush()


def print_table(rows: Sequence[Sequence[str]], *, right: bool = False) -> None:
    """Print rows as aligned columns. With `right`, all but the first column are aligned to the right."""
    print("\n".join(table_lines(rows, right=right)))


def table_lines(rows: Sequence[Sequence[str]], *, right: bool, width: int | None = None) -> list[str]:
    """Return rows as lines of aligned columns.

    With a width, the first column is cut so that lines have at most so many columns, and a rule stands below the first row.
    """
    widths = [max(map(_columns, column)) for column in zip(*rows, strict=True)]
    if width is not None:
        room = width - sum(widths[1:]) - len(_GAP) * (len(widths) - 1)
        widths[0] = min(widths[0], max(room, _LEAST_FIRST_COLUMN))
        rows = [rows[0], ["─" * columns for columns in widths], *rows[1:]]
    lines = []
    for name, *others in rows:
        first = _cut(name, widths[0])
        cells = [
            cell.rjust(columns) if right else cell.ljust(columns)
            for cell, columns in zip(others, widths[1:], strict=True)
        ]
        lines.append(_GAP.join([first + " " * (widths[0] - _columns(first)), *cells]).rstrip())
    return lines


def _cut(text: str, width: int) -> str:
    if _columns(text) <= width:
        return text
    while _columns(text) > width - 1:
        text = text[:-1]
    return text.rstrip() + "…"


def _columns(text: str) -> int:
    r"""Return how many columns of a terminal a text takes.

    >>> _columns("cafe\u0301"), _columns("\u5343\u3068")
    (4, 4)
    """
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in _WIDE else 1 for c in text)


@contextmanager
def printing(*, encoding: str | None = None, errors: str | None = None, newline: str | None = None) -> Iterator[None]:
    """Print in the block, with that encoding. The block ends quietly when the output is closed, such as by `head`."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding=encoding, errors=errors, newline=newline)
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        # Otherwise the interpreter prints an error when it flushes the rest at its end.
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
