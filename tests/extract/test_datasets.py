from __future__ import annotations

import gzip
import io
from itertools import chain, repeat
from typing import TYPE_CHECKING, Any

import pytest

from moviecrawler.errors import ExtractionError
from moviecrawler.extract import dataset_charts, datasets
from moviecrawler.extract.datasets import COLUMNS
from moviecrawler.items import Movie, Score

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from moviecrawler.extract.datasets import OnError

BASICS = r"""
tconst	titleType	primaryTitle	originalTitle	isAdult	startYear	endYear	runtimeMinutes	genres
tt0900001	movie	The Kettle	The Kettle	0	1999	\N	118	Comedy,Drama
tt0900002	tvSeries	"Quoted" Harbour	Der Hafen	0	2001	2005	45	Drama
tt0900003	movie	Nobody Rated This	Nobody Rated This	0	\N	\N	\N	\N
tt0900004	tvEpisode	Pilot	Pilot	0	2001	\N	45	Drama
tt10900005	tvSpecial	Gala	Gala	0	2020	\N	90	Music
"""
RATINGS = r"""
tconst	averageRating	numVotes
tt0900001	8.7	30000
tt0900002	10.0	500
tt10900005	1.0	5
"""


def blocks(text: str, size: int = 1 << 20) -> Iterator[bytes]:
    data = (text.strip() + "\n").encode()
    return (data[at : at + size] for at in range(0, len(data), size))


def table(*rows: str) -> str:
    return "\n".join(row.replace("|", "\t") for row in rows)


def fail(error: ExtractionError) -> None:
    raise error


def titles(
    basics: str = BASICS, ratings: str = RATINGS, size: int = 1 << 20, on_error: OnError = fail, **options: Any
) -> list[Movie]:
    return list(datasets.movies(blocks(basics, size), blocks(ratings, size), on_error=on_error, **options))


def chart(films: Iterable[str], name: dataset_charts.ChartName = "top") -> list[Movie]:
    """The chart of films, each given by id, type, genres, rating and votes."""
    given = [film.split() for film in films]
    basics = [rf"{i}|{kind}|Film {i}|Film {i}|0|2000|\N|100|{genres}" for i, kind, genres, _, _ in given]
    ratings = [f"{i}|{rating}|{votes}" for i, _, _, rating, votes in given]
    tables = [
        table("|".join(COLUMNS[of]).replace("originalTitle", "originalTitle|isAdult"), *rows)
        for of, rows in (("title.basics", basics), ("title.ratings", ratings))
    ]
    return dataset_charts.chart(blocks(tables[0]), blocks(tables[1]), name, on_error=fail)


def test_basics_become_movies_and_null_becomes_none() -> None:
    kettle, harbour, unrated, *_, gala = titles()
    assert (kettle.site_id, kettle.imdb_id, kettle.url) == (
        "tt0900001",
        "tt0900001",
        "https://www.imdb.com/title/tt0900001/",
    )
    assert (kettle.original_title, kettle.kind, kettle.title_type) == (None, "movie", "movie")
    assert (kettle.year, kettle.end_year, kettle.runtime_minutes) == (1999, None, 118)
    assert (kettle.genres, kettle.source) == (["Comedy", "Drama"], "dataset")
    assert (harbour.original_title, harbour.kind, harbour.end_year) == ("Der Hafen", "series", 2005)
    assert (unrated.year, unrated.runtime_minutes, unrated.genres) == (None, None, [])
    assert (gala.kind, gala.title_type) == ("other", "tvSpecial")


def test_movies_carry_their_ratings_in_the_order_of_basics() -> None:
    assert [(m.site_id, m.scores) for m in titles()] == [
        ("tt0900001", [Score(kind="imdb", value=8.7, count=30000)]),
        ("tt0900002", [Score(kind="imdb", value=10.0, count=500)]),
        ("tt0900003", []),
        ("tt0900004", []),
        ("tt10900005", [Score(kind="imdb", value=1.0, count=5)]),
    ]


def test_what_is_not_known_has_no_value() -> None:
    row = r"tt0900009|movie|Kettle|\N|0|2000|1999|0|\N"
    (film,) = titles(table(BASICS.strip().split("\n")[0], row))
    assert (film.original_title, film.end_year, film.runtime_minutes, film.genres) == (None, None, None, [])


def test_movies_are_filtered_by_votes_and_kinds_together() -> None:
    def found(**filters: object) -> list[str | None]:
        return [m.site_id for m in titles(**filters)]  # type: ignore[arg-type]

    assert found(min_votes=500) == ["tt0900001", "tt0900002"]
    assert found(min_votes=501) == ["tt0900001"]
    assert found(min_votes=5, kinds={"series", "other"}) == ["tt0900002", "tt10900005"]


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ("tt0900001|8.7", "2 columns instead of 3"),
        ("tt0900001|8.7|5|6", "4 columns instead of 3"),
        ("tt0900001|0.0|5", "a rating of"),
        ("tt0900001|10.1|5", "a rating of"),
        ("tt0900001|nan|5", "a rating of"),
        ("tt0900001|8.7|0", "a rating of"),
        (r"tt0900001|8.7|\N", "is not a number"),
        ("tt0900001|8.7|-5", "is not a number"),
    ],
)
def test_a_damaged_rating_names_its_title(row: str, reason: str) -> None:
    text = table("tconst|averageRating|numVotes", "tt0900009|5.0|9", row)
    with pytest.raises(ExtractionError, match=rf"^title\.ratings: the rows of tt0900001: .*{reason}"):
        titles(ratings=text)


@pytest.mark.parametrize(
    "damage",
    [
        ("tt0900001", "nm0900001"),
        ("The Kettle\tThe", "\tThe"),
        ("1999", "15"),
        ("1999", "19x9"),
        ("movie\tThe", "\tThe"),
    ],
)
def test_a_damaged_title_is_an_error_and_no_data(damage: tuple[str, str]) -> None:
    with pytest.raises(ExtractionError, match=r"^title\.basics: the rows of [tn][tm]0900001: "):
        titles(BASICS.replace(*damage, 1))


def test_with_on_error_the_other_rows_are_read() -> None:
    damaged: list[ExtractionError] = []
    text = table("tconst|averageRating|numVotes", "tt0900001|8.7|5", "tt0900002", "tt0900003|x|5", "tt0900004|7.0|6")
    rated = titles(ratings=text, on_error=damaged.append, min_votes=1)
    assert [movie.site_id for movie in rated] == ["tt0900001", "tt0900004"]
    assert [error.reason[:21] for error in damaged] == ["the rows of tt0900002", "the rows of tt0900003"]


@pytest.mark.parametrize(
    ("begin", "reason"),
    [("tconst", "a header of more than"), ("tconst\taverageRating\tnumVotes\n", "without another id")],
)
def test_a_line_without_end_is_an_error_and_not_kept(begin: str, reason: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(datasets, "_LONGEST_GROUP", 4 << 20)
    endless = chain([begin.encode()], repeat(b"x" * (1 << 20)))
    with pytest.raises(ExtractionError, match=reason):
        list(datasets.movies([], endless, on_error=fail))


def test_gunzip_reads_all_members() -> None:
    data = gzip.compress(b"one\n") + gzip.compress(b"two\n")
    assert b"".join(datasets.gunzip(io.BytesIO(data))) == b"one\ntwo\n"


WHOLE = gzip.compress(RATINGS.strip().encode() + b"\n", mtime=0)  # names of cases are the same in each process of a run


@pytest.mark.parametrize(
    "data",
    [
        *(WHOLE[:keep] for keep in (5, 20, -9, -1)),
        WHOLE[:-6] + bytes([WHOLE[-6] ^ 1]) + WHOLE[-5:],
        b"<html>Service Unavailable</html>",
    ],
)
def test_a_gzip_file_that_is_cut_or_changed_or_none_is_an_error(data: bytes) -> None:
    with pytest.raises(ExtractionError, match="damaged or cut short"):
        list(datasets.gunzip(io.BytesIO(data)))


def test_the_weighted_rating_is_the_published_formula() -> None:
    assert dataset_charts.weighted_rating(9.0, 25_000, 7.0) == 8.0
    assert dataset_charts.weighted_rating(9.0, 75_000, 7.0) == 8.5
    assert dataset_charts.weighted_rating(9.0, 0, 7.0) == 7.0


def test_a_title_of_a_chart_is_marked_as_computed_and_keeps_its_own_rating() -> None:
    (film,) = chart(["tt0900002 movie Drama 9.5 25000"])
    assert (film.list_name, film.list_rank, film.list_computed, film.imdb_top250_rank) == ("top", 1, True, None)
    assert film.scores == [Score(kind="imdb", value=9.5, count=25_000)]


@pytest.mark.parametrize(
    ("name", "ranked", "others"),
    [
        # The second has the higher mean, but of few votes; the mean of all draws it below the first.
        ("top", ["movie Drama 9.0 900000", "movie Drama 9.5 25000", "movie Drama 5.0 900000"], []),
        (
            "top",
            ["movie Drama 8.0 25000", "movie Drama 8.0 25001"],
            [
                *("movie Drama 9.0 24999", "tvMovie Drama 9.0 90000", "tvSeries Drama 9.0 90000"),
                *("short Drama 9.0 90000", "movie Documentary,Music 9.0 90000"),
            ],
        ),
        (
            "toptv",
            ["tvSeries Documentary 9.0 90000", "tvMiniSeries Drama 8.0 90000"],
            ["tvEpisode Drama 9.9 90000", "movie Drama 9.9 90000", "tvSeries Drama 9.9 24999"],
        ),
        (
            "top",
            [f"movie Drama 8.0 {26_000 - n}" for n in range(250)],
            [f"movie Drama 8.0 {25_700 - n}" for n in range(9)],
        ),
        (
            "popular",
            ["tvMovie Drama 2.0 1001", "movie Documentary 9.0 1000"],
            ["movie Drama 9.0 999", "tvSeries Drama 9.0 2000"],
        ),
        ("populartv", [f"tvSeries Drama 8.0 {26_000 - n}" for n in range(100)], ["tvSeries Drama 9.0 2000"]),
    ],
)
def test_a_chart_holds_what_it_is_of_in_its_order(
    name: dataset_charts.ChartName, ranked: list[str], others: list[str]
) -> None:
    films = [f"tt09{number:05} {film}" for number, film in enumerate([*ranked, *others])]
    found = chart(films[::-1], name)
    assert [movie.site_id for movie in found] == [film.split()[0] for film in films[: len(ranked)]]
    assert [movie.list_rank for movie in found] == list(range(1, len(ranked) + 1))


def test_ties_in_the_top_250_are_broken_by_votes_then_by_id() -> None:
    votes = {"tt10900001": 30_000, "tt0900009": 30_000, "tt0900010": 40_000}
    top = chart(f"{site_id} movie Drama 8.0 {count}" for site_id, count in votes.items())
    assert [movie.site_id for movie in top] == ["tt0900010", "tt0900009", "tt10900001"]
