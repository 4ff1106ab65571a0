"""What all commands share: arguments, errors, exit codes, tables and JSON.

Scrapy imports every module of this folder for each command that it runs, so these import a client
of a service, and what takes longer than 30 ms with all that it brings, only when they need it.
"""

from __future__ import annotations

import inspect
import os
import signal
import sqlite3
import sys
import unicodedata
from argparse import ArgumentTypeError
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import msgspec
from scrapy.addons import AddonManager
from scrapy.exceptions import UsageError
from scrapy.settings import BaseSettings

from moviecrawler.basics.errors import ConfigurationError, MovieCrawlerError
from moviecrawler.basics.texts import fold, printable, shown
from moviecrawler.scrapy_internals import check_options
from moviecrawler.sites import SCORES, SITES

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterable, Sequence

    from scrapy.commands import ScrapyCommand as Command
    from scrapy.commands import ScrapyCommand as _Base
else:
    _Base = object  # Scrapy would list a subclass of ScrapyCommand here as a command

NONE = "\N{EN DASH}"
"""Stands for a missing value in tables."""
_INTERRUPTED = 130
"""The exit code by which shells know Ctrl-C."""
_GAP = "  "
LEAST_TITLE = 16
"""Columns of a terminal that a title has, at least."""


class Option(NamedTuple):
    """An argument of a command, as for `ArgumentParser.add_argument`."""

    names: tuple[str, ...]
    parameters: dict[str, Any]
    """Their types differ, and argparse checks them."""


def option(*names: str, **parameters: Any) -> Option:
    """Return an argument for `BaseCommand.options`."""
    return Option(names, parameters)


def program() -> str:
    """Return the name of the program that runs: `scrapy` or `moviecrawler`."""
    return "moviecrawler" if "moviecrawler" in Path(sys.argv[0]).parts[-2:] else "scrapy"


def whole_number(text: str, above: int = 0) -> int:
    """Return the number of an argument."""
    if not text.isascii() or not text.isdigit() or int(text) <= above:
        raise ArgumentTypeError(f"{text!r} is not an integer greater than {above}")
    return int(text)


SITE = option("--site", choices=list(SITES), help="this site only")
RUN = option("--run", help="runs of this name only")
JSON = option("--json", action="store_true", help="print JSON")


class BaseCommand(_Base):
    """The base of a command, before Scrapy's own.

    The docstring of a command is its help; the first line is in Scrapy's list.

    It ends with one sentence: with exit code 2 for a wrong argument or setting, with 1 for what
    fails later.
    """

    settings: BaseSettings  # type: ignore[assignment]  # Scrapy has set it before a command runs
    requires_crawler_process = False
    arguments: ClassVar[str] = "[options]"
    """Usage: arguments and options."""
    options: ClassVar[tuple[Option, ...]] = ()

    def syntax(self) -> str:
        return self.arguments

    def short_desc(self) -> str:
        return (inspect.getdoc(self) or "").partition("\n")[0].rstrip(".")

    def long_desc(self) -> str:
        return fold(inspect.getdoc(self) or "")

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        for own in self.options:
            parser.add_argument(*own.names, **own.parameters)

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        lists = [
            getattr(opts, own.names[0])
            for own in self.options
            if own.parameters.get("nargs") in {"*", "+"}
        ]
        # argparse leaves over unknown options, and what follows an option within a list.
        for argument in args:
            if not lists or argument.startswith("-"):
                raise UsageError(f"takes no argument {argument!r}", print_help=False)
            lists[0].append(argument)
        try:
            hear_ctrl_c()
            self.execute(opts)
            sys.stdout.flush()
        except BrokenPipeError:  # the reader of the output is gone, such as `head`
            # Otherwise the interpreter prints an error when it flushes the rest at its end.
            with Path(os.devnull).open("w") as devnull:
                os.dup2(devnull.fileno(), sys.stdout.fileno())
        except ConfigurationError as error:
            raise UsageError(printable(str(error)), print_help=False) from error
        except sqlite3.Error as error:
            folder = self.settings.get("DATA_DIR", "data")
            reason = f"the database in {folder} can't be read ({error}); if damaged, move it away"
            raise UsageError(printable(reason), print_help=False) from error
        except (MovieCrawlerError, OSError) as error:
            self.fail(str(error))
        except KeyboardInterrupt:
            self.fail("interrupted")
            self.exitcode = _INTERRUPTED

    def execute(self, opts: argparse.Namespace) -> None:
        """Do the work.

        Raises ConfigurationError for a wrong argument, and MovieCrawlerError or OSError for exit
        code 1.
        """
        raise NotImplementedError

    def fail(self, sentence: str) -> None:
        """Print what went wrong; the exit code becomes 1."""
        print(
            f"{program()} {type(self).__module__.rpartition('.')[2]}: {printable(sentence)}",
            file=sys.stderr,
        )
        self.exitcode = 1


def _check_options(command: Command, opts: argparse.Namespace, process: Callable[[], None]) -> None:
    """Process the options of a command. Raises UsageError for the first that can't be right."""
    settings = command.settings
    assert settings is not None  # noqa: S101 - Scrapy has set them
    if type(command).__module__ == "scrapy.commands.shell":
        hear_ctrl_c()  # which ends what is typed there
    for text in opts.set:
        name, _, value = text.partition("=")
        if isinstance(settings.get(name), BaseSettings):
            try:
                msgspec.json.decode(value, type=dict)
            except msgspec.DecodeError as error:
                reason = f"{name} is {shown(value)}; set it to a JSON object ({error})"
                raise UsageError(reason, print_help=False) from error
    try:
        if opts.profile:
            Path(opts.profile).touch()
        process()
        AddonManager.load_pre_crawler_settings(settings)
    except (ConfigurationError, OSError) as error:
        raise UsageError(printable(str(error)), print_help=False) from error
    except (AttributeError, ImportError, NameError, TypeError, ValueError) as error:
        reason = f"ADDONS names what can't be imported: {error}"
        raise UsageError(reason, print_help=False) from error


def hear_ctrl_c() -> None:
    """Have Ctrl-C raise KeyboardInterrupt again."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:
        signal.signal(signal.SIGINT, signal.default_int_handler)


check_options(_check_options)
is_program = Path(sys.argv[0]).parts[-2:-1] == ("scrapy",) or Path(sys.argv[0]).name == "scrapy"
if is_program and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    # Until a command begins, Ctrl-C ends the process without a word, as in `moviecrawler`.
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def print_json(value: object, *, indent: int = -1) -> None:
    """Print a value as a line of JSON; with an indent of 0 or more, as several."""
    text = msgspec.json.format(msgspec.json.encode(value), indent=indent)
    sys.stdout.buffer.write(text + b"\n")
    sys.stdout.buffer.flush()


def print_csv(
    header: Iterable[str], rows: Iterable[Iterable[object]], *, excel: bool = False
) -> None:
    """Print CSV as the files have it, in UTF-8 wherever it goes."""
    from moviecrawler.pipelines.csv_parts import Encoder

    encoder = Encoder(excel=excel)
    sys.stdout.flush()
    sys.stdout.buffer.write(encoder.header(header))
    left = iter(rows)
    while lines := encoder.rows(left):
        sys.stdout.buffer.write(lines)
    sys.stdout.buffer.flush()


def score_text(kind: str, value: float | None) -> str:
    """Return the value of a score as its site writes it."""
    if value is None:
        return NONE
    score = SCORES.get(kind)
    return f"{value:{score.form}}{score.unit}" if score else f"{value:g}"


def table(
    rows: Sequence[Sequence[str]],
    *,
    right: bool = False,
    width: int | None = None,
    title: int = 0,
) -> str:
    """Return rows, the first of them a header, as lines of aligned columns.

    With `right`, all but the column `title` are aligned to the right. With a width, that column is
    cut so that the others fit.
    """
    rows = [[printable(cell) for cell in row] for row in rows]
    widths = [max(map(columns_of, column)) for column in zip(*rows, strict=True)]
    if width is not None:
        others = sum(widths) - widths[title] + len(_GAP) * (len(widths) - 1)
        widths[title] = min(widths[title], max(width - others, LEAST_TITLE))
    lines = []
    for row in (rows[0], ["─" * columns for columns in widths], *rows[1:]):
        cells = []
        for index, (text, columns) in enumerate(zip(row, widths, strict=True)):
            cell = _cut(text, columns)
            space = " " * (columns - columns_of(cell))
            cells.append(space + cell if right and index != title else cell + space)
        lines.append(_GAP.join(cells).rstrip())
    return "\n".join(lines)


def _cut(text: str, columns: int) -> str:
    while columns_of(text) > columns:
        text = text.removesuffix("…")[:-1].rstrip() + "…"
    return text


def columns_of(text: str) -> int:
    """Return how many columns of a terminal a text takes: two for a wide letter."""
    letters = [letter for letter in text if not unicodedata.combining(letter)]
    wide = [letter for letter in letters if unicodedata.east_asian_width(letter) in {"W", "F"}]
    return len(letters) + len(wide)
