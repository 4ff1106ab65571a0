from __future__ import annotations

import gzip
import io
import re
from typing import TYPE_CHECKING

import pytest

from moviecrawler.errors import ExtractionError
from moviecrawler.extract import datasets
from moviecrawler.items import Credit, Score

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

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


def top_tables(*films: tuple[str, str, str, float, int]) -> tuple[str, str]:
    basics = "tconst|titleType|primaryTitle|originalTitle|isAdult|startYear|endYear|runtimeMinutes|genres"
    return (
        table(basics, *(rf"{i}|{kind}|Film {i}|Film {i}|0|2000|\N|100|{genres}" for i, kind, genres, _, _ in films)),
        table("tconst|averageRating|numVotes", *(f"{i}|{rating}|{votes}" for i, _, _, rating, votes in films)),
    )


def test_ratings_are_read_exactly() -> None:
    assert list(datasets.ratings(blocks(RATINGS))) == [
        ("tt0900001", 8.7, 30000),
        ("tt0900002", 10.0, 500),
        ("tt10900005", 1.0, 5),
    ]


def test_ratings_are_filtered_by_votes_and_ids() -> None:
    at_least = {
        votes: [r.site_id for r in datasets.ratings(blocks(RATINGS), min_votes=votes)] for votes in (499, 500, 501)
    }
    assert at_least == {499: ["tt0900001", "tt0900002"], 500: ["tt0900001", "tt0900002"], 501: ["tt0900001"]}
    assert [r.votes for r in datasets.ratings(blocks(RATINGS), ids=["tt10900005"])] == [5]


@pytest.mark.parametrize("size", [1, 7, 64, 1 << 20])
def test_rows_survive_however_the_blocks_are_cut(size: int) -> None:
    assert [movie.title for movie in datasets.basics(blocks(BASICS, size))] == [
        "The Kettle",
        '"Quoted" Harbour',
        "Nobody Rated This",
        "Pilot",
        "Gala",
    ]


def test_basics_become_movies_and_null_becomes_none() -> None:
    kettle, harbour, unrated, *_, gala = datasets.basics(blocks(BASICS))
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


def test_basics_are_filtered_by_kind_and_id() -> None:
    assert [m.site_id for m in datasets.basics(blocks(BASICS), kinds={"movie"})] == ["tt0900001", "tt0900003"]
    assert [m.site_id for m in datasets.basics(blocks(BASICS), ids=["tt0900004", "tt7777777"])] == ["tt0900004"]


def test_movies_carry_their_ratings_in_the_order_of_basics() -> None:
    joined = datasets.movies(blocks(BASICS), blocks(RATINGS))
    assert [(m.site_id, m.scores) for m in joined] == [
        ("tt0900001", [Score(kind="imdb", value=8.7, count=30000)]),
        ("tt0900002", [Score(kind="imdb", value=10.0, count=500)]),
        ("tt0900003", []),
        ("tt0900004", []),
        ("tt10900005", [Score(kind="imdb", value=1.0, count=5)]),
    ]


def test_movies_are_filtered_by_votes_kinds_and_ids_together() -> None:
    def found(**filters: object) -> list[str | None]:
        return [m.site_id for m in datasets.movies(blocks(BASICS), blocks(RATINGS), **filters)]  # type: ignore[arg-type]

    assert found(min_votes=500) == ["tt0900001", "tt0900002"]
    assert found(min_votes=501) == ["tt0900001"]
    assert found(min_votes=5, kinds={"series", "other"}) == ["tt0900002", "tt10900005"]
    assert found(ids=["tt0900003", "tt0900002"]) == ["tt0900002", "tt0900003"]
    assert found(ids=["tt0900003", "tt0900002"], min_votes=1) == ["tt0900002"]


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
def test_a_damaged_rating_names_its_line(row: str, reason: str) -> None:
    text = table("tconst|averageRating|numVotes", "tt0900009|5.0|9", row)
    with pytest.raises(ExtractionError, match=rf"^title\.ratings: line 3: .*{reason}"):
        list(datasets.ratings(blocks(text)))


@pytest.mark.parametrize(
    "damage",
    [
        ("tt0900001", "nm0900001"),
        ("The Kettle\tThe", "\tThe"),
        ("1999", "15"),
        ("1999", "19x9"),
        ("118", "0"),
        ("movie\tThe", "\tThe"),
    ],
)
def test_a_damaged_title_is_an_error_and_no_data(damage: tuple[str, str]) -> None:
    with pytest.raises(ExtractionError, match=r"^title\.basics: line 2: "):
        list(datasets.basics(blocks(BASICS.replace(*damage, 1))))


def test_with_on_error_the_other_rows_are_read() -> None:
    damaged: list[ExtractionError] = []
    text = table("tconst|averageRating|numVotes", "tt0900001|8.7|5", "tt0900002", "tt0900003|x|5", "tt0900004|7.0|6")
    found = datasets.ratings(blocks(text), on_error=damaged.append)
    assert [rating.site_id for rating in found] == ["tt0900001", "tt0900004"]
    assert [error.reason[:7] for error in damaged] == ["line 3:", "line 4:"]


def test_text_that_is_not_utf_8_is_damage() -> None:
    data = BASICS.strip().encode().replace(b"The Kettle", b"The Kettl\xe9") + b"\n"
    with pytest.raises(ExtractionError, match="line 2"):
        list(datasets.basics([data]))


READERS: list[tuple[Callable[..., Iterator[object]], str]] = [
    (datasets.ratings, "tconst averageRating numVotes"),
    (datasets.basics, "tconst titleType primaryTitle originalTitle startYear endYear runtimeMinutes genres"),
    (datasets.principals, "tconst ordering nconst category job characters"),
    (datasets.crew, "tconst directors writers"),
    (datasets.akas, "titleId ordering title region language isOriginalTitle"),
    (datasets.episodes, "tconst parentTconst seasonNumber episodeNumber"),
    (datasets.names, "nconst primaryName birthYear deathYear"),
]


@pytest.mark.parametrize(("read", "columns"), READERS, ids=[read.__name__ for read, _ in READERS])
def test_a_header_without_a_column_names_it(read: Callable[..., Iterator[object]], columns: str) -> None:
    names = columns.split()
    for missing in names:
        header = "\t".join("other" if name == missing else name for name in names)
        with pytest.raises(ExtractionError, match="no such column") as error:
            list(read([header.encode() + b"\n"]))
        assert error.value.field == missing


@pytest.mark.parametrize(("read", "columns"), READERS, ids=[read.__name__ for read, _ in READERS])
def test_columns_are_found_by_name_wherever_they_stand(read: Callable[..., Iterator[object]], columns: str) -> None:
    header = "\t".join(["new", *reversed(columns.split())])
    assert list(read([header.encode() + b"\n"])) == []


def test_an_empty_dataset_is_an_error() -> None:
    with pytest.raises(ExtractionError, match="no such column"):
        list(datasets.ratings([]))


def test_data_that_ends_inside_a_line_is_an_error() -> None:
    with pytest.raises(ExtractionError, match="ends inside a line"):
        list(datasets.ratings([RATINGS.strip().encode()]))


def test_a_line_without_end_is_an_error_and_not_kept() -> None:
    with pytest.raises(ExtractionError, match="a line of more than"):
        list(datasets.ratings(b"x" * (1 << 20) for _ in range(1000)))


def test_gunzip_reads_all_members() -> None:
    data = gzip.compress(b"one\n") + gzip.compress(b"two\n")
    assert b"".join(datasets.gunzip(io.BytesIO(data))) == b"one\ntwo\n"


@pytest.mark.parametrize("keep", [5, 20, -9, -1])
def test_a_gzip_file_that_is_cut_is_an_error(keep: int) -> None:
    data = gzip.compress(RATINGS.strip().encode() + b"\n")
    with pytest.raises(ExtractionError, match="damaged or cut short"):
        list(datasets.gunzip(io.BytesIO(data[:keep])))


def test_a_gzip_file_with_a_changed_byte_is_an_error() -> None:
    data = bytearray(gzip.compress(RATINGS.strip().encode() + b"\n"))
    data[-6] ^= 1
    with pytest.raises(ExtractionError, match="damaged or cut short"):
        list(datasets.gunzip(io.BytesIO(bytes(data))))


def test_what_is_no_gzip_file_is_an_error() -> None:
    with pytest.raises(ExtractionError, match="damaged or cut short"):
        list(datasets.gunzip(io.BytesIO(b"<html>Service Unavailable</html>")))


def test_the_weighted_rating_is_the_published_formula() -> None:
    assert datasets.weighted_rating(9.0, 25_000, 7.0) == 8.0
    assert datasets.weighted_rating(9.0, 75_000, 7.0) == 8.5
    assert datasets.weighted_rating(9.0, 0, 7.0) == 7.0
    assert datasets.weighted_rating(9.0, 100, 7.0, minimum=100) == 8.0


def test_the_top_250_is_ordered_by_weighted_rating_and_marked_as_computed() -> None:
    # The second has the higher mean, but of few votes; the mean of all draws it below the first.
    basics, ratings = top_tables(
        ("tt0900001", "movie", "Drama", 9.0, 900_000),
        ("tt0900002", "movie", "Drama", 9.5, 25_000),
        ("tt0900003", "movie", "Drama", 5.0, 900_000),
    )
    top = datasets.top_250(blocks(basics), blocks(ratings))
    assert [(m.site_id, m.list_name, m.list_rank, m.list_computed) for m in top] == [
        ("tt0900001", "top", 1, True),
        ("tt0900002", "top", 2, True),
        ("tt0900003", "top", 3, True),
    ]
    assert top[1].scores == [Score(kind="imdb", value=9.5, count=25_000)]
    assert top[1].imdb_top250_rank is None


def test_the_top_250_holds_only_feature_films_with_enough_votes() -> None:
    basics, ratings = top_tables(
        ("tt0900001", "movie", "Drama", 8.0, 25_000),
        ("tt0900002", "movie", "Drama", 9.0, 24_999),
        ("tt0900003", "tvMovie", "Drama", 9.0, 90_000),
        ("tt0900004", "tvSeries", "Drama", 9.0, 90_000),
        ("tt0900005", "short", "Drama", 9.0, 90_000),
        ("tt0900006", "movie", "Documentary,Music", 9.0, 90_000),
        ("tt0900007", "movie", "Drama", 8.0, 25_001),
    )
    top = datasets.top_250(blocks(basics), blocks(ratings))
    assert {movie.site_id for movie in top} == {"tt0900001", "tt0900007"}


def test_ties_in_the_top_250_are_broken_by_votes_then_by_id() -> None:
    basics, ratings = top_tables(
        ("tt10900001", "movie", "Drama", 8.0, 30_000),
        ("tt0900009", "movie", "Drama", 8.0, 30_000),
        ("tt0900010", "movie", "Drama", 8.0, 40_000),
    )
    top = datasets.top_250(blocks(basics), blocks(ratings), size=3)
    assert [movie.site_id for movie in top] == ["tt0900010", "tt0900009", "tt10900001"]


def test_the_top_250_ends_at_its_size() -> None:
    films = [(f"tt09{n:05}", "movie", "Drama", 8.0, 25_000 + n) for n in range(260)]
    basics, ratings = top_tables(*films)
    top = datasets.top_250(blocks(basics), blocks(ratings))
    assert len(top) == 250
    assert (top[0].site_id, top[-1].site_id) == ("tt0900259", "tt0900010")


PRINCIPALS = table(
    "tconst|ordering|nconst|category|job|characters",
    r'tt0900001|2|nm0900002|actress|\N|["Vera \"V\" Lindqvist","The Twin"]',
    r'tt0900001|1|nm0900001|actor|\N|["Ole"]',
    r"tt0900001|3|nm0900001|director|\N|\N",
    r"tt0900001|4|nm0900003|writer|screenplay|\N",
    r"tt0900001|5|nm0900003|writer|novel|\N",
    r"tt0900001|6|nm0900004|producer|producer|\N",
    r"tt0900001|7|nm0900005|self|\N|\N",
    r"tt0900002|1|nm0900001|actor|\N|\N",
)
NAMES = table(
    "nconst|primaryName|birthYear|deathYear|primaryProfession|knownForTitles",
    r"nm0900001|Aino Välimäki|1960|\N|actor|tt0900001",
    r"nm0900002|Berit Storm|\N|\N|actress|tt0900001",
    r"nm0900003|Cato Lund|1950|2001|writer|tt0900001",
    r"nm0900004|Dag Moe|\N|\N|producer|\N",
)


def test_credits_are_joined_from_principals_and_names() -> None:
    found = datasets.credits(blocks(PRINCIPALS), blocks(NAMES), ["tt0900001", "tt0900009"])
    assert found == {
        "tt0900001": [
            Credit(name="Aino Välimäki", role="director", position=1, person_id="nm0900001"),
            Credit(name="Cato Lund", role="writer", position=1, person_id="nm0900003"),
            Credit(name="Aino Välimäki", role="cast", position=1, person_id="nm0900001", character="Ole"),
            Credit(
                name="Berit Storm",
                role="cast",
                position=2,
                person_id="nm0900002",
                character='Vera "V" Lindqvist / The Twin',
            ),
        ]
    }


def test_characters_that_are_no_list_of_texts_are_damage() -> None:
    with pytest.raises(ExtractionError, match=re.escape("title.principals: line 2")):
        list(datasets.principals(blocks(PRINCIPALS.replace('["Vera', '[["Vera'))))


def test_the_other_datasets_are_read() -> None:
    crew = table("tconst|directors|writers", r"tt0900001|nm0900001,nm0900002|\N")
    akas = table(
        "titleId|ordering|title|region|language|types|attributes|isOriginalTitle",
        r"tt0900001|1|Le bouilloire|FR|\N|imdbDisplay|\N|0",
        r"tt0900001|2|The Kettle|\N|\N|original|\N|1",
    )
    episodes = table(
        "tconst|parentTconst|seasonNumber|episodeNumber", r"tt0900004|tt0900002|1|0", r"tt0900006|tt0900002|\N|\N"
    )
    assert list(datasets.crew(blocks(crew))) == [("tt0900001", ["nm0900001", "nm0900002"], [])]
    assert list(datasets.akas(blocks(akas))) == [
        ("tt0900001", 1, "Le bouilloire", "FR", None, False),
        ("tt0900001", 2, "The Kettle", None, None, True),
    ]
    assert list(datasets.episodes(blocks(episodes))) == [
        ("tt0900004", "tt0900002", 1, 0),
        ("tt0900006", "tt0900002", None, None),
    ]
    assert list(datasets.names(blocks(NAMES), ids=["nm0900003"])) == [("nm0900003", "Cato Lund", 1950, 2001)]
