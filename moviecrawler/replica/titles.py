"""The titles of one kind, with their ids and items.

Films are in `collection.py`, series in `series.py`.
"""

import functools
from collections.abc import Iterator

from moviecrawler.items import Movie, Site
from moviecrawler.replica.items import Rating
from moviecrawler.sites import ID_SITE, SITES
from moviecrawler.sites.ids import part_of_series
from moviecrawler.sites.replicas import Name, SeededRandom, Title, replica_of

OTHERS = tuple(site for site in SITES if site != ID_SITE)
CHART_SIZE = 250
FIRST_SERIES_ID = 90_000_000
IDS_OF_SERIES = 500
"""A series has 500 of IMDb's ids: its own, and then its episodes'."""
_CACHED = 2_000


class Titles:
    """The titles of one kind, by their index: 0 is the most popular one.

    Ids are made at the start, a title when it is first requested.
    """

    def __init__(self, seed: int, count: int) -> None:
        self.seed = seed
        self.count = count
        self.ids: dict[Site, dict[int, str]] = {site: {} for site in SITES}
        """The ids of all titles that a site has by their index; IMDb has all titles."""
        self._indexes: dict[tuple[Site, str], int] = {}
        self.title = functools.lru_cache(_CACHED)(self._make)

    def _make(self, index: int) -> Title:
        """Make a title, the same each time."""
        raise NotImplementedError

    def rating(self, index: int) -> Rating | None:
        """Return IMDb's rating of a title; None when it is unrated."""
        raise NotImplementedError

    def _weight(self, index: int) -> float:
        """Return what the Top 250 is ordered by; 0 for a title that can't be in it."""
        rating = self.rating(index)
        return 0.0 if rating is None else rating.mean

    def _add(self, name: Name, imdb_id: str, dice: SeededRandom) -> None:
        """Give a title the ids of its pages, or others where another title has them."""
        index = name.index
        ids = {ID_SITE: imdb_id}
        for site in OTHERS:
            if own_id := replica_of(site).title_id(name, dice):
                ids[site] = own_id
        for site, site_id in ids.items():
            free = site_id if _key(site, site_id) not in self._indexes else f"{site_id}-{index}"
            self._indexes[_key(site, free)] = index
            self.ids[site][index] = free

    def dice(self, *purpose: object) -> SeededRandom:
        """Return random numbers for a purpose."""
        return SeededRandom(self.seed, *purpose)

    @property
    def imdb_ids(self) -> list[str]:
        """The ids of all titles on IMDb, the most popular first."""
        return list(self.ids["imdb"].values())

    def find(self, site: Site, site_id: str) -> tuple[Title, Movie] | None:
        """Return the title and the item of the page with an id; None without such a page.

        Hyphens and underscores of ids are the same; the item has the id as the
        site writes it.
        """
        index = self._indexes.get(_key(site, site_id))
        spelling = _spelt(site, site_id)
        if index is None:
            return None
        title = self.title(index)
        return next(
            (
                (title, one)
                for one in title.pages(site)
                if _spelt(site, str(one.site_id)) == spelling
            ),
            None,
        )

    def pages(self, site: Site) -> Iterator[Movie]:
        """Yield the items of all pages that a site has.

        They are those of the titles, and of their seasons and episodes.
        """
        for index in self.ids[site]:
            yield from self.title(index).pages(site)

    def every(self, site: Site) -> dict[str, Movie]:
        """Return these items by their ids."""
        return {str(movie.site_id): movie for movie in self.pages(site)}

    @functools.cached_property
    def top_ranks(self) -> dict[int, int]:
        """The rank, from 1, of each title in the Top 250 by its index, in chart order.

        There are fewer when there are fewer titles.
        """
        weights = {index: self._weight(index) for index in range(min(self.count, _CACHED))}
        top = sorted(filter(weights.get, weights), key=lambda index: (-weights[index], index))[
            :CHART_SIZE
        ]
        return {index: rank for rank, index in enumerate(top, start=1)}


def _spelt(site: Site, site_id: str) -> str:
    return site_id if site == ID_SITE else site_id.replace("-", "_")


def _key(site: Site, site_id: str) -> tuple[Site, str]:
    """Return a key that the ids of a title and of its seasons and episodes share."""
    if (
        site == ID_SITE
        and site_id[2:].isdecimal()
        and (number := int(site_id[2:])) >= FIRST_SERIES_ID
    ):
        return site, f"tt{number - number % IDS_OF_SERIES}"
    part = part_of_series(site, site_id)
    return site, _spelt(site, part.series_id if part else site_id)
