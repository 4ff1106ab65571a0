"""What the replica's pages say of a title beside its facts: made as the facts are, the same whenever it is asked for.

Every movie has one of `THEMES` themes. Movies of a theme share keywords and recommend one another, as far as they are near in popularity.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple
from uuid import UUID

from moviecrawler.replica import words
from moviecrawler.replica.movies import chance, is_remake, pick

if TYPE_CHECKING:
    from moviecrawler.items import OfferKind, ScoreKind
    from moviecrawler.replica.movies import Catalogue
    from moviecrawler.replica.titles import RottenTomatoesFacts, SlugSite, Title

THEMES: Final = 61
_KEYWORDS_OF_THEME: Final = 5
_NEIGHBOURS: Final = (1, -1, 2, -2, 3, -3)
_AWARDS: Final = ("Golden Lantern", "Harbour Prize", "Silver Reel")
_CERTIFIED: Final = 75
_ENOUGH_TOP_CRITICS: Final = 5
_BARS: Final = range(1, 11)


class Offered(NamedTuple):
    """One way to watch a title."""

    provider: str
    affiliate: str
    """What Rotten Tomatoes calls the provider."""
    kind: OfferKind
    price: float | None
    quality: str
    url: str
    """Without tracking."""


@dataclass(slots=True, frozen=True)
class Traits:
    """What a title is like."""

    keywords: tuple[str, ...]
    interests: tuple[str, ...]
    tagline: str | None
    offers: tuple[Offered, ...]
    consensus: str
    histogram: tuple[int, ...]
    """IMDb's votes for 1 to 10; all 0 when unrated."""
    user_reviews: int
    ems_id: str
    awards: tuple[tuple[str, int, int], ...] = ()
    """Event, wins and nominations, the wins among them; of movies only."""
    similar: tuple[int, ...] = ()
    """Indexes of movies, of which a site recommends those that it has."""
    follows: tuple[str, int] | None = None
    """What another movie is to this one, and its index."""

    @property
    def critic_reviews(self) -> int:
        """Critics' reviews that IMDb links to."""
        return self.user_reviews // 3


class Side(NamedTuple):
    """What critics or an audience make of a title."""

    value: int
    liked: int
    disliked: int
    average: float
    certified: bool

    @property
    def ratings(self) -> int:
        """How many they are."""
        return self.liked + self.disliked


def traits_of(catalogue: Catalogue, title: Title) -> Traits:
    """Return what a title is like."""
    index, genres = title.index, title.basics.genres
    histogram, user_reviews = _histogram(title), title.rating[1] // 150 if title.rating else 0
    number = int(title.imdb_id[2:]) if title.is_series else index
    ems_id = str(UUID(int=(catalogue.seed << 32 | number) * 0x9E3779B97F4A7C15F39CC0605CEDC835 % (1 << 128)))
    if title.is_series:
        adjective = words.ADJECTIVES[index % len(words.ADJECTIVES)]
        hero, deed = words.HEROES[index % len(words.HEROES)], words.DEEDS[index % len(words.DEEDS)]
        return Traits(
            keywords=(f"{adjective} secret".lower(), "set in a harbour"),
            interests=(f"{adjective} {genres[0]}", *genres),
            tagline=f"{hero} {deed} it all, weekly." if index % 2 else None,
            offers=_offers(title, index % 8 / 8),
            consensus=f"A {adjective.lower()} run of episodes",
            histogram=histogram,
            user_reviews=user_reviews,
            ems_id=ems_id,
        )
    rng = catalogue.random(index, 6)
    theme = index % THEMES
    own = [words.NOUNS[(theme * _KEYWORDS_OF_THEME + n) % len(words.NOUNS)] for n in range(_KEYWORDS_OF_THEME)]
    common = pick(rng, words.PLACES)
    keywords = [] if chance(rng, 0.03) else [*own[: 2 + int(3 * rng.random())], f"set in {common}"]
    wins = int(9 * rng.random() ** 4)
    nominations = wins + int(3 * rng.random()) if chance(rng, 0.4) else 0
    near = [index + step * THEMES for step in _NEIGHBOURS]
    base = catalogue.base(index)
    hero, deed, trouble = pick(rng, words.HEROES), pick(rng, words.DEEDS), pick(rng, words.TROUBLES)
    return Traits(
        keywords=tuple(keyword.lower() for keyword in keywords),
        interests=tuple(dict.fromkeys((f"{words.ADJECTIVES[theme]} {genres[0]}", *genres))),
        tagline=f"{hero} {deed} it all." if chance(rng, 0.6) else None,
        awards=((_AWARDS[index % len(_AWARDS)], wins, nominations),) if nominations else (),
        similar=tuple(other for other in near if 0 <= other < catalogue.count),
        follows=None if base == index else ("Remake of" if is_remake(index) else "Follows", base),
        offers=() if title.basics.upcoming or chance(rng, 0.15) else _offers(title, rng.random()),
        consensus=f"A {words.ADJECTIVES[theme].lower()} tale {trouble}",
        histogram=histogram,
        user_reviews=user_reviews,
        ems_id=ems_id,
    )


def recommended(catalogue: Catalogue, site: SlugSite, traits: Traits) -> list[int]:
    """Return the indexes of the movies that a site recommends: the similar ones that it has."""
    return [index for index in traits.similar if index in catalogue.listed[site]]


def has_consensus(facts: RottenTomatoesFacts) -> bool:
    """Return whether enough critics have written for a sentence about them all."""
    return facts.tomatometer is not None and facts.critic_reviews >= 20  # noqa: PLR2004 - as on the site


def sides_of(facts: RottenTomatoesFacts) -> dict[ScoreKind, Side]:
    """Return what each side of Rotten Tomatoes makes of a title; a side without a score is left out."""
    found: dict[ScoreKind, Side] = {}
    if facts.tomatometer is not None:
        found["tomatometer"] = _side(facts.tomatometer, facts.critic_reviews, 10)
        top = facts.critic_reviews // 4
        if top >= _ENOUGH_TOP_CRITICS:
            found["tomatometer_top"] = _side(max(facts.tomatometer - 7, 0), top, 10)
    if facts.popcornmeter is not None:
        # Where those who bought a ticket have a score, that is the one shown.
        is_verified = facts.critic_reviews % 3 == 0
        everybody = facts.popcornmeter if not is_verified else max(facts.popcornmeter - 4, 0)
        found["popcornmeter"] = found["popcornmeter_all"] = _side(everybody, facts.audience_ratings, 5)
        if is_verified:
            verified = _side(facts.popcornmeter, facts.audience_ratings // 2, 5)
            found["popcornmeter"] = found["popcornmeter_verified"] = verified
    return found


def _side(value: int, count: int, scale: int) -> Side:
    liked = count * value // 100
    return Side(value, liked, count - liked, round(scale * value / 100, 1), value >= _CERTIFIED)


def _offers(title: Title, luck: float) -> tuple[Offered, ...]:
    path = f"example/title/{title.imdb_id}"
    found = (
        Offered("Open Reel", "open-reel", "free", None, "SD", f"https://openreel.{path}"),
        Offered("Kiosk TV", "kiosk-tv", "ads", None, "HD", f"https://kiosk.{path}"),
        Offered("Lantern Plus", "lantern-plus", "subscription", None, "4K", f"https://lantern.{path}"),
        Offered("Harbour Rentals", "harbour-rentals", "rent", 3.99, "HD", f"https://harbour.{path}"),
        Offered("Harbour Rentals", "harbour-rentals", "buy", 9.99, "HD", f"https://harbour.{path}"),
    )
    return found[int(4 * luck) :]


def _histogram(title: Title) -> tuple[int, ...]:
    """Return how the votes are spread: most of them next to the mean."""
    rating, votes = title.rating or (1.0, 0)
    weights = [1 / (1 + (bar - rating) ** 2) for bar in _BARS]
    bars = [int(votes * weight / sum(weights)) for weight in weights]
    bars[round(rating) - 1] += votes - sum(bars)
    return tuple(bars)
