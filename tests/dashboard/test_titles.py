"""The pages of titles: found, listed, shown and boosted."""

import html
import re
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import psycopg2
import pytest

from moviecrawler.dashboard.pages import PageRequest
from moviecrawler.dashboard.titles import Titles
from tests.dashboard_stage import fill_database
from tests.page_texts import shown, text_of
from tests.services.postgres import execute
from tests.waiting import wait_for


@pytest.fixture
def library(database_url: str, titles: Titles) -> Titles:
    """Return the page of titles of three sites, one of which has all that there may be of one."""
    fill_database(database_url)
    return titles


def test_titles_have_the_scores_of_the_scoreboard(database_url: str, library: Titles) -> None:
    rows: Any = execute(
        database_url,
        "SELECT title_id, title, year, imdb_rating::float FROM scoreboard"
        " WHERE title_id < 900000 AND imdb_rating IS NOT NULL ORDER BY title_id LIMIT 3",
    )
    assert len(rows) == 3
    for title_id, title, year, rating in rows:
        page = text_of(shown(library, q=title))
        assert re.search(rf"{re.escape(title)} {year} (movie|series) {rating:.1f} ", page)
        assert f"IMDb rating {rating:.1f} {round(rating * 10, 2):g} " in text_of(
            shown(library, str(title_id))
        )


@pytest.mark.promise("A title is found by words without accents, beginnings and ids.")
@pytest.mark.parametrize(
    "text",
    [
        "amelie la nuit",
        "AMÉLIE nu",
        "tt99990001",
        "https://www.imdb.com/title/tt99990001/",
        "script alert",
    ],
)
def test_search_finds_words_without_accents_beginnings_and_ids(library: Titles, text: str) -> None:
    page = shown(library, q=text)
    assert re.findall(r'href="/titles/(\d+)"', page) == ["900001"]


@pytest.mark.parametrize("text", ["amelie xyzzy", "?!", "'", "\\", "a:* & !b | ("])
def test_search_that_finds_nothing_says_so(library: Titles, text: str) -> None:
    assert "No matching titles." in text_of(shown(library, q=f"{text} xyzzy"))
    shown(library, q=text)


def test_titles_are_listed_page_by_page_each_once(library: Titles) -> None:
    first = shown(library)
    assert re.search(r"\d+ titles", text_of(first))
    more = re.search(r'rel="next" href="([^"]+)"', first)
    assert more
    query = dict(parse_qsl(urlsplit(html.unescape(more[1])).query))
    second = shown(library, **query)
    pages = [re.findall(r'href="/titles/(\d+)"', page) for page in (first, second)]
    assert pages[0][0] == "900001"
    assert len(set(pages[0])) == len(pages[0]) == 50
    assert len(set(pages[1])) == len(pages[1]) > 2


def test_title_shows_history_credits_offers_and_where_it_is_all_from(library: Titles) -> None:
    page = shown(library, "900001")
    text = text_of(page)
    for words in (
        "IMDb rating 8.3 83 4,321 – – IMDb, page",
        "Metascore 70 70 12 – – IMDb, page",
        " 72 11 71.6 ",
        "An Actor as",
        "Metascore IMDb",  # in the table of its history
        "90 80 70 ",  # of the chart
        "IMDb rating, now 8.3 Metascore on IMDb, now 70",
        "IMDb tt99990001",
        "Tomatometer, top critics 88 88 – 7.5 – IMDb, page",
        "all: 2 won, 3 nominated",
        "Streamer rent US HD 3.99 USD; subscription ",
        "IMDb data by JustWatch",
    ):
        assert words in text, (words, text)
    assert "A Stranger" not in text  # who is of another title
    text = text_of(shown(library, "900002"))
    assert "A Stranger" in text
    assert "A Double" not in text  # of another site than the first
    assert re.findall(r'href="(https://streamer[^"]*)"', page) == ["https://streamer.example/1"]
    assert len(re.findall(r'<path class="curve c\d" d="M[^"]+H600"/>', page)) == 2


def test_title_is_boosted_once_nobody_writes_titles(database_url: str, library: Titles) -> None:
    """A boost and a store do not wait for each other.

    A store locks the rows of sites before the title's, and would wait for the boost while that
    waits for the store.
    """

    def boost(title_id: str) -> str:
        form = PageRequest(method="POST", path=(title_id,), values={"action": "boost"})
        answer = library.respond(form)
        assert answer.code == 303, answer.content
        return answer.headers["Location"]

    with (
        closing(psycopg2.connect(database_url)) as writing,
        writing.cursor() as cursor,
        ThreadPoolExecutor(1) as thread,
    ):
        cursor.execute(
            "SELECT lock_titles(); UPDATE title_sites SET boost = boost WHERE title_id = 900001"
        )
        boosting = thread.submit(boost, "900001")
        waits = (
            "SELECT 1 FROM pg_stat_activity"
            " WHERE wait_event_type = 'Lock' AND datname = current_database()"
        )
        wait_for(lambda: execute(database_url, waits))
        cursor.execute("UPDATE titles SET popularity = popularity WHERE title_id = 900001")
        writing.commit()
        assert boosting.result() == "/titles/900001?notice=boosted"
    statement = (
        "SELECT DISTINCT boost > 0, boost_due IS NOT NULL FROM title_sites WHERE title_id = 900001"
    )
    assert execute(database_url, statement) == [(True, True)]
    assert "boosted, from" in text_of(shown(library, "900001"))
    assert boost("77777777").endswith("no-title")
