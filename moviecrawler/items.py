"""The items: a `Movie` for each title page of a site, and the `Listing`s that lead to these pages.

None or an empty list means that the page states that there is no such value, unless
`unknown_fields` names the field: then the page omits it, or it cannot be parsed. A
page without an id raises `ExtractionError`. msgspec's `Meta` sets the bounds of each field:
`pipelines/validate.py` makes a field unknown that breaks one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date, datetime
from typing import TYPE_CHECKING, Annotated, Literal, TypeVar

from msgspec import Meta, json

if TYPE_CHECKING:
    from collections.abc import Callable

Site = Annotated[str, Meta(pattern=r"^[a-z][a-z0-9_]{0,39}\Z")]
"""A site, by the name of its spider, such as `imdb`. `sites/` is the registry by which it is
checked."""

TitleKind = Literal[
    "movie", "series", "season", "episode", "game", "short", "video", "music", "other"
]
"""What a title is. A TV movie is a movie, a mini series is a series. `other` is anything else a
site lists, such as a special that Rotten Tomatoes has inside a season."""

Source = Literal["page", "list", "dataset"]
"""Where a `Movie` was read: its own page, a row of a list page (when its own page can't be had), or
IMDb's datasets."""

Role = Literal["director", "writer", "creator", "cast"]

ScoreKind = Annotated[str, Meta(pattern=r"^[a-z][a-z0-9_]{0,39}\Z")]
"""A kind of score, such as `metascore`. A site's profile in `sites/` says what it is."""

HISTOGRAM_BARS = 10
"""Length of a `Score.histogram` that is not empty."""

Text = Annotated[str, Meta(min_length=1, max_length=500)]
"""Short, because titles are compared word by word (the longest has fewer than 250 characters) and
names of people are keys in Postgres."""
LongText = Annotated[str, Meta(min_length=1, max_length=4_000)]
Plot = Annotated[str, Meta(min_length=1, max_length=20_000)]
Id = Annotated[str, Meta(min_length=1, max_length=300)]
Key = Annotated[str, Meta(min_length=1, max_length=200)]
"""Short, because an index entry in Postgres has three such texts and at most 2,700 bytes."""
Currency = Annotated[str, Meta(pattern="^[A-Z]{3}$")]
"""ISO 4217, such as USD."""
Count = Annotated[int, Meta(ge=0, le=10**9)]
"""No number of people or votes and no rank in a list has ever been larger."""
Positive = Annotated[int, Meta(ge=1, le=10**9)]
Year = Annotated[int, Meta(ge=1870, le=2100, extra={"unit": "year"})]
Pixels = Annotated[int, Meta(ge=1, le=100_000, extra={"unit": "pixels"})]
Minutes = Annotated[int, Meta(ge=1, le=100_000, extra={"unit": "minutes"})]
Rank250 = Annotated[int, Meta(ge=1, le=250)]
Time = Annotated[datetime, Meta(tz=True)]

T = TypeVar("T")
Few = Annotated[list[T], Meta(max_length=500)]
Many = Annotated[list[T], Meta(max_length=5_000)]


@dataclass(slots=True, kw_only=True)
class Score:
    """One score of a title as the site shows it, with the numbers behind it."""

    kind: ScoreKind
    """Such as `imdb`, the average of its users' votes, or `metascore`, that of critics' scores."""
    value: float
    """Within the scale of its kind (`sites.SCORES`). An unrated title has no `Score`, even if the
    site counts its reviews."""
    count: Positive | None = None
    """Votes, ratings or reviews behind the value; None when the page gives none or only a band
    ("250,000+")."""
    average: Annotated[float, Meta(ge=0)] | None = None
    """The average rating behind a percentage (tomatometers, popcornmeters), or the Metascore before
    rounding; `sites.SCORES` has its scale."""
    reviews: Count | None = None
    """Users' written reviews, where `count` is of votes or ratings: `imdb` and the
    popcornmeters."""
    liked: Count | None = None
    """Positive reviews or ratings by the site's own threshold: fresh, 3.5 stars, a Metascore of
    61."""
    neutral: Count | None = None
    """Mixed reviews or ratings: Metacritic only."""
    disliked: Count | None = None
    """Negative reviews or ratings, as `liked`."""
    certified: bool | None = None
    """Whether the site has marked the title: Certified Fresh, Verified Hot, Metacritic's
    must-see."""
    sentiment: Text | None = None
    """The site's word for the value: POSITIVE or NEGATIVE, "Universal acclaim"."""
    histogram: Annotated[list[Count], Meta(max_length=HISTOGRAM_BARS)] = field(default_factory=list)
    """Votes for 1, 2, … 10, of `imdb`; empty where the page shows none."""


@dataclass(slots=True, kw_only=True)
class Credit:
    """One person's part in a title."""

    name: Text | None
    """As the page writes it; None only in IMDb's datasets, for a person who is not in name.basics
    and has a `person_id`."""
    role: Role
    position: Positive
    """1 is the first of this role on the page: the billing order for `cast`."""
    person_id: Text | None = None
    """The site's own id: `nm0000206` on IMDb, `celebrity/…` on Rotten Tomatoes, `person/…` on
    Metacritic."""
    character: Annotated[str, Meta(min_length=1, max_length=10_000)] | None = None
    """Who a member of the cast plays, several joined by " / ", without notes such as "(voice)"."""


AmountKind = Literal["budget", "opening_weekend", "domestic", "worldwide"]


@dataclass(slots=True, kw_only=True)
class Amount:
    """A sum of money that a page states."""

    kind: AmountKind
    value: Annotated[int, Meta(ge=1, le=10**15)]
    """In whole units of `currency`."""
    currency: Currency


@dataclass(slots=True, kw_only=True)
class OtherTitle:
    """A title under which something was released or is known. Source: IMDb's title.akas."""

    title: Text
    country: Text | None = None
    """ISO 3166, such as FR, or one of IMDb's own, such as XWW for the whole world."""
    language: Text | None = None
    """ISO 639, such as fr."""
    kind: Text | None = None
    """IMDb's types: original, alternative, working, dvd, video, tv, festival, imdbDisplay; several
    joined by ", "."""


OfferKind = Literal["free", "ads", "subscription", "rent", "buy", "cinema"]


@dataclass(slots=True, kw_only=True)
class Offer:
    """One way to watch a title.

    A movie has at most one for each provider, kind, country, quality and scope.
    """

    provider: Key
    """The provider as the page names it: "Amazon Prime Video" on Metacritic and IMDb,
    `amazon-prime-video-us` on Rotten Tomatoes."""
    kind: OfferKind
    """`free` costs nothing, `ads` is paid for by advertising, `subscription` is part of what a
    subscriber has."""
    country: Key | None = None
    """ISO 3166, such as US: where the offer is valid."""
    price: Annotated[float, Meta(ge=0.001, le=1e15)] | None = None
    """In `currency`; only for `rent` and `buy`."""
    currency: Key | None = None
    """ISO 4217; None exactly when `price` is."""
    quality: Key | None = None
    """SD, HD or 4K, as the page writes it."""
    url: Annotated[str, Meta(max_length=4_000, pattern="^https?://")] | None = None
    """The title's page at the provider, without tracking parameters."""
    source: Key | None = None
    """Who the data is from and must be credited, such as `JustWatch`; None for the site's own
    data."""
    scope: Literal["season"] | None = None
    """`season`: single seasons of a series are offered, each at this price; None: the title."""
    seen_at: Time | None = None
    """When a page last showed it, UTC, if that is before the movie's `scraped_at`; None: the page
    of `scraped_at` shows it."""

    def key(self) -> tuple[str | None, ...]:
        """Return what differs between the offers of a movie."""
        return self.provider, self.kind, self.country, self.quality, self.scope


@dataclass(slots=True, kw_only=True)
class Award:
    """How often a title has won and was nominated."""

    event: Text | None
    """The award or who gives it, such as Oscar; None for all of them together."""
    wins: Count
    nominations: Count
    """As the site counts them: on IMDb without those that were won, on Metacritic with them."""


Relation = Literal["similar", "connection"]


@dataclass(slots=True, kw_only=True)
class RelatedTitle:
    """Another title of the same site that a title's page names."""

    relation: Relation
    """`similar` is the site's own recommendation; `connection` is a relation between the two."""
    site_id: Id
    title: Text
    connection: Text | None = None
    """What the other title is to this one, in IMDb's words: "Follows", "Referenced in"; only of a
    `connection`."""


@dataclass(slots=True, kw_only=True)
class Fetch:
    """How a page was fetched."""

    url: LongText
    """The URL after redirects."""
    requested_id: Id | None = None
    """The id that was requested, where it is not the title's own."""
    is_alias: bool = False
    """Whether `requested_id` is an alias of the title's own id: the site redirects from it for
    good, or it is another spelling."""
    status: int
    attempts: int
    """1 when the first request succeeded."""
    wire_bytes: int
    """Size of the body as it was sent, compressed or not."""
    body_bytes: int
    """Size of the body itself."""
    pool: str = "direct"
    """The proxy pool that sent the request."""
    archive_id: str | None = None
    """WARC-Record-ID of the archived page; None where pages are not archived."""


Outcome = Literal["ok", "absent", "error", "put off"]
"""How fetching a title from a site ended. It is `put off` when the network or this program failed,
and the title itself is not to blame."""


@dataclass(slots=True, kw_only=True)
class Fetched:
    """The outcome of fetching a title."""

    site: Site
    outcome: Outcome = "ok"
    at: datetime
    requested_id: str | None
    """None: the title of `title_id`, whatever its id is."""
    page_id: str | None = None
    """The id that the page itself names."""
    other_id: str | None = None
    """The id of another title, whose page came; only of an error."""
    title_id: int | None = None
    """The title that was due; None for a page that was fetched for another reason."""
    released: date | None = None
    evidence: str | None = None
    """The source of a candidate id, whose page is compared with the title; None for one that needs
    no check."""
    decision: str | None = None
    """The result of the comparison; None when there was no page."""
    score: float = 0.0
    reasons: list[str] = field(default_factory=list)
    has_more_ids: bool = False
    """Whether more candidate ids will be tried, so that this outcome is not yet the title's."""

    @property
    def site_id(self) -> str | None:
        """The id, as of an item."""
        return self.requested_id


@dataclass(slots=True, kw_only=True)
class CoveredBySeries:
    """A season that the page of its series lists."""

    site: Site
    at: datetime
    requested_id: str
    released: date | None = None
    lacks_scores: bool = False
    """Whether that page lacked a score, so that the season's own page is still needed."""


class Noted:
    """An item with a note for the catalogue, which is not stored with it."""

    __slots__ = ("_note",)

    @property
    def note(self) -> Fetched | CoveredBySeries | None:
        """The outcome that it is for its title; None for an item that an earlier crawl fetched."""
        return getattr(self, "_note", None)

    @note.setter
    def note(self, note: Fetched | CoveredBySeries | None) -> None:
        self._note = note


@dataclass(slots=True, kw_only=True)
class Movie(Noted):
    """The data of one page of one site about one title. Keyed by (site, site_id)."""

    site: Site
    site_id: Id | None
    """IMDb `tt0111161`; Rotten Tomatoes `m/slug`, `tv/slug[/s02[/e05]]`; Metacritic `movie/slug`,
    `tv/slug[/season-2[/episode-5-name]]`. None only for a fragment of a page without an id; such a
    movie is never stored."""
    url: LongText | None
    """The title's canonical URL on the live site; None exactly when `site_id` is."""
    title: Text
    """As displayed, in the language of the page."""
    kind: TitleKind
    """movie, series, season, episode, game, short, video, music or other; see `TitleKind`."""
    imdb_id: Id | None = None
    """`tt` and at least seven digits: on IMDb the site_id, elsewhere what the page itself names."""
    original_title: Text | None = None
    """None when the page gives none, or the same as `title`."""
    title_type: Text | None = None
    """IMDb's own finer kind: movie, tvMovie, tvSeries, tvMiniSeries, tvEpisode, short, video,
    videoGame…"""
    year: Year | None = None
    """Year of first release as displayed."""
    end_year: Year | None = None
    """Last year of a series; None while it runs, and for everything else."""
    release_date: Text | None = None
    """ISO 8601, `YYYY-MM-DD`, or `YYYY-MM` where the page has no day: the date that the page shows
    first, which is that of the visitor's country on IMDb and the theatrical one on Rotten
    Tomatoes."""
    runtime_minutes: Minutes | None = None
    """Its length. The longest film known has 51,420 minutes."""
    genres: Few[Text] = field(default_factory=list)
    """Genres, by the names that the page uses."""
    countries: Few[Text] = field(default_factory=list)
    """Countries of origin, by the names that the page uses."""
    languages: Few[Text] = field(default_factory=list)
    """Languages spoken in it, by the names that the page uses."""
    certificate: Text | None = None
    """The short form shown: R, PG-13, TV-14, or what the visitor's country uses."""
    plot: Plot | None = None
    """What it is about."""
    poster_url: LongText | None = None
    """A real poster; a site's placeholder picture is None."""
    poster_width: Pixels | None = None
    """Size of the original picture, not of the thumbnail that a page shows."""
    poster_height: Pixels | None = None
    """As the width."""
    credits: Annotated[list[Credit], Meta(max_length=20_000)] = field(default_factory=list)
    """Directors, writers, creators and cast, each role in page order, nobody twice in a role."""
    scores: Few[Score] = field(default_factory=list)
    """At most one of each kind; empty when the title is unrated."""
    other_titles: Many[OtherTitle] = field(default_factory=list)
    """In IMDb's order, the movie's own title among them; only IMDb's datasets have them."""
    amounts: Few[Amount] = field(default_factory=list)
    """Budget and box office; at most one of each kind."""
    offers: Few[Offer] = field(default_factory=list)
    """Where to watch it, in page order."""
    keywords: Many[Text] = field(default_factory=list)
    """The most relevant first; a title page on IMDb shows five. On Metacritic these are its
    tags."""
    interests: Few[Text] = field(default_factory=list)
    """IMDb's finer genres, such as "Dark Comedy"; plain genres are among them."""
    taglines: Few[LongText] = field(default_factory=list)
    """Advertising lines, such as those on its posters."""
    awards: Few[Award] = field(default_factory=list)
    """At most one for each event; empty when it has neither won nor been nominated."""
    related: Many[RelatedTitle] = field(default_factory=list)
    """The site's recommendations and connections, in page order; no title twice in a relation."""
    consensus: LongText | None = None
    """Rotten Tomatoes' critics' consensus: one sentence, without markup."""
    external_ids: Annotated[
        dict[Annotated[str, Meta(pattern="^[a-z_]{1,30}$")], Text], Meta(max_length=100)
    ] = field(default_factory=dict)
    """The title's other ids by their owner, such as `justwatch` (a path) or the site itself (a
    number beside the slug); never those in `site_id` or `imdb_id`."""
    imdb_top250_rank: Rank250 | None = None
    """Rank in IMDb's Top 250 movies."""
    imdb_top250_tv_rank: Rank250 | None = None
    """Rank in IMDb's Top 250 series."""
    critic_review_count: Positive | None = None
    """Critics' reviews on other sites that IMDb links to; not the reviews behind a Metascore, whose
    number IMDb doesn't show."""
    popularity_rank: Positive | None = None
    """IMDb's moviemeter: 1 is the title whose page most people visit this week."""
    series_id: Id | None = None
    """The site_id of the series of a season or an episode."""
    series_title: Text | None = None
    """The title of that series."""
    season: Count | None = None
    """The number of a season, or of an episode's season; 0 for specials. A season always has
    one."""
    episode: Count | None = None
    """Some seasons start with a special numbered 0."""
    season_count: Positive | None = None
    """Seasons of a series, as the site counts them: some count those to come, and some the
    specials."""
    episode_count: Positive | None = None
    """Episodes of a series or a season, as the site counts them."""
    source: Source = "page"
    """page, list or dataset; see `Source`."""
    unknown_fields: Few[Text] = field(default_factory=list)
    """Columns that pages (rows, datasets) of this kind normally fill, but which this one
    omits: those of the view `movies`, such as `metascore`, `imdb_votes`, `directors` or `budget`.
    What other tables alone have is named by table and kind: `offers`, `credits.cast`,
    `scores.imdb.histogram`. Sorted, each once, never one that has a value. A missing value that
    isn't named here is stated absent."""
    scraped_at: Time | None = None
    """When the page was fetched, UTC; set by the spider, because `extract/` reads no clock."""
    fetch: Fetch | None = None
    """How its page was fetched; None for a movie from a list page or a dataset."""

    @property
    def ids(self) -> list[str]:
        """Its own id and, where that is another one, the id that was requested."""
        ids = (self.site_id, self.fetch.requested_id if self.fetch is not None else None)
        return [site_id for site_id in ids if site_id is not None]

    def people(self, role: Role) -> list[Credit]:
        """Return the credits of one role, in page order."""
        return [credit for credit in self.credits if credit.role == role]

    def score(self, kind: ScoreKind) -> Score | None:
        """Return the score of that kind, or None when the title has none."""
        return next((score for score in self.scores if score.kind == kind), None)


@dataclass(slots=True, kw_only=True)
class EncodedMovie:
    """A movie of IMDb's datasets in JSON, unchecked."""

    site_id: Id
    kind: TitleKind
    encoded: bytes

    def movie(self) -> Movie:
        """Return the movie, whatever its values are."""
        values = json.decode(self.encoded)
        values["scores"] = [Score(**score) for score in values["scores"]]
        values["credits"] = [Credit(**credit) for credit in values["credits"]]
        values["other_titles"] = [OtherTitle(**title) for title in values["other_titles"]]
        values["scraped_at"] = datetime.fromisoformat(values["scraped_at"])
        return Movie(**values)


@dataclass(slots=True, kw_only=True)
class Batch:
    """Movies that pass the pipelines together: for each alone, Scrapy takes as long as a store."""

    unchecked: list[EncodedMovie]
    note_of: Callable[[Movie, str], Fetched]
    """Returns the note of the movie of an id."""
    response: object
    """Scrapy's response of the request that they came of."""
    movies: list[Movie] = field(default_factory=list)
    """Those that the checks have let pass."""
    encoded: list[bytes] = field(default_factory=list)
    """Each of the movies in JSON."""


@dataclass(slots=True, kw_only=True)
class Unchanged:
    """Titles whose record has all that a source has, as it was extracted from the same source."""

    site: Site
    site_ids: list[Id]

    @property
    def site_id(self) -> str:
        """The first one, by which messages name them."""
        return self.site_ids[0]


@dataclass(slots=True, kw_only=True)
class Miss(Noted):
    """A title that was requested and whose page could not be read. Keyed by (site, site_id)."""

    site: Site
    site_id: Id
    """The id that was requested."""
    url: LongText
    """The URL that was requested."""
    outcome: Literal["absent", "failed", "blocked", "disallowed"]
    """`absent`: the site says that it has no such title. `failed`: an error after all retries, or a
    page that could not be parsed. `blocked`: the site refused us, so its crawl was stopped.
    `disallowed`: the site's robots.txt forbids the page."""
    reason: LongText
    """One line: a status, an exception, or what the page lacks."""
    checked_at: Time
    """UTC."""


@dataclass(slots=True, kw_only=True)
class ListEntry:
    """A title's place in a list."""

    site_id: Id
    rank: Positive
    """1 is the list's first."""


ListEnd = Literal["list", "reading"]
"""`list`: the list ends. `reading`: no more pages are read, as `limit` says."""


@dataclass(slots=True, kw_only=True)
class ListPage:
    """A page of a list. Keyed by (site, list_name, pass_at, page_offset)."""

    site: Site
    list_name: Text
    """As the spider's argument `list` names it, such as `top`."""
    pass_at: Time
    """When this pass over the list began, UTC: the same for all of its pages."""
    page_offset: Count = 0
    """Entries on earlier pages."""
    next_offset: Count
    """Entries up to the end of this page."""
    ends: ListEnd | None = None
    """How the list ends with this page; None when it continues."""
    entries: Annotated[list[ListEntry], Meta(max_length=100_000)]
    total: Annotated[int, Meta(ge=0, le=10**18)] | None = None
    """Entries of the whole list, where the page shows their number."""
    computed: bool = False
    """Whether the list was computed here (IMDb's Top 250 formula over its datasets), not read from
    the site."""
    read_at: Time
    """UTC."""

    @property
    def site_id(self) -> str:
        """The list's name, by which messages name it."""
        return self.list_name


@dataclass(slots=True, kw_only=True)
class RawPage:
    """A site's response as it was sent, on its way to the archive. Keyed by `archive_id`."""

    site: Site
    site_id: str | None
    """The title that was requested; None for a list page."""
    fetched_at: datetime
    """UTC; the `scraped_at` of the items of the page."""
    archive_id: str
    """WARC-Record-ID, `urn:uuid:…`."""
    record: bytes = field(repr=False)
    """The whole WARC record, with the body as it was sent, compressed or not."""


@dataclass(slots=True, kw_only=True)
class Entry:
    """One row of a list page."""

    site_id: str
    title: str
    year: int | None = None
    kind: TitleKind | None = None
    """None where the list does not show it."""
    rank: int | None = None
    """The rank that the list itself shows; None for lists that are not ranked."""
    release_date: str | None = None
    """As in `Movie`."""
    season: int | None = None
    """Season of an episode, where the list shows it; as in `Movie`."""
    episode: int | None = None
    scores: list[Score] = field(default_factory=list)


@dataclass(slots=True, kw_only=True, frozen=True)
class ListRow:
    """The row of a list that led to a title."""

    list_name: str
    list_rank: int
    entry: Entry | None = None
    """None in archived pages of an early version."""


@dataclass(slots=True, kw_only=True)
class Listing:
    """One page of a list: a chart, or a page of a browse list or of the finder."""

    site: Site
    entries: list[Entry]
    """In page order; a title that the page lists twice is here twice."""
    total: int | None = None
    """Entries of the whole list, where the page shows their number."""
    next: str | None = None
    """The URL or cursor of the next page; None on the last one."""


@dataclass(slots=True, kw_only=True)
class Page:
    """The content of one page: a movie and the seasons of a series, or a listing."""

    site: Site
    kind: str
    """The page kind: title, fullcredits or chart; movie, tv or finder; movie, tv, browse or
    browse-json."""
    movie: Movie | None = None
    listing: Listing | None = None
    seasons: list[Movie] = field(default_factory=list)
    """The seasons of `movie` that its page lists, in page order, each once: kind `season`, source
    `list`; fields that the page doesn't show are unknown."""
