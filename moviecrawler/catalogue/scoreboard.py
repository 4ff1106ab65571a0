"""One row a title with every site's scores, in order and as text. Pure."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from typing import TYPE_CHECKING

from moviecrawler.catalogue.matching import join

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from moviecrawler.catalogue.matching import JoinedTitle
    from moviecrawler.items import Movie, ScoreKind, Site, TitleKind

_BY_AUTHORITY: tuple[Site, ...] = ("imdb", "rottentomatoes", "metacritic")
"""Whose title and year a row shows, where the sites differ."""
_MISSING = "–"  # noqa: RUF001 - the dash of tables
_LEAST_TITLE = 16
_ID_FROM = 110
"""Columns of a terminal from which IMDb's ids are shown as well."""
_FULL_NAMES_FROM = 96
_GAP = "  "
_WIDE = frozenset("WF")
"""Unicode's classes of characters that take two columns."""


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


def scoreboard(movies: Iterable[Movie]) -> list[ScoreboardRow]:
    """Return the joined rows: IMDb's lists first, in their order, then what most people voted on."""
    return [_row(joined) for joined in sorted(join(movies), key=_place)]


def render_table(rows: Sequence[ScoreboardRow], width: int = 100) -> str:
    """Return the rows as lines of at most `width` columns (80 at least), under a header; without a newline at the end."""
    full = width >= _FULL_NAMES_FROM
    names = ["Metascore", "User", "Tomatometer", "Popcornmeter"] if full else ["Meta", "User", "Tomato", "Popcorn"]
    header = ["Title", "Year", "IMDb", "Votes", *names]
    body = [
        [
            _printable(row.title),
            _cell(row.year),
            _decimal(row.imdb_rating),
            _MISSING if row.imdb_votes is None else f"{row.imdb_votes:,}",
            _cell(row.metascore),
            _decimal(row.metacritic_user_score),
            _percent(row.tomatometer),
            _percent(row.popcornmeter),
        ]
        for row in rows
    ]
    if width >= _ID_FROM:
        header.append("IMDb id")
        for cells, row in zip(body, rows, strict=True):
            cells.append(row.imdb_id or _MISSING)
    widths = [max(map(_columns, column)) for column in zip(header, *body, strict=True)]
    room = width - sum(widths[1:]) - len(_GAP) * (len(widths) - 1)
    widths[0] = min(widths[0], max(room, _LEAST_TITLE))
    return "\n".join(_line(cells, widths) for cells in [header, ["─" * w for w in widths], *body])


def _row(joined: JoinedTitle) -> ScoreboardRow:
    movies = [joined.movies[site] for site in _BY_AUTHORITY if site in joined.movies]
    imdb, metacritic, tomatoes = (joined.movies.get(site) for site in ("imdb", "metacritic", "rottentomatoes"))

    def value(kind: ScoreKind) -> float | None:
        # IMDb shows the Metascore too, as it was when IMDb last looked.
        first = [metacritic] if metacritic is not None and kind == "metascore" else []
        return next((score.value for movie in [*first, *movies] if (score := movie.score(kind)) is not None), None)

    return ScoreboardRow(
        title=movies[0].title,
        year=next((movie.year for movie in movies if movie.year is not None), None),
        kind=movies[0].kind,
        imdb_rating=value("imdb"),
        imdb_votes=_votes(joined),
        metascore=value("metascore"),
        metacritic_user_score=value("metacritic_user"),
        tomatometer=value("tomatometer"),
        popcornmeter=value("popcornmeter"),
        imdb_id=imdb.site_id if imdb else next((movie.imdb_id for movie in movies if movie.imdb_id), None),
        metacritic_id=metacritic.site_id if metacritic else None,
        rottentomatoes_id=tomatoes.site_id if tomatoes else None,
        tmdb_id=None,  # which the catalogue knows
        matched_by=[", ".join(match.reasons) for match in joined.matches],
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


def _cell(value: float | None) -> str:
    return _MISSING if value is None else f"{value:g}"


def _decimal(value: float | None) -> str:
    return _MISSING if value is None else f"{value:.1f}"


def _percent(value: float | None) -> str:
    return _MISSING if value is None else f"{value:g}%"


def _printable(text: str) -> str:
    """Return a title without what would move a terminal's cursor."""
    return "".join(c if c.isprintable() else " " for c in text)


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    """Return a line with the title on the left and everything else on the right of its column."""
    title = _cut(cells[0], widths[0])
    padding = " " * (widths[0] - _columns(title))
    return _GAP.join([title + padding, *(c.rjust(w) for c, w in zip(cells[1:], widths[1:], strict=True))]).rstrip()


def _cut(text: str, width: int) -> str:
    if _columns(text) <= width:
        return text
    while _columns(text) > width - 1:
        text = text[:-1]
    return text.rstrip() + "…"


def _columns(text: str) -> int:
    """Return how many columns of a terminal a text takes."""
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in _WIDE else 1 for c in text)
