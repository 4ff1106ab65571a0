"""`scrapy deploy`: scrapyd-deploy, checked."""

from __future__ import annotations

import signal
from contextlib import nullcontext
from typing import TYPE_CHECKING, Never

from moviecrawler.console.output import Console
from moviecrawler.errors import ConfigurationError

if TYPE_CHECKING:
    import argparse


class Deploy(Console):
    """Deploys one version to one target."""

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        """Deploy; exit code 1 when it failed, 2 when an argument or scrapy.cfg is wrong."""
        if len(args) > 1:
            raise ConfigurationError(f"name one target, not {' '.join(args)!r}")
        try:
            from moviecrawler.cluster import deployment  # noqa: PLC0415 - scrapyd-client is of an extra
        except ModuleNotFoundError as error:
            raise ConfigurationError(f"{error.name} is not installed; pip install 'moviecrawler[cluster]'") from None
        signal.signal(signal.SIGTERM, _interrupt)
        try:
            target = deployment.read_target(args[0] if args else "default", opts.project)
            version = deployment.version_for(target, opts.version)
            with nullcontext(opts.egg) if opts.egg else deployment.built_egg() as egg:
                spiders = deployment.deploy(target, version, egg)
        except KeyboardInterrupt:
            self.fail("interrupted before anything was sent")
        else:
            print(f"{target.project} {version} is at {target.url} with the spiders {', '.join(spiders)}")


def _interrupt(*_: object) -> Never:
    """End as Ctrl-C does, so that an unfinished deploy is undone."""
    raise KeyboardInterrupt
