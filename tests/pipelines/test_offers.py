"""What Postgres keeps of offers and finer scores, when they began and ended, and what its views make of them."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

from moviecrawler.items import Credit, Movie, Offer, RelatedTitle
from moviecrawler.pipelines.postgres import PostgresStore
from moviecrawler.pipelines.sqlite import SqliteStore
from tests.pipelines.runs import BEGIN
from tests.pipelines.stored import opened
from tests.pipelines.test_contract import ALL, METACRITIC, RENT, STREAM, TOMATOES, page
from tests.pipelines.test_csv_files import rows
from tests.pipelines.test_postgres import write, write_into
from tests.services.postgres import execute


def offered(url: str) -> list[tuple[object, ...]]:
    """Return provider, kind, price and the days since the tests' time of its beginning and its end, of each offer ever."""
    found: Any = execute(
        url, "SELECT provider, kind::text, price::float, since, ended FROM offers ORDER BY since, provider, kind"
    )
    return [(*row[:3], *(None if at is None else (at - BEGIN).days for at in row[3:])) for row in found]


def test_offers_begin_change_and_end(database_url: str) -> None:
    """Silence ends none; the same page read again unmakes what was misread."""
    readings: list[tuple[float, list[Offer], list[str]]] = [
        (0, [STREAM, RENT], []),
        (1, [], ["offers"]),
        (2, [STREAM, replace(RENT, price=2.5)], []),
        (3, [RENT], []),
        (3, [RENT, Offer(provider="Misread", kind="free")], []),
        (3, [RENT], []),
        (4, [RENT, STREAM], []),
        (5, [], []),
    ]
    for day, offers, silent in readings:
        write(database_url, page("metacritic", "movie/salt-harbour", day, offers=offers, unknown_fields=silent))
    assert offered(database_url) == [
        ("Netflix", "subscription", None, 0, 3),
        ("Vudu", "rent", 3.99, 0, 5),
        ("Netflix", "subscription", None, 4, 5),
    ]
    assert execute(database_url, "SELECT * FROM titles_by_provider") == []


def test_offers_of_older_pages_are_not_shown_as_seen_now(database_url: str, tmp_path: Path) -> None:
    silent = replace(METACRITIC, offers=[], unknown_fields=["offers"], scraped_at=BEGIN + timedelta(days=20))
    for made in (PostgresStore(database_url), SqliteStore(tmp_path)):
        with opened(made) as store:
            write_into(store, silent)
            write_into(store, METACRITIC)
    seen = "SELECT DISTINCT since, seen_at FROM titles_by_provider"
    assert execute(database_url, seen) == [(BEGIN, BEGIN)]
    (line, *_) = rows(tmp_path / "offers.csv")
    assert (line["scraped_at"], line["seen_at"]) == ("2026-03-21T12:00:00+00:00", "2026-03-01T12:00:00+00:00")
    write(database_url, replace(METACRITIC, scraped_at=BEGIN + timedelta(days=30)))
    assert execute(database_url, seen) == [(BEGIN, BEGIN + timedelta(days=30))]


def test_a_renamed_title_keeps_since_when_it_is_offered_and_its_finer_history(database_url: str) -> None:
    former = replace(TOMATOES, site_id="m/salt", offers=[*TOMATOES.offers[:2], Offer(provider="gone", kind="free")])
    write(database_url, former)
    write(database_url, replace(former, offers=TOMATOES.offers[:2], scraped_at=BEGIN + timedelta(days=1)))
    write(database_url, replace(TOMATOES, scraped_at=BEGIN + timedelta(days=2)))
    execute(database_url, "SELECT rename_record('rottentomatoes', 'm/salt', 'm/salt_harbour')")
    assert offered(database_url) == [
        ("gone", "free", None, 0, 1),
        ("netflix", "subscription", None, 0, None),
        ("vudu", "rent", None, 0, None),
        ("vudu", "buy", None, 2, None),
    ]
    history = "SELECT since FROM score_history WHERE kind = 'tomatometer_top' ORDER BY since"
    assert execute(database_url, history) == [(BEGIN,), (BEGIN + timedelta(days=2),)]


def test_the_views_have_finer_scores_their_history_and_what_each_provider_offers(database_url: str) -> None:
    later = replace(TOMATOES, scores=[*TOMATOES.scores[:2], replace(TOMATOES.scores[2], average=7.6)])
    write(database_url, *ALL)
    write(database_url, replace(later, scraped_at=BEGIN + timedelta(days=1)))
    scores = (
        "SELECT s.kind::text, value::int, average::float, liked FROM scores s JOIN records USING (record_id)"
        " WHERE site = 'rottentomatoes' ORDER BY 1"
    )
    assert execute(database_url, scores) == [
        ("popcornmeter", 0, None, 0),
        ("tomatometer", 93, 7.9, 195),
        ("tomatometer_top", 88, 7.6, 36),
    ]
    history = "SELECT kind::text, value::int, average::float FROM score_history ORDER BY 1, since"
    assert [
        row for row in execute(database_url, history) if row[0] in {"tomatometer_top", "popcornmeter_verified"}
    ] == [
        ("popcornmeter_verified", 71, 3.8),
        ("popcornmeter_verified", None, None),
        ("tomatometer_top", 88, 7.5),
        ("tomatometer_top", 88, 7.6),
    ]
    provider = (
        "SELECT title, offer::text, quality, price::float, currency FROM titles_by_provider WHERE provider = 'Vudu'"
    )
    assert execute(database_url, f"{provider} ORDER BY country, quality") == [
        ("Salt Harbour", "rent", "HD", 3.99, "EUR"),
        ("Salt Harbour", "rent", "4K", 5, "USD"),
        ("Salt Harbour", "rent", "HD", 3.99, "USD"),
    ]
    # The scoreboard's means are those of the five.
    assert execute(database_url, "SELECT users_mean::float FROM scoreboard WHERE imdb_rating IS NOT NULL") == [(37.5,)]


def test_a_batch_reads_no_table_from_end_to_end(database_url: str) -> None:
    def scans(store: PostgresStore) -> dict[str, int]:
        assert store._connection is not None
        with store._connection as connection, connection.cursor() as cursor:
            cursor.execute("SELECT pg_stat_force_next_flush()")
        rows = execute(database_url, "SELECT relname, seq_scan FROM pg_stat_user_tables WHERE schemaname = 'public'")
        return {str(name): int(str(count)) for name, count in rows}

    with opened(PostgresStore(database_url)) as store:
        write_into(store, *ALL)
        before = scans(store)
        write_into(store, *(replace(one, offers=one.offers[:1], scraped_at=BEGIN + timedelta(days=1)) for one in ALL))
        assert scans(store) == before


def test_similar_titles_share_what_is_rare(database_url: str) -> None:
    def like(number: int, **fields: Any) -> Movie:
        return page("imdb", f"tt{number:07}", title=f"Film {number}", imdb_id=f"tt{number:07}", **fields)

    common = [like(100 + n, keywords=["love"], interests=["Drama"]) for n in range(30)]
    director = [Credit(name="Odile Farrow", role="director", position=1, person_id="nm7")]
    beside = [RelatedTitle(relation="similar", site_id=f"tt{n:07}", title=f"Film {n}") for n in (1, 5)]
    movies = [
        like(
            1,
            keywords=["lighthouse", "love"],
            interests=["Drama"],
            credits=director,
            related=[RelatedTitle(relation="similar", site_id="tt0000004", title="Film 4")],
        ),
        like(2, keywords=["lighthouse"]),
        like(3, keywords=["love"], credits=director),
        like(4),
        like(5),
        like(6, related=beside),
        like(7, keywords=["unlike"]),
        page("metacritic", "movie/keeper", title="The Keeper", keywords=["one-eyed-keeper", "love"]),
        like(8, keywords=["one eyed keeper"]),
        like(9, keywords=["one-eyed keeper"]),
    ]
    write(database_url, *movies, *common)
    query = (
        "SELECT s.title FROM titles t CROSS JOIN similar_titles(t.title_id, 6, %s) s WHERE t.imdb_id = 'tt0000001'"
        " ORDER BY s.points DESC"
    )
    names = [title for (title,) in execute(database_url, query, True)]
    assert set(names[:5]) == {f"Film {n}" for n in (2, 3, 4, 5, 6)}
    without = [title for (title,) in execute(database_url, query, False)]
    assert "Film 4" not in without
    assert set(without[:4]) == {f"Film {n}" for n in (2, 3, 5, 6)}
    reasons = execute(
        database_url,
        "SELECT s.shared FROM titles t CROSS JOIN similar_titles(t.title_id) s"
        " WHERE t.imdb_id = 'tt0000001' AND s.title = 'Film 3'",
    )
    assert reasons == [(["person: Odile Farrow", "keyword: love"],)]
    keeper = "SELECT s.title FROM records r CROSS JOIN similar_titles(r.title_id, 2) s WHERE r.site_id = %s ORDER BY 1"
    assert execute(database_url, keeper, "movie/keeper") == [("Film 8",), ("Film 9",)]
