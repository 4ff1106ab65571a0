"""What Postgres has of offers and since when, and which titles it finds similar."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

from moviecrawler.items import Credit, Movie, Offer, RelatedTitle
from moviecrawler.pipelines.postgres import PostgresStore
from tests.pipelines.pages import ALL, page
from tests.runs import BEGIN, RENT, STREAM, record_of
from tests.services.postgres import execute
from tests.stored import opened, write


def offered(url: str) -> set[str]:
    """Return provider, price and beginning of each offer, in days since the tests' time."""
    query = "SELECT concat_ws(' ', provider, price), since FROM offers"
    found: Any = execute(url, query)
    return {f"{offer} since {(since - BEGIN).days}" for offer, since in found}


def test_offers_begin_change_and_end(database_url: str) -> None:
    """A page that does not mention offers ends none.

    The same page read again corrects what was misread.
    """
    free = Offer(provider="Misread", kind="free")
    finer = replace(RENT, quality="4K", price=9.5)
    readings: list[tuple[float, list[Offer], list[str], set[str]]] = [
        (0, [STREAM, RENT], [], {"Netflix since 0", "Vudu 3.99 since 0"}),
        (1, [], ["offers"], {"Netflix since 0", "Vudu 3.99 since 0"}),
        (2, [STREAM, replace(RENT, price=2.5)], [], {"Netflix since 0", "Vudu 2.5 since 0"}),
        (3, [RENT, free], [], {"Vudu 3.99 since 0", "Misread since 3"}),
        (3, [RENT], [], {"Vudu 3.99 since 0"}),
        (
            4,
            [RENT, finer, STREAM],
            [],
            {"Vudu 3.99 since 0", "Vudu 9.5 since 4", "Netflix since 4"},
        ),
        (5, [RENT], [], {"Vudu 3.99 since 0"}),
        (6, [], [], set()),
    ]
    for day, offers, unknown, expected in readings:
        given = {"offers": offers, "unknown_fields": unknown}
        write(database_url, page("metacritic", "movie/salt-harbour", day, **given))
        assert offered(database_url) == expected


def test_a_batch_reads_no_table_from_end_to_end(database_url: str) -> None:
    def scans(store: PostgresStore) -> dict[str, int]:
        with store._database.transaction() as cursor:
            cursor.execute("SELECT pg_stat_force_next_flush()")
        rows = execute(
            database_url,
            "SELECT relname, seq_scan FROM pg_stat_user_tables WHERE schemaname = 'public'",
        )
        return {str(name): int(str(count)) for name, count in rows}

    with opened(PostgresStore(database_url)) as store:
        store.write([record_of(one) for one in ALL])
        before = scans(store)
        later = [
            replace(one, offers=one.offers[:1], scraped_at=BEGIN + timedelta(days=1)) for one in ALL
        ]
        store.write([record_of(one) for one in later])
        assert scans(store) == before


def test_similar_titles_share_what_is_rare(database_url: str) -> None:
    def like(number: int, **fields: Any) -> Movie:
        return page(
            "imdb", f"tt{number:07}", title=f"Film {number}", imdb_id=f"tt{number:07}", **fields
        )

    common = [like(100 + n, keywords=["love"], interests=["Drama"]) for n in range(30)]
    director = [Credit(name="Odile Farrow", role="director", position=1, person_id="nm7")]
    fourth = [RelatedTitle(relation="similar", site_id="tt0000004", title="Film 4")]
    beside = [RelatedTitle(relation="similar", site_id="tt0000001", title="Film 1")]
    movies = [
        like(
            1,
            keywords=["lighthouse", "love"],
            interests=["Drama"],
            credits=director,
            related=fourth,
        ),
        like(2, keywords=["lighthouse"]),
        like(3, keywords=["love"], credits=director),
        like(4),
        like(6, related=beside),
        like(7, keywords=["unlike"]),
        page(
            "metacritic", "movie/keeper", title="The Keeper", keywords=["one-eyed-keeper", "love"]
        ),
        like(8, keywords=["one eyed keeper"]),
        like(9, keywords=["one-eyed keeper"]),
    ]
    write(database_url, *movies, *common)
    found = execute(
        database_url,
        "SELECT s.title FROM titles t CROSS JOIN similar_titles(t.title_id, 4) s"
        " WHERE t.imdb_id = 'tt0000001'",
    )
    assert {title for (title,) in found} == {"Film 2", "Film 3", "Film 4", "Film 6"}
    reasons = execute(
        database_url,
        "SELECT s.shared FROM titles t CROSS JOIN similar_titles(t.title_id) s"
        " WHERE t.imdb_id = 'tt0000001' AND s.title = 'Film 3'",
    )
    assert reasons == [(["person: Odile Farrow", "keyword: love"],)]
    keeper = (
        "SELECT s.title FROM records r CROSS JOIN similar_titles(r.title_id, 2) s"
        " WHERE r.site_id = %s ORDER BY 1"
    )
    assert execute(database_url, keeper, "movie/keeper") == [("Film 8",), ("Film 9",)]
