"""What all commands share: options, errors, exit codes, tables and JSON.

Scrapy imports every module of this folder for each command that it runs, so these import what does the work when it runs.
"""

from __future__ import annotations

import io
import os
import sys
import unicodedata
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar

from scrapy.exceptions import UsageError

from moviecrawler.errors import ConfigurationError, MovieCrawlerError
from moviecrawler.texts import printable

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Sequence

    from scrapy.commands import ScrapyCommand as _Base
    from scrapy.settings import BaseSettings
else:
    _Base = object  # Scrapy would list a subclass of ScrapyCommand here as a command

Option = tuple[tuple[str, ...], dict[str, Any]]

_INTERRUPTED = 130
"""The exit code by which shells know Ctrl-C."""
_GAP = "  "
_MIN_FIRST_COLUMN = 16
_WIDE = frozenset("WF")
"""Unicode's classes of characters that take two columns."""


def option(*names: str, **parameters: Any) -> Option:
    """Return an option for `BaseCommand.options`, declared as for `ArgumentParser.add_argument`."""
    return names, parameters


class BaseCommand(_Base):
    """The base of a command, before Scrapy's own.

    It ends with one sentence: with exit code 2 for a wrong argument or setting, with 1 for what fails later.
    """

    settings: BaseSettings  # type: ignore[assignment]  # Scrapy has set it before a command runs
    requires_crawler_process = False
    arguments: ClassVar[str] = ""
    """Usage: arguments and options."""
    summary: ClassVar[str]
    """One line for the list of commands."""
    options: ClassVar[tuple[Option, ...]] = ()

    def syntax(self) -> str:
        """Return the usage."""
        return self.arguments

    def short_desc(self) -> str:
        """Return one line for the list of commands."""
        return self.summary

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        """Add the command's options to Scrapy's."""
        super().add_options(parser)
        for names, parameters in self.options:
            parser.add_argument(*names, **parameters)

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        """Do the work. Raises UsageError (exit code 2) for wrong arguments and settings."""
        with printing():
            try:
                self.execute(args, opts)
            except BrokenPipeError:
                raise  # handled by `printing`
            except ConfigurationError as error:
                raise UsageError(printable(str(error)), print_help=False) from error
            except (MovieCrawlerError, OSError) as error:
                self.fail(str(error))
            except KeyboardInterrupt:
                self.fail("interrupted")
                self.exitcode = _INTERRUPTED

    def execute(self, args: list[str], opts: argparse.Namespace) -> None:
        """Do the work. Raises ConfigurationError for a wrong argument, and MovieCrawlerError or OSError for exit code 1."""
        raise NotImplementedError

    def fail(self, sentence: str) -> None:
        """Print what went wrong; the exit code becomes 1."""
        print(f"scrapy {type(self).__module__.rpartition('.')[2]}: {printable(sentence)}", file=sys.stderr)
        self.exitcode = 1


def check_no_arguments(args: Sequence[str]) -> None:
    """Raise ConfigurationError when there is an argument."""
    if args:
        raise ConfigurationError(f"takes no argument {args[0]!r}")


def print_json(value: Any, *, indent: int | None = None) -> None:
    """Print a value as a line of JSON, or as several."""
    import msgspec

    line = msgspec.json.encode(value)
    sys.stdout.buffer.write((line if indent is None else msgspec.json.format(line, indent=indent)) + b"\n")
    sys.stdout.buffer.flush()


def print_table(rows: Sequence[Sequence[str]], *, right: bool = False) -> None:
    """Print rows as aligned columns. With `right`, all but the first column are aligned to the right."""
    print("\n".join(table_lines(rows, right=right)))


def table_lines(rows: Sequence[Sequence[str]], *, right: bool, width: int | None = None) -> list[str]:
    """Return rows as lines of aligned columns.

    With a width, the first column is cut so that lines have at most so many columns, and the first row is underlined.
    """
    widths = [max(map(_columns, column)) for column in zip(*rows, strict=True)]
    if width is not None:
        available = width - sum(widths[1:]) - len(_GAP) * (len(widths) - 1)
        widths[0] = min(widths[0], max(available, _MIN_FIRST_COLUMN))
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
        devnull = os.open(os.devnull, os.O_WRONLY)
        os.dup2(devnull, sys.stdout.fileno())
        os.close(devnull)
