"""`python -m moviecrawler.replica`: the replica without Scrapy around it, which starts faster."""

from __future__ import annotations

import argparse
import asyncio
import sys

from moviecrawler.errors import ConfigurationError
from moviecrawler.replica.app import serve
from moviecrawler.replica.options import add_arguments, parse_options


async def _end_of_input() -> None:
    """Return when standard input ends, which it does when the process at its other end is gone."""
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    await reader.read()


def main() -> int:
    """Serve until a signal comes; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m moviecrawler.replica", description="Serve a replica of the sites")
    add_arguments(parser)
    parser.add_argument("--until-eof", action="store_true", help="stop when standard input ends, too")
    given = parser.parse_args()
    try:
        asyncio.run(serve(parse_options(given), until=_end_of_input if given.until_eof else None))
    except ConfigurationError as error:
        print(error, file=sys.stderr)  # noqa: T201 - a command's answer
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
