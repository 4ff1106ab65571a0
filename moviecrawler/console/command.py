"""The base of all commands. Scrapy imports every module of `commands/` for each command, so this module imports little."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar

from scrapy.commands import ScrapyCommand

if TYPE_CHECKING:
    import argparse

    from moviecrawler.console.output import Console

Option = tuple[tuple[str, ...], dict[str, Any]]


def option(*names: str, **parameters: Any) -> Option:
    """Return an option for `LazyCommand.options`, declared as for `ArgumentParser.add_argument`."""
    return names, parameters


class LazyCommand(ScrapyCommand):
    """A command. What does its work is imported when it runs: the `Console` class that `work` names, or what `execute` imports."""

    requires_crawler_process = False
    work: ClassVar[str] = "output.Console"
    """Module and class in `console/`."""
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
        """Import the class that does the work, and run it."""
        module, _, name = self.work.partition(".")
        work = getattr(import_module(f"moviecrawler.console.{module}"), name)
        self.exitcode = work(self).exit_code(args, opts)

    def execute(self, console: Console, args: list[str], opts: argparse.Namespace) -> None:
        """Do the work of a command that names no class. Raises what `Console.run` does."""
        raise NotImplementedError
