"""The program `moviecrawler`: the commands of `scrapy`, from any folder. PYTHON_ARGCOMPLETE_OK."""

from __future__ import annotations

import atexit
import gc
import os
import signal
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from scrapy import Spider
    from scrapy.settings import Settings

_SETTINGS = "moviecrawler.settings"
_VARIABLE = "SCRAPY_SETTINGS_MODULE"


def main() -> None:
    """Run a command, or complete one for a shell.

    Until the command itself begins, Ctrl-C ends the process without a word.
    """
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    # To look through what was imported takes 0.2 s at the end of the process.
    atexit.register(gc.freeze)
    # These take 0.3 s.
    from scrapy.cmdline import execute  # noqa: PLC0415

    settings = _find_settings()
    if "_ARGCOMPLETE" in os.environ:
        import argcomplete  # noqa: PLC0415 - only a shell needs it

        argcomplete.autocomplete(_parser_of_all(settings))
    execute(settings=settings)


def _find_settings() -> Settings:
    """Return the settings of SCRAPY_SETTINGS_MODULE, of this folder's Scrapy project, or ours.

    The project's are taken when it lists our add-on.
    """
    from scrapy.utils.project import get_project_settings  # noqa: PLC0415 - as above

    is_chosen = _VARIABLE in os.environ
    try:
        settings = get_project_settings()
    except Exception as error:  # noqa: BLE001 - they are a module of the user's
        print(  # noqa: T201 - what a program is for
            f"moviecrawler: the settings {os.environ.get(_VARIABLE)} can't be imported: {error}; "
            f"mend them, or set {_VARIABLE}={_SETTINGS}",
            file=sys.stderr,
        )
        sys.exit(2)
    addons = [getattr(addon, "__module__", addon) for addon in settings.getdict("ADDONS")]
    if not is_chosen and not any(addon.startswith("moviecrawler.") for addon in addons):
        os.environ[_VARIABLE] = _SETTINGS
        settings = get_project_settings()
    settings.set("COMMANDS_MODULE", "moviecrawler.commands", priority="cmdline")
    return settings


# --- Completion -----------------------------------------------------------------------------------


def _parser_of_all(settings: Settings) -> argparse.ArgumentParser:
    """Return a parser of all commands, whose options say how their values are completed."""
    from argparse import ArgumentParser  # noqa: PLC0415 - only a shell needs it

    from scrapy.addons import AddonManager  # noqa: PLC0415 - as above
    from scrapy.spiderloader import SpiderLoader  # noqa: PLC0415 - as above

    from moviecrawler.scrapy_internals import commands_of  # noqa: PLC0415 - as above

    AddonManager.load_pre_crawler_settings(settings)
    spiders = SpiderLoader.from_settings(settings)
    commands = commands_of(settings)

    def spider_arguments(parsed_args: argparse.Namespace, **_: object) -> Iterator[str]:
        if parsed_args.spider == "all":
            of_all = commands["crawl"].arguments_of_all(spiders)  # type: ignore[attr-defined]
            return (f"{name}=" for name in sorted(of_all))
        return _spider_arguments(spiders.load(parsed_args.spider))

    def setting_names(**_: object) -> Iterator[str]:
        return (f"{name}=" for name in settings)

    parser = ArgumentParser(prog="moviecrawler")
    subparsers = parser.add_subparsers()
    for name, command in commands.items():
        command.settings = settings
        subparser = subparsers.add_parser(
            name, help=command.short_desc(), conflict_handler="resolve"
        )
        command.add_options(subparser)
        completers = {"set": setting_names, "spargs": spider_arguments}
        for action in subparser._actions:  # noqa: SLF001 - argparse has no other way
            if action.dest in completers:
                action.completer = completers[action.dest]  # type: ignore[attr-defined]
        if name in {"check", "crawl", "edit"}:
            subparser.add_argument("spider", choices=[*spiders.list(), "all"])
    return parser


def _spider_arguments(spidercls: type[Spider]) -> Iterator[str]:
    """Yield the arguments of a spider, those with a few possible values with each of these."""
    choices = spidercls.choices() if hasattr(spidercls, "choices") else {}
    for name in sorted(getattr(spidercls, "arguments", ())):
        for value in choices.get(name, [""]):
            yield f"{name}={value}"


if __name__ == "__main__":
    main()
