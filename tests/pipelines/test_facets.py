"""What a page says beside its facts, in every store: how sure scores are, where to watch a title, and what it is like."""

from __future__ import annotations

import csv
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

from moviecrawler.items import Award, Credit, Movie, Offer, RelatedTitle, Score
from moviecrawler.pipelines.postgres import PostgresStore
from moviecrawler.pipelines.sqlite import SqliteStore
from tests.pipelines.runs import BEGIN
from tests.pipelines.stored import Stored, in_order, opened
from tests.pipelines.test_erasing import write as write_into
from tests.pipelines.test_postgres import write
from tests.services.postgres import execute

RENT = Offer(provider="Vudu", kind="rent", country="US", price=3.99, currency="USD", quality="HD", source="JustWatch")
STREAM = Offer(
    provider="Netflix", kind="subscription", country="US", url="https://netflix.example/1", source="JustWatch"
)


def page(site: Any, site_id: str, day: float = 0, **fields: Any) -> Movie:
    """Return a page's movie, read so many days after the tests' time."""
    defaults = {"url": f"https://example.com/{site_id}", "title": "Salt Harbour", "kind": "movie", "year": 2001}
    return Movie(**{**defaults, **fields}, site=site, site_id=site_id, scraped_at=BEGIN + timedelta(days=day))


TOMATOES = page(
    "rottentomatoes",
    "m/salt_harbour",
    scores=[
        Score(kind="tomatometer", value=93, count=210, average=7.9, liked=195, disliked=15, certified=True),
        Score(kind="popcornmeter", value=0, liked=0, disliked=3, certified=False, sentiment="NEGATIVE", reviews=0),
        Score(kind="tomatometer_top", value=88, count=41, average=7.5, liked=36, disliked=5),
        Score(kind="popcornmeter_verified", value=71, average=3.8),
    ],
    offers=[
        Offer(provider="netflix", kind="subscription"),
        Offer(provider="vudu", kind="rent"),
        Offer(provider="vudu", kind="buy"),
    ],
    related=[RelatedTitle(relation="similar", site_id="m/the_lamp", title='The "Lamp"; =1+1')],
    consensus="It glows.",
    external_ids={"ems": "12ab", "rottentomatoes": "771"},
)
METACRITIC = page(
    "metacritic",
    "movie/salt-harbour",
    scores=[
        Score(kind="metascore", value=70, average=69.6, liked=9, neutral=2, disliked=0, sentiment="Generally favorable")
    ],
    offers=[STREAM, RENT, replace(RENT, quality="4K", price=5), replace(RENT, country="DE", currency="EUR")],
    taglines=["Nothing burns longer."],
    poster_width=1000,
    poster_height=1500,
)
IMDB = page(
    "imdb",
    "tt0000042",
    scores=[Score(kind="imdb", value=7.5, count=550, histogram=[10 * n for n in range(1, 11)], reviews=77)],
    keywords=["lighthouse", "keeper's oath"],
    interests=["Psychological Drama", "Drama"],
    awards=[Award(event="Oscar", wins=1, nominations=2), Award(event=None, wins=5, nominations=9)],
    related=[
        RelatedTitle(relation="similar", site_id="tt0000043", title="The Lamp"),
        RelatedTitle(relation="connection", site_id="tt0000044", title="Salt", connection="Follows"),
    ],
)
ALL = (TOMATOES, METACRITIC, IMDB)


def test_all_that_a_page_says_comes_back_from_every_store(every_store: Stored) -> None:
    every_store.write(*ALL)
    assert {one.site_id: in_order(one) for one in every_store.contents()} == {one.site_id: in_order(one) for one in ALL}


def test_offers_keywords_and_finer_scores_stay_while_pages_are_silent_of_them_and_go_when_these_state_none(
    every_store: Stored,
) -> None:
    every_store.write(*ALL)
    emptied: dict[str, Any] = {"scores": [], "offers": [], "keywords": [], "related": [], "consensus": None}
    silent = {
        "imdb": ["keywords", "related.connection", "related.similar", "scores.imdb"],
        "metacritic": ["offers", "scores.metascore"],
        "rottentomatoes": [
            *("consensus", "offers", "related.similar", "scores.popcornmeter", "scores.popcornmeter_verified"),
            *("scores.tomatometer", "scores.tomatometer_top"),
        ],
    }
    newer = [replace(one, **emptied, scraped_at=BEGIN + timedelta(days=1)) for one in ALL]
    every_store.write(*(replace(one, unknown_fields=silent[one.site]) for one in newer))
    kept = {one.site_id: replace(in_order(one), scraped_at=BEGIN) for one in every_store.contents()}
    assert kept == {
        one.site_id: replace(in_order(one), offers=[replace(o, seen_at=BEGIN) for o in in_order(one).offers])
        for one in ALL
    }
    gone = [replace(one, scraped_at=BEGIN + timedelta(days=2)) for one in newer]
    every_store.write(*gone)
    assert {one.site_id: one for one in every_store.contents()} == {one.site_id: one for one in gone}


def test_an_archived_page_that_is_read_anew_fills_what_newer_rows_are_silent_of(every_store: Stored) -> None:
    """Such as those of a dataset: they can't tell keywords, and stand in the way of no older page's."""
    row = replace(
        IMDB, keywords=[], scores=[Score(kind="imdb", value=7.7)], source="dataset", unknown_fields=["keywords"]
    )
    every_store.write(replace(row, scraped_at=BEGIN + timedelta(days=30)))
    every_store.write(IMDB)
    (found,) = every_store.contents()
    assert (found.keywords, found.source) == (IMDB.keywords, "page")
    assert [score.value for score in found.scores] == [7.7]
    assert found.unknown_fields == []


# --- The form in which stores keep a movie ----------------------------------------------------------------------------


# --- CSV --------------------------------------------------------------------------------------------------------------


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return [{name: cell for name, cell in row.items() if cell} for row in csv.DictReader(file, strict=True)]


def test_csv_files_have_it_all(tmp_path: Path) -> None:
    with opened(SqliteStore(tmp_path)) as store:
        write_into(store, *ALL)
    of_site = {row["site"]: row for row in rows(tmp_path / "movies.csv")}
    assert of_site["imdb"]["keywords"] == "lighthouse; keeper's oath"
    assert of_site["metacritic"]["poster_width"] == "1000"
    assert of_site["rottentomatoes"]["external_ids"] == "ems=12ab; rottentomatoes=771"
    assert of_site["rottentomatoes"]["consensus"] == "It glows."
    scores = {row["kind"]: row for row in rows(tmp_path / "scores.csv")}
    assert (scores["tomatometer_top"]["average"], scores["tomatometer_top"]["average_scale"]) == ("7.5", "10")
    assert (scores["popcornmeter"]["liked"], scores["popcornmeter"]["certified"]) == ("0", "false")
    assert scores["imdb"]["histogram"] == "10; 20; 30; 40; 50; 60; 70; 80; 90; 100"
    time = "2026-03-01T12:00:00+00:00"
    assert rows(tmp_path / "offers.csv")[1] == {
        "site": "metacritic",
        "site_id": "movie/salt-harbour",
        "provider": "Vudu",
        "kind": "rent",
        "country": "US",
        "quality": "HD",
        "price": "3.99",
        "currency": "USD",
        "source": "JustWatch",
        "scraped_at": time,
        "seen_at": time,
    }
    assert {row["title"] for row in rows(tmp_path / "related.csv")} == {"The Lamp", "Salt", 'The "Lamp"; =1+1'}
    assert rows(tmp_path / "awards.csv")[0]["event"] == "Oscar"


# --- Postgres ---------------------------------------------------------------------------------------------------------


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


def test_an_offer_that_an_older_page_tells_was_seen_then(every_store: Stored) -> None:
    """As `scrapy replay` fills it in beside a newer reading that does not mention offers, or as one comes later."""

    def silent(day: float) -> Movie:
        return replace(METACRITIC, offers=[], unknown_fields=["offers"], scraped_at=BEGIN + timedelta(days=day))

    newer = replace(METACRITIC, scraped_at=BEGIN + timedelta(days=60))
    for readings in ([silent(20), METACRITIC, silent(40)], [newer, silent(80)]):
        for reading in readings:
            every_store.write(reading)
        (found,) = every_store.contents()
        assert {offer.seen_at for offer in found.offers} == {next(one for one in readings if one.offers).scraped_at}
        assert [replace(offer, seen_at=None) for offer in in_order(found).offers] == in_order(METACRITIC).offers
        assert found.unknown_fields == []
    every_store.write(replace(METACRITIC, scraped_at=BEGIN + timedelta(days=100)))
    assert {offer.seen_at for offer in every_store.contents()[0].offers} == {None}


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
