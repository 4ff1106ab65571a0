"""The registry of sites: those of this folder, and those that other distributions bring.

A distribution brings a site by an entry point of the group `moviecrawler.sites`, which names its
profile, such as `filmograph = "filmograph:PROFILE"`. All other parts take from here what
they need to know of a site. README.md says what a site consists of.
"""

from __future__ import annotations

from dataclasses import fields
from importlib import import_module
from importlib.metadata import entry_points
from itertools import chain
from pkgutil import iter_modules
from typing import TYPE_CHECKING, get_args

from moviecrawler.basics.errors import ConfigurationError
from moviecrawler.items import AmountKind, Movie, Relation, Role, Score
from moviecrawler.items import ScoreKind as ScoreKind
from moviecrawler.items import Site as Site

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from moviecrawler.sites.profile import ScoreProfile, SiteProfile

GROUP = "moviecrawler.sites"
ID_SITE = "imdb"
"""The site whose ids name titles everywhere: in commands, in the catalogue and on other sites'
pages. It alone has datasets."""

SITES: dict[Site, SiteProfile]
"""Every site, in the order in which they are shown: those of this project first."""
BY_AUTHORITY: tuple[Site, ...]
"""The sites in the order in which their titles and years count, where they differ."""
SCORES: dict[ScoreKind, ScoreProfile]
"""Every kind of score, in the order in which they are shown."""
SCORE_SITES: dict[ScoreKind, Site]
"""Whose score each kind is. Another site may show it, too."""
SCOREBOARD_KINDS: tuple[ScoreKind, ...]
"""The scores that each site shows as its own; the other kinds are finer ones."""

if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """Find the sites when they are first needed.

        A profile of another distribution can be imported before this module is whole.
        """
        if name not in __annotations__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        globals().update(_registered())
        return globals()[name]


def _registered() -> dict[str, object]:
    sites: dict[Site, SiteProfile] = {}
    score_sites: dict[ScoreKind, Site] = {}
    owners: dict[str, Site] = {}
    for profile in chain(_own_profiles(), _installed_profiles()):
        if profile.id in sites:
            raise ConfigurationError(
                f"{profile.package} and {sites[profile.id].package} are both the site "
                f"{profile.id!r}; uninstall one of them"
            )
        sites[profile.id] = profile
        for kind, score in profile.scores.items():
            score_sites[kind] = profile.id
            for name in (kind, *(score.columns or ())):
                owner = owners.setdefault(name, profile.id)
                if owner != profile.id:
                    raise ConfigurationError(
                        f"{profile.package} has a score or a column {name!r}, as {owner} has; "
                        f"call it {profile.id}_{name}"
                    )
    for profile in sites.values():
        _check_fields(profile, score_sites)
    scores = {kind: sites[site].scores[kind] for kind, site in score_sites.items()}
    return {
        "SITES": sites,
        "BY_AUTHORITY": tuple(sorted(sites, key=lambda site: sites[site].authority)),
        "SCORES": scores,
        "SCORE_SITES": score_sites,
        "SCOREBOARD_KINDS": tuple(kind for kind, score in scores.items() if score.columns),
    }


def _check_fields(profile: SiteProfile, kinds: Iterable[ScoreKind]) -> None:
    """Raise ConfigurationError for a field that no movie or no score has."""
    subfields = {
        "credits": get_args(Role),
        "scores": kinds,
        "amounts": get_args(AmountKind),
        "related": get_args(Relation),
    }
    known = {f"{name}.{value}" for name, values in subfields.items() for value in values}
    named = profile.published.union(profile.optional_fields, *profile.published_of_kind.values())
    details = {name for score in profile.scores.values() for name in score.facts}
    unknown = (named - known - _names(Movie)) | (details - _names(Score))
    if unknown:
        raise ConfigurationError(
            f"{profile.package} names {', '.join(map(repr, sorted(unknown)))}, which neither a "
            "movie nor a score has; use names such as year, credits.cast or scores.imdb, and for "
            "a score those such as count"
        )


def _names(item: type[Movie | Score]) -> set[str]:
    return {field.name for field in fields(item)}


def _own_profiles() -> Iterator[SiteProfile]:
    for module in iter_modules(__path__):
        if module.ispkg:
            yield import_module(f"{__name__}.{module.name}").PROFILE


def _installed_profiles() -> Iterator[SiteProfile]:
    for entry in sorted(entry_points(group=GROUP)):
        try:
            yield entry.load()
        except Exception as error:
            raise ConfigurationError(
                f"the site {entry.name!r} can't be loaded ({entry.value}): "
                f"{type(error).__name__}: {error}"
            ) from error
