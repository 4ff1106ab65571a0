"""`scrapy catalogue`, as an operator uses it."""

import json
import signal
from argparse import ArgumentTypeError
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from moviecrawler.catalogue.wikidata_import import QUERY
from moviecrawler.commands.catalogue import _cell, _kinds, _origin, _weight, _years
from moviecrawler.replica.process import ReplicaProcess
from tests.catalogued import Catalogued, judged, outcome, row
from tests.crawling import Finished, counts, scrapy
from tests.processes import environment, start
from tests.runs import BEGIN
from tests.services.postgres import execute
from tests.services.replica import ReplicaOf
from tests.waiting import LONGEST, wait_for

Run = Callable[..., Finished]
NOTHING_ELSE = "0 changed, 0 removed, 0 ids on other sites, 0 rows left out\n"
ONLY_FILMS = "imported films only; add --kinds movie,series for series\n"


@pytest.fixture
def large(replica_of: ReplicaOf) -> ReplicaProcess:
    """Return a replica of 300 titles."""
    return replica_of(titles=300, light=True)


def catalogue(
    *arguments: str, data: Path, replica: ReplicaProcess | None = None, **settings: str
) -> Finished:
    finished = scrapy("catalogue", *arguments, data=data, replica=replica, **settings)
    assert "Traceback" not in finished.log, finished.log
    return finished


@pytest.fixture
def run(database_url: str, tmp_path: Path) -> Run:
    """Return what runs `scrapy catalogue` on a fresh database."""
    return partial(catalogue, data=tmp_path, DATABASE_URL=database_url)


@pytest.mark.promise("The user agent says what this is, and how to reach the operator.")
def test_datasets_are_imported_once_and_only_what_changed_again(
    run: Run, database_url: str, large: ReplicaProcess
) -> None:
    first = run("import", "imdb", replica=large, CONTACT="https://example.org").output
    (client,) = counts(large)["clients"]
    assert (" moviecrawler/" in client, client.endswith(" (+https://example.org)")) == (True, True)
    assert counts(large)["robots"] > 0
    ((known, lowest, highest),) = execute(
        database_url, "SELECT count(*), min(popularity), max(popularity) FROM titles"
    )
    assert first == f"imdb: {known} rows added, {NOTHING_ELSE}{ONLY_FILMS}"
    assert isinstance(known, int)
    assert known > 250
    assert lowest == 0  # unrated
    assert isinstance(highest, float)
    assert highest > 90
    assert execute(database_url, "SELECT count(*) FROM title_sites") == [(3 * known,)]
    again = run("import", "imdb", replica=large)
    assert again.output == f"imdb has not changed since the last import\n{ONLY_FILMS}"
    assert counts(large)["statuses"]["304"] == 2
    # Another selection is another import, which touches no title that is there.
    fewer = run("import", "imdb", "--min-votes", "100000", "--years", "1990-", replica=large)
    assert fewer.output == f"imdb: 0 rows added, {NOTHING_ELSE}{ONLY_FILMS}"


def test_each_row_of_a_csv_is_a_title_or_is_told(
    run: Run, database_url: str, tmp_path: Path
) -> None:
    """An id is enough: its page tells the rest."""
    (tmp_path / "ids.csv").write_text("imdb_id\ntt0900001\ntt0900002\n")
    added = run("import", "csv", "--from", "ids.csv")
    assert (added.code, added.output.partition(" rows")[0]) == (0, "csv ids.csv: 2")
    (tmp_path / "mine.csv").write_text(
        "\ufeffPosition;Const;Title;Year;Title Type;tmdbId;popularty\r\n"
        "1;tt0900003;The Kettle;1999;TV Mini Series;7;\r\n2;tt0900004;The Pan;2001;;;\r\n"
        "3;nm0000001;Somebody;;;;\r\n4;;The Lid;MMXX;;;\r\n5;;No id;2001;;99;\r\n6;tt1\r\n",
        "utf-8",
        newline="",
    )
    for counted in ("csv mine.csv: 2 rows added", "csv mine.csv has not changed"):
        mixed = run("import", "csv", "--from", "mine.csv")
        assert mixed.code == 1
        assert counted in mixed.output
        assert "columns that are not read: position, popularty" in mixed.log
        assert (
            "3 rows left out, the first: mine.csv, line 4: imdb_id is 'nm0000001'" in mixed.log
        ), mixed.log
        assert ("1 rows have TMDB ids of no known title" in mixed.log) == ("added" in counted)
    stored = "SELECT imdb_id, title, year, kind, tmdb_series_id FROM titles ORDER BY imdb_id"
    assert execute(database_url, stored) == [
        ("tt0900001", None, None, None, None),
        ("tt0900002", None, None, None, None),
        ("tt0900003", "The Kettle", 1999, "series", 7),
        ("tt0900004", "The Pan", 2001, None, None),
    ]
    for name in ("none.csv", "none.csv"):  # and again
        (tmp_path / name).write_text("imdb_id\n")
        nothing = run("import", "csv", "--from", name)
        assert nothing.code == 1
        assert "csv none.csv has no rows that can be imported" in nothing.log
    due = run("due", "imdb").output
    assert "imdb: 4 due" in due


def test_an_import_that_is_interrupted_ends_at_once_and_silently(
    database_url: str, tmp_path: Path
) -> None:
    (tmp_path / "titles.csv").write_text("imdb_id,title,kind\ntt0000001,Dune,movie\n")
    env = environment(tmp_path, None, DATABASE_URL=database_url)
    log = tmp_path / "log"
    with (
        closing(Catalogued(database_url)) as store,
        store.transaction() as cursor,
        log.open("wb") as stderr,
    ):
        cursor.execute("SELECT lock_titles()")
        process = start(
            ["catalogue", "import", "csv", "--from", "titles.csv"],
            env=env,
            cwd=tmp_path,
            stderr=stderr,
        )
        waits = (
            "SELECT 1 FROM pg_locks l JOIN pg_database d ON d.oid = l.database"
            " WHERE NOT granted AND datname = current_database()"
        )
        wait_for(lambda: execute(database_url, waits))
        process.send_signal(signal.SIGINT)
        assert process.wait(LONGEST) == -signal.SIGINT
    assert log.read_text() == ""


def test_status_shows_the_counts_and_how_long_all_takes(run: Run, database_url: str) -> None:
    now = datetime.now(UTC)
    with closing(Catalogued(database_url)) as store:
        store.bring_in(
            *(
                row(n, popularity=None, site_ids={"metacritic": f"movie/t{n}"})
                for n in range(1_300)
            ),
            now=now,
        )
        store.record(outcome("tt1000000", at=now))
    imdb, metacritic, tomatoes = json.loads(run("status", "--json").output)
    assert (imdb["known"], imdb["unread"], imdb["ok"], imdb["due"], imdb["overdue"]) == (
        1300,
        1299,
        1,
        1299,
        0,
    )
    assert (metacritic["site"], metacritic["budget_a_day"], metacritic["due"]) == (
        "metacritic",
        600,
        1300,
    )
    assert metacritic["pages_a_day"] == pytest.approx(1300 / 90, abs=0.1)
    caught_up_by = datetime.fromisoformat(metacritic["caught_up_by"]).date()
    # 600 a day; midnight may have passed meanwhile.
    assert (caught_up_by - now.date()).days in {3, 4}
    assert (tomatoes["known"], tomatoes["unfound"]) == (0, 1300)
    table = run("status").output
    assert table.splitlines()[0].split() == ["imdb", "metacritic", "rottentomatoes"]
    (allowed,) = [
        line.split() for line in table.splitlines() if line.startswith("pages per day allowed")
    ]
    assert allowed[4:] == ["30,000", "600", "5,000"]


def test_boosted_titles_are_due_first(run: Run, database_url: str) -> None:
    with closing(Catalogued(database_url)) as store:
        store.bring_in(*map(row, range(5)))
    known = run("boost", "tt1000003", "--by", "2.5")
    assert (known.code, known.output) == (0, "1 of 1 titles boosted by 2.5\n")
    unknown = run("boost", "tt1000003", "tt9999999")
    assert (unknown.code, unknown.output) == (1, "1 of 2 titles boosted by 1\n")
    found = run("due", "imdb", "--limit", "3").output.splitlines()
    assert found[0] == "imdb: 3 due, the first:"
    assert [line.split()[:2] for line in found[1:]] == [
        ["boosted", "tt1000003"],
        ["unread", "tt1000000"],
        ["unread", "tt1000001"],
    ]
    assert "metacritic: 0 due" in run("due").output


@pytest.mark.promise("What can't be decided waits for a person.")
def test_doubtful_pages_are_shown_and_decided(run: Run, database_url: str) -> None:
    with closing(Catalogued(database_url)) as store:
        store.bring_in(row(0, title="Dune", year=2021))
        reasons = ["same title", "but years 2021 and 1984"]
        doubtful: dict[str, Any] = {
            "evidence": "list",
            "decision": "review",
            "score": 1.25,
            "reasons": reasons,
        }
        title_id = store.title_id("tt1000000")
        store.record(judged("m/dune", title_id, **doubtful))
    shown = run("review").output
    assert shown == (
        "tt1000000    Dune (2021)  rottentomatoes m/dune  1.25: "
        "same title, but years 2021 and 1984\n"
    )
    decided = run("review", "tt1000000", "rottentomatoes", "--accept")
    assert decided.output == "tt1000000: m/dune accepted\n"
    assert run("review").output == "nothing is under review\n"
    assert execute(
        database_url,
        "SELECT site_id, id_source::text FROM title_sites WHERE site = 'rottentomatoes'",
    ) == [("m/dune", "given")]


@pytest.mark.promise("What sites and files say never commands a terminal.")
def test_what_pages_and_files_say_never_commands_a_terminal(run: Run, database_url: str) -> None:
    now = datetime.now(UTC)
    hostile = "Du\x1b]0;owned\x07ne\x1b[2J\nimdb: 0 due \x9b31m\u202e\u3000end"
    with closing(Catalogued(database_url)) as store:
        store.bring_in(row(0, title=hostile, site_ids={"rottentomatoes": "m/a\x1b[1m"}))
        doubtful: dict[str, Any] = {
            "evidence": "list",
            "decision": "review",
            "score": 1.0,
            "reasons": [hostile],
        }
        title_id = store.title_id("tt1000000")
        store.record(judged("movie/\x1b[31m", title_id, site="metacritic", at=now, **doubtful))
    for arguments in (
        ["status"],
        ["due"],
        ["review"],
        ["review", "tt1000000", "metacritic", "--accept"],
    ):
        shown = run(*arguments).output
        assert all(line.isprintable() for line in shown.split("\n")), shown
        assert "\nimdb: 0 due \\" not in shown
        if arguments in (["due"], ["review"]):
            assert "owned" in shown
    gone = run("import", "csv", "--from", "no\x1b[2Jfile")
    assert gone.code == 2
    assert all(line.isprintable() for line in gone.log.split("\n")), gone.log


def test_the_query_for_wikidata_is_given_where_its_service_may_not_be_asked(tmp_path: Path) -> None:
    finished = catalogue(
        "import", "wikidata", data=tmp_path, DATABASE_URL="postgresql://a@127.0.0.1:1/b"
    )
    assert finished.code == 2
    assert "save the result as CSV and name it with --from FILE" in finished.log
    assert finished.output == f"{QUERY.rstrip()}\n"
    assert "SELECT" not in finished.log


@pytest.mark.parametrize(
    ("read", "text", "value"),
    [
        (_weight, "0.5", 0.5),
        (_weight, "999999999", 999_999_999),
        *((_weight, text, None) for text in ("0", "1e9", "nan", "much")),
        (_years, "1990-1999", (1990, 1999)),
        (_years, "1990-", (1990, None)),
        (_years, "-1999", (None, 1999)),
        (_years, "2001", (2001, 2001)),
        *((_years, text, None) for text in ("-", "0", "MMI")),
        (_kinds, "movie,series", {"movie", "series"}),
        (_kinds, "movie,film", None),
        *((_origin, text, text) for text in ("files", "https://host.example/files")),
        *((_origin, text, None) for text in ("file:///tmp", "https://me:you@host.example")),
    ],
)
def test_an_argument_is_read_as_what_it_means_or_refused(
    read: Callable[[str], object], text: str, value: object
) -> None:
    if value is None:
        with pytest.raises(ArgumentTypeError):
            read(text)
    else:
        assert read(text) == value


def test_a_figure_is_a_number_a_day_or_unknown() -> None:
    assert list(map(_cell, (None, 1_234.4, BEGIN, "soon"))) == ["–", "1,234", "2026-03-01", "soon"]
