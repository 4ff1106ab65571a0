"""`scrapy deploy`: scrapyd-deploy, checked."""

from __future__ import annotations

import signal
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Never

from scrapy.commands import ScrapyCommand
from scrapy.exceptions import UsageError

from moviecrawler.errors import ConfigurationError

if TYPE_CHECKING:
    import argparse


class Command(ScrapyCommand):
    """Reads the targets of scrapy.cfg as scrapyd-deploy does; exit code 0 only when the new version is what new jobs run."""

    requires_crawler_process = False

    def syntax(self) -> str:
        """Return the arguments' form."""
        return "[options] [TARGET]"

    def short_desc(self) -> str:
        """Return one line for the list of commands."""
        return "Bring this version to a cluster, or leave the cluster as it was"

    def long_desc(self) -> str:
        """Return what `-h` says."""
        return (
            "Builds the egg, uploads it to a target of scrapy.cfg (default: [deploy]), asks the cluster for its spiders, and deletes "
            "it there when anything went wrong. Credentials: scrapy.cfg, where ${NAME} is taken from the environment, or ~/.netrc."
        )

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        """Add scrapyd-deploy's options of the same meaning."""
        super().add_options(parser)
        parser.add_argument("-p", "--project", help="project on the target (default: scrapy.cfg's)")
        parser.add_argument("-v", "--version", help="version to deploy (default: scrapy.cfg's, else the time)")
        parser.add_argument("--egg", metavar="FILE", type=Path, help="deploy this egg instead of building one")

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        """Deploy; exit code 1 when it failed, 2 when an argument or scrapy.cfg is wrong."""
        if len(args) > 1:
            raise UsageError(f"name one target, not {' '.join(args)!r}", print_help=False)
        try:
            from moviecrawler.cluster import deployment  # noqa: PLC0415 - a crawl needs no scrapyd-client
        except ModuleNotFoundError as error:
            raise UsageError(
                f"{error.name} is not installed; pip install 'moviecrawler[cluster]'", print_help=False
            ) from None
        signal.signal(signal.SIGTERM, _interrupt)
        try:
            target = deployment.read_target(args[0] if args else "default", opts.project)
            version = deployment.version_for(target, opts.version)
            with nullcontext(opts.egg) if opts.egg else deployment.built_egg() as egg:
                spiders = deployment.deploy(target, version, egg)
        except ConfigurationError as error:
            raise UsageError(str(error), print_help=False) from None
        except deployment.DeployError as error:
            print(f"scrapy deploy: {error}", file=sys.stderr)
            self.exitcode = 1
        except KeyboardInterrupt:
            print("scrapy deploy: interrupted before anything was sent", file=sys.stderr)
            self.exitcode = 1
        else:
            print(f"{target.project} {version} is at {target.url} with the spiders {', '.join(spiders)}")


def _interrupt(*_: object) -> Never:
    """End as Ctrl-C does, so that what was begun is taken back."""
    raise KeyboardInterrupt
