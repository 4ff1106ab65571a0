"""The registry of sites: those of this folder, and those that other distributions bring.

A distribution brings a site by an entry point of the group `moviecrawler.sites`, which names its
profile, such as `filmograph = "filmograph:PROFILE"`. All other parts take from here what
they need to know of a site. README.md says what a site consists of.
"""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import entry_points
from itertools import chain
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any

from moviecrawler.basics.errors import ConfigurationError
from moviecrawler.items import ScoreKind as ScoreKind  # noqa: TC001 - others take it from here
from moviecrawler.items import Site as Site  # noqa: TC001 - as above

if TYPE_CHECKING:
    from collections.abc import Iterator

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

    def __getattr__(name: str) -> Any:
        """Find the sites when they are first needed.

        A profile of another distribution can be imported before this module is whole.
        """
        if name not in __annotations__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        globals().update(_registered())
        return globals()[name]


def _registered() -> dict[str, Any]:
    sites: dict[Site, SiteProfile] = {}
    score_sites: dict[ScoreKind, Site] = {}
    columns: dict[str, Site] = {}
    for profile in chain(_own_profiles(), _installed_profiles()):
        if profile.id in sites:
            raise ConfigurationError(
                f"{profile.package} and {sites[profile.id].package} are both the site "
                f"{profile.id!r}; uninstall one of them"
            )
        sites[profile.id] = profile
        for kind, score in profile.scores.items():
            for column in score.columns or ():
                if column in columns:
                    raise ConfigurationError(
                        f"{profile.package} has a column {column!r}, as {columns[column]} has; "
                        f"call it {profile.id}_{column}"
                    )
                columns[column] = profile.id
            if kind in score_sites:
                raise ConfigurationError(
                    f"{profile.package} has a score {kind!r}, as {score_sites[kind]} has; "
                    f"call it {profile.id}_{kind}"
                )
            score_sites[kind] = profile.id
    scores = {kind: sites[site].scores[kind] for kind, site in score_sites.items()}
    return {
        "SITES": sites,
        "BY_AUTHORITY": tuple(sorted(sites, key=lambda site: sites[site].authority)),
        "SCORES": scores,
        "SCORE_SITES": score_sites,
        "SCOREBOARD_KINDS": tuple(kind for kind, score in scores.items() if score.columns),
    }


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
