"""What a right reader gets from the replica's pages of titles, as the project's own items."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from moviecrawler.extract.values import parse_count
from moviecrawler.items import Amount, Award, Credit, Movie, Offer, RelatedTitle, Score
from moviecrawler.replica import imdb, metacritic, rottentomatoes
from moviecrawler.replica.titles import known
from moviecrawler.replica.traits import has_consensus, recommended, sides_of, traits_of
from moviecrawler.sites import SCORES
from moviecrawler.urls import title_url

if TYPE_CHECKING:
    from collections.abc import Iterable

    from moviecrawler.items import Relation, Role, ScoreKind, Site
    from moviecrawler.replica.movies import Catalogue
    from moviecrawler.replica.titles import Person, SlugSite, Title
    from moviecrawler.replica.traits import Traits


def truth(catalogue: Catalogue, site: Site, index: int) -> Movie | None:
    """Return what a site's page says of a movie, without `scraped_at` and lists; None when it has no such page."""
    return truth_of(catalogue, site, catalogue.title(index))


def truth_of(catalogue: Catalogue, site: Site, title: Title) -> Movie | None:
    """Return what a site's page says of any title but a season."""
    if site == "imdb":
        found = _on_imdb(catalogue, title)
    elif title.facts(site) is None:
        return None
    elif site == "metacritic":
        found = _episode_on_metacritic(title) if title.episode else _on_metacritic(catalogue, title)
    else:
        found = _on_rottentomatoes(catalogue, title)
    if title.part_of and title.episode:
        found.kind, found.series_title = "episode", title.part_of.basics.title
        found.series_id = title.part_of.imdb_id if site == "imdb" else f"tv/{known(title.part_of.facts(site)).slug}"
        found.season, found.episode = title.episode.season, title.episode.number
    elif title.is_series:
        found.kind = "series"
        found.season_count = len(title.seasons if site == "metacritic" else title.numbered)
    return found


def _on_imdb(catalogue: Catalogue, title: Title) -> Movie:
    basics, traits = title.basics, traits_of(catalogue, title)
    amounts: list[tuple[Literal["budget", "opening_weekend", "domestic", "worldwide"], int | None]] = [
        ("budget", title.budget),
        ("opening_weekend", title.opening_weekend),
        ("domestic", title.domestic_gross),
        ("worldwide", title.worldwide_gross),
    ]
    rating, votes = title.rating or (None, None)
    found = Movie(
        site="imdb",
        site_id=title.imdb_id,
        imdb_id=title.imdb_id,
        url=title_url("imdb", title.imdb_id),
        title=basics.title,
        original_title=basics.original_title,
        kind="movie",
        title_type=basics.title_type,
        year=basics.year,
        release_date=title.release.iso,
        runtime_minutes=basics.runtime_minutes,
        genres=list(basics.genres),
        countries=[basics.country.name],
        languages=[basics.country.language],
        certificate=title.certificate,
        plot=title.plot,
        poster_url=imdb.poster_url(title),
        credits=_credits(title, "{0.imdb_id}", imdb.CAST_ON_TITLE_PAGE),
        poster_width=imdb.POSTER_SIZE[0] if title.has_poster else None,
        poster_height=imdb.POSTER_SIZE[1] if title.has_poster else None,
        scores=[*_score("imdb", rating, votes), *_score("metascore", title.metascore, None)],
        amounts=[Amount(kind=kind, value=value, currency="USD") for kind, value in amounts if value is not None],
        popularity_rank=title.index + 1,
        keywords=list(traits.keywords),
        interests=list(traits.interests),
        taglines=[traits.tagline] if traits.tagline else [],
        critic_review_count=traits.critic_reviews or None,
        related=_related_on_imdb(catalogue, traits),
    )
    if not title.is_series:
        found.imdb_top250_rank = catalogue.top_ranks.get(title.index)
    elif not title.episode:
        found.imdb_top250_tv_rank = catalogue.series.top_ranks.get(title.index)
        found.end_year, found.episode_count = basics.end_year, len(title.episodes)
    wins = sum(won for _, won, _ in traits.awards)
    nominated = sum(nominations for _, _, nominations in traits.awards)
    named = [Award(event=event, wins=w, nominations=n - w) for event, w, n in traits.awards[:1]]
    found.awards = [Award(event=None, wins=wins, nominations=nominated - wins), *named] if named else []
    if (score := found.score("imdb")) is not None:
        score.reviews, score.histogram = traits.user_reviews, list(traits.histogram)
    return found


def _related_on_imdb(catalogue: Catalogue, traits: Traits) -> list[RelatedTitle]:
    def related(relation: Relation, index: int, connection: str | None = None) -> RelatedTitle:
        title = catalogue.basics(index).title
        return RelatedTitle(relation=relation, site_id=catalogue.imdb_id(index), title=title, connection=connection)

    connected = [] if traits.follows is None else [traits.follows]
    return [
        *(related("similar", index) for index in traits.similar),
        *(related("connection", index, category) for category, index in connected),
    ]


def _on_metacritic(catalogue: Catalogue, title: Title) -> Movie:
    basics, facts, kind, traits = (
        title.basics,
        known(title.metacritic),
        metacritic.kind_of(title),
        traits_of(catalogue, title),
    )
    site_id = f"{kind.path}/{facts.slug}"
    found = Movie(
        site="metacritic",
        site_id=site_id,
        imdb_id=title.imdb_id if facts.names_imdb_id else None,
        url=title_url("metacritic", site_id),
        title=basics.title,
        kind="movie",
        year=facts.release.year,
        release_date=facts.release.iso,
        runtime_minutes=basics.runtime_minutes,
        genres=list(basics.genres),
        certificate=title.certificate,
        plot=title.plot,
        poster_url=metacritic.poster_url(title),
        credits=_credits(title, "person/{0.slug}", metacritic.CAST_SHOWN, creators_write=True),
        poster_width=metacritic.POSTER_SIZE[0] if title.has_poster else None,
        poster_height=metacritic.POSTER_SIZE[1] if title.has_poster else None,
        scores=[
            *_score("metascore", facts.metascore, facts.critic_reviews),
            *_score("metacritic_user", facts.user_score, facts.user_ratings),
        ],
        keywords=[keyword.replace(" ", "-") for keyword in traits.keywords],
        taglines=[traits.tagline] if traits.tagline else [],
        awards=[Award(event=event, wins=w, nominations=n) for event, w, n in traits.awards],
        related=_similar(catalogue, "metacritic", traits),
        external_ids={
            "metacritic": str(kind.first_id + title.index),
            "justwatch": f"/us/{kind.justwatch}/{facts.slug}",
        },
    )
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
    for score in found.scores:
        counted = metacritic.opinions(score.value, SCORES[score.kind].scale, score.count or 0)
        score.liked, score.neutral, score.disliked = counted
        score.sentiment = metacritic.SENTIMENT
        if score.kind == "metascore":
            score.average = metacritic.unrounded(score.value)
    return found


def _episode_on_metacritic(title: Title) -> Movie:
    facts = known(title.metacritic)
    return Movie(
        site="metacritic",
        site_id=f"tv/{facts.slug}",
        url=title_url("metacritic", f"tv/{facts.slug}"),
        title=title.basics.title,
        kind="episode",
        year=title.release.year,
        release_date=title.release.iso,
        scores=_score("metacritic_user", facts.user_score, facts.user_ratings),
    )


def _on_rottentomatoes(catalogue: Catalogue, title: Title) -> Movie:
    basics, facts, traits = title.basics, known(title.rottentomatoes), traits_of(catalogue, title)
    gross, site_id, sides = rottentomatoes.box_office(title), rottentomatoes.id_of(title), sides_of(facts)
    order: tuple[ScoreKind, ...] = ("tomatometer", "popcornmeter", "tomatometer_top", "popcornmeter_all")
    cinema = [Offer(provider="showtimes", kind="cinema", country="US")] if rottentomatoes.is_in_theaters(title) else []
    return Movie(
        site="rottentomatoes",
        site_id=site_id,
        url=title_url("rottentomatoes", site_id),
        title=basics.title,
        kind="movie",
        year=facts.release.year,
        end_year=None if basics.end_year == basics.year else basics.end_year,  # "2012" is the first year alone
        release_date=None if facts.streaming_only else facts.release.iso,
        runtime_minutes=basics.runtime_minutes,
        genres=list(basics.genres),
        languages=[basics.country.language],
        certificate=title.certificate,
        plot=title.plot,
        poster_url=rottentomatoes.poster_url(title),
        credits=_credits(title, "{0.celebrity}", rottentomatoes.CAST_SHOWN),
        amounts=[Amount(kind="domestic", value=parse_count(gross[1:])[0], currency="USD")] if gross else [],
        consensus=traits.consensus if has_consensus(facts) else None,
        external_ids={"ems": traits.ems_id, "rottentomatoes": rottentomatoes.database_id(title)},
        related=_similar(catalogue, "rottentomatoes", traits),
        offers=[
            *cinema,
            *(Offer(provider=one.affiliate, kind=one.kind, country="US", url=one.url) for one in traits.offers),
        ],
        scores=[
            Score(
                kind=kind,
                value=float(side.value),
                count=side.ratings,
                average=side.average,
                reviews=rottentomatoes.written_reviews(side) if kind.startswith("popcornmeter") else None,
                liked=side.liked,
                disliked=side.disliked,
                certified=side.certified,
                sentiment=rottentomatoes.sentiment(side.value),
            )
            for kind in (*order, "popcornmeter_verified")
            if (side := sides.get(kind))
        ],
    )


def _similar(catalogue: Catalogue, site: SlugSite, traits: Traits) -> list[RelatedTitle]:
    section = "movie" if site == "metacritic" else "m"
    return [
        RelatedTitle(
            relation="similar",
            site_id=f"{section}/{catalogue.slug(site, index)}",
            title=catalogue.basics(index).title,
        )
        for index in recommended(catalogue, site, traits)
    ]


def _credits(title: Title, person_id: str, cast_shown: int, *, creators_write: bool = False) -> list[Credit]:
    """Return the credits that a page shows; `person_id` is the form of the site's ids. Metacritic has creators among the writers, too."""

    def listed(role: Role, people: Iterable[tuple[Person, str | None]]) -> list[Credit]:
        return [
            Credit(
                name=person.name,
                role=role,
                position=position,
                person_id=person_id.format(person),
                character=character,
            )
            for position, (person, character) in enumerate(people, start=1)
        ]

    creators = title.credits.creators
    writers = (*(creators if creators_write else ()), *title.credits.writers)
    return [
        *listed("director", ((person, None) for person in title.credits.directors)),
        *listed("writer", ((person, None) for person in writers)),
        *listed("creator", ((person, None) for person in creators)),
        *listed("cast", title.credits.cast[:cast_shown]),
    ]


def _score(kind: ScoreKind, value: float | None, count: int | None) -> list[Score]:
    return [] if value is None else [Score(kind=kind, value=float(value), count=count)]
