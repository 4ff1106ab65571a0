"""Rendering templates. All variables are escaped."""

from __future__ import annotations

import hashlib
from datetime import timedelta
from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from moviecrawler.cluster.webservice import local_time
from moviecrawler.dashboard import formats

STATIC = files(__package__).joinpath("static")
SITES = {"imdb": "IMDb", "metacritic": "Metacritic", "rottentomatoes": "Rotten Tomatoes"}
SCORES = {
    "imdb": "IMDb rating",
    "metascore": "Metascore",
    "metacritic_user": "Metacritic users",
    "tomatometer": "Tomatometer",
    "popcornmeter": "Popcornmeter",
}
"""Names of scores, as their sites call them."""
FINER_SCORES = {
    "tomatometer_top": "Tomatometer, top critics",
    "popcornmeter_all": "Popcornmeter, all",
    "popcornmeter_verified": "Popcornmeter, verified",
}


@cache
def _environment() -> Environment:
    made = Environment(
        loader=PackageLoader("moviecrawler.dashboard"),
        autoescape=True,
        undefined=StrictUndefined,
    )
    made.filters["local_time"] = lambda seconds: f"{local_time(seconds):%Y-%m-%d %H:%M:%S}"
    made.filters["clock"] = lambda seconds: str(timedelta(seconds=max(0, round(seconds))))
    for name in ("number", "plain", "share", "duration", "size", "when", "iso"):
        made.filters[name] = getattr(formats, name)
    made.globals.update(
        sites=SITES,
        score_names=SCORES,
        finer_names={**SCORES, **FINER_SCORES},
        counted=formats.counted,
        version=_version(),
    )
    return made


def _version() -> str:
    """Return a digest of the static files: it is part of their URLs, so that browsers may cache them."""
    digest = hashlib.sha256()
    for file in sorted(STATIC.iterdir(), key=lambda file: file.name):
        digest.update(file.read_bytes())
    return digest.hexdigest()[:12]


def render(template: str, **variables: Any) -> str:
    """Return a page."""
    return _environment().get_template(template).render(**variables)
