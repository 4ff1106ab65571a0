"""The names of titles in the addresses of sites: which a title may have, and which of a site's names may be a title's. Pure.

A guessed name is only a candidate: about nine of ten lead nowhere, and some to another film. Nothing is stored before the
page itself was compared with the title (`catalogue.matching.verify`).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal
from urllib.parse import unquote

from anyascii import anyascii

from moviecrawler.catalogue.spelling import normalise, parts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from moviecrawler.catalogue.rows import Wanted

SlugSite = Literal["metacritic", "rottentomatoes"]

_SEPARATORS: dict[SlugSite, str] = {"metacritic": "-", "rottentomatoes": "_"}
_FOLDERS: dict[SlugSite, tuple[str, str]] = {"metacritic": ("movie", "tv"), "rottentomatoes": ("m", "tv")}
"""Where a site keeps films, and where series."""
_SERIES = frozenset({"series", "episode"})

_DROPPED = re.compile(r"['’‘`.,!?*\"“”]")  # noqa: RUF001 - "Schindler's List" is schindlers_list
_NOT_IN_SLUGS = re.compile(r"[^a-z0-9]+")
_LABEL = re.compile(r"\s*(?:\((?:18|19|20)\d\d\)|\[[^\]]*\])\s*$")
_ARTICLE = re.compile(r"^(?:the|an?)(?=[-_])[-_]")
_NUMBER_IN_FRONT = re.compile(r"^\d{5,}[-_]")  # Rotten Tomatoes' oldest: m/1000013-12_angry_men
_YEAR_BEHIND = re.compile(r"[-_](?:18[7-9]|19\d|20[0-3])\d$")


def slugify(title: str, separator: str) -> str:
    """Return a title as sites write it in an address: without accents and punctuation, its words joined.

    >>> slugify("Schindler's List", "_"), slugify("Spider-Man: No Way Home", "-"), slugify("Fast & Furious", "-")
    ('schindlers_list', 'spider-man-no-way-home', 'fast-and-furious')
    """
    plain = anyascii(_DROPPED.sub("", _LABEL.sub("", title))).casefold().replace("&", " and ")
    return _NOT_IN_SLUGS.sub(separator, plain).strip(separator)


def slug_guesses(site: SlugSite, wanted: Wanted, most: int = 4) -> list[str]:
    """Return ids that a title may have on a site, the likeliest first, at most `most`.

    >>> from moviecrawler.catalogue.rows import Wanted
    >>> slug_guesses("rottentomatoes", Wanted(imdb_id=None, title="The Thing", kind="movie", year=2011), 3)
    ['m/the_thing', 'm/the_thing_2011', 'm/thing']
    """
    separator = _SEPARATORS[site]
    films, series = _FOLDERS[site]
    folder = series if wanted.kind in _SERIES else films
    guesses: dict[str, None] = {}
    for slug in _slugs(wanted, separator):
        if len(guesses) == most:
            break
        guesses[f"{folder}/{slug}"] = None
    return list(guesses)


def slug_key(site_id: str) -> str:
    """Return what the ids of a title on all sites have in common, however it is spelt, dated or numbered there.

    >>> slug_key("m/the_thing_2011"), slug_key("movie/the-thing"), slug_key("m/1021244-thing"), slug_key("tv/rocky-ii")
    ('film thing', 'film thing', 'film thing', 'series rocky2')
    """
    folder, _, slug = site_id.partition("/")
    slug = _NUMBER_IN_FRONT.sub("", anyascii(unquote(slug.partition("/")[0])).casefold())
    slug = _YEAR_BEHIND.sub("", slug)
    words = normalise(re.sub(r"[-_]+", " ", slug)).replace(" ", "")
    return f"{'series' if folder == 'tv' else 'film'} {words}"


def title_slug_keys(wanted: Wanted) -> set[str]:
    """Return the keys among which those of a title's ids are: of its names, and of what stands before a subtitle.

    Candidates only, as others share them. A title of unknown kind, or a special, has keys of both.
    """
    folders = ("m", "tv") if wanted.kind in {None, "other"} else ("tv",) if wanted.kind in _SERIES else ("m",)
    titles = [title for title in (wanted.title, wanted.original_title) if title]
    slugs = {slugify(name, "_") for title in titles for name in (title, *parts(title))}
    return {slug_key(f"{folder}/{slug}") for folder in folders for slug in slugs if slug}


def _slugs(wanted: Wanted, separator: str) -> Iterator[str]:
    """Yield slugs, the likeliest first. Of namesakes, the site's first has the bare slug and others a year."""
    title = slugify(wanted.title, separator)
    original = slugify(wanted.original_title, separator) if wanted.original_title else ""
    for slug in (title, _ARTICLE.sub("", title), original, _ARTICLE.sub("", original)):
        if slug:
            yield slug
            if wanted.year is not None:
                yield f"{slug}{separator}{wanted.year}"
    if wanted.year is not None and title:  # the year of a release in another country
        yield f"{title}{separator}{wanted.year + 1}"
        yield f"{title}{separator}{wanted.year - 1}"
    other = "-" if separator == "_" else "_"
    if title:
        yield title.replace(separator, other)
