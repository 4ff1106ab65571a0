"""`scrapy deploy`: scrapyd-deploy, checked."""

from __future__ import annotations

from pathlib import Path

from moviecrawler.console.command import LazyCommand, option


class Command(LazyCommand):
    """Reads the targets of scrapy.cfg as scrapyd-deploy does; exit code 0 only when the new version is what new jobs run."""

    work = "deploy.Deploy"
    arguments = "[options] [TARGET]"
    summary = "Deploy this version to a cluster, or leave the cluster as it was"
    options = (
        option("-p", "--project", help="project on the target (default: scrapy.cfg's)"),
        option("-v", "--version", help="version to deploy (default: scrapy.cfg's, else the time)"),
        option("--egg", metavar="FILE", type=Path, help="deploy this egg instead of building one"),
    )

    def long_desc(self) -> str:
        """Return what `-h` says."""
        return (
            "Builds the egg, uploads it to a target of scrapy.cfg (default: [deploy]), asks the cluster for its spiders, and deletes "
            "it there when anything went wrong. Credentials: scrapy.cfg, where ${NAME} is taken from the environment, or ~/.netrc."
        )
