"""The dashboard of a real cluster, read and used as a browser without scripts would."""

from __future__ import annotations

import html
import json
import re
import time
import urllib.parse
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import psycopg2
import pytest

from moviecrawler.dashboard import site
from tests.cluster.nodes import Node
from tests.dashboard import operated
from tests.dashboard.operated import DONE, HOSTILE, PER_DAY, Operated, figures, number, query, text_of
from tests.frontier.workers import make_run
from tests.waiting import wait_for

PAGES = [*site.PAGES, "/titles?q=Am%C3%A9lie", "/titles/900001"]
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; "
    "frame-ancestors 'none'; base-uri 'none'"
)


def followed(world: Operated, path: str, link: str) -> list[str]:
    """Return a page and those that its links to the next one lead to."""
    pages = [world.page(path)]
    while (more := re.search(rf'rel="next" href="({link})"', pages[-1])) and len(pages) < 20:
        pages.append(world.page(html.unescape(more[1]).partition("#")[0]))
    return pages


# --- What every page promises -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", PAGES)
def test_page_is_whole_and_brings_nothing_from_elsewhere(world: Operated, path: str) -> None:
    answer = world.node.request(path.lstrip("/"))
    assert answer.code == 200, answer.text
    assert answer.headers["Content-Security-Policy"] == POLICY
    headers = {"X-Frame-Options": "DENY", "X-Content-Type-Options": "nosniff", "Cache-Control": "no-store"}
    assert headers.items() <= answer.headers.items()
    assert "Not all can be shown" not in answer.text
    assert 'href="/jobs"' in answer.text  # Scrapyd's own page
    for tag in re.findall(r"<[a-z][^>]*>", answer.text):
        assert not re.search(r"\s(style|on\w+)\s*=", tag), tag
        assert not tag.startswith(("<style", "<img", "<iframe", "<object")), tag
        if tag.startswith(("<script", "<link")):
            assert re.search(r'(?:src|href)="/static/[\w.?]+"', tag), tag
    assert re.findall(r"<script[^>]*>(.*?)</script>", answer.text) == [""]
    for file in re.findall(r'(?:src|href)="(/static/[^"]+)"', answer.text):
        assert world.node.request(file.lstrip("/")).code == 200


def test_addresses_go_by_the_prefix_of_a_proxy_in_front(world: Operated) -> None:
    prefixed = world.node.request("", headers={"X-Forwarded-Prefix": "/movies"}).text
    assert {link.partition("/")[0] for link in re.findall(r'(?:href|src|action)="/movies(/[^"]*)"', prefixed)} == {""}
    assert not re.findall(r'(?:href|src|action)="/(?!movies/)[^"]*"', prefixed)
    assert '"/crawls"' in world.node.request("", headers={"X-Forwarded-Prefix": '"><b>'}).text


def test_what_does_not_exist_is_said_with_its_status(world: Operated) -> None:
    for path in (
        "titles/123456789",
        "titles/x",
        "crawls/moviecrawler/nothing",
        "crawls/a/b/c",
    ):
        answer = world.node.request(path)
        assert answer.code == 404, path
        assert 'role="alert"' in answer.text
    assert world.node.request("crawls?pending=x").code == 400
    assert world.node.request("titles?page=0").code == 400
    assert "Q has a NUL character in it" in world.node.request("titles?q=a%00b").text
    assert "call this number" not in world.page("/crawls?notice=call+this+number")


# --- Figures ----------------------------------------------------------------------------------------------------------


def test_overview_says_what_needs_attention_and_has_the_api_s_and_the_database_s_figures(world: Operated) -> None:
    page = world.page("/")
    assert "! One thing needs attention: 1 request is a dead letter." in text_of(page)
    [[due, known]] = world.ask(
        "SELECT count(*) FILTER (WHERE next_due <= now()), count(*) FROM title_sites WHERE site = 'metacritic' AND site_id IS NOT NULL"
    )
    wait_for(lambda: figures(world.page("/"), "metacritic")["Due"] == f"{due} of {known} known")  # counted now and then
    metacritic = figures(world.page("/"), "metacritic")
    assert (metacritic["Failed today"], metacritic["To review"], metacritic["Requests today"]) == (
        "1",
        "2",
        f"{_progress(world, 'over')['used_today']} of {PER_DAY:,}",
    )
    # Those of IMDb grow while we look.
    before, counted = _progress(world)["used_today"], _counted(world)
    imdb = figures(world.page("/"), "imdb")
    assert before <= number(imdb["Requests today"]) <= _progress(world)["used_today"]
    assert imdb["Requests today"].endswith(f" of {PER_DAY:,}")
    assert counted <= number(imdb["Due"].split("of ")[1]) <= _counted(world)
    assert number(imdb["Rate now"]) > 0
    assert imdb["Time left"] != "–"
    assert re.fullmatch(r"[\d.]+ %", imdb["Fresh"])


def test_site_that_has_refused_us_says_until_when_and_why(world: Operated) -> None:
    end = round(time.time() + 7200)
    world.redis.client.hset(
        "{rottentomatoes}:circuit", mapping={"reason": f"403 {HOSTILE}", "until": 1000 * end, "trips": 1}
    )
    try:
        page = world.page("/")
        until = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(end))
        assert f"✕ Stopped until {until} : 403 {HOSTILE}" in text_of(page)
        assert "! 2 things need attention: Rotten Tomatoes has refused us " in text_of(page)
        world.redis.client.hset("{rottentomatoes}:circuit", "until", round(time.time() * 1000) - 1)
        assert "! Being tried again It had refused us: 403" in text_of(world.page("/"))
    finally:
        world.redis.client.delete("{rottentomatoes}:circuit")


def _progress(world: Operated, name: str = "running") -> dict[str, int]:
    return next(run for run in world.node.get("progress.json").json["runs"] if run["run"] == name)


def _counted(world: Operated) -> int:
    """Return how many titles of IMDb were counted last."""
    return int(json.loads(world.redis.client.get("{dashboard}:counts") or b"")["sites"]["imdb"]["known"])


def test_counts_come_after_the_database(world: Operated) -> None:
    rows = {site: (known, read) for site, known, read in world.ask(
        "SELECT site::text, count(*) FILTER (WHERE site_id IS NOT NULL),"
        " count(*) FILTER (WHERE last_success >= date_trunc('day', now(), 'UTC')) FROM title_sites GROUP BY site"
    )}  # fmt: skip
    wait_for(lambda: _counted(world) >= rows["imdb"][0])
    assert rows["imdb"][1] > 0
    # Counted every few seconds, while the crawl goes on.
    wait_for(lambda: number(figures(world.page("/"), "imdb")["Titles read today"]) >= rows["imdb"][1])


def test_crawls_and_jobs_are_those_of_the_api(world: Operated) -> None:
    page = world.page("/crawls")
    text = text_of(page)
    assert f"Metacritic over · finished 100 % {DONE} 0 0 0 – –" in text
    before = _progress(world)
    found = re.search(r"IMDb running ✓ running [\d.]+ % ([\d,]+) 0 ([\d,]+) 1 ", text)
    assert found, text
    assert int(found[1].replace(",", "")) <= before["done"]
    jobs = world.node.get("daemonstatus.json").json
    assert f"Running {jobs['running']} " in text
    assert f"Finished {jobs['finished']} " in text
    done = world.node.finished(world.done)
    assert done is not None
    assert f"{world.done} metacritic {done['node'].partition(':')[0]}" in text
    assert re.search(rf"finished {done['items']} {done['errors']} {done['pages']} ", text)


def test_end_of_a_log_is_shown_by_every_node(world: Operated) -> None:
    done = world.node.finished(world.done)
    assert done is not None
    for node in world.cluster.nodes:
        page = html.unescape(world.page(f"/crawls/moviecrawler/{world.done}", node))
        assert "'finish_reason': 'finished'" in page, text_of(page)
        assert f"'titles/stored': {DONE}" in page
        assert done["node"].partition(":")[0] in page


def test_nodes_are_those_of_the_api(world: Operated) -> None:
    text = text_of(world.page("/nodes"))
    nodes = world.node.get("nodes.json").json["nodes"]
    assert f"2 nodes, 1 of {sum(node['slots'] for node in nodes)} slots in use." in text
    for node in nodes:
        assert re.search(rf"{node['name']} ✓ up {len(node['processes'])} of {node['slots']} [\d.]+ MiB ", text), text
    assert "moviecrawler v1" in text


def test_titles_have_the_scores_of_the_scoreboard(world: Operated) -> None:
    rows = world.ask(
        "SELECT title_id, title, year, imdb_rating::float FROM scoreboard WHERE title_id < 900000 AND imdb_rating IS NOT NULL"
        " ORDER BY title_id LIMIT 3"
    )
    assert len(rows) == 3
    for title_id, title, year, rating in rows:
        page = text_of(world.page(query("/titles", q=title)))
        assert f"{title} {year} movie {rating:g} " in page or f"{title} {year} series {rating:g} " in page
        one = text_of(world.page(f"/titles/{title_id}"))
        assert f"IMDb rating {rating:g} {round(rating * 10, 2):g} " in one


@pytest.mark.parametrize(
    "text", ["amelie la nuit", "AMÉLIE nu", "tt99990001", "https://www.imdb.com/title/tt99990001/", "script alert"]
)
def test_search_finds_words_without_accents_beginnings_and_ids(world: Operated, text: str) -> None:
    page = world.page(query("/titles", q=text))
    assert re.findall(r'href="/titles/(\d+)"', page) == ["900001"]


@pytest.mark.parametrize("text", ["amelie xyzzy", "?!", "'", "\\", "a:* & !b | ("])
def test_search_that_finds_nothing_says_so(world: Operated, text: str) -> None:
    assert "No title has all these words." in text_of(world.page(query("/titles", q=f"{text} xyzzy")))
    world.page(query("/titles", q=text))


def test_titles_are_listed_page_by_page_each_once(world: Operated) -> None:
    wait_for(lambda: world.ask("SELECT count(*) FROM titles")[0][0] > 60)
    first = world.page("/titles")
    more = re.search(r'rel="next" href="([^"]+)"', first)
    assert more
    second = world.page(html.unescape(more[1]))
    seen = [*re.findall(r'href="/titles/(\d+)"', first), *re.findall(r'href="/titles/(\d+)"', second)]
    assert seen[0] == "900001"
    assert len(seen) == len(set(seen)) > 60


def test_title_shows_history_credits_and_where_it_is_all_from(world: Operated) -> None:
    page = world.page("/titles/900001")
    text = text_of(page)
    for words in (
        "IMDb rating 8.3 83 4,321 IMDb, page",
        "Metascore 70 70 12 IMDb, page",
        " 72 11 71.6 ",
        "An Actor as",
        "Metascore IMDb",  # in the table of its history
        "2001",
        "IMDb tt99990001",
        "Tomatometer, top critics 88 88 – 7.5 IMDb, page",
        "all: 2 won, 3 nominated",
        "1000 by 1500 pixels",
        "Streamer subscription – – – ",
        "rent US HD 3.99 USD ",
        "IMDb, data by JustWatch",
    ):
        assert words in text
    assert re.findall(r'href="(https://streamer[^"]*)"', page) == ["https://streamer.example/1"]


# --- What others wrote ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", [*PAGES, "/crawls/moviecrawler/{done}", "/crawls/moviecrawler/{running}"])
def test_hostile_text_is_escaped_and_passwords_of_proxies_are_not_there(world: Operated, path: str) -> None:
    page = world.page(path.format(done=world.done, running=world.running))
    if path in {"/titles", "/titles/900001"}:
        assert HOSTILE in html.unescape(page)
    assert "<script>alert" not in page
    assert "<img" not in page
    assert "javascript:" not in page
    for secret in (operated.PASSWORD, operated.USER, operated.LOGIN[1], "bob"):
        assert secret not in page
        assert urllib.parse.quote(secret) not in page


# --- What is done -----------------------------------------------------------------------------------------------------


FORM = {
    "action": "schedule",
    "spider": "moviecrawler/imdb",
    "arguments": "ids=tt0000001",
    "settings": "",
    "priority": "0",
}


def test_job_is_scheduled_and_cancelled_by_forms_on_different_nodes(world: Operated) -> None:
    one, two = world.cluster.nodes
    form = {**FORM, "arguments": "ids=tt0000001\nlimit=1\n", "settings": "FRONTIER_RUN=by-hand", "priority": "-5"}
    for wrong in (
        {"spider": "moviecrawler/nobody"},
        {"arguments": "ids"},
        {"settings": "API_TOKEN=abc"},
        {"settings": 'FEEDS={"x": {"format": "csv", "item_filter": "subprocess.Popen"}}'},
        {"arguments": "file=/dev/zero"},
        {"priority": "x"},
    ):
        assert world.send("/crawls", **{**form, **wrong}).code == 400
    filler = one.schedule("imdb", "moviecrawler", {"FRONTIER_RUN": "running"}, ids="tt0000001")
    job = world.sent("/crawls", **form).partition("?")[0].rpartition("/")[2]
    waiting = {pending["id"]: pending for pending in two.jobs("pending")}
    assert waiting[job]["args"] == {"ids": "tt0000001", "limit": "1"}
    assert waiting[job]["settings"] == {"FRONTIER_RUN": "by-hand"}
    assert waiting[job]["priority"] == -5
    assert f"Cancel job {job}" in world.page("/crawls", two)
    cancelled = world.sent("/crawls", two, action="cancel", project="moviecrawler", job=job)
    assert cancelled == "/crawls?notice=cancelled"
    assert "taken out of the queue" in world.page(cancelled)
    assert job not in {pending["id"] for pending in one.jobs("pending")}
    gone = world.sent("/crawls", action="cancel", project="moviecrawler", job="nothing")
    assert gone == "/crawls?notice=no-job"
    one.post("cancel.json", project="moviecrawler", job=filler, signal="KILL")


def test_crawls_that_are_over_for_long_are_shown_the_latest_first(world: Operated) -> None:
    client, names = world.redis.client, [f"old{number}" for number in range(70)]
    over = {"total": 9, "done": 9, "over_at": round(1000 * (time.time() - 7000))}
    all_keys = [make_run(client, name, "rottentomatoes", 7200 + number, **over) for number, name in enumerate(names)]
    try:
        page = world.page("/crawls")
        assert "Rotten Tomatoes old0 9 0 20" in text_of(page)
        assert [name for name in names if f">{name}</td>" in page] == names[:50]
    finally:
        client.delete(all_keys[0].site.runs, *(keys.state for keys in all_keys))


def test_title_is_boosted(world: Operated) -> None:
    assert world.sent("/titles/900002", action="boost") == "/titles/900002?notice=boosted"
    boosted = world.ask(
        "SELECT site::text, boost > 0, boost_due IS NOT NULL FROM title_sites WHERE title_id = 900002 ORDER BY site"
    )
    assert boosted == [(site, True, True) for site in ("imdb", "metacritic", "rottentomatoes")]
    assert "boosted, from" in text_of(world.page("/titles/900002"))
    assert world.sent("/titles/77777777", action="boost").endswith("no-title")


def test_boost_waits_for_whoever_writes_titles(world: Operated) -> None:
    """A store locks the rows of sites before the title's, and would wait for the boost while that waits for the store."""
    with (
        closing(psycopg2.connect(world.database_url)) as writing,
        writing.cursor() as cursor,
        ThreadPoolExecutor(1) as thread,
    ):
        cursor.execute("SELECT lock_titles(); UPDATE title_sites SET boost = boost WHERE title_id = 900001")
        boosting = thread.submit(world.sent, "/titles/900001", action="boost")
        waits = "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
        wait_for(lambda: world.ask(waits))
        cursor.execute("UPDATE titles SET popularity = popularity WHERE title_id = 900001")
        writing.commit()
        assert boosting.result() == "/titles/900001?notice=boosted"


def test_every_node_shows_the_same_and_takes_the_other_s_forms(world: Operated) -> None:
    one, two = world.cluster.nodes

    def cards(node: Node) -> str:
        return world.page("/", node).split('aria-labelledby="site-metacritic"')[1].split("</section>")[0]

    assert cards(one) == cards(two)
    assert world.sent("/crawls", two, action="cancel", project="moviecrawler", job="nothing")
