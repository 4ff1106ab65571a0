"""Finds candidate ids by the names of titles in the sites' addresses (slugs). Pure.

The page of a candidate is always compared with the title (`matching.titles.verify`).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from urllib.parse import unquote

from anyascii import anyascii

from moviecrawler.basics.texts import fold
from moviecrawler.matching.normalise import LABEL, normalise, short_forms
from moviecrawler.sites.ids import kind_of_id, part_of_series

if TYPE_CHECKING:
    from moviecrawler.items import Site
    from moviecrawler.matching.facts import TitleFacts

_SERIES = frozenset({"series", "episode"})

_DROPPED = re.compile(r"['’‘`.,!?*\"“”]")  # noqa: RUF001 - "Schindler's List" is schindlers_list
_NOT_IN_SLUGS = re.compile(r"[^a-z0-9]+")
_NUMBER_IN_FRONT = re.compile(r"^\d{5,}[-_]")  # as in m/1000013-12_angry_men
_YEAR_BEHIND = re.compile(r"[-_](?:18[7-9]|19\d|20[0-3])\d$")


def slugify(title: str, separator: str) -> str:
    """Return a title as sites write it in an address.

    It is without accents and punctuation, and its words are joined.

    >>> slugify("Schindler's List", "_")
    'schindlers_list'
    >>> slugify("Spider-Man: No Way Home", "-"), slugify("Fast & Furious", "-")
    ('spider-man-no-way-home', 'fast-and-furious')
    """
    plain = anyascii(_DROPPED.sub("", LABEL.sub("", fold(title)))).casefold().replace("&", " and ")
    return _NOT_IN_SLUGS.sub(separator, plain).strip(separator)


def slug_key(site: Site, site_id: str) -> str:
    """Return a key that is equal for the ids of a title on all sites.

    It doesn't matter how the title is spelt, dated or numbered there: `m/the_thing_2011`,
    `movie/the-thing` and `m/1021244-thing` have the key `film thing`, `tv/rocky-ii` has
    `series rocky2`, and `tv/rocky-ii/season-1` has `part rocky2`.
    """
    part = part_of_series(site, site_id)
    if part is not None:
        # Ids of seasons have keys of their own, so that a search for a series does not find them.
        return _key("part", part.series_id.rpartition("/")[2])
    kind = "series" if kind_of_id(site, site_id) == "series" else "film"
    return _key(kind, site_id.rpartition("/")[2])


def _key(kind: str, slug: str) -> str:
    slug = _NUMBER_IN_FRONT.sub("", anyascii(unquote(slug)).casefold())
    slug = _YEAR_BEHIND.sub("", slug)
    return f"{kind} {normalise(re.sub(r'[-_]+', ' ', slug)).replace(' ', '')}"


def title_slug_keys(title: TitleFacts) -> set[str]:
    """Return the keys that a title's ids may have: those of its names with and without a subtitle.

    Other titles may share them. A title of unknown kind, or a special, has the keys of films and of
    series.
    """
    if title.kind in {None, "other"}:
        kinds = ["film", "series"]
    else:
        kinds = ["series" if title.kind in _SERIES else "film"]
    names = [name for name in (title.title, title.original_title) if name]
    slugs = {slugify(form, "_") for name in names for form in (name, *short_forms(name))}
    return {_key(kind, slug) for kind in kinds for slug in slugs if slug}
