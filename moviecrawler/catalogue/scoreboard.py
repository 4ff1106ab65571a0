"""One row a title with every site's scores, in order. Pure.

Of seasons and episodes, a row says of which series. IMDb rates no seasons: a season's rating is the mean of its episodes' there, weighted by votes.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, fields, replace
from decimal import ROUND_HALF_UP, Decimal
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from moviecrawler.catalogue.matching import join
from moviecrawler.sites import BY_AUTHORITY, SCORES, SITES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from moviecrawler.catalogue.matching import JoinedTitle
    from moviecrawler.items import Movie, Score, ScoreKind, TitleKind


@dataclass(slots=True, kw_only=True)
class ScoreboardRow:
    """A title's scores on all sites; None where a site hasn't the title, or the title no such score."""

    title: str
    year: int | None
    kind: TitleKind
    imdb_rating: float | None
    """1 to 10."""
    imdb_votes: int | None
    metascore: float | None
    """0 to 100."""
    metacritic_user_score: float | None
    """0 to 10."""
    tomatometer: float | None
    """0 to 100."""
    popcornmeter: float | None
    """0 to 100."""
    imdb_id: str | None
    metacritic_id: str | None
    rottentomatoes_id: str | None
    tmdb_id: int | None
    """TMDB's id: of a series under themoviedb.org/tv/, of everything else under themoviedb.org/movie/."""
    matched_by: list[str]
    """Why the sites' titles are taken for one."""
    series_title: str | None = None
    """Of a season or an episode, as what follows."""
    series_imdb_id: str | None = None
    """Where IMDb's own page or row of the series is known."""
    season: int | None = None
    episode: int | None = None

    @property
    def imdb_rating_derived(self) -> bool:
        """Whether the rating is not IMDb's own, but the mean of a season's episodes."""
        return self.kind == "season" and self.imdb_rating is not None


_FIELDS = {field.name for field in fields(ScoreboardRow)}
VALUE_FIELDS = {kind: form.columns[0] for kind, form in SCORES.items() if form.columns and form.columns[0] in _FIELDS}
ID_FIELDS = {site: f"{site}_id" for site in SITES if f"{site}_id" in _FIELDS}
"""The fields with the value of each score and with the id on each site; the database's views have columns of the same names."""
PART_FIELDS = ("series_title", "series_imdb_id", "season", "episode", "imdb_rating_derived")
"""What only rows of seasons and episodes have."""


def scoreboard(movies: Iterable[Movie], kind: TitleKind | None = None) -> list[ScoreboardRow]:
    """Return the joined rows of a kind, or of all but seasons and episodes.

    IMDb's lists come first, in their order, then what most people voted on.
    """
    joined = join(movies)
    if kind in {"season", "episode"}:
        return sorted(_rows_of_parts(joined, kind), key=_place_of_part)
    rows = [(_place(title), _row(title)) for title in joined]
    return [
        row
        for _, row in sorted(rows, key=itemgetter(0))
        if (row.kind == kind if kind else row.kind not in {"season", "episode"})
    ]


def _rows_of_parts(joined: Sequence[JoinedTitle], kind: TitleKind) -> Iterator[ScoreboardRow]:
    """Yield the rows of episodes; or those of seasons, with those of which only IMDb's episodes are known."""
    series_of = {(site, movie.site_id): title for title in joined for site, movie in title.movies.items()}
    seasons: dict[tuple[int, int | None], ScoreboardRow] = {}
    votes: dict[tuple[int, int | None], list[Score]] = defaultdict(list)
    for title in joined:
        row = _row(title)
        if row.kind not in {"season", "episode"}:
            continue
        movie = next(movie for movie in _in_order(title) if movie.kind == row.kind)
        series = series_of.get((movie.site, movie.series_id))
        row.season, row.episode = movie.season, movie.episode
        row.series_title = min((m.series_title for m in title.movies.values() if m.series_title), default=None)
        if series is not None:
            row.series_title = _in_order(series)[0].title
            row.series_imdb_id = series.movies["imdb"].site_id if "imdb" in series.movies else None
        if row.kind == kind == "episode":
            yield row
        of = id(series or title), row.season
        if row.kind == "season":
            seasons[of] = replace(row, imdb_id=None)
        elif series is not None and row.season is not None:
            blank: dict[str, Any] = dict.fromkeys((*VALUE_FIELDS.values(), *ID_FIELDS.values(), "year", "episode"))
            name = f"Season {row.season}"
            seasons.setdefault(of, replace(row, **blank, title=name, kind="season", matched_by=[]))
            votes[of] += [score for m in title.movies.values() if m.site == "imdb" and (score := m.score("imdb"))]
    if kind == "season":
        for of, row in seasons.items():
            row.imdb_rating, row.imdb_votes = _weighted(votes[of])
            yield row


def _weighted(scores: Sequence[Score]) -> tuple[float | None, int | None]:
    """Return the mean of scores, weighted by their votes, and these; as the database reckons it."""
    votes = sum(score.count or 0 for score in scores)
    if not votes:
        return None, None
    total = sum((Decimal(str(score.value)) * (score.count or 0) for score in scores), Decimal(0))
    return float((total / votes).quantize(Decimal("0.01"), ROUND_HALF_UP)), votes


def _place_of_part(row: ScoreboardRow) -> tuple[Any, ...]:
    """Return a row's place: by votes, then by series and number. What is not known comes last."""
    keys = (row.series_title, row.season, row.episode, row.imdb_id, row.rottentomatoes_id, row.metacritic_id)
    return (-(row.imdb_votes or 0), *((key is None, key) for key in keys))


def _in_order(joined: JoinedTitle) -> list[Movie]:
    return [joined.movies[site] for site in BY_AUTHORITY if site in joined.movies]


def _row(joined: JoinedTitle) -> ScoreboardRow:
    movies = _in_order(joined)

    def value(kind: ScoreKind) -> float | None:
        # IMDb shows the Metascore too, as it was when IMDb last looked.
        own = joined.movies.get(SCORES[kind].site)
        first = [own] if own is not None else []
        return next((score.value for movie in [*first, *movies] if (score := movie.score(kind)) is not None), None)

    found: dict[str, Any] = {field: value(kind) for kind, field in VALUE_FIELDS.items()}
    found |= {
        field: joined.movies[site].site_id if site in joined.movies else None for site, field in ID_FIELDS.items()
    }
    found["imdb_id"] = found["imdb_id"] or next((movie.imdb_id for movie in movies if movie.imdb_id), None)
    return ScoreboardRow(
        title=movies[0].title,
        year=next((movie.year for movie in movies if movie.year is not None), None),
        kind=movies[0].kind,
        imdb_votes=_votes(joined),
        tmdb_id=None,  # which the catalogue knows
        matched_by=[", ".join(match.reasons) for match in joined.matches],
        **found,
    )


def _votes(joined: JoinedTitle) -> int | None:
    score = joined.movies["imdb"].score("imdb") if "imdb" in joined.movies else None
    return score.count if score else None


def _place(joined: JoinedTitle) -> tuple[str, float, int, float]:
    """Return a title's place among all: by its list on IMDb and its rank there, then by votes, then by other lists."""
    imdb = joined.movies.get("imdb")
    votes = -(_votes(joined) or 0)
    if imdb is not None and imdb.list_name is not None and imdb.list_rank is not None:
        return imdb.list_name, imdb.list_rank, votes, 0
    ranks = [movie.list_rank for movie in joined.movies.values() if movie.list_rank is not None]
    return "\U0010ffff", float("inf"), votes, min(ranks, default=float("inf"))
