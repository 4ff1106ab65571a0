"""IMDb's pages as the site has served them since the autumn of 2025: data in `__NEXT_DATA__`, JSON-LD beside it."""

from __future__ import annotations

import base64
import functools
import html
from datetime import date
from typing import TYPE_CHECKING, Any

import msgspec

from moviecrawler.replica import bulk
from moviecrawler.replica.movies import TODAY
from moviecrawler.replica.splice import Body, Template
from moviecrawler.urls import title_url

if TYPE_CHECKING:
    from collections.abc import Sequence

    from moviecrawler.replica.movies import Basics, Catalogue, Person, ReplicaMovie

CAST_ON_TITLE_PAGE = 18
SEARCH_PAGE, LARGEST_SEARCH_PAGE = 50, 250
_FIND_RESULTS = 25
_BOX_OFFICE_SIZE = 10
_CALENDAR_CANDIDATES = 2_000

_CATEGORY = "amzn1.imdb.concept.name_credit_category."
_DIRECTORS = _CATEGORY + "ace5cb4c-8708-4238-9542-04641e7c8171"
_WRITERS = _CATEGORY + "c84ecaff-add5-4f2e-81db-102a41881fe3"
_CAST = "amzn1.imdb.concept.name_credit_group.7caf7d16-5db9-4f4f-8864-d4c6e711c686"

_encode = msgspec.json.Encoder().encode


class Pages:
    """IMDb's pages over a catalogue; `light` ones have the same data without the bulk around it."""

    def __init__(self, catalogue: Catalogue, *, light: bool = False) -> None:
        self._catalogue = catalogue
        self._light = light

    def title(self, imdb_id: str) -> Body | None:
        """Return a title page, or None when there is no such title."""
        movie = self._movie(imdb_id)
        if movie is None:
            return None
        props = {
            "tconst": imdb_id,
            "aboveTheFoldData": self._above_the_fold(movie),
            "mainColumnData": self._main_column(movie),
        }
        return self._page("/title/[tconst]", _head(movie) + _json_ld_script(_title_json_ld(movie)), props)

    def reference(self, imdb_id: str) -> Body | None:
        """Return a reference page, with the whole cast and the credits' second version, or None."""
        movie = self._movie(imdb_id)
        if movie is None:
            return None
        above, main = self._above_the_fold(movie), self._main_column(movie)
        groups = [
            {"grouping": {"text": text, "groupingId": group}, "credits": [_credit(person) for person in people]}
            for text, group, people in _crew(movie)
        ]
        for gone in ("principalCredits", "genres", "metacritic", "meterRanking", "releaseDate", "interests"):
            del above[gone]
        for gone in ("cast", "directors", "writers", "creators"):
            del main[gone]
        above |= {"castV2": [{"credits": [_credit(person) for person, _ in movie.credits.cast[:4]]}], "crewV2": groups}
        main |= {
            "principalCreditsV2": groups,
            "categories": _credit_categories(movie),
            "metacritic": _metacritic(movie),
            "certificate": _certificate(movie),
            "meterRanking": {"currentRank": movie.index + 1},
        }
        props = {"tconst": imdb_id, "aboveTheFoldData": above, "mainColumnData": main}
        return self._page("/title/[tconst]/reference", _head(movie, "reference/"), props)

    def full_credits(self, imdb_id: str) -> Body | None:
        """Return the page of all credits, or None when there is no such title."""
        movie = self._movie(imdb_id)
        if movie is None:
            return None
        entity = self._above_the_fold(movie)
        for elsewhere in ("metacritic", "meterRanking", "releaseDate", "genres", "interests", "principalCredits"):
            del entity[elsewhere]
        props = {"contentData": {"entityMetadata": entity, "categories": _credit_categories(movie)}}
        return self._page("/title/[tconst]/fullcredits", _head(movie, "fullcredits/"), props)

    def top(self) -> Body:
        """Return the Top 250."""
        return self._chart("top", self._catalogue.top)

    def popular(self) -> Body:
        """Return the most popular titles."""
        return self._chart("moviemeter", self._catalogue.popular)

    def box_office(self) -> Body:
        """Return the weekend's box office, which gives no ranks, years or running times."""
        edges = []
        for index in range(min(self._catalogue.titles, _BOX_OFFICE_SIZE)):
            movie = self._catalogue.movie(index)
            node = _chart_node(movie)
            for absent in ("releaseYear", "runtime", "certificate", "titleGenres", "releaseDate"):
                del node[absent]
            node["lifetimeGross"] = _total(movie.domestic_gross)
            gross = _total(movie.opening_weekend)
            edges.append({"node": {"gross": gross, "release": {"weeksRunning": 1 + index, "titles": [node]}}})
        weekend = {"timeWindowStartDate": "2026-10-30", "timeWindowEndDate": "2026-11-01", "edges": edges}
        return self._page(
            "/chart/boxoffice", _canonical("/chart/boxoffice/"), {"pageData": {"topGrossingReleases": weekend}}
        )

    def search(self, *, count: int = SEARCH_PAGE, start: int = 1, after: str | None = None) -> Body:
        """Return a page of `/search/title`: all titles by popularity, whatever the search.

        `start` is the first row's place from 1, or `after` the cursor of the page before. Raises ValueError for a
        cursor that is none.
        """
        first = start - 1 if after is None else int(base64.b64decode(after, validate=True))
        indexes = range(first, min(first + min(count, LARGEST_SEARCH_PAGE), self._catalogue.titles))
        results = {
            "titleListItems": [_flat(self._catalogue.movie(index)) for index in indexes],
            "total": self._catalogue.titles,
            # The site has a cursor on the last page too.
            "endCursor": base64.b64encode(str(first + len(indexes)).encode()).decode(),
        }
        return self._page("/search/[tab]", _canonical("/search/"), {"searchResults": {"titleResults": results}})

    def find(self, query: str) -> Body:
        """Return the titles found for a query: by id, or by the first two words of a title's name."""
        movies = [self._catalogue.movie(index) for index in self._catalogue.find(query)[:_FIND_RESULTS]]
        results = [{"index": movie.imdb_id, "listItem": _flat(movie)} for movie in movies]
        props = {
            "findPageMeta": {"searchTerm": query, "includeAdult": False, "isExactMatch": False},
            "nameResults": {"results": []},
            "titleResults": {"results": results, "hasExactMatches": bool(results)},
        }
        return self._page("/find", _canonical("/find/"), props)

    def calendar(self) -> Body:
        """Return the calendar of this year's and the next years' releases."""
        groups: dict[date, list[dict[str, Any]]] = {}
        for index in range(min(self._catalogue.titles, _CALENDAR_CANDIDATES)):
            if self._catalogue.basics(index).year < TODAY.year:
                continue
            movie = self._catalogue.movie(index)
            if movie.release.day is not None and movie.release.year >= TODAY.year:
                day = date(movie.release.year, movie.release.month, movie.release.day)
                groups.setdefault(day, []).append(_calendar_entry(movie, day))
        listed = [{"group": f"{day:%b %d, %Y}", "entries": groups[day]} for day in sorted(groups)]
        return self._page("/calendar", _canonical("/calendar/"), {"groups": listed})

    def _movie(self, imdb_id: str) -> ReplicaMovie | None:
        index = self._catalogue.index_of_imdb_id(imdb_id)
        return None if index is None else self._catalogue.movie(index)

    def _chart(self, name: str, indexes: Sequence[int]) -> Body:
        movies = [self._catalogue.movie(index) for index in indexes]
        edges = [{"currentRank": rank, "node": _chart_node(movie)} for rank, movie in enumerate(movies, start=1)]
        head = _canonical(f"/chart/{name}/") + _json_ld_script(_chart_json_ld(movies))
        return self._page(f"/chart/{name}", head, {"pageData": {"chartTitles": {"edges": edges}}})

    def _page(self, route: str, head: bytes, props: dict[str, Any]) -> Body:
        return _template(route, light=self._light).fill(head, _encode(props)[1:-1])

    # --- The two columns of a title page --------------------------------------------------------------------------------

    def _above_the_fold(self, movie: ReplicaMovie) -> dict[str, Any]:
        basics, credits_ = movie.basics, movie.credits
        return {
            "id": movie.imdb_id,
            "titleText": {"text": basics.title, "__typename": "TitleText"},
            "originalTitleText": {"text": basics.original_title or basics.title, "__typename": "TitleText"},
            "titleType": _title_type(basics),
            "certificate": _certificate(movie),
            "releaseYear": {"year": basics.year, "endYear": None, "__typename": "YearRange"},
            "releaseDate": _release_date(movie),
            "runtime": _runtime(basics),
            "canRate": {"isRatable": not basics.upcoming, "__typename": "CanRate"},
            "ratingsSummary": _ratings(movie),
            "meterRanking": {"currentRank": movie.index + 1, "__typename": "TitleMeterRanking"},
            "series": None,
            "isAdult": False,
            "genres": {"genres": [{"text": genre, "id": genre, "__typename": "Genre"} for genre in basics.genres]},
            "interests": {"edges": [{"node": {"primaryText": {"text": f"{genre} Night"}}} for genre in basics.genres]},
            "titleGenres": _title_genres(basics),
            "plot": _plot(movie),
            "primaryImage": _image(movie),
            "principalCredits": [
                {
                    "totalCredits": len(people),
                    "category": {"text": text, "id": category, "__typename": "CreditCategory"},
                    "credits": [_credit(person) for person in people[:3]],
                }
                for text, category, people in (
                    ("Director", "director", credits_.directors),
                    ("Writers", "writer", credits_.writers),
                    ("Stars", "cast", tuple(person for person, _ in credits_.cast)),
                )
            ],
            "metacritic": _metacritic(movie),
            "castPageTitle": {"edges": [{"node": _credit(person)} for person, _ in credits_.cast[:4]]},
            "creatorsPageTitle": [],
            "directorsPageTitle": [{"credits": [_credit(person) for person in credits_.directors]}],
            "countriesOfOrigin": {"countries": [{"id": basics.country.code, "__typename": "CountryOfOrigin"}]},
            "productionStatus": _status(basics),
            "__typename": "Title",
        }

    def _main_column(self, movie: ReplicaMovie) -> dict[str, Any]:
        basics, credits_ = movie.basics, movie.credits
        rank = self._catalogue.top_ranks.get(movie.index)
        if rank is None and movie.rating is not None and movie.index < _CALENDAR_CANDIDATES:
            # The ranking goes on beyond the chart: 1046 is no place in the Top 250.
            rank = len(self._catalogue.top) + 1 + movie.index
        ranking = {"id": f"topRated:{movie.imdb_id}:en_US", "text": {"value": "Top Rated"}, "rank": rank}
        return {
            "id": movie.imdb_id,
            "titleText": {"text": basics.title, "__typename": "TitleText"},
            "originalTitleText": {"text": basics.original_title or basics.title, "__typename": "TitleText"},
            "titleType": {"id": basics.title_type, "canHaveEpisodes": False, "__typename": "TitleType"},
            "releaseDate": _release_date(movie),
            "runtime": _runtime(basics),
            "ratingsSummary": {"topRanking": None if rank is None else ranking, **_ratings(movie)},
            "cast": {
                "total": len(credits_.cast),
                "edges": [_cast_edge(*part) for part in credits_.cast[:CAST_ON_TITLE_PAGE]],
                "__typename": "CreditConnection",
            },
            "creators": [],
            "directors": [{"totalCredits": len(credits_.directors), "credits": list(map(_credit, credits_.directors))}],
            "writers": [{"totalCredits": len(credits_.writers), "credits": list(map(_credit, credits_.writers))}],
            "spokenLanguages": {
                "spokenLanguages": [{"id": basics.country.language_code, "text": basics.country.language}]
            },
            "countriesDetails": {"countries": [{"id": basics.country.code, "text": basics.country.name}]},
            "productionBudget": None if movie.budget is None else {"budget": _money(movie.budget)},
            "worldwideGross": _total(movie.worldwide_gross),
            "lifetimeGross": _total(movie.domestic_gross),
            "openingWeekendGross": None
            if movie.opening_weekend is None
            else {"gross": _total(movie.opening_weekend), "__typename": "OpeningWeekendGross"},
            "isAdult": False,
            "episodes": None,
            "series": None,
            "__typename": "Title",
        }


def poster_url(movie: ReplicaMovie) -> str | None:
    """Return where the movie's poster would be."""
    return f"https://m.media-amazon.com/images/M/MV5B{movie.imdb_id}._V1_.jpg" if movie.has_poster else None


# --- Pages around the data ------------------------------------------------------------------------------------------

_SIZES = {
    "/title/[tconst]": (790_000, 530_000),
    "/title/[tconst]/reference": (900_000, 1_600_000),
    "/title/[tconst]/fullcredits": (500_000, 480_000),
    "/chart/top": (770_000, 370_000),
    "/chart/moviemeter": (770_000, 370_000),
    "/chart/boxoffice": (450_000, 370_000),
    "/search/[tab]": (620_000, 410_000),
    "/find": (420_000, 500_000),
    "/calendar": (480_000, 480_000),
}
"""How many bytes of markup and of JSON that say nothing of movies each page carries."""


@functools.cache
def _template(route: str, *, light: bool) -> Template:
    markup_size, json_size = (600, 300) if light else _SIZES[route]
    head = b'<!DOCTYPE html><html lang="en-US"><head><meta charSet="utf-8"/>' + bulk.styles(markup_size // 12, route)
    return Template(
        head,
        b"</head><body>"
        + bulk.markup(markup_size * 11 // 12, route)
        + b'<script id="__NEXT_DATA__" type="application/json">{"props":{"pageProps":{',
        # Healthy pages too hold the firewall's words, as they repeat the headers of the request.
        b',"requestContext":{"sidecarHeaders":{"x-amzn-waf-frontier-bot-control":"aws-waf-token"}},'
        b'"translationContext":{"i18n":{"translations":{"resources":{'
        + bulk.json_members(json_size, route)
        + b'}}}},"urqlState":null,"fetchState":null},"__N_SSP":true},"page":'
        + _encode(route)
        + b',"query":{},"buildId":"replica","locale":"en-US"}</script></body></html>',
    )


def _canonical(path: str) -> bytes:
    return f'<link rel="canonical" href="https://www.imdb.com{path}"/>'.encode()


def _head(movie: ReplicaMovie, page: str = "") -> bytes:
    title, address = html.escape(movie.basics.title), title_url("imdb", movie.imdb_id)
    return (
        f'<title>{title} ({movie.basics.year}) - IMDb</title><link rel="canonical" href="{address}{page}"/>'
        f'<meta property="og:url" content="{address}{page}"/><meta property="og:title" content="{title}"/>'
    ).encode()


def _json_ld_script(data: dict[str, Any]) -> bytes:
    return b'<script type="application/ld+json">' + _encode(data) + b"</script>"


def _title_json_ld(movie: ReplicaMovie) -> dict[str, Any]:
    """Return a title's JSON-LD, whose texts are HTML-escaped: name and alternateName are the original and the shown."""
    basics, credits_ = movie.basics, movie.credits
    found = {
        **_listed_json_ld(movie),
        "@context": "https://schema.org",
        "genre": list(basics.genres),
        "datePublished": movie.release.iso,
        "actor": [_person_json_ld(person) for person, _ in credits_.cast[:3]],
        "director": [_person_json_ld(person) for person in credits_.directors],
        "creator": [_person_json_ld(person) for person in credits_.writers],
    }
    if basics.original_title is not None:
        found |= {"name": html.escape(basics.original_title), "alternateName": html.escape(basics.title)}
    return found


def _chart_json_ld(movies: list[ReplicaMovie]) -> dict[str, Any]:
    items = [{"@type": "ListItem", "item": {**_listed_json_ld(m), "genre": ", ".join(m.basics.genres)}} for m in movies]
    return {"@type": "ItemList", "itemListElement": items, "@context": "https://schema.org"}


def _listed_json_ld(movie: ReplicaMovie) -> dict[str, Any]:
    basics = movie.basics
    found: dict[str, Any] = {
        "@type": "Movie",
        "url": title_url("imdb", movie.imdb_id),
        # The site writes &apos; where html.escape writes &#x27;.
        "name": html.escape(basics.title).replace("&#x27;", "&apos;"),
        "image": poster_url(movie),
        "description": html.escape(movie.plot) if movie.plot else None,
        "contentRating": movie.certificate,
    }
    if movie.rating is not None:
        rating, votes = movie.rating
        found["aggregateRating"] = {
            "@type": "AggregateRating",
            "bestRating": 10,
            "worstRating": 1,
            "ratingValue": rating,
            "ratingCount": votes,
        }
    if basics.runtime_minutes is not None:
        found["duration"] = f"PT{basics.runtime_minutes // 60}H{basics.runtime_minutes % 60}M"
    return {key: value for key, value in found.items() if value is not None}


def _person_json_ld(person: Person) -> dict[str, str]:
    return {"@type": "Person", "url": f"https://www.imdb.com/name/{person.imdb_id}/", "name": html.escape(person.name)}


# --- Pieces of the data ---------------------------------------------------------------------------------------------


def _title_type(basics: Basics) -> dict[str, Any]:
    text = "Movie" if basics.title_type == "movie" else "TV Movie"
    return {
        "id": basics.title_type,
        "text": text,
        "isSeries": False,
        "isEpisode": False,
        "canHaveEpisodes": False,
        "categories": [{"value": "movie", "__typename": "TitleTypeCategory"}],
        "__typename": "TitleType",
    }


def _certificate(movie: ReplicaMovie) -> dict[str, str] | None:
    return None if movie.certificate is None else {"rating": movie.certificate, "__typename": "Certificate"}


def _release_date(movie: ReplicaMovie) -> dict[str, Any]:
    release, country = movie.release, {"id": "US", "text": "United States"}
    return {"day": release.day, "month": release.month, "year": release.year, "country": country}


def _runtime(basics: Basics) -> dict[str, Any] | None:
    if basics.runtime_minutes is None:
        return None
    text = f"{basics.runtime_minutes // 60}h {basics.runtime_minutes % 60}m"
    return {
        "seconds": basics.runtime_minutes * 60,
        "displayableProperty": {"value": {"plainText": text}},
        "__typename": "Runtime",
    }


def _ratings(movie: ReplicaMovie) -> dict[str, Any]:
    rating, votes = movie.rating or (None, 0)
    return {"aggregateRating": rating, "voteCount": votes, "__typename": "RatingsSummary"}


def _metacritic(movie: ReplicaMovie) -> dict[str, Any] | None:
    return None if movie.metascore is None else {"metascore": {"score": movie.metascore, "__typename": "Metascore"}}


def _title_genres(basics: Basics) -> dict[str, Any]:
    return {"genres": [{"genre": {"text": genre, "__typename": "GenreItem"}} for genre in basics.genres]}


def _plot(movie: ReplicaMovie) -> dict[str, Any] | None:
    return None if movie.plot is None else {"plotText": {"plainText": movie.plot, "__typename": "Markdown"}}


def _image(movie: ReplicaMovie) -> dict[str, Any] | None:
    url = poster_url(movie)
    caption = {"plainText": f"{movie.basics.title} ({movie.basics.year})"}
    return None if url is None else {"width": 1000, "height": 1500, "url": url, "caption": caption}


def _status(basics: Basics) -> dict[str, Any]:
    stage = ("post_production", "Post-production") if basics.upcoming else ("released", "Released")
    return {"currentProductionStage": {"id": stage[0], "text": stage[1]}}


def _credit(person: Person) -> dict[str, Any]:
    return {"name": {"id": person.imdb_id, "nameText": {"text": person.name, "__typename": "NameText"}}}


def _cast_edge(person: Person, character: str | None) -> dict[str, Any]:
    played = None if character is None else [{"name": name} for name in character.split(" / ")]
    category = {"id": "actor", "text": "Actor", "__typename": "CreditCategory"}
    return {"node": {**_credit(person), "attributes": None, "category": category, "characters": played}}


def _crew(movie: ReplicaMovie) -> list[tuple[str, str, tuple[Person, ...]]]:
    return [("Directors", _DIRECTORS, movie.credits.directors), ("Writers", _WRITERS, movie.credits.writers)]


def _credit_categories(movie: ReplicaMovie) -> list[dict[str, Any]]:
    def items(people: Sequence[tuple[Person, str | None]], *, is_cast: bool) -> list[dict[str, Any]]:
        return [
            {
                "id": person.imdb_id,
                "rowTitle": person.name,
                "isCast": is_cast,
                "characters": character.split(" / ") if character else [],
            }
            for person, character in people
        ]

    groups = [(name, group, items([(p, None) for p in people], is_cast=False)) for name, group, people in _crew(movie)]
    groups.append(("Cast", _CAST, items(movie.credits.cast, is_cast=True)))
    return [
        {"id": group, "name": name, "index": place, "section": {"items": rows, "total": len(rows)}}
        for place, (name, group, rows) in enumerate(groups, start=1)
    ]


def _money(amount: int) -> dict[str, Any]:
    return {"amount": amount, "currency": "USD", "__typename": "Money"}


def _total(amount: int | None) -> dict[str, Any] | None:
    return None if amount is None else {"total": _money(amount), "__typename": "BoxOfficeGross"}


def _chart_node(movie: ReplicaMovie) -> dict[str, Any]:
    basics = movie.basics
    return {
        "id": movie.imdb_id,
        "titleText": {"text": basics.title, "__typename": "TitleText"},
        "titleType": _title_type(basics),
        "originalTitleText": {"text": basics.original_title or basics.title, "__typename": "TitleText"},
        "primaryImage": _image(movie),
        "releaseYear": {"year": basics.year, "endYear": None, "__typename": "YearRange"},
        "ratingsSummary": _ratings(movie),
        "runtime": _runtime(basics),
        "certificate": _certificate(movie),
        "canRate": {"isRatable": not basics.upcoming, "__typename": "CanRate"},
        "titleGenres": _title_genres(basics),
        "series": None,
        "plot": _plot(movie),
        "releaseDate": _release_date(movie),
        "productionStatus": _status(basics),
        "__typename": "Title",
    }


def _flat(movie: ReplicaMovie) -> dict[str, Any]:
    """Return a row of a search, where what is unrated has a rating of 0."""
    basics = movie.basics
    rating, votes = movie.rating or (0, 0)
    return {
        "canRate": not basics.upcoming,
        "certificate": movie.certificate,
        "endYear": None,
        "genres": basics.genres,
        "metascore": movie.metascore,
        "originalTitleText": basics.original_title or basics.title,
        "plot": movie.plot,
        "primaryImage": {"url": poster_url(movie), "width": 1000, "height": 1500} if movie.has_poster else None,
        "ratingSummary": {"aggregateRating": rating, "voteCount": votes},
        "releaseYear": basics.year,
        "releaseDate": _release_date(movie),
        "productionStatus": _status(basics),
        "runtime": None if basics.runtime_minutes is None else basics.runtime_minutes * 60,
        "titleId": movie.imdb_id,
        "titleText": basics.title,
        "titleType": {"canHaveEpisodes": False, "id": basics.title_type, "text": ""},
        "principalCredits": [],
    }


def _calendar_entry(movie: ReplicaMovie, day: date) -> dict[str, Any]:
    return {
        "id": movie.imdb_id,
        "titleText": movie.basics.title,
        "titleType": {"id": movie.basics.title_type, "text": "Movie", "canHaveEpisodes": False},
        "releaseDate": f"{day:%a, %d %b %Y} 00:00:00 GMT",
        "genres": movie.basics.genres,
        "principalCredits": [{"id": person.imdb_id, "text": person.name} for person, _ in movie.credits.cast[:4]],
        "releaseYear": {"year": movie.basics.year},
    }
