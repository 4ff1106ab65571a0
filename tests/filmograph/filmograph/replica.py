"""Filmograph's invented titles, and its pages as the replica serves them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from moviecrawler.sites.replicas import (
    Markup,
    Refusal,
    SeededRandom,
    SeriesPages,
    new_item,
    new_part,
    new_score,
    slugify,
    with_facts_of,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from moviecrawler.items import Movie, Role, Score, ScoreKind
    from moviecrawler.sites.replicas import Collection, FilmDraft, Name, SeriesDraft, Title

SITE: Final = "filmograph"
ROBOTS: Final = "User-agent: *\nDisallow: /search\n"
LIVE_ROBOTS: Final = "User-agent: *\nDisallow: /show/\n"
CHALLENGE: Final = Refusal(status=403, head="<title>Access Denied</title>")
MOVED: Final = 301
ROWS: Final = 20


def title_id(name: Name, _dice: SeededRandom) -> str | None:
    """Return the id of a film or a series; one of seven is lacking."""
    if name.index % 7 == 6:
        return None
    slug = slugify(name.english, "-") + (f"-{name.year}" if name.is_repeated else "")
    return f"{'film' if name.kind == 'movie' else 'show'}/{slug}"


def film(draft: FilmDraft) -> Movie:
    """Return the item of a film's page."""
    movie = _item(draft)
    movie.year = draft.year
    movie.release_date = draft.dice.day_in(draft.year)
    movie.scores = _scores(draft.critics, draft.users, draft.dice)
    return movie


def series(draft: SeriesDraft) -> SeriesPages:
    """Return the items of the pages of a series; specials have no page."""
    movie = _item(draft)
    movie.year = draft.facts.year
    movie.release_date = draft.facts.release_date
    movie.scores = _scores_of_series(draft)
    pages = SeriesPages(movie)
    for number, episodes in draft.seasons.items():
        if number == 0:
            continue
        site_id = f"{draft.site_id}/season/{number}"
        row = new_part(movie, site_id, movie.title, str(episodes[0].release_date))
        row.scores = _scores_of_series(draft, number)
        season = with_facts_of(movie, row)
        season.scores = row.scores
        row.release_date = None
        row.source = "list"
        pages.listed.append(row)
        pages.parts.append(season)
    movie.season_count = len(pages.parts)
    return pages


def title_page(title: Title, movie: Movie) -> Markup:
    """Return the page of a film, a series or a season."""
    data = {
        **_row(movie),
        "series": movie.series_title,
        "released": movie.release_date,
        "minutes": movie.runtime_minutes,
        "genres": movie.genres,
        "certificate": movie.certificate,
        "plot": movie.plot,
        "poster": movie.poster_url,
        "season_count": movie.season_count,
        "directors": _people(movie, "director"),
        "writers": _people(movie, "writer"),
        "creators": _people(movie, "creator"),
        "cast": _people(movie, "cast"),
    }
    if movie.kind == "series":
        data["seasons"] = [_row(season) for season in title.listed[SITE]]
    return _page(movie.title, str(movie.url), data)


def list_page(
    collection: Collection, path: str, query: Mapping[str, str], host: str
) -> Markup | None:
    """Return a page of a list by its number; None for another path."""
    if path not in {"films", "shows"}:
        return None
    titles = collection if path == "films" else collection.series
    number = int(query.get("page", 1))
    indexes = list(titles.ids[SITE])
    shown = indexes[(number - 1) * ROWS : number * ROWS]
    data = {
        "rows": [_row(titles.title(index).movies[SITE]) for index in shown],
        "next": str(number + 1) if number * ROWS < len(indexes) else None,
    }
    return _page(path, f"{host}/{path}?page={number}", data)


def _item(draft: FilmDraft | SeriesDraft) -> Movie:
    movie = new_item(SITE, draft, lambda name: f"person/{slugify(name, '-')}", cast_size=6)
    movie.poster_url = f"https://images.filmograph.example/{slugify(draft.site_id, '-')}.jpg"
    return movie


def _scores_of_series(draft: SeriesDraft, season: int | None = None) -> list[Score]:
    dice = draft.dice_for("filmograph scores", draft.index, season)
    return _scores(draft.score(dice, 0.8), draft.score(dice, 0.9), dice)


def _scores(critics: int | None, users: int | None, dice: SeededRandom) -> list[Score]:
    shown: list[tuple[ScoreKind, float | None, int]] = [
        ("filmograph_stars", None if users is None else round(users / 20, 1), 10_000),
        ("filmograph_approval", critics, 80),
    ]
    return [
        new_score(kind, value, 1 + dice.below(most))
        for kind, value, most in shown
        if value is not None
    ]


def _page(title: str, url: str, data: dict[str, Any]) -> Markup:
    return Markup(template="page.html", variables={"title": title, "url": url, "data": data})


def _row(movie: Movie) -> dict[str, Any]:
    """Return what a list's row and a page both have of a title."""
    return {
        "id": movie.site_id,
        "title": movie.title,
        "year": movie.year,
        "stars": _score(movie, "filmograph_stars"),
        "approval": _score(movie, "filmograph_approval"),
    }


def _score(movie: Movie, kind: ScoreKind) -> dict[str, Any] | None:
    score = movie.score(kind)
    return {"value": score.value, "count": score.count} if score else None


def _people(movie: Movie, role: Role) -> list[dict[str, Any]]:
    return [
        {"id": credit.person_id, "name": credit.name, "as": credit.character}
        for credit in movie.people(role)
    ]
