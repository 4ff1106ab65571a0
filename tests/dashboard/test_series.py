"""The page of a series shows every season and episode with its scores.

It is readable without colour. The pages of its parts lead back to it.
"""

import re
from pathlib import Path

from moviecrawler.dashboard.rendering import STATIC
from moviecrawler.dashboard.titles import Titles
from tests.invented_series import IMDB, METACRITIC, RATED, TOMATOES
from tests.page_texts import contrast, shown
from tests.services.postgres import execute
from tests.stored import write

EPISODES = 30


def plain(page: str) -> str:
    return re.sub(r"<[^>]*>", "", page).strip()


def cells(table: str) -> list[list[str]]:
    rows = re.findall(r"<tr>(.*?)</tr>", table, re.DOTALL)
    return [
        [plain(cell) for cell in re.findall(r"<t[hd].*?>(.*?)</t[hd]>", row, re.DOTALL)]
        for row in rows
    ]


def id_of(url: str, site_id: str) -> str:
    ((title_id,),) = execute(url, "SELECT title_id FROM records WHERE site_id = %s", site_id)
    return str(title_id)


def test_a_series_has_its_seasons_and_a_grid_and_its_parts_lead_back(
    database_url: str, titles: Titles
) -> None:
    write(database_url, IMDB, TOMATOES, METACRITIC, *RATED)
    execute(
        database_url,
        "INSERT INTO imdb_episodes"
        " VALUES ('tt0000021', 'tt0000001', 2, 2, '<Gale>', 2002, 6.0, 5000)",
    )
    series = id_of(database_url, "tt0000001")
    page = shown(titles, series)
    seasons = page[page.index('<section aria-labelledby="seasons">') :].split("</section>")[0]
    grid = page[page.index('<section aria-labelledby="episodes">') :].split("</section>")[0]
    assert cells(seasons)[1:] == [
        ["Season 1", "–", "8", "8.3 derived", "400", "71", "7.5", "88", "70"],
        ["Season 2", "–", "12", "6.0 derived", "5,000", "–", "–", "–", "–"],
        ["Season 3", "–", "1", "7.0 derived", "5", "–", "–", "–", "–"],
    ]
    assert cells(grid) == [
        ["Season", "1", "2", "3"],
        ["1", "8.0", "9.1", "–"],
        ["2", "", "6.0", ""],
        ["3", "7.0", "", ""],
    ]
    assert 'title="&lt;Gale&gt;, 5,000 votes"' in grid
    for site_id, words in (
        ("tv/salt_harbour/s01", "Season 1 of Salt Harbour"),
        ("tt0000012", "Season 1, episode 2 of Salt Harbour"),
    ):
        own = id_of(database_url, site_id)
        assert f'href="/titles/{own}"' in page
        part = shown(titles, own)
        assert f'href="/titles/{series}"' in part
        assert words in plain(part)
        assert '<h2 id="episodes">' not in part
    assert "season 1 of Salt Harbour" in plain(shown(titles, q="season"))
    assert "episode 1x02 of Salt Harbour" in plain(shown(titles, q="night 12"))


def test_a_grid_has_each_number_in_its_place_and_what_has_no_room_is_counted(
    database_url: str, titles: Titles
) -> None:
    write(database_url, IMDB)
    for season, first, last in ((1, 1, EPISODES), (2, 101, 180), (201, 1, 1)):
        execute(
            database_url,
            "INSERT INTO imdb_episodes"
            " SELECT 'tt' || 5000000 + 1000 * %s + e,"
            " 'tt0000001', %s, e, 'E', 2001, (10 + e %% 90) / 10.0, 9"
            " FROM generate_series(%s, %s) e",
            season,
            season,
            first,
            last,
        )
    page = shown(titles, id_of(database_url, "tt0000001"))
    rows = cells(page[page.index('<table class="grid">') :].split("</table>")[0])
    assert (
        rows[1]
        == ["1", *(f"{(10 + episode % 90) / 10:.1f}" for episode in range(1, EPISODES + 1))]
        + [""] * 30
    )
    assert rows[2][-1] == "50 more"
    assert rows[3][:2] == ["201", "1.1"]


def test_a_number_can_be_read_on_every_colour() -> None:
    css = Path(str(STATIC.joinpath("dashboard.css"))).read_text("utf-8")
    text = re.search(r'rated-"\] a \{ color: (#\w+)', css)
    assert text
    grounds = re.findall(r"\.rated-\d \{ background: (#\w+)", css)
    assert len(grounds) == 6
    for ground in grounds:
        assert contrast(bytes.fromhex(ground[1:]), bytes.fromhex(text[1][1:])) >= 7
