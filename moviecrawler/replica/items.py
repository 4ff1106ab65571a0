"""What the three sites say of one title.

Metacritic's and Rotten Tomatoes' items are made of IMDb's.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, Literal, get_args
from uuid import UUID

from moviecrawler.items import Award, Credit, Movie, Offer, Role, Score
from moviecrawler.replica.words import WORDS, Dice, person_name, slugify
from moviecrawler.sites import SCORES
from moviecrawler.sites.ids import title_url

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from moviecrawler.items import ScoreKind, Site, TitleKind
    from moviecrawler.sites.replicas import Title

SlugSite = Literal["metacritic", "rottentomatoes"]
"""The sites that name titles by slugs, and that don't have all of them."""
OTHERS: Final[tuple[SlugSite, ...]] = get_args(SlugSite)
_MOST_CAST: Final = {"metacritic": 15, "rottentomatoes": 8}
"""How many of the cast a title's page shows; IMDb's shows 18, and here nobody has more."""
_PERSON_IDS: Final = {"metacritic": ("person/", "-"), "rottentomatoes": ("celebrity/", "_")}
_FIRST_PERSON: Final = 1_000_000
_CERTIFIED = 0.75
_FRESH = 0.6
_ENOUGH_REVIEWS: Final = 20
"""Reviews from which on Rotten Tomatoes has a consensus and a score of top critics."""


def identity(site: Site, site_id: str) -> dict[str, Any]:
    """Return what an item has that is of its id."""
    return {"site": site, "site_id": site_id, "url": title_url(site, site_id)}


def on_imdb(
    index: int, imdb_id: str, kind: TitleKind, dice: Dice, *, is_upcoming: bool, **facts: Any
) -> Movie:
    """Return IMDb's item of a title.

    It has the title's own facts, and what films and series have alike.
    """
    place = dice.word("places")
    poster: dict[str, Any] = {
        "poster_url": f"https://m.media-amazon.com/images/M/MV5B{imdb_id}._V1_.jpg",
        "poster_width": 1000,
        "poster_height": 1500,
    }
    genres = dice.sample(WORDS["genres"], 1 + dice.below(3))
    keywords = [word.lower() for word in dice.sample(WORDS["nouns"], 2 + dice.below(3))]
    certificate = dice.word("certificates" if kind == "movie" else "tv_certificates")
    return Movie(
        **identity("imdb", imdb_id),
        imdb_id=imdb_id,
        kind=kind,
        genres=genres,
        certificate=None if is_upcoming or dice.chance(0.1) else certificate,
        plot=f"{dice.word('heroes')} {dice.word('deeds')} {place} {dice.word('troubles')}",
        keywords=[*keywords, f"set in {place}".lower()],
        interests=[f"{dice.word('adjectives')} {genres[0]}", *genres],
        popularity_rank=index + 1,
        **(poster if dice.chance(0.95) else {}),
        **facts,
    )


def people(
    role: Role, numbers: Iterable[int], play: Callable[[], str | None] = lambda: None
) -> list[Credit]:
    """Return the credits of some people in one role.

    Each has what `play` returns as a character.
    """
    return [
        Credit(
            name=person_name(one),
            role=role,
            position=place,
            person_id=f"nm{_FIRST_PERSON + one}",
            character=play(),
        )
        for place, one in enumerate(numbers, start=1)
    ]


def character(dice: Dice) -> str | None:
    """Return whom somebody plays: one or two characters, or a part without a name."""
    name = f"{dice.word('honorifics')}{dice.word('characters')} {dice.word('last_names')}"
    return dice.pick((None, f"{name} / {dice.word('characters')}", *[name] * 18))


def imdb_scores(rating: tuple[float, int] | None) -> list[Score]:
    """Return IMDb's rating."""
    if rating is None:
        return []
    mean, votes = rating
    bars = [votes // 10] * 10
    bars[round(mean) - 1] += votes % 10
    return [Score(kind="imdb", value=mean, count=votes, reviews=votes // 150, histogram=bars)]


def rate(title: Title, rating: tuple[float, int] | None) -> Title:
    """Give a title IMDb's rating, and the Metascore that IMDb's page shows."""
    scores = title.movies["metacritic"].scores if "metacritic" in title.movies else []
    shown = [
        Score(kind="metascore", value=score.value) for score in scores if score.kind == "metascore"
    ]
    title.movies["imdb"].scores = imdb_scores(rating) + shown
    return title


def on_site(site: SlugSite, base: Movie, site_id: str, dice: Dice, **facts: Any) -> Movie:
    """Return the item of a title's page on another site.

    It has what IMDb's item says of the title, and the site's own facts.
    """
    beginning, separator = _PERSON_IDS[site]
    found = Movie(
        **identity(site, site_id),
        **{
            name: getattr(base, name)
            for name in ("title", "kind", "runtime_minutes", "genres", "certificate", "plot")
        },
        credits=[
            replace(credit, person_id=beginning + slugify(credit.name or "", separator))
            for credit in sorted(base.credits, key=lambda credit: get_args(Role).index(credit.role))
            if credit.role != "cast" or credit.position <= _MOST_CAST[site]
        ],
        offers=[
            _offer(site, base, offer) for offer in WORDS["offers"][dice.pick((0, 1, 2, 3, 5)) :]
        ],
        **facts,
    )
    if site == "metacritic":
        section = "movie" if base.kind == "movie" else "tv-show"
        path = f"/us/{section}/{slugify(base.title, '-') or base.site_id}"
        found.external_ids = {"metacritic": _own_number(dice), "justwatch": path}
        found.imdb_id = base.imdb_id if dice.chance(0.92) else None
        if base.poster_url:
            found.poster_url = (
                f"https://www.metacritic.com/a/img/catalog/provider/2/13/2-{base.site_id}.jpg"
            )
            found.poster_width = 1280
            found.poster_height = 1920
        found.keywords = [keyword.replace(" ", "-") for keyword in base.keywords]
        found.taglines = [f"{dice.word('heroes')} has one night left."]
        found.awards = [Award(event="Silver Reel", wins=dice.below(5), nominations=6)]
        return found
    found.languages = base.languages
    # "2012" stands for 2012 to 2012.
    found.end_year = None if base.end_year == found.year else base.end_year
    found.poster_url = (
        f"https://resizing.flixster.com/206x305/v2/{base.site_id}.jpg" if base.poster_url else None
    )
    found.amounts = [amount for amount in base.amounts if amount.kind == "domestic"]
    return add_own(found, dice)


def add_own(movie: Movie, dice: Dice) -> Movie:
    """Add Rotten Tomatoes' ids of a title, and what critics agree upon.

    There is a consensus where enough critics have written.
    """
    number = _own_number(dice)
    text = str(UUID(int=dice.getrandbits(128)))
    movie.external_ids = {"ems": text, "rottentomatoes": number}
    text = f"A {dice.word('adjectives').lower()} tale {dice.word('troubles')}"
    movie.consensus = text if movie.score("tomatometer_top") else None
    return movie


def _own_number(dice: Dice) -> str:
    return str(2_000_000_000 + dice.below(100_000_000))


def scores_on(
    site: SlugSite, critics: int | None, users: int | None, dice: Dice, most: int = 300
) -> list[Score]:
    """Return a site's scores in the order of its pages, by at most so many critics.

    The scores of `critics` and `users` are of 0 to 100, or None where there is none.
    """
    reviews = 5 + dice.below(most)
    ratings = 50 + dice.below(100_000)
    top = critics if reviews >= _ENOUGH_REVIEWS else None
    # Where those who bought a ticket have a score, that is the one shown.
    verified = None
    everybody = users
    count = ratings
    if users is not None and reviews % 3 == 0:
        verified = users
        everybody = max(users - 4, 0)
        count = ratings // 2
    shown: list[tuple[ScoreKind, float | None, int]] = [
        ("tomatometer", critics, reviews),
        ("popcornmeter", users, count),
        ("tomatometer_top", top and max(top - 7, 0), reviews // 4),
        ("popcornmeter_all", everybody, ratings),
        ("popcornmeter_verified", verified, count),
    ]
    if site == "metacritic":
        shown = [
            ("metascore", critics, reviews),
            ("metacritic_user", users and users / 10, ratings),
        ]
    return [_score(kind, value, count) for kind, value, count in shown if value is not None]


def _score(kind: ScoreKind, value: float, count: int) -> Score:
    """Return a score, with those of the facts beside it that its site tells."""
    form = SCORES[kind]
    share = value / form.scale
    liked = int(count * share)
    neutral = (count - liked) // 2 if "neutral" in form.facts else 0
    words = (
        ("Generally favorable", "Mixed or average")
        if "neutral" in form.facts
        else ("POSITIVE", "NEGATIVE")
    )
    facts: dict[str, Any] = {
        "count": count,
        "liked": liked,
        "neutral": neutral,
        "disliked": count - liked - neutral,
        "average": round((form.average_scale or 0) * share, 1),
        "reviews": count // 3,
        "certified": share >= _CERTIFIED,
        "sentiment": words[share < _FRESH],
    }
    return Score(kind=kind, value=float(value), **{name: facts[name] for name in form.facts})


def _offer(site: SlugSite, base: Movie, facts: dict[str, Any]) -> Offer:
    """Return an offer; Rotten Tomatoes tells neither quality nor price."""
    slug = slugify(facts["provider"], "-")
    url = f"https://{slug}.example/title/{base.site_id}"
    if site == "rottentomatoes":
        return Offer(provider=slug, kind=facts["kind"], country="US", url=url)
    return Offer(**facts, country="US", url=url, source="JustWatch")
