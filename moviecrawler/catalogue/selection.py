"""Which titles of a source are taken into the catalogue. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from moviecrawler.errors import ConfigurationError

if TYPE_CHECKING:
    from moviecrawler.items import TitleKind


@dataclass(slots=True, kw_only=True, frozen=True)
class Selection:
    """Filters; all of them apply. `str` of it is a part of an import's version, as another selection is another import."""

    kinds: frozenset[TitleKind] = frozenset({"movie"})
    min_votes: int = 0
    """On IMDb, which shows none below 5. 0 takes unrated titles too."""
    first_year: int | None = None
    last_year: int | None = None
    """Titles without a year are taken only when neither is given."""

    def __post_init__(self) -> None:
        if not self.kinds:
            raise ConfigurationError("no kind of title is selected; name one, such as movie")
        if self.min_votes < 0:
            raise ConfigurationError(f"at least {self.min_votes} votes; give 0 or more")
        if self.first_year is not None and self.last_year is not None and self.first_year > self.last_year:
            raise ConfigurationError(f"years from {self.first_year} to {self.last_year}; give the earlier one first")

    def takes_year(self, year: int | None) -> bool:
        """Return whether titles of that year are taken."""
        if self.first_year is None and self.last_year is None:
            return True
        if year is None:
            return False
        return (self.first_year or year) <= year <= (self.last_year or year)

    def __str__(self) -> str:
        years = f"{self.first_year or ''}-{self.last_year or ''}"
        return f"kinds={','.join(sorted(self.kinds))} votes={self.min_votes} years={years}"
