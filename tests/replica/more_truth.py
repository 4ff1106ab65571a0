"""What a right reader gets from the replica's title pages beside a movie's facts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moviecrawler.items import Award, Movie, Offer, RelatedTitle, Score
from moviecrawler.replica import metacritic, rottentomatoes
from moviecrawler.replica.traits import Side, Traits, has_consensus, recommended, sides_of, traits_of

if TYPE_CHECKING:
    from moviecrawler.items import Relation, ScoreKind
    from moviecrawler.replica.facts import MetacriticFacts, ReplicaMovie, RottenTomatoesFacts
    from moviecrawler.replica.movies import Catalogue


def say_more(found: Movie, catalogue: Catalogue, movie: ReplicaMovie) -> None:
    """Give a movie what its site's page says beside the facts."""
    traits = traits_of(catalogue, movie)
    if found.site == "imdb":
        say_more_of_imdb(found, catalogue, traits)
    elif movie.metacritic is not None and found.site == "metacritic":
        say_more_of_metacritic(found, catalogue, movie, movie.metacritic, traits, metacritic.MOVIE)
    elif movie.rottentomatoes is not None:
        say_more_of_rottentomatoes(found, catalogue, movie, movie.rottentomatoes, traits, rottentomatoes.MOVIE)


def say_more_of_imdb(found: Movie, catalogue: Catalogue, traits: Traits) -> None:
    """Give a title what IMDb's page says beside the facts."""

    def related(relation: Relation, index: int, connection: str | None = None) -> RelatedTitle:
        title = catalogue.basics(index).title
        return RelatedTitle(relation=relation, site_id=catalogue.imdb_id(index), title=title, connection=connection)

    found.keywords, found.interests = list(traits.keywords), list(traits.interests)
    found.taglines = [traits.tagline] if traits.tagline else []
    found.critic_review_count = traits.critic_reviews or None
    found.offers = [Offer(provider=offer.provider, kind=offer.kind, url=offer.url) for offer in traits.offers]
    wins = sum(won for _, won, _ in traits.awards)
    nominated = sum(nominations for _, _, nominations in traits.awards)
    named = [Award(event=event, wins=w, nominations=n - w) for event, w, n in traits.awards[:1]]
    found.awards = [Award(event=None, wins=wins, nominations=nominated - wins), *named] if named else []
    found.related = [related("similar", index) for index in traits.similar]
    if traits.follows is not None:
        category, index = traits.follows
        found.related.append(related("connection", index, category))
    score = found.score("imdb")
    if score is not None:
        score.reviews, score.histogram = traits.user_reviews, list(traits.histogram)


def say_more_of_metacritic(
    found: Movie,
    catalogue: Catalogue,
    movie: ReplicaMovie,
    facts: MetacriticFacts,
    traits: Traits,
    kind: metacritic.Kind,
) -> None:
    """Give a title what Metacritic's page says beside the facts."""
    found.keywords = [keyword.replace(" ", "-") for keyword in traits.keywords]
    found.taglines = [traits.tagline] if traits.tagline else []
    found.awards = [Award(event=event, wins=w, nominations=n) for event, w, n in traits.awards]
    found.related = [
        RelatedTitle(
            relation="similar",
            site_id=f"movie/{catalogue.slug('metacritic', index)}",
            title=catalogue.basics(index).title,
        )
        for index in recommended(catalogue, "metacritic", traits)
    ]
    found.offers = [
        Offer(
            provider=offer.provider,
            kind=offer.kind,
            country="US",
            price=offer.price,
            currency=None if offer.price is None else "USD",
            quality=offer.quality,
            url=offer.url,
            source="JustWatch",
        )
        for offer in traits.offers
    ]
    path = metacritic.justwatch_path(facts, kind)
    found.external_ids = {"metacritic": str(kind.first_id + movie.index), "justwatch": path}
    for score in found.scores:
        counted = metacritic.opinions(score.value, score.scale, score.count or 0)
        score.liked, score.neutral, score.disliked = counted
        score.sentiment = metacritic.SENTIMENT
        if score.kind == "metascore":
            score.average = metacritic.unrounded(score.value)


def say_more_of_rottentomatoes(
    found: Movie,
    catalogue: Catalogue,
    movie: ReplicaMovie,
    facts: RottenTomatoesFacts,
    traits: Traits,
    kind: rottentomatoes.Kind,
) -> None:
    """Give a title what Rotten Tomatoes' page says beside the facts."""
    sides = sides_of(facts)
    order: tuple[ScoreKind, ...] = ("tomatometer", "popcornmeter", "tomatometer_top", "popcornmeter_all")
    found.scores = [_score(kind, sides[kind]) for kind in (*order, "popcornmeter_verified") if kind in sides]
    found.consensus = traits.consensus if has_consensus(facts) else None
    found.external_ids = {"ems": traits.ems_id, "rottentomatoes": rottentomatoes.database_id(movie, kind)}
    found.related = [
        RelatedTitle(
            relation="similar",
            site_id=f"m/{catalogue.slug('rottentomatoes', index)}",
            title=catalogue.basics(index).title,
        )
        for index in recommended(catalogue, "rottentomatoes", traits)
    ]
    if rottentomatoes.is_in_theaters(movie):
        found.offers.append(Offer(provider="showtimes", kind="cinema", country="US"))
    found.offers += [
        Offer(provider=offer.affiliate, kind=offer.kind, country="US", url=offer.url) for offer in traits.offers
    ]


def _score(kind: ScoreKind, side: Side) -> Score:
    return Score(
        kind=kind,
        value=float(side.value),
        count=side.count,
        average=side.average,
        reviews=rottentomatoes.written_reviews(side) if kind.startswith("popcornmeter") else None,
        liked=side.liked,
        disliked=side.disliked,
        certified=side.certified,
        sentiment=rottentomatoes.sentiment(side.value),
    )
