"""What the three sites say of one title: Metacritic's and Rotten Tomatoes' items are made of IMDb's."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, Literal, get_args
from uuid import UUID

from moviecrawler.items import Amount, Award, Credit, Movie, Offer, OfferKind, Role, Score
from moviecrawler.replica.options import TODAY
from moviecrawler.replica.words import Dice, person_name, slugify
from moviecrawler.sites import SCORES
from moviecrawler.urls import title_url

if TYPE_CHECKING:
    from collections.abc import Iterable

    from moviecrawler.items import ScoreKind, Site

SlugSite = Literal["metacritic", "rottentomatoes"]
"""The sites that name titles by slugs, and that don't have all of them."""
MOST_CAST: Final = {"metacritic": 15, "rottentomatoes": 8}
"""How many of the cast a title's page shows; IMDb's shows 18, and here nobody has more."""
_PERSON_IDS: Final = {"metacritic": ("person/", "-"), "rottentomatoes": ("celebrity/", "_")}
_FIRST_PERSON: Final = 1_000_000
_CERTIFIED, _FRESH = 75, 60
_ENOUGH_REVIEWS: Final = 20
"""Reviews from which on Rotten Tomatoes has a consensus and a score of top critics."""
_MILLION: Final = 1_000_000
_OFFERS: Final[tuple[tuple[str, OfferKind, float | None, str], ...]] = (
    ("Open Reel", "free", None, "SD"),
    ("Kiosk TV", "ads", None, "HD"),
    ("Lantern Plus", "subscription", None, "4K"),
    ("Harbour Rentals", "rent", 3.99, "HD"),
    ("Harbour Rentals", "buy", 9.99, "HD"),
)


@dataclass(slots=True)
class Title:
    """A film, or a series with its seasons and episodes: what the pages of each site that has it say."""

    movies: dict[Site, Movie]
    """The items of the title's own pages."""
    listed: dict[Site, list[Movie]] = field(default_factory=dict)
    """The seasons as the series' page lists them, in its order."""
    parts: dict[Site, list[Movie]] = field(default_factory=dict)
    """The items of the pages of its seasons and episodes."""

    def pages(self, site: Site) -> list[Movie]:
        """Return the items of all its pages on a site."""
        return [*([self.movies[site]] if site in self.movies else []), *self.parts.get(site, [])]


def score_near(rating: float, dice: Dice) -> int:
    """Return a score of 0 to 100 near a rating of 1 to 10."""
    return min(100, max(0, round(rating * 10 + 20 * (2 * dice.random() - 1))))


def release_in(year: int, dice: Dice) -> str:
    """Return a day in a year, and not after TODAY in this year."""
    month = 1 + dice.below(TODAY.month - 1 if year == TODAY.year else 12)
    return f"{year:04}-{month:02}-{1 + dice.below(28):02}"


# --- Parts of IMDb's items --------------------------------------------------------------------------------------------


def people(role: Role, numbers: Iterable[int], characters: Iterable[str | None] | None = None) -> list[Credit]:
    """Return the credits of some people in one role."""
    numbers = list(numbers)
    played = list(characters) if characters is not None else [None] * len(numbers)
    return [
        Credit(
            name=person_name(number),
            role=role,
            position=position,
            person_id=f"nm{_FIRST_PERSON + number}",
            character=character,
        )
        for position, (number, character) in enumerate(zip(numbers, played, strict=True), start=1)
    ]


def character(dice: Dice) -> str | None:
    """Return whom somebody plays: one or two characters, or a part without a name."""
    name = f"{dice.word('honorifics')}{dice.word('characters')} {dice.word('last_names')}"
    if dice.chance(0.05):
        return None
    return f"{name} / {dice.word('characters')}" if dice.chance(0.07) else name


def imdb_scores(rating: tuple[float, int] | None, metascore: float | None) -> list[Score]:
    """Return IMDb's rating, whose votes are mostly next to the mean, and the Metascore that its pages show."""
    found = []
    if rating is not None:
        mean, votes = rating
        weights = [1 / (1 + (bar - mean) ** 2) for bar in range(1, 11)]
        bars = [int(votes * weight / sum(weights)) for weight in weights]
        bars[round(mean) - 1] += votes - sum(bars)
        found.append(Score(kind="imdb", value=mean, count=votes, reviews=votes // 150, histogram=bars))
    return found if metascore is None else [*found, Score(kind="metascore", value=metascore)]


# --- The other sites' items -------------------------------------------------------------------------------------------


def on_site(site: SlugSite, base: Movie, site_id: str, dice: Dice, **facts: Any) -> Movie:
    """Return the item of a title's page on another site: what IMDb's item says of the title, and the site's own facts."""
    found = Movie(
        site=site,
        site_id=site_id,
        url=title_url(site, site_id),
        **{
            name: getattr(base, name)
            for name in ("title", "kind", "runtime_minutes", "genres", "certificate", "plot")
            if name not in facts
        },
        credits=_credits_on(site, base),
        offers=[_offer(site, base, *offer) for offer in _OFFERS[dice.pick((0, 1, 2, 3, len(_OFFERS))) :]],
        external_ids=external_ids(site, base, dice),
        **facts,
    )
    if site == "metacritic":
        found.imdb_id = base.imdb_id if dice.chance(0.92) else None
        if base.poster_url:
            found.poster_url = f"https://www.metacritic.com/a/img/catalog/provider/2/13/2-{base.site_id}.jpg"
            found.poster_width, found.poster_height = 1280, 1920
        found.keywords = [keyword.replace(" ", "-") for keyword in base.keywords]
        found.taglines = [dice.word("heroes") + " has one night left."] if dice.chance(0.6) else []
        is_awarded = base.kind == "movie" and dice.chance(0.4)
        found.awards = [Award(event="Silver Reel", wins=dice.below(5), nominations=6)] if is_awarded else []
    else:
        found.languages = base.languages
        found.end_year = None if base.end_year == found.year else base.end_year  # "2012" stands for 2012 to 2012
        if base.poster_url:
            found.poster_url = f"https://resizing.flixster.com/replica/206x305/v2/{base.site_id}.jpg"
        gross = next((amount.value for amount in base.amounts if amount.kind == "domestic"), 0)
        step = 100_000 if gross >= _MILLION else 100  # the site abbreviates sums: "$53.1M"
        found.amounts = [Amount(kind="domestic", value=round(gross / step) * step, currency="USD")] if gross else []
        found.consensus = consensus(found.scores, dice)
    return found


def scores_on(site: SlugSite, critics: int | None, reviews: int, users: int | None, ratings: int) -> list[Score]:
    """Return a site's scores in the order of its pages; None, of 0 to 100, where there is none."""
    if site == "metacritic":
        found = [] if critics is None else [_metacritic_score("metascore", critics, reviews)]
        return found if users is None else [*found, _metacritic_score("metacritic_user", users / 10, ratings)]
    shown: dict[ScoreKind, tuple[int, int]] = {}
    # Where those who bought a ticket have a score, that is the one shown.
    verified = None if users is None or reviews % 3 else (users, ratings // 2)
    everybody = None if users is None else (users if verified is None else max(users - 4, 0), ratings)
    if critics is not None:
        shown["tomatometer"] = critics, reviews
    if everybody is not None:
        shown["popcornmeter"] = verified or everybody
    if critics is not None and reviews >= _ENOUGH_REVIEWS:
        shown["tomatometer_top"] = max(critics - 7, 0), reviews // 4
    if everybody is not None:
        shown["popcornmeter_all"] = everybody
    if verified is not None:
        shown["popcornmeter_verified"] = verified
    return [_rottentomatoes_score(kind, *score) for kind, score in shown.items()]


def _metacritic_score(kind: ScoreKind, value: float, count: int) -> Score:
    share = value / SCORES[kind].scale
    liked = int(count * share)
    return Score(
        kind=kind,
        value=float(value),
        count=count,
        average=max(0.0, value - 0.25) if kind == "metascore" else None,
        liked=liked,
        neutral=(count - liked) // 2,
        disliked=(count - liked + 1) // 2,
        sentiment="Generally favorable" if share > _FRESH / 100 else "Mixed or average",
    )


def _rottentomatoes_score(kind: ScoreKind, value: int, count: int) -> Score:
    liked = count * value // 100
    return Score(
        kind=kind,
        value=float(value),
        count=count,
        average=round((SCORES[kind].average_scale or 0) * value / 100, 1),
        reviews=count // 3 if kind.startswith("popcornmeter") else None,
        liked=liked,
        disliked=count - liked,
        certified=value >= _CERTIFIED,
        sentiment="POSITIVE" if value >= _FRESH else "NEGATIVE",
    )


def consensus(scores: Iterable[Score], dice: Dice) -> str | None:
    """Return what critics agree upon, where enough of them have written."""
    if not any(score.kind == "tomatometer_top" for score in scores):
        return None
    return f"A {dice.word('adjectives').lower()} tale {dice.word('troubles')}"


def external_ids(site: SlugSite, base: Movie, dice: Dice) -> dict[str, str]:
    """Return the other ids that a site has of a title."""
    number = str(2_000_000_000 + dice.below(100_000_000))
    if site == "rottentomatoes":
        return {"ems": str(UUID(int=dice.getrandbits(128))), "rottentomatoes": number}
    path = f"/us/{'movie' if base.kind == 'movie' else 'tv-show'}/{slugify(base.title, '-') or base.site_id}"
    return {"metacritic": number, "justwatch": path}


def _credits_on(site: SlugSite, base: Movie) -> list[Credit]:
    beginning, separator = _PERSON_IDS[site]
    return [
        replace(credit, person_id=beginning + slugify(credit.name or "", separator))
        for credit in sorted(base.credits, key=lambda credit: get_args(Role).index(credit.role))
        if credit.role != "cast" or credit.position <= MOST_CAST[site]
    ]


def _offer(site: SlugSite, base: Movie, provider: str, kind: OfferKind, price: float | None, quality: str) -> Offer:
    slug = slugify(provider, "-")
    found = Offer(provider=slug, kind=kind, country="US", url=f"https://{slug}.example/title/{base.site_id}")
    if site == "metacritic":
        found.provider, found.quality, found.source = provider, quality, "JustWatch"
        found.price, found.currency = price, None if price is None else "USD"
    return found
