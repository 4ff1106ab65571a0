"""What pages of all sites are made of: templates of HTML, and the bulk around their data."""

from __future__ import annotations

import functools
import tomllib
from functools import partial
from typing import TYPE_CHECKING

import msgspec
from jinja2 import ChoiceLoader, Environment, PackageLoader, PrefixLoader, StrictUndefined
from markupsafe import Markup

from moviecrawler.basics.files import read_package_file
from moviecrawler.sites import SITES
from moviecrawler.sites.words import WORDS, Dice

if TYPE_CHECKING:
    from moviecrawler.items import Site
    from moviecrawler.sites import replicas

MARKUP = tomllib.loads(read_package_file("moviecrawler.replica", "markup.toml"))


@functools.cache
def _filler(form: str, size: int, *, light: bool) -> Markup:
    """Return a part of about `size` bytes that says nothing of titles.

    It makes a page as large as the sites' own.
    """
    dice = Dice(form, size)
    pieces = list[str]()
    written = 0
    while written < (1_000 if light else size):
        words = dice.choices(WORDS["filler"], k=12)
        fields = {
            "hash": f"{dice.getrandbits(32):08x}",
            "number": dice.below(24),
            "text": " ".join(words[4:]),
        }
        pieces.append(MARKUP[f"filler_{form}"].format(*words, **fields))
        written += len(pieces[-1])
    return Markup("".join(pieces))  # noqa: S704 - made of our own words


_TEMPLATES = Environment(
    loader=ChoiceLoader(
        [
            PackageLoader("moviecrawler.replica", "."),
            # Those of a site are in its folder, such as `imdb/replica.html`.
            PrefixLoader(
                {site: PackageLoader(profile.package, ".") for site, profile in SITES.items()}
            ),
        ]
    ),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
)
# As the sites do it.
_TEMPLATES.filters["json"] = lambda data: Markup(msgspec.json.encode(data).decode())  # noqa: S704
# What has no value is left out of schema.org's data.
_TEMPLATES.filters["known"] = lambda data: {
    key: value for key, value in data.items() if value is not None
}


def render(site: Site, page: replicas.Markup, *, light: bool) -> bytes:
    """Return the page that a template of a site's folder makes.

    `light`: with little more than its data, but above the 2 kB below which a page passes for a
    throttle.
    """
    return (
        _TEMPLATES.get_template(f"{site}/{page.template}")
        .render(page.variables, filler=partial(_filler, light=light))
        .encode()
    )
