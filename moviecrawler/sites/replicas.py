"""What the replica hands to a site's module `replica`, and what that makes of it.

The pages of a site are functions of made-up titles: they know neither server nor faults.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NewType, Protocol

from moviecrawler.extract.linked_data import KINDS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from moviecrawler.items import Movie, Site


@dataclass(slots=True)
class Title:
    """A film, or a series with its seasons and episodes.

    It is what the pages of each site that has it say.
    """

    movies: dict[Site, Movie]
    """The items of the title's own pages."""
    listed: dict[Site, list[Movie]] = field(default_factory=dict)
    """The seasons as the series' page lists them, in its order."""
    parts: dict[Site, list[Movie]] = field(default_factory=dict)
    """The items of the pages of its seasons and episodes."""

    def pages(self, site: Site) -> list[Movie]:
        """Return the items of all its pages on a site."""
        return [self.movies[site], *self.parts.get(site, ())]


LINKED_TYPES: Final = {kind: name for name, kind in KINDS.items()}
"""What JSON-LD calls each kind of title."""


class Titles(Protocol):
    """The titles of one kind, by their index: 0 is the most popular one."""

    def __hash__(self) -> int:
        """Return what tells them from others."""

    @property
    def count(self) -> int:
        """How many there are."""

    @property
    def ids(self) -> Mapping[Site, Mapping[int, str]]:
        """The ids of all titles that a site has by their index."""

    @property
    def top_ranks(self) -> Mapping[int, int]:
        """The rank of each title among the best by its index, in order."""

    def title(self, index: int, /) -> Title:
        """Return a title."""

    def order(self, name: str, index: int) -> int:
        """Return the sort key of a title in the order of that name."""


class Collection(Titles, Protocol):
    """The films, and the series."""

    @property
    def series(self) -> Titles:
        """The series."""


Json = NewType("Json", dict[str, Any])
"""The data of an answer in JSON."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Markup:
    """A page that a template of the site's folder makes."""

    template: str
    """The file's name, such as `replica.html`."""
    variables: dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """The answer by which a site asks for a browser: a page of less than 2 kB."""

    status: int
    headers: dict[str, str] = field(default_factory=dict)
    head: str
    """What its `<head>` has."""


class SiteReplica(Protocol):
    """The module `replica` of a site's package."""

    ROBOTS: str
    LIVE_ROBOTS: str
    """As the site itself has it today."""
    CHALLENGE: Refusal
    MOVED: int
    """The status that leads from another spelling of an address to its own."""

    def title_page(self, title: Title, movie: Movie) -> Markup:
        """Return the page of a title, or of a season or an episode of it."""

    def list_page(
        self, titles: Collection, path: str, query: Mapping[str, str], host: str
    ) -> Markup | Json | None:
        """Return a page of a list, without slashes around its path; None where it is none.

        Raises ValueError for a parameter that can't be read.
        """
