"""`scrapy newsite`: write the folder of a site of one's own."""

from __future__ import annotations

import re
from importlib.util import find_spec
from keyword import iskeyword
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from scrapy.commands import ScrapyCommand

from moviecrawler import sites
from moviecrawler.basics.errors import ConfigurationError
from moviecrawler.commands.base import BaseCommand, option

if TYPE_CHECKING:
    import argparse

_NAME = re.compile("[a-z][a-z0-9]{1,29}")
_URL = re.compile(r"https?://[a-z0-9.-]+(?::[0-9]+)?")
_TEMPLATE = Path(sites.__path__[0]) / "template"
_SUFFIX = ".tmpl"


class Command(BaseCommand, ScrapyCommand):
    """Write the folder of a new site.

    It is a distribution of its own, with a profile, readers, a spider, its part of the replica, and
    a test that fails and shows what to do next.
    """

    arguments = "[--url URL] NAME"
    options = (
        option("name", metavar="NAME", help="such as filmograph: also that of its spider"),
        option("--url", help="scheme and host of its pages; https://www.NAME.example by default"),
    )

    def execute(self, opts: argparse.Namespace) -> None:
        name: str = opts.name
        url = (opts.url or f"https://www.{name}.example").rstrip("/")
        folder = Path(name)
        if not _NAME.fullmatch(name) or iskeyword(name):
            raise ConfigurationError(
                f"the name is {name!r}; give 2 to 30 small letters and digits, a letter first, and "
                "no word of Python's"
            )
        if folder.exists():
            raise ConfigurationError(f"there is a folder {name!r} here; give another name")
        if name in sites.SITES or find_spec(name) is not None:
            raise ConfigurationError(f"there is a module or a site {name!r}; give another name")
        if not _URL.fullmatch(url):
            raise ConfigurationError(
                f"--url is {url!r}; give a scheme and host such as https://www.filmograph.example"
            )
        host = urlsplit(url).hostname or ""
        values = {
            "name": name,
            "title": name.capitalize(),
            "upper": name.upper(),
            "url": url,
            "domain": host.removeprefix("www."),
        }
        for source in sorted(_TEMPLATE.rglob(f"*{_SUFFIX}")):
            place = source.relative_to(_TEMPLATE).as_posix().removesuffix(_SUFFIX)
            target = folder / re.sub("^package/", f"{name}/", place)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(Template(source.read_text("utf-8")).substitute(values), "utf-8")
        print(f"{folder}/ is written. Its tests show what to do next:")
        print(f"  cd {folder} && pip install -e . && pytest")
